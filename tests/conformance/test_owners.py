from tenure.testing.conformance.owners import *  # noqa: F403
