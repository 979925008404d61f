"""One small file of a host, read once: by path, whole, and nothing else is done there."""

from __future__ import annotations

from console.reach.link import Link
from console.sanitize import line

_MISSING, _UNREADABLE = 66, 67
"""Exit codes of the script; those of sh and of a missing program are others."""
_SCRIPT = f"""\
p=$1; case $p in "~/"*) p=$HOME/${{p#"~/"}} ;; esac
[ -e "$p" ] || exit {_MISSING}
[ -f "$p" ] && [ -r "$p" ] || exit {_UNREADABLE}
exec head -c "$2" <"$p"
"""
_WHY = {
    _MISSING: "no such file on that host",
    _UNREADABLE: "no regular file that can be read on that host",
}


class FileUnread(Exception):
    """Why a file of a host could not be read, safe words."""

    def __init__(self, words: str, *, unknown: bool = False) -> None:
        super().__init__(words)
        self.unknown = unknown
        """The host did not say: whether the file is there is not known."""


async def read_file(link: Link, path: str, *, most: int, limit: float) -> bytes:
    """At most `most` bytes from the file's beginning within `limit` seconds; bytes that are no UTF-8 are replaced.

    The path may begin with `~/`. Raises FileUnread.
    """
    answer = await link.run(["sh", "-s", "--", path, str(most)], stdin=_SCRIPT, limit=limit)
    if answer.ok:
        return answer.stdout.encode("utf-8", "replace")
    if why := _WHY.get(answer.exit_status or 0):
        raise FileUnread(why)
    words = answer.hint or answer.stderr
    raise FileUnread(line(f"{answer.outcome.value}{f': {words}' if words else ''}", 400), unknown=True)
