"""fleet.toml: what is accepted, and that every error names file, key and the way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.fleet.inventory import Fleet, FleetError, default_path, load, parse
from console.fleet.recipe import apply_recipes, load_recipe, shipped

GOOD = """
name = "spark4"
operator = "ana"
[hosts]
spark-0 = { ssh = "spark-0" }
spark-1 = { ssh = "ops@10.0.0.2:2222" }
station = { ssh = "local" }
[lanes.dsv41]
recipe = "sglang-fleet-env"
served = "deepseek-v4.1-flash"
url = "http://127.0.0.1:8210/"
head = "spark-0"
ranks = ["spark-0", "spark-1"]
[lanes.dsv41.vars]
root = "~/recipes"
[lanes.station]
recipe = "vllm-docker"
url = "http://127.0.0.1:30006"
head = "station"
stall_after = 30
consumers = ["Milo custom[dsv41]"]
"""


def test_a_good_file_is_read_whole() -> None:
    fleet = parse(GOOD)
    assert fleet.operator_name() == "ana"
    assert list(fleet.hosts) == ["spark-0", "spark-1", "station"]
    assert fleet.hosts["station"].is_local
    lane = fleet.lanes["dsv41"]
    assert (lane.url, lane.port) == ("http://127.0.0.1:8210", 8210)
    assert lane.rank_hosts == ("spark-0", "spark-1")
    assert fleet.lanes["station"].rank_hosts == ("station",)


def test_recipe_fills_only_what_the_operator_left_out() -> None:
    fleet = apply_recipes(parse(GOOD))
    assert fleet.lanes["dsv41"].engine == "sglang"
    assert fleet.lanes["dsv41"].health_every == 10.0
    assert fleet.lanes["station"].engine == "vllm"
    assert fleet.lanes["station"].health_every == 2.0
    assert fleet.lanes["station"].stall_after == 30
    assert fleet.lanes["station"].usual_boot_s == 480


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('ssh = "spark-0"', 'shh = "spark-0"'), ["hosts.spark-0.shh", "did you mean 'ssh'?"]),
        (('head = "spark-0"', 'head = "spark-9"'), ["lanes.dsv41.head", "'spark-9'", "did you mean"]),
        (('ranks = ["spark-0", "spark-1"]', 'ranks = ["spark-1"]'), ["not one of its ranks"]),
        (('ranks = ["spark-0", "spark-1"]', 'ranks = ["spark-0", "spark-0"]'), ["twice"]),
        (('url = "http://127.0.0.1:30006"', 'url = "127.0.0.1:30006"'), ["lanes.station.url", "http://"]),
        (('url = "http://127.0.0.1:30006"', 'url = "http://u:secret@h"'), ["no user or password"]),
        (('ssh = "spark-0"', 'ssh = "-oProxyCommand=x"'), ["hosts.spark-0.ssh", "leading dash"]),
        (('name = "spark4"', 'name = "a b; rm"'), ["name"]),
        (("stall_after = 30", "stall_after = 0"), ["lanes.station.stall_after"]),
        (('name = "spark4"', "name = "), ["not valid TOML"]),
    ],
)
def test_errors_name_the_file_the_key_and_the_way_out(change: tuple[str, str], words: list[str]) -> None:
    assert change[0] in GOOD
    with pytest.raises(FleetError) as caught:
        parse(GOOD.replace(*change, 1), "my/fleet.toml")
    assert "my/fleet.toml" in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def test_a_secret_in_a_bad_url_is_not_echoed_in_full() -> None:
    with pytest.raises(FleetError) as caught:
        parse(GOOD.replace("http://127.0.0.1:30006", "http://u:" + "s" * 300 + "@h"))
    assert "s" * 100 not in str(caught.value)


def test_a_missing_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(FleetError, match="no such file; write one"):
        load(tmp_path / "none.toml")


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    path = tmp_path / "fleet.toml"
    path.write_text("\ufeff" + GOOD, encoding="utf-8")
    assert isinstance(load(path), Fleet)


def test_default_path_prefers_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LANESWAP_FLEET", "/x/y.toml")
    assert default_path() == Path("/x/y.toml")
    monkeypatch.delenv("LANESWAP_FLEET")
    assert default_path().name == "fleet.toml"
    (tmp_path / "fleet.toml").write_text(GOOD)
    assert default_path() == Path("fleet.toml")


def test_every_shipped_recipe_loads_under_its_own_name() -> None:
    assert set(shipped()) == {
        "docker-generic",
        "sglang-fleet-env",
        "systemd-generic",
        "vllm-cluster-env",
        "vllm-docker",
    }
    for name in shipped():
        assert load_recipe(name).name == name


def test_a_recipe_of_ones_own_is_found_beside_the_fleet_file(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('name = "mine"\ntitle = "Mine"\n[reads]\nengine = "llamacpp"\n')
    fleet = parse(GOOD.replace("vllm-docker", "mine.toml"))
    assert apply_recipes(fleet, tmp_path).lanes["station"].engine == "llamacpp"


@pytest.mark.parametrize(
    ("text", "words"),
    [("name = 1", "name"), ('name = "m"\ntitle = "M"\nverbs = 1', "verbs"), ("name = ", "TOML")],
)
def test_a_bad_recipe_is_an_error_that_names_its_key(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(FleetError, match=words):
        load_recipe("mine.toml", tmp_path)


def test_an_unknown_recipe_lists_the_shipped_ones() -> None:
    with pytest.raises(FleetError, match="vllm-docker"):
        load_recipe("vllm-doker")


@pytest.mark.parametrize("path", ["health", "/health\\u000a", "/a b"])
def test_a_path_of_a_recipe_is_held_to_the_same_rule_as_the_operators(tmp_path: Path, path: str) -> None:
    (tmp_path / "mine.toml").write_text(f'name = "mine"\ntitle = "x"\n[reads]\nhealth_path = "{path}"\n')
    fleet = parse(GOOD.replace('recipe = "vllm-docker"', 'recipe = "mine.toml"'))
    with pytest.raises(FleetError, match=r"mine.*reads\.health_path"):
        apply_recipes(fleet, tmp_path)
