"""What is sent to hosts to keep a step: once, fenced, found again, truthful of its end."""

from __future__ import annotations

from guards.mutant import row

COMMON = "console/execution/scripts/common.sh"
STARTER = "console/execution/scripts/starter.sh"
STEP = "console/execution/scripts/step.sh"
DEADMAN = "console/execution/scripts/deadman.sh"
FENCE = "console/execution/scripts/fence.sh"
APPEND = "console/execution/scripts/append.sh"
PRUNE = "console/execution/scripts/prune.sh"
DETACHED = "console/execution/detached.py"
D = "tests/execution/test_detached.py"
F = "tests/execution/test_host_files.py"
X = "tests/execution/test_runner_real.py"

ROWS = (
    row(
        "no step twice: what was started before is joined, not started again",
        STARTER,
        'echo "$op/$step was started already" >&2\n        exit 3\n',
        ":\n",
        f"{D}::test_two_starts_at_once_are_one_step",
    ),
    row(
        "no step twice: whoever links the beginning second ends there",
        STARTER,
        "ln ./ready.\\$\\$ ./begun 2>/dev/null || { : >./second.$mode; exit 97; }",
        "ln ./ready.\\$\\$ ./begun 2>/dev/null || :",
        f"{D}::test_a_second_manager_with_the_same_step_does_not_run_it_again",
    ),
    row(
        "no step twice: a late copy of a start has nothing to write on",
        STARTER,
        "mv ./ready.$mode ./ready.\\$\\$ 2>/dev/null || exit 97",
        "cp ./ready.$mode ./ready.\\$\\$ 2>/dev/null; rm -f ./begun",
        f"{D}::test_late_copies_of_a_start_do_not_run_it_again",
    ),
    row(
        "no step twice: a start whose answer was lost is looked up, not sent again",
        DETACHED,
        "    return await _look_up(link, folder, op, step, answer.problem)\n",
        "    return await start(link, folder, op, step, epoch, argv, stdin=stdin, limit=limit, mode=mode)\n",
        f"{D}::test_a_lost_answer_is_looked_up_and_never_sent_again",
    ),
    row(
        "no step twice: a start of which nothing is found is unknown, not refused",
        DETACHED,
        'return Refused(f"whether it was started is not known: {found.words}", unknown=True)',
        'return Refused(f"whether it was started is not known: {found.words}")',
        f"{D}::test_a_start_of_which_nothing_is_found_is_unknown_not_refused",
    ),
    row(
        "detached: a step is a session of its own and outlives the link that started it",
        STARTER,
        'setsid -f $reset /bin/sh -c "$entering" </dev/null >/dev/null 2>&1 9>&-',
        '/bin/sh -c "$entering" </dev/null >/dev/null 2>&1 9>&- &',
        f"{D}::test_it_is_no_part_of_the_group_that_started_it",
    ),
    row(
        "disk full: a file of the state folder is replaced whole or not at all",
        COMMON,
        'sync "$laneswap_temp" 2>&1); then\n        rm -f "$laneswap_temp"\n',
        'sync "$laneswap_temp" 2>&1); then\n',
        f"{F}::test_a_full_disk_leaves_the_old_file_and_nothing_half_written",
    ),
    row(
        "disk full: an append that does not fit is taken back",
        APPEND,
        '    truncate -s "$length" "$file" 2>/dev/null\n',
        "",
        f"{F}::test_an_append_that_does_not_fit_is_taken_back",
    ),
    row(
        "what was cut off on its way to a host is not written",
        COMMON,
        'if [ -n "${2:-}" ] && [ "$(wc -c <"$laneswap_temp")" -ne "$2" ]; then',
        "if false; then",
        f"{F}::test_what_was_cut_off_on_the_way_is_not_written",
    ),
    row(
        "ssh killed: an append whose answer was lost adds once",
        APPEND,
        'if [ -n "$at" ] && [ "$at" -ne "$length" ]; then',
        "if false; then",
        f"{F}::test_appending_twice_after_a_lost_answer_adds_once",
    ),
    row(
        "torn last line: of a file on the head it does not swallow the next one",
        APPEND,
        'if [ "$length" -gt 0 ] && [ -n "$(tail -c 1 "$file")" ]; then',
        "if false; then",
        f"{F}::test_a_torn_line_does_not_swallow_the_next",
    ),
    row(
        "fence: every host refuses a command of an older epoch",
        COMMON,
        'if [ "$highest" -gt "$1" ]; then',
        "if false; then",
        f"{D}::test_an_older_epoch_is_refused_and_a_newer_one_remembered",
        f"{D}::test_an_older_epoch_stops_nothing",
        f"{F}::test_an_older_epoch_writes_nothing",
        f"{X}::test_an_older_epoch_is_fenced_off_by_the_hosts_own_scripts",
    ),
    row(
        "fence: every host remembers a newer epoch",
        COMMON,
        '[ "$kept" = "$1" ] || printf \'%s\\n\' "$1" | store "$D/epoch" || exit $?',
        ":",
        f"{D}::test_an_older_epoch_is_refused_and_a_newer_one_remembered",
    ),
    row(
        "fence: a step is not started past it",
        STARTER,
        '    lock\n    fence "$epoch"\n    look locked\n',
        "    lock\n    look locked\n",
        f"{D}::test_an_older_epoch_is_refused_and_a_newer_one_remembered",
    ),
    row(
        "fence: no command runs past it",
        FENCE,
        'fence "$epoch"\n',
        "",
        f"{D}::test_an_older_epoch_stops_nothing",
        f"{X}::test_an_older_epoch_is_fenced_off_by_the_hosts_own_scripts",
    ),
    row(
        "fence: a damaged epoch stops everything",
        COMMON,
        'first_line "$D/epoch" && number "$text" || cannot',
        'first_line "$D/epoch" && number "$text" || text=0 || cannot',
        "tests/execution/test_lease.py::test_a_damaged_epoch_stops_everything_with_words",
    ),
    row(
        "host reboot: a step of another boot is LOST, whoever has its pid now",
        STEP,
        '    [ "$boot" != changed ] || return 1\n',
        "",
        f"{D}::test_a_step_of_another_boot_is_lost_whoever_has_its_pid_now",
    ),
    row(
        "pid verified: a number that was given to another process is not the step",
        STEP,
        '[ "$p_start" = "$2" ]',
        '[ -n "$p_start" ]',
        f"{D}::test_a_pid_that_was_given_to_another_process_is_not_the_step",
    ),
    row(
        "killed by TERM is stopped, not success",
        STEP,
        '            state=stopped words="ended by signal $signal"\n        fi\n        ;;\n    exit-code)',
        "            state=done\n        fi\n        ;;\n    exit-code)",
        f"{D}::test_a_term_from_elsewhere_is_stopped_and_a_kill_is_failed",
    ),
    row(
        "an exit after a stop is stopped, not done",
        STEP,
        '    if [ "$4" = yes ]; then\n        state=stopped',
        "    if false; then\n        state=stopped",
        f"{D}::test_an_exit_after_a_stop_is_stopped_not_done",
    ),
    row(
        "a step that is gone without a result is LOST, not done",
        STEP,
        'state=lost words="it is gone and left no result: it was killed, or its result could not be written"',
        'state=done words=""',
        f"{D}::test_a_killed_supervisor_is_not_yet_the_end_of_its_step",
    ),
    row(
        "a damaged result is LOST",
        STEP,
        'state=lost words="its result file is damaged"',
        "state=done words=",
        f"{D}::test_a_damaged_result_is_lost_with_words",
    ),
    row(
        "the watchdog lives on after its launcher: where a step keeps it, its session is left alone",
        STARTER,
        '[ "$keeps" = 1 ] || marked=$op/$step',
        "marked=$op/$step",
        f"{D}::test_what_a_step_leaves_behind_lives_on_only_where_it_keeps_it",
    ),
    row(
        "a step that was stopped before it began never begins",
        STEP,
        '        [ "$asked" = no ] || state=stopped words="stopped by an operator before it began"\n        return 0\n',
        "        return 0\n",
        f"{D}::test_a_step_that_was_stopped_before_it_began_never_begins",
    ),
    row(
        "a step that does not heed its end is killed",
        STARTER,
        "            said=$(end_step KILL)\n            until_ended 15 ||",
        "            until_ended 1 ||",
        f"{D}::test_stop_kills_what_does_not_heed_it",
    ),
    row(
        "a step has a time limit",
        STARTER,
        '    trap : TERM\n    : >./timed\n    end_all 10 "\\$\\$" "\\$marked"\n',
        "    trap : TERM\n",
        f"{D}::test_the_time_limit_ends_it_with_words",
    ),
    row(
        "environment clean: no exported knob reaches a step",
        STARTER,
        "cd %s || cd /\\nexec env -i'",
        "cd %s || cd /\\nexec env'",
        f"{D}::test_no_exported_knob_reaches_a_step",
    ),
    row(
        "links: a file of the state folder is never written through one",
        COMMON,
        '[ ! -L "$1" ] || cannot "$1 is a symbolic link, which is refused"\n    [ ! -e "$1" ] ||',
        '[ ! -e "$1" ] ||',
        f"{F}::test_a_link_in_place_of_the_file_is_refused",
    ),
    row(
        "links: no folder on the way is one",
        COMMON,
        'real_folder() {\n    [ ! -L "$1" ] || cannot "$1 is a symbolic link, which is refused"\n',
        "real_folder() {\n",
        f"{F}::test_links_in_the_way_are_refused",
    ),
    row(
        "links: a step's folder is none",
        STEP,
        'for one in "$D/ops" "$D/ops/$1" "$S"; do\n        [ ! -L "$one" ] ||',
        'for one in "$D/ops" "$D/ops/$1" "$S"; do\n        true ||',
        f"{D}::test_links_in_the_way_are_refused",
    ),
    row(
        "a folder that was put in place of the step's own runs nothing",
        STARTER,
        'entering="cd -P $S && test -O . && test -O ./$1 && test ! -L ./$1 && exec /bin/sh ./$1"',
        'entering="cd -P $S && exec /bin/sh ./$1"',
        f"{D}::test_a_folder_put_in_place_of_the_steps_own_runs_nothing",
    ),
    row(
        "a state folder that every account may write to is refused",
        COMMON,
        "    *[2367]) cannot",
        "    *x) cannot",
        f"{F}::test_a_folder_that_everybody_may_write_to_is_refused",
    ),
    row(
        "no name leads out of the state folder",
        COMMON,
        "*) cannot \"not a file of the state folder: $1\" ;;\n    esac\n    case $1 in\n    '' |",
        "*) ;;\n    esac\n    case $1 in\n    '' |",
        f"{F}::test_names_that_lead_elsewhere_are_refused",
    ),
    row(
        "no child inherits the lane's lock",
        FENCE,
        "\nunlock\n",
        "\n",
        f"{D}::test_the_fence_hands_stdin_umask_and_locale_on_and_no_lock",
    ),
    row(
        "what still runs is not removed with old operations",
        PRUNE,
        '"$D/window.json" "$D/debts.json" || runs "$1"',
        '"$D/window.json" "$D/debts.json"',
        "tests/execution/test_aftercare.py::test_what_runs_is_current_or_is_named_stays",
    ),
    row(
        "nobody at a console: an overdue debt is told once, and is told",
        DEADMAN,
        'grep -qxF "$1" "$D/deadman.said" 2>/dev/null && return 0',
        ":",
        "tests/execution/test_deadman.py::test_an_overdue_debt_is_told_once_and_stays_owed",
    ),
    row(
        "nobody at a console: a lease that ran out over a lane that serves calls nobody",
        DEADMAN,
        "    lane_is_down || return 0\n",
        "",
        "tests/execution/test_deadman.py::test_a_lease_that_ran_out_is_told_only_with_the_lane_down",
    ),
    row(
        "nobody at a console: what could not be told is told at the next look",
        DEADMAN,
        'http webhook "$own/message" || return 1',
        'http webhook "$own/message" || :',
        "tests/execution/test_deadman.py::test_a_webhook_that_fails_is_tried_again_at_the_next_look",
    ),
    row(
        "what was told not to have begun never begins",
        STARTER,
        '    [ "$state" != absent ] || withdraw || wait_until_begun\n',
        "",
        "tests/execution/test_detached.py::test_what_was_told_not_to_have_begun_never_begins_and_may_be_started_again",
    ),
)
