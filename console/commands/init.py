"""`laneswap init`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from console.commands.parts import UsageError
from console.headless import EXIT_GOOD
from console.sanitize import line

STDOUT = Path("-")


def init(
    *,
    from_site: Annotated[
        str, Parameter(help="A launcher's own file (fleet.env, cluster.env, .env, JSON): FILE, or HOST:FILE over ssh.")
    ] = "",
    host: Annotated[
        list[str] | None,
        Parameter(consume_multiple=(1, 4096), negative="", help="Without a file: targets of ssh, head first."),
    ] = None,
    url: Annotated[
        str, Parameter(help="Without a file: the endpoint, as seen from the head.")
    ] = "http://127.0.0.1:8000",
    recipe: Annotated[str, Parameter(help="Without a file: `laneswap config recipes` lists them.")] = "docker-generic",
    root: Annotated[str, Parameter(help="The recipe's folder on the head, where it cannot be told.")] = "",
    name: Annotated[str, Parameter(help="Name of the fleet.")] = "fleet",
    lane: Annotated[str, Parameter(help="Name of the lane.")] = "main",
    output: Annotated[
        Path, Parameter(name=["--output", "-o"], allow_leading_hyphen=True, help="Where to; - is stdout.")
    ] = Path("fleet.toml"),
    force: Annotated[bool, Parameter(negative="", help="Overwrite a file that is there.")] = False,
) -> int:
    """Write a fleet.toml: from a launcher's own file, or from hosts and a URL. Changes nothing on any host."""
    from console.setup.init import from_site as read_from
    from console.setup.init import from_words, save

    if from_site and host:
        raise UsageError("init: --from-site names the hosts already; leave --host out")
    folder = None if output == STDOUT else output.parent
    if from_site:
        made = read_from(from_site, name, lane, root, folder)
    else:
        made = from_words(host or [], url, recipe, name, lane, root, folder)
    if output == STDOUT:
        print(made.text, end="")
        return EXIT_GOOD
    save(made.text, output, force=force)
    for row in made.taken:
        print(f"  {row}")
    for row in made.open:
        print(f"? {row}")
    where = "" if output == Path("fleet.toml") else f" -f {output}"
    print(line(f"wrote {output}; next: laneswap doctor{where}"))
    return EXIT_GOOD
