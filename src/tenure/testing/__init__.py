"""Shipped for users: conformance suites, simulation, a lease-loss kit, real servers and a fault proxy."""
