"""Whether a regular expression of a recipe stays quick on any line: hosts write the lines, and a match cannot be ended.

Python's `re` tries every way to share a line among the repeats of a pattern. What is allowed here needs at most
`characters² · 64` steps for a line, whatever stands in it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

MOST_POWER = 2
MOST_WAYS = 64
"""Ways through alternatives, options and repeats with an end."""
_ENDLESS = 100
"""A repeat that may go on longer than this counts as one without an end."""
_REPEATS = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})
_NESTED = "a repeat within a repeat, or a choice within one: it can take forever on a line made for that"
_CLASSES: dict[str, Callable[[str], bool]] = {
    "DIGIT": str.isdigit,
    "SPACE": str.isspace,
    "WORD": lambda one: one.isalnum() or one == "_",
}


class TooSlow(ValueError):
    """A pattern that some line keeps busy for good; says what in it."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a part of a pattern may take."""

    open: int = 0
    """Repeats without an end that can share out the same characters."""
    scans: bool = False
    """It holds a repeat without an end that has one way only; behind others it is run again and again."""
    ways: int = 1
    """Ways through everything else."""

    @property
    def power(self) -> int:
        """Of the characters of a line."""
        return self.open + (self.scans and self.open > 0)

    def then(self, other: Cost) -> Cost:
        """Both, one behind the other."""
        return Cost(self.open + other.open, self.scans or other.scans, self.ways * other.ways)


def check_quick(pattern: str) -> None:
    """Raises TooSlow for a pattern that no line may be matched with; `pattern` compiles."""
    parser: Any = importlib.import_module("re._parser")  # what `re` itself reads patterns with; it has no public name
    cost = _cost(parser.parse(pattern), None)
    if cost.power > MOST_POWER:
        raise TooSlow(
            "too many repeats like .* that can share out the same characters: "
            "end some, as in [0-9]{1,9}, or let each stop before the next character, as in [^,]*,"
        )
    if cost.ways > MOST_WAYS:
        raise TooSlow(f"{cost.ways} ways through its choices, more than {MOST_WAYS}: write several patterns")


def _cost(items: Sequence[Any], after: Any) -> Cost:
    """`after` is the item that follows; None at the end of the pattern, `()` where it is not one item."""
    cost = Cost()
    follow = [*items[1:], after]
    for (operator, value), then in zip(items, follow, strict=False):
        cost = cost.then(_one(str(operator), value, then))
    return cost


def _one(operator: str, value: Any, then: Any) -> Cost:
    if operator in _REPEATS:
        return _repeat(value, then)
    if operator == "BRANCH":
        costs = [_cost(items, then) for items in value[1]]
        ways = sum(cost.ways for cost in costs)
        return Cost(max(cost.open for cost in costs), any(cost.scans for cost in costs), ways)
    if operator in ("GROUPREF", "GROUPREF_EXISTS"):
        raise TooSlow("refers back to a group: it can take forever on a line made for that")
    if operator in ("SUBPATTERN", "ATOMIC_GROUP", "ASSERT", "ASSERT_NOT"):
        return _cost(value if operator == "ATOMIC_GROUP" else value[-1], then if operator == "SUBPATTERN" else ())
    return Cost()


def _repeat(value: Any, then: Any) -> Cost:
    least, most, items = value
    cost = _cost(items, then if most == 1 else ())
    if most > 1 and (cost.open or cost.ways > 1):
        raise TooSlow(_NESTED)
    if len(items) == 1 and most > 1 and _stops(items[0], then):
        return Cost(0, cost.scans or (most > _ENDLESS and then is not None))
    if least == most:
        return cost
    if most > _ENDLESS:
        return Cost(1, cost.scans)
    return Cost(cost.open, cost.scans, cost.ways + most - least)


def _stops(item: Any, then: Any) -> bool:
    """Whether a repeat of one character has to end before what follows: then there is one way only."""
    if then is None:  # the end of the pattern: nothing can fail behind it
        return True
    if not then or str(then[0]) != "LITERAL":
        return False
    following = chr(then[1])
    return not any(_takes(str(item[0]), item[1], one) for one in (following, following.lower(), following.upper()))


def _takes(operator: str, value: Any, character: str) -> bool:
    if operator == "IN":
        return _within(value, character)
    if operator == "LITERAL":
        return chr(value).lower() == character.lower()
    return operator != "NOT_LITERAL" or chr(value) != character


def _within(parts: Sequence[Any], character: str) -> bool:
    found = negated = False
    for operator, value in ((str(part[0]), part[1]) for part in parts):
        if operator == "NEGATE":
            negated = True
        elif operator == "LITERAL":
            found |= value == ord(character)
        elif operator == "RANGE":
            found |= value[0] <= ord(character) <= value[1]
        else:  # CATEGORY_DIGIT, CATEGORY_NOT_DIGIT and so on
            name = str(value).removeprefix("CATEGORY_")
            found |= _CLASSES[name.removeprefix("NOT_")](character) is not name.startswith("NOT_")
    return found is not negated
