"""M.json on the disk: written whole or not at all, read with sentences for what is wrong."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from elbowroom.errors import UsageError
from elbowroom.model.document import SCHEMA, VERSION, Document
from elbowroom.store.files import write_atomically
from elbowroom.store.versions import check_version

_MEND = "fit it again: elbowroom fit RUN -o M.json"


def write_model(path: Path, document: Document) -> None:
    """Writes the file; MachineError when the disk refuses."""
    if path.is_dir():
        raise UsageError("is a folder", field="out", value=str(path), mend="name a file")
    write_atomically(path, msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n")


def read_model(path: Path) -> Document:
    """The document; UsageError names the file, the line or the field, and what mends it.

    Fields that this release does not know are passed over; a newer version is refused.
    """
    try:
        data = path.read_bytes()
    except IsADirectoryError as error:
        raise UsageError(
            "is a folder, not a model", field="model", value=str(path), mend="name a file M.json"
        ) from error
    except OSError as error:
        raise UsageError(
            f"cannot be read ({error.strerror})", field="model", value=str(path), mend=_MEND
        ) from error
    head = _decoded(path, data)
    check_version(path, SCHEMA, head.get("version"), VERSION, head.get("elbowroom"))
    try:
        document = msgspec.convert(head, Document)
    except msgspec.ValidationError as error:
        message, _, where = str(error).partition(" - at ")
        field = where.strip("`").removeprefix("$.")
        raise UsageError(
            f"{path}: {message[:1].lower()}{message[1:]}",
            field=field or "model",
            value=_at(head, field) if field else None,
            mend=_MEND,
        ) from error
    _check(path, document)
    return document


def _decoded(path: Path, data: bytes) -> dict[str, Any]:
    try:
        head = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        found = re.search(r"byte (\d+)", str(error))
        line = data[: int(found[1])].count(b"\n") + 1 if found else 1
        raise UsageError(
            f"line {line} is no JSON ({error})", field="model", value=str(path), mend=_MEND
        ) from error
    if not isinstance(head, dict) or head.get("schema") != SCHEMA:
        raise UsageError(
            f"is no model of elbowroom (schema {SCHEMA!r})", field="model", value=str(path), mend=_MEND
        )
    return head


def _at(data: Any, field: str) -> Any:
    """The value at a path like `models.flow.values[3]`; None where there is none to show."""
    for word in re.findall(r"\w+", field):
        try:
            data = data[int(word)] if isinstance(data, list) else data[word]
        except (KeyError, IndexError, TypeError, ValueError):
            return None
    return data if isinstance(data, str | int | float | bool) else None


def _check(path: Path, document: Document) -> None:
    """What types cannot say: counts of at least one, rows as long as the names of their columns."""
    machine = document.machine
    for field in ("cores_first_socket", "numa_per_socket", "sockets"):
        if getattr(machine, field) < 1:
            raise UsageError(
                f"{path}: is below 1", field=f"machine.{field}", value=getattr(machine, field), mend=_MEND
            )
    flow = document.models.flow
    if flow is None:
        return
    rows = [("values", flow.values), ("low", flow.low), ("high", flow.high)]
    rows += [(f"draws[{number}]", draw) for number, draw in enumerate(flow.draws)]
    for field, row in rows:
        if len(row) != len(flow.names):
            raise UsageError(
                f"{path}: {len(row)} numbers for {len(flow.names)} parameters",
                field=f"models.flow.{field}",
                mend=_MEND,
            )
