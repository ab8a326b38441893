from tenure.testing.conformance.callers import *  # noqa: F403
