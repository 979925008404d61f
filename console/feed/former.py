"""What the site file said before it was edited, for a console that did not see the edit: by the copy kept beside it.

It only says where to look: what lies there is proved by its manifest, as every row copy is.
"""

from __future__ import annotations

import re
from posixpath import basename, dirname

from console.fleet.places import Places
from console.fleet.recipe import Recipe
from console.fleet.sitefile import read_site
from console.fleet.sitetypes import Site
from console.readings.listing import Listing
from console.readings.look import Answer, Status, raw_bytes

_STAMP = re.compile(r"([0-9]{8}T[0-9]{6}Z)(?:-([0-9]{1,2}))?")
"""Of a backup that `site_edit.py` keeps: `fleet.env.20261201T021500Z.bak`, `...Z-2.bak`."""


def wants_former(places: Places, site: Site | None) -> bool:
    """Whether nobody knows where the rows of the revision before lie, though there are copies."""
    copies = [rank for rank in places.ranks if rank.rows]
    named = any(rank.previous_rows for rank in copies) or bool(places.previous_revision)
    return site is not None and bool(site.revision) and bool(copies) and not named


def newest_backup(path: str, listing: Listing | None) -> str:
    """The newest of the site file's earlier texts in the folder beside it; '' where there is none."""
    found = []
    for entry in listing.entries if listing is not None and not listing.problem else ():
        name = basename(path)
        if entry.kind == "f" and entry.path.startswith(f"{name}.") and entry.path.endswith(".bak"):
            stamp = _STAMP.fullmatch(entry.path[len(name) + 1 : -len(".bak")])
            if stamp is not None:
                found.append((stamp[1], int(stamp[2] or 1), entry.path))
    return f"{dirname(path)}/{max(found)[2]}" if found else ""


def former_site(answer: Answer | None, path: str, recipe: Recipe, site: Site | None) -> Site | None:
    """The earlier text as a site file; None where it cannot be read or names the present revision."""
    if answer is None or answer.status is not Status.OK or site is None:
        return None
    found = read_site(raw_bytes(answer.body), path, recipe)
    return found if found.revision and found.revision != site.revision else None
