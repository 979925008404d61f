"""Folders and files of a host; see survey_host.py. Python 3.6 or newer, standard library only.

Every path is read below LANESWAP_SAMPLER_ROOT, links too. Nothing is written; of a folder only refs are opened.
"""

# ruff: noqa: UP031 (percent formats as in sampler_host.py)
import os

ROOT = os.environ.get("LANESWAP_SAMPLER_ROOT", "")
MOST_FILE = 262144
"""Bytes of one file that are read."""
MOST_ANSWER = 196608
"""Bytes of one answer."""
MOST_LINKS = 40
"""Links that are followed one after another; the kernel's own limit."""
MOST_REF = 100
MOST_SENTINEL = 65536
MOST_COUNTED = 1000
SENTINELS = ("config.json", "model.safetensors.index.json")
"""Files of a checkpoint by whose content another one in its place is told."""
MIB = 1048576
NAMES = {9: "\\t", 10: "\\n", 13: "\\r", 92: "\\\\"}
KINDS = {0o100000: "f", 0o040000: "d", 0o120000: "l"}


class Refused(Exception):
    """It cannot be looked at; says why."""


def problem(error: Exception) -> str:
    """The answer that stands for an error."""
    if isinstance(error, (FileNotFoundError, NotADirectoryError)):
        return "missing"
    if isinstance(error, PermissionError):
        return "denied"
    words = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return "error " + " ".join(words.split())


def sound(text: str) -> str:
    """Text that holds names as the system gave them, without bytes that are no UTF-8."""
    return os.fsencode(text).decode("utf-8", "replace")


def escaped(name: str) -> str:
    """A name that takes one field of one line."""
    return name if name.isprintable() and "\\" not in name else sound(name).translate(NAMES)


def expand(path: str) -> str:
    """The path with `~/` filled in; below ROOT the home folder is there too. Raises Refused."""
    if path == "~" or path[:2] == "~/":
        home = os.environ.get("HOME", "")
        if not home:
            raise Refused("HOME is not set there")
        if ROOT and (home + "/").startswith(ROOT.rstrip("/") + "/"):
            home = home[len(ROOT.rstrip("/")) :]
        path = home + path[1:]
    if path[:1] != "/" or "\0" in path:
        raise Refused("not an absolute path: " + path)
    return path


