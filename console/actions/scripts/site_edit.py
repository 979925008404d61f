"""Puts new bytes in the place of a site file's old ones: compared, proved, swapped, the old file kept. Runs on hosts.

`site_edit.py PATH OLD NEW KIND [KEY=VALUE...] [-- KEY...]`: sha256 of the file as it must be and as it will be, what
must come out, and the keys that are made of those and may change with them. Whoever looks finds the old file or the new
one, whole, also when this is killed at any moment. Exit 0: done, or so already; 1: refused; 5: cannot.

An editor that renames another file into place in the moment between the last comparison and the rename is not seen; one
that writes into the old file is. Written for python 3.8 and for one without most of its library.
"""

from __future__ import annotations

import binascii
import errno
import fcntl
import hashlib
import os
import pwd
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator

MOST_BYTES = 1 << 20
NOTHING = "nothing was changed"
SHELL_LIMIT = 10.0
"""Seconds for one reading of the file by bash."""
LOCK_LIMIT = 5.0
"""Seconds to wait for another edit in the same folder."""
ENDINGS = {signal.SIGTERM, signal.SIGHUP, signal.SIGINT}


class Refused(Exception):
    """Why there is no edit, for people; `code` is 1, or 5 where it cannot be done at all."""

    def __init__(self, words: str, code: int = 1) -> None:
        super().__init__(words)
        self.code = code


def main(arguments: list[str], new_text: str, prove: str) -> int:
    """The exit status; `new_text` is the whole new file in base64, `prove` the script that bash runs on a file."""
    split = arguments.index("--") if "--" in arguments else len(arguments)
    path, old_hash, new_hash, kind = arguments[:4]
    wanted = dict(word.encode("utf-8", "surrogateescape").split(b"=", 1) for word in arguments[4:split])
    follows = {word.encode() for word in arguments[split + 1 :]}
    try:
        new = binascii.a2b_base64(new_text)
        if digest(new) != new_hash:
            raise Refused("the new text was damaged on its way here")
        with_link = os.path.abspath(os.path.expanduser(path))
        target = os.path.realpath(with_link)
        edit = Edit(target, (old_hash, new_hash), new, Proof(kind, prove, wanted, follows))
        words = edit.run()
    except Refused as refused:
        print(refused, file=sys.stderr)
        return refused.code
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        what = "the disk is full" if full else error.strerror
        print(f"{error.filename or path}: {what}: {NOTHING}", file=sys.stderr)
        return 5
    link = "" if target == with_link else f"{with_link} is a link; edited: {target}; "
    print(link + words)
    return 0


def digest(data: bytes) -> str:
    """sha256 in hex."""
    return hashlib.sha256(data).hexdigest()


