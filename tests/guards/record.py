"""The record, the journal, the lease and the hands: what is on the disk before anything is sent, and who may send."""

from __future__ import annotations

from guards.mutant import row

LEDGER = "console/execution/ledger.py"
READING = "console/readings/ledger.py"
LOCKED = "console/execution/lockedfile.py"
HANDS = "console/execution/hands.py"
DECIDING = "console/execution/deciding.py"
RECORDING = "console/execution/recording.py"
CARRYING = "console/execution/carrying.py"
INFLIGHT = "console/execution/inflight.py"
TENURE = "console/execution/tenure.py"
SETTLING = "console/execution/settling.py"
HOLDING = "console/execution/holding.py"
KEEPER = "console/execution/lease.py"
LEASE = "console/execution/scripts/lease.sh"
SITUATION = "console/execution/situation.py"
L = "tests/execution/test_ledger.py"
R = "tests/readings/test_ledger_reading.py"
H = "tests/execution/test_hands.py"
G = "tests/execution/test_hands_holding.py"
M = "tests/execution/test_hands_last_look.py"
E = "tests/execution/test_lease.py"
K = "tests/execution/test_hands_lease_kept.py"
X = "tests/execution/test_hands_refused.py"
I = "tests/execution/test_inflight.py"  # noqa: E741

