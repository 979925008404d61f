"""The console: one Textual app over a source of snapshots. Reads, shows, and never exits because the fleet is down.

Exit codes: 0 after `q`, 1 after a failure of the console itself, 129 when the terminal hung up, 143 after SIGTERM.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

from textual.app import App
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.screen import Screen
from textual.timer import Timer

from console import sanitize
from console.actions.catalog import BY_ID
from console.actions.command_line import CommandError, parse_command
from console.actions.keymap import KeymapError, default_keymap_path, load_keymap
from console.actions.themes import SHIPPED, ThemeError, find_theme, themes_folder
from console.actions.underway import newest_state
from console.alarms import Alarm
from console.calling import Calling, Ways
from console.readings.acting_types import OperationState
from console.snapshot import Snapshot, Source
from screens import lanes
from screens.acting import ActingKeys
from screens.base import ConsoleScreen, Hands, MakeHands, method_name
from screens.dashboard import DashboardScreen
from screens.events import EventsScreen
from screens.explain import ExplainScreen
from screens.faults import FaultLog, default_fault_file
from screens.help import HelpScreen
from screens.logs import LogsScreen
from screens.palette import Commands
from screens.strip import StripDesk
from screens.terminal import ConsoleDriver
from screens.timeline import Timeline
from screens.view import Moment, View, glance
from widgets.glance import Glance
from widgets.theme import DEFAULT_THEME, PLAIN_THEME, AttributesOnly, register_own, register_themes

TICK, BLURRED_TICK = 0.25, 1.0
"""Seconds between two pictures on screen, with the terminal in focus and without."""
NOTICE_SECONDS, BEGUN_SECONDS = 6.0, 2.0
"""How long one line from the console itself stays; and one that says what began, where that is seen to go on."""
READ_A_SECOND = 20.0
"""Characters: a reason of three rows has to be read to its end."""
BEGUN: tuple[OperationState, ...] = (OperationState.RUNNING,)
LEFT: tuple[OperationState, ...] = (OperationState.HALF_DONE, OperationState.LOST)
"""As what something that began is seen on the screen, and something that was left in its middle."""
SETTLE_SECONDS = 5.0
"""How long after the start the console may still move to a worse lane by itself."""
FREEZE_AFTER = 10.0
"""Seconds after which what is there is taken to stay: the collector then leaves it out of every later pass."""
STOP_LIMIT = 10.0
"""Seconds that links and samplers get to end."""
END_LIMIT = 3.0
"""Seconds that threads of libraries get after that."""
HANGUP = 128 + signal.SIGHUP
WHILE_TYPING = ("back", "hint-quit")
ENDING_SIGNALS = (signal.SIGHUP, signal.SIGTERM)


def stylesheet() -> Path:
    """console.tcss: inside the installed package, or at the top of a working copy."""
    packaged = Path(__file__).with_name("console.tcss")
    return packaged if packaged.exists() else Path(__file__).parents[1] / "console.tcss"


class LaneswapApp(ActingKeys, App[Any], inherit_bindings=False):
    """The console on screen."""

    TITLE = "laneswap"
    CSS_PATH = stylesheet()
    COMMANDS: ClassVar[set[Any]] = {Commands}
    # Both work under any screen, also under stock ones such as the palette.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "app.perform('hint-quit', '')", show=False, system=True),
        Binding("ctrl+z", "app.suspend_process", show=False, system=True),
    ]
    ENABLE_COMMAND_PALETTE = True
    COMMAND_PALETTE_BINDING = "ctrl+p"

    def __init__(
        self,
        source: Source,
        *,
        read_only: bool = False,
        ascii: bool = False,
        theme: str = "dark",
        keymap: Path | None = None,
        faults: Path | None = None,
        driver_class: type[Driver] | None = None,
        hands: MakeHands | None = None,
    ) -> None:
        """`hands` makes what acts, after the first paint; without it this console only reads."""
        no_colour = bool(os.environ.get("NO_COLOR"))
        self._make_hands = hands
        self.hands: Hands | None = None
        self.desk = StripDesk(self)
        super().__init__(driver_class=driver_class or ConsoleDriver, ansi_color=False)
        self.source = source
        self.read_only = read_only
        self.timeline = Timeline()
        self.view = View(ascii=ascii, no_colour=no_colour)
        self.faults = FaultLog(faults or default_fault_file())
        self._asked_theme = theme
        self._keymap_file = keymap or default_keymap_path()
        self._notice, self._begun, self._seen_as = "", "", BEGUN
        self._said_at = self._notice_until = 0.0
        self.said_at_start: list[str] = []
        """What the operator has to know about files that could not be used."""
        self.calling = Calling(Ways(self.say, self.bell, self._write, self.background))
        self._chosen = False
        self._followed = ""
        self._began = time.monotonic()
        self._clock: Timer | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._started = self._answering = False
        self.ends_process = False
        """The process has nothing else to do than this console."""
        self._animate_nothing()

    def _animate_nothing(self) -> None:
        self.animation_level = "none"
        register_themes(self)
        # A painted background under NO_COLOR, and Textual's own ansi themes there, end as black on black.
        self.theme = PLAIN_THEME if self.view.no_colour else self._wanted_theme()
        # Textual also takes an empty NO_COLOR for yes, and then keeps painted grounds.
        self.no_color = self.view.no_colour
        self._filters[:] = [AttributesOnly()] if self.view.no_colour else []

    def _wanted_theme(self) -> str:
        """The theme asked for; one that became unusable since the command line was checked is the dark one."""
        if self._asked_theme in SHIPPED:
            return f"laneswap-{self._asked_theme}"
        try:
            return register_own(self, find_theme(self._asked_theme, themes_folder()))
        except ThemeError as error:
            self.said_at_start.append(f"theme not used: {error.problems[0]} ({error.file})")
            return DEFAULT_THEME

    # --- life ------------------------------------------------------------------------------------------------------

    def get_default_screen(self) -> Screen[Any]:
        """The dashboard stands at the bottom of every stack."""
        return DashboardScreen(id="dashboard")

    def on_mount(self) -> None:
        """Take keys, signals and the first picture; sources are asked only after the first paint."""
        self._load_keys()
        if self.said_at_start:
            self.say("; ".join(self.said_at_start))
        asyncio.get_running_loop().set_exception_handler(self._loop_fault)
        self.tick()
        self._clock = self.set_interval(TICK, self.tick)
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        self.background("start of the sources", self._start_source())

    async def _start_source(self) -> None:
        self._started = True
        await self.source.start()
        self._answering = True
        if self._make_hands is not None:
            self.hands = self._make_hands(self._told)
            await self.hands.start()
        self.tick()
        self._keep_what_stays()
        self.set_timer(FREEZE_AFTER, self._keep_what_stays)

    def _keep_what_stays(self) -> None:
        """Passes over modules and links took 60 to 140 ms with 256 hosts, and keys waited for them."""
        if self.ends_process:
            gc.collect(1)
            gc.freeze()

    def background(self, what: str, work: Any) -> None:
        """Run a coroutine; what goes wrong in it is a fault on screen, never an exit."""

        async def guarded() -> None:
            try:
                await work
            except Exception as error:
                self.fault(what, error)

        task = asyncio.create_task(guarded(), name=what)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def leave(self, code: int = 0) -> None:
        """End the console: the terminal is put back first, then the source is stopped."""
        self.exit(return_code=code)

    async def run_async(self, **options: Any) -> Any:
        """Run until the end, then stop the source; nothing is left running on any host."""
        if not options.get("headless"):
            self._take_signals()
        try:
            return await super().run_async(**options)
        finally:
            await self._stop_source()
            if self.ends_process:
                self._end_soon()

    def _take_signals(self) -> None:
        """From before the terminal is taken on: a signal during the start must give it back too."""
        for number in ENDING_SIGNALS:
            # Under nohup(1) SIGHUP stays ignored; a terminal that is gone is noticed all the same.
            if signal.getsignal(number) is not signal.SIG_IGN:
                asyncio.get_running_loop().add_signal_handler(number, self.leave, 128 + number)

    def _end_soon(self) -> None:
        """A library's thread that does not end cannot keep the process: terminal and source are settled by now."""
        last = threading.Timer(END_LIMIT, os._exit, (self.return_code or 0,))
        last.daemon = True
        last.start()

    async def _stop_source(self) -> None:
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        if not self._started:
            return
        try:
            async with asyncio.timeout(STOP_LIMIT):
                # A start that is cancelled takes back what it had begun.
                await asyncio.gather(*tasks, return_exceptions=True)
                if self.hands is not None:
                    await self.hands.close()
                await self.source.stop()
        except Exception as error:
            self.fault("stop of the sources", error)

    # --- time ------------------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Take one picture and show it."""
        if getattr(self._driver, "lost", False):
            self.leave(HANGUP)
            return
        try:
            self.timeline.add(self.source.snapshot())
        except Exception as error:
            self.fault("snapshot", error)
            return
        self._call()
        self._settle()
        self._follow()
        if not getattr(self._driver, "stalled", False):
            self.redraw()

    def _call(self) -> None:
        newest = self.timeline.newest
        if newest is None:
            return
        try:
            self.calling.look(newest, self._own_alarms())
        except Exception as error:
            self.fault("alarms", error)

    def _write(self, sequence: str) -> None:
        if self._driver is not None and not self._driver.is_headless:
            self._driver.write(sequence)

    def acknowledge(self, key: str) -> None:
        """Somebody has seen this alarm."""
        if (newest := self.timeline.newest) is not None:
            self.calling.acknowledge(key, newest, self._own_alarms())

    def _settle(self) -> None:
        newest = self.timeline.newest
        if newest is None:
            return
        if not self._chosen:
            self.view = replace(self.view, lane=lanes.worst_lane(newest))
            self._chosen = lanes.settled(newest) or time.monotonic() - self._began > SETTLE_SECONDS

    def _follow(self) -> None:
        """Follow the log of the lane in view, from its head until the operator asks for another host."""
        if self._answering and self.view.lane != self._followed and self.timeline.newest is not None:
            self._followed = self.view.lane
            head = lanes.lane_or_worst(self.timeline.newest, self._followed).lane.head
            self.source.follow(self._followed, head)

    def redraw(self) -> None:
        """Give the front screen the picture to show."""
        self.view = replace(self.view, acknowledged=self.calling.acknowledged, returned=self.calling.returned)
        screen, picture = self.front(), self.picture()
        if screen is None or picture is None:
            return
        try:
            screen.show(picture)
        except Exception as error:
            self.fault(f"drawing {screen.PLACE}", error)

    def front(self) -> ConsoleScreen | None:
        """The uppermost screen of our own; a palette may lie over it."""
        return next((s for s in reversed(self.screen_stack) if isinstance(s, ConsoleScreen)), None)

    def picture(self) -> Glance | None:
        """What the front screen shows; None before the first snapshot."""
        screen, shown, newest = self.front(), self.timeline.shown, self.timeline.newest
        if screen is None or shown is None or newest is None:
            return None
        notice = self._notice if self._is_said(newest) else self._standing()
        notice = f"{notice} {self.desk.dropped}".strip()
        held = self.timeline.behind() if self.timeline.paused else None
        moment = Moment(shown, newest, held, notice, self._own_alarms(), self.desk.glance(), self.acts, self.holds)
        return glance(moment, self.view, screen.PLACE, *self.size, self.fault)

    def _is_said(self, newest: Snapshot) -> bool:
        """Whether the notice still stands; that something began makes room as soon as it is seen to run."""
        now = time.monotonic()
        about = next((lane for lane in newest.lanes if lane.name == self._begun), None)
        seen = about is not None and newest_state(about) in self._seen_as
        return now < self._notice_until and not (seen and now >= self._said_at + BEGUN_SECONDS)

    def _standing(self) -> str:
        """What stands on the NEXT row for as long as it is so."""
        if self.desk.sending or not self.timeline.paused:
            return self.desk.sending
        return "this picture is held, the alarm line is of now: p goes on, [ and ] step. Reading goes on."

    def _own_alarms(self) -> tuple[Alarm, ...]:
        own = self.faults.alarm()
        return (own,) if own is not None else ()

    def watch_app_focus(self, focus: bool) -> None:
        """Slower while nobody looks; at once when somebody does again."""
        if self._clock is None:
            return
        self._pace(TICK if focus else BLURRED_TICK)
        if focus:
            self.tick()

    def _pace(self, seconds: float) -> None:
        if self._clock is not None:
            self._clock.stop()
        self._clock = self.set_interval(seconds, self.tick)

    # --- what is said ----------------------------------------------------------------------------------------------

    def say(self, text: str, *, begun: str = "") -> None:
        """One line for the operator, on the NEXT row; under a stock screen as a toast."""
        self._notice, self._begun, self._seen_as = sanitize.line(text), begun, BEGUN
        self._said_at = time.monotonic()
        self._notice_until = self._said_at + NOTICE_SECONDS + len(self._notice) / READ_A_SECOND
        if self.screen is self.front():
            self.redraw()
        else:
            self.toast(text)

    def unsay(self) -> None:
        """What was said last is over before its time is up; seen at the next paint."""
        self._notice_until = 0.0

    def _told(self, text: str) -> None:
        """Said by the hands, later. That something stays half done stands on the rail, with its way out on NEXT."""
        self.say(text, begun=self.view.lane if any(state.value in text for state in LEFT) else "")
        self._seen_as = LEFT

    def toast(self, text: str) -> None:
        """The one way to a toast: safe text, never markup."""
        self.notify(sanitize.line(text), timeout=NOTICE_SECONDS, markup=False)

    def fault(self, where: str, error: BaseException) -> None:
        """A fault of the console itself: an alarm line and a private file, never an exit."""
        self.faults.record(where, error)

    def _handle_exception(self, error: Exception) -> None:
        # What Textual cannot go on after still ends in the private file: the terminal may be gone.
        self.fault("screen", error)
        super()._handle_exception(error)

    def _fatal_error(self) -> None:
        # Textual's own traceback shows local variables, and so text from hosts.
        self.panic(f"laneswap: the console failed: {self.faults.newest}\nThe whole story is in {self.faults.file}.")

    def _loop_fault(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.fault("background", error if isinstance(error, Exception) else RuntimeError(str(context.get("message"))))

    # --- what is asked for -----------------------------------------------------------------------------------------

    def _load_keys(self) -> None:
        try:
            own = load_keymap(self._keymap_file)
        except KeymapError as error:
            self.said_at_start.append(f"keymap not used: {error.problems[0]} ({self._keymap_file})")
            return
        self.set_keymap({ident: ",".join("comma" if k == "," else k for k in keys) for ident, keys in own.items()})

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While a line is typed keys are text, but those that leave it or never act."""
        if action == "perform" and (screen := self.front()) is not None and screen.typing:
            return bool(parameters) and parameters[0] in WHILE_TYPING
        return super().check_action(action, parameters)

    def action_suspend_process(self) -> None:
        """Stop the whole foreground job: below `make` or a script the shell gets its terminal back only so."""
        if self._driver is not None and self._driver.can_suspend:
            # The terminal is given back first: once `make` has stopped, the shell has it and we may not touch it.
            self._driver.suspend_application_mode()
            os.kill(0, signal.SIGSTOP)

    def action_perform(self, ident: str, argument: str = "") -> None:
        """Keys come in here."""
        self.perform(ident, argument)

    def perform(self, ident: str, argument: str = "") -> None:
        """Carry out an action of the table on the front screen, or say in one line why not."""
        action, screen = BY_ID.get(ident), self.front()
        if action is None or screen is None or screen.PLACE not in action.places:
            return
        answer = screen.answer(ident) or cast("Callable[[str], None] | None", getattr(self, method_name(ident), None))
        try:
            if answer is not None:
                answer(argument)
        except Exception as error:
            self.fault(f"action {ident}", error)
        self.redraw()

    def command(self, line: str) -> None:
        """Carry out a `:` line."""
        screen = self.front()
        if screen is None or not line.strip(" :"):
            return
        try:
            action, argument = parse_command(line, screen.PLACE)
        except CommandError as error:
            self.say(str(error))
            return
        self.perform(action.id, argument)

    def do_hint_quit(self, _: str) -> None:
        """ctrl+c never acts."""
        self.say("ctrl+c does nothing here: q quits. Nothing was sent.")

    def do_back(self, _: str) -> None:
        """Esc closes the uppermost screen, never the console."""
        if len(self.screen_stack) > 1:
            self.pop_screen()

    def do_help(self, _: str) -> None:
        """Open help, once."""
        if not isinstance(self.front(), HelpScreen):
            self.push_screen(HelpScreen())

    def do_palette(self, _: str) -> None:
        """Open the command palette."""
        self.action_command_palette()

    def do_logs(self, host: str) -> None:
        """Open the log of the lane's container on one of its hosts."""
        self.push_screen(LogsScreen(host))

    def do_events(self, _: str) -> None:
        """Open the events."""
        self.push_screen(EventsScreen())

    def do_explain(self, pane: str) -> None:
        """Explain the pane in focus."""
        self.push_screen(ExplainScreen(pane))

    def choose_lane(self, name: str) -> None:
        """Show a lane; from now on the operator decides which."""
        self._chosen = True
        self.view = replace(self.view, lane=name, scroll={})


def run_console(
    source: Source, *, read_only: bool = False, ascii: bool = False, theme: str = "dark", hands: MakeHands | None = None
) -> int:
    """Run the console until it ends; its exit code. The process can end after this, whatever a library left behind."""
    app = LaneswapApp(source, read_only=read_only, ascii=ascii, theme=theme, hands=hands)
    app.ends_process = True
    app.run()
    return app.return_code or 0