def content(path: str, most: int) -> str:
    """The beginning of a small file of the system. Raises OSError."""
    fd = os.open(ROOT + path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        data = b""
        while len(data) < most:
            chunk = os.read(fd, most - len(data))
            if not chunk:
                break
            data += chunk
    finally:
        os.close(fd)
    return os.fsdecode(data)


class Paths:
    """Follows links by hand: below a ROOT an absolute one stays there. Remembers what it saw, for one answer."""

    def __init__(self) -> None:
        self.seen = {}  # type: dict[str, os.stat_result]
        self.targets = {}  # type: dict[str, str]

    def look(self, path: str) -> "os.stat_result":
        """lstat, once."""
        info = self.seen.get(path)
        if info is None:
            info = self.seen[path] = os.lstat(ROOT + path)
            if info.st_mode & 0o170000 == 0o120000:
                self.targets[path] = os.readlink(ROOT + path)
        return info

    def real(self, path: str, folder: str = "") -> str:
        """A path without links, also from `folder`, which has none. Raises OSError where it leads nowhere."""
        parts = path.split("/")[::-1]
        done = "" if path[:1] == "/" else folder
        hops = 0
        while parts:
            part = parts.pop()
            if part in ("", "."):
                continue
            if part == "..":
                done = done.rpartition("/")[0]
                continue
            step = done + "/" + part
            if step not in self.seen:
                self.look(step)
            target = self.targets.get(step)
            if target is None:
                done = step
                continue
            hops += 1
            if hops > MOST_LINKS:
                raise FileNotFoundError(0, "links lead in a circle")
            if target[:1] == "/":
                done = ""
            parts.extend(target.split("/")[::-1])
        return done or "/"


def kind_of(info: "os.stat_result") -> str:
    """`f`, `d`, `l`, or `o` for anything else."""
    return KINDS.get(info.st_mode & 0o170000, "o")


class Tree:
    """One listing, nearest folders first."""

    def __init__(self, top: str, paths: Paths, depth: int, most: int) -> None:
        self.top, self.paths, self.depth, self.most = top, paths, depth, most
        self.inside = "/" if top == "/" else top + "/"
        self.ways = {}  # type: dict[tuple[str, str], str]
        self.rows = []  # type: list[str]
        self.size = 0
        self.truncated = False

    def walk(self) -> None:
        """Raises OSError where the root itself cannot be read."""
        folders = [(self.top, "", 1)]
        for folder, prefix, level in folders:
            try:
                names = sorted(os.listdir(ROOT + folder))
            except OSError as error:
                if level == 1:
                    raise
                self.unread(prefix[:-1], error)
                continue
            above = "/" if folder == "/" else folder + "/"
            for name in names:
                if len(self.rows) >= self.most or self.size > MOST_ANSWER - 8192:
                    self.truncated = True
                    return
                try:
                    row, is_folder = self.row(above + name, folder, prefix + name)
                except FileNotFoundError:
                    continue  # it went meanwhile
                except OSError as error:
                    self.unread(prefix + name, error)
                    continue
                self.rows.append(row)
                self.size += len(row) + 1
                if is_folder and level < self.depth:
                    folders.append((above + name, prefix + name + "/", level + 1))

    def unread(self, name: str, error: OSError) -> None:
        """What is there and cannot be read is said, not left out."""
        words = problem(error)
        self.rows.append("# unread\t%s\t%s" % (escaped(name), "no permission" if words == "denied" else words))

    def row(self, path: str, folder: str, name: str) -> "tuple[str, bool]":
        """One entry, and whether it is a folder. Raises OSError."""
        paths = self.paths
        info = paths.seen.get(path) or paths.look(path)
        kind = KINDS.get(info.st_mode & 0o170000, "o")
        row = "%s\t%d\t%d\t%.3f\t%d\t%d\t%d\t%s" % (
            kind, info.st_size, info.st_blocks * 512, info.st_mtime, info.st_dev, info.st_ino, info.st_nlink,
            name if name.isprintable() and "\\" not in name else escaped(name),
        )  # fmt: skip
        if kind == "l":
            row += self.led(paths.targets[path], folder)
        elif kind == "f" and info.st_size <= MOST_REF and "refs/" in name and "refs" in name.split("/")[:-1]:
            try:
                row += "\t%s\t-\t-\t-\t-\t-" % escaped(content(path, MOST_REF))
            except OSError:
                return row, False
        return row, kind == "d"

    def led(self, target: str, folder: str) -> str:
        """Where a link leads: the last six fields of its row."""
        where, figures = "-", "-\t-\t-\t-"
        try:
            real = self.end(target, "" if folder == "/" else folder)
            info = self.paths.seen.get(real) or self.paths.look(real)
            if info.st_mode & 0o170000 == 0o040000:
                where, figures = "dir", "-\t-\t%d\t%d" % (info.st_dev, info.st_ino)
            else:
                where = "in" if real.startswith(self.inside) else "out"
                figures = "%d\t%d\t%d\t%d" % (info.st_size, info.st_blocks * 512, info.st_dev, info.st_ino)
        except (FileNotFoundError, NotADirectoryError):
            where = "gone"
        except OSError:
            where = "-"  # there may be something behind it
        return "\t%s\t%s\t%s" % (escaped(target) or "-", where, figures)

    def end(self, target: str, folder: str) -> str:
        """The real path. All links of a snapshot lead to the same folder: the way there is gone once."""
        before, _, last = target.rpartition("/")
        if before and last not in ("", ".", ".."):
            base = self.ways.get((folder, before))
            if base is None:
                base = self.ways[folder, before] = self.paths.real(before, folder)
            path = ("" if base == "/" else base) + "/" + last
            if path in self.paths.seen and path not in self.paths.targets:
                return path
        return self.paths.real(target, folder)


def mounted(path: str) -> str:
    """` device=D fstype=T mount=PATH` of what holds a path, as mountinfo escapes them; '' if that is not known."""
    try:
        table = content("/proc/self/mountinfo", 1048576)
    except OSError:
        return ""
    found, longest = "", -1
    for line in table.splitlines():
        before, _, after = line.partition(" - ")
        left, right = before.split(" "), after.split(" ")
        if len(left) < 5 or len(right) < 2:
            continue
        point = plain(left[4])
        inside = path == point or path.startswith(point if point == "/" else point + "/")
        if inside and len(point) >= longest:  # the later one lies on top
            longest, found = len(point), sound(" device=%s fstype=%s mount=%s" % (right[1], right[0], left[4]))
    return found


def plain(text: str) -> str:
    r"""A path of mountinfo without its escapes: `\040` is a blank."""
    first, *others = text.split("\\")
    return first + "".join(
        chr(int(part[:3], 8)) + part[3:] if part[:3].isdigit() and "8" not in part[:3] and "9" not in part[:3]
        else "\\" + part
        for part in others
    )  # fmt: skip


def rough(size: int) -> int:
    """Rounded down by a sixty-fourth at most: what others write to the disk must not make each answer a new one."""
    step = max(MIB, 1 << max(0, size.bit_length() - 7))
    return size // step * step


def tree(root: str, depth: int, most: int) -> str:
    """A folder's listing."""
    paths = Paths()
    try:
        top = paths.real(expand(root))
        if top != "/" and kind_of(paths.look(top)) != "d":
            return "error not a folder"
        room = os.statvfs(ROOT + top)
        listing = Tree(top, paths, depth, most)
        listing.walk()
    except (OSError, Refused) as error:
        return sound(problem(error))
    first = "ok free=%d total=%d%s%s" % (
        rough(room.f_bavail * room.f_frsize), room.f_blocks * room.f_frsize, mounted(top),
        " truncated=1" if listing.truncated else "",
    )  # fmt: skip
    return "\n".join([first, "# root\t" + escaped(top), *listing.rows, ""])


def unlinked(path: str, below: str) -> int:
    """A file opened whose way from the folder `below` on has no link: others may write there, and what a link leads to
    is read with the rights of whoever looks. Raises OSError and Refused."""
    parts = path[len(below) :].split("/")[1:]
    if not path.startswith(below + "/") or {"", ".", ".."} & set(parts):
        raise Refused("not below " + below)
    above, _, name = below.rpartition("/")
    way = [name, *parts]
    fd = os.open(ROOT + (Paths().real(above) if above else "/"), os.O_RDONLY | os.O_DIRECTORY)
    for at, part in enumerate(way):
        last = at == len(way) - 1
        kind = os.O_NONBLOCK if last else os.O_DIRECTORY | getattr(os, "O_PATH", 0)
        try:
            inner = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | kind, dir_fd=fd)
        except OSError:
            if kind_of(os.lstat(part, dir_fd=fd)) == "l":
                raise Refused("/".join([above, *way[: at + 1]]) + " is a symbolic link, which is refused") from None
            raise
        finally:
            os.close(fd)
        fd = inner
    return fd


