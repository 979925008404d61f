"""The command line. Exit codes: 0 good or done, 1 needs an operator or failed, 2 usage or configuration, 3 outcome
unknown or unreachable, 4 refused by policy."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, CycloptsError, Parameter

from console import __version__
from console.commands.acting import attach, do, plan
from console.commands.config import app as config
from console.commands.init import init
from console.commands.ledger import ledger
from console.commands.parts import FleetFile, Json, UsageError, live_source, no_fleet, print_answer
from console.commands.window import app as window
from console.fleet.inventory import default_path
from console.fleet.tomlfile import FileError
from console.headless import EXIT_GOOD, EXIT_NEEDS_OPERATOR, EXIT_USAGE
from console.sanitize import line

if TYPE_CHECKING:
    from console.execution.hands import Hands
    from console.rehearsal.source import RehearsalSource
    from console.snapshot import Snapshot, Source

app = App(
    name="laneswap",
    help="The switch-window console for LLM serving lanes.",
    version=__version__,
    result_action="return_value",
)

ReadOnly = Annotated[bool, Parameter(name="--read-only", negative="", help="Never act, whatever the window says.")]
Ascii = Annotated[bool, Parameter(name="--ascii", negative="", help="Draw with ASCII only.")]
Theme = Annotated[
    str,
    Parameter(
        name="--theme",
        help="Colours: dark, light, safe (for colour-blind eyes), or NAME of themes/NAME.toml in the config folder.",
    ),
]


def run(arguments: Sequence[str]) -> int:
    """Carry out one command line and return its exit code; every expected error is one clear message on stderr."""
    _streams()
    # without any handler Python prints what libraries log, with texts of hosts in it, to the operator's terminal
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        answer = app(list(arguments), exit_on_error=False, print_error=True)
    except CycloptsError:
        return EXIT_USAGE
    except _if_loaded("InspectError", "ScenarioError", always=(FileError, UsageError)) as error:
        _complain(error)
        return EXIT_USAGE
    except _if_loaded("RehearsalError") as error:
        _complain(error)
        return EXIT_NEEDS_OPERATOR
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader went away (`| head`): quiet end, and no second error when stdout is flushed at exit.
        _give_up_stdout()
        return EXIT_GOOD
    except OSError as error:  # a full disk behind stdout, or no descriptor left: nothing that a source would raise
        _give_up_stdout()
        _complain(error)
        return EXIT_NEEDS_OPERATOR
    return answer if isinstance(answer, int) else EXIT_GOOD


_RAISED_IN = {
    "InspectError": "console.inspection.arguments",
    "ScenarioError": "console.rehearsal.scenario",
    "RehearsalError": "console.rehearsal.play",
}


def _if_loaded(*names: str, always: tuple[type[Exception], ...] = ()) -> tuple[type[Exception], ...]:
    """Error classes of modules that were needed: to load the others (4 MB, 0.1 s) only to catch what nobody raises
    would slow down every start."""
    modules = ((sys.modules.get(_RAISED_IN[name]), name) for name in names)
    return (*always, *(getattr(module, name) for module, name in modules if module is not None))


def _streams() -> None:
    """Closed ones lead nowhere (Python has None for them); a terminal that knows no UTF-8 gets escapes for the rest."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))
        elif stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def _give_up_stdout() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(error: Exception) -> None:
    """File names, keys and values stand in it as they were found: safe text before it reaches the terminal."""
    rows = (line(row) for row in f"laneswap: {error}".split("\n"))
    print("\n".join(rows), file=sys.stderr)


def _seconds(option: str, value: float) -> float:
    if not value > 0:  # also NaN
        raise UsageError(f"{option}: more than 0 seconds")
    return value


@app.default
@app.command
def watch(fleet: FleetFile = None, *, read_only: ReadOnly = False, ascii: Ascii = False, theme: Theme = "dark") -> int:
    """The console: the lanes of a fleet, live."""
    source = live_source(fleet, _names())

    def hands(tell: Callable[[str], None]) -> Hands:
        from console.execution.hands import Hands

        return Hands(source, source.snapshot().fleet.operator_name(), read_only=read_only, tell=tell)

    return _screen(source, hands, read_only=read_only, ascii=ascii, theme=theme)


@app.command
def rehearse(
    scenario: Annotated[str, Parameter(help="A name, a path to a .toml, or `list` for the names.")] = "spark4",
    *,
    speed: Annotated[float, Parameter(help="Clock factor: scenario time runs this many times as fast.")] = 1.0,
    headless: Annotated[bool, Parameter(negative="", help="No screen: a reading a second on stdout.")] = False,
    seconds: Annotated[float | None, Parameter(help="How long to run without a screen (20; with --do 3600).")] = None,
    verb: Annotated[
        str, Parameter(name="--do", help="disarm, arm, stop, relaunch or rollback: done by itself, without a screen.")
    ] = "",
    lane: Annotated[str, Parameter(help="The lane that --do acts on; default: the scenario's first.")] = "",
    take_over: Annotated[
        bool, Parameter(name="--take-over", negative="", help="--do takes the lane from its holder.")
    ] = False,
    json: Json = False,
    show_list: Annotated[bool, Parameter(name="--list", negative="", help="List the scenarios.")] = False,
    ascii: Ascii = False,
    theme: Theme = "dark",
) -> int:
    """The console, or its headless twin, on the embedded fleet; marked REHEARSAL everywhere."""
    from console.rehearsal.scenario import list_scenarios, load_scenario
    from console.rehearsal.source import RehearsalSource

    if show_list or scenario == "list":
        for name, title in list_scenarios().items():
            print(f"{name:<26} {title}")
        return EXIT_GOOD
    if not 0.1 <= speed <= 1000:
        raise UsageError("--speed: from 0.1 to 1000")
    source = RehearsalSource(load_scenario(scenario), speed)
    limit = _seconds("--seconds", seconds if seconds is not None else 3600.0 if verb else 20.0)
    if not headless:
        if verb:
            raise UsageError("--do goes with --headless; on screen the keys act")
        return _screen(source, lambda tell: source.hands(tell=tell), read_only=False, ascii=ascii, theme=theme)
    from console.headless import print_json, print_text, stream

    emit = print_json if json else print_text
    if verb:
        return asyncio.run(_do_in(source, verb, lane, limit, emit, take_over=take_over))
    asyncio.run(stream(source, limit, emit))
    return EXIT_GOOD


