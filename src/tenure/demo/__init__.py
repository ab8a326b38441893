"""The founding example, played for real: processes, signals, a store, and a destination with a fence.

Six workers die, the seventh oversleeps its lease, the eighth does the work, and then the seventh wakes up.
"""

from tenure.demo.main import play

__all__ = ["play"]
