"""Polling workers by whose they are and how long they wait between two polls: what they add to latencies, and
whether what the paper claims holds of them (Denis et al. 2021, section 5.4).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Literal

import msgspec

from elbowroom.draw.figure import Axis, Figure, Series
from elbowroom.experiments.common.panels import cores_of, curve, line, per_core
from elbowroom.experiments.common.sentences import (
    Claim,
    Values,
    grouped,
    interval_values,
    level_of,
    nothing,
    onset_over,
    place_text,
    size_text,
    suffers,
    usable,
)
from elbowroom.machine.topology import Machine
from elbowroom.points.point import running
from elbowroom.points.program import RuntimeProgram
from elbowroom.quantities import plural
from elbowroom.results.curves import Onset
from elbowroom.results.judgement import Judgement, larger
from elbowroom.results.judgement import suffers as loses
from elbowroom.results.result import Finding, PointResult
from elbowroom.stats.interval import Added, apart

Source = Literal["pool", "starpu"]

POLLING, PAUSED = "polling", "paused"
PAPER = "both are true on henri; polling has no effect on billy and pyxis"
RARE = 1000
"""Nops between two polls from which the paper's second claim, of 10000, can be judged."""

OWNERS: dict[Source, str] = {"pool": "Workers of one shared list", "starpu": "StarPU's workers"}


class WorkerRow(msgspec.Struct, frozen=True, kw_only=True):
    """One point: whose workers, and how many nops lie between two of their polls at most (None: paused)."""

    item: PointResult
    source: Source
    nops: int | None

    @property
    def n(self) -> int:
        return self.item.n

    @property
    def added(self) -> Added | None:
        """By how much the latency is longer beside them, us."""
        return self.item.comm.added

    @property
    def name(self) -> str:
        """`back-off 32`, `paused`."""
        return "paused" if self.nops is None else f"back-off {self.nops}"

    @property
    def polls(self) -> float | None:
        """Million polls per second and worker, undisturbed; None where nobody counted."""
        alone = self.item.comp.alone
        if self.nops is None or alone is None or alone.unit != "M/s":
            return None
        return alone.median / max(self.n, 1)


