"""A worker process: ``python -m examples.stdlib_index.worker NAME QUEUE``; the store is named by $TENURE_STORE.

``tenure worker --app examples.stdlib_index.tasks:app`` would do the same; this one also ends with who started it.
"""

from __future__ import annotations

import sys
import warnings

from examples.child import end_with_starter
from examples.stdlib_index.tasks import app

THREADS = 2


def main() -> None:
    """Work until SIGTERM, or until whoever started this process is gone."""
    name, queue = sys.argv[1:]
    warnings.simplefilter("ignore")  # what the compiler thinks of the standard library's string literals
    end_with_starter()
    app.worker(name=name, queues=(queue,), threads=THREADS, grace=5.0, retention=None).run()


if __name__ == "__main__":
    main()
