"""The tests; a package, so that `python -m tests.mutants` finds its name."""
