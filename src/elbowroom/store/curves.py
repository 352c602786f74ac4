"""Curves as CSV: what people measured with something else, and what `export --format curves` writes.

    # name: henri
    # cores_first_socket: 18
    # numa_per_socket: 1
    comp_node,comm_node,n,comp_alone,comm_alone,comp_together,comm_together
    0,0,1,5630.2,10871.0,5630.0,10865.1

Bandwidths are MB/s; comp_node < numa_per_socket is local to the computing cores; rows may be few and
scattered, an empty cell was not measured, and a column `n_other` (cores of the second socket) may be there.
Of lines that start with #, the three above and those that start with `# elbowroom/` (EXTRA) are headers, the
others comments.
"""

from __future__ import annotations

import csv
import difflib
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from elbowroom.errors import UsageError, closest
from elbowroom.files import read_document, write_atomically
from elbowroom.models.curves import STREAMS, Curves, Row, Shape, Situation
from elbowroom.plan.kernels import KERNELS
from elbowroom.quantities import parse_size

COLUMNS = ("comp_node", "comm_node", "n", *STREAMS)
OPTIONAL = ("n_other",)
HEADERS = ("name", "cores_first_socket", "numa_per_socket")
EXTRA = ("sockets", "nic_node", "virtual", "kernel", "size", "unit")
"""What the three headers do not say, each as `# elbowroom/KEY: value`; `unit: MB/s` confirms an odd scale."""

EXAMPLE = "for instance # cores_first_socket: 18"
KERNEL, SIZE = "memset_nt", 64_000_000
"""The benchmark of the thesis, where a file names no other."""
DEFAULT_SOCKETS = 2  # the machines of the thesis, and nearly all others

LEAST_COMP, LEAST_COMM = 1_000.0, 50.0
"""MB/s. One core of any machine of the last 15 years writes more, and so does any network of 1 Gb/s: where no
value of a side reaches these, it is GB/s.
"""
MOST_PER_CORE, MOST_COMM = 200_000.0, 1_000_000.0
"""MB/s. No core and no NIC does more: where all values of a side do, they are kB/s or B/s."""

LEAST, LARGEST = 1e-6, 1e12
"""MB/s: 1 B/s and 1 EB/s. Values outside are slips, and their squares or ratios may leave the range of
numbers.
"""

MOST = 16_384
"""Cores, nodes, sockets: the run folder lists each of them, so a slip must not fill the disk."""

_HEADER = re.compile(r"#\s*(elbowroom/)?(\w+)\s*:\s*(.*?)\s*")
_WHOLE = re.compile(r"[0-9]{1,9}")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def read_curves(path: Path) -> Curves:
    """The curves in a file; UsageError names file, line, field and hint, MB/s expected."""
    return parse_curves(read_document(path, field="curves", hint="name a CSV file"), str(path))


def may_be_curves(path: Path) -> bool:
    """Whether a word of such files is in it. What is empty or no text may be one, too: reading it says what
    is wrong.
    """
    data = read_document(path, field="curves", hint="name a CSV file")
    words = (*COLUMNS[:2], *HEADERS[1:])
    return not data.strip() or b"\0" in data or any(word.encode() in data for word in words)


def write_curves(path: Path, curves: Curves) -> None:
    """Writes the curves, whole or not at all."""
    write_atomically(path, format_curves(curves).encode())


def parse_curves(data: bytes, name: str) -> Curves:
    """The curves in the content of a file; `name` is the file's, for messages."""
    return _CurvesReader(name).curves(_text(data, name))


