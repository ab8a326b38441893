from tenure.testing.conformance.upkeep import *  # noqa: F403
