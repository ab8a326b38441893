from tenure.testing.conformance.crash import *  # noqa: F403
