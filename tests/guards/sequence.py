"""The runner and what carries a sequence: looked up before anything is done twice, never more than was seen."""

from __future__ import annotations

from guards.mutant import row

BASE = "console/execution/runner_base.py"
RUNNER = "console/execution/runner.py"
HOSTS = "console/execution/runner_hosts.py"
HEAD = "console/execution/runner_head.py"
CONSOLE = "console/execution/sequence_console.py"
ON_HEAD = "console/execution/sequence_head.py"
CARRYING = "console/execution/carrying.py"
PLACING = "console/execution/placing.py"
OPERATION = "console/readings/acting_operation.py"
W = "tests/execution/test_runner.py"
X = "tests/execution/test_runner_real.py"
C = "tests/execution/test_sequence_console.py"
Q = "tests/execution/test_sequence_head.py"
A = "tests/readings/test_acting.py"
H = "tests/execution/test_hands.py"

ROWS = (
    row(
        "no step twice: of a short command too, by its folder",
        BASE,
        'if ! mkdir -m 755 "$folder" 2>/dev/null; then',
        'if ! mkdir -p -m 755 "$folder" 2>/dev/null; then',
        f"{X}::test_a_short_command_that_is_sent_again_does_not_run_again",
    ),
    row(
        "no step twice: a step that a killed runner left is looked up first",
        RUNNER,
        "state, words = self._resume(attempt) if lines else self._begin(attempt)",
        "state, words = self._begin(attempt)",
        f"{W}::test_a_step_that_a_killed_runner_left_is_looked_up_first",
    ),
    row(
        "no step twice: an operation that has ended is not carried out again",
        RUNNER,
        'if told and told[-1]["kind"] == "end":',
        "if False:",
        f"{W}::test_an_operation_that_has_ended_is_not_carried_out_again",
    ),
    row(
        "two consoles: a second runner is refused while the first one lives",
        HEAD,
        "        fcntl.flock(running, fcntl.LOCK_EX | fcntl.LOCK_NB)\n    except OSError:\n",
        "        pass\n    except OSError:\n",
        f"{X}::test_a_second_runner_is_refused_while_the_first_one_lives",
    ),
    row(
        "two consoles of one machine do not carry a sequence out at once",
        CONSOLE,
        "        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)\n    except OSError as error:\n",
        "        pass\n    except OSError as error:\n",
        f"{C}::test_two_consoles_of_one_machine_do_not_carry_it_out_at_once",
    ),
    row(
        "console killed -9: every line is on the disk before its command leaves",
        RUNNER,
        '        self._tell(a.step, a.kind, RUNNING, "")\n',
        "",
        f"{W}::test_a_line_is_written_before_a_command_leaves_and_another_one_after",
        f"{W}::test_a_journal_that_cannot_be_written_keeps_the_command_from_leaving",
    ),
    row(
        "the journal is synced before a command leaves",
        HEAD,
        "            os.fsync(self._file)\n        except OSError as error:",
        "            pass\n        except OSError as error:",
        f"{X}::test_a_line_is_on_the_disk_when_it_is_written",
    ),
    row(
        "torn last line: what a killed runner left of one is cut off",
        HEAD,
        "            if whole != len(data):\n                os.ftruncate(self._file, whole)\n",
        "",
        f"{X}::test_killed_before_each_of_its_writes_it_goes_on_and_no_step_runs_twice",
    ),
    row(
        "disk full: half a line of the journal is taken back",
        HEAD,
        '                os.ftruncate(self._file, self._size)\n            raise JournalLost(f"the journal cannot',
        '                pass\n            raise JournalLost(f"the journal cannot',
        f"{X}::test_half_a_line_is_taken_back",
    ),
    row(
        "fence: all hosts of a plan learn the epoch before its first step",
        RUNNER,
        'self.hosts.fence_all(sorted(hosts - {self.operation["head"]} if self.runs_on == "head" else hosts))',
        "pass",
        f"{W}::test_all_hosts_are_fenced_before_the_first_step",
    ),
    row(
        "fence: the head is asked anew before each step",
        RUNNER,
        "            trouble = self.hosts.ours(lambda: self._left(a))\n",
        '            trouble = ""\n',
        f"{W}::test_the_head_is_asked_before_each_step_whose_lease_it_is",
    ),
    row(
        "fence: an optional step that is fenced ends the sequence too",
        RUNNER,
        'if state not in FINE and (not step["optional"] or state == FENCED):',
        'if state not in FINE and not step["optional"]:',
        f"{W}::test_an_optional_step_that_is_fenced_ends_it_too",
    ),
    row(
        "ssh killed: a command whose answer was lost is looked up",
        HOSTS,
        "if done.status is None or done.status == 3:\n            return None",
        'if done.status is None or done.status == 3:\n            return {"state": FAILED}',
        f"{W}::test_a_lost_answer_is_looked_up_and_the_command_runs_once",
        f"{X}::test_a_rank_out_of_reach_in_the_middle_and_back",
    ),
    row(
        "ssh killed: an answer without its end is no answer",
        HEAD,
        'return Done(None, "", last_line(done.err) or "the connection was lost")',
        "return done",
        f"{X}::test_a_rank_out_of_reach_in_the_middle_and_back",
    ),
    row(
        "DROP: a host that is away is asked again until the limit, and then its outcome is unknown",
        RUNNER,
        "state = FAILED if any(done.status == 1 for _, done in unseen) else UNKNOWN",
        "state = FAILED",
        f"{W}::test_what_nobody_could_observe_is_unknown_not_failed",
    ),
    row(
        "DROP: a precondition whose answer was lost is asked for again",
        RUNNER,
        "over = asked >= UNSURE if unsure else self._left(a) <= 0",
        "over = True",
        f"{W}::test_a_precondition_whose_answer_was_lost_is_asked_for_again",
        f"{W}::test_a_host_that_does_not_know_yet_whether_a_step_may_begin_is_asked_again",
    ),
    row(
        "host reboot: a unit that went down with its host was stopped by nobody",
        RUNNER,
        "if state in (FAILED, STOPPED) and not down_with_its_host(found):",
        "if state in (FAILED, STOPPED):",
        f"{W}::test_a_unit_that_went_down_with_its_host_was_not_stopped_by_anybody",
    ),
    row(
        "host reboot: a host that came up after the step began may have forgotten it",
        HOSTS,
        'return re.fullmatch(r"\\d+(\\.\\d*)?", up) is not None and float(up) < self.clock.wall() - a.since',
        "return False",
        f"{W}::test_a_host_that_was_restarted_is_not_sent_the_command_again",
    ),
    row(
        "host reboot: an operation whose head was restarted is LOST",
        OPERATION,
        "    if _restarted(operation, pulse):\n        return False\n",
        "",
        f"{A}::test_a_restarted_head_loses_it_whatever_was_written_a_moment_ago",
    ),
    row(
        "environment clean: no word of the operator's shell gets in by the sheet",
        "console/execution/sequence_sheet.py",
        "env -i",
        "env",
        "tests/execution/test_sequence.py::test_a_variable_of_the_operators_shell_does_not_leak_into_a_launcher",
    ),
    row(
        "what holds already is not done again",
        RUNNER,
        "if already and all(done.status == 0 for _, done in already):",
        "if False:",
        f"{W}::test_what_holds_already_is_satisfied_and_not_run",
    ),
    row(
        "a precondition that does not hold ends the plan before its command",
        RUNNER,
        "        trouble = self._before(a, before)\n        if trouble:\n            return FAILED, trouble\n",
        "",
        f"{W}::test_a_precondition_that_does_not_hold_ends_the_plan_before_its_command",
    ),
    row(
        "what must be seen afterwards is waited for, not believed",
        RUNNER,
        "unseen = [pair for pair in answers if pair[1].status != 0]",
        "unseen = []",
        f"{W}::test_what_is_waited_for_is_told_and_past_the_limit_it_has_failed",
    ),
    row(
        "what is seen with the end of a unit counts where every answer is yes",
        BASE,
        'if code != "0":',
        "if not code:",
        f"{W}::test_what_is_seen_with_the_end_of_a_unit_is_not_asked_again",
    ),
    row(
        "a worker that dies ends the launcher at once",
        RUNNER,
        'return missing([pair for pair in self.hosts.ask(a.step["watch"]) if pair[1].status == 1])',
        'return ""',
        f"{W}::test_a_watched_worker_that_dies_ends_the_command_at_once",
    ),
    row(
        "what is left of a failed launch is looked after",
        RUNNER,
        "if state == FAILED and self._needs_rescue():",
        "if False:",
        f"{W}::test_rescue_is_done_after_a_failure_and_only_where_the_lane_was_touched",
    ),
    row(
        "told to stop no further step is begun",
        RUNNER,
        "        self.hosts.halt.set()  # nothing begins",
        "        # nothing begins",
        f"{W}::test_told_to_stop_it_begins_no_further_step",
    ),
    row(
        "console killed -9: a sequence in it is carried on by another console",
        CONSOLE,
        '        resumed = found.text if found.there else ""\n',
        '        resumed = ""\n',
        f"{C}::test_a_console_that_died_is_carried_on_by_another_and_no_step_runs_twice",
    ),
    row(
        "SIGSTOP: a sequence in a console that wakes up fenced begins nothing",
        HOSTS,
        "                raise Fenced(self._holder(words))\n",
        "                self.epoch = refused + 1\n",
        f"{C}::test_a_console_that_wakes_up_fenced_acts_no_more",
        f"{W}::test_a_newer_lease_fences_the_sequence_and_the_words_name_its_holder",
    ),
    row(
        "console killed -9: another journal on the head is not written over",
        CONSOLE,
        "        if not mine.startswith(found.data):\n",
        "        if False:\n",
        f"{C}::test_another_journal_on_the_head_is_not_written_over",
    ),
    row(
        "an operation that may or may not have begun is not begun elsewhere",
        ON_HEAD,
        "    cannot = not found.unknown and not found.files\n"
        "    return OnHead(False, found.problem, unknown=found.unknown, cannot=cannot, unit=unit)",
        "    return OnHead(False, found.problem, unknown=False, cannot=True, unit=unit)",
        f"{Q}::test_a_start_of_which_nothing_is_heard_is_begun_nowhere_else",
    ),
    row(
        "console killed -9: its sequence is called HALF DONE once its lease has run out",
        OPERATION,
        "if lease is not None and lease.epoch == operation.epoch and not lease.expired(clock):",
        "if lease is not None and lease.epoch == operation.epoch:",
        f"{A}::test_in_a_console_the_lease_is_the_pulse",
    ),
    row(
        "a step that nobody followed to its end is unknown, never done",
        OPERATION,
        "return replace(step, state=StepState.UNKNOWN, words=words or",
        "return replace(step, state=StepState.DONE, words=words or",
        f"{A}::test_a_step_that_nobody_followed_to_its_end_is_unknown",
    ),
    row(
        "a torn last line of a journal is no damage and no word",
        OPERATION,
        "torn = rows.pop()",
        'torn = ""',
        f"{A}::test_a_torn_last_line_is_no_damage",
    ),
    row(
        "a rollback ends what runs before it begins",
        CARRYING,
        "words = await sequence_head.stop(link, stored, operator=self._own.operator, epoch=epoch, steps=True)",
        'words = ""',
        "tests/execution/test_hands_holding.py::test_what_a_rollback_ended_has_an_outcome_too",
    ),
    row(
        "a debt is written down before the watchdog is switched off",
        PLACING,
        "        if owes and step.stage is Stage.WATCHDOG and step.argv:\n",
        "        if False:\n",
        "tests/execution/test_carrying_debts.py::test_what_is_owed_is_written_down_before_the_watchdog_is_switched_off",
    ),
    row(
        "a debt is struck out once the watchdog is armed again",
        PLACING,
        "    if plan.pays or any(step.stage is Stage.ARM for step in plan.steps):\n",
        "    if False:\n",
        "tests/execution/test_carrying_debts.py::test_what_is_owed_is_struck_out_once_the_watchdog_is_armed",
    ),
    row(
        "a debt that stands keeps its beginning",
        CARRYING,
        'debt = "" if _owed(view) else self._debt(op, due, view)',
        "debt = self._debt(op, due, view)",
        f"{H}::test_a_debt_that_stands_keeps_its_beginning",
    ),
    row(
        "host reboot: only what an earlier start of the host ran is put aside and begun once more",
        BASE,
        '[ "$boot" != "$now" ] || {',
        "true || {",
        f"{X}::test_only_what_an_earlier_start_of_the_host_ran_is_put_aside",
    ),
    row(
        "host reboot: a step that nobody may repeat is left to a person",
        RUNNER,
        'if found is not None and a.step.get("again") and',
        "if found is not None and",
        f"{W}::test_a_step_that_nobody_may_repeat_is_left_to_a_person",
    ),
)
