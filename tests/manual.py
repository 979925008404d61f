"""The pages of the manual as data: sections, tables, code words, links, references."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

from pydantic.fields import FieldInfo

ROOT = Path(__file__).parents[1]
PAGES = {path.name: path for path in [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CHANGELOG.md"]}
_CODE = re.compile(r"`([^`\n]+)`")
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def page(name: str) -> str:
    """The text of a page."""
    return PAGES[name].read_text(encoding="utf-8")


def section(name: str, heading: str) -> str:
    """The text below a heading, up to the next one of its level or above. Raises KeyError."""
    text = page(name)
    found = [(match.start(), len(match[1]), match[2]) for match in _HEADING.finditer(_FENCE.sub(_blanked, text))]
    for number, (start, level, title) in enumerate(found):
        if title == heading:
            ends = [begin for begin, depth, _ in found[number + 1 :] if depth <= level]
            return text[start : ends[0] if ends else len(text)]
    raise KeyError(f"{name} has no heading {heading!r}")


def _blanked(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def rows(text: str) -> list[list[str]]:
    """Cells of every table row, heads and rules left out."""
    lines = text.splitlines()
    found = []
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if line.startswith("| ") and not line.startswith("| ---") and not following.startswith("| ---"):
            cells = line.strip().removeprefix("|").removesuffix("|").replace(r"\|", "\0").split("|")
            found.append([cell.replace("\0", "|").strip() for cell in cells])
    return found


def first_cells(text: str) -> list[str]:
    """The code words in the first cells of a section's tables."""
    return [word for row in rows(text) for word in code(row[0])]


def code(text: str) -> list[str]:
    """What stands in backticks."""
    return _CODE.findall(text)


def names(text: str) -> set[str]:
    """Key names in a text's code words: `kv.tokens` is kv.tokens, kv and tokens, `dead[]` is dead."""
    found: set[str] = set()
    for word in code(text):
        plain = word.replace("[]", "")
        found |= {plain, *plain.split(".")}
    return found


def fenced(text: str, language: str) -> list[str]:
    """The code blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def links(text: str) -> list[str]:
    """Targets of all links and pictures."""
    return _LINK.findall(_FENCE.sub(_blanked, text))


def anchors(text: str) -> set[str]:
    """The anchors that headings make, as GitHub makes them."""
    titles = (match[2] for match in _HEADING.finditer(_FENCE.sub(_blanked, text)))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def beside(folder: str, name: str) -> ModuleType:
    """A module of another test folder."""
    sys.path.insert(0, str(ROOT / "tests" / folder))
    return import_module(name)


def default_of(field: FieldInfo) -> str:
    """A default as TOML writes it; '' where it is none, computed or empty."""
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None:
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, str):
        return f'`"{value}"`'
    return f"`{list(value)}`" if isinstance(value, tuple) else f"`{value}`"
