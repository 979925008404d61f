"""JSON schemas of fleet.toml and of recipes, for editors; descriptions are the docstrings of the keys."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel

from console.fleet.inventory import Fleet
from console.fleet.recipe_model import Recipe

SCHEMAS: dict[str, type[BaseModel]] = {"fleet": Fleet, "recipe": Recipe}
"""Models by the name of their file's kind."""


def schema(kind: str) -> dict[str, Any]:
    """The JSON schema (2020-12) of `fleet` or `recipe`. Raises KeyError."""
    model = SCHEMAS[kind]
    made = model.model_json_schema(by_alias=True)
    tables = {table.__name__: table for table in models(model)}
    for name, part in {model.__name__: made, **made.get("$defs", {})}.items():
        if name in tables:
            _describe(part, tables[name])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


def models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """A model and every model of its tables, each once."""
    seen: dict[type[BaseModel], None] = {}
    waiting: list[Any] = [model]
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            if kind not in seen:
                seen[kind] = None
                waiting += [item.annotation for item in kind.model_fields.values()]
        else:
            waiting += get_args(kind)
    yield from seen


def descriptions(model: type[BaseModel]) -> dict[str, str]:
    """The docstring below each key, by key; those of the classes that it is made from too."""
    found: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        if not issubclass(kind, BaseModel) or kind.__module__.startswith("pydantic"):
            continue
        (body,) = ast.parse(inspect.cleandoc("\n" + inspect.getsource(kind))).body
        assert isinstance(body, ast.ClassDef)
        for above, below in zip(body.body, body.body[1:], strict=False):
            if isinstance(above, ast.AnnAssign) and isinstance(above.target, ast.Name) and _is_text(below):
                found[above.target.id] = " ".join(ast.literal_eval(below.value).split())  # type: ignore[attr-defined]
    return found


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _describe(part: dict[str, Any], model: type[BaseModel]) -> None:
    said = descriptions(model)
    properties: dict[str, Any] = part.get("properties", {})
    for key, item in model.model_fields.items():
        if item.exclude:
            properties.pop(key, None)  # the program's own, none of the file's
        elif key in properties and key in said:
            properties[key]["description"] = said[key]
