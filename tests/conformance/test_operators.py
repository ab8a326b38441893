from tenure.testing.conformance.operators import *  # noqa: F403