class PollingCase(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of one source, message size and placement, most frequent polls first, paused last; fewest
    workers first. `register`: what a register-only kernel does on as many cores as there are most workers.
    """

    source: Source
    size: int
    rows: tuple[WorkerRow, ...]
    register: PointResult | None = None

    @property
    def most(self) -> int:
        return max(row.n for row in self.rows)

    @property
    def counts(self) -> tuple[int, ...]:
        """Numbers of workers, rising."""
        return tuple(sorted({row.n for row in self.rows}))

    @property
    def key(self) -> str:
        """Part of names of findings and figures: different for different cases."""
        first = self.rows[0].item
        return f"{self.source}-{self.size}-{first.comp_node}-{first.comm_node}-{first.comm_core}"

    def at(self, n: int) -> tuple[WorkerRow, ...]:
        """The rows of so many workers."""
        return tuple(row for row in self.rows if row.n == n)

    def waits(self) -> dict[int | None, list[WorkerRow]]:
        """Rows by how long workers wait."""
        return grouped(self.rows, lambda row: row.nops)


def row_of(item: PointResult) -> WorkerRow | None:
    """The row of a point, None of one that has no workers of a pool."""
    for _, program in running((item,), RuntimeProgram):
        if program.task != POLLING or program.backoff is None:
            return None
        return WorkerRow(item=item, source="starpu", nops=program.backoff or None)
    if item.kernel not in (POLLING, PAUSED):
        return None
    return WorkerRow(item=item, source="pool", nops=item.cursor if item.kernel == POLLING else None)


def cases(results: Sequence[PointResult]) -> tuple[PollingCase, ...]:
    """Every case of the results, the shared list's before StarPU's."""
    controls = [item for item in results if item.kernel == "prime" and item.status != "failed"]
    every = []
    groups = grouped(usable(results), lambda item: (_source(item), item.size, *_place(item)))
    for (source, size, *place), group in groups.items():
        rows = sorted(
            (row for row in map(row_of, group) if row is not None),
            key=lambda row: (row.nops is None, row.nops or 0, row.n),
        )
        if rows and source is not None:
            most = max(row.n for row in rows)
            beside = [
                item
                for item in controls
                if (item.size, item.n, *_place(item)) == (size, most, *place) and source == "pool"
            ]
            register = beside[0] if beside else None
            every.append(PollingCase(source=source, size=size, rows=tuple(rows), register=register))
    return tuple(sorted(every, key=lambda case: case.source))


def _source(item: PointResult) -> Source | None:
    row = row_of(item)
    return None if row is None else row.source


def _place(item: PointResult) -> tuple[int, int, int]:
    return item.comp_node, item.comm_node, item.comm_core


def claims(case: PollingCase) -> tuple[Claim, Claim]:
    """What the most workers of a case say of the paper's claims on frequent polls and on rare ones."""
    rows = case.at(case.most)
    polling = [row for row in rows if row.nops is not None and row.item.comm.kept is not None]
    judgement, why = _frequent(polling, case)
    paused = next((row for row in rows if row.nops is None), None)
    frequent = Claim(
        statement="the latency is higher the more often workers poll",
        judgement=judgement,
        why=why,
    )
    rare = _like_paused(polling, paused, case.source) if polling else "not tested"
    statement = "rare polls cost no more than paused workers"
    return frequent, Claim(statement=statement, judgement=rare, paper=PAPER)


def _frequent(polling: Sequence[WorkerRow], case: PollingCase) -> tuple[Judgement, str]:
    """The judgement on frequent polls, and why it is not plain; rows from the most frequent polls on."""
    if not polling:
        return "not tested", "no polling worker was measured"
    raised = loses(polling[0].item.comm.kept)
    if raised == "refuted" and case.most < 2:
        return "undecided", "one worker has the list to itself: no line of it travels between cores"
    if raised == "refuted":
        return "refuted", ""
    if raised == "undecided":
        return "undecided", "the interval is too wide; repeat more often"
    if _also_beside_registers(polling[0], case.register):
        return "undecided", "a kernel that touches no list raises it as much: it is not the polling"
    if any(larger(later.added, earlier.added) == "confirmed" for earlier, later in pairwise(polling)):
        return "refuted", ""
    if len(polling) < 2 or larger(polling[0].added, polling[-1].added) != "confirmed":
        return "undecided", "no back-off is significantly better than another"
    return "confirmed", ""


def _like_paused(polling: Sequence[WorkerRow], paused: WorkerRow | None, source: Source) -> Judgement:
    """Whether the rarest polls are as paused workers, which StarPU's are in the phases alone. Where even
    frequent polls do not raise the latency, rare ones cannot show that they raise it less.
    """
    rarest, frequent = polling[-1], loses(polling[0].item.comm.kept)
    if rarest.nops is None or rarest.nops < RARE or (paused is None and source == "pool"):
        return "not tested"
    raised = loses(rarest.item.comm.kept)
    if raised == "refuted":
        return "confirmed" if frequent == "confirmed" else "undecided"
    longer = paused is None or larger(rarest.added, paused.added) == "confirmed"
    return "refuted" if raised == "confirmed" and longer else "undecided"


def _also_beside_registers(row: WorkerRow, register: PointResult | None) -> bool:
    if register is None or register.comm.added is None or row.added is None:
        return False
    return register.comm.added.above(0.0) and not apart(register.comm.added, row.added)


def workers_text(n: int) -> str:
    """`1 worker`, `35 workers`."""
    return plural(n, "worker")


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:
    """Per source, size and placement: what each back-off adds to the latency, from how many workers it
    suffers; then what that says of the paper's claim.
    """
    findings = []
    for case in cases(results):
        findings.append(_added(case, machine))
        if any(row.nops is not None for row in case.rows):
            findings.append(_claimed(case))
    return tuple(findings) or (nothing("polling", "Polling workers"),)


def _added(case: PollingCase, machine: Machine) -> Finding:
    rows = case.at(case.most)
    onsets = {
        waits[0].name: onset_over([row.item for row in waits], "comm", cores_of)
        for nops, waits in case.waits().items()
        if nops is not None
    }
    values: Values = {"source": case.source, "size": case.size, "n": case.most}
    for row in rows:
        values |= _values(row)
    values |= {f"from_{name.removeprefix('back-off ')}": onset.x for name, onset in onsets.items()}
    return Finding(
        key=f"polling-{case.key}",
        level=level_of(*onsets.values()) if onsets else "note",
        text=(
            f"{OWNERS[case.source]}, {place_text(rows[0].item, machine)}: beside {workers_text(case.most)} "
            f"the {size_text(case.size)} latency{_alone_text(rows)} changes by "
            f"{', '.join(added_text(row) for row in rows)}.{_suffers_text(case, onsets)}{_polls_text(rows)}"
        ),
        values=values,
        points=tuple(row.item.id for row in case.rows),
    )


def _values(row: WorkerRow) -> Values:
    """Numbers of one row by its back-off: added_32, polls_32 (per second and worker)."""
    word = "paused" if row.nops is None else str(row.nops)
    values = interval_values(row.added, f"added_{word}", f"added_{word}_")
    if row.item.comm.kept is not None:
        values[f"kept_{word}"] = row.item.comm.kept.value
    if row.polls is not None:
        values[f"polls_{word}"] = row.polls * 1e6
    return values


def _suffers_text(case: PollingCase, onsets: Mapping[str, Onset]) -> str:
    """From how many workers the latency suffers with each back-off; with one number of them, with which."""
    if len(case.counts) > 1:
        sentences = [
            suffers(f"With {name} it", onset, lambda n: workers_text(int(n)), times=True)
            for name, onset in onsets.items()
        ]
        return "".join(f" {sentence}" for sentence in sentences)
    hurt = [name for name, onset in onsets.items() if onset.first is not None]
    if hurt:
        return f" It suffers with {', '.join(hurt)}."
    worst = min((onset.worst for onset in onsets.values() if onset.worst is not None), default=None)
    return (
        "" if worst is None else f" It does not suffer: it is at most {1 / worst:.2f} times its value alone."
    )


def added_text(row: WorkerRow) -> str:
    """`+0.52 us (0.50 to 0.55) with back-off 2`."""
    added = row.added
    change = "an unknown time" if added is None else f"{added.value:+.3f} us ({added.text('.3f')})"
    return f"{change} with {row.name}" if row.nops is not None else f"{change} with paused ones"


def _alone_text(rows: Sequence[WorkerRow]) -> str:
    alone = [row.item.comm.alone.median for row in rows if row.item.comm.alone is not None]
    return f" ({median(alone):.3f} us alone)" if alone else ""


def _polls_text(rows: Sequence[WorkerRow]) -> str:
    rates = [f"{row.polls:.3g} million times with {row.name}" for row in rows if row.polls is not None]
    return f" In a second a worker polls {', '.join(rates)}." if rates else ""


def _claimed(case: PollingCase) -> Finding:
    frequent, rare = claims(case)
    values: Values = {"source": case.source, "n": case.most, "rare": rare.judgement}
    points = (row.item.id for row in case.at(case.most))
    owners = f"{OWNERS[case.source]}:"
    key = f"polling-claim-{case.key}"
    return frequent.finding(key, before=owners, after=rare.text, values=values, points=points)


WORKERS = Axis(label="Number of polling workers", whole=True)


NOPS = Axis(label="Most nops between two polls", scale="log2")


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:  # noqa: ARG001
    """Per source, size and placement: the latency over the number of workers (Figure 9), where there are
    several; over the back-off beside the most workers, with what they poll.
    """
    drawn = []
    for case in cases(results):
        if len(case.counts) > 1:
            drawn.append(_over_workers(case))
        if any(row.nops is not None for row in case.rows):
            drawn.append(_over_nops(case))
    return tuple(figure for figure in drawn if figure.series)


def _over_workers(case: PollingCase) -> Figure:
    lines = [
        curve([row.item for row in rows], "comm", "together", cores_of, name=rows[0].name, axis="left")
        for rows in case.waits().values()
    ]
    return Figure(
        name=f"polling-{case.key}",
        title=f"{OWNERS[case.source]}: {size_text(case.size)} latency over the number of workers",
        x=WORKERS,
        left=Axis(label="Network latency (µs)"),
        series=tuple(item for item in (_alone(case), *lines) if item is not None),
        caption="Plain alone, dashed beside workers; bands go from the first to the last decile.",
    )


def _alone(case: PollingCase) -> Series | None:
    """The latency alone by number of workers: medians over the points of each number."""
    columns: list[tuple[float, float, float, float]] = []
    for n in case.counts:
        alone = [row.item.comm.alone for row in case.at(n) if row.item.comm.alone is not None]
        if alone:
            ends = (median(summary.d1 for summary in alone), median(summary.d9 for summary in alone))
            columns.append((float(n), median(summary.median for summary in alone), *ends))
    if not columns:
        return None
    return line("alone", columns, side="communication", hue="black", style="alone")


def _over_nops(case: PollingCase) -> Figure:
    rows = case.at(case.most)
    polling = {row.item.id: float(row.nops) for row in rows if row.nops is not None}
    items = [row.item for row in rows if row.nops is not None]

    def nops(item: PointResult) -> float:
        return polling[item.id]

    latency = [
        curve(items, "comm", "alone", nops, name="latency", axis="left"),
        curve(items, "comm", "together", nops, name="latency", axis="left"),
        _paused(rows, polling.values()),
    ]
    rate = None
    if any(row.polls is not None for row in rows):
        rate = curve(items, "comp", "together", nops, name="polls", axis="below", transform=per_core)
    return Figure(
        name=f"polling-nops-{case.key}",
        title=f"{OWNERS[case.source]}: {size_text(case.size)} latency beside {workers_text(case.most)}, over "
        "the back-off",
        x=NOPS,
        left=Axis(label="Network latency (µs)"),
        below=Axis(label="Polls of a worker (million/s)", scale="log10") if rate is not None else None,
        series=tuple(item for item in (*latency, rate) if item is not None),
        caption="Plain alone, dashed beside polling workers; bands go from the first to the last decile.",
    )


def _paused(rows: Sequence[WorkerRow], nops: Iterable[float]) -> Series | None:
    """The latency beside paused workers, straight across."""
    ends = (min(nops), max(nops))
    if ends[0] == ends[1]:
        ends = (ends[0] / 2, ends[1] * 2)
    paused = [row.item for row in rows if row.nops is None and row.item.comm.together is not None]
    if not paused or paused[0].comm.together is None:
        return None
    beside = paused[0].comm.together
    across = [(end, beside.median, beside.d1, beside.d9) for end in ends]
    ids = (paused[0].id,) * 2
    return line("beside paused workers", across, ids, side="communication", style="line", drawn="smooth")
