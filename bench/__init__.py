"""Measurements: `python -m bench.run --help`."""
