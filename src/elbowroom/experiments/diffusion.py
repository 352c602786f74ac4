"""A real program: an explicit finite-volume solver whose interior overlaps its exchange (Langguth et al.
2018, sections IV and V), and what the overlap model says of its steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from elbowroom.draw.figure import Figure
from elbowroom.errors import UsageError
from elbowroom.experiments import ring
from elbowroom.experiments.cores import machine_notes, with_notes
from elbowroom.experiments.experiment import Experiment
from elbowroom.experiments.step_figures import performance, step_over_threads, volumes
from elbowroom.experiments.step_table import RIVALS, Row, mean_errors, rows, sentence
from elbowroom.experiments.wording import Values, nothing
from elbowroom.machine.topology import Machine
from elbowroom.plan import placing
from elbowroom.plan.expanding import comm_cores, metric_of, node_pairs, with_control
from elbowroom.plan.kernels import find
from elbowroom.plan.placing import Seats
from elbowroom.plan.point import Application, Expansion, Note, Placement, Point, Variant
from elbowroom.plan.reading import Plan
from elbowroom.stats.result import Finding, PointResult

NAME = "diffusion"
CELLS_EACH = 1_500_000
"""Cells of a process on a real machine, where the plan names none: some 100 MB that every step reads."""

PAPER_CELLS = 115_000_000
PAPER_NODES = (4, 8, 16, 32, 64, 128, 256)
"""The paper's mesh and nodes (section V), which a simulated cluster has where the plan names none."""

CONTENTION = 1.03
"""A loss ratio whose interval lies above it shows contention; register-only kernels vary that much."""

SHORT = {"predicted": "model", "naive_max": "longer", "naive_sum": "sum"}
NAMES = {"predicted": "the overlap model", "naive_max": "the longer of the two", "naive_sum": "their sum"}


def expand(plan: Plan, machine: Machine) -> Expansion:
    """The contention benchmark (a ring beside TRIAD) on the application's cores, unless a model tells the
    loss ratios; then the variants of the application, for each number of nodes and communication threads.
    """
    core, node = _place(plan, machine)
    threads, notes, seats = _threads(plan, machine, core)
    seats = _even(seats, machine)
    benchmark = tuple(_ring(plan, machine, seats, k, node) for k in threads)
    control = with_control(benchmark)[len(benchmark) :] if plan.control else ()
    steps = tuple(
        _steps(plan, machine, seats, count, variant, k, node)
        for count in _nodes(plan, machine)
        for variant, k in _variants(threads)
    )
    measured = () if plan.model else benchmark
    return with_notes(
        Expansion(points=(*measured, *control, *steps), notes=()), [*machine_notes(machine), *notes]
    )


def _place(plan: Plan, machine: Machine) -> tuple[int, tuple[int, int]]:
    """The communication thread's core and the nodes of both sides' data; one of each."""
    if not placing.usable(machine):
        raise UsageError("no core is usable", field="cpuset", mend="allow at least two")
    cores, _ = comm_cores(plan, machine)
    pairs, _ = node_pairs(plan, machine)
    for field, several in (("comm_cores", cores), ("comp_nodes", pairs), ("sizes", plan.sizes)):
        if len(several) != 1:
            raise UsageError(
                "is one placement or size only in this plan",
                field=field,
                value=list(several),
                mend="name one; run once for each of the others",
            )
    return cores[0], pairs[0]


def _threads(plan: Plan, machine: Machine, core: int) -> tuple[tuple[int, ...], list[Note], Seats]:
    """The numbers of communication threads that fit, notes for the others, and the seats beside the most: all
    variants compute on the same cores.
    """
    fitting: dict[int, Seats] = {}
    notes = []
    for count in sorted(set(plan.comm_threads)):
        seats = placing.seats(
            machine,
            core,
            count,
            comp_cores=plan.comp_cores,
            peer_core=plan.peer_core,
            socket_only=plan.pool == "socket",
        )
        if seats is None:
            reason = f"only {len(placing.usable(machine))} usable cores here, none left to compute"
            plural = "s" if count > 1 else ""
            notes.append(Note(what=f"{count} communication thread{plural}", reason=reason))
        else:
            fitting[count] = seats
    if not fitting:
        raise UsageError(
            "leaves no core to compute", field="comm_threads", value=plan.comm_threads[0], mend="give fewer"
        )
    return tuple(fitting), notes, fitting[max(fitting)]


