"""Workers that poll a shared list of tasks beside a ping-pong: those of the probe's pool, and StarPU's own
(Denis et al. 2021, section 5.4, Figure 9; Swartvagher 2022, 5.4.3, Figure 5.13).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

import msgspec

from elbowroom.draw.figure import Axis, Figure, Series
from elbowroom.errors import UsageError
from elbowroom.experiments.cores import machine_notes, with_notes
from elbowroom.experiments.experiment import Experiment
from elbowroom.experiments.panels import curve, per_core
from elbowroom.experiments.polling_rows import OWNERS, Case, Row, cases, claim, worst
from elbowroom.experiments.wording import (
    Values,
    level_of,
    nothing,
    onset_over,
    place_text,
    size_text,
)
from elbowroom.machine.topology import Machine
from elbowroom.plan.expanding import expand as multiply
from elbowroom.plan.expanding import with_control
from elbowroom.plan.kernels import KERNELS
from elbowroom.plan.point import Expansion, Note, Phase, Placement, Point, Program
from elbowroom.plan.reading import Plan, Sweep
from elbowroom.stats.result import Finding, PointResult

PHASES: tuple[Phase, ...] = ("B", "AB", "AB", "B")
"""StarPU's workers paused, then polling: what they do alone is nobody's question."""

WORKERS = Axis(label="Number of polling workers", whole=True)
NOPS = Axis(label="Most nops between two polls", scale="log2")
POOL_KERNELS = tuple(name for name, kernel in KERNELS.items() if kernel.pool)


def expand(plan: Plan, machine: Machine) -> Expansion:
    """Every number of workers with every back-off, and paused; the same of StarPU's workers."""
    _refuse(plan, machine)
    plan = msgspec.structs.replace(plan, metric="latency")
    native = multiply(msgspec.structs.replace(plan, sweeps=_sweeps(plan), control=False), machine)
    _enough_cores(plan, native)
    points = tuple(_on_every_host(point, machine) for point in native.points)
    largest = max((point.n for point in points), default=0)
    notes = [*machine_notes(machine), *native.notes]
    if largest == 1:
        reason = "1 core is free for workers here: it has the list to itself"
        notes.append(Note(what="workers that contend for a list", reason=reason))
    if plan.control:
        points = with_control(points)
    return with_notes(Expansion(points=(*points, *_starpu(plan, points, machine)), notes=()), notes)


def _refuse(plan: Plan, machine: Machine) -> None:
    kernels = {name for axes in _groups(plan) for name in axes.kernels or ()}
    for name in sorted(kernels - set(POOL_KERNELS)):
        raise UsageError(
            "is no worker of a task pool", field="kernels", value=name, mend="choose polling, paused, or both"
        )
    if plan.metric == "bandwidth":
        raise UsageError(
            "polling is measured by what it adds to latencies",
            field="metric",
            value=plan.metric,
            mend="leave it out",
        )
    if machine.virtual:
        raise UsageError(
            "a virtual machine has no list of tasks",
            field="machine",
            value=machine.name,
            mend="measure polling on a real one: leave --machine out",
        )


def _groups(plan: Plan) -> tuple[Plan | Sweep, ...]:
    """Everything in a plan that has axes."""
    return (plan, *plan.sweeps)


def _sweeps(plan: Plan) -> tuple[Sweep, ...]:
    """Each kernel with the cursors that mean something to it: paused workers wait for nothing."""
    return tuple(
        msgspec.structs.replace(
            sweep,
            kernels=(name,),
            cursors=sweep.cursors or plan.cursors if KERNELS[name].uses_cursor else (1,),
        )
        for sweep in plan.sweeps or (Sweep(),)
        for name in sweep.kernels or plan.kernels
    )


def _enough_cores(plan: Plan, native: Expansion) -> None:
    """A number of workers that was asked for and does not fit is refused: fewer would be another question."""
    reasons = {note.what: note.reason for note in native.notes}
    for count in (count for axes in _groups(plan) for count in axes.n or ()):
        if f"n = {count}" in reasons:
            raise UsageError(
                f"{count} workers are more than there are cores for them",
                field="n",
                value=count,
                mend=f"{reasons[f'n = {count}']}; `every` takes as many as fit",
            )


def _on_every_host(point: Point, machine: Machine) -> Point:
    """On several hosts both ends have workers, as both of the paper's nodes had."""
    return msgspec.structs.replace(point, computing_ranks="all") if machine.hosts > 1 else point


