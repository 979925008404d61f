"""The strip: what of all that is pressed, pasted, clicked or left alone lets an action go."""

from __future__ import annotations

from guards.mutant import row

STRIP = "console/actions/strip.py"
DESK = "screens/strip.py"
ERRANDS = "screens/errands.py"
T = "tests/actions/test_strip.py"
S = "tests/screens/test_strip_screen.py"
Y = "tests/pty/test_pty_strip.py"

ROWS = (
    row(
        "type-ahead: a key that was made before the strip was armed is judged by that time",
        STRIP,
        "if not self.counting or self.phase is Phase.DEAD_TIME or made_at < self._armed_at:",
        "if not self.counting or self.phase is Phase.DEAD_TIME:",
        f"{T}::test_a_key_is_judged_by_when_it_was_made_not_by_when_it_is_brought",
    ),
    row(
        "type-ahead: in the dead time the letter cancels",
        STRIP,
        "if not self.counting or self.phase is Phase.DEAD_TIME or made_at < self._armed_at:",
        "if not self.counting or made_at < self._armed_at:",
        f"{T}::test_in_the_dead_time_the_letter_itself_cancels",
    ),
    row(
        "type-ahead: before it was painted nothing confirms",
        STRIP,
        "if not self.counting or self.phase is Phase.DEAD_TIME or made_at < self._armed_at:",
        "if self.phase is Phase.DEAD_TIME or made_at < self._armed_at:",
        f"{T}::test_before_it_was_painted_every_key_but_its_own_cancels",
    ),
    row(
        "type-ahead: there is a dead time at all, also in a real terminal",
        STRIP,
        "DEAD_S = 0.7",
        "DEAD_S = 0.0",
        f"{T}::test_in_the_dead_time_the_letter_itself_cancels",
    ),
    row(
        "type-ahead: a held key restarts the dead time",
        STRIP,
        "self.phase, self.left, self._quiet = Phase.DEAD_TIME, self.seconds, 0.0",
        "self.phase, self.left = Phase.DEAD_TIME, self.seconds",
        f"{T}::test_repeats_of_the_same_key_restart_the_dead_time",
    ),
    row(
        "type-ahead: ticks that stumble make the dead time longer, never shorter",
        STRIP,
        "credit = min(CREDIT_S, max(0.0, now - max(self._tick, self._credit_from)))",
        "credit = max(0.0, now - max(self._tick, self._credit_from))",
        f"{T}::test_ticks_that_stumble_make_the_dead_time_longer_never_shorter",
    ),
    row(
        "any other key than the letter cancels",
        STRIP,
        "            self._cancel_by(shown(name))\n\n    def paste",
        "            pass\n\n    def paste",
        f"{T}::test_any_other_key_cancels_and_says_so",
    ),
    row(
        "a paste cancels",
        STRIP,
        'self._cancel_by("a paste")',
        "pass",
        f"{T}::test_pastes_clicks_and_resizes_only_cancel",
    ),
    row(
        "a click cancels",
        STRIP,
        'self._cancel_by("a click")',
        "pass",
        f"{T}::test_pastes_clicks_and_resizes_only_cancel",
    ),
    row(
        "a resize cancels",
        STRIP,
        'self.cancel("the terminal was resized")',
        "pass",
        f"{T}::test_pastes_clicks_and_resizes_only_cancel",
    ),
    row(
        "a paste reaches the strip and nobody else",
        DESK,
        "            strip.paste()\n",
        "            pass\n",
        f"{S}::test_a_paste_a_click_and_a_resize_cancel",
        f"{Y}::test_a_paste_cancels",
    ),
    row(
        "a stalled loop: a gap between painted ticks cancels",
        STRIP,
        "        if at - self._tick <= GAP_S:\n            return False",
        "        if True:\n            return False",
        f"{T}::test_a_gap_over_a_second_cancels_also_when_a_key_comes_first",
        f"{Y}::test_a_stalled_loop_cancels",
    ),
    row(
        "a stalled loop: a key that waited in it is held against the time at which it is judged",
        DESK,
        "            strip.looked_at(time.monotonic())\n",
        "",
        f"{S}::test_a_letter_that_waited_in_a_stall_never_confirms",
    ),
    row(
        "SIGSTOP and SIGCONT: a terminal that was taken again cancels",
        DESK,
        "        if self._taken_again() != self._away:\n            strip.suspended()\n",
        "",
        f"{S}::test_a_terminal_or_machine_that_was_away_cancels",
        f"{Y}::test_stopped_for_a_moment_and_continued_it_cancels_too",
    ),
    row(
        "a machine that slept cancels",
        DESK,
        "if abs(_parting() - self._slept) > SLEPT:",
        "if False:",
        f"{S}::test_a_terminal_or_machine_that_was_away_cancels",
    ),
    row(
        "a lost terminal cancels",
        DESK,
        'if getattr(self._app._driver, "lost", False):',
        "if False:",
        f"{S}::test_a_terminal_or_machine_that_was_away_cancels",
    ),
    row(
        "a terminal that takes nothing stops the countdown",
        DESK,
        "if self._handed and self._caught_up():",
        "if self._handed:",
        f"{Y}::test_a_terminal_that_takes_nothing_stops_the_countdown",
    ),
    row(
        "a flip of what the strip shows cancels",
        DESK,
        "            strip.state_changed(state_of(newest, errand.lane))\n",
        "            pass\n",
        f"{S}::test_a_flip_of_what_the_strip_shows_cancels",
    ),
    row(
        "a plan that comes out different while it is shown cancels",
        DESK,
        "                strip.state_changed(ready.shows)\n",
        "                pass\n",
        f"{S}::test_a_plan_that_comes_out_different_meanwhile_cancels",
    ),
    row(
        "what is typed on after a strip has ended acts on nothing",
        DESK,
        "            return isinstance(event, events.Key) and self._left_over(event)",
        "            return False",
        f"{S}::test_what_is_still_typed_when_a_strip_cancels_by_itself_acts_on_nothing",
        f"{S}::test_what_follows_the_name_and_enter_acts_on_nothing",
    ),
    row(
        "a letter strip never goes by itself",
        STRIP,
        "elif self.phase is Phase.ARMED and self.by is By.COUNTDOWN:",
        "elif self.phase is Phase.ARMED:",
        f"{T}::test_a_letter_strip_never_goes_by_itself",
    ),
    row(
        "the lane's name has to be typed exactly",
        STRIP,
        'return "" if self.exact and text == self.exact else f"that is not {self.exact}"',
        'return ""',
        f"{T}::test_anything_else_than_exactly_the_name_does_not_go",
    ),
    row(
        "no letter is one of the guarded keys or of those pressed by habit",
        STRIP,
        'LETTERS = "cfgjkmtu"',
        'LETTERS = "cfgjkmtus"',
        f"{T}::test_letters_are_none_of_the_guarded_keys",
    ),
    row(
        "a strip that goes is not told as cancelled by what became of the one before it",
        DESK,
        "            self._app.unsay()  # what became of a strip before is not true of this one\n",
        "",
        f"{S}::test_what_became_of_an_earlier_strip_never_stands_beside_one_that_goes",
    ),
    row(
        "a key that is dropped right after a strip that went is not dropped in silence",
        DESK,
        "            self._dropped, self._dropped_at = words, now\n",
        "",
        f"{S}::test_a_key_right_after_a_strip_that_went_is_said_to_be_dropped",
    ),
    row(
        "ages that a strip tells go on",
        DESK,
        "self._ready = self._ready.aged(ready)",
        "pass",
        f"{S}::test_ages_that_a_strip_tells_go_on",
    ),
    row(
        "a strip over a lease or a window cancels when that runs out",
        ERRANDS,
        '("what is asked for", needs), *self.rests_on',
        '("what is asked for", needs)',
        f"{S}::test_a_strip_over_a_lease_or_a_window_cancels_when_it_runs_out",
    ),
    row(
        "what was decided is not replaced under a strip",
        ERRANDS,
        "return self if self.decision is not None else replace(",
        "return replace(",
        f"{S}::test_what_was_decided_is_not_replaced_under_a_strip",
    ),
)
