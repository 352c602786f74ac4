"""Names of functions in executables and shared libraries, by their symbol tables (ELF, 64 bits)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]

_HEADER = np.dtype(
    [
        ("magic", "S4"), ("class", "u1"), ("data", "u1"), ("rest", "u1", 34), ("sections_at", "<u8"),
        ("flags", "<u4"), ("sizes", "<u2", 3), ("section_bytes", "<u2"), ("sections", "<u2"),
        ("names", "<u2"),
    ]
)  # fmt: skip
_SECTION = np.dtype(
    [
        ("name", "<u4"), ("type", "<u4"), ("flags", "<u8"), ("address", "<u8"), ("at", "<u8"),
        ("bytes", "<u8"), ("link", "<u4"), ("info", "<u4"), ("alignment", "<u8"), ("entry", "<u8"),
    ]
)  # fmt: skip
_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("bytes", "<u8")]
)
_SYMTAB, _DYNSYM = 2, 11
_FUNCTION = 2


def functions_at(path: Path, addresses: Sequence[int]) -> list[str | None]:
    """The function that each virtual address lies in, as the linker names it; None where no symbol covers the
    address, or the file cannot be read. The nearest symbol before it would name another function where
    symbols were stripped.
    """
    try:
        data = np.memmap(path, np.uint8, "r")
        return _functions(data, addresses)
    except (OSError, ValueError, IndexError):
        return [None] * len(addresses)


def _functions(data: Bytes, addresses: Sequence[int]) -> list[str | None]:
    head = np.frombuffer(data, _HEADER, 1)[0]
    if head["magic"] != b"\x7fELF" or head["class"] != 2 or head["data"] != 1:
        return [None] * len(addresses)
    sections = np.frombuffer(data, _SECTION, int(head["sections"]), int(head["sections_at"]))
    functions: list[str | None] = [None] * len(addresses)
    for kind in (_DYNSYM, _SYMTAB):
        for table in sections[sections["type"] == kind]:
            texts = sections[table["link"]]
            symbols = np.frombuffer(data, _SYMBOL, int(table["bytes"]) // _SYMBOL.itemsize, int(table["at"]))
            symbols = symbols[(symbols["info"] & 15 == _FUNCTION) & (symbols["bytes"] > 0)]
            symbols = symbols[np.argsort(symbols["value"], kind="stable")]
            names = data[int(texts["at"]) : int(texts["at"] + texts["bytes"])]
            before = np.searchsorted(symbols["value"], np.array(addresses, np.uint64), side="right") - 1
            for at, (address, which) in enumerate(zip(addresses, before, strict=True)):
                if which >= 0 and address < int(symbols["value"][which]) + int(symbols["bytes"][which]):
                    functions[at] = _text(names, int(symbols["name"][which]))
    return functions


def _text(names: Bytes, at: int) -> str | None:
    end = names[at : at + 4096].tobytes().split(b"\0")[0]
    return end.decode("utf-8", "replace") or None
