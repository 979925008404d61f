"""What a container's command line says: engine, port, model path, served name. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from console.readings.throughput import EngineKind

MAX_WORDS = 4096
"""Words of a command line that are looked at."""

DEFAULT_PORTS = {EngineKind.SGLANG: 30000, EngineKind.VLLM: 8000, EngineKind.LLAMACPP: 8080}
"""Ports that the engines listen on without `--port` (their own command-line help)."""

MODEL_FLAGS = ("--model-path", "--model", "-m")
NAME_FLAGS = ("--served-model-name", "--alias", "-a")

_ENGINE_MARKS = (
    (EngineKind.SGLANG, re.compile(r"sglang|(?<![a-z])sgl(?![a-z])")),
    (EngineKind.VLLM, re.compile(r"vllm")),
    (EngineKind.LLAMACPP, re.compile(r"llama[-_.]?cpp|llama-server")),
)


def words(argv: Sequence[str]) -> tuple[str, ...]:
    """The words of a command; one that hides a whole command (`sh -c "vllm serve ..."`) is split as a shell would."""
    found: list[str] = []
    for word in argv[:MAX_WORDS]:
        found.extend(_split(word) if re.search(r"\s-{1,2}[A-Za-z]", word) else (word,))
    return tuple(found[:MAX_WORDS])


def _split(command: str) -> Sequence[str]:
    if command.lstrip().startswith(("{", "[")):
        return (command,)
    try:
        return shlex.split(command)
    except ValueError:  # an open quote: better whole words than none
        return command.split()


def flag(argv: Sequence[str], *names: str) -> str | None:
    """The value of the last of `names`, as `--flag value` or `--flag=value`; `_` counts as `-`. None if absent."""
    value: str | None = None
    for index, word in enumerate(argv):
        name, equals, rest = word.partition("=")
        if _canonical(name) not in names:
            continue
        if equals:
            value = rest
        elif index + 1 < len(argv) and not argv[index + 1].startswith("--"):
            value = argv[index + 1]
    return value


def _canonical(name: str) -> str:
    return name.replace("_", "-") if name.startswith("--") else name


_SECRET_FLAG = re.compile(r"^--?(?:[a-z0-9-]+-)?(?:api-key|key|password|passwd|secret|token)$")


def without_secrets(argv: Sequence[str]) -> tuple[str, ...]:
    """The same words with the values of `--api-key` and its kind hidden."""
    shown: list[str] = []
    hide = False
    for word in argv:
        name, equals, _ = word.partition("=")
        secret = _SECRET_FLAG.match(_canonical(name).lower()) is not None
        shown.append("***" if hide and not secret else f"{name}=***" if secret and equals else word)
        hide = secret and not equals
    return tuple(shown)


_SECRET_NAME = re.compile(
    r"(?:^|_)[a-z0-9]*(?:keys?|tokens?|secrets?|passw(?:or)?ds?|passphrase|credentials?|authorization|auth)(?:_|$)",
    re.IGNORECASE,
)
_TOKEN_COUNT = re.compile(r"_tokens$", re.IGNORECASE)
_URL_PASSWORD = re.compile(r"(?<=://)[^/@\s:]{0,300}:[^/@\s]{1,1000}@")
_FLAG_IN_VALUE = re.compile(r"(?<!\S)(--?(?:[a-z0-9]+[-_]){0,4}(?:key|password|passwd|secret|token))(?:=|\s+)\S+", re.I)


def without_secret(name: str, value: str) -> str:
    """The value of an environment variable, `***` where its name is that of a key, token, secret or password.

    A number of tokens is none (`MAX_NUM_TOKENS=8192`). In other values the password of a URL and what follows
    `--api-key` and its kind are hidden.
    """
    counts = _TOKEN_COUNT.search(name) and value.isascii() and value.isdigit()
    if value and not counts and _SECRET_NAME.search(name.replace("-", "_")):
        return "***"
    return _FLAG_IN_VALUE.sub(r"\1 ***", _URL_PASSWORD.sub("***@", value))


def engine_kind(image: str, argv: Sequence[str]) -> EngineKind:
    """A guess at the engine from the command, else from the image's name; UNKNOWN where neither names one."""
    command = " ".join(argv[:8]).lower()
    for text in (command, image.lower()):
        for kind, mark in _ENGINE_MARKS:
            if mark.search(text):
                return kind
    return EngineKind.UNKNOWN


def model_argument(argv: Sequence[str], kind: EngineKind) -> tuple[str, str]:
    """The model that the command names and its flag: ('/model', '--model'); ('', '') if it names none."""
    for name in MODEL_FLAGS:
        if value := flag(argv, name):
            return value, name
    if kind is EngineKind.VLLM and "serve" in argv[:8]:
        after = argv[argv.index("serve") + 1 :]
        if after and not after[0].startswith("-"):
            return after[0], "serve"
    return "", ""


def served_name(argv: Sequence[str]) -> str:
    """The first name that clients ask for; '' where the command leaves it to the engine's default."""
    return next((value for name in NAME_FLAGS if (value := flag(argv, name))), "")


def listen_ports(argv: Sequence[str], kind: EngineKind) -> tuple[int, ...]:
    """The port listened on: `--port`, a numeric `-p`, else the engine's default; () if nothing is known."""
    for name in ("--port", "-p"):
        if (value := flag(argv, name)) is not None and (port := port_number(value)):
            return (port,)
    default = DEFAULT_PORTS.get(kind)
    return (default,) if default and "--headless" not in argv else ()


def port_number(value: object) -> int | None:
    """A TCP port out of untrusted text or number; None if it is none."""
    text = str(value)
    if not re.fullmatch(r"[0-9]{1,5}", text):
        return None
    number = int(text)
    return number if 0 < number < 65536 else None
