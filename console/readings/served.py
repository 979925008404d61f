"""The name that /v1/models answers: what clients ask for, never which checkpoint is loaded."""

from __future__ import annotations

import json

from console.readings.health import HttpAnswer, Transport
from console.sanitize import word


class UnreadableModels(ValueError):
    """/v1/models did not say a model name; the text says what came instead."""


def parse_models(answer: HttpAnswer) -> str:
    """The first model id of an OpenAI-style list, made safe. Raises UnreadableModels."""
    if answer.transport is not Transport.ANSWERED:
        raise UnreadableModels(f"/v1/models {answer.transport}")
    if answer.status == 401:
        raise UnreadableModels("/v1/models wants an API key")
    if answer.status != 200:
        raise UnreadableModels(f"/v1/models answered {answer.status}")
    return first_model(answer.body)


def first_model(body: bytes) -> str:
    """The first `data[].id` of a model list. Raises UnreadableModels."""
    try:
        name = json.loads(body)["data"][0]["id"]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise UnreadableModels("/v1/models is not a model list") from error
    if not isinstance(name, str) or not name:
        raise UnreadableModels("/v1/models names no model")
    return word(name)