def file(path: str, where: str, most: int, below: str = "") -> str:
    """The first or last bytes of a file; with `below` only where no link leads to it from that folder on. Raises
    nothing for a file that cannot be read."""
    try:
        if below:
            fd = unlinked(expand(path), below)
        else:
            fd = os.open(ROOT + Paths().real(expand(path)), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except (OSError, Refused) as error:
        return sound(problem(error))
    try:
        info = os.fstat(fd)
        if kind_of(info) != "f":
            return "error not a file"
        most = min(most, MOST_FILE)
        offset = max(0, info.st_size - most) if where == "last" else 0
        data = b""
        while len(data) < most:
            chunk = os.pread(fd, most - len(data), offset + len(data))
            if not chunk:
                break
            data += chunk
    except OSError as error:
        return sound(problem(error))
    finally:
        os.close(fd)
    first = "ok size=%d mtime=%.3f inode=%d" % (info.st_size, info.st_mtime, info.st_ino)
    return first + "\n" + data.decode("utf-8", "replace")


def paths(names: "list[str]") -> str:
    """A row for each path: what stands there, and a mark of its content."""
    rows = ["ok"]
    for name in names:
        try:
            fields = path_row(name)
        except (OSError, Refused) as error:
            fields = [problem(error)]
        rows.append("\t".join([escaped(name), *fields]))
    return sound("\n".join(rows) + "\n")


def path_row(name: str) -> "list[str]":
    """The fields behind the path. Raises OSError and Refused."""
    walk = Paths()
    real = walk.real(expand(name))
    info = os.stat(ROOT + real)
    kind, count, size = kind_of(info), "-", "-"
    mark, sentinel = "-", "-"
    if kind == "d":
        inside = []  # type: list[str]
        try:
            inside = os.listdir(ROOT + real)
            count = "%d" % min(len(inside), MOST_COUNTED)
        except PermissionError:
            pass  # what it is can be told all the same
        for sentinel in [one for one in SENTINELS if one in inside][:1] or ["-"]:
            mark = "-" if sentinel == "-" else sentinel_mark(walk, real.rstrip("/") + "/" + sentinel)
    elif kind == "f":
        size, sentinel, mark = "%d" % info.st_size, ".", marked(real, 1024)
    room = os.statvfs(ROOT + real)
    return [
        "ok", escaped(real), kind, "%d" % info.st_dev, "%d" % info.st_ino, size, count, sentinel, mark,
        "%.3f" % info.st_mtime, "%d" % rough(room.f_bavail * room.f_frsize),
    ]  # fmt: skip


def sentinel_mark(walk: Paths, path: str) -> str:
    """The mark of a file that may be a link; `?` for one that leads nowhere. Raises OSError for a lost mount."""
    try:
        return marked(walk.real(path), MOST_SENTINEL)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return "?"


def marked(real: str, most: int) -> str:
    """The sha256 of a file's beginning; `?` for what may not be read or is no file. Raises OSError for a lost mount."""
    try:
        if kind_of(os.stat(ROOT + real)) != "f":
            return "?"
        fd = os.open(ROOT + real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except (PermissionError, FileNotFoundError):
        return "?"
    try:
        return sha256(os.read(fd, most))
    finally:
        os.close(fd)


def sha256(data: bytes) -> str:
    """Hex digits; `?` where python has no such module. hashlib comes last: it brings OpenSSL along, a megabyte."""
    for module in ("_sha256", "_sha2", "hashlib"):
        try:
            return str(__import__(module).sha256(data).hexdigest())
        except ImportError:
            continue
    return "?"
