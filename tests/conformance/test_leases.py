from tenure.testing.conformance.leases import *  # noqa: F403
