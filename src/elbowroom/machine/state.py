"""The machine's state as the probe records it: every item a value or {"unknown": reason}; and the assessment
of one fact, a line of `doctor` before it has its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec


def known(state: Mapping[str, Any], *path: str) -> Any:
    """The value at `path`, for instance ("cgroup", "cpu_max"); None when it is absent or unknown."""
    value: Any = state
    for key in path:
        if not isinstance(value, Mapping) or key not in value:
            return None
        value = value[key]
    return None if _reason(value) else value


def why_unknown(state: Mapping[str, Any], *path: str) -> str:
    """Why there is no value at `path`; empty when there is one."""
    value: Any = state
    for key in path:
        if _reason(value):
            break
        if not isinstance(value, Mapping) or key not in value:
            return "not recorded"
        value = value[key]
    return _reason(value)


def unknowns(state: Mapping[str, Any]) -> dict[str, str]:
    """All that is unknown, with the reason, by dotted name: what the manifest and the report list."""
    reasons: dict[str, str] = {}
    for key, value in state.items():
        if _reason(value):
            reasons[key] = _reason(value)
        elif isinstance(value, Mapping):
            reasons.update({f"{key}.{name}": reason for name, reason in unknowns(value).items()})
        elif isinstance(value, list | tuple):
            for index, item in enumerate(value):
                if isinstance(item, Mapping):
                    name = str(item.get("name", item.get("number", index)))
                    inner = unknowns(item)
                    reasons.update({f"{key}.{name}.{part}": reason for part, reason in inner.items()})
    return reasons


def _reason(value: Any) -> str:
    if isinstance(value, Mapping) and set(value) == {"unknown"}:
        return str(value["unknown"]) or "no reason given"
    return ""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a fact could not be had, and what would fix it."""

    reason: str
    hint: str = ""


class Assessment(msgspec.Struct, frozen=True):
    """What a look at one fact says."""

    status: Literal["ok", "warn", "n/a"]
    text: str
    hint: str = ""


def ok(text: str) -> Assessment:
    """A fact that is as it should be."""
    return Assessment("ok", text)


def warn(text: str, hint: str) -> Assessment:
    """A fact that spoils measurements, and what would fix it."""
    return Assessment("warn", text, hint)


def absent(text: str, hint: str = "") -> Assessment:
    """`n/a`, with the reason as text."""
    return Assessment("n/a", text, hint)
