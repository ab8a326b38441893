"""The peers, one module each; all of them keep the interface of `bench.entrant`."""
