"""The protocol as pure values and rules: no I/O, no clock, no randomness."""
