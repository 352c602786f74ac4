"""Checking an advice by measuring: the present and the advised configuration as points of one run.

Every repetition visits both in random order, so that what drifts hits both alike. The run is a run like any
other: journalled, resumable, with a report.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from elbowroom.advise.advice import Advice, Configuration
from elbowroom.advise.job import Job, JobStep, Setup
from elbowroom.advise.setups import comm_socket
from elbowroom.advise.verification import Compared, RepeatedValues, compare, compared_with, steps_of_rates
from elbowroom.errors import MachineError, UsageError
from elbowroom.files import write_atomically
from elbowroom.machine.identity import SHAPE, check_same, difference
from elbowroom.machine.topology import Core, Machine
from elbowroom.measure.campaign import resume, start
from elbowroom.measure.manifest import Tell
from elbowroom.measure.measurements import collect
from elbowroom.measure.prepare import schedule
from elbowroom.measure.prepared import Prepared, Request
from elbowroom.measure.results import Results
from elbowroom.measure.source import Source
from elbowroom.models.document import Document
from elbowroom.models.run_data import Layout, layout_of
from elbowroom.plan import placement
from elbowroom.plan.file import Plan
from elbowroom.plan.kernels import Kernel, find
from elbowroom.plan.validation import validate
from elbowroom.points.point import Expansion, Pattern, Point
from elbowroom.signals import Stopped
from elbowroom.store.folder import RunFolder

NAME = "verify"
ADVICE = "advice.json"
"""The advice that a run checks, in its folder."""

CURSOR = "triad_cursor"
"""Computes at any intensity."""

ONE_WAY: dict[Pattern, float] = {"receive": 1.0, "pingpong": 1.0, "bidirectional": 2.0}
"""What both directions move, over what the probe says of a pattern."""


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """The points of a check: one for each configuration (the same where they differ only in whether they
    overlap), one where T_M was measured, and the control. `scale`: bytes of the computing kernel for one of
    the model's, by what both move on the bus.
    """

    now: Point
    other: Point
    reference: Point | None
    control: Point
    scale: float

    @property
    def points(self) -> tuple[Point, ...]:
        """Each once; of two with the same name the one that is measured together too."""
        by_id: dict[str, Point] = {}
        wanted = (self.now, self.other, *([self.reference] if self.reference is not None else []))
        for point in (*wanted, self.control):
            known = by_id.get(point.id)
            if known is None or len(point.sequence) > len(known.sequence):
                by_id[point.id] = point
        return tuple(by_id.values())


def placed(advice: Advice, document: Document, machine: Machine) -> Placed:
    """The points that check an advice on a machine; UsageError for what the probe cannot measure there."""
    local_layout = layout_of(machine)
    _same_machine(advice, local_layout)
    kernel, cursor, scale = _kernel(advice.job, document)
    builder = _PointBuilder(machine, local_layout, advice, kernel, cursor, document.calibration.size)
    other = compared_with(advice)
    _same_collective(advice, other)
    return Placed(
        now=builder.point(advice.now.setup),
        other=builder.point(other.setup),
        reference=builder.reference(advice.job.step, advice.now.setup),
        control=builder.control(advice.now.setup),
        scale=scale,
    )


def _same_collective(advice: Advice, other: Configuration) -> None:
    """Refuses to check by bandwidths what is no matter of bandwidths."""
    if advice.now.setup.way != other.setup.way:
        raise UsageError(
            "the probe does not measure form and progress of a collective here",
            field="verify",
            value="/".join(other.setup.way),
            hint="verify with the program itself (verify.command in the job), or: elbowroom run collectives",
        )


def _same_machine(advice: Advice, local_layout: Layout) -> None:
    """Refuses to check the advice for another machine."""
    here, there = local_layout.shape, advice.machine
    check_same(
        difference(there, here, SHAPE, cluster=not (here.virtual or there.virtual)),
        field="model",
        value=there.name,
        hint="verify it there, or fit a run of this machine",
        places=("in the model", "here"),
    )


def _kernel(job: Job, document: Document) -> tuple[Kernel, int, float]:
    """What computes in the job's place, how many repetitions per item, and its bytes for one of the model's
    kernel.
    """
    name = job.verify.kernel or (CURSOR if job.step.intensity > 0 else document.calibration.kernel)
    kernel = find(name)
    if kernel is None or kernel.rate_unit != "MB/s":
        raise UsageError(
            "moves no bytes that a step could be counted in",
            field="verify.kernel",
            value=name,
            hint="name a kernel in MB/s, for instance triad",
        )
    own = find(document.calibration.kernel)
    scale = 1.0
    if own is not None and own.name != name and own.moves_memory and kernel.moves_memory:
        factor = document.calibration.counted_store_factor
        scale = kernel.bus_share(factor) / own.bus_share(factor)
    if not kernel.uses_cursor:
        return kernel, 1, scale
    return kernel, max(1, round(job.step.intensity / scale * kernel.algorithmic_bytes / kernel.flops)), scale


@dataclass
class _PointBuilder:
    """Who sits where, for every setup of an advice."""

    machine: Machine
    layout: Layout
    advice: Advice
    kernel: Kernel
    cursor: int
    size: int

    def point(self, setup: Setup) -> Point:
        """The point that measures a setup: alone only where nothing overlaps."""
        node_other = setup.comp_node if setup.comp_node_other is None else setup.comp_node_other
        if setup.cores and setup.cores_other and node_other != setup.comp_node:
            raise UsageError(
                "the probe's cores all compute on one node",
                field="comp_node_other",
                value=node_other,
                hint="verify with the program itself: verify.command in the job",
            )
        node = setup.comp_node if setup.cores else node_other
        comm, peers = self._communicating(setup)
        cores = self._computing(setup.cores, setup.cores_other, (*comm, *peers), share=not setup.overlap)
        point = self._point(cores, setup.cores_other, node, setup, comm, peers)
        if setup.overlap:
            return point
        shared = bool(set(cores) & {*comm, *peers})
        return msgspec.structs.replace(point, sequence=("A", "B", "B", "A"), scheduling=shared)

    def reference(self, step: JobStep, now: Setup) -> Point | None:
        """The point that measures the computation where T_M was measured."""
        measured = step.t_comp
        if measured is None:
            return None
        setup = msgspec.structs.replace(
            now,
            cores=measured.cores,
            cores_other=measured.cores_other,
            comp_node=measured.comp_node,
            comp_node_other=measured.comp_node_other,
            overlap=False,
        )
        return self.point(setup)

    def control(self, now: Setup) -> Point:
        """Prime counting on one core beside the present messages tells whether the machine was quiet."""
        comm, peers = self._communicating(now)
        cores = self._computing(1, 0, (*comm, *peers))
        point = self._point(cores, 0, now.comp_node, now, comm, peers)
        return msgspec.structs.replace(point, kernel="prime", cursor=1, working_set=0, role="control")

    def _point(
        self,
        cores: tuple[int, ...],
        other: int,
        node: int,
        setup: Setup,
        comm: tuple[int, ...],
        peers: tuple[int, ...],
    ) -> Point:
        nodes, number = self.layout.nodes, self.layout.nodes[node]
        return Point(
            plan=NAME,
            kernel=self.kernel.name,
            n=len(cores),
            n_other=other,
            size=self.size if setup.size is None else setup.size,
            comp_node=number,
            comm_node=nodes[setup.comm_node],
            comm_core=comm[0],
            metric="bandwidth",
            comp_cores=cores,
            comm_cores=comm,
            peer_cores=peers,
            pattern=self._pattern(setup),
            cursor=self.cursor,
            working_set=placement.working_set(self.kernel, len(cores), number, self.machine),
        )

    def _pattern(self, setup: Setup) -> Pattern:
        direction = self.advice.job.step.direction
        if direction == "send" or setup.comm_threads > 1:
            threads = setup.comm_threads > 1
            raise UsageError(
                "the probe receives, or exchanges in both directions, by one communication thread",
                field="comm_threads" if threads else "step.direction",
                value=setup.comm_threads if threads else direction,
                hint="verify with the program itself: verify.command in the job",
            )
        if direction == "both":
            return "bidirectional"
        both = (self.advice.now.setup, compared_with(self.advice).setup)
        large = all(other.size in (None, self.size) for other in both)
        return self.advice.job.verify.pattern or ("receive" if large else "pingpong")

    def _communicating(self, setup: Setup) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Cores of the communication threads and of those of a second rank on this host."""
        core = placement.default_comm_core(self.machine)
        if setup.comm_socket is not None and not placement.shares_core(self.machine):
            own = [core.number for core in self._cores(comm_socket(setup, self.layout.shape))]
            core = own[-1] if own else core
        seats = placement.seats(self.machine, core, setup.comm_threads)
        if seats is None:
            raise self._too_few(setup.comm_threads)
        return seats.comm_cores, seats.peer_cores

    def _computing(
        self, cores: int, other: int, taken: Sequence[int], *, share: bool = False
    ) -> tuple[int, ...]:
        """The first cores of either socket that are not taken; with `share` those taken come last."""
        chosen: list[int] = []
        for socket, count in enumerate((cores, other)):
            own = [core.number for core in self._cores(socket)]
            free = [core for core in own if core not in taken]
            free += [core for core in own if core in taken] if share else []
            if len(free) < count:
                raise self._too_few(count)
            chosen += free[:count]
        return tuple(chosen)

    def _cores(self, socket: int) -> list[Core]:
        """Usable cores of a socket, in order; models know two sockets at most."""
        packages = sorted({core.package for core in self.machine.cores})
        usable = placement.usable(self.machine)
        return [core for core in usable if socket < len(packages) and core.package == packages[socket]]

    def _too_few(self, count: int) -> UsageError:
        both = " (both ranks of the probe run on this host)" if self.machine.hosts < 2 else ""
        return UsageError(
            f"{len(placement.usable(self.machine))} usable cores are too few to measure that{both}",
            field="cores",
            value=count,
            hint="verify on two hosts, or with the program itself: verify.command in the job",
        )


