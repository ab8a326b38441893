from tenure.testing.conformance.endings import *  # noqa: F403
