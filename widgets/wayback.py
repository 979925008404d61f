"""Pane 9: the way back, item by item, each as old as what it rests on, and the whole time it takes."""

from __future__ import annotations

from console.snapshot import Severity
from console.wayback import Item, WayBack, Word, way_back
from widgets import format as fmt
from widgets.ages import AGE_REPAINT, AgeMark, coarse
from widgets.cells import Line, measure
from widgets.glance import Glance
from widgets.ink import BOLD, DIM, LOOK, TEXT, Ink, Row, ink_of
from widgets.pane import Pane
from widgets.sheet import Sheet, Title, section, wrap
from widgets.slots import NUMBERS

Pieces = tuple[tuple[str, Ink], ...]

_PANE = NUMBERS["wayback"]
_WORSE_FIRST = (Word.FAIL, Word.STALE, Word.UNKNOWN, Word.OK)
_WORDS, _NAMES, _AGE = 8, 14, 6
"""Cells of an item's word and name, and of its age with a blank before it."""
_SPOKEN = {Word.OK: "OK", Word.STALE: "stale", Word.FAIL: "failed", Word.UNKNOWN: "unknown"}


class WayBackPane(Pane):
    """Pane 9."""

    NUMBER = _PANE
    NAME = "way back"

    def slice(self, glance: Glance) -> tuple[object, ...]:
        """See `Drawn.slice`."""
        way = way_back(glance.snapshot, glance.lane)
        items = tuple((item.name, item.word, item.text, coarse(_age(item))) for item in way.items)
        rest = way.possible, way.revision, way.parts, way.total, way.why, way.slow, way.boot_basis, _deed(way, glance)
        return *rest, items, int(glance.now / AGE_REPAINT)

    def draw(self, glance: Glance, width: int, height: int) -> tuple[Row, ...]:
        """See `rows`."""
        return rows(glance, width, height)


def rows(glance: Glance, width: int, height: int) -> tuple[Row, ...]:
    """Where to and how long, how sure, then every item; one line where there is but one."""
    way = way_back(glance.snapshot, glance.lane)
    if not glance.boxed and height == 1:
        return (_one_line(glance, way, width),)
    sheet = Sheet(glance, Title(_PANE, "way back", _oldest(way)), width, height)
    _headline(sheet, way)
    _counts(sheet, way)
    if not way.items:
        sheet.say("Fills with the containers of the lane's head, or with the lane's site file and checkpoint folder.")
        return sheet.done()
    _items(sheet, way)
    return sheet.done()


def severity_of(way: WayBack) -> Severity:
    """As the lamp has it: orange where it is shut, an item failed or is stale; blue where it is slow or not read."""
    words = {item.word for item in way.items}
    if way.possible is None:
        return Severity.LOOK if Word.UNKNOWN in words else Severity.INFO
    if way.possible is False or words & {Word.FAIL, Word.STALE}:
        return Severity.LOOK
    return Severity.INFO if way.slow else Severity.NORMAL


def item_ink(item: Item) -> Ink:
    """Orange for what failed or is stale; what nobody read is grey, but not dim."""
    if item.word in (Word.FAIL, Word.STALE):
        return LOOK
    return TEXT if item.word is Word.UNKNOWN else DIM


def _age(item: Item) -> str:
    return fmt.NONE if item.age is None else fmt.age(item.age)


def _oldest(way: WayBack) -> AgeMark:
    stale = [item.age for item in way.items if item.word is Word.STALE and item.age is not None]
    if stale:
        return AgeMark(f"STALE {fmt.age(max(stale))}", LOOK)
    ages = [item.age for item in way.items if item.age is not None]
    return AgeMark(fmt.age(max(ages)) if ages else "not read", DIM)


def _head_pieces(way: WayBack, glance: Glance) -> Pieces:
    """`BACK ≈8m10s to df42c10`, or that there is no way, and why."""
    severity = severity_of(way)
    if way.possible is False:
        return ((f"{glance.signs.look} NO WAY BACK".strip(), LOOK), (way.why, TEXT))
    if way.possible is None:
        return ((f"{glance.signs.of(severity)} UNKNOWN".strip(), ink_of(severity)), (way.why, TEXT))
    sign = f"{glance.signs.of(severity)} " if severity is not Severity.NORMAL else ""
    ink = BOLD if severity is Severity.NORMAL else ink_of(severity)
    time = f"≈{fmt.duration(way.total)}" if way.total is not None else "time unknown"
    return ((f"{sign}BACK {time}".strip(), ink), ("to", DIM), (fmt.revision(way.revision), BOLD))


