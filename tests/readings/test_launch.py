"""What a command line says about the engine behind it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.readings import launch
from console.readings.throughput import EngineKind


@pytest.mark.parametrize(
    ("argv", "value"),
    [
        (["--port", "30006"], "30006"),
        (["--port=30006"], "30006"),
        (["--port", "1", "--port", "2"], "2"),
        (["--port"], None),
        (["--port", "--host"], None),
        (["--ports", "1"], None),
        ([], None),
    ],
)
def test_flag(argv: list[str], value: str | None) -> None:
    assert launch.flag(argv, "--port") == value


def test_underscores_count_as_dashes() -> None:
    assert launch.flag(["--served_model_name", "x"], "--served-model-name") == "x"
    assert launch.flag(["--served_model_name=a_b"], "--served-model-name") == "a_b"


def test_a_command_hidden_in_a_shell_is_seen() -> None:
    argv = launch.words(["bash", "-c", "exec vllm serve '/my model' --port 8001 --served-model-name 'a b'"])
    assert launch.listen_ports(argv, EngineKind.VLLM) == (8001,)
    assert launch.served_name(argv) == "a b"
    assert launch.model_argument(argv, EngineKind.VLLM) == ("/my model", "serve")


def test_json_arguments_stay_whole() -> None:
    argv = ["--speculative-config", '{"a": 1, "b": " --port 9"}', "--port", "8000"]
    assert launch.words(argv) == tuple(argv)


def test_an_open_quote_does_not_hide_the_rest() -> None:
    assert "--port" in launch.words(["sh", "-c", "vllm serve it's --port 8001"])


@pytest.mark.parametrize(
    ("image", "argv", "kind"),
    [
        ("vllm/vllm-openai:x", [], EngineKind.VLLM),
        ("lmsysorg/sglang:dev", [], EngineKind.SGLANG),
        ("ghcr.io/ggml-org/llama.cpp:server", [], EngineKind.LLAMACPP),
        ("own/image", ["python3", "-m", "sglang.launch_server"], EngineKind.SGLANG),
        ("own/vllm-and-sglang", ["vllm", "serve", "x"], EngineKind.VLLM),
        ("own/image", ["/app/llama-server"], EngineKind.LLAMACPP),
        ("nginx", ["nginx", "-g", "daemon off;"], EngineKind.UNKNOWN),
        ("own/singleton", [], EngineKind.UNKNOWN),
    ],
)
def test_engine_kind(image: str, argv: list[str], kind: EngineKind) -> None:
    assert launch.engine_kind(image, argv) is kind


@pytest.mark.parametrize(
    ("argv", "kind", "ports"),
    [
        (["--port", "30006"], EngineKind.VLLM, (30006,)),
        (["-p", "9000"], EngineKind.UNKNOWN, (9000,)),
        (["mkdir", "-p", "/x"], EngineKind.UNKNOWN, ()),
        ([], EngineKind.SGLANG, (30000,)),
        ([], EngineKind.VLLM, (8000,)),
        ([], EngineKind.LLAMACPP, (8080,)),
        ([], EngineKind.UNKNOWN, ()),
        (["--headless"], EngineKind.VLLM, ()),
        (["--port", "99999"], EngineKind.UNKNOWN, ()),
        (["--port", "0"], EngineKind.UNKNOWN, ()),
        (["--port", "٣٠٠٠"], EngineKind.UNKNOWN, ()),
    ],
)
def test_listen_ports(argv: list[str], kind: EngineKind, ports: tuple[int, ...]) -> None:
    assert launch.listen_ports(argv, kind) == ports


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (["--api-key", "s3cret", "--port", "1"], ("--api-key", "***", "--port", "1")),
        (["--api-key=s3cret"], ("--api-key=***",)),
        (["--admin_api_key", "s3cret"], ("--admin_api_key", "***")),
        (["--hf-token", "s3cret"], ("--hf-token", "***")),
        (["--max-num-batched-tokens", "8192"], ("--max-num-batched-tokens", "8192")),
        (["--tokenizer", "x"], ("--tokenizer", "x")),
        (["--api-key", "a", "--api-key", "b"], ("--api-key", "***", "--api-key", "***")),
    ],
)
def test_secrets_are_hidden(argv: list[str], shown: tuple[str, ...]) -> None:
    assert launch.without_secrets(argv) == shown


@given(st.lists(st.text(max_size=40), max_size=20))
def test_any_command_line_is_read(argv: list[str]) -> None:
    argv_words = launch.words(argv)
    kind = launch.engine_kind("", argv_words)
    assert all(0 < port < 65536 for port in launch.listen_ports(argv_words, kind))
    assert isinstance(launch.served_name(argv_words), str)
    assert len(launch.without_secrets(argv_words)) == len(argv_words)


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("HF_TOKEN", "hf_abc", "***"),
        ("HUGGING_FACE_HUB_TOKEN", "x", "***"),
        ("OPENAI_API_KEY", "x", "***"),
        ("ApiKey", "x", "***"),
        ("AWS_SECRET_ACCESS_KEY", "x", "***"),
        ("PGPASSWORD", "12345678", "***"),
        ("db-passwd", "x", "***"),
        ("REDIS_AUTH", "x", "***"),
        ("HF_TOKEN", "12345", "***"),
        ("HF_TOKEN", "", ""),
        ("MAX_NUM_TOKENS", "8192", "8192"),
        ("API_TOKENS", "a,b", "***"),
        ("TOKENIZERS_PARALLELISM", "false", "false"),
        ("NCCL_IB_HCA", "rocep1s0f0", "rocep1s0f0"),
        ("KEYBOARD", "de", "de"),
        ("HTTPS_PROXY", "http://ana:secret@proxy:3128/", "http://***@proxy:3128/"),
        ("EXTRA_ARGS", "--tp 4 --api-key sk-1 --x", "--tp 4 --api-key *** --x"),
        ("EXTRA_ARGS", "--admin_api_key=sk-1", "--admin_api_key ***"),
    ],
)
def test_secrets_of_an_environment_are_hidden(name: str, value: str, shown: str) -> None:
    assert launch.without_secret(name, value) == shown


@given(st.text(max_size=200), st.text(max_size=2000))
def test_any_variable_is_shown_or_hidden(name: str, value: str) -> None:
    assert isinstance(launch.without_secret(name, value), str)
