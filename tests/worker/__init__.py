"""The parts of a worker, each alone: injected clocks, a scripted store, no process but this one."""
