"""Conjugate gradients and matrix products on two processes: what sends keep of their bandwidth while they
compute, and how long cores wait for memory (Denis et al. 2021, section 6, Fig. 10; Swartvagher 2022, 5.5).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from elbowroom.draw.figure import Figure
from elbowroom.errors import UsageError
from elbowroom.experiments.cores import machine_notes, with_notes
from elbowroom.experiments.experiment import Experiment
from elbowroom.experiments.kernel_figures import over_cores, over_intensity, scaling
from elbowroom.experiments.kernel_rows import BUILDS, TASKS, Row, cases, claim, exactness, faster, rows, waits
from elbowroom.experiments.wording import (
    Values,
    cores_text,
    kept_text,
    level_of,
    nothing,
    onset_over,
    onset_values,
    suffers,
)
from elbowroom.machine.topology import Machine
from elbowroom.plan import matrices, placing
from elbowroom.plan.expanding import comm_cores, core_counts, node_pairs, with_control
from elbowroom.plan.placing import Seats
from elbowroom.plan.point import Expansion, Note, Placement, Point, Program
from elbowroom.plan.reading import Plan
from elbowroom.stats.result import Finding, PointResult

NAME = "kernels"


def expand(plan: Plan, machine: Machine) -> Expansion:
    """Each task in each build on 1, 2 ... computing cores of each process, with the same matrix for all of
    them (strong scaling); and a register-only control.
    """
    core, node = _place(plan, machine)
    seats = placing.seats(
        machine,
        core,
        comp_cores=plan.comp_cores,
        peer_core=plan.peer_core,
        socket_only=plan.pool == "socket",
    )
    if seats is None:
        mend = "allow at least two cores"
        raise UsageError("no core is left to compute", field="cpuset", value=list(machine.allowed), mend=mend)
    counts, notes = core_counts(plan.n, most_of(seats, machine))
    points = [
        _point(plan, machine, seats, n, program, node)
        for program in _programs(plan, machine, most_of(seats, machine))
        for n in counts
    ]
    control = with_control((_messages(plan, seats, node),))[1:] if plan.control else ()
    notes = [*machine_notes(machine), *_scaling_notes(seats, machine, counts), *notes]
    return with_notes(Expansion(points=(*control, *points), notes=()), notes)


def _place(plan: Plan, machine: Machine) -> tuple[int, tuple[int, int]]:
    """The communication thread's core and the nodes of both sides' data; one of each."""
    if not placing.usable(machine):
        raise UsageError("no core is usable", field="cpuset", mend="allow at least two")
    cores, _ = comm_cores(plan, machine)
    pairs, _ = node_pairs(plan, machine)
    for field, several in (("comm_cores", cores), ("comp_nodes", pairs)):
        if len(several) != 1:
            raise UsageError(
                "is one placement only in this plan",
                field=field,
                value=list(several),
                mend="name one; run once for each of the others",
            )
    return cores[0], pairs[0]


def most_of(seats: Seats, machine: Machine) -> int:
    """Computing cores that each process may have: two on one host share them out, or both have the only
    one.
    """
    count = len(seats.comp_cores)
    return count if machine.hosts > 1 else max(1, count // 2)


def _programs(plan: Plan, machine: Machine, most: int) -> Iterator[Program]:
    """Every task in every build, the same matrices in all builds."""
    ranks = max(2, machine.hosts)
    for task, build in product(dict.fromkeys(plan.tasks), dict.fromkeys(plan.builds)):
        asked = Program(
            name="kernels",
            task=task,
            build=build,
            ranks=ranks,
            order=plan.order,
            block=plan.block,
            iterations=plan.iterations,
        )
        yield matrices.completed(asked, most, machine)


def _point(
    plan: Plan, machine: Machine, seats: Seats, n: int, program: Program, node: tuple[int, int]
) -> Point:
    places = () if machine.hosts > 1 else _processes(seats, n, node)
    cores = seats.comp_cores[:n]
    if places:
        cores = tuple(sorted({core for place in places for core in place.comp_cores}))
    packages = {core.number: core.package for core in machine.cores}
    return Point(
        plan=plan.name,
        kernel="none",
        n=n,
        n_other=sum(packages.get(core) != packages.get(cores[0]) for core in cores) if not places else 0,
        size=0,
        comp_node=node[0],
        comm_node=node[1],
        comm_core=seats.comm_cores[0],
        metric="bandwidth",
        comp_cores=cores,
        comm_cores=seats.comm_cores,
        peer_cores=seats.peer_cores,
        computing_ranks="all",
        placements=places,
        sequence=plan.sequence,
        window=plan.window,
        observe=plan.observe,
        program=program,
    )


def _processes(seats: Seats, n: int, node: tuple[int, int]) -> tuple[Placement, ...]:
    """Two processes of one host: `n` cores of its half for each, or both the only one.

    Where there is only one, both compute on it and both communicate on the other core: a communication thread
    beside a computing one would wait for time slices, and what it then sees is the scheduler.
    """
    cores = seats.comp_cores
    half = len(cores) // 2
    starts = (0, half)
    return tuple(
        Placement(
            rank=rank,
            comp_cores=cores[start : start + n],
            comm_cores=comm[:1],
            comp_node=node[0],
            comm_node=node[1],
        )
        for rank, (start, comm) in enumerate(zip(starts, (seats.comm_cores, seats.peer_cores), strict=True))
    )


def _messages(plan: Plan, seats: Seats, node: tuple[int, int]) -> Point:
    """What the control is made of: the largest message beside all computing cores."""
    return Point(
        plan=plan.name,
        kernel="triad",
        n=len(seats.comp_cores),
        size=max(plan.sizes),
        comp_node=node[0],
        comm_node=node[1],
        comm_core=seats.comm_cores[0],
        metric="bandwidth",
        comp_cores=seats.comp_cores,
        comm_cores=seats.comm_cores,
        peer_cores=seats.peer_cores,
        sequence=("A", "B", "AB", "AB", "B", "A"),
        window=plan.window,
    )


def _scaling_notes(seats: Seats, machine: Machine, counts: Sequence[int]) -> list[Note]:
    notes = []
    if machine.hosts < 2 and len(seats.comp_cores) < 2:
        reason = (
            "two cores: both processes compute on one of them in turns (scheduling) and communicate on the "
            "other, so that no message waits for a time slice"
        )
        notes.append(Note(what="cores of its own for each process", reason=reason))
    if len(counts) < 2:
        reason = f"{cores_text(most_of(seats, machine))} for each process here: one point, no curve"
        notes.append(Note(what="strong scaling", reason=reason))
    return notes


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:  # noqa: ARG001
    """What sends keep beside each task, over the number of cores; whether CG disturbs them more than GEMM,
    as in the paper; StarPU beside OpenMP; how exact the results are.
    """
    table = rows(results)
    if not table:
        return (nothing(NAME, "Sends beside conjugate gradients and matrix products"),)
    found = [_kept(group) for group in cases(table)]
    found.sort(key=lambda finding: finding.level != "interference")
    by_build = [[row for row in table if row.build == build] for build in BUILDS]
    found += [claim(group) for group in by_build if group]
    found += [_builds(pair) for pair in _pairs(table)]
    return (*found, _checked(table))


def _kept(group: Sequence[Row]) -> Finding:
    """One task in one build: what its sends keep, at which number of cores, and the cores' waiting."""
    last = group[-1]
    items = [row.item for row in group]
    onset = onset_over(items, "comm", lambda item: float(item.n))
    if len(group) > 1:
        text = suffers(f"{last.name}: the bandwidth of sends", onset, cores_text)
    else:
        kept = kept_text(last.kept)
        text = f"{last.name} on {cores_text(last.n)}: sends keep {kept} of their bandwidth."
    text += f" {waits(group)}"
    values: Values = {"task": last.task, "build": last.build, "n": last.n, "stalled": last.stalled}
    values |= onset_values("send", onset)
    if last.kept is not None:
        values |= {"kept": last.kept.value, "low": last.kept.low, "high": last.kept.high}
    return Finding(
        key=f"kernels-{last.task}-{last.build}",
        level=level_of(onset),
        text=text,
        values=values,
        points=tuple(item.id for item in items),
    )


