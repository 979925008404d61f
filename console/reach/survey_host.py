"""What a host is asked to look at: folders, files, processes, units. Python 3.6 or newer, standard library only.

The console runs it for its own machine; to a host it is sent as a part of the sampler's script (`sampler.py`). The
answers are described in `console/readings/look.py`. Processes, and units with what the kernel holds of their memory.
"""

# ruff: noqa: UP031 (percent formats as in sampler_host.py)
import os
import select
import signal
import time

from console.reach.files_host import MOST_ANSWER, NAMES, ROOT, content, file, paths, problem, sound, tree

MOST_PROCESSES = 500
MOST_COMMAND = 4096
TICKS = os.sysconf("SC_CLK_TCK")
UNITS_LIMIT = 15.0
"""Seconds for systemctl; its own limit for a bus that does not answer is 25."""
PROPERTIES = (
    "Id,LoadState,ActiveState,SubState,Result,MainPID,ExecMainCode,ExecMainStatus,StateChangeTimestamp,Description,"
    "ControlGroup,MemoryMax,MemoryCurrent,MemoryPeak,NextElapseUSecRealtime,"
    "LastTriggerUSec,TimersCalendar"
)
V2_FILES = ("cgroup.controllers", "memory.max", "memory.current", "memory.peak", "memory.events")
V1_FILES = ("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.max_usage_in_bytes", "memory.oom_control")


def processes(parts: "list[str]", skip: "tuple[int, ...]" = ()) -> str:
    """Rows of the processes whose command line holds a part, or whose number is N for `pid:N`; never this one."""
    numbers = [part[4:] for part in parts if part[:4] == "pid:" and part[4:].isdigit()]
    words = [os.fsencode(part) for part in parts if part and part[:4] != "pid:"]
    hidden = set() if ROOT else set(map(str, (os.getpid(), *skip)))
    rows = []
    try:
        boot = booted()
        known = [name for name in os.listdir(ROOT + "/proc") if name.isdigit()] if words else []
        for pid in dict.fromkeys(numbers + sorted(known, key=int)):
            command = command_of(pid)
            if pid not in hidden and (pid in numbers or any(word in command for word in words)):
                rows += process(pid, command, boot)
    except OSError as error:
        return sound(problem(error))
    more = " truncated=1" if len(rows) > MOST_PROCESSES else ""
    if words and not ROOT and hides_others():
        more += " hidden=1"
    first = "ok clock=%d boot=%d%s" % (TICKS, boot, more)
    return sound("\n".join([first, *rows[:MOST_PROCESSES]]) + "\n")


def booted() -> int:
    """Unix seconds at which the host was started. Raises OSError."""
    for row in content("/proc/stat", 1048576).splitlines():
        if row[:6] == "btime ":
            return int(row[6:])
    raise OSError(0, "/proc/stat says no btime")


def hides_others() -> bool:
    """Whether /proc is mounted so that other users' processes are not to be seen (hidepid)."""
    try:
        content("/proc/1/cmdline", 1)
    except OSError:
        return True
    return False


