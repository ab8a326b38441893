from tenure.testing.conformance.named import *  # noqa: F403