def _do_in(
    source: RehearsalSource, verb: str, lane: str, limit: float, emit: Callable[[Snapshot], None], *, take_over: bool
) -> Coroutine[Any, Any, int]:
    """The one action of a rehearsal without a screen. Raises UsageError."""
    from console.actions.plan import Verb
    from console.commands.rehearsing import act

    lanes = source.snapshot().fleet.lanes
    if verb not in tuple(Verb):
        raise UsageError(f"--do {line(verb, 40)}: one of {', '.join(Verb)}")
    if lane and lane not in lanes:
        raise UsageError(f"--lane {line(lane, 40)}: one of {', '.join(lanes)}")
    return act(source, verb, lane or next(iter(lanes)), limit, emit, take_over=take_over)


@app.command
def status(
    fleet: FleetFile = None,
    *,
    json: Json = False,
    wait: Annotated[float, Parameter(help="Seconds to wait for every source to answer or fail.")] = 15.0,
) -> int:
    """One reading of everything: lamps, alarms, every value with age and quality."""
    from console.headless import exit_code, once, print_json, print_text

    snapshot = asyncio.run(once(live_source(fleet, _names()), _seconds("--wait", wait)))
    if json:
        print_json(snapshot, pretty=True)
    else:
        print_text(snapshot)
    return exit_code(snapshot)


@app.command
def inspect(
    kind: str = "kinds",
    *paths: Annotated[str, Parameter(allow_leading_hyphen=False)],
    json: Json = False,
) -> int:
    """What the console would make of captured files. KIND and PATHs: `laneswap inspect kinds` lists them."""
    from console.inspection.arguments import parse_argument
    from console.inspection.kinds import KINDS
    from console.inspection.kinds import inspect as answer_for

    if kind == "kinds":
        for item in KINDS.values():
            print(f"{item.name:<12} {item.takes}")
        return EXIT_GOOD
    if not paths:
        raise UsageError(f"inspect {kind}: name at least one file")
    answer = answer_for(kind, [parse_argument(word) for word in paths])
    print_answer(answer, as_json=json)
    return EXIT_GOOD


@app.command
def keys(*, json: Json = False) -> int:
    """Every key of the console and what it does."""
    from console.actions.catalog import describe_keys

    rows = describe_keys()
    if json:
        print_answer({"keys": rows}, as_json=True)
    else:
        for row in rows:
            where = "" if "dashboard" in row["screens"] else f" (on: {row['screens'].replace(' ', ', ')})"
            print(f"{row['keys'] or row['command']:<18} {row['title']:<26} {row['help']}{where}")
    return EXIT_GOOD


@app.command
def doctor(fleet: FleetFile = None, *, json: Json = False) -> int:
    """Are this machine, every host and every lane set up? Says what was found and what to do; changes nothing."""
    from console.doctor.check import as_json, as_text, exit_code
    from console.doctor.examine import diagnose

    file = fleet or default_path()
    if not file.exists() and (fleet is not None or os.environ.get("LANESWAP_FLEET")):
        raise UsageError(no_fleet(fleet, file, _names()))
    checks = diagnose(file if file.exists() else None)
    if json:
        print_answer(as_json(checks), as_json=True)
    else:
        print("\n".join(as_text(checks)))
    return exit_code(checks)


app.command(init)
app.command(config)
app.command(plan)
app.command(do)
app.command(window)
app.command(attach)
app.command(ledger)


def _names() -> list[str]:
    """What a word that is no file may have been meant for."""
    return [name for name in app if not name.startswith("-")]


def _screen(
    source: Source, hands: Callable[[Callable[[str], None]], Hands], *, read_only: bool, ascii: bool, theme: str
) -> int:
    """`hands` makes what acts, once the source has begun."""
    from console.actions.themes import find_theme, themes_folder

    find_theme(theme, themes_folder())  # a theme that cannot be used is refused before the terminal is taken
    if not sys.stdout.isatty() or not sys.stdin.isatty():
        raise UsageError("the console needs a terminal; without one use `laneswap status` or `rehearse --headless`")
    try:
        from console.app import run_console
    except ImportError as error:
        raise UsageError(f"the screen needs Textual ({error}); the headless commands work without it") from error

    return run_console(source, read_only=read_only, ascii=ascii, theme=theme, hands=hands)
