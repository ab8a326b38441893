from tenure.testing.conformance.basics import *  # noqa: F403
