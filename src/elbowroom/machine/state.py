"""The machine's state as the probe records it: every item a value or {"unknown": reason}."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


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