class Proof:
    """What must come out of the edit and of nothing else."""

    def __init__(self, kind: str, script: str, wanted: dict[bytes, bytes], follows: Iterable[bytes]) -> None:
        self.kind, self.script, self.wanted, self.follows = kind, script, wanted, set(follows)
        self.before: dict[bytes, bytes] = {}
        self.unsteady: set[bytes] = set()
        """Keys that differ from one reading of the same file to the next: a time, a random word."""

    def begin(self, target: str) -> None:
        """See what the old file sets."""
        if self.kind == "bash":
            self.before, again = self.seen(target), self.seen(target)
            self.unsteady = {key for key in {**self.before, **again} if self.before.get(key) != again.get(key)}

    def seen(self, path: str) -> dict[bytes, bytes]:
        """What bash has after it has read a file, in a clean environment. Raises Refused."""
        here = {key: os.environ[key] for key in ("HOME", "USER", "LOGNAME") if key in os.environ}
        clean = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", **here}
        command = ["bash", "--norc", "--noprofile", "-c", self.script, "laneswap", path]
        try:
            child = subprocess.Popen(  # noqa: S603
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                env=clean,
                cwd=os.path.dirname(path),
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise Refused("no bash here: what the edit would come to cannot be proved", 5) from error
        try:
            out = child.communicate(timeout=SHELL_LIMIT)[0]
        except subprocess.TimeoutExpired as error:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
            raise Refused(f"bash does not get to the end of {path} within {SHELL_LIMIT:.0f} s") from error
        words = out.split(b"\0")
        if words[-3:] != [b"", b"end", b""]:
            raise Refused(f"bash does not get to the end of {path}")
        return dict(zip(words[:-3:2], words[1:-3:2]))  # noqa: B905

    def surprises(self, path: str, target: str) -> list[str]:
        """Names of what the file at `path` sets otherwise than wanted; at `target` it stands, or will."""
        if self.kind != "bash":
            return []
        own, other = os.path.basename(target).encode(), os.path.basename(path).encode()
        after = {key: value.replace(other, own) for key, value in self.seen(path).items()}
        names = []
        for key in sorted({*self.before, *after, *self.wanted}):
            now = after.get(key)
            if key in self.wanted:
                wrong = now is None or (now[:-1] if now.endswith(b"\r") else now) != self.wanted[key]
            else:
                wrong = now != self.before.get(key) and key not in self.follows and key not in self.unsteady
            if wrong:
                names.append(key.decode("utf-8", "replace"))
        return names


def lines_beside(old: bytes, new: bytes, wanted: dict[bytes, bytes]) -> Iterator[str]:
    """Lines that differ and should not, in a file that is read line by line (`docker --env-file`)."""
    before, after = old.split(b"\n"), new.split(b"\n")
    if len(before) != len(after):
        yield "the number of lines"
    for number, (was, now) in enumerate(zip(before, after), 1):  # noqa: B905
        name, _, value = now[: -1 if now.endswith(b"\r") else None].partition(b"=")
        key = name.lstrip().replace(b"\xef\xbb\xbf", b"")
        if was != now and (name != was.partition(b"=")[0] or wanted.get(key) != value):
            yield f"line {number}"


class Edit:
    """One file, from the look at it to the proof of what became of it."""

    def __init__(self, target: str, hashes: tuple[str, str], new: bytes, proof: Proof) -> None:
        self.target, self.new, self.proof = target, new, proof
        self.old_hash, self.new_hash = hashes
        self.folder, self.base = os.path.split(target)

    def run(self) -> str:
        """Words for what was done. Raises Refused and OSError; then the file is as it was."""
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            self.lock(folder)
            file = os.open(self.target, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
            try:
                return self.carry_out(folder, file)
            finally:
                os.close(file)
        finally:
            os.close(folder)

    def lock(self, folder: int) -> None:
        """Keep other edits of ours out of the folder; what a killed one left is removed."""
        end = time.monotonic() + LOCK_LIMIT
        while True:
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > end:
                    raise Refused(f"another edit is under way in {self.folder}") from error
                time.sleep(0.05)
            except OSError:  # a file system without locks: the comparison before the rename is what there is
                return
        for name in os.listdir(self.folder):
            if name.startswith(f".{self.base}.laneswap-") and name.endswith(".tmp"):
                os.unlink(os.path.join(self.folder, name))

    def carry_out(self, folder: int, file: int) -> str:
        """Compare, prove beside, keep, swap, prove in place."""
        info, old = self.read(file)
        if digest(old) == self.new_hash:
            return f"{self.target} is so already"
        self.compare(old)
        if self.proof.kind != "bash":
            self.no_surprise(lines_beside(old, self.new, self.proof.wanted))
        self.proof.begin(self.target)
        made = self.beside(f".{self.base}.laneswap-{os.getpid()}.tmp", self.new, file, info)
        backup = ""
        held = signal.pthread_sigmask(signal.SIG_BLOCK, set())
        try:
            self.no_surprise(self.proof.surprises(made, self.target))
            backup = self.keep(old, file, info)
            os.fsync(folder)
            signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)  # none of them between the swap and its proof
            self.still_there(file)
            os.rename(made, self.target)
        except BaseException:
            for name in (made, backup):
                if name:
                    os.unlink(name)
            signal.pthread_sigmask(signal.SIG_SETMASK, held)
            raise
        try:
            os.fsync(folder)
            self.check_in_place(folder, file, backup)
        except OSError as error:
            words = f"{self.target} is the new one, unproved ({error.strerror}); the old one is {backup}"
            raise Refused(words, 5) from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)
        keys = b", ".join(sorted(self.proof.wanted)).decode()
        return f"{self.target}: {keys} set; before: {os.path.basename(backup)}"

    def read(self, file: int) -> tuple[os.stat_result, bytes]:
        info = os.fstat(file)
        if not stat.S_ISREG(info.st_mode):
            raise Refused(f"{self.target} is no plain file")
        data = os.pread(file, MOST_BYTES + 1, 0)
        if len(data) > MOST_BYTES:
            raise Refused(f"{self.target} is larger than {MOST_BYTES >> 20} MiB")
        return info, data

    def compare(self, data: bytes) -> None:
        if digest(data) != self.old_hash:
            found, shown = digest(data)[:12], self.old_hash[:12]
            raise Refused(f"{self.target} is not the file that this edit was made for: {found}, not {shown}; {NOTHING}")

    def no_surprise(self, names: Iterable[str]) -> None:
        found = list(names)
        if found:
            raise Refused("the edit would change more than it should: {}: {}".format(", ".join(found), NOTHING))

    def beside(self, name: str, data: bytes, like: int, info: os.stat_result) -> str:
        """A file in the same folder with the same owner, mode and attributes, on the disk. Raises FileExistsError."""
        path = os.path.join(self.folder, name)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            self.alike(fd, like, info)
            left = data
            while left:
                left = left[os.write(fd, left) :]
            os.fsync(fd)
        except BaseException:
            os.unlink(path)
            raise
        finally:
            os.close(fd)
        return path

    def alike(self, fd: int, like: int, info: os.stat_result) -> None:
        made = os.fstat(fd)
        if (made.st_uid, made.st_gid) != (info.st_uid, info.st_gid):
            try:
                os.fchown(fd, info.st_uid, info.st_gid)
            except OSError as error:
                owner = f"{user(info.st_uid)} (group {info.st_gid})"
                words = f"{self.target} belongs to {owner}, which {user(os.geteuid())} cannot keep: {NOTHING}"
                raise Refused(words) from error
        os.fchmod(fd, stat.S_IMODE(info.st_mode))
        for name in attributes(like):
            try:
                os.setxattr(fd, name, os.getxattr(like, name))
            except OSError as error:
                if not name.startswith("security."):  # the folder's own label, which a plain user cannot set
                    raise Refused(f"{self.target}: {name} cannot be kept: {NOTHING}") from error

    def keep(self, old: bytes, like: int, info: os.stat_result) -> str:
        """The backup, with the old file's own times."""
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        for number in range(1, 100):
            name = "{}.{}{}.bak".format(self.base, stamp, "" if number == 1 else f"-{number}")
            try:
                path = self.beside(name, old, like, info)
            except FileExistsError:
                continue
            os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
            return path
        raise Refused(f"{self.base}.{stamp}.bak and 98 more are there already")

    def still_there(self, file: int) -> None:
        """Compare once more, the name as well as the bytes, right before the swap."""
        named, opened = os.lstat(self.target), os.fstat(file)
        if (named.st_dev, named.st_ino) != (opened.st_dev, opened.st_ino):
            raise Refused(f"{self.target} was replaced while this edit was made ready: {NOTHING}")
        self.compare(self.read(file)[1])

    def check_in_place(self, folder: int, file: int, backup: str) -> None:
        """The proof after the swap; where it fails, the old file is put back and Refused raised."""
        late = self.read(file)[1]
        if digest(late) != self.old_hash:  # somebody wrote into the old file in that very moment: theirs stands
            info = os.fstat(file)
            theirs = self.beside(f".{self.base}.laneswap-{os.getpid()}.tmp", late, file, info)
            self.put_back(folder, theirs)
            raise Refused(f"{self.target} was written to while it was swapped: that edit stands")
        try:
            names = self.proof.surprises(self.target, self.target)
        except Refused as refused:
            self.put_back(folder, backup)
            raise Refused(f"{refused}: the old file was put back") from refused
        if names:
            self.put_back(folder, backup)
            raise Refused(
                "the edit changed more than it should: {}: the old file was put back".format(", ".join(names))
            )

    def put_back(self, folder: int, backup: str) -> None:
        """Undo the swap, unless somebody has edited the file since. Takes no room on the disk."""
        with open(self.target, "rb") as present:
            if digest(present.read()) != self.new_hash:
                raise Refused(f"{self.target} was edited since and stays; the old one is {backup}")
        os.rename(backup, self.target)
        os.fsync(folder)


def attributes(file: int) -> list[str]:
    """Names of extended attributes: an access control list, a label."""
    try:
        return os.listxattr(file)
    except OSError:  # the file system has none
        return []


def user(uid: int) -> str:
    """An account's name, or its number."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
