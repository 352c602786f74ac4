"""What the nodes of an allocation answered, a line for each part of a round, and its readings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeGuard

import msgspec
import numpy as np

from elbowroom.accept.quantities import QUANTITIES
from elbowroom.accept.readings import Readings, SiteReadings
from elbowroom.errors import UsageError
from elbowroom.quantities import plural
from elbowroom.store.journal import Format, Lines, damage

FILE = "journal.jsonl"

PARTS: dict[str, tuple[str, ...]] = {
    "alone": (
        "memory",
        "memory-latency",
        "core",
        "cache",
        "message-rate",
        "slow-moments",
        "memory-numa",
        "waiting",
        "throttled",
        "steal",
    ),
    "pairs": (
        "latency",
        "bandwidth",
        "bandwidth-both",
        "latency-beside",
        "bandwidth-beside",
        "memory-beside",
    ),
    "train": ("late",),
}
"""The quantities of each part of a round, in the order in which the probe answers."""
CLOCKS = {"train": 1}
"""Parts in which a time of day follows."""


class SiteLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line. The first one has the `nodes` as the launcher calls them, the `seed`, and the `size` of
    messages. Others have what was learned of nodes (`names`, `facts`), and in how many seconds their job did
    `start`; or the `values` of a `part` of a round, in the order of PARTS, with the `partners` of pairs, and
    how many `bytes` came to rank 0; or why nodes were `lost`.
    """

    number: int
    nodes: tuple[str, ...] = ()
    seed: int = 0
    size: int = 0
    names: dict[str, str] = {}
    facts: dict[str, dict[str, str]] = {}
    start: float = 0.0
    stage: str = ""
    round: int = 0
    part: str = ""
    values: dict[str, tuple[float | None, ...]] = {}
    partners: dict[str, str] = {}
    errors: dict[str, str] = {}
    bytes: int = 0
    seconds: float = 0.0
    lost: dict[str, str] = {}


class _SiteLines(Format[SiteLine, int]):
    def __init__(self) -> None:
        super().__init__(SiteLine, header=False)

    def decode(self, data: bytes) -> SiteLine:
        """One line, whose rows have a value for each quantity of its part."""
        line = super().decode(data)
        known = len(PARTS.get(line.part, ()))
        for node, row in line.values.items():
            if len(row) not in (known, known + CLOCKS.get(line.part, 0)) or not known:
                raise msgspec.ValidationError(
                    f"{node} has {plural(len(row), 'value')} of part {line.part!r}, which has {known}"
                )
        return line

    def read(self, path: Path) -> tuple[list[SiteLine], int]:
        """The lines, which follow each other and are of the nodes of the first one; raises as Format.read."""
        lines, sound = super().read(path)
        known = set(lines[0].nodes) if lines else set()
        for at, line in enumerate(lines):
            others = {*line.values, *line.partners.values(), *line.names, *line.lost} - known
            if others:
                raise damage(path, at + 1, f"{min(others)} is none of the nodes of the first line")
            if line.number != at:
                raise damage(path, at + 1, f"it is line {line.number} of another journal, or one is missing")
        return lines, sound

    def key(self, line: SiteLine) -> int:
        return line.number

    def name(self, line: SiteLine) -> str:
        return f"line {line.number}"


class SiteJournal(Lines[SiteLine, int]):
    """The journal of one run of `accept` in its folder. `lines`: all of it."""

    def __init__(self, folder: Path, *, create: bool) -> None:
        """UsageError where there is none, or it is damaged; MachineError if the disk refuses."""
        super().__init__(folder / FILE, _SiteLines(), create=create)
        self.lines = self.read()
        if not create and not (self.lines and self.lines[0].nodes):
            self.close()
            hint = "name the folder of an earlier run of accept"
            raise UsageError("holds no nodes", field="resume", value=str(folder), hint=hint)

    def add(self, line: SiteLine) -> None:
        """Appends a line, whose number follows from its place."""
        line = msgspec.structs.replace(line, number=len(self.lines))
        self.append(line)
        self.lines.append(line)

    def answered(self, stage: str, round: int, part: str) -> set[str]:
        """The nodes that have answered a part of a round."""
        return {
            node
            for line in self.lines
            if (line.stage, line.round, line.part) == (stage, round, part)
            for node in line.values
        }


def known_names(lines: Iterable[SiteLine]) -> dict[str, str]:
    """The name that each node gave itself."""
    return {node: name for line in lines for node, name in line.names.items()}


def known_facts(lines: Iterable[SiteLine], nodes: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Facts by name, one text for each node."""
    facts = {node: texts for line in lines for node, texts in line.facts.items()}
    names = sorted({name for texts in facts.values() for name in texts})
    return {name: tuple(facts.get(node, {}).get(name, "") for node in nodes) for name in names}


def possible(value: float | None, name: str) -> TypeGuard[float]:
    """Whether it was measured, and a clock that jumped meanwhile cannot have made it."""
    return value is not None and (value > 0 or (value == 0 and QUANTITIES[name].additive))


Correct = Callable[[str, SiteLine, Mapping[str, float]], Mapping[str, float]]
"""Changes the values of one quantity of a line, by node."""


def readings_of(
    lines: Sequence[SiteLine],
    nodes: Sequence[str],
    names: Sequence[str],
    stage: str,
    *,
    correct: Correct = lambda _name, _line, values: values,
) -> SiteReadings:
    """The readings of a stage. `nodes`: as the launcher calls them; `names`: as the result does."""
    place = {node: at for at, node in enumerate(nodes)}
    columns: dict[str, list[tuple[int, int, float]]] = {}
    for line in lines:
        if line.stage != stage or line.part not in PARTS:
            continue
        for at, name in enumerate(PARTS[line.part]):
            measured = ((node, row[at]) for node, row in line.values.items())
            values = {node: value for node, value in measured if possible(value, name)}
            for node, value in correct(name, line, values).items():
                partner = place[line.partners[node]] if node in line.partners else -1
                columns.setdefault(name, []).append((place[node], partner, value))
    readings = []
    for name, rows in columns.items():
        index, partners, column = zip(*rows, strict=True)
        between = QUANTITIES[name].between
        readings.append(
            Readings(
                quantity=QUANTITIES[name],
                nodes=np.array(index, dtype=np.int64),
                values=np.array(column, dtype=np.float64),
                partners=np.array(partners, dtype=np.int64) if between else None,
            )
        )
    facts = known_facts(lines, nodes)
    return SiteReadings(nodes=tuple(names), readings=tuple(readings), facts=facts)
