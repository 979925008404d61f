"""The line parser against prometheus_client, on captures and on legal and broken text of every kind."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from engine_captures import CAPTURES, body_of
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from console.readings import exposition
from console.readings.exposition import MAX_LABEL, Exposition, Sample, parse
from console.readings.series import WANTED

TEXTS = sorted(path.name for path in CAPTURES.glob("*.prom"))
A = frozenset({"a", "vllm:x", "b_total"})


def key(name: str, labels: object, value: float) -> tuple[str, object, str]:
    return name, labels, repr(value)


def oracle(body: bytes) -> Counter[tuple[str, object, str]]:
    families = text_string_to_metric_families(body.decode())
    return Counter(
        key(item.name, tuple(sorted(item.labels.items())), float(item.value))
        for one in families
        for item in one.samples
    )


def found(read: Exposition) -> Counter[tuple[str, object, str]]:
    return Counter(key(item.name, item.labels, item.value) for item in read.samples)


def one(text: bytes) -> Sample:
    read = parse(text, A)
    assert (len(read.samples), read.malformed) == (1, 0)
    return read.samples[0]


@pytest.mark.parametrize("name", TEXTS)
def test_every_sample_of_every_capture_is_as_the_full_parser_reads_it(name: str) -> None:
    body = body_of(name)
    expected = oracle(body)
    read = parse(body, frozenset(item[0] for item in expected))
    assert found(read) == expected
    assert (read.malformed, read.overflow, read.terminated) == (0, False, True)
    assert (read.lines, read.bytes) == (body.count(b"\n"), len(body))


@pytest.mark.parametrize("name", TEXTS)
def test_the_wanted_series_alone_are_kept(name: str) -> None:
    body = body_of(name)
    assert found(parse(body, WANTED)) == Counter({item: n for item, n in oracle(body).items() if item[0] in WANTED})


def test_there_are_captures_of_both_engines() -> None:
    assert len(TEXTS) == 31
    assert sum(name.startswith("sglang") for name in TEXTS) == 3


def test_openmetrics_spelling_is_read_as_the_plain_one() -> None:
    plain = parse(body_of("vllm_metrics_openmetrics.txt"), WANTED)
    assert {item.name for item in plain.samples} >= {"vllm:generation_tokens_total", "vllm:kv_cache_usage_perc"}
    assert not [item for item in plain.samples if item.name.startswith("vllm_")]
    assert plain.malformed == 0


@pytest.mark.parametrize(
    ("text", "labels", "value"),
    [
        (b'a{b="c"} 1\n', (("b", "c"),), 1.0),
        (b"a 1", (), 1.0),
        (b"a\t2.5e3\t1700000000000\n", (), 2500.0),
        (b"  a  3  \r\n", (), 3.0),
        (b"a{} 4\n", (), 4.0),
        (b'a{b="c",} 5\n', (("b", "c"),), 5.0),
        (b'a{ b = "c" , d = "e" }\t6\n', (("b", "c"), ("d", "e")), 6.0),
        (b'a {b="c"} 7\n', (("b", "c"),), 7.0),
        (b'a{z="1",b="2"} 8\n', (("b", "2"), ("z", "1")), 8.0),
        (b'a{b="}"} 9\n', (("b", "}"),), 9.0),
        (b'a{b="x\\"y\\\\z\\n{,}="} 10\n', (("b", 'x"y\\z\n{,}='),), 10.0),
        (b'a{b="\\q"} 11\n', (("b", "\\q"),), 11.0),
        (b'a{b="c"} 1 # {trace_id="x"} 1\n', (("b", "c"),), 1.0),
        (b'a 2 # {trace_id="x"} 1\n', (), 2.0),
        (b'{"vllm:x",engine="0"} 3\n', (("engine", "0"),), 3.0),
        (b'{"vllm:x"} 4\n', (), 4.0),
        (b'vllm_x{engine="0"} 5\n', (("engine", "0"),), 5.0),
        ('a{b="é漢"} 6\n'.encode(), (("b", "é漢"),), 6.0),
        (b'a{b="\xff"} 7\n', (("b", "\ufffd"),), 7.0),
        (b"a +Inf\n", (), math.inf),
        (b"a -Inf\n", (), -math.inf),
        (b"a 1e+400\n", (), math.inf),
    ],
)
def test_legal_but_awkward_lines(text: bytes, labels: object, value: float) -> None:
    sample = one(text)
    assert (sample.labels, sample.value) == (labels, value)


@pytest.mark.parametrize("text", [b"a NaN\n", b"a nan\n", b"a -nan\n"])
def test_not_a_number_stays_so(text: bytes) -> None:
    assert math.isnan(one(text).value)


@pytest.mark.parametrize(
    "text",
    [
        b'a{b="c"}\n',
        b'a{b="c\n',
        b'a{b="c\\"} 1\n',
        b"a{b=c} 1\n",
        b'a{b="c" d="e"} 1\n',
        b'a{,b="c"} 1\n',
        b'a{b="c",,} 1\n',
        b"a\n",
        b"a one\n",
        b"a 1_000\n",
        b"a 1 2 3\n",
        b"a 1 then\n",
        b"a 0x10\n",
        b"a 1\xc2\xa0\n",
    ],
)
def test_broken_lines_of_wanted_series_are_counted_and_yield_nothing(text: bytes) -> None:
    read = parse(text, A)
    assert (read.samples, read.malformed) == ((), 1)


@pytest.mark.parametrize(
    "text", [b"# a 1\n", b"#a 1\n", b"\n\n", b"ab 1\n", b"b 1\n", b'ab{a="1"} 1\n', b"{} 1\n", b"a:x 1\n"]
)
def test_other_lines_are_passed_over(text: bytes) -> None:
    read = parse(text, A)
    assert (read.samples, read.malformed, read.lines) == ((), 0, text.count(b"\n"))


def test_a_long_label_is_cut_and_two_of_them_stay_apart() -> None:
    long = b"x" * 5000
    read = parse(b'a{b="%b1"} 1\na{b="%b2"} 2\n' % (long, long), A)
    first, second = (item.labels[0][1] for item in read.samples)
    assert first != second
    assert {len(first), len(second)} == {MAX_LABEL}
    assert first.startswith("x" * 200)


@pytest.mark.parametrize("tail", range(12))
def test_a_cut_never_leaves_half_an_escape(tail: int) -> None:
    label = one(b'a{b="%b%b",c="d"} 1\n' % (b"y" * tail, b'\\"\\\\\\n' * 400)).label("b")
    assert label is not None
    assert set(label[: MAX_LABEL - 9]) <= set('y"\\\n')


def test_more_wanted_series_than_a_lane_can_have_are_not_read_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exposition, "MAX_SAMPLES", 3)
    read = parse(b"a 1\na 2\na 3\na 4\nb 5\n", A)
    assert (read.samples, read.overflow, read.lines) == ((), True, 5)
    assert len(parse(b"a 1\na 2\na 3\n", A).samples) == 3


def test_the_last_line_tells_whether_it_ended() -> None:
    assert parse(b"", A).terminated
    assert parse(b"a 1\n", A).terminated
    assert not parse(b"a 1", A).terminated


names = st.sampled_from(["a", "b_total", "vllm:x", "other"])
label_names = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,6}", fullmatch=True)
label_values = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), max_size=30
)
numbers = st.floats(allow_nan=False) | st.integers(-(10**15), 10**15).map(float)


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


@given(st.lists(st.tuples(names, st.dictionaries(label_names, label_values, max_size=4), numbers), max_size=8))
def test_whatever_is_written_by_the_rules_is_read_back(rows: list[tuple[str, dict[str, str], float]]) -> None:
    lines = []
    for name, labels, value in rows:
        inner = ",".join(f'{label}="{escaped(text)}"' for label, text in labels.items())
        lines.append(f"{name}{{{inner}}} {value!r}\n" if labels else f"{name} {value!r}\n")
    read = parse("".join(lines).encode(), A)
    expected = [Sample(name, tuple(sorted(labels.items())), value) for name, labels, value in rows if name in A]
    assert (list(read.samples), read.malformed, read.lines) == (expected, 0, len(rows))


hostile = st.lists(
    st.sampled_from(
        [b"a", b"vllm:x", b"{", b"}", b'"', b"\\", b",", b"=", b" ", b"\t", b"1", b"NaN", b"#", b"\n", b"\xff", b"\x00"]
    ),
    max_size=40,
).map(b"".join)


@given(st.binary(max_size=300) | hostile)
@example(b'a{b="c"} 1 # {d="}"} 1\n')
@example(b'{"a" 1\n')
@example(b"{")
def test_no_bytes_make_it_raise_and_none_are_invented(body: bytes) -> None:
    read = parse(body, A)
    assert read.lines == body.count(b"\n") + (bool(body) and not body.endswith(b"\n"))
    assert len(read.samples) + read.malformed <= read.lines
    assert all(item.name in A for item in read.samples)


@given(hostile)
def test_where_the_full_parser_agrees_that_text_is_legal_both_read_the_same(body: bytes) -> None:
    try:
        expected = oracle(body)
    except (ValueError, KeyError, IndexError, UnicodeDecodeError):
        return
    if any(item[0] not in A for item in expected) or b"\x00" in body:
        return
    read = parse(body, A)
    assert read.malformed or found(read) == expected
