from tenure.testing.conformance.boundaries import *  # noqa: F403
