"""A `docker` for tests: containers are files of a folder, what runs in them are real processes of this machine.

`FAKE_DOCKER` names the folder. One file `NAME.json` a container: `id`, `name`, `image`, `restart`, `auto_remove`, `cmd`
(what it runs), `log`; while it runs `pid` and `born`. Words that the real one prints are kept where scripts read them.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HOME = Path(os.environ["FAKE_DOCKER"])


def born(pid: int) -> str:
    """Start time and state of a process; '' when it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


class Box:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.data: dict[str, Any] = json.loads(path.read_text())

    def save(self) -> None:
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(self.data))
        new.rename(self.path)

    @property
    def alive(self) -> bool:
        return bool(self.data.get("born")) and born(self.data["pid"]) == self.data["born"]

    @property
    def status(self) -> str:
        said: str = self.data.get("status", "created")
        return "exited" if said in ("running", "paused") and not self.alive else said

    def inspect(self) -> dict[str, Any]:
        policy, _, most = self.data.get("restart", "no").partition(":")
        return {
            "Id": self.data["id"],
            "Name": "/" + self.data["name"],
            "Image": self.data.get("image", "sha256:" + "0" * 64),
            "RestartCount": self.data.get("restarts", 0),
            "State": {
                "Status": self.status,
                "Pid": self.data["pid"] if self.alive else 0,
                "ExitCode": self.data.get("code", 0),
                "OOMKilled": self.data.get("oom", False),
                "StartedAt": self.data.get("started", "0001-01-01T00:00:00Z"),
            },
            "HostConfig": {
                "RestartPolicy": {"Name": policy, "MaximumRetryCount": int(most or 0)},
                "AutoRemove": self.data.get("auto_remove", False),
            },
        }


def boxes() -> list[Box]:
    return [Box(path) for path in sorted(HOME.glob("*.json"))]


def find(word: str) -> Box:
    for box in boxes():
        if word == box.data["name"] or box.data["id"].startswith(word):
            return box
    print(f"Error: No such container: {word}", file=sys.stderr)
    raise SystemExit(1)


def template(text: str, data: Any) -> str:
    def value(match: re.Match[str]) -> str:
        found = data
        for key in match[1].split("."):
            found = found[key]
        return {True: "true", False: "false"}.get(found, str(found)) if isinstance(found, bool) else str(found)

    return re.sub(r"\{\{\.([A-Za-z.]+)\}\}", value, text)


def start(box: Box) -> None:
    if box.data.get("fails"):
        print(f"Error response from daemon: {box.data['fails']}", file=sys.stderr)
        raise SystemExit(1)
    log = open(box.path.with_suffix(".log"), "ab")
    child = subprocess.Popen(
        box.data["cmd"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/"
    )
    box.data |= {"pid": child.pid, "born": born(child.pid), "status": "running", "started": str(time.time_ns())}
    box.data |= {"starts": box.data.get("starts", 0) + 1, "restarts": 0}
    box.save()


def stop(box: Box, grace: float) -> None:
    if box.status not in ("running", "paused"):
        return
    if box.status == "paused":
        print("Error response from daemon: container is paused", file=sys.stderr)
        raise SystemExit(1)
    pid, code = box.data["pid"], 0
    os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + grace
    while box.alive and time.monotonic() < end:
        time.sleep(0.02)
    if box.alive:
        os.kill(pid, signal.SIGKILL)
        code = 137
    if not box.data.get("undying"):
        while box.alive:
            time.sleep(0.02)
    box.data |= {"status": "exited", "code": code}
    box.save()
    if box.data.get("auto_remove"):
        box.path.unlink()


def main(words: list[str]) -> None:
    with (HOME / "calls").open("a") as calls:
        calls.write(json.dumps(words) + "\n")
    while words and words[0] == "-H":
        words = words[2:]
    if (HOME / "down").exists():
        print("Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", file=sys.stderr)
        raise SystemExit(1)
    verb, *rest = words
    if verb == "inspect":
        form = rest[rest.index("--format") + 1] if "--format" in rest else ""
        data = find(rest[-1]).inspect()
        print(template(form, data) if form else json.dumps([data]))
    elif verb == "top":
        box = find(rest[0])
        if not box.alive:
            print(f"Error response from daemon: container {rest[0]} is not running", file=sys.stderr)
            raise SystemExit(1)
        print("PID\n" + str(box.data["pid"]))
        for pid in box.data.get("also", []):
            print(pid)
    elif verb == "start":
        box = find(rest[-1])
        if box.status not in ("running", "paused"):
            start(box)
        print(rest[-1])
    elif verb == "stop":
        stop(find(rest[-1]), float(rest[rest.index("-t") + 1]))
        print(rest[-1])
    elif verb == "unpause":
        box = find(rest[-1])
        box.data["status"] = "running"
        box.save()
    elif verb == "update":
        box = find(rest[-1])
        box.data["restart"] = rest[rest.index("--restart") + 1]
        box.save()
    elif verb == "rename":
        rename(find(rest[0]), rest[1])
    elif verb == "logs":
        log = find(rest[-1]).path.with_suffix(".log")
        sys.stdout.write(log.read_text() if log.exists() else "")
    elif verb == "rm":
        box = find(rest[-1])
        if box.alive:
            os.kill(box.data["pid"], signal.SIGKILL)
        box.path.unlink()
    else:
        raise SystemExit(f"fake docker: {words}")


def rename(box: Box, name: str) -> None:
    for other in boxes():
        if other.data["name"] == name:
            print(
                f'Error response from daemon: Conflict. The container name "/{name}" is already in use by container '
                f'"{other.data["id"]}".',
                file=sys.stderr,
            )
            raise SystemExit(1)
    box.data["name"] = name
    box.save()


if __name__ == "__main__":
    main(sys.argv[1:])
