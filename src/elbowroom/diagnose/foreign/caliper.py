"""Files of Caliper (.cali): a record a line, `__rec=KIND,key=value=value,...` (Caliper's documentation,
"The Caliper data format"). In values `\\` stands before `,`, `=` and itself, and `\\n` is a new line.

- node: a node of a tree; `attr` is the attribute whose value `data` is, `parent` the node above it.
  Attributes are nodes, too: a name (attribute 8) below properties (attribute 10) below a type.
- ctx: a record: nodes (`ref`) with all above them, and single values (`attr`, `data`).
- globals: what is true of the whole run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from elbowroom.diagnose.foreign.profile import FIELD, CallTime, ForeignProfile, RankTime, damaged
from elbowroom.errors import UsageError

FORMAT = "Caliper .cali"
WRITTEN_BY = "Caliper (CALI_CONFIG=mpi-report,output=FILE.cali or hatchet-region-profile)"

NAME, PROPERTIES = 8, 10
"""Attributes that every file knows."""
NESTED = 256
"""The property of attributes whose values form paths: regions, loops, MPI functions."""
HIGHEST_KNOWN = 11
FUNCTION, RANK = "mpi.function", "mpi.rank"
SIZES = ("mpi.world.size", "jobsize")
EXCLUSIVE = (
    "sum#sum#time.duration.ns", "sum#sum#time.duration", "sum#time.duration.ns", "sum#time.duration",
    "time.duration.ns", "time.duration",
)  # fmt: skip
"""Times without those of inner regions, widest sum first."""
INCLUSIVE = (
    "sum#inclusive#sum#time.duration.ns", "sum#inclusive#sum#time.duration", "inclusive#sum#time.duration.ns",
    "inclusive#sum#time.duration", "avg#inclusive#sum#time.duration",
)  # fmt: skip
"""Times with those of inner regions."""
OF_ALL = ("sum#sum#", "sum#inclusive#")
"""How the names of sums over all ranks begin."""
NANO = 1e-9


def is_of(start: bytes) -> bool:
    """Whether a file begins like one."""
    return start.lstrip().startswith(b"__rec=")


def part_of(lines: Sequence[str]) -> range | None:
    """The lines of a log from the first record to the last; None without one."""
    records = [at for at, line in enumerate(lines) if is_of(line.encode())]
    return range(records[0], records[-1] + 1) if records else None


def read(text: str, path: Path) -> ForeignProfile:
    """The profile in a file; UsageError with the line for what is damaged, and for a file without times."""
    file = _CaliperFile(path)
    for place, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            file.add(place, line)
    if not text.endswith("\n"):
        raise damaged(path, text.count("\n") + 1, "is cut off", WRITTEN_BY)
    metric = _metric(file, path)
    times = _times(file, metric, path)
    total, inside = (sum(one.seconds for one in rows) for rows in (times, [t for t in times if t.function]))
    if not total:
        raise _without_times(path, "its times are all 0")
    size = next((int(file.globals[one]) for one in SIZES if file.globals.get(one, "").isdecimal()), None)
    by_rank = _ranks(times)
    ranks = len(by_rank) or size
    notes = [] if file.has_globals else ["the file has no globals record at its end: it may be cut off"]
    if not by_rank and (size or 1) > 1 and not metric.startswith(("avg#", *OF_ALL)):
        notes.append(f"the file is of one of {size} ranks")
    if not inside:
        notes.append("no MPI function is in the file: Caliper records them with its mpi service (mpi-report)")
    return ForeignProfile(
        format=FORMAT,
        written_by=WRITTEN_BY,
        seconds=total / (len(by_rank) or (size or 1 if metric.startswith(OF_ALL) else 1)),
        useful=1 - inside / total if inside else None,
        mpi=inside / total if inside else None,
        ranks=ranks,
        by_rank=by_rank if inside else (),
        calls=_calls(times),
        all_calls=bool(inside),
        notes=tuple(notes),
    )


class _CaliperNode(NamedTuple):
    attribute: int
    data: str
    parent: int | None


class _CaliperRecord(NamedTuple):
    """Values of a record by attribute, and how deep its path is."""

    values: dict[str, str]
    depth: int


class _CaliperFile:
    """The records of a file."""

    def __init__(self, path: Path) -> None:
        self.records: list[_CaliperRecord] = []
        self.globals: dict[str, str] = {}
        self.has_globals = False
        self._nodes: dict[int, _CaliperNode] = {}
        self._path = path

    def add(self, place: int, line: str) -> None:
        """A line; UsageError where it is damaged."""

        def error(what: str) -> UsageError:
            return damaged(self._path, place, what, WRITTEN_BY)

        record = dict(_fields(line))
        try:
            kind = record.get("__rec", [""])[0]
            if kind == "node":
                parent = record.get("parent")
                self._nodes[int(record["id"][0])] = _CaliperNode(
                    int(record["attr"][0]), record["data"][0], int(parent[0]) if parent else None
                )
            elif kind == "ctx":
                self.records.append(self._expanded(record))
            elif kind == "globals":
                self.globals.update(self._expanded(record).values)
                self.has_globals = True
            else:
                raise error("does not begin with __rec=node, __rec=ctx or __rec=globals")
        except KeyError as missing:
            raise error(f"refers to {missing}, which the file does not have before") from missing
        except (ValueError, IndexError) as wrong:
            raise error("is not a record of numbers, and as many values as attributes") from wrong

    def _expanded(self, record: dict[str, list[str]]) -> _CaliperRecord:
        values: dict[str, str] = {}
        depth = 0
        for reference in record.get("ref", []):
            number: int | None = int(reference)
            while number is not None and number > HIGHEST_KNOWN:
                node = self._nodes[number]
                name, nested = self._attribute(node.attribute)
                depth += nested
                # The innermost value is met first.
                values.setdefault(name, node.data)
                number = node.parent
        for attribute, data in zip(record.get("attr", []), record.get("data", []), strict=True):
            values[self._attribute(int(attribute))[0]] = data
        return _CaliperRecord(values, depth)

    def _attribute(self, number: int) -> tuple[str, bool]:
        """Name of an attribute, and whether its values form paths."""
        if number <= HIGHEST_KNOWN:
            return f"cali.{number}", False
        node: _CaliperNode = self._nodes[number]
        name, nested = node.data, False
        above = node.parent
        while above is not None and above > HIGHEST_KNOWN:
            upper = self._nodes[above]
            if upper.attribute == PROPERTIES:
                nested = bool(int(upper.data) & NESTED)
            above = upper.parent
        return name, nested


def _fields(line: str) -> Iterator[tuple[str, list[str]]]:
    """The keys of a line, with their values."""
    words, word, characters = list[str](), "", iter(line.strip())
    for character in characters:
        if character == "\\":
            following = next(characters, "")
            word += "\n" if following == "n" else following
        elif character in ",=":
            words.append(word)
            word = ""
            if character == ",":
                yield words[0], words[1:]
                words = []
        else:
            word += character
    words.append(word)
    yield words[0], words[1:]


class _CaliperTime(NamedTuple):
    """Exclusive seconds, or inclusive ones of an outermost region; `function`: of MPI."""

    function: str
    rank: int | None
    seconds: float


def _metric(file: _CaliperFile, path: Path) -> str:
    """The attribute with the times."""
    present = {name for record in file.records for name in record.values}
    metric = next((one for one in (*EXCLUSIVE, *INCLUSIVE) if one in present), None)
    if metric is None:
        names = ", ".join(sorted(name for name in present if not name.startswith("cali."))[:6])
        raise _without_times(path, f"it has {names or 'no records'}")
    return metric


def _times(file: _CaliperFile, metric: str, path: Path) -> list[_CaliperTime]:
    """The times that add up to the run: of all records if they are exclusive; else of the outermost
    regions, less the MPI functions inside, and of these.
    """
    unit = NANO if metric.endswith(".ns") else 1.0
    times = []
    for record in file.records:
        try:
            seconds = float(record.values.get(metric, 0.0)) * unit
        except ValueError as error:
            raise _without_times(path, f"{metric} is {record.values[metric]!r}") from error
        function = record.values.get(FUNCTION, "")
        rank = record.values.get(RANK, "")
        known = int(rank) if rank.isdecimal() else None
        if metric in EXCLUSIVE or function or record.depth <= 1:
            times.append(_CaliperTime(function, known, seconds))
            if metric in INCLUSIVE and function and record.depth > 1:
                # It is inside an outermost region, whose time has it, too.
                times.append(_CaliperTime("", known, -seconds))
    return times


def _without_times(path: Path, why: str) -> UsageError:
    return UsageError(
        f"has no times of regions: {why}",
        field=FIELD,
        value=str(path),
        hint=f"record with times: {WRITTEN_BY}",
    )


def _ranks(times: list[_CaliperTime]) -> tuple[RankTime, ...]:
    """Times of each rank, where records name ranks."""
    ranks = {one.rank for one in times if one.rank is not None}
    return tuple(
        RankTime(
            rank=rank,
            seconds=sum(one.seconds for one in times if one.rank == rank),
            mpi_s=sum(one.seconds for one in times if one.rank == rank and one.function),
        )
        for rank in sorted(ranks)
    )


def _calls(times: list[_CaliperTime]) -> tuple[CallTime, ...]:
    names = {one.function for one in times if one.function}
    calls = [
        CallTime(function=name, seconds=sum(one.seconds for one in times if one.function == name))
        for name in names
    ]
    return tuple(sorted(calls, key=lambda call: (-call.seconds, call.function)))
