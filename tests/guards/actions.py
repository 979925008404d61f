"""Plans and what they send to hosts: the lane, its containers, its watchdog."""

from __future__ import annotations

from guards.mutant import row

SCRIPTS = "console/actions/scripts"
STOP = "console/actions/stop.py"
DISARM = "console/actions/disarm.py"
RELAUNCH = "console/actions/relaunch.py"
ROLLBACK = "console/actions/rollback.py"
STEPS = "console/actions/steps.py"
PLANS = "console/actions/plans.py"
W = "tests/actions/test_plans_watchdog_run.py"
G = "tests/actions/test_plans_guard.py"
D = "tests/actions/test_plans_docker_run.py"
P = "tests/actions/test_plans_docker.py"
F = "tests/actions/test_plans_fleet.py"
H = "tests/actions/test_plans_unfinished.py"
U = "tests/actions/test_plans_fleet_run.py"
L = "tests/actions/test_plans_launch_run.py"
C = "tests/cases/test_action_behaviour.py"

ROWS = (
    row(
        "pid verified: a process is signalled only while its command line is the watchdog's",
        f"{SCRIPTS}/watchdog_end.sh",
        '    if ! watches "$1"; then\n        say "pid $1 is another program: not signalled"\n        return\n    fi\n',
        "",
        f"{W}::test_a_number_that_belongs_to_another_program_is_never_signalled",
        f"{C}::test_a_pid_that_was_given_to_another_program_is_left_alone",
    ),
    row(
        "pid verified: what only shows the watchdog's script is none",
        f"{SCRIPTS}/lib.sh",
        " | chrt | sudo) return 0 ;;\n    esac\n    return 1\n",
        " | chrt | sudo) return 0 ;;\n    esac\n    return 0\n",
        f"{W}::test_what_only_shows_the_script_is_no_watchdog",
    ),
    row(
        "pid verified: a watchdog that neither log nor lock names is told, not signalled",
        f"{SCRIPTS}/watchdog_end.sh",
        '[ -z "$others" ] || no "pid',
        '[ -z "$others" ] || say "pid',
        f"{W}::test_a_watchdog_that_nobody_names_is_not_signalled_but_told",
    ),
    row(
        "pid verified: what starts a step of ours is no watchdog though it names one",
        f"{SCRIPTS}/lib.sh",
        "    case $line in *' laneswap start '*) return 1 ;; esac\n",
        "",
        f"{W}::test_what_starts_a_step_of_ours_is_no_watchdog_though_it_names_one",
    ),
    row(
        "a watchdog counts as off only without process and without lock",
        f"{SCRIPTS}/watchdog_gone.sh",
        '    [ -z "$found" ] || no "runs as pid ${found% }"\n',
        "",
        f"{W}::test_it_is_gone_only_without_process_and_without_lock",
    ),
    row(
        "a watchdog that was started from inside its folder runs too",
        f"{SCRIPTS}/lib.sh",
        ' || inside "$pid" "$1" "${2:-$1}" || continue',
        " || continue",
        f"{W}::test_one_from_inside_the_folder_whose_lock_is_gone_still_runs",
    ),
    row(
        "a unit that does not answer is unknown, not disarmed",
        f"{SCRIPTS}/unit_is.sh",
        '*) unknown "$2:',
        '*) no "$2:',
        f"{W}::test_only_a_unit_that_answers_is_known",
    ),
    row(
        "watchdog firing in the middle: it is ended only while no launch is under way on any rank",
        DISARM,
        'flight = tuple(no_launch(scene)) if _recovers(scene) or acts.disarm == "term" else ()',
        "flight = ()",
        f"{G}::test_it_is_ended_only_while_no_launch_is_under_way_on_any_rank",
    ),
    row(
        "watchdog firing in the middle: a launch is seen also by the container that it is making",
        f"{SCRIPTS}/no_launch.sh",
        'if runs_it "$part" || makes_it "$part"; then',
        'if runs_it "$part"; then',
        f"{W}::test_a_container_that_is_being_made_is_a_launch_too",
    ),
    row(
        "watchdog firing in the middle: no rank is stopped before it is read as off",
        STOP,
        "return [*saves, *(replace(step, before=(*step.before, *off_probes(scene))) for step in stops)]",
        "return [*saves, *stops]",
        f"{F}::test_a_stop_disarms_first_and_stops_every_rank_only_while_that_holds",
        f"{U}::test_a_watchdog_that_was_started_after_the_plan_holds_up_the_stop",
    ),
    row(
        "watchdog first: a stop begins with it",
        STOP,
        "    guard = before_stop(scene)\n",
        "    guard = ()\n",
        f"{C}::test_no_rank_is_stopped_before_the_watchdog_is_read_as_off",
    ),
    row(
        "an operator's own relaunch underneath is not run into",
        RELAUNCH,
        'steps = [replace(one, before=(*one.before, *alone)) if one.id == "launch" else one for one in steps]',
        "pass",
        f"{F}::test_a_launch_is_begun_only_while_no_other_one_is_under_way",
    ),
    row(
        "the watchdog is kept alive after its launcher: the launch keeps what it leaves behind",
        RELAUNCH,
        "        detached=True,\n        keeps=True,\n",
        "        detached=True,\n",
        f"{F}::test_a_relaunch_shows_the_dry_run_keeps_logs_disarms_launches_and_sees_the_watchdog",
    ),
    row(
        "the watchdog is kept alive after its unit: arming keeps what it starts",
        DISARM,
        "yield replace(base, argv=argv, stdin=stdin, detached=True, keeps=True)",
        "yield replace(base, argv=argv, stdin=stdin, detached=True)",
        f"{F}::test_a_watchdog_that_a_launcher_starts_is_read_back_well_after_its_unit",
    ),
    row(
        "the watchdog is read back well after its unit is gone",
        DISARM,
        "    yield still_armed(scene)\n",
        "",
        f"{F}::test_a_watchdog_that_a_launcher_starts_is_read_back_well_after_its_unit",
    ),
    row(
        "a launcher that is ended leaves the daemons alone that began a session of their own",
        f"{SCRIPTS}/launch.sh",
        'setsid "$@" </dev/null &',
        '"$@" </dev/null &',
        f"{L}::test_when_it_is_ended_its_children_end_and_its_daemons_live_on",
    ),
    row(
        "arming is refused while a boot runs",
        DISARM,
        "    if scene.booting:\n",
        "    if False:\n",
        f"{G}::test_arming_is_refused_while_a_start_is_under_way",
    ),
    row(
        "arming is refused where its next check would fire",
        DISARM,
        "if answer is not None and answer.status != 200:",
        "if False:",
        f"{G}::test_arming_is_refused_where_its_next_check_would_fail",
    ),
    row(
        "arming asks health again right before it",
        DISARM,
        "        before=(healthy,),\n        already=on,",
        "        already=on,",
        f"{G}::test_arming_asks_health_again_right_before_it",
    ),
    row(
        "retired container removed: the way back is proved before anything stops",
        ROLLBACK,
        "            yield replace(step, before=proofs)\n",
        "            yield step\n",
        f"{D}::test_a_way_back_that_is_gone_by_then_stops_nothing",
    ),
    row(
        "retired container removed: a way back that is proved impossible is refused",
        ROLLBACK,
        "    if way.possible is False and not _frozen_ids(scene):\n        raise Refused(way.why)\n",
        "",
        f"{P}::test_a_way_back_that_is_proved_impossible_is_refused_before_anything_stops",
    ),
    row(
        "retired container removed: the frozen one is looked for by id",
        ROLLBACK,
        "found = [item for item in boxes if item.id == frozen[host]]",
        "found = [item for item in boxes if not item.up]",
        f"{P}::test_the_frozen_target_is_kept_whatever_ended_since",
    ),
    row(
        "half done: no rollback leads away unsaid from where one led that is not finished",
        PLANS,
        "        if left is not None and not forward:\n            raise Refused(_to_finish(left, lane_view))\n",
        "",
        f"{H}::test_b_does_not_go_the_other_way_unsaid",
        f"{H}::test_a_frozen_target_and_a_rollback_that_is_half_done_agree",
    ),
    row(
        "half done: to leave where an unfinished rollback led is asked for, also when the plan is made again",
        "console/execution/deciding.py",
        "drain_s=wish.drain_s, forward=wish.forward",
        "drain_s=wish.drain_s, forward=True",
        "tests/execution/test_hands.py::test_forward_from_a_rollback_that_is_not_finished_goes_only_for_the_asking",
    ),
    row(
        "image replaced: a container of another image is not the one that was frozen",
        f"{SCRIPTS}/container_startable.sh",
        '    [ "$4" = - ] || [ "$3" = "$4" ] || no "its image is another one"\n',
        "",
        f"{D}::test_a_container_of_another_image_is_not_the_one_that_was_frozen",
    ),
    row(
        "port taken: a container is not started where somebody else listens",
        f"{SCRIPTS}/start_container.sh",
        'if hears "${port%/}"; then no',
        "if false; then no",
        f"{D}::test_a_port_that_somebody_else_took_is_named_and_nothing_is_started",
    ),
    row(
        "exits at once: a container that ends while it starts ends the wait with its code",
        f"{SCRIPTS}/start_container.sh",
        "            still_runs\n",
        "            :\n",
        f"{D}::test_a_container_that_exits_at_once_ends_the_wait_with_its_code",
    ),
    row(
        "hangs at stop: what does not hear is killed after its grace",
        f"{SCRIPTS}/stop_container.sh",
        'stop -t "$grace" "$id"',
        'stop -t 100000 "$id"',
        f"{D}::test_an_engine_that_ignores_the_request_to_end_is_killed_after_its_grace",
    ),
    row(
        "hangs at stop: a process that outlives its container is STUCK",
        f"{SCRIPTS}/stop_container.sh",
        "    until_gone\n    say",
        "    say",
        f"{D}::test_a_process_that_outlives_its_container_is_stuck_and_named",
    ),
    row(
        "a stop is observed: the container has ended, its processes are gone",
        STEPS,
        "    after = [ended, processes_gone(host, container)]\n",
        "    after = []\n",
        f"{P}::test_the_way_back_stops_by_id_starts_by_id_and_waits_until_it_serves",
    ),
    row(
        "logs are kept before anything is removed",
        STOP,
        "saves = kept_logs(scene, held, required=gone,",
        "saves = kept_logs(scene, held, required=False,",
        f"{F}::test_a_launchers_stop_that_removes_containers_comes_after_their_logs",
    ),
    row(
        "a restart policy that would bring it back is set aside",
        STOP,
        'policy = "no" if aside and item.restart_policy.partition(":")[0] in _SET_ASIDE else "-"',
        'policy = "-"',
        f"{P}::test_a_stop_names_the_policy_that_it_sets_aside",
        f"{D}::test_a_stop_is_observed_and_its_policy_comes_back_with_the_next_start",
    ),
    row(
        "a restart policy that cannot be kept is not set aside where it does no harm",
        f"{SCRIPTS}/stop_container.sh",
        'elif [ "$former" = unless-stopped ]; then',
        "elif false; then",
        f"{D}::test_a_policy_that_the_disk_has_no_room_for_is_kept_in_memory_or_told",
    ),
    row(
        "a restart policy that was given by hand since is not taken back",
        f"{SCRIPTS}/start_container.sh",
        "that one counts\"\n    kept=''\n",
        'that one counts"\n',
        f"{D}::test_a_policy_that_was_given_by_hand_since_counts",
    ),
    row(
        "a retired container under the launcher's name is not given to it",
        RELAUNCH,
        "        _names_free(scene)\n",
        "",
        f"{F}::test_a_retired_container_under_the_launchers_name_is_not_given_to_it",
    ),
    row(
        "healthy only when the new process answers, not the old one's port",
        f"{SCRIPTS}/launched.sh",
        '        "$1 $2 "*) no "it is still the one from before" ;;\n',
        "",
        f"{L}::test_only_a_new_process_counts_as_launched",
    ),
    row(
        "what nobody knows of the time before a launch is no new container",
        f"{SCRIPTS}/launched.sh",
        '        *) unknown "it runs; whether',
        '        *) say "it runs; whether',
        f"{L}::test_without_a_word_of_what_ran_before_nothing_is_a_new_one",
    ),
    row(
        "nothing is launched while docker does not say what runs",
        f"{SCRIPTS}/launch.sh",
        '    [ "$before" != unknown ] || cannot',
        '    [ "$before" != unknown ] || say',
        f"{L}::test_nothing_is_launched_while_docker_does_not_say_what_runs",
    ),
    row(
        "an engine that its policy restarts while it comes up has not come up",
        f"{SCRIPTS}/lib.sh",
        '    [ "$1" -gt "$2" ] || [ "$3" = restarting ] || return 1\n',
        "    return 1\n",
        f"{D}::test_a_worker_that_its_policy_restarts_ends_the_wait_for_the_head",
        f"{L}::test_a_rank_that_its_policy_restarts_has_ended",
    ),
    row(
        "a unit that takes long to stop is waited for, not called failed",
        f"{SCRIPTS}/lib.sh",
        "        124 | 137) say ",
        "        124 | 137) no ",
        f"{W}::test_a_unit_that_takes_long_is_waited_for_by_what_is_asked_afterwards",
    ),
    row(
        "a rank that ends while the launcher waits for the head is seen",
        f"{SCRIPTS}/rank_alive.sh",
        '    no "it is $2 with $3$oom"\n',
        '    say "$2"\n',
        f"{L}::test_a_rank_that_ends_is_seen_and_the_one_from_before_is_not_taken_for_it",
    ),
    row(
        "a name that a third container holds is refused and nobody is removed",
        f"{SCRIPTS}/rename_containers.sh",
        '    free "$a_wanted"\n    free "$b_wanted"\n',
        "",
        f"{D}::test_a_name_that_a_third_one_holds_is_refused_and_nobody_is_removed",
    ),
    row(
        "a rename that docker refuses half-way leaves both names as they were",
        f"{SCRIPTS}/rename_containers.sh",
        '    [ "$(name_of "$b")" = "$b_was" ] || rename "$b" "$b_was"\n',
        "",
        f"{D}::test_a_rename_that_docker_refuses_leaves_both_names_as_they_were",
    ),
    row(
        "a rename that was cut off goes on from the name between",
        f"{SCRIPTS}/rename_containers.sh",
        '        [ "$known" != "$between:$b_was:$b_wanted" ] || continue\n',
        "",
        f"{D}::test_a_rename_that_is_cut_off_leaves_names_of_the_lane_and_goes_on_from_there",
    ),
    row(
        "evidence never holds the way back up",
        STEPS,
        "optional=not required,",
        "optional=False,",
        f"{P}::test_evidence_never_holds_up_the_way_back",
    ),
)
