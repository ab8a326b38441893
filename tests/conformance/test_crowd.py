from tenure.testing.conformance.crowd import *  # noqa: F403
