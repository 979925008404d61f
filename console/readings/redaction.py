"""Secrets in commands and texts become references: what is recorded names the secret and never holds it. Pure.

A reference is `secret:NAME`: the variable, flag or header that carried it, else the kind of token that it looks like.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence

MARK = "secret:"
SHORTEST_KNOWN = 6
"""Characters of a known secret from which on it is looked for inside other words."""

LENGTHS = (2000, 200, 50)
"""Characters of a word from which on it is shortened: the largest with which all of them fit."""

_SECRETISH = (
    r"(?:(?:[A-Za-z0-9]{0,40}(?:tokens?|secrets?|passw(?:or)?ds?|passphrases?|credentials?))"
    r"|(?:api|access|private|session|auth|hf|ssh)?keys?|authorization|auth|pat)"
)
_NAME = rf"(?:[A-Za-z0-9]{{1,40}}[-_.]){{0,8}}{_SECRETISH}(?:[-_.][A-Za-z0-9]{{1,40}}){{0,4}}"
_SECRET_NAME = re.compile(_NAME, re.IGNORECASE)
_HARMLESS = re.compile(r"(?:keys?[-_.](?:file|path|dir|name)|auth[-_.](?:sock|file)|tokens?[-_.](?:file|path))$", re.I)
_COUNTED = re.compile(r"tokens$", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,6})?")
_NO_VALUE = re.compile(r"(?:true|false|auto|none|null|)", re.IGNORECASE)
_FLAG = re.compile(rf"--?({_NAME})", re.IGNORECASE)

_OPEN, _CLOSE = "\ue000", "\ue001"
"""Around the name of a reference while a text is worked on: nothing that is looked for matches them."""
_VALUE = (
    rf"\"(?:[^\"\\{_OPEN}]|\\.){{0,8192}}\"|'[^'{_OPEN}]{{0,8192}}'|[^\s\"'&;|,)}}{_OPEN}][^\s\"'&;|,)}}]{{0,8192}}"
)
_ASSIGNED = re.compile(rf"(?<![A-Za-z0-9_./-])(--?)?({_NAME})(\"?\s{{0,4}}(?:=|:\s{{0,4}}))({_VALUE})", re.IGNORECASE)
_FLAGGED = re.compile(rf"(?<![A-Za-z0-9_./-])(--?)({_NAME})(\s+)(?!-)({_VALUE})", re.IGNORECASE)
_HEADER = re.compile(r"\b((?:proxy-)?authorization|x-api-key|cookie)(\s{0,4}:\s{0,4})([^\"'\r\n]{1,8192})", re.I)
_BEARER = re.compile(r"\b((?:bearer|basic)\s{1,4})([A-Za-z0-9._~+/=-]{4,8192})", re.IGNORECASE)
_URL = re.compile(r"(?<=://)([^/@\s:\"']{0,300}):([^/@\s\"']{1,1000})@")
_URL_ALONE = re.compile(r"(?:(?<=https://)|(?<=http://))[^/@\s:\"']{1,1000}@")
_SHAPES = (
    ("private-key", re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}-----|\Z)", re.S)),
    ("hf", re.compile(r"\bhf_[A-Za-z0-9]{8,}")),
    ("openai", re.compile(r"\bsk-[A-Za-z0-9_-]{16,}")),
    ("github", re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,})")),
    ("gitlab", re.compile(r"\bglpat-[A-Za-z0-9_-]{12,}")),
    ("slack", re.compile(r"\bxox[a-z]-[A-Za-z0-9-]{8,}|hooks\.slack\.com/services/[A-Za-z0-9/_-]{8,}")),
    ("nvidia", re.compile(r"\bnvapi-[A-Za-z0-9_-]{16,}")),
    ("aws", re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b")),
    ("jwt", re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*")),
)


def redacted_argv(argv: Sequence[str], known: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The same words, secrets as references; `known` are values that are secret whatever they look like, by name."""
    shown: list[str] = []
    flag = ""
    for word in argv:
        if flag and not word.startswith("--") and not _harmless(flag, word):
            shown.append(reference(flag))
            flag = ""
            continue
        named = _FLAG.fullmatch(word)
        flag = named[1] if named else ""
        shown.append(redacted(word, known))
    return tuple(shown)


