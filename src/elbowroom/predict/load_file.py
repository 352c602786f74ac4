"""Loads as people write them: a TOML file, or words of the command line (docs/predict.md)."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import msgspec

from elbowroom.errors import UsageError, explained
from elbowroom.model.load import Computing, Copy, Load
from elbowroom.plan.kernels import closest
from elbowroom.plan.sizes import parse_size

PAGE = "docs/predict.md"

_TABLES = {
    "computing": ("socket", "node", "count", "intensity"),
    "messages": ("node", "direction", "size", "threads"),
    "copies": ("node", "demand"),
}


def decode(text: str, where: str) -> Load:
    """A load from TOML: tables `[[computing]]` and `[[copies]]`, and one `[messages]`; `where` names it in
    errors, which also tell field, value and mend. Sizes may be `1MiB`.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(
            f"not a TOML file: {error}", field="load", value=where, mend="mend the line"
        ) from error
    _check_keys(data, where)
    messages = data.get("messages")
    if isinstance(messages, dict) and isinstance(messages.get("size"), str):
        data["messages"] = {**messages, "size": parse_size(messages["size"], "messages.size")}
    try:
        load = msgspec.convert(data, Load)
    except msgspec.ValidationError as error:
        raise explained(error, data, where, subject="load", page=PAGE) from error
    if not load.computing and load.messages is None and not load.copies:
        raise UsageError(
            "holds nothing to do",
            field="load",
            value=where,
            mend=f"add [[computing]] or [messages], see {PAGE}",
        )
    return load


def _check_keys(data: dict[str, Any], where: str) -> None:
    """Refuses keys that no load has: msgspec would pass them over."""
    for name, value in data.items():
        if name not in _TABLES:
            raise UsageError(
                f"is no table of a load, in {where}", field=name, mend=closest(name, tuple(_TABLES))
            )
        for table in value if isinstance(value, list) else [value]:
            for key in table if isinstance(table, dict) else ():
                if key not in _TABLES[name]:
                    raise UsageError(
                        f"is no key of {name}, in {where}",
                        field=f"{name}.{key}",
                        value=table[key] if isinstance(table[key], str | int | float) else None,
                        mend=closest(key, _TABLES[name]),
                    )


def parse_group(text: str, intensity: float) -> Computing:
    """`1:4@0`: 4 cores of socket 1 on data of node 0, of that intensity, or of its own as in `1:4@0:0.5`."""
    found = re.fullmatch(r"(\d+):(\d+)@(\d+)(?::([\d.eE+-]+))?", text.strip())
    try:
        if found is None:
            raise ValueError
        own = intensity if found[4] is None else float(found[4])
    except ValueError as error:
        raise UsageError(
            "is no group of cores",
            field="group",
            value=text,
            mend="write SOCKET:CORES@NODE, for instance 1:4@0, or 1:4@0:0.5 with its flop/B",
        ) from error
    return Computing(socket=int(found[1]), count=int(found[2]), node=int(found[3]), intensity=own)


def parse_copy(text: str) -> Copy:
    """`12000@0`: a copy that alone reaches 12000 MB/s from or to node 0."""
    demand, _, node = text.partition("@")
    try:
        return Copy(node=int(node), demand=float(demand))
    except ValueError as error:
        raise UsageError(
            "is no copy", field="copy", value=text, mend="write MB/s@NODE, for instance 12000@0"
        ) from error