def _starpu(plan: Plan, points: Sequence[Point], machine: Machine) -> tuple[Point, ...]:
    """StarPU's workers on the cores that the pool's workers had. On one host the other rank has none."""
    found: dict[str, Point] = {}
    for point in points:
        for backoff in plan.backoffs if point.role == "point" else ():
            places = () if machine.hosts > 1 else _ranks(point)
            program = Program(name="runtime", task="polling", build="starpu", backoff=backoff)
            one = msgspec.structs.replace(
                point,
                kernel="none",
                cursor=1,
                sequence=PHASES,
                computing_ranks="all" if machine.hosts > 1 else "first",
                placements=places,
                program=program,
            )
            found.setdefault(one.id, one)
    return tuple(found.values())


def _ranks(point: Point) -> tuple[Placement, ...]:
    peer = point.peer_cores or point.comm_cores
    seats = ((point.comp_cores, point.comm_cores), ((), peer))
    return tuple(
        Placement(
            rank=rank,
            comp_cores=computing,
            comm_cores=communicating,
            comp_node=point.comp_node,
            comm_node=point.comm_node,
        )
        for rank, (computing, communicating) in enumerate(seats)
    )


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:
    """Per source, size and placement: what each back-off adds to the latency, from how many workers it
    suffers; then what that says of the paper's claim.
    """
    found = [judged for case in cases(results) for judged in (_added(case, machine), _claimed(case))]
    return tuple(found) or (nothing("polling", "Polling workers"),)


def _added(case: Case, machine: Machine) -> Finding:
    rows = case.at(case.most)
    onsets = {
        waits[0].name: onset_over([row.item for row in waits], "comm", lambda item: float(item.n))
        for nops, waits in case.waits().items()
        if nops is not None
    }
    suffers = {name: found.x for name, found in onsets.items() if found.x is not None}
    hardest = worst(row for row in rows if row.nops is not None)
    said = f"It suffers {_where_text(case, suffers)}." if suffers else "It does not suffer"
    if not suffers and hardest is not None and hardest.item.comm.kept is not None:
        said += f": at most it is {1 / hardest.item.comm.kept.value:.2f} times that alone."
    values: Values = {"source": case.source, "size": case.size, "n": case.most}
    for row in rows:
        values |= _values(row)
    values |= {f"from_{name.removeprefix('back-off ')}": found.x for name, found in onsets.items()}
    return Finding(
        key=f"polling-{case.key}",
        level=level_of(*onsets.values()) if onsets else "note",
        text=(
            f"{OWNERS[case.source]}, {place_text(rows[0].item, machine)}: beside {workers_text(case.most)} "
            f"the {size_text(case.size)} latency{_alone_text(rows)} changes by "
            f"{', '.join(added_text(row) for row in rows)}. {said}{_polls_text(rows)}"
        ),
        values=values,
        points=tuple(row.item.id for row in case.rows),
    )


def _values(row: Row) -> Values:
    """Numbers of one row by its back-off: added_32, polls_32 (per second and worker)."""
    word = "paused" if row.nops is None else str(row.nops)
    found: Values = {}
    if row.added is not None:
        found |= {
            f"added_{word}": row.added.value,
            f"added_{word}_low": row.added.low,
            f"added_{word}_high": row.added.high,
        }
    if row.item.comm.kept is not None:
        found[f"kept_{word}"] = row.item.comm.kept.value
    if row.polls is not None:
        found[f"polls_{word}"] = row.polls * 1e6
    return found


def workers_text(n: int) -> str:
    """`1 worker`, `35 workers`."""
    return f"{n} worker{'' if n == 1 else 's'}"


def _where_text(case: Case, suffers: Mapping[str, float]) -> str:
    """With which back-off, and from how many workers where there are several numbers of them."""
    if len(case.counts) == 1:
        return f"with {', '.join(suffers)}"
    return "; ".join(f"from {workers_text(int(n))} with {name}" for name, n in suffers.items())


def added_text(row: Row) -> str:
    """`+0.52 us (0.50 to 0.55) with back-off 2`."""
    added = row.added
    change = (
        "an unknown time" if added is None else f"{added.value:+.3f} us ({added.low:.3f} to {added.high:.3f})"
    )
    return f"{change} with {row.name}" if row.nops is not None else f"{change} with paused ones"


