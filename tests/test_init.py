"""`laneswap init`: from a launcher's own file to a fleet file that is live at once; nothing is overwritten unasked."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.cli import run
from console.fleet.inventory import Fleet, FleetError, load, parse
from console.fleet.recipe import apply_recipes, load_recipe
from console.headless import EXIT_GOOD, EXIT_USAGE
from console.setup import init as setup
from console.setup.init import from_site, from_words, save
from console.setup.newfleet import write_fleet
from console.setup.origin import ADDRESSES, recognise

DATA = Path(__file__).parent / "data" / "fleet"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("LANESWAP_FLEET", raising=False)


def made(sample: str, path: str) -> tuple[Fleet, list[str], list[str]]:
    """The fleet of a sample that lies at `path`, what was taken and what was left open."""
    found = recognise((DATA / sample).read_bytes(), path)
    fleet = apply_recipes(parse(write_fleet(found, "f", "main", path)))
    return fleet, found.taken, found.open


def test_a_fleet_env_gives_hosts_users_and_the_recipe() -> None:
    fleet, taken, left = made("fleet.env.sample", "~/recipes/sglang/launch/fleet.env")
    lane = fleet.lanes["main"]
    assert {name: host.ssh for name, host in fleet.hosts.items()} == {
        "node-0": "alice@192.0.2.11",
        "node-1": "alice@192.0.2.12",
        "node-2": "bob@192.0.2.13",
        "node-3": "bob@192.0.2.14",
    }
    assert (lane.recipe, lane.url, lane.head) == ("sglang-fleet-env", "http://127.0.0.1:8210", "node-0")
    assert lane.ranks == ("node-0", "node-1", "node-2", "node-3")
    assert (lane.engine, lane.containers, lane.vars) == ("sglang", "sgldsv41", {"root": "~/recipes/sglang"})
    assert "hosts: 4 in rank order, from NODES and USERS (lines 2, 3)" in taken
    assert any(row.startswith("checkpoint: held by node-1") for row in taken)
    assert [row.split(":")[0] for row in left] == ["hosts"]


def test_a_cluster_env_gives_names_address_and_root() -> None:
    fleet, taken, left = made("cluster.env.sample", "/somewhere/else.env")
    lane = fleet.lanes["main"]
    assert [host.ssh for host in fleet.hosts.values()] == ["node-a", "node-b", "node-c", "node-d"]
    assert (lane.recipe, lane.url, lane.head) == ("vllm-cluster-env", "http://192.0.2.11:8000", "node-a")
    assert (lane.containers, lane.vars) == ("vllm_dsv41", {"root": "/home/operator/dsv41"})
    assert "vars.root: /home/operator/dsv41, from REPO_DIR (line 8)" in taken
    assert left == []


def test_a_kit_with_head_and_workers_is_read_and_not_driven() -> None:
    fleet, taken, left = made("env.tp4.sample", ".env.tp4")
    lane = fleet.lanes["main"]
    assert {name: host.ssh for name, host in fleet.hosts.items()} == {
        "node-0": "operator@192.0.2.1",
        "spark2": "operator@spark2",
        "spark3": "operator@spark3",
        "spark4": "operator@spark4",
    }
    assert (lane.recipe, lane.url, lane.engine) == ("docker-generic", "http://127.0.0.1:8888", "sglang")
    assert lane.ranks == ("node-0", "spark2", "spark3", "spark4")
    assert "engine: sglang, from BASE_IMAGE (line 12)" in taken
    assert any("WORKER_USER is taken for the head too" in row for row in left)


def test_a_json_cluster_file_gives_its_workers_in_rank_order() -> None:
    fleet, _, _ = made("cluster.example.json", "cluster.json")
    assert [host.ssh for host in fleet.hosts.values()] == [f"operator@192.0.2.{number}" for number in (11, 12, 13, 14)]
    assert (fleet.lanes["main"].url, fleet.lanes["main"].engine) == ("http://127.0.0.1:8004", "sglang")
    mixed = b'{"workers": [{"rank": 1, "host": "b"}, {"rank": 0, "host": "a"}], "api_port": 1}'
    assert [host.name for host in recognise(mixed, "x.json").hosts] == ["a", "b"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "it sets nothing"),
        (b"A=1\nB=2\n", "it sets A, B"),
        (b"NODES=(a b)\n", "not recognised"),
        (b"NODES=()\nSNAP=x\n", "it names no hosts"),
        (b"NODES=($A $B)\nSNAP=x\n", "NODES: depends on the shell"),
        (b"NODES=(a\r\nSNAP=x\r\n", "not recognised"),
        (b"{", "not recognised"),
        (b"\0\xff\xfe", "not recognised"),
    ],
)
def test_what_is_none_says_so_and_what_was_looked_for(data: bytes, words: str) -> None:
    with pytest.raises(FleetError) as caught:
        recognise(data, "x.env")
    assert words in str(caught.value)


def test_what_is_odd_in_the_file_is_left_out_and_told() -> None:
    data = b"NODES=(a -oProxyCommand=x 'b c' d)\nUSERS=(u u)\nSNAP=x\nSNAP=y\nPORT=99999\n"
    found = recognise(data, "fleet.env")
    assert [host.ssh for host in found.hosts] == ["u@a", "d"]
    assert found.url == "http://127.0.0.1:8000"
    for words in (
        "'u@-oProxyCommand=x'",
        "'b c' is no target",
        "4 hosts, but 2 users",
        "'99999' is no port",
        "SNAP is set 2 times",
    ):
        assert any(words in row for row in found.open), words


@given(st.binary(max_size=300))
def test_no_file_makes_a_fleet_file_that_cannot_be_read(data: bytes) -> None:
    for text in (data, b"NODES=(a b" + data + b")\nSNAP=x\n", b"HEAD_IP=h\nWORKER_IPS='" + data + b"'\n"):
        try:
            found = recognise(text, "launch/fleet.env")
        except FleetError as error:
            assert str(error).replace("\n", "").isprintable()
            continue
        assert parse(write_fleet(found, "f", "main", "x")).hosts


@pytest.mark.parametrize(
    ("sample", "notes"),
    [
        ("env.tp4.sample", ()),
        ("cluster.example.json", (ADDRESSES,)),
        ("fleet.env.sample", (ADDRESSES,)),
    ],
)
def test_nothing_is_said_of_a_head_that_is_reached_under_another_name(
    sample: str, notes: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "/srv/launch/" + sample.replace(".sample", "").replace("env.tp4", ".env.tp4").replace(".example", "")
    monkeypatch.setattr(setup, "_read", lambda source: ((DATA / sample).read_bytes(), path, "spark-0"))
    made_of = from_site(f"spark-0:{path}", "fleet", "main")
    assert parse(made_of.text).hosts["spark-0"].ssh == "spark-0"
    assert made_of.open == notes


def test_an_error_names_the_host_that_the_file_lies_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "_read", lambda source: (b"echo no\n", "~/launch/watchdog.sh", "spark-0"))
    with pytest.raises(FleetError, match=r"^spark-0:~/launch/watchdog\.sh: not recognised"):
        from_site("spark-0:~/launch/watchdog.sh", "fleet", "main")


# --- the command -----------------------------------------------------------------------------------------------------


def site_file(tmp_path: Path) -> Path:
    folder = tmp_path / "home" / "sglang" / "launch"
    folder.mkdir(parents=True)
    (folder / "fleet.env").write_bytes((DATA / "fleet.env.sample").read_bytes())
    return folder / "fleet.env"


def test_the_command_writes_a_file_that_loads_and_says_where_everything_came_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = site_file(tmp_path)
    assert run(["init", "--from-site", str(source), "--name", "spark4", "--lane", "dsv41"]) == EXIT_GOOD
    out = capsys.readouterr().out
    assert "  recipe: sglang-fleet-env, from its keys NODES and SNAP (lines 2, 9)" in out
    assert "? vars.root: ~/sglang is taken to be the same on the head as here" in out
    assert out.endswith("wrote fleet.toml; next: laneswap doctor\n")
    fleet = load(Path("fleet.toml"))
    assert (fleet.name, fleet.lanes["dsv41"].vars) == ("spark4", {"root": "~/sglang"})
    assert run(["config", "check"]) == EXIT_GOOD
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(Path("fleet.toml").stat().st_mode) == 0o666 & ~umask
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fleet.toml", "home"]


def test_a_file_that_is_there_is_kept_without_force(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = str(site_file(tmp_path))
    Path("fleet.toml").write_text("mine")
    assert run(["init", "--from-site", source]) == EXIT_USAGE
    assert "exists already; choose another --output, or overwrite it with --force" in capsys.readouterr().err
    assert Path("fleet.toml").read_text() == "mine"
    Path("link.toml").symlink_to("fleet.toml")
    assert run(["init", "--from-site", source, "-o", "link.toml"]) == EXIT_USAGE
    assert run(["init", "--from-site", source, "-o", "link.toml", "--force"]) == EXIT_GOOD
    assert Path("link.toml").is_symlink() and load(Path("fleet.toml")).hosts


def test_of_many_at_once_one_writes_and_the_others_are_told(tmp_path: Path) -> None:
    target, told = tmp_path / "one.toml", []

    def write(number: int) -> None:
        try:
            save(f"# {number}\n" * 1000, target, force=False)
        except FleetError as error:
            told.append(str(error))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(target.read_text().splitlines())) == 1
    assert len(told) == 7
    assert [path.name for path in tmp_path.iterdir()] == ["one.toml"]


@pytest.mark.parametrize("target", ["missing/fleet.toml", "file/fleet.toml"])
def test_a_place_that_cannot_be_written_is_told(target: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FleetError, match="cannot be written"):
        save("x", tmp_path / target, force=False)


def test_stdout_gets_the_file_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", "--from-site", str(site_file(tmp_path)), "-o", "-"]) == EXIT_GOOD
    assert parse(capsys.readouterr().out).lanes["main"].recipe == "sglang-fleet-env"
    assert not Path("fleet.toml").exists()


def test_without_a_file_hosts_and_url_are_taken_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--host", "spark-0", "ops@spark-1:2222", "--url", "http://127.0.0.1:30006", "--recipe", "vllm-docker"]
    assert run(["init", *words, "--name", "station"]) == EXIT_GOOD
    fleet = load(Path("fleet.toml"))
    assert {name: host.ssh for name, host in fleet.hosts.items()} == {
        "spark-0": "spark-0",
        "spark-1": "ops@spark-1:2222",
    }
    assert fleet.lanes["main"].ranks == ("spark-0", "spark-1")
    assert fleet.lanes["main"].recipe == "vllm-docker"
    assert run(["config", "check"]) == EXIT_GOOD


def test_without_any_word_it_is_this_machine() -> None:
    assert run(["init"]) == EXIT_GOOD
    fleet = load(Path("fleet.toml"))
    assert [host.is_local for host in fleet.hosts.values()] == [True]
    assert fleet.lanes["main"].rank_hosts == ("local",)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--from-site", "none.env"], "none.env: cannot be read: No such file or directory"),
        (["--from-site", "."], ".: cannot be read: Is a directory"),
        (["--from-site", "-oX=y:/x"], "requires an argument"),
        (["--from-site", "x", "--host", "a"], "leave --host out"),
        (["--name", "a b"], "a name is up to 63 letters"),
        (["--lane", "a/b"], "a name is up to 63 letters"),
        (["--url", "127.0.0.1:1"], "an http:// or https:// URL"),
        (["--recipe", "vllm-doker"], "did you mean 'vllm-docker'?"),
        (["--host", "-oX=y"], "requires"),
        (["--recipe", "docker-generic", "--root", "/x"], "no such variable"),
    ],
)
def test_a_mistake_is_told_and_nothing_is_written(
    words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["init", *words]) == EXIT_USAGE
    assert told in "".join(capsys.readouterr())
    assert list(tmp_path.iterdir()) == []


def test_a_root_that_is_given_goes_before_a_guess(tmp_path: Path) -> None:
    made_file = from_site(str(site_file(tmp_path)), "f", "main", "/srv/sglang")
    assert parse(made_file.text).lanes["main"].vars == {"root": "/srv/sglang"}
    assert not any(row.startswith("vars.root") for row in made_file.open)
    words = from_words(["a"], "http://127.0.0.1:1", "sglang-fleet-env", "f", "main", "/srv")
    assert parse(words.text).lanes["main"].vars == {"root": "/srv"}


@pytest.mark.parametrize("root", ["", "/srv"])
def test_the_variables_of_a_lane_stand_in_one_table(root: str) -> None:
    text = from_words(["a"], "http://127.0.0.1:1", "sglang-fleet-env", "f", "main", root).text
    heads = [line for line in text.splitlines() if line.lstrip("# ").startswith("[lanes.main.vars]")]
    assert heads == ["[lanes.main.vars]" if root else "# [lanes.main.vars]"]
    names = load_recipe("sglang-fleet-env").vars
    said = text.replace("# [lanes.main.vars]", "[lanes.main.vars]")
    for name in names:
        said = said.replace(f'# {name} = "..."', f'{name} = "/x"')
    assert set(parse(said).lanes["main"].vars) == set(names), "with the signs taken away it is read"
