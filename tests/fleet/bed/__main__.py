"""`python3 -m bed install|base|serve 2|3|4|sweep|clean`: real hosts from the command line."""

from __future__ import annotations

import json
import signal
import sys
from types import FrameType
from typing import Any

from bed import install, rootfs, session
from bed.system import BedError


def serve(count: int) -> None:
    """Bring hosts up, print one JSON line that describes them, tear down when standard input ends or a signal comes.

    A line `restart NAME` starts a host again that has ended itself, and is answered by one JSON line.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    install.check_machine()
    with session.bed(count) as running:
        print(json.dumps(running.description), flush=True)
        for request in sys.stdin:
            print(json.dumps(_answer(running, request.split())), flush=True)


def _answer(running: session.Running, request: list[str]) -> dict[str, Any]:
    match request:
        case ["restart", name] if name in {one.name for one in running.record.hosts}:
            try:
                return running.restart(name)
            except BedError as error:
                return {"error": str(error)}
    return {"error": f"cannot do {' '.join(request)!r}"}


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def main(arguments: list[str]) -> int:
    """Exit code 0, 1 when the bed could not do it, 2 for wrong usage."""
    try:
        match arguments:
            case ["install"]:
                install.install()
            case ["base"]:
                install.check_machine()
                rootfs.ensure()
            case ["serve", ("2" | "3" | "4") as count]:
                serve(int(count))
            case ["sweep"]:
                session.sweep()
            case ["clean"]:
                session.remove_all()
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    except BedError as error:
        print(f"bed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
