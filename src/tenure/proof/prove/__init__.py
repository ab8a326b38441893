"""`tenure prove`: the acceptance on one's own store and destination, with real processes and real faults.

plan          what is to be run: seconds, seed, faults, workload
recorded      a store whose every answer is written to the history of the process that asks
places        destinations: the reference service, and the user's own object
worker        one worker process, started by `fleet`
nemesis       what is done to them
managed       the store of a run that starts it, and what is done to that
volume        a small file system that can be full
runner        one run from start to verdict
apart         the same in a process with a file system of its own, where a fault needs one
gathering     the files of all processes, the store's rows and the destination's log, put together
story         what happened to one job, in words
report        the whole run as one HTML file
"""
