"""Where a lane's things lie, and what each host is asked to look at, from recipe, site file and fleet.toml."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.fleet.inventory import Lane, parse
from console.fleet.looks import looks
from console.fleet.places import Places, RankPlace, places
from console.fleet.recipe import Recipe, apply_recipes, build_recipe, lane_recipes
from console.fleet.sitefile import Site, read_site
from console.readings.look import Look, LookKind
from console.readings.rows import RowRange

DATA = Path(__file__).parent / "data" / "fleet"
OLD, NEXT = "0123456789abcdef0123456789abcdef01234567", "89abcdef0123456789abcdef0123456789abcdef"
HUB = "/home/alice/.cache/huggingface/hub/models--deepseek-ai--DeepSeek-V4.1-Flash"
FLEET = """
name = "f"
[hosts]
a = {{ ssh = "a" }}
b = {{ ssh = "b" }}
c = {{ ssh = "c" }}
d = {{ ssh = "d" }}
[lanes.l]
recipe = "{recipe}"
url = "http://127.0.0.1:8210"
head = "a"
ranks = ["a", "b", "c", "d"]
{rest}
"""
ROOT = '[lanes.l.vars]\nroot = "~/sglang/"\n'


def lane(recipe: str, rest: str = "") -> tuple[Lane, Recipe]:
    fleet = apply_recipes(parse(FLEET.format(recipe=recipe, rest=rest)))
    return fleet.lanes["l"], lane_recipes(fleet)["l"]


def found(recipe: str, site: bytes | None = None, rest: str = "") -> Places:
    """Places of a lane with this site file."""
    own, model = lane(recipe, rest)
    read = None if site is None else read_site(site, "/x/launch/fleet.env", model)
    return places("l", own, model, read)


def fleet_env(*changes: tuple[str, str]) -> bytes:
    text = (DATA / "fleet.env.sample").read_text()
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    return text.encode()


def test_a_fleet_env_says_where_everything_is() -> None:
    said = found("sglang-fleet-env", fleet_env(), ROOT)
    assert said.ranks == (
        RankPlace(0, "a", "/mnt/dsv41", "/home/alice/dsv41-engram-local"),
        RankPlace(1, "b", HUB, reads_shards=True),
        RankPlace(2, "c", "/mnt/dsv41", "/home/bob/dsv41-engram-local"),
        RankPlace(3, "d", "/mnt/dsv41", "/home/bob/dsv41-engram-local"),
    )
    assert (said.head, said.site_file, said.revision) == ("a", "~/sglang/launch/fleet.env", OLD)
    assert (said.holder, said.layout, said.tp) == ("b", "hub", 4)
    assert said.holder_rows == (RowRange(1, 96001542, 192003084), RowRange(14, 96004170, 192008341))
    assert said.table_rows == {1: 384006168, 14: 384016682}
    assert said.download is not None
    assert (said.download.host, said.download.repo) == ("b", HUB)
    assert said.download.model == "deepseek-ai/DeepSeek-V4.1-Flash"
    assert said.watchdog is not None
    assert (said.watchdog.host, said.watchdog.log) == ("a", "~/sgl-watchdog.log")
    assert said.unfilled == ()


def test_what_is_being_prepared_is_the_operators_word() -> None:
    rest = f'{ROOT}[lanes.l.next]\nrevision = "{NEXT}"\nrows = "dsv41-engram-local-1017/"\n'
    said = found("sglang-fleet-env", fleet_env(), rest)
    assert said.next_revision == NEXT
    assert [rank.next_rows for rank in said.ranks] == [
        "/home/alice/dsv41-engram-local-1017",
        "",
        "/home/bob/dsv41-engram-local-1017",
        "/home/bob/dsv41-engram-local-1017",
    ]
    assert said.download is not None and said.download.revision == NEXT


def test_a_cluster_env_has_the_files_themselves_on_every_rank() -> None:
    said = found(
        "vllm-cluster-env", (DATA / "cluster.env.sample").read_bytes(), '[lanes.l.vars]\nroot = "/srv/dsv41"\n'
    )
    folder = "/var/tmp/models/DeepSeek-V4.1-Flash"
    assert [(rank.repo, rank.rows, rank.reads_shards) for rank in said.ranks] == [(folder, folder, False)] * 4
    assert (said.site_file, said.layout, said.holder) == ("/srv/dsv41/cluster.env", "folder", "")
    assert said.revision == "dba1be0a40aa45a94ad051997016db3960a90277"
    assert said.watchdog is not None
    assert (said.watchdog.unit, said.watchdog.pause_flag) == ("dsv41-fleet.service", "/var/tmp/dsv41-watchdog.pause")
    assert said.unfilled == ()


def test_named_containers_have_only_what_the_operator_names() -> None:
    said = found("vllm-docker")
    assert (said.site_file, said.watchdog, said.download) == ("", None, None)
    assert said.unfilled == ("download: lanes.l.download.repo is not set (folder that the checkpoint is fetched to)",)
    rest = '[lanes.l.download]\nhost = "c"\nrepo = "/data/models--org--name/"\nunit = "hf.service"\n'
    said = found("vllm-docker", rest=rest)
    assert [rank.repo for rank in said.ranks] == ["", "", "/data/models--org--name", ""]
    assert said.download is not None
    assert (said.download.host, said.download.model, said.download.unit) == ("c", "org/name", "hf.service")


@pytest.mark.parametrize(
    ("site", "rest", "said"),
    [
        (None, "", "site file: lanes.l.vars.root is not set (folder of the recipe on the head"),
        (None, ROOT, "checkpoint: the site file is not read"),
        (None, ROOT, "row copies: the site file is not read"),
        (fleet_env(("MODEL_REPO=/mnt/dsv41", "")), ROOT, "checkpoint: MODEL_REPO is not set in fleet.env"),
        (fleet_env(("=dsv41-engram-local", "=$X")), ROOT, "row copies: ENGRAM_LOCAL_DIR in fleet.env depends on the"),
        (fleet_env(("=/mnt/dsv41", "=/mnt/dsv41\r")), ROOT, "checkpoint: MODEL_REPO in fleet.env ends in a carriage"),
        (fleet_env(("HOST_RANK=1", "HOST_RANK=7")), ROOT, "holder: '7' is the number of no rank of this lane"),
        (fleet_env((":192003084", ":x")), ROOT, "rows of the holder: '1:96001542:x': expected LAYER:START:END"),
        (fleet_env((" 192.0.2.14", "")), ROOT, "ranks: the site file names 3 hosts, fleet.toml 4 ranks"),
        (fleet_env(("SNAP=snap", "SNAP=$X/snap")), ROOT, "revision (SNAP): depends on the shell that reads it"),
    ],
)
def test_what_cannot_be_filled_names_the_key_that_would_fill_it(site: bytes | None, rest: str, said: str) -> None:
    assert any(row.startswith(said) for row in found("sglang-fleet-env", site, rest).unfilled)


def test_unknown_homes_are_the_hosts_own_and_dollar_home_is_the_heads() -> None:
    no_homes = found("sglang-fleet-env", fleet_env(("HOMES=", "XHOMES=")), ROOT)
    assert no_homes.ranks[2].rows == "~/dsv41-engram-local"
    dollar = found("sglang-fleet-env", fleet_env(("=/mnt/dsv41", '="${HOME}/mnt"')), ROOT)
    assert dollar.ranks[2].repo == "/home/alice/mnt"


def test_a_checkpoint_without_a_holder_is_everywhere_the_same() -> None:
    said = found("sglang-fleet-env", fleet_env(("HOST_RANK=1", "HOST_RANK=")), ROOT)
    assert said.holder == "" and said.holder_rows == ()
    assert all(rank.repo == "/mnt/dsv41" and rank.rows and not rank.reads_shards for rank in said.ranks)
    assert said.unfilled == ()


def test_a_recipe_of_ones_own_fills_its_names() -> None:
    recipe = build_recipe(
        {
            "name": "own",
            "title": "Own",
            "vars": {"base": {"help": "base"}, "name": {"help": "name", "default": "m"}},
            "checkpoint": {"repo": "{base}/{name}", "layout": "folder"},
            "rows": {"path": "{home}/rows/{name}", "tp": 2, "manifest": "rows.json"},
        },
        "own.toml",
    )
    own, _ = lane("docker-generic")
    said = places("l", own.model_copy(update={"vars": {"base": "/data"}}), recipe, None)
    assert (said.ranks[3].repo, said.ranks[3].rows, said.tp) == ("/data/m", "~/rows/m", 2)
    assert looks("l", said)["d"][2].arguments[0] == "~/rows/m/rows.json"


# --- looks -----------------------------------------------------------------------------------------------------------


def by_key(items: tuple[Look, ...]) -> dict[str, Look]:
    assert len({item.key for item in items}) == len(items)
    return {item.key.removeprefix("l:"): item for item in items}


def test_every_host_looks_at_what_is_its_own() -> None:
    rest = f'{ROOT}[lanes.l.next]\nrows = "next"\n[lanes.l.download]\nunit = "hf.service"\n'
    asked = looks("l", found("sglang-fleet-env", fleet_env(), rest), pids=[41, 41, 0, 7])
    head, holder, other = (by_key(asked[name]) for name in "abd")
    assert list(asked) == ["a", "b", "c", "d"]
    dog = {f"watchdog.{what}" for what in ("log", "lock", "processes", "units")}
    assert set(head) == {"site", "repo", "rows", "rows.manifest", "next", "next.manifest"} | dog
    assert set(holder) == {"repo", "download.processes", "download.units", "download.net"}
    assert set(other) == {"repo", "rows", "rows.manifest", "next", "next.manifest"}
    assert head["site"].arguments == ("~/sglang/launch/fleet.env", "first", str((1 << 20) + 1))
    assert (holder["repo"].arguments, holder["repo"].every) == ((HUB, "4", "6000"), 5.0)
    assert (other["repo"].arguments, other["repo"].every) == (("/mnt/dsv41", "4", "6000"), 15.0)
    assert other["rows"].every == other["next.manifest"].every == 5.0
    assert head["watchdog.log"].arguments == ("~/sgl-watchdog.log", "last", "65536")
    assert head["watchdog.processes"].arguments == ("launch/watchdog.sh", "watchdog.sh", "pid:7", "pid:41")
    assert head["watchdog.processes"].every == head["watchdog.units"].every == 15.0
    assert holder["download.units"].arguments == ("user", "hf.service")
    assert holder["download.units"].every == 5.0
    assert "hf download" in holder["download.processes"].arguments


def test_a_download_beside_the_checkpoint_in_use_is_looked_at_too() -> None:
    rest = f'{ROOT}[lanes.l.download]\nhost = "a"\nrepo = "hub/models--o--n"\n'
    head = by_key(looks("l", found("sglang-fleet-env", fleet_env(), rest))["a"])
    assert head["repo"].arguments[0] == "/mnt/dsv41"
    assert head["download.repo"].arguments[0] == "/home/alice/hub/models--o--n"


def test_before_the_site_file_is_read_it_is_what_is_asked_for() -> None:
    asked = looks("l", found("sglang-fleet-env", None, ROOT))
    assert set(asked) == {"a"}
    assert "site" in by_key(asked["a"]) and "repo" not in by_key(asked["a"])


@given(st.binary(max_size=300), st.lists(st.integers(-5, 99999), max_size=4))
def test_no_site_file_makes_a_look_that_is_none(data: bytes, pids: list[int]) -> None:
    own, recipe = lane("sglang-fleet-env", ROOT)
    lines = b"".join(key + b"=" + data[:40] + b"\n" for key in (b"MODEL_REPO", b"ENGRAM_LOCAL_DIR", b"MODEL_HOST_RANK"))
    for text in (data, lines):
        site: Site = read_site(text, "fleet.env", recipe)
        said = places("l", own, recipe, site)
        assert all(row.isprintable() for row in said.unfilled)
        for items in looks("l", said, pids).values():
            for look in by_key(items).values():
                assert all(part.isprintable() and part for part in look.arguments)
                if look.kind in (LookKind.TREE, LookKind.FILE):
                    assert look.arguments[0].startswith(("/", "~/"))


def test_a_lane_that_is_known_in_part_has_as_many_row_parts_as_its_site_file_has_hosts() -> None:
    assert found("sglang-fleet-env", fleet_env(), ROOT).tp == 4
    whole, recipe = lane("sglang-fleet-env", ROOT)
    alone = whole.model_copy(update={"ranks": ("a",), "head": "a"})
    said = places("l", alone, recipe, read_site(fleet_env(), "/x/fleet.env", recipe))
    assert said.tp == 4
    assert any("names 4 hosts, fleet.toml 1 ranks" in words for words in said.unfilled)