def prepare(advice: Advice, document: Document, source: Source, repetitions: int, seed: int) -> Prepared:
    """The check as a plan made concrete; measures nothing."""
    machine = source.machine()
    check = placed(advice, document, machine)
    points = check.points
    for point in points:
        refused = source.refuse(point)
        if refused:
            raise UsageError(refused, field="verify", value=point.id, hint="use verify.command in the job")
    plan = Plan(
        name=NAME,
        experiment="model",
        question="Does the advised configuration gain what was predicted?",
        kernels=(check.now.kernel,),
        repetitions=repetitions,
        seed=seed,
        scheduling=any(point.scheduling for point in points),
    )
    validate(points, machine, hosts=plan.hosts, scheduling=plan.scheduling)
    return schedule(plan, machine, Expansion(points=points, notes=()), source, False)


def verify(
    advice: Advice, document: Document, request: Request, source: Source, repetitions: int, tell: Tell
) -> tuple[RunFolder, Results, Compared]:
    """Measures the present and the advised configuration into a new run folder."""
    prepared = prepare(advice, document, source, repetitions, request.seed or 1)
    with _resumed_by_verify():
        folder, results = start(request, tell, source, prepared)
    write_atomically(folder.path / ADVICE, msgspec.json.encode(advice), own=True)
    return folder, results, _compared(folder, results, advice, document)


