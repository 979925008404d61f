"""Secrets become references, whatever carries them; what is none stays as it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.readings.redaction import LENGTHS, bounded, redacted, redacted_argv, secret_name, secrets_of

HF = "hf_AbCdEfGhIjKlMnOpQrStUvWx"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbmEifQ.c2lnbmF0dXJl"
PEM = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n-----END OPENSSH PRIVATE KEY-----"

TEXTS = [
    (f"download with {HF} now", "download with secret:hf now"),
    (f"HF_TOKEN={HF}", "HF_TOKEN=secret:hf"),
    ("HF_TOKEN=plainvalue run", "HF_TOKEN=secret:HF_TOKEN run"),
    ('export HF_TOKEN="two words"; run', 'export HF_TOKEN="secret:HF_TOKEN"; run'),
    ("export API_KEY='two words'; run", "export API_KEY='secret:API_KEY'; run"),
    ("AWS_SECRET_ACCESS_KEY=abc/def+g", "AWS_SECRET_ACCESS_KEY=secret:AWS_SECRET_ACCESS_KEY"),
    ("DB_PASSWORD=12345678", "DB_PASSWORD=secret:DB_PASSWORD"),
    ("SPARK_KEY=abc", "SPARK_KEY=secret:SPARK_KEY"),
    ("Authorization: Bearer abc.def", "Authorization: secret:Authorization"),
    ("curl -H 'Authorization: Basic YW5hOg==' x", "curl -H 'Authorization: secret:Authorization' x"),
    ("sent Bearer abcdefgh", "sent Bearer secret:bearer"),
    ("http://ana:pa55@10.0.0.1:8210/health", "http://ana:secret:password@10.0.0.1:8210/health"),
    ("https://tokenvalue@git.example/x", "https://secret:password@git.example/x"),
    ("GET /v1?access_token=abc&model=x", "GET /v1?access_token=secret:access_token&model=x"),
    ('{"api_key": "abcdef", "n": 1}', '{"api_key": "secret:api_key", "n": 1}'),
    ("vllm serve --api-key abc --port 8000", "vllm serve --api-key secret:api-key --port 8000"),
    ("vllm serve --api-key=abc", "vllm serve --api-key=secret:api-key"),
    ("password: hunter2", "password: secret:password"),
    (f"token {JWT}", "token secret:jwt"),
    (f"x {PEM} y", "x secret:private-key y"),
    ("ghp_" + "a1" * 18, "secret:github"),
    ("glpat-" + "a1" * 10, "secret:gitlab"),
    ("nvapi-" + "a1" * 20, "secret:nvidia"),
    ("sk-" + "a1" * 12, "secret:openai"),
    ("AKIA" + "A1" * 8, "secret:aws"),
    ("https://hooks.slack.com/services/T0/B0/abcdefgh", "https://secret:slack"),
]


@pytest.mark.parametrize(("text", "expected"), TEXTS)
def test_a_secret_in_a_text_becomes_a_reference(text: str, expected: str) -> None:
    assert redacted(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "MAX_NUM_TOKENS=8192",
        "--max-total-tokens 4000",
        "--tokenizer=foo/bar",
        "KSCHED=1 KVTOK=5000000",
        "SSH_AUTH_SOCK=/run/user/1000/agent",
        "--key-file=/etc/k",
        "ssh://ana@spark-0/x",
        "ana@spark-0:/var/tmp",
        "the keys: D S R B",
        "tokens: 66.3",
        "author=ana monkey=5 path=/x compat=yes",
        "TOKEN= next",
        "HF_TOKEN=secret:HF_TOKEN",
        "stop rank 0: exited 137",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redacted(text) == text


def test_a_flag_hides_the_word_behind_it() -> None:
    argv = ("serve", "--api-key", "abc", "--token", "-q", "--max-tokens", "77", "--hf-token", HF, "-password", "zz")
    assert redacted_argv(argv) == (
        *("serve", "--api-key", "secret:api-key", "--token", "secret:token", "--max-tokens", "77"),
        *("--hf-token", "secret:hf-token", "-password", "secret:password"),
    )


def test_what_is_known_is_hidden_wherever_it_stands_and_the_longest_first() -> None:
    known = {"WEBHOOK": "https://chat.example/abc", "SHORT": "abc", "PREFIX": "https://chat.example"}
    assert redacted("post to https://chat.example/abc, abc", known) == "post to secret:WEBHOOK, abc"
    assert redacted_argv(("x=https://chat.example/abc",), known) == ("x=secret:WEBHOOK",)


def test_the_environment_tells_what_is_known() -> None:
    environment = {
        "HF_TOKEN": "abcdefgh",
        "PATH": "/usr/bin:/bin",
        "MAX_TOKENS": "1234567",
        "HOOK": "https://x/y",
        "K": "",
    }
    assert secrets_of(environment) == {"HF_TOKEN": "abcdefgh"}
    assert secrets_of(environment, ["HOOK"]) == {"HF_TOKEN": "abcdefgh", "HOOK": "https://x/y"}
    assert secret_name("MY_PASSWORD") and not secret_name("SSH_AUTH_SOCK")


VALUES = st.text("abcdefXYZ0123456789_-+/.", min_size=8, max_size=40).map(lambda text: f"Zq{text}")
NAMES = st.sampled_from(("HF_TOKEN", "API_KEY", "DB_PASSWORD", "MY_SECRET", "X_CREDENTIALS", "GIT_PAT"))
CARRIERS = ("{n}={v}", "export {n}='{v}'", '{n}="{v}"', "--{f} {v}", "--{f}={v}", "env {n}={v} run", '{{"{n}": "{v}"}}')


@given(NAMES, VALUES, st.sampled_from(CARRIERS), st.sampled_from(("", "a b ", "x; ", "(")))
def test_no_carrier_lets_a_value_through(name: str, value: str, carrier: str, before: str) -> None:
    flag = name.lower().replace("_", "-")
    assert value not in redacted(before + carrier.format(n=name, v=value, f=flag))
    assert value not in " ".join(redacted_argv((f"--{flag}", value)))


@given(st.text(max_size=300))
def test_any_text_is_taken_and_no_placeholder_is_left(text: str) -> None:
    assert not set(redacted(text)) & {"\ue000", "\ue001"}


@pytest.mark.parametrize(
    "unit", ["token-", "a-", "key=", 'key="', "--key ", "eyJ", "-----BEGIN ", "://a:", "authorization:", "Bearer "]
)
def test_repetition_does_not_blow_up(unit: str) -> None:
    """The work is linear: a hundred times the text may not take ten thousand times the steps; the limit ends a hang."""
    assert isinstance(redacted(unit * (65_536 // len(unit))), str)


def test_long_words_and_many_words_are_kept_as_what_identifies_them() -> None:
    script = "echo x\n" * 1000
    (word,) = bounded((script,), 512, 1 << 17)
    assert word.startswith("echo x\n") and "7000 characters, sha256 " in word and len(word) < LENGTHS[0]
    assert bounded(("a",) * 600, 512, 1 << 17)[-1] == "… 89 more words"
    assert bounded(("short", "words"), 512, 1 << 17) == ("short", "words")
    many = bounded(("\x01" * 1999,) * 512, 512, 1 << 17)
    assert len(many) == 512 and len(str(many)) < 1 << 17
