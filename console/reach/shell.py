"""What a remote login shell gets: one word it cannot misread; the script itself travels on stdin to /bin/sh."""

from __future__ import annotations

import math
from collections.abc import Sequence

from console.readings.output import FramedCommand, frame_command

GRACE = 2.0
"""Seconds after our own limit at which the host ends the program by itself, should the connection be gone."""

_GUARD = """\
t=$1; shift
command -v timeout >/dev/null 2>&1 && set -- timeout "$t" "$@"
exec 4<&0
"$@" <&4 3<&- 4<&- &
c=$!
exec 4<&-
(read -r l <&3; kill -TERM $c) >/dev/null 2>&1 &
w=$!
exec 3<&-
wait $c; r=$?
kill $w 2>/dev/null
exit $r"""
"""Runs the program with a time limit, and ends it when descriptor 3, the channel's stdin, ends."""


def guarded(argv: Sequence[str], *, stdin: str = "", limit: float = 10.0) -> FramedCommand:
    """`argv` between markers, ended by TERM when the channel closes, and `GRACE` after `limit` seconds anyway.

    The channel's stdin must stay open while the program runs. Raises ValueError for a NUL or an empty command.
    """
    if not argv:
        raise ValueError("a command needs at least one word")
    seconds = str(math.ceil(limit + GRACE))
    framed = frame_command(["/bin/sh", "-c", _GUARD, "laneswap", seconds, *argv], stdin=stdin)
    return FramedCommand(framed.line, "exec 3<&0\n" + framed.script, framed.nonce)
