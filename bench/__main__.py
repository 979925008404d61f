"""`python -m bench`: measures the budgets and prints one table. Exits 0 whatever the figures are."""

from __future__ import annotations

import argparse
import asyncio
import sys
import traceback
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from bench.acting import rollbacks, stops
from bench.commands import commands
from bench.crowd import HOSTS, many_hosts
from bench.figures import Figure, machine, not_run, table
from bench.flood import flood
from bench.metrics_text import metrics_text
from bench.resting import rest
from bench.sampling import sampling
from bench.stage import Stage, crowd, four_hosts
from bench.starting import headless, starts
from bench.thousand import HOSTS as THOUSAND
from bench.thousand import thousand

LATER = (not_run("sha256 of a shard with direct I/O", "this version reads no shards yet"),)


def on_stage(
    stage: Callable[[], AbstractAsyncContextManager[Stage]], measure: Callable[[Stage], list[Figure]]
) -> list[Figure]:
    """What `measure` finds on a played fleet; it may block, the fleet's own loop goes on."""

    async def run() -> list[Figure]:
        async with stage() as there:
            return await asyncio.to_thread(measure, there)

    return asyncio.run(run())


GROUPS: dict[str, Callable[[argparse.Namespace], list[Figure]]] = {
    "start": lambda _: on_stage(four_hosts, starts),
    "headless": lambda _: on_stage(four_hosts, headless),
    "rest": lambda options: on_stage(four_hosts, lambda stage: rest(stage, 600.0 if options.long else options.seconds)),
    "commands": lambda _: commands(),
    "crowd": lambda options: on_stage(lambda: crowd(HOSTS), lambda stage: many_hosts(stage, options.seconds)),
    "thousand": lambda options: on_stage(lambda: crowd(THOUSAND), lambda stage: thousand(stage, options.seconds)),
    "flood": lambda _: flood(),
    "rollback": lambda _: rollbacks(),
    "stop": lambda _: stops(),
    "sampling": lambda options: sampling(max(60.0, options.seconds)),
    "metrics": lambda _: metrics_text(),
}


def main() -> int:
    """Measure what was asked for and print it."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measures the budgets on this machine.")
    parser.add_argument("--only", default="", help=f"groups by comma: {', '.join(GROUPS)}")
    parser.add_argument("--long", action="store_true", help="rest for 10 minutes, as the memory budget is meant")
    parser.add_argument("--seconds", type=float, default=40.0, help="how long to measure at rest otherwise")
    options = parser.parse_args()
    wanted = [name for name in options.only.split(",") if name] or list(GROUPS)
    if unknown := [name for name in wanted if name not in GROUPS]:
        parser.error(f"no group {', '.join(unknown)}; there are: {', '.join(GROUPS)}")
    print("\n".join(machine()), flush=True)
    figures: list[Figure] = []
    for name in wanted:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        try:
            figures += GROUPS[name](options)
        except Exception as error:
            traceback.print_exc()
            figures.append(not_run(name, f"the measurement failed: {error}".splitlines()[0]))
    print("\n" + table([*figures, *LATER]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