def _alone_text(rows: Sequence[Row]) -> str:
    alone = [row.item.comm.alone.median for row in rows if row.item.comm.alone is not None]
    return f" ({median(alone):.3f} us alone)" if alone else ""


def _polls_text(rows: Sequence[Row]) -> str:
    said = [
        f"{row.polls:.3g} million times a second with {row.name}" for row in rows if row.polls is not None
    ]
    return f" A worker polls {', '.join(said)}." if said else ""


def _claimed(case: Case) -> Finding:
    judged = claim(case)
    why = f" ({judged.why})" if judged.why else ""
    text = (
        f"{OWNERS[case.source]}: that the latency is the higher the more often they poll is {judged.verdict} "
        f"here{why}; that rare polls are as paused workers is {judged.rare}. The paper: both on henri, no "
        "effect at all on billy and pyxis."
    )
    return Finding(
        key=f"polling-claim-{case.key}",
        level="note",
        text=text,
        values={"source": case.source, "n": case.most, "verdict": judged.verdict, "rare": judged.rare},
        points=tuple(row.item.id for row in case.at(case.most)),
    )


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:  # noqa: ARG001
    """Per source, size and placement: the latency over the number of workers (Figure 9), where there are
    several; over the back-off beside the most workers, with what they poll.
    """
    drawn = []
    for case in cases(results):
        if len(case.counts) > 1:
            drawn.append(_over_workers(case))
        drawn.append(_over_nops(case))
    return tuple(figure for figure in drawn if figure.series)


def _over_workers(case: Case) -> Figure:
    lines = [
        curve([row.item for row in rows], "comm", "together", _n, name=rows[0].name, axis="left")
        for rows in case.waits().values()
    ]
    return Figure(
        name=f"polling-{case.key}",
        title=f"{OWNERS[case.source]}: {size_text(case.size)} latency over the number of workers",
        x=WORKERS,
        left=Axis(label="Network latency (µs)"),
        series=tuple(line for line in (_alone(case), *lines) if line is not None),
        caption="Plain alone, dashed beside workers; bands go from the first to the last decile.",
    )


def _n(item: PointResult) -> float:
    return float(item.n)


def _alone(case: Case) -> Series | None:
    """The latency alone by number of workers: medians over the points of each number."""
    columns: list[tuple[float, float, float, float]] = []
    for n in case.counts:
        alone = [row.item.comm.alone for row in case.at(n) if row.item.comm.alone is not None]
        if alone:
            ends = (median(one.d1 for one in alone), median(one.d9 for one in alone))
            columns.append((float(n), median(one.median for one in alone), *ends))
    if not columns:
        return None
    x, y, low, high = zip(*columns, strict=True)
    return Series(name="alone", side="both", style="alone", x=x, y=y, low=low, high=high)


def _over_nops(case: Case) -> Figure:
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
        rate = curve(items, "comp", "together", nops, name="polls", axis="right", transform=per_core)
    return Figure(
        name=f"polling-nops-{case.key}",
        title=f"{OWNERS[case.source]}: {size_text(case.size)} latency beside {workers_text(case.most)}, over "
        "the back-off",
        x=NOPS,
        left=Axis(label="Network latency (µs)"),
        right=Axis(label="Polls of a worker (million/s)", scale="log10") if rate is not None else None,
        series=tuple(line for line in (*latency, rate) if line is not None),
        caption="Plain alone, dashed beside polling workers; bands go from the first to the last decile.",
    )


def _paused(rows: Sequence[Row], nops: Iterable[float]) -> Series | None:
    """The latency beside paused workers, straight across."""
    ends = (min(nops, default=1.0), max(nops, default=1.0))
    found = [row.item for row in rows if row.nops is None and row.item.comm.together is not None]
    if not found or found[0].comm.together is None:
        return None
    beside = found[0].comm.together
    return Series(
        name="beside paused workers",
        side="communication",
        style="line",
        x=ends,
        y=(beside.median,) * 2,
        low=(beside.d1,) * 2,
        high=(beside.d9,) * 2,
        points=(found[0].id,) * 2,
        drawn="smooth",
    )


EXPERIMENT = Experiment(
    name="polling",
    question="Do workers that poll for tasks slow small messages down, and does polling less often help?",
    expand=expand,
    findings=findings,
    figures=figures,
)
