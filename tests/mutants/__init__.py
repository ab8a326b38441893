"""Mutants: each guard removed in turn, and the test that catches it (R48). `make mutants` runs them all."""