@contextlib.contextmanager
def _resumed_by_verify() -> Iterator[None]:
    """A check that was stopped goes on as a check."""
    try:
        yield
    except Stopped as stopped:
        raise Stopped(
            stopped.message,
            field="verify",
            value=stopped.value,
            hint="continue with the same command and --resume instead of --run-out",
        ) from stopped


def verify_again(
    advice: Advice, document: Document, path: Path, tell: Tell, source: Source | None = None
) -> tuple[RunFolder, Results, Compared]:
    """Goes on with a check that was stopped; UsageError where the run checks something else."""
    manifest = RunFolder.open(path).manifest
    wanted = {point.id for point in placed(advice, document, manifest.machine).points}
    if wanted != {point.id for point in manifest.points}:
        raise UsageError(
            "measures other points than this advice is checked by",
            field="resume",
            value=str(path),
            hint="start anew: --run-out RUN",
        )
    with _resumed_by_verify():
        folder, results = resume(path, tell, source=source)
    return folder, results, _compared(folder, results, advice, document)


def _compared(folder: RunFolder, results: Results, advice: Advice, document: Document) -> Compared:
    check = placed(advice, document, folder.manifest.machine)
    columns = _columns(folder)
    configurations = [(check.now, advice.now), (check.other, compared_with(advice))]
    measured = [_streams(columns, point, item, check.scale) for point, item in configurations]
    reference = None
    if check.reference is not None:
        reference = _scaled(columns[check.reference.id, "comp", "alone"], 1 / check.scale)
    totals = steps_of_rates(
        advice.job, [item for _, item in configurations], measured, reference, folder.manifest.seed
    )
    repetitions = len(set(measured[0]["comp_alone"].repetitions))
    reasons = results.verdict.reasons if not results.verdict.trusted else ()
    return compare(advice, totals, repetitions, reasons=reasons, source=str(folder.path))


Key = tuple[str, str, str]


def _columns(folder: RunFolder) -> Mapping[Key, RepeatedValues]:
    """Samples by point, side and whether alone or together; void ones and closing baselines left out."""
    points = folder.manifest.points
    samples = collect(folder.entries(), points).samples
    by_key: dict[Key, tuple[list[float], list[int]]] = {}
    for row in range(len(samples)):
        if samples.status[row] == "void" or samples.closing[row] or not np.isfinite(samples.value[row]):
            continue
        state = "together" if samples.phase[row] == "AB" else "alone"
        key = (points[samples.point[row]].id, samples.side[row], state)
        values, repetitions = by_key.setdefault(key, ([], []))
        values.append(float(samples.value[row]))
        repetitions.append(int(samples.repetition[row]))
    return {key: RepeatedValues(*columns) for key, columns in by_key.items()}


def _streams(
    columns: Mapping[Key, RepeatedValues], point: Point, item: Configuration, scale: float
) -> dict[str, RepeatedValues]:
    """The four streams of a configuration, MB/s as the model counts them; those together only where it
    overlaps.
    """
    streams, factors = {}, {"comp": 1 / scale, "comm": ONE_WAY[point.pattern]}
    for side in ("comp", "comm"):
        for state in ("alone", "together") if item.setup.overlap else ("alone",):
            if (point.id, side, state) not in columns:
                raise MachineError(
                    "was not measured, every sample is void or failed",
                    field="verify",
                    value=point.id,
                    hint="see the run's report, and measure again",
                )
            streams[f"{side}_{state}"] = _scaled(columns[point.id, side, state], factors[side])
    return streams


def _scaled(column: RepeatedValues, factor: float) -> RepeatedValues:
    return RepeatedValues([factor * value for value in column.values], column.repetitions)
