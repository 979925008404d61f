"""Files that a lane rests on, and hands that are not ours: the site file, rows, bind sources, images."""

from __future__ import annotations

from guards.mutant import row

SCRIPTS = "console/actions/scripts"
SITE = f"{SCRIPTS}/site_edit.py"
ROWS_CHECK = f"{SCRIPTS}/rows_check.py"
FOREIGN = "console/feed/foreign.py"
BINDS = "console/readings/binds.py"
BY_CONTAINER = "console/wayback/by_container.py"
E = "tests/actions/test_site_edit.py"
X = "tests/actions/test_site_edit_faults.py"
R = "tests/actions/test_rows_steps.py"
H = "tests/feed/test_foreign.py"

ROWS = (
    row(
        "image removed: a name that means another image now, or none, is told",
        "console/readings/container_rows.py",
        "return row.image != inspected.image and len(bare) >= 12 and ident.startswith(bare)",
        "return False",
        "tests/feed/test_changes.py::test_docker_lists_the_bare_id_where_a_tag_has_moved",
    ),
    row(
        "bind source replaced: another folder at the same path is told",
        BINDS,
        "if seen.inode != mark.inode:",
        "if False:",
        "tests/readings/test_binds.py::test_another_thing_in_its_place_is_noticed",
        "tests/test_wayback_readiness.py::test_a_replaced_folder_is_named_with_its_time",
    ),
    row(
        "bind source gone: a checkpoint that is gone or empty shuts the way back",
        BY_CONTAINER,
        "gone = one.state in (BindState.MISSING, BindState.EMPTY) and _needed(one, retired)",
        "gone = False",
        "tests/test_wayback_readiness.py::test_a_checkpoint_that_is_gone_or_empty_shuts_the_way",
    ),
    row(
        "site file: compared before it is edited",
        SITE,
        "if digest(data) != self.old_hash:",
        "if False:",
        f"{X}::test_an_editor_before_the_edit_stands",
    ),
    row(
        "site file: compared once more right before the swap, the name too",
        SITE,
        "            self.still_there(file)\n",
        "",
        f"{X}::test_an_editor_in_the_middle_stands",
    ),
    row(
        "site file: only the wanted keys change, by the word of bash",
        SITE,
        "            self.no_surprise(self.proof.surprises(made, self.target))\n",
        "",
        f"{E}::test_a_key_that_would_change_as_well_is_named_and_nothing_is_changed",
    ),
    row(
        "site file: proved in place, else the old one is put back",
        SITE,
        "            self.check_in_place(folder, file, backup)\n",
        "",
        f"{E}::test_what_shows_only_in_place_puts_the_old_file_back",
    ),
    row(
        "site file: owner and mode stay",
        SITE,
        "            self.alike(fd, like, info)\n",
        "",
        f"{E}::test_exactly_the_wanted_keys_change",
    ),
    row(
        "site file: the old one is kept",
        SITE,
        "            backup = self.keep(old, file, info)\n",
        "",
        f"{E}::test_the_sample_becomes_the_candidate",
    ),
    row(
        "site file: a text that was damaged on its way is never put in place",
        SITE,
        "        if digest(new) != new_hash:\n",
        "        if False:\n",
        f"{X}::test_a_damaged_text_is_never_put_in_place",
    ),
    row(
        "site file: of two edits at once one waits",
        SITE,
        "                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)\n",
        "                pass\n",
        f"{X}::test_an_edit_that_waits_for_another_one_gives_up_in_words",
    ),
    row(
        "rows proof: exit 0 and no mismatch",
        ROWS_CHECK,
        'if status != "0":',
        "if False:",
        f"{R}::test_each_thing_that_is_wrong_afterwards_is_seen",
    ),
    row(
        "rows proof: the revision of the manifest",
        ROWS_CHECK,
        "if of != self.revision.lower():",
        "if False:",
        f"{R}::test_a_bad_copy_is_never_put_in_place",
    ),
    row(
        "rows proof: the manifest is newer than the data",
        ROWS_CHECK,
        "if os.stat(path).st_mtime_ns > written:",
        "if False:",
        f"{R}::test_each_thing_that_is_wrong_afterwards_is_seen",
    ),
    row(
        "rows proof: all bytes are allocated",
        ROWS_CHECK,
        "if kind not in COMPRESSING:",
        "if False:",
        f"{R}::test_a_bad_copy_is_never_put_in_place",
    ),
    row(
        "rows proof: random rows are the snapshot's",
        ROWS_CHECK,
        "if len(row) != table.row or ours.read(at, table.row) != row:",
        "if False:",
        f"{R}::test_each_thing_that_is_wrong_afterwards_is_seen",
    ),
    row(
        "rows proof: what cannot be told is no yes and no no",
        ROWS_CHECK,
        '        print(f"cannot be told: {error}")\n        return 2\n',
        '        print(f"cannot be told: {error}")\n        return 1\n',
        f"{R}::test_what_cannot_be_read_is_neither_good_nor_bad",
    ),
    row(
        "foreign hands: what no step of ours did is a foreign hand",
        FOREIGN,
        "return replace(deed.event, text=FOREIGN + _bare(deed.event.text) + by, foreign=True)",
        "return replace(deed.event, text=_bare(deed.event.text) + by)",
        f"{H}::test_another_time_host_or_kind_is_a_foreign_hand",
    ),
    row(
        "foreign hands: a step of ours is no foreign hand",
        FOREIGN,
        "                if step is not None:\n",
        "                if False:\n",
        f"{H}::test_a_step_of_ours_is_named_as_soon_as_it_is_known",
    ),
    row(
        "foreign hands: nothing is foreign before the head was read late enough",
        FOREIGN,
        "if not lanes or not all(_heard(lane.acting, deed.event.wall) for lane in lanes):",
        "if not lanes:",
        f"{H}::test_nothing_is_foreign_before_the_head_was_read_late_enough",
    ),
    row(
        "foreign hands: a hand on the lane during an operation is loud",
        "console/alarms/acting.py",
        "    if acts and (running or unfinished):\n",
        "    if False:\n",
        "tests/test_alarms_acting.py::test_a_foreign_hand_during_an_operation_is_loud",
    ),
)
