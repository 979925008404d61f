"""`python -m console`, and the `laneswap` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; never returns."""
    from console.cli import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