def redacted(text: str, known: Mapping[str, str] | None = None) -> str:
    """The same text, secrets as references."""
    text = text.replace(_OPEN, "\ufffd").replace(_CLOSE, "\ufffd")
    for name, value in _longest_first(known or {}):
        text = text.replace(value, _held(name))
    for kind, shape in _SHAPES:
        text = shape.sub(_held(kind), text)
    text = _URL.sub(lambda found: f"{found[1]}:{_held('password')}@", text)
    text = _URL_ALONE.sub(f"{_held('password')}@", text)
    text = _HEADER.sub(lambda found: _kept(found[1], found[2], found[3]), text)
    text = _BEARER.sub(lambda found: f"{found[1]}{_held('bearer')}", text)
    text = _ASSIGNED.sub(lambda found: f"{found[1] or ''}{_kept(found[2], found[3], found[4])}", text)
    text = _FLAGGED.sub(lambda found: f"{found[1]}{_kept(found[2], found[3], found[4])}", text)
    return text.replace(_OPEN, MARK).replace(_CLOSE, "")


def reference(name: str) -> str:
    """`secret:NAME`."""
    return MARK + _plain(name)


def secret_name(name: str) -> bool:
    """Whether a variable or flag of this name holds a secret by its name."""
    return _SECRET_NAME.fullmatch(name) is not None and _HARMLESS.search(name) is None


def secrets_of(environment: Mapping[str, str], also: Iterable[str] = ()) -> dict[str, str]:
    """The variables of an environment that are secret by name or because they are named; for `known`."""
    wanted = set(also)
    return {
        name: value
        for name, value in environment.items()
        if (name in wanted or (secret_name(name) and not _harmless(name, value))) and len(value) >= SHORTEST_KNOWN
    }


def _longest_first(known: Mapping[str, str]) -> list[tuple[str, str]]:
    usable = [(name, value) for name, value in known.items() if len(value) >= SHORTEST_KNOWN]
    return sorted(usable, key=lambda pair: -len(pair[1]))


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "-", name)[:80]


def _held(name: str) -> str:
    return f"{_OPEN}{_plain(name)}{_CLOSE}"


def _harmless(name: str, value: str) -> bool:
    """The name of a file, a number of tokens, `none`, a reference: nothing to hide."""
    if value.startswith(MARK) or _NO_VALUE.fullmatch(value) or _HARMLESS.search(name):
        return True
    return _COUNTED.search(name) is not None and _NUMBER.fullmatch(value) is not None


def _kept(name: str, between: str, value: str) -> str:
    """The assignment with its value as a reference; as it was where there is nothing to hide."""
    if name.lower() in ("key", "keys") and ":" in between and '"' not in between:  # `the keys: D S R B`
        return f"{name}{between}{value}"
    quote = value[0] if len(value) > 1 and value[0] in "\"'" and value[-1] == value[0] else ""
    if _harmless(name, value.strip("\"'")):
        return f"{name}{between}{value}"
    return f"{name}{between}{quote}{_held(name)}{quote}"


def bounded(argv: Sequence[str], words: int, size: int) -> tuple[str, ...]:
    """At most `words` words of about `size` bytes as JSON: of long ones begin and hash are kept, of many the number."""
    kept = argv if len(argv) <= words else (*argv[: words - 1], f"… {len(argv) - words + 1} more words")
    for most in LENGTHS:
        shown = tuple(item if len(item) <= most else _short(item, most) for item in kept)
        if sum(len(json.dumps(item)) + 1 for item in shown) < size:
            break
    return shown


def _short(item: str, most: int) -> str:
    digest = hashlib.sha256(item.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{item[: most // 10]}… ({len(item)} characters, sha256 {digest})"