ROWS = (
    row(
        "hash chain: a changed line is noticed",
        READING,
        'if hashlib.sha256(raw[: end.start()] + b"}").hexdigest().encode() != end[1]:',
        "if False:",
        f"{R}::test_the_first_broken_line_is_named",
        f"{L}::test_verify_names_the_first_broken_line",
    ),
    row(
        "hash chain: a line that does not follow from the one before it is noticed",
        READING,
        'return "" if record.prev == last.h else f"it does not follow from record {last.seq} as it stands there"',
        'return ""',
        f"{R}::test_the_first_broken_line_is_named",
    ),
    row(
        "hash chain: a removed line is noticed",
        READING,
        "if record.seq != last.seq + 1:",
        "if False:",
        f"{R}::test_the_first_broken_line_is_named",
    ),
    row(
        "hash chain: lines that a head has and the file has not are missed",
        LEDGER,
        "return Verified(self.file, text, text.problem or problem,",
        "return Verified(self.file, text, text.problem,",
        f"{L}::test_lines_that_a_head_has_and_the_file_has_not_are_missed",
    ),
    row(
        "torn last line: it is put aside, and the next one does not run into it",
        LEDGER,
        "            if tail.torn:\n                tail = self._set_aside(descriptor, tail)\n",
        "",
        f"{L}::test_every_cut_of_the_last_line_is_put_aside_and_noted",
    ),
    row(
        "torn last line: zeros in the middle of it are torn too",
        LEDGER,
        '            if b"\\0" not in data[begin:end]:\n                break\n',
        "            break\n",
        f"{L}::test_zeros_where_a_crash_left_a_hole_are_torn",
    ),
    row(
        "the record is on the disk before the call returns",
        LOCKED,
        "            written += os.write(descriptor, raw[written:])\n        sync(descriptor)\n",
        "            written += os.write(descriptor, raw[written:])\n",
        f"{L}::test_a_record_is_on_the_disk_before_the_call_returns",
    ),
    row(
        "disk full: half a line is cut off again",
        LOCKED,
        "            os.ftruncate(descriptor, end)\n            os.fsync(descriptor)\n",
        "            pass\n",
        f"{L}::test_a_disk_that_is_full_in_the_middle_of_a_line_leaves_nothing_of_it",
    ),
    row(
        "disk full: it is found before anything is meant",
        LEDGER,
        "                keep(probe, bytes(ROOM), self._sync)\n",
        "                pass\n",
        f"{L}::test_a_disk_without_room_is_told_before_anything_is_meant",
    ),
    row(
        "two consoles: they write one chain, under a lock",
        LOCKED,
        "            _lock(descriptor, fcntl.LOCK_EX if write else fcntl.LOCK_SH, until, file)\n",
        "",
        f"{L}::test_a_lock_that_is_never_given_back_is_told",
    ),
    row(
        "two consoles: a ledger that was moved aside while its lock was waited for gets nothing more",
        LOCKED,
        "            if _same(descriptor, file):\n",
        "            if True:\n",
        f"{L}::test_a_file_that_is_moved_aside_while_its_lock_is_waited_for_gets_nothing_more",
    ),
    row(
        "links: the ledger is never written through one",
        LOCKED,
        "descriptor = os.open(file, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)",
        "descriptor = os.open(file, flags | os.O_CLOEXEC, 0o600)",
        f"{L}::test_what_is_no_file_is_not_written_to",
    ),
    row(
        "no secret reaches the record",
        LEDGER,
        "return line(redacted(text[:LOOKED_AT], self._known), MOST_TEXT)",
        "return line(text[:LOOKED_AT], MOST_TEXT)",
        f"{L}::test_no_secret_reaches_the_file",
    ),
    row(
        "the intent is recorded before the action goes",
        HANDS,
        "ledgered = await self._intent(plan, op, epoch, confirmation, came_from, glass=decision.break_glass)",
        "ledgered = True",
        f"{H}::test_an_action_is_recorded_before_it_goes_and_when_it_ended",
    ),
    row(
        "without a record nothing goes but break-glass",
        HANDS,
        'raise Refused(f"{error}: no record, no action; or break-glass") from error',
        "pass",
        f"{M}::test_a_record_that_cannot_be_made_in_the_last_moment_keeps_the_action_from_going",
    ),
    row(
        "console killed -9: the next one closes the intents that were left open",
        RECORDING,
        "        self._open |= unfinished(records)\n",
        "",
        f"{H}::test_a_console_that_is_gone_leaves_no_gap_in_the_record",
    ),
    row(
        "console killed -9: what it sent before it died may still arrive, and is waited for",
        RECORDING,
        "or time.time() - (kept.since or 0.0) < LATE_S or is_beginning(self._ledger.file, op):",
        "or is_beginning(self._ledger.file, op):",
        f"{M}::test_an_intent_is_not_written_off_while_what_was_sent_may_still_arrive",
    ),
    row(
        "console killed -9: an intent of a console that lives is not written off",
        RECORDING,
        "or time.time() - (kept.since or 0.0) < LATE_S or is_beginning(self._ledger.file, op):",
        "or time.time() - (kept.since or 0.0) < LATE_S:",
        f"{M}::test_an_intent_of_a_console_that_lives_is_not_written_off",
    ),
    row(
        "console killed -9: its death lets go of what it was beginning",
        INFLIGHT,
        "    except OSError:\n        return True\n    finally:\n",
        "    except OSError:\n        return True\n    else:\n        return True\n    finally:\n",
        f"{I}::test_a_console_that_is_killed_begins_nothing_any_more",
    ),
    row(
        "a lease is not given back under what is just being begun",
        SETTLING,
        """        if self._tenure.turn(lane).locked() or not self.idle(lane):
            return False
        async with self._tenure.turn(lane), alone(self._ledger.file, lane, wait=0.0) as first:
            if not first:
                return False
""",
        "        if True:\n",
        f"{K}::test_the_end_of_what_a_rollback_ended_does_not_give_its_lease_back",
    ),
    row(
        "a lease is not given back under what another console of ours has just begun",
        SETTLING,
        "if found.unknown or unread or not self.idle(lane):",
        "if found.unknown or not self.idle(lane):",
        f"{K}::test_what_another_console_of_ours_has_begun_keeps_the_lease",
    ),
    row(
        "a lease that was lost while something was ended begins nothing",
        HANDS,
        "await self.tenure.still(plan.lane, held, ask=bool(attempt.what))",
        "pass",
        f"{K}::test_a_lease_that_was_lost_while_something_was_ended_begins_nothing",
    ),
    row(
        "a window is not closed over what is just being begun",
        HOLDING,
        "            async with self._settling.by_itself(lane):\n"
        "                words = await self._closed(lane, typed)\n",
        "            words = await self._closed(lane, typed)\n",
        f"{K}::test_a_window_is_not_closed_over_what_is_being_begun",
    ),
    row(
        "a refusal says what was ended before it",
        HANDS,
        "        attempt.told(over=not left)\n",
        "",
        f"{X}::test_a_stop_that_ended_what_ran_and_did_not_begin_says_so",
        f"{X}::test_what_ended_a_relaunch_and_could_not_be_carried_out_says_so",
    ),
    row(
        "a stop goes on past a host that it leaves out",
        HANDS,
        "any(one.host not in plan.left_out for one in left)",
        "left",
        f"{X}::test_a_stop_goes_on_past_a_step_on_a_host_that_it_leaves_out",
    ),
    row(
        "a stop does not begin beside what may still act",
        HANDS,
        "any(one.host not in plan.left_out for one in left)",
        "False",
        f"{X}::test_a_stop_that_ended_what_ran_and_did_not_begin_says_so",
    ),
    row(
        "a lease that was taken for nothing is given back: window, take-over, carrying on",
        HOLDING,
        "            if held.id not in ours:\n",
        "            if False:\n",
        f"{X}::test_a_window_that_was_not_opened_keeps_no_lease",
        f"{X}::test_a_take_over_without_a_record_takes_nothing",
        f"{X}::test_what_is_not_carried_on_keeps_no_lease",
    ),
    row(
        "a lane is taken over from whom it was shown with alone, not from a third who took it since",
        TENURE,
        "not is_mine(found, self.own) and shown not in (None, found.id):",
        "False:",
        f"{G}::test_a_lease_that_ran_out_is_taken_from_nobody_else",
        f"{G}::test_a_take_over_goes_against_whom_it_was_shown_with",
        f"{G}::test_what_is_carried_on_takes_the_lane_from_whom_it_was_shown_with",
    ),
    row(
        "a debt is not overdue before there was time to pay it",
        CARRYING,
        "due = deadline if deadline and deadline > now else now + OWED_S",
        "due = deadline or now + OWED_S",
        f"{H}::test_a_debt_is_not_overdue_before_there_was_time_to_pay_it",
    ),
    row(
        "an outcome is told once by however many consoles",
        LEDGER,
        "            if once and _told(descriptor, kind, entry):\n                return None\n",
        "",
        f"{I}::test_an_outcome_is_told_once_by_however_many_consoles",
    ),
    row(
        "plan hash: a plan that comes out different between confirmation and beginning is refused",
        HANDS,
        "            if now.id != plan.id:\n",
        "            if False:\n",
        f"{H}::test_a_plan_that_comes_out_different_is_refused",
    ),
    row(
        "what it takes now and was not shown is refused",
        HANDS,
        "            same_situation(decision, fresh, self.tenure.given_back(plan.lane))\n",
        "",
        f"{M}::test_what_was_not_shown_is_refused",
    ),
    row(
        "a Grant is taken up before lease and record are asked for",
        HANDS,
        "policy.take_up(grant, plan.id, plan.verb, plan.lane, policy.clock(), fresh.epoch)",
        "pass",
        f"{M}::test_a_leave_that_cannot_be_used_begins_nothing",
    ),
    row(
        "what begins an operation spends its Grant itself",
        "console/execution/carrying.py",
        "glass = policy.spend(grant, plan.id, plan.verb, plan.lane, policy.clock(), epoch)",
        "glass = False",
        f"{M}::test_every_grant_is_spent",
        "tests/execution/test_grant_demanded.py::test_whatever_stands_in_place_of_a_grant_nothing_is_sent",
    ),
    row(
        "a head whose state folder is broken is out of reach",
        "console/execution/situation.py",
        "head_ok=head_up and not broken,",
        "head_ok=head_up,",
        "tests/execution/test_break_glass.py::test_the_intent_lies_where_it_acts_and_here",
    ),
    row(
        "a damaged lease is nobody's to tell",
        "console/execution/situation.py",
        "    if acting.lease_unknown:\n",
        "    if False:\n",
        "tests/readings/test_acting.py::test_a_lease_that_may_not_be_read_may_be_somebodys",
    ),
    row(
        "in the state folder no link is followed by looks",
        "console/reach/files_host.py",
        "os.O_RDONLY | os.O_NOFOLLOW | kind, dir_fd=fd)",
        "os.O_RDONLY | kind, dir_fd=fd)",
        "tests/reach/test_survey_files.py::test_below_a_folder_that_others_may_write_to_no_link_is_followed",
    ),
    row(
        "two consoles of one operator: one begins at a time on a lane",
        HANDS,
        "            if not first and plan.verb is not Verb.ROLLBACK:\n",
        "            if False:\n",
        f"{M}::test_while_another_console_of_ours_begins_nothing_is_begun_beside",
    ),
    row(
        "two consoles of one operator: what was just begun and is not read yet is not begun beside",
        HANDS,
        "            await self.deciding.no_other(plan.lane, plan.verb, newest)\n",
        "",
        f"{M}::test_what_the_picture_does_not_show_yet_is_not_begun_beside",
    ),
    row(
        "break-glass never goes past a lease that another holds",
        HANDS,
        "        except HeldByAnother:\n            raise  # break-glass",
        "        except ZeroDivisionError:\n            raise  # break-glass",
        f"{G}::test_break_glass_never_goes_past_a_lease_that_another_holds",
    ),
    row(
        "a console that slept and was overtaken drops what was queued",
        TENURE,
        "        if words and not over:\n",
        "        if False:\n",
        f"{M}::test_a_console_that_was_overtaken_drops_what_was_queued",
    ),
    row(
        "a lease is taken over from the one who was shown, and from nobody else",
        LEASE,
        '|| { [ -n "$seen" ] && [ "$seen" != "$l_id" ]; }',
        "",
        f"{E}::test_who_was_overtaken_by_a_third_takes_nothing_over",
    ),
    row(
        "a lease that ran out is not free: it is taken over by name",
        LEASE,
        'if [ "$holder" = held ] && { [ "$over" != over ]',
        'if [ "$holder" = held ] && [ $((l_renewed + l_ttl)) -gt "$now" ] && { [ "$over" != over ]',
        f"{E}::test_an_expired_lease_is_not_free_but_can_be_taken_over_and_names_both",
    ),
    row(
        "two consoles: of many who take at once one gets the lease",
        LEASE,
        '[ "$verb" = show ] || lock\n',
        "",
        f"{E}::test_of_many_who_take_at_once_one_gets_it",
    ),
    row(
        "after a takeover nothing of the old holder is heeded",
        LEASE,
        '[ "$holder" != held ] || [ "$l_id" != "$1" ] || return 0',
        "return 0",
        f"{E}::test_after_a_takeover_nothing_of_the_old_holder_is_heeded",
    ),
    row(
        "epochs grow whatever happens to the lease",
        LEASE,
        "highest=$((highest + 1))",
        "highest=$highest",
        f"{E}::test_epochs_grow_whatever_happens_to_the_lease",
    ),
    row(
        "SIGSTOP: a console that slept asks the head before it says that the lane is its own",
        KEEPER,
        "asleep = self._doubt or self._clock() - self._ticked > ASLEEP",
        "asleep = False",
        f"{E}::test_a_console_that_slept_asks_before_it_says_mine",
        f"{E}::test_a_stalled_loop_counts_as_sleep",
    ),
    row(
        "SIGSTOP: the doubt of a sleep stays until the head has answered",
        KEEPER,
        "self._doubt = self._doubt or now - self._ticked > ASLEEP",
        "self._doubt = False",
        f"{E}::test_the_doubt_of_a_sleep_stays_until_the_head_has_answered",
    ),
    row(
        "without an answer a lease is ours for its time to live and no longer",
        KEEPER,
        "return not self.lost.is_set() and not asleep and self._clock() < self._sure_until",
        "return not self.lost.is_set() and not asleep",
        f"{E}::test_without_an_answer_a_lease_is_ours_for_its_time_to_live_and_no_longer",
    ),
    row(
        "a lease whose epoch was overtaken is lost",
        KEEPER,
        "if ours and answer.highest <= self.lease.epoch:",
        "if ours:",
        f"{E}::test_a_lease_whose_epoch_was_overtaken_is_lost",
    ),
    row(
        "a lease whose answer was lost is looked up",
        KEEPER,
        "if found.lease is not None and found.lease.id == id:",
        "if False:",
        f"{E}::test_a_lost_answer_is_looked_up",
    ),
    row(
        "an expired lease of another is EXPIRED, a living one OTHER",
        SITUATION,
        "return (Holder.EXPIRED if lease.expired(now) else Holder.OTHER), words",
        "return Holder.EXPIRED, words",
        f"{H}::test_another_operator_is_denied_and_may_take_over",
    ),
    row(
        "an acting state that was not read lately says nothing of who holds the lane",
        SITUATION,
        "acting = reading.current(snapshot.now) if reading is not None else None",
        "acting = reading.value if reading is not None else None",
        f"{M}::test_who_holds_the_lane_is_unknown_once_the_reading_is_old",
    ),
)
