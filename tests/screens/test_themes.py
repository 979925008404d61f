"""Themes of the user's: checked before they are used, told by file and key, and drawn."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixed import FixedSource, console, front, text_of
from hypothesis import given
from hypothesis import strategies as st

from console.actions.themes import (
    DARK,
    SHIPPED,
    ThemeError,
    check_theme,
    contrast,
    find_theme,
    load_theme,
    luminance,
    own_themes,
    themes_folder,
)
from console.cli import run
from console.headless import EXIT_GOOD, EXIT_USAGE
from console.setup.config import check

FILE = Path("mine.toml")


def write(name: str, text: str) -> Path:
    folder = themes_folder()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.toml").write_text(text)
    return folder / f"{name}.toml"


def test_what_a_theme_does_not_name_is_that_of_its_base() -> None:
    theme = check_theme({"base": "light", "look": "#803F00"}, FILE)
    assert theme.name == "mine" and not theme.dark
    assert theme.colours == {**SHIPPED["light"], "look": "#803f00"}
    assert check_theme({}, FILE).colours == DARK


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_themes_pass_their_own_check(name: str) -> None:
    assert check_theme(SHIPPED[name], FILE).dark is (name != "light")


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"base": "drak"}, "base: 'drak' is no theme; did you mean 'dark'?"),
        ({"base": 3}, "base: 3 is no theme"),
        ({"lock": "#ffffff"}, "lock: no such colour; did you mean 'look'?"),
        ({"look": "orange"}, "look: 'orange' is no colour; write it as \"#rrggbb\""),
        ({"look": "#fff"}, "look: '#fff' is no colour"),
        ({"look": ["#ffffff"]}, "look: ['#ffffff'] is no colour"),
        ({"look": "#333333"}, "look: #333333 on background #0e1113 has a contrast of 1.5, 4.5 at least"),
        ({"panel": "#c0c0c0"}, "text: #c3cbd1 on panel #c0c0c0 has a contrast of 1.1"),
        ({"fill": "#20262b"}, "fill: #20262b on track #1f262b has a contrast of 1.0, 3 at least"),
    ],
)
def test_a_wrong_theme_names_file_key_and_reason(raw: dict[str, object], words: str) -> None:
    with pytest.raises(ThemeError) as caught:
        check_theme(raw, FILE)
    assert words in str(caught.value)
    assert str(caught.value).startswith("mine.toml: ")


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(ThemeError) as caught:
        check_theme({"base": "x", "lock": "#000000", "act": 1}, FILE)
    assert len(caught.value.problems) == 3


@given(st.dictionaries(st.sampled_from([*DARK, "base", "other"]), st.text(max_size=8), max_size=5))
def test_any_theme_is_whole_and_readable_or_an_error(raw: dict[str, object]) -> None:
    try:
        theme = check_theme(raw, FILE)
    except ThemeError as error:
        assert error.problems
    else:
        assert set(theme.colours) == set(DARK)
        assert contrast(theme.colours["act"], theme.colours["background"]) >= 4.5


def test_contrast_is_that_of_wcag() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)
    assert luminance("#ff0000") == pytest.approx(0.2126)


def test_a_file_that_cannot_be_read_or_takes_a_shipped_name(tmp_path: Path) -> None:
    for name, data, words in (
        ("broken", b"look = \n", "not valid TOML"),
        ("bytes", b"\xff\xfe\x00", "cannot be read"),
        ("dark", b'base = "light"\n', "the name 'dark' is that of a shipped theme"),
    ):
        (tmp_path / f"{name}.toml").write_bytes(data)
        with pytest.raises(ThemeError, match=words):
            load_theme(tmp_path / f"{name}.toml")
    assert own_themes(tmp_path) == ("broken", "bytes", "dark")
    assert own_themes(tmp_path / "nowhere") == ()
    with pytest.raises(ThemeError, match="is not there"):
        load_theme(tmp_path / "gone.toml")


@pytest.mark.parametrize("name", ["../keys", "", "a/b", ".hidden", "pink", "x" * 99])
def test_a_name_never_leaves_the_folder(name: str, tmp_path: Path) -> None:
    with pytest.raises(ThemeError, match="no theme"):
        find_theme(name, tmp_path)


async def test_a_theme_of_one_s_own_is_drawn() -> None:
    write("mine", 'look = "#ffd060"\naccent = "#aaff00"\n')
    async with console(theme="mine") as (app, _):
        assert app.theme == "laneswap-own-mine"
        colours = {
            segment.style.color.get_truecolor().hex
            for strip in app.screen._compositor.render_strips()
            for segment in strip
            if segment.style and segment.style.color
        }
        assert "#aaff00" in colours and DARK["accent"] not in colours
        assert app.get_css_variables()["ls-accent"] == "#aaff00"


async def test_a_theme_that_broke_meanwhile_is_said_and_the_dark_one_is_used() -> None:
    write("mine", 'look = "#101010"\n')
    async with console(theme="mine") as (app, _):
        assert app.theme == "laneswap-dark"
        assert "theme not used: look: #101010 on background" in text_of(app)
        assert front(app).PLACE == "dashboard"


async def test_without_colour_no_theme_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    write("mine", "broken")
    async with console(FixedSource(), theme="mine") as (app, _):
        assert app.theme == "laneswap-plain" and "theme not used" not in text_of(app)


def test_the_command_line_refuses_a_theme_that_cannot_be_used(capsys: pytest.CaptureFixture[str]) -> None:
    file = write("mine", 'look = "#101010"\n')
    assert run(["rehearse", "--theme", "mine"]) == EXIT_USAGE
    said = capsys.readouterr().err
    assert said.startswith(f"laneswap: {file}: look: #101010 on background") and "Traceback" not in said
    assert run(["rehearse", "--theme", "mien"]) == EXIT_USAGE
    assert "no theme 'mien'; did you mean 'mine'?" in capsys.readouterr().err


def test_config_check_looks_at_every_theme(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet = tmp_path / "fleet.toml"
    fleet.write_text('name = "x"\n[hosts]\na = { ssh = "local" }\n[lanes.l]\nrecipe = "docker-generic"\n'
                     'url = "http://127.0.0.1:1"\nhead = "a"\n')  # fmt: skip
    write("good", 'look = "#ffd060"\n')
    before = [finding.text for finding in check(fleet) if finding.problem]
    write("bad", 'lock = "#ffd060"\n')
    found = [finding.text for finding in check(fleet) if finding.problem and finding.text not in before]
    assert found == ["lock: no such colour; did you mean 'look'?"]
    assert run(["config", "locate", "-f", str(fleet)]) == EXIT_GOOD
    said = capsys.readouterr().out
    assert "--theme good" in said and "--theme bad" in said