def format_curves(curves: Curves) -> str:
    """The text that `parse_curves` reads back to equal curves (but for `spread` and `source`)."""
    shape = curves.shape
    lines = [f"# name: {shape.name}", f"# cores_first_socket: {shape.cores_first_socket}"]
    lines.append(f"# numa_per_socket: {shape.numa_per_socket}")
    extra: dict[str, object] = {}
    if (curves.kernel, curves.size) != (KERNEL, SIZE):
        extra = {"kernel": curves.kernel, "size": curves.size}
    if shape.sockets != DEFAULT_SOCKETS:
        extra["sockets"] = shape.sockets
    if shape.nic_node is not None:
        extra["nic_node"] = shape.nic_node
    if shape.virtual:
        extra["virtual"] = "true"
    if _odd_scale(curves.rows):
        extra["unit"] = "MB/s"
    lines += [f"# elbowroom/{key}: {extra[key]}" for key in EXTRA if key in extra]
    other = any(row.situation.n_other for row in curves.rows)
    lines.append(",".join((*COLUMNS, *(OPTIONAL if other else ()))))
    for row in sorted(curves.rows, key=lambda row: row.situation):
        at = row.situation
        cells = [str(at.comp_node), str(at.comm_node), str(at.n)]
        cells += ["" if value is None else repr(value) for value in row.streams]
        lines.append(",".join(cells + ([str(at.n_other)] if other else [])))
    return "\n".join(lines) + "\n"