def _pairs(table: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """OpenMP and StarPU of each task, on the most cores that both were measured on."""
    by_place = {(row.task, row.build, row.n): row for row in table}
    for task in TASKS:
        both = [row.n for row in table if (row.task, row.build) == (task, "openmp")]
        both = [n for n in both if (task, "starpu", n) in by_place]
        if both:
            yield by_place[task, "openmp", max(both)], by_place[task, "starpu", max(both)]


def _builds(pair: tuple[Row, Row]) -> Finding:
    text, values = faster(*pair)
    return Finding(
        key=f"kernels-builds-{pair[0].task}",
        level="note",
        text=text,
        values=values,
        points=tuple(row.item.id for row in pair),
    )


def _checked(table: Sequence[Row]) -> Finding:
    text, values = exactness(table)
    return Finding(key="kernels-checked", level="note", text=text, values=values)


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:  # noqa: ARG001
    """Over computing cores the two panels of Fig. 10 and the strong scaling; of a single number of cores what
    sends keep and cores wait over the arithmetic intensity.
    """
    table = rows(results)
    if len({row.n for row in table}) > 1:
        return (*over_cores(table), *scaling(table))
    return over_intensity(table)


EXPERIMENT = Experiment(
    name=NAME,
    question="How much bandwidth do sends keep beside conjugate gradients and matrix products?",
    expand=expand,
    findings=findings,
    figures=figures,
)
