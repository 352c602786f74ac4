"""The JSON Schema of a type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

_REFERENCE = "#/$defs/{name}"

WRITTEN = msgspec.Meta(extra_json_schema={"written": True})
"""Marks a field that has a default for readers, but is in every document."""


def json_schema(*kinds: type[msgspec.Struct], title: str) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a document of this type; of several types, any of them."""
    custom: dict[str, Any] = {}

    def stored_as(kind: Any) -> dict[str, Any]:
        custom[kind.__name__] = kind.stored_types()
        return {"stored_as": kind.__name__}

    rules, definitions = msgspec.json.schema_components(kinds, schema_hook=stored_as, ref_template=_REFERENCE)
    for name, types in custom.items():
        _add_stored(definitions, name, types)
    for definition in definitions.values():
        _require_written(definition)
        _name(definition)
    rule = {"anyOf": list(rules)} if len(kinds) > 1 else definitions.pop(rules[0]["$ref"].rsplit("/", 1)[1])
    dialect = "https://json-schema.org/draft/2020-12/schema"
    whole = {"$schema": dialect, **rule, "title": title, "$defs": definitions}
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(whole))
    return plain


def _add_stored(definitions: dict[str, Any], name: str, types: Mapping[str, Any]) -> None:
    """In place of a field of a type of our own, the keys that it is stored under; only one is not null."""
    rules, more = msgspec.json.schema_components(types.values(), ref_template=_REFERENCE)
    stored = {
        key: {"anyOf": [{"type": "null"}, rule], "default": None}
        for key, rule in zip(types, rules, strict=True)
    }
    for definition in definitions.values():
        properties = definition.get("properties", {})
        for field in [key for key, rule in properties.items() if rule.get("stored_as") == name]:
            del properties[field]
            properties |= stored
            definition["properties"] = properties
    definitions |= more


def _require_written(definition: dict[str, Any]) -> None:
    for name, rule in definition.get("properties", {}).items():
        if rule.pop("written", False):
            definition["required"].append(name)


def _name(definition: dict[str, Any]) -> None:
    """A document names its schema and the version of it, which never change."""
    properties = definition.get("properties", {})
    schema = properties.get("schema", {}).get("default")
    if schema is not None:
        properties["schema"] = {"enum": [schema]}
        properties["version"] = {"const": properties["version"]["default"]}
        definition["required"] = ["schema", "version", *definition["required"]]
