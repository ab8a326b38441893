"""The worker: keeper, feeder, executors, and what a handler is given; user code shares no thread with the machinery."""
