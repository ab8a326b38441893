"""``python -m tenure.demo``: play the founding example."""

from __future__ import annotations

import argparse
import sys

from tenure.demo.destinations import DEFAULT, NEEDS
from tenure.demo.main import play
from tenure.errors import TenureError


def main() -> int:
    """Read the command line, play, and return the exit status: 0 if everything was as it should be."""
    parser = argparse.ArgumentParser(prog="python -m tenure.demo", description="Play the founding example.")
    parser.add_argument("--store", help="a store's address (default: a SQLite file in a temporary folder)")
    parser.add_argument("--destination", choices=NEEDS, default=DEFAULT, help="where the page is published")
    parser.add_argument("--no-fence", action="store_true", help="leave the destination unguarded, to see the damage")
    parser.add_argument("--json", action="store_true", help="one JSON object a line instead of text")
    say = parser.parse_args()
    try:
        return play(say.store, destination=say.destination, fence=not say.no_fence, json=say.json)
    except TenureError as error:
        sys.stderr.write(f"{error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
