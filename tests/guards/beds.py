"""What only real hosts show: systemd's kill modes and limits, cut networks, restarted hosts, accounts, full disks."""

from __future__ import annotations

from guards.mutant import row

STARTER = "console/execution/scripts/starter.sh"
STEP = "console/execution/scripts/step.sh"
COMMON = "console/execution/scripts/common.sh"
CARRYING = "console/execution/carrying.py"
D = "tests/fleet/test_bed_detached.py"

ROWS = (
    row(
        "the watchdog is kept alive after its launcher: a unit that keeps what it leaves ends its main process alone",
        STARTER,
        'set -- "$@" -p KillMode=process',
        'set -- "$@" -p KillMode=control-group',
        f"{D}::test_a_launchers_daemon_lives_on_only_where_the_step_keeps_it",
        bed=True,
    ),
    row(
        "console killed -9, ssh killed, DROP: the sequence runs on the head and needs no console",
        CARRYING,
        "return await self.ways(view, plan)",
        'return "kept in the console"',
        "tests/fleet/test_bed_action_faults.py::test_a_host_that_is_out_of_reach_for_a_while_finishes_by_itself",
        bed=True,
    ),
    row(
        "user units end at logout: without lingering a step is no unit of the account",
        STARTER,
        "    if ! lingers; then\n",
        "    if false; then\n",
        f"{D}::test_each_account_gets_what_its_host_gives_it",
        bed=True,
    ),
    row(
        "a user manager that began before the account joined a group is not used",
        STARTER,
        "            groups_of_manager || why_user=",
        "            true || why_user=",
        f"{D}::test_a_manager_without_the_accounts_groups_is_not_used",
        bed=True,
    ),
    row(
        "environment clean: what the user manager was told does not get into a step",
        STARTER,
        "cd %s || cd /\\nexec env -i'",
        "cd %s || cd /\\nexec env'",
        f"{D}::test_what_the_manager_was_told_does_not_leak_into_a_step",
        bed=True,
    ),
    row(
        "a copier is ended at its memory cap",
        STARTER,
        '[ "$memory" = - ] || set -- "$@" -p MemoryMax="$memory" -p MemorySwapMax=0',
        ":",
        f"{D}::test_a_copier_is_ended_at_its_memory_cap",
        bed=True,
    ),
    row(
        "host reboot: a step of before is LOST by the boot id",
        STEP,
        'if [ "$text" = "$now_boot" ]; then boot=same; else boot=changed; fi',
        "boot=same",
        f"{D}::test_a_host_that_was_restarted_has_lost_its_steps",
        bed=True,
    ),
    row(
        "disk full: the room for a step's result is taken at its start",
        STARTER,
        "printf '%-127s\\n' ending >\"$S/ending\" && ",
        "",
        f"{D}::test_a_disk_that_fills_up_swallows_no_result",
        bed=True,
    ),
    row(
        "hidden processes: a step that cannot be seen is unknown, not LOST",
        STEP,
        'cannot "/proc hides processes of other accounts from $me (hidepid): whether $op/$step runs is unknown"',
        ":",
        f"{D}::test_hidden_processes_are_unknown_not_lost",
        bed=True,
    ),
    row(
        "takeover by another account: the state folder's files are of both",
        COMMON,
        "umask 000\nlaneswap_temp=",
        "umask 022\nlaneswap_temp=",
        f"{D}::test_two_accounts_share_a_folder",
        bed=True,
    ),
    row(
        "a dead user manager takes its steps with it, and is not used",
        STARTER,
        '*) why_user="the user manager of $me does not answer" ;;',
        "*) ;;",
        f"{D}::test_a_dead_user_manager_takes_its_steps_with_it",
        bed=True,
    ),
)