def _text(data: bytes, name: str) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise UsageError("is UTF-16 text", field="curves", value=name, hint="save it as UTF-8 text")
    if b"\0" in data:
        raise UsageError(
            "is a binary file, not text", field="curves", value=name, hint="save the table as CSV"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UsageError(
            f"line {line} is not UTF-8 text", field="curves", value=name, hint="save the table as UTF-8 CSV"
        ) from error


class CsvReader:
    """Reads one file; its errors name the file and the line."""

    def __init__(self, name: str) -> None:
        self.name = name

    def error(
        self, message: str, field: str, value: object, hint: str, line: int | None = None
    ) -> UsageError:
        """An error in the file, or on one of its lines."""
        where = f"{self.name} line {line}" if line is not None else self.name
        return UsageError(f"{where}: {message}", field=field, value=value, hint=hint)

    def cells(self, number: int, line: str) -> list[str]:
        """The cells of a line."""
        try:
            return [cell.strip() for cell in next(csv.reader([line], strict=True))]
        except csv.Error as error:
            raise self.error(
                f"is not CSV ({error})", "line", line[:60], "separate cells by commas", number
            ) from error


class _CurvesReader(CsvReader):
    """Reads curves."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.headers: dict[str, tuple[int, str]] = {}
        self.comments: dict[str, int] = {}
        self.columns: tuple[str, ...] = ()
        self.line_of: dict[Situation, int] = {}

    def curves(self, text: str) -> Curves:
        rows: list[tuple[int, list[str]]] = []
        for number, line in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
            if line.lstrip().startswith("#"):
                self._header(number, line.strip())
            elif line.strip():
                rows.append((number, self.cells(number, line)))
        if not rows and not self.headers:
            raise self.error("there is nothing in it", "curves", None, "see `elbowroom help predict`")
        shape = self._shape()
        if not rows:
            raise self.error("no line names the columns", "columns", None, f"write {','.join(COLUMNS)}")
        self._name_columns(*rows[0])
        if len(rows) == 1:
            raise self.error(
                "no values follow the names of the columns", "rows", None, "add a line for each run"
            )
        measured = tuple(self._row(number, cells, shape) for number, cells in rows[1:])
        self._check_scale(measured)
        return Curves(
            shape=shape,
            rows=measured,
            origin=self.name,
            **self._benchmark(),
        )

    def _header(self, number: int, line: str) -> None:
        match = _HEADER.fullmatch(line)
        if match is None:
            return
        own, key, value = bool(match[1]), match[2], match[3]
        if key not in (EXTRA if own else HEADERS):
            if own:
                raise self.error("no such header", "header", f"elbowroom/{key}", closest(key, EXTRA), number)
            self.comments.setdefault(key, number)
            return
        if key in self.headers and self.headers[key][1] != value:
            raise self.error(
                f"is {self.headers[key][1]!r} on line {self.headers[key][0]}", key, value, "keep one", number
            )
        if not value or not value.isprintable():
            raise self.error("has no readable value", key, value, "give it a value", number)
        self.headers.setdefault(key, (number, value))

    def _shape(self) -> Shape:
        for key in HEADERS:
            if key not in self.headers:
                near = difflib.get_close_matches(key, self.comments, 1, 0.8)
                hint = f"line {self.comments[near[0]]} says {near[0]!r}" if near else f"add a line # {key}: …"
                raise self.error("this header is missing", key, None, f"{hint}; {EXAMPLE}")
        nodes = self._whole_header("numa_per_socket", least=1)
        sockets = self._whole_header("sockets", default=DEFAULT_SOCKETS, least=1)
        if sockets * max(nodes, self._whole_header("cores_first_socket", least=1)) > MOST:
            raise self.error("makes more than any machine has", "sockets", sockets, "count them again")
        nic = self._whole_header("nic_node", default=-1)
        if nic >= sockets * nodes:
            raise self._outside("nic_node", nic, sockets * nodes, self.headers["nic_node"][0])
        for key, allowed in (("virtual", ("true", "false")), ("unit", ("MB/s",))):
            line, value = self.headers.get(key, (0, allowed[0]))
            if value not in allowed:
                raise self.error("cannot be read", key, value, f"write {' or '.join(allowed)}", line)
        return Shape(
            name=self.headers["name"][1],
            cores_first_socket=self._whole_header("cores_first_socket", least=1),
            numa_per_socket=nodes,
            sockets=sockets,
            nic_node=None if nic < 0 else nic,
            virtual=self.headers.get("virtual", (0, "false"))[1] == "true",
        )

    def _benchmark(self) -> dict[str, Any]:
        """Kernel and message size where the file says them; else those of Curves, the thesis' benchmark."""
        benchmark: dict[str, Any] = {}
        if "kernel" in self.headers:
            line, kernel = self.headers["kernel"]
            if kernel not in KERNELS:
                raise self.error("no such kernel", "kernel", kernel, closest(kernel, KERNELS), line)
            benchmark["kernel"] = kernel
        if "size" in self.headers:
            benchmark["size"] = parse_size(self.headers["size"][1], "size")
        return benchmark

    def _whole_header(self, key: str, *, default: int | None = None, least: int = 0) -> int:
        if key not in self.headers and default is not None:
            return default
        line, text = self.headers[key]
        if _WHOLE.fullmatch(text) is None or int(text) < least:
            raise self.error(f"is not a whole number from {least}", key, text, EXAMPLE, line)
        if int(text) > MOST:
            raise self.error("is more than any machine has", key, text, EXAMPLE, line)
        return int(text)

    def _outside(self, field: str, value: int, nodes: int, line: int) -> UsageError:
        message = (
            f"the machine has the nodes 0 to {nodes - 1}" if nodes > 1 else "the machine has node 0 alone"
        )
        hint = "nodes are counted from 0; with more than two sockets add # elbowroom/sockets: 4"
        return self.error(message, field, value, hint, line)

    def _name_columns(self, number: int, names: list[str]) -> None:
        if all(_NUMBER.fullmatch(name) for name in names):
            hint = f"write {','.join(COLUMNS)} above the first row"
            raise self.error("no line names the columns", "columns", ",".join(names), hint, number)
        if len(names) == 1 and re.search(r"[;\t]", names[0]):
            raise self.error("cells are not separated by commas", "columns", names[0], "write commas", number)
        for name in names:
            if name not in (*COLUMNS, *OPTIONAL):
                hint = closest(name, (*COLUMNS, *OPTIONAL))
                raise self.error("unknown column", "columns", name, hint, number)
            if names.count(name) > 1:
                raise self.error("this column appears twice", "columns", name, "keep one", number)
        for name in COLUMNS:
            if name not in names:
                raise self.error(
                    "this column is missing", "columns", name, "add it, empty where unknown", number
                )
        self.columns = tuple(names)

    def _row(self, number: int, cells: list[str], shape: Shape) -> Row:
        if len(cells) != len(self.columns):
            raise self.error(
                f"{len(cells)} cells where {len(self.columns)} columns are named",
                "row",
                ",".join(cells)[:60],
                "separate cells by commas and write numbers with a decimal point",
                number,
            )
        row = dict(zip(self.columns, cells, strict=True))
        at = self._situation(number, row, shape)
        if at in self.line_of:
            hint = "keep one of the two lines, or their mean"
            run = f"{at.comp_node},{at.comm_node},{at.n}"
            raise self.error(f"the same run as line {self.line_of[at]}", "row", run, hint, number)
        self.line_of[at] = number
        values: dict[str, Any] = {name: self._bandwidth(number, name, row[name]) for name in STREAMS}
        if all(value is None for value in values.values()):
            raise self.error("no bandwidth is given", "row", ",".join(cells), "fill it in or drop it", number)
        return Row(situation=at, **values, source=f"{self.name} line {number}")

    def _situation(self, number: int, row: Mapping[str, str], shape: Shape) -> Situation:
        comp, comm, n = (self._whole(number, name, row[name]) for name in ("comp_node", "comm_node", "n"))
        other = self._whole(number, "n_other", row["n_other"]) if "n_other" in row else 0
        for name, node in (("comp_node", comp), ("comm_node", comm)):
            if node >= shape.nodes:
                raise self._outside(name, node, shape.nodes, number)
        if other and shape.sockets < 2:
            raise self.error("the machine has one socket", "n_other", other, "drop the column", number)
        for name, count in (("n", n), ("n_other", other)):
            if count > shape.cores_first_socket:
                message = f"a socket has {shape.cores_first_socket} cores"
                hint = "n counts the computing cores of one socket: fix it, or cores_first_socket"
                raise self.error(message, name, count, hint, number)
        if n + other < 1:
            hint = "drop the line: communication alone is the column comm_alone"
            raise self.error("no core computes", "n", n, hint, number)
        return Situation(comp_node=comp, comm_node=comm, n=n, n_other=other)

    def _whole(self, number: int, field: str, text: str) -> int:
        if not text:
            raise self.error("is missing", field, text, "every line needs one", number)
        if _WHOLE.fullmatch(text) is None:
            raise self.error("is not a whole number from 0", field, text, "for instance 4", number)
        return int(text)

    def _bandwidth(self, number: int, field: str, text: str) -> float | None:
        if not text:
            return None
        if _NUMBER.fullmatch(text) is None or not math.isfinite(float(text)):
            hint = "give MB/s like 12345.6, or leave the cell empty where nothing was measured"
            raise self.error("is not a number", field, text, hint, number)
        if float(text) <= 0:
            hint = "a bandwidth is more than 0 MB/s; leave the cell empty where nothing was measured"
            raise self.error("is not positive", field, text, hint, number)
        if not LEAST <= float(text) <= LARGEST:
            hint = "give MB/s like 12345.6, or leave the cell empty where nothing was measured"
            raise self.error("is not a bandwidth of a machine", field, text, hint, number)
        return float(text)

    def _check_scale(self, rows: Iterable[Row]) -> None:
        if "unit" in self.headers:
            return
        odd = _odd_scale(tuple(rows))
        if odd:
            field, value, looks, factor = odd
            hint = f"{factor}, or confirm with a line # elbowroom/unit: MB/s"
            raise self.error(f"all its values look like {looks}; MB/s is expected", field, value, hint)


def _odd_scale(rows: tuple[Row, ...]) -> tuple[str, str, str, str] | None:
    """(field, range, unit it looks like, hint) where all values of a side seem to be in another unit."""
    comp: list[float] = []
    comm: list[float] = []
    per_core: list[float] = []
    for row in rows:
        computing = _given(row.comp_alone, row.comp_together)
        comp += computing
        per_core += [value / (row.situation.n + row.situation.n_other) for value in computing]
        comm += _given(row.comm_alone, row.comm_together)
    for field, values, compared, least, most in (
        ("comp_alone", comp, per_core, LEAST_COMP, MOST_PER_CORE),
        ("comm_alone", comm, comm, LEAST_COMM, MOST_COMM),
    ):
        if values:
            span = f"{min(values):g} to {max(values):g}"
            if max(values) < least:
                return field, span, "GB/s", "multiply by 1000"
            if min(compared) > most:
                return field, span, "kB/s or B/s", "divide by 1000 or 1000000"
    return None


def _given(*values: float | None) -> list[float]:
    return [value for value in values if value is not None]


def same(first: Curves, second: Curves) -> bool:
    """Whether two curves say the same, wherever they come from."""

    def plain(curves: Curves) -> Curves:
        rows = sorted(curves.rows, key=lambda row: row.situation)
        bare = (msgspec.structs.replace(row, spread=(None,) * 4, source="") for row in rows)
        return msgspec.structs.replace(curves, rows=tuple(bare), origin="")

    return plain(first) == plain(second)
