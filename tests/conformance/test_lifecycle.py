from tenure.testing.conformance.lifecycle import *  # noqa: F403
