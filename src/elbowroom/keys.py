"""JSON documents: the names of their schemas and keys.

Names that were changed are read and written under both names until 1.0.
"""

from __future__ import annotations

from typing import Any

OLD_KEYS = {"hint": "mend", "per_bin": "per_second"}
"""The old name of each key that was renamed."""


def spellings(schema: str) -> tuple[str, ...]:
    """The names of a schema, the present one first: those of traces had a dash in place of the slash."""
    return (schema, schema.replace("/", "-", 1)) if schema.startswith("elbowroom/trace-") else (schema,)


def with_old_keys(value: Any) -> Any:
    """Plain data in which each key that was renamed is also there under its old name."""
    return _with_keys(value, OLD_KEYS)


def with_new_keys(value: Any) -> Any:
    """Plain data in which each key with an old name is also there under its new name."""
    return _with_keys(value, {old: new for new, old in OLD_KEYS.items()})


def _with_keys(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [_with_keys(item, names) for item in value]
    if isinstance(value, dict):
        named = {key: _with_keys(item, names) for key, item in value.items()}
        return {names[key]: item for key, item in named.items() if key in names} | named
    return value