def _headline(sheet: Sheet, way: WayBack) -> None:
    glance = sheet.glance
    line = sheet.line()
    deed = _deed(way, glance)
    room = sheet.right - sheet.left
    right: Pieces = (("last done by deed", DIM), (deed, TEXT)) if deed and room > 70 else ()
    edge = line.words_right(sheet.right, *right) - 3 if right else sheet.right
    after = line.words(sheet.left, *_head_pieces(way, glance), to=edge)
    parts: list[tuple[str, Ink]] = []
    for name, seconds in way.parts if way.possible else ():
        parts += [("+" if parts else "", DIM), (name, DIM), (fmt.duration(seconds), TEXT)]
    if after + 2 + sum(measure(text) + 1 for text, _ in parts if text) <= edge:
        line.words(after + 3, *parts, to=edge)


def _deed(way: WayBack, glance: Glance) -> str:
    if way.last_deed is None:
        return ""
    at, took = way.last_deed
    return f"{fmt.age(glance.wall - at)} ago, {fmt.duration(took)}"


def _counts(sheet: Sheet, way: WayBack) -> None:
    """`9 asked, 8 OK, 1 stale: the way back is open`, and where the time comes from."""
    if not way.items:
        return
    counts = [(word, sum(item.word is word for item in way.items)) for word in (Word.OK, *_WORSE_FIRST[:3])]
    said = ", ".join(f"{count} {_SPOKEN[word]}" for word, count in counts if count)
    verdict = {True: "the way back is open", False: "the way back is shut", None: "it is not known to be open"}
    line = sheet.line()
    edge = line.right(sheet.right, "age", DIM) - 1
    text = f"{len(way.items)} asked, {said}: {verdict[way.possible]}"
    after = line.put(sheet.left, text, DIM, to=edge)
    slow = ", ".join(f"{host} rows {fmt.duration(seconds)} at the stop" for host, seconds in way.slow)
    for more in (f"{slow or way.why}. Boot by {way.boot_basis}" if way.boot_basis else "", slow or way.why):
        if way.possible and more and after + 2 + measure(more) <= edge:
            line.put(after + 2, more, DIM, to=edge)
            return


def _items(sheet: Sheet, way: WayBack) -> None:
    """All in their order where they fit; else what is not OK first, and how many more there are."""
    glance = sheet.glance
    found = [item for item in way.items if glance.matches(item.name, item.text, item.word.value)]
    if not found:
        sheet.say(f"No item holds /{glance.filter}: {len(way.items)} hidden. Esc drops the filter.")
        return
    hidden: list[Item] = []
    if len(found) > sheet.left_over:
        found = sorted(found, key=lambda item: _WORSE_FIRST.index(item.word))
        room = max(1, sheet.left_over - 1)
        skip = min(glance.scrolled(_PANE), len(found) - room)
        found, hidden = found[skip : skip + room], [*found[:skip], *found[skip + room :]]
    spare = 0 if hidden else sheet.left_over - len(found)
    for item in found:
        more = _item(sheet.line(), sheet, item, spare)
        spare -= len(more)
        for part in more:
            sheet.line().put(_text_at(sheet), part, TEXT, to=sheet.right - _AGE)
    if hidden and sheet.left_over:
        good = all(item.word is Word.OK for item in hidden)
        sheet.line().put(sheet.left, f"{len(hidden)} more{', all OK' if good else ''}", DIM, to=sheet.right)


def _text_at(sheet: Sheet) -> int:
    return sheet.left + (0 if sheet.glance.ascii else 2) + _WORDS + _NAMES


def _item(line: Line, sheet: Sheet, item: Item, spare: int) -> list[str]:
    """Draws one item. Returns the rows of its text that come below, where `spare` rows are free."""
    glance = sheet.glance
    ink = item_ink(item)
    loud = item.word in (Word.FAIL, Word.STALE)
    column = sheet.left
    if loud:
        line.put(column, glance.signs.look, ink._replace(bold=False))
    column += 0 if glance.ascii else 2
    line.put(column, item.word.value, ink)
    name = column + _WORDS
    line.put(name, item.name, TEXT if loud else DIM, to=name + _NAMES - 1)
    age = _age(item)
    edge = line.right(sheet.right, age, LOOK if item.word is Word.STALE else DIM, start=name, age=True) - 1
    base = DIM if item.word is Word.OK and sheet.width < 100 else TEXT
    parts = wrap(item.text, sheet.right - _AGE - name - _NAMES)
    if not 1 < len(parts) <= spare + 1:
        line.put(name + _NAMES, item.text, base, to=edge)
        return []
    line.put(name + _NAMES, parts[0], base, to=edge)
    return parts[1:]


def _one_line(glance: Glance, way: WayBack, width: int) -> Row:
    age = _oldest(way)
    line = section(glance, Title(_PANE, "way back", age), width)
    edge = width - 1 - measure(age.text) - 1
    bad = [item for item in way.items if item.word in (Word.FAIL, Word.STALE)]
    after = line.words(11, *_head_pieces(way, glance), to=edge)
    if bad and way.possible is not False:
        line.words(after + 2, (bad[0].name, TEXT), (bad[0].word.value, item_ink(bad[0])), to=edge)
    return line.build()