def command_of(pid: str) -> bytes:
    """The command line; nothing for a thread of the kernel, a zombie, and what is gone."""
    try:
        fd = os.open(ROOT + "/proc/" + pid + "/cmdline", os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(fd, MOST_COMMAND).rstrip(b"\0").replace(b"\0", b" ")
    except OSError:
        return b""
    finally:
        os.close(fd)


def process(pid: str, command: bytes, boot: int) -> "list[str]":
    """One row, or none if it is gone."""
    folder = "/proc/" + pid
    try:
        before, _, after = content(folder + "/stat", MOST_COMMAND).rpartition(")")
        fields = after.split()
        uid = os.stat(ROOT + folder).st_uid
        started = boot + int(fields[19]) / TICKS
    except (OSError, IndexError, ValueError):
        return []
    if not command:
        command = os.fsencode("[%s]%s" % (before.partition("(")[2], " <defunct>" if fields[0] == "Z" else ""))
    done = {"rchar": "-", "wchar": "-"}
    try:
        done.update(row.split(": ", 1) for row in content(folder + "/io", MOST_COMMAND).splitlines())  # type: ignore[misc]
    except (OSError, ValueError):
        pass  # another user's
    return ["%s\t%s\t%s\t%.2f\t%d\t%s\t%s\t%s" % (
        pid, fields[1], fields[0], started, uid, done["rchar"], done["wchar"], os.fsdecode(command).translate(NAMES),
    )]  # fmt: skip


def units(manager: str, names: "list[str]") -> str:
    """What `systemctl show` says of the units, and what their memory groups hold."""
    path = program("systemctl")
    if not path or not names:
        return "error no systemctl" if names else "error no unit is named"
    arguments = ["systemctl", "--no-pager", "show", "-p", PROPERTIES, "--", *names]
    environment = dict(os.environ, LC_ALL="C", TZ="UTC", SYSTEMD_COLORS="0")
    if manager == "user":
        arguments.insert(1, "--user")
        environment.setdefault("XDG_RUNTIME_DIR", "/run/user/%d" % os.getuid())
    try:
        code, out, err = run(path, arguments, environment, UNITS_LIMIT)
    except OSError as error:
        return sound(problem(error))
    if code is None:
        return "error systemctl has not answered for %d s" % UNITS_LIMIT
    rows = ["ok code=%d" % code, *out.split("\n")]
    name = group = ""
    for row in [*out.split("\n"), ""]:
        key, _, value = row.partition("=")
        name, group = (value if key == "Id" else name), (value if key == "ControlGroup" else group)
        if not row:
            rows += memory_of(name, group)
            name = group = ""
    return sound("\n".join(rows + ["! " + row for row in err.strip().split("\n") if row]) + "\n")


def memory_of(name: str, group: str) -> "list[str]":
    """Rows `@UNIT/FILE=VALUE`; none for a unit without a group."""
    if not name or not group.strip("/") or ".." in group.split("/"):
        return []
    version = "2" if os.access(ROOT + "/sys/fs/cgroup/cgroup.controllers", os.R_OK) else "1"
    folder = "/sys/fs/cgroup" + ("" if version == "2" else "/memory") + group + "/"
    rows = ["@%s/cgroup.version=%s" % (name, version)]
    for file_name in V2_FILES if version == "2" else V1_FILES:
        try:
            text = content(folder + file_name, MOST_COMMAND).strip()
        except OSError:
            continue
        rows.append("@%s/%s=%s" % (name, file_name, text.translate(NAMES)))
    return rows


def program(name: str) -> str:
    """Where it is on PATH; below a ROOT only what is there as well. Empty if it is not."""
    for folder in [*os.environ.get("PATH", "").split(os.pathsep), "/usr/bin", "/bin"]:
        path = os.path.join(folder or ".", name)
        if path.startswith(ROOT) and os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    return ""


def run(
    path: str, arguments: "list[str]", environment: "dict[str, str]", limit: float
) -> "tuple[int | None, str, str]":
    """Exit code and both outputs; no code if it had to be ended after `limit` seconds. Raises OSError."""
    end = time.monotonic() + limit
    (out, out_end), (err, err_end) = os.pipe(), os.pipe()
    texts = {out: b"", err: b""}
    pid = 0
    try:
        try:
            pid = spawn(path, arguments, environment, out_end, err_end)
        finally:
            os.close(out_end)
            os.close(err_end)
        waiting = select.poll()  # select cannot watch the numbers of a process with many files
        for fd in texts:
            waiting.register(fd, select.POLLIN)
        opened = len(texts)
        while opened:
            ready = waiting.poll(max(0.0, end - time.monotonic()) * 1000)
            if not ready:
                return None, "", ""
            for fd, _ in ready:
                chunk = os.read(fd, 65536)
                texts[fd] = (texts[fd] + chunk)[:MOST_ANSWER]
                if not chunk:
                    waiting.unregister(fd)
                    opened -= 1
        status = os.waitpid(pid, 0)[1]
        pid = 0
        code = 128 + (status & 127) if status & 127 else status >> 8
        return code, os.fsdecode(texts[out]), os.fsdecode(texts[err])
    finally:
        if pid:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(out)
        os.close(err)


def spawn(path: str, arguments: "list[str]", environment: "dict[str, str]", out: int, err: int) -> int:
    """Start a program, in a way that is safe beside threads where python is new enough. Raises OSError."""
    if hasattr(os, "posix_spawn"):
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, out, 1),
            (os.POSIX_SPAWN_DUP2, err, 2),
        ]
        return os.posix_spawn(path, arguments, environment, file_actions=actions, setsigdef=[signal.SIGPIPE])
    pid = os.fork()
    if pid == 0:
        try:
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(out, 1)
            os.dup2(err, 2)
            os.execve(path, arguments, environment)  # noqa: S606
        finally:
            os._exit(127)
    return pid


def answer(kind: str, arguments: "list[str]", skip: "tuple[int, ...]" = ()) -> str:
    """The answer to one look. Never raises for what it finds."""
    try:
        if kind == "tree":
            root, depth, most = arguments
            text = tree(root, int(depth), int(most))
        elif kind == "file":
            path, where, count, *below = arguments
            text = file(path, where, int(count), *below)
        elif kind == "paths":
            text = paths(arguments)
        elif kind == "processes":
            text = processes(arguments, skip)
        elif kind == "units":
            text = units(arguments[0], arguments[1:])
        else:
            text = "error cannot look at " + kind
    except (ValueError, IndexError, TypeError):
        text = "error cannot look at %s of %s" % (kind, " ".join(arguments))
    size = len(text.encode("utf-8", "replace"))
    if size > MOST_ANSWER:
        return "error the answer has %d KiB, more than %d" % (size >> 10, MOST_ANSWER >> 10)
    return text
