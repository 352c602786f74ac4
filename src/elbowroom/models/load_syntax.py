"""Loads as people write them: a TOML file, or words of the command line (docs/guide/predict.md)."""

from __future__ import annotations

import re
from typing import Any

from elbowroom.documents import check_keys, convert, parse_toml
from elbowroom.errors import UsageError
from elbowroom.models.load import Computing, Copy, Load
from elbowroom.plan.sizes import parse_size

PAGE = "`elbowroom help predict`"

_TABLES = {
    "computing": ("socket", "node", "count", "intensity"),
    "messages": ("node", "direction", "size", "threads"),
    "copies": ("node", "demand"),
}


def decode(text: str, where: str) -> Load:
    """A load from TOML: tables `[[computing]]` and `[[copies]]`, and one `[messages]`; `where` names it in
    errors, which also tell field, value and hint. Sizes may be `1MiB`.
    """
    data = parse_toml(text, field="load", where=where)
    _check_keys(data, where)
    messages = data.get("messages")
    if isinstance(messages, dict) and isinstance(messages.get("size"), str):
        data["messages"] = {**messages, "size": parse_size(messages["size"], "messages.size")}
    load = convert(data, Load, where=where, subject="load", page=PAGE)
    if not load.computing and load.messages is None and not load.copies:
        raise UsageError(
            "defines no load",
            field="load",
            value=where,
            hint=f"add [[computing]] or [messages], see {PAGE}",
        )
    return load


def _check_keys(data: dict[str, Any], where: str) -> None:
    """Refuses keys that no load has: msgspec would pass them over."""
    check_keys(data, _TABLES, of="a load", where=where)
    for name, value in data.items():
        for table in value if isinstance(value, list) else [value]:
            if isinstance(table, dict):
                check_keys(table, _TABLES[name], of=name, where=where, prefix=f"{name}.")


def parse_group(text: str, intensity: float) -> Computing:
    """`1:4@0`: 4 cores of socket 1 on data of node 0, of that intensity, or of its own as in `1:4@0:0.5`."""
    match = re.fullmatch(r"(\d+):(\d+)@(\d+)(?::([\d.eE+-]+))?", text.strip())
    try:
        if match is None:
            raise ValueError
        own = intensity if match[4] is None else float(match[4])
    except ValueError as error:
        raise UsageError(
            "is not a group of cores",
            field="group",
            value=text,
            hint="write SOCKET:CORES@NODE, for instance 1:4@0, or 1:4@0:0.5 with its flop/B",
        ) from error
    return Computing(socket=int(match[1]), count=int(match[2]), node=int(match[3]), intensity=own)


def parse_copy(text: str) -> Copy:
    """`12000@0`: a copy that alone reaches 12000 MB/s from or to node 0."""
    demand, _, node = text.partition("@")
    try:
        return Copy(node=int(node), demand=float(demand))
    except ValueError as error:
        raise UsageError(
            "is not a copy", field="copy", value=text, hint="write MB/s@NODE, for instance 12000@0"
        ) from error
