"""The policy and the keymap: who may do what, and the Grant that effects demand."""

from __future__ import annotations

from guards.mutant import row

POLICY = "console/execution/policy.py"
KEYMAP = "console/actions/keymap.py"
CARRYING = "console/execution/carrying.py"
N = "tests/execution/test_grant_demanded.py"
P = "tests/execution/test_policy.py"
K = "tests/screens/test_action_catalog.py"

ROWS = (
    row(
        "a Grant is spent once",
        POLICY,
        "return _checked(_leaves.pop(id(given), None)",
        "return _checked(_leaves.get(id(given))",
        f"{P}::test_a_grant_is_spent_once",
    ),
    row(
        "a Grant lives ten seconds",
        POLICY,
        "if not leave.made <= now <= leave.until:",
        "if False:",
        f"{P}::test_a_grant_for_something_else_is_refused_and_used_up",
    ),
    row(
        "a confirmation lives ten seconds",
        POLICY,
        "if not 0 <= now - confirmation.at <= GRANT_LIVES_S:",
        "if False:",
        f"{P}::test_a_confirmation_that_is_old_or_of_the_future_makes_none",
    ),
    row(
        "a Grant is for one plan",
        POLICY,
        "if leave.plan_id != plan_id:",
        "if False:",
        f"{P}::test_a_grant_for_something_else_is_refused_and_used_up",
    ),
    row(
        "a Grant is for one verb and one lane",
        POLICY,
        "if (leave.verb, leave.lane) != (verb, lane):",
        "if False:",
        f"{P}::test_a_grant_for_something_else_is_refused_and_used_up",
    ),
    row(
        "a Grant holds under the lease that it was decided under",
        POLICY,
        "if leave.epoch != epoch and not leave.taken:",
        "if False:",
        f"{P}::test_a_grant_for_something_else_is_refused_and_used_up",
    ),
    row(
        "a Grant is made by the policy alone",
        POLICY,
        "        if token is not _TOKEN:\n            raise TypeError(_DENIED_USE)\n",
        "",
        f"{P}::test_a_grant_cannot_be_made_copied_or_changed",
    ),
    row(
        "a Decision that the policy did not make makes no Grant",
        POLICY,
        "if not decision._made:",
        "if False:",
        f"{P}::test_a_decision_that_the_policy_did_not_make_makes_none",
    ),
    row(
        "a plan that changed between being shown and being confirmed makes no Grant",
        POLICY,
        "if not plan_id or confirmation.plan_id != plan_id:",
        "if False:",
        f"{P}::test_a_plan_that_was_not_seen_makes_none",
    ),
    row(
        "a denial makes no Grant",
        POLICY,
        "    if decision.denied:\n        raise Refused(decision.denied)\n",
        "",
        f"{P}::test_a_denial_makes_none",
    ),
    row(
        "read-only denies everything",
        POLICY,
        "if situation.read_only:",
        "if False:",
        f"{P}::test_read_only_denies_everything_whatever_else_holds",
        "tests/execution/test_hands.py::test_read_only_hands_do_nothing",
    ),
    row(
        "a plan that is proved impossible is denied",
        POLICY,
        "if situation.refused:",
        "if False:",
        f"{P}::test_a_plan_that_is_proved_impossible_is_denied_with_its_reason",
    ),
    row(
        "two consoles: a lease of another denies all but a rollback",
        POLICY,
        "if situation.holder is Holder.OTHER and verb is not Verb.ROLLBACK:",
        "if False:",
        f"{P}::test_every_cell_of_the_table",
        f"{P}::test_a_lease_of_another_names_the_holder",
    ),
    row(
        "what runs already is never begun a second time",
        POLICY,
        "if situation.running and (words := _runs(verb, situation)):",
        "if False:",
        f"{P}::test_what_runs_is_ended_by_stop_and_rollback_alone_and_never_begun_twice",
    ),
    row(
        "a window counts only under a lease of ours",
        POLICY,
        "if not situation.window_open or situation.holder is not Holder.ME:",
        "if not situation.window_open:",
        f"{P}::test_a_window_counts_only_under_a_lease_of_ours",
    ),
    row(
        "without ledger, head or lease only break-glass goes",
        POLICY,
        "return not situation.ledger_ok or not situation.head_ok or situation.holder is Holder.UNKNOWN",
        "return False",
        f"{P}::test_every_cell_of_the_table",
    ),
    row(
        "stale facts cost the letter",
        POLICY,
        "return Need.NAME if situation.unknown else Need.LETTER",
        "return Need.LETTER",
        f"{P}::test_stale_facts_are_named_and_cost_the_letter",
    ),
    row(
        "only a rollback counts down",
        POLICY,
        "if decision.need is not Need.COUNTDOWN or decision.verb is not Verb.ROLLBACK:",
        "if False:",
        f"{P}::test_no_countdown_but_a_rollbacks",
    ),
    row(
        "a countdown has to have been painted to its end",
        POLICY,
        "if not (math.isfinite(confirmation.counted) and confirmation.counted + COUNTED_SLACK_S >= decision.seconds):",
        "if False:",
        f"{P}::test_a_countdown_that_did_not_run_out_makes_none",
    ),
    row(
        "break-glass wants a reason",
        POLICY,
        "if need is Need.NAME_AND_REASON and len(word(confirmation.reason, 400)) < SHORTEST_REASON:",
        "if False:",
        f"{P}::test_a_reason_that_says_nothing_makes_none",
    ),
    row(
        "no user's keymap takes a guarded key",
        KEYMAP,
        "if key in GUARDED_KEYS:",
        "if False:",
        f"{K}::test_a_wrong_keymap_names_file_action_and_reason",
    ),
    row(
        "no user's keymap moves a guarded action",
        KEYMAP,
        "if action.scope is Scope.GUARDED:",
        "if False:",
        f"{K}::test_a_wrong_keymap_names_file_action_and_reason",
    ),
    row(
        "a Grant is taken up once",
        POLICY,
        "if leave.taken:",
        "if False:",
        f"{N}::test_a_grant_is_taken_up_once_lives_long_enough_and_ends",
    ),
    row(
        "what runs is ended only for a Grant that was taken up",
        POLICY,
        "if leave is None or not leave.taken:",
        "if leave is None:",
        f"{N}::test_a_grant_is_taken_up_once_lives_long_enough_and_ends",
    ),
    row(
        "without a lease nothing goes but break-glass",
        CARRYING,
        "if held is None and not glass:",
        "if False:",
        f"{N}::test_without_a_lease_only_a_break_glass_grant_begins",
    ),
    row(
        "what is carried on spends a Grant itself",
        CARRYING,
        "policy.spend(grant, plan_id, verb, view.name, policy.clock(), held.epoch)",
        "pass",
        f"{N}::test_every_way_into_carrying_asks_for_the_grant_before_anything_else_happens",
        "tests/execution/test_hands_last_look.py::test_what_is_carried_on_spends_a_grant_itself",
    ),
    row(
        "what ends another operation asks for the Grant of what comes in its place",
        CARRYING,
        "policy.ensure(grant, verb, view.name, policy.clock())",
        "pass",
        f"{N}::test_whatever_stands_in_place_of_a_grant_nothing_is_sent",
    ),
)