def _even(seats: Seats, machine: Machine) -> Seats:
    """As many computing cores for each of two processes of one host; a single one is shared by both."""
    count = len(seats.comp_cores)
    if machine.hosts > 1 or count < 2:
        return seats
    return msgspec.structs.replace(seats, comp_cores=seats.comp_cores[: count // 2 * 2])


def _nodes(plan: Plan, machine: Machine) -> tuple[int, ...]:
    """How many processes share the mesh: one per host, two where there is one; any on a simulated one."""
    if machine.virtual:
        return plan.nodes or PAPER_NODES
    here = max(2, machine.hosts)
    if plan.nodes not in ((), (here,)):
        raise UsageError(
            f"a run measures the {machine.hosts} host{'s' if machine.hosts > 1 else ''} it has",
            field="nodes",
            value=",".join(map(str, plan.nodes)),
            mend="leave it out, or let a cluster be simulated: --machine henri",
        )
    return (here,)


def _variants(threads: Sequence[int]) -> list[tuple[Variant, int]]:
    found: list[tuple[Variant, int]] = [("none", 1), ("apart", 1)]
    for count in threads:
        found += [("communication", count), ("overlap", count)]
    return found


def _ring(plan: Plan, machine: Machine, seats: Seats, threads: int, node: tuple[int, int]) -> Point:
    kernel, n = plan.kernels[0], len(seats.comp_cores)
    return Point(
        plan=plan.name,
        kernel=kernel,
        n=n,
        size=plan.sizes[0],
        comp_node=node[0],
        comm_node=node[1],
        comm_core=seats.comm_cores[0],
        metric=metric_of(plan, plan.sizes[0]),
        comp_cores=seats.comp_cores,
        comm_cores=seats.comm_cores[:threads],
        peer_cores=seats.peer_cores[:threads],
        pattern="ring",
        working_set=plan.working_set or placing.working_set(find(kernel), n, node[0], machine),
        computing_ranks="all" if machine.hosts > 1 else "first",
        sequence=plan.sequence,
        window=plan.window,
        observe=plan.observe,
    )


def _steps(
    plan: Plan,
    machine: Machine,
    seats: Seats,
    count: int,
    variant: Variant,
    threads: int,
    node: tuple[int, int],
) -> Point:
    packages = {core.number: core.package for core in machine.cores}
    first = min(packages.values())
    return Point(
        plan=plan.name,
        kernel="none",
        n=len(seats.comp_cores),
        n_other=sum(packages.get(core, first) != first for core in seats.comp_cores),
        size=0,
        comp_node=node[0],
        comm_node=node[1],
        comm_core=seats.comm_cores[0],
        metric="latency",
        comp_cores=seats.comp_cores,
        comm_cores=seats.comm_cores[:threads],
        peer_cores=seats.peer_cores[:threads],
        placements=() if machine.hosts > 1 else _processes(seats, threads, node),
        computing_ranks="all",
        scheduling=False,
        application=Application(
            name=NAME,
            variant=variant,
            cells=plan.cells or (PAPER_CELLS if machine.virtual else CELLS_EACH * count),
            nodes=count,
            steps=plan.steps,
            warmup=plan.warmup,
            partitioner=plan.partitioner,
        ),
    )


def _processes(seats: Seats, threads: int, node: tuple[int, int]) -> tuple[Placement, ...]:
    """Two processes of one host: each its half of the computing cores, or both the only one."""
    cores = seats.comp_cores
    half = len(cores) // 2 or 1
    halves = (cores[:half], cores[-half:])
    return tuple(
        Placement(rank=rank, comp_cores=own, comm_cores=comm[:threads], comp_node=node[0], comm_node=node[1])
        for rank, (own, comm) in enumerate(zip(halves, (seats.comm_cores, seats.peer_cores), strict=True))
    )


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:
    """Whether overlapping paid, how far the model is from the measured steps, the benchmark's loss ratios."""
    table = rows(results)
    found = [told for row in table[-1:] for told in (_paid(row, results), _predicted(row, machine))]
    found += [_errors(table, machine)] if table else []
    found += [_together(table)] if table else []
    benchmark = [item for item in results if item.pattern == "ring"]
    if benchmark:
        found += ring.findings(benchmark, machine)
    return tuple(found) or (nothing(NAME, "Steps of the diffusion solver"),)


def _paid(row: Row, results: Sequence[PointResult]) -> Finding:
    """Of the row with most nodes and communication threads."""
    of = f"On {row.nodes} nodes: " if row.nodes > 2 else ""
    contended = max(row.l_comp[1], row.l_comm[1]) > CONTENTION
    values: Values = {"nodes": row.nodes, "comm_threads": row.comm_threads, "saved": row.saved}
    points = tuple(
        item.id for item in results if item.application is not None and item.application.nodes == row.nodes
    )
    return Finding(
        key="diffusion-overlap",
        level="interference" if contended else "quiet",
        text=of + sentence(row),
        values=values,
        points=points,
    )


def _predicted(row: Row, machine: Machine) -> Finding:
    """The same row's columns of Table II, times in ms."""
    times = {
        "T_M": row.step.t_comp,
        "T_M^C": row.step.comp_contended,
        "T_N": row.step.t_comm,
        "T_N^C": row.step.comm_contended,
        "separator": row.separator,
        "T_tot": row.predicted,
        "step": row.measured.median,
    }
    seen = "simulated" if machine.virtual else "measured"
    off = row.error("predicted")
    text = (
        f"Predicted {row.predicted / 1e3:.4g} ms, {seen} {row.measured.median / 1e3:.4g} ms ({off:+.1%}), "
        "from T_M, T_N, both loss ratios and the separator."
    )
    values: Values = {f"{name} (ms)": value / 1e3 for name, value in times.items()}
    return Finding(key="diffusion-step", level="note", text=text, values=values)


def _errors(table: Sequence[Row], machine: Machine) -> Finding:
    """Mean errors of the model and of the naive answers."""
    errors = mean_errors(table)
    said = ", ".join(f"{NAMES[rival]} by {errors[rival][0]:.1%}" for rival in RIVALS)
    seen = "simulated" if machine.virtual else "measured"
    steps = f"{seen} step" if len(table) == 1 else f"{len(table)} {seen} steps (mean)"
    values: Values = {f"{name} off": errors[rival][0] for rival, name in SHORT.items()}
    values |= {f"{name} off, of the predicted": errors[rival][1] for rival, name in SHORT.items()}
    return Finding(
        key="diffusion-errors",
        level="note",
        text=f"Off the {steps}: {said} (of the {seen}; the separator added to each).",
        values=values,
    )


def _together(table: Sequence[Row]) -> Finding:
    """How T_M + T_N compares with the model's total (section V: almost the same), and what a second thread
    changes.
    """
    above = max(row.naive_sum / row.predicted - 1 for row in table)
    text = f"T_M + T_N is at most {above:.1%} above the model's step."
    by_nodes = {(row.nodes, row.comm_threads): row for row in table}
    changes = [
        row.measured.median / by_nodes[row.nodes, 1].measured.median - 1
        for row in table
        if row.comm_threads > 1 and (row.nodes, 1) in by_nodes
    ]
    values: Values = {"sum_above": above}
    if changes:
        largest = max(changes, key=abs)
        values["threads_change"] = largest
        text += f" More communication threads change the step by {largest:+.1%} at most."
    return Finding(key="diffusion-sum", level="note", text=text, values=values)


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:  # noqa: ARG001
    """Over nodes the volumes (Fig. 8) and the performance of a node (Fig. 9); of one number of nodes the step
    over communication threads, where there are several numbers of them.
    """
    table = rows(results)
    if len({row.nodes for row in table}) > 1:
        return (volumes(table), performance(table))
    return (step_over_threads(table),) if len(table) > 1 else ()


EXPERIMENT = Experiment(
    name=NAME,
    question="Does overlapping communication and computation pay in a real program, and is that predicted?",
    expand=expand,
    findings=findings,
    figures=figures,
)
