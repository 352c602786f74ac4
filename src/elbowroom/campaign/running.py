"""A campaign from a plan to a report: prepare, measure, seal, judge."""

from __future__ import annotations

import contextlib
import datetime
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from elbowroom import __version__, experiments
from elbowroom.campaign import neighbours
from elbowroom.campaign.measuring import Group, Measuring, as_they_are, groups, remaining
from elbowroom.campaign.progress import Progress
from elbowroom.campaign.results import Results, evaluate
from elbowroom.campaign.sources import Source, Where, choose
from elbowroom.errors import ElbowroomError, MachineError, UsageError
from elbowroom.launch.session import Conversation
from elbowroom.machine.frequencies import CORE, UNCORE, Frequencies
from elbowroom.machine.state import unknowns
from elbowroom.machine.topology import Machine
from elbowroom.plan.ordering import estimate, measured, order
from elbowroom.plan.point import Expansion, Note, Point, Unit
from elbowroom.plan.reading import Overrides, Plan, apply, decode, load
from elbowroom.plan.validating import ranks_needed, validate
from elbowroom.store.folder import Manifest, RunFolder, refuse_existing
from elbowroom.store.sealed import seal

SIMULATED_UNIT = 0.003
"""Seconds that one repetition on a virtual machine takes, the journal's writing to the disk included."""

Tell = Callable[[str], object]
"""Takes a sentence of chatter for the person who waits."""


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A plan made concrete on a machine, before anything is measured."""

    plan: Plan
    machine: Machine
    expansion: Expansion
    units: tuple[Unit, ...]
    groups: tuple[Group, ...]
    seconds: float
    measured_seconds: float
    commands: tuple[str, ...]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What `run` is asked for. `patience`: seconds to wait for an answer, None for a generous guess per
    point.
    """

    plan: str
    overrides: Overrides = Overrides()
    where: Where = Where()
    out: str | None = None
    seed: int | None = None
    reverse: bool = False
    patience: float | None = None
    command: tuple[str, ...] = ()


class Stopped(ElbowroomError):
    """The person stopped the run; what was measured is kept."""


def prepare(request: Request, source: Source) -> Prepared:
    """Loads, changes, expands, validates and orders a plan; measures nothing."""
    plan = apply(load(request.plan), request.overrides)
    if request.seed is not None:
        plan = msgspec.structs.replace(plan, seed=request.seed)
    machine = source.machine()
    expansion = answerable(experiments.get(plan.experiment).expand(plan, machine), source)
    return concrete(plan, machine, expansion, source, request.reverse)


def answerable(expansion: Expansion, source: Source) -> Expansion:
    """The points that the source answers; a note for those it does not, by reason."""
    refused: dict[str, list[Point]] = {}
    for point in expansion.points:
        refused.setdefault(source.refuse(point), []).append(point)
    answered = tuple(refused.pop("", ()))
    notes = [
        Note(what=points[0].id if len(points) == 1 else f"{len(points)} points", reason=reason)
        for reason, points in refused.items()
    ]
    if notes and not answered:
        raise UsageError(
            "nothing of it can be answered here",
            field="plan",
            value=notes[0].reason,
            mend="choose other axes",
        )
    return Expansion(points=answered, notes=(*expansion.notes, *notes))


def concrete(plan: Plan, machine: Machine, expansion: Expansion, source: Source, reverse: bool) -> Prepared:
    points = expansion.points
    validate(points, machine, hosts=plan.hosts, scheduling=plan.scheduling)
    units = order(points, plan.repetitions, plan.seed, reverse)
    by_id = {point.id: point for point in points}
    sorted_units = groups(units, by_id, lambda point: ranks_needed(point, machine))
    commands = (
        source.command(group.ranks, group.share_core, group.several_threads) for group in sorted_units
    )
    return Prepared(
        plan=plan,
        machine=machine,
        expansion=expansion,
        units=units,
        groups=sorted_units,
        seconds=_seconds(points, units, machine),
        measured_seconds=0.0 if machine.virtual else measured(points, units),
        commands=tuple(line for line in commands if line),
    )


def _seconds(points: Sequence[Point], units: Sequence[Unit], machine: Machine) -> float:
    """How long the units will take, about."""
    return SIMULATED_UNIT * len(units) if machine.virtual else estimate(points, units)


def start(request: Request, tell: Tell, source: Source | None = None) -> tuple[RunFolder, Results]:
    """Measures a plan into a new run folder. Nothing is written when the request cannot be met."""
    out = Path(request.out) if request.out else default_out(request.plan)
    refuse_existing(out)
    source = source or choose(request.where)
    mend_frequencies(source, tell)
    prepared = prepare(request, source)
    state = {"before": state_of(source, tell)}
    first = prepared.groups[0]
    probe = source.open(first.ranks, first.share_core, first.several_threads)
    try:
        manifest = manifest_of(request, prepared, source, state, probe.hello)
        folder = RunFolder.create(out, manifest, source.topology())
    except BaseException:
        probe.close()
        raise
    return folder, _measure(folder, prepared, source, probe, request.patience, tell)


def resume(
    path: Path,
    tell: Tell,
    *,
    where: Where | None = None,
    patience: float | None = None,
    retry_failed: bool = False,
    source: Source | None = None,
) -> tuple[RunFolder, Results]:
    """Measures what a run folder still lacks, with the launcher, MPI and hosts it was begun with."""
    folder = RunFolder.open(path)
    manifest = folder.manifest
    if where is None or where == Where():
        where = msgspec.convert(manifest.where, Where)
    source = source or choose(where)
    plan = decode(manifest.plan)
    machine = manifest.machine
    mend_frequencies(source, tell)
    if compared(source.machine(), manifest) != compared(machine, manifest):
        raise UsageError(
            f"was begun on another machine ({machine.name}), or this one has changed since",
            field="resume",
            value=str(path),
            mend="go on there, or start a new run here",
        )
    expansion = Expansion(points=manifest.points, notes=manifest.notes)
    prepared = concrete(plan, machine, expansion, source, manifest.reverse)
    if retry_failed:
        forget_failed(folder)
    done = {entry.unit for entry in folder.entries()}
    probe = None
    for group in prepared.groups:
        if remaining(group.units, done):
            probe = source.open(group.ranks, group.share_core, group.several_threads)
            break
    if probe is not None:
        try:
            same_library(manifest, probe.hello)
            _same_simulation(manifest, probe.hello)
            folder.update(resumed=(*manifest.resumed, now()))
        except BaseException:
            probe.close()
            raise
    return folder, _measure(folder, prepared, source, probe, patience, tell)


def mend_frequencies(source: Source, tell: Tell) -> None:
    """Sets back what a killed run left constant: it would be measured as if the machine were so."""
    if source.live:
        sentence = Frequencies().restore()
        if sentence:
            tell(sentence)


def compared(machine: Machine, manifest: Manifest) -> Machine:
    """The machine with what matters of it to the points of a run: frequencies only if they are to be set."""
    set_here = {
        name
        for point in manifest.points
        for name, khz in ((CORE, point.core_khz), (UNCORE, point.uncore_khz))
        if khz is not None and name in machine.permitted
    }
    return msgspec.structs.replace(
        machine, permitted=tuple(sorted(set_here)), frequency_ranges={}, refused={}
    )


def same_library(manifest: Manifest, hello: dict[str, Any]) -> None:
    before, now = (record.get("mpi", {}).get("library", "") for record in (manifest.hello, hello))
    if before != now:
        raise UsageError(
            f"the run was begun with another MPI ({before})",
            field="mpi",
            value=now,
            mend="resume with the same --mpi, or start a new run",
        )


def _same_simulation(manifest: Manifest, hello: dict[str, Any]) -> None:
    """A virtual machine's file may have changed since; half a run of each would be of no machine."""
    if manifest.hello.get("virtual") != hello.get("virtual"):
        raise UsageError(
            "the virtual machine has changed since the run was begun",
            field="machine",
            value=str(manifest.where.get("machine")),
            mend="set its definition back (the manifest has it), or start a new run",
        )


def forget_failed(folder: RunFolder) -> None:
    journal = folder.journal()
    try:
        journal.drop_failed()
    finally:
        journal.close()


def _measure(
    folder: RunFolder,
    prepared: Prepared,
    source: Source,
    probe: Conversation | None,
    patience: float | None,
    tell: Tell,
) -> Results:
    """Goes through the groups, then seals, judges and reports. `probe` is up for the first group with
    work.
    """
    manifest = folder.manifest
    begun = time.monotonic()
    clocks = neighbours.look()
    journal = None
    work = None
    try:
        journal = folder.journal()
        left = remaining(prepared.units, journal.done)
        work = Measuring(
            journal,
            {point.id: point for point in prepared.expansion.points},
            prepared.plan.steady,
            open_probe=source.open,
            limit=patience,
            constant=Frequencies().constant if source.live else as_they_are,
        )
        with (
            terminated_as_interrupt(),
            Progress(
                len(left),
                _seconds(prepared.expansion.points, left, prepared.machine),
                tell,
                "answering" if prepared.machine.virtual else "measuring",
            ) as bar,
        ):
            for group in prepared.groups:
                if remaining(group.units, journal.done):
                    first, probe = probe, None
                    work.run(group, first, lambda unit: bar.step(unit.point))
    except KeyboardInterrupt as interrupt:
        raise Stopped(
            "stopped; what was measured is kept",
            field="run",
            value=str(folder.path),
            mend=f"go on with: elbowroom run --resume {folder.path}",
        ) from interrupt
    finally:
        if probe is not None:
            probe.close()
        if journal is not None:
            journal.close()
        if work is not None and work.asked:
            close_part(folder, source, manifest, clocks, begun, work)
    return finish(folder)


def close_part(
    folder: RunFolder,
    source: Source,
    manifest: Manifest,
    clocks: neighbours.Clocks,
    begun: float,
    work: Measuring,
) -> None:
    """Writes what this part of the run took, and the machine's state after it."""
    during: dict[str, Any] = {}
    if source.live and source.name in ("local", "mpiexec", "pbs"):
        # The ranks are children of ours: what the host was busy with besides them is other people's work.
        during["others_busy"] = neighbours.others_busy(clocks, neighbours.look())
    wall = manifest.wall_s + time.monotonic() - begun
    spent = manifest.measured_s + work.measured_s
    after = state_of(source, lambda _: None) if source.live else {}
    with contextlib.suppress(MachineError):
        # A disk that is full refused the journal already and that is the error to show.
        folder.update(
            state={**manifest.state, "during": during, "after": after},
            wall_s=wall,
            measured_s=spent,
            measured_share=spent / wall if wall > 0 and source.live else None,
        )


def finish(folder: RunFolder) -> Results:
    """Seals the samples to Parquet and computes the results; the journal is kept."""
    seal(folder.parquet_path, folder.entries(), folder.manifest.points)
    folder.update(finished=now())
    return evaluate(folder)


def default_out(plan: str) -> Path:
    """runs/PLAN-DATE-TIME below the current folder."""
    stem = re.sub(r"[^\w.-]+", "-", Path(plan).stem) or "run"
    return Path("runs") / f"{stem}-{datetime.datetime.now():%Y%m%d-%H%M%S}"


def manifest_of(
    request: Request,
    prepared: Prepared,
    source: Source,
    state: dict[str, dict[str, Any]],
    hello: dict[str, Any],
) -> Manifest:
    return Manifest(
        elbowroom=__version__,
        created=now(),
        command=request.command,
        plan=msgspec.to_builtins(prepared.plan),
        points=prepared.expansion.points,
        notes=prepared.expansion.notes,
        seed=prepared.plan.seed,
        reverse=request.reverse,
        launcher=source.name,
        where=msgspec.to_builtins(request.where),
        machine=prepared.machine,
        launch=prepared.commands,
        mpi=source.mpi,
        hello={name: value for name, value in hello.items() if name != "kernels"},
        kernels=tuple(hello.get("kernels", ())),
        observers=source.observers(),
        state=state,
        unknown=unknowns(state["before"]),
    )


def state_of(source: Source, tell: Tell) -> dict[str, Any]:
    """The probe's view of the machine, and how busy other processes keep it right now."""
    state = dict(source.state())
    if source.live:
        state["others_busy"] = neighbours.sample()
        busy = state["others_busy"]
        if busy is not None and busy > 0.25:
            tell(f"warning: other processes keep {busy:.1f} cores busy; results will be less certain")
    return state


@contextlib.contextmanager
def terminated_as_interrupt() -> Iterator[None]:
    """A polite SIGTERM (a batch system's end of time) ends a run like Ctrl-C does."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:
        # Not in the main thread (a notebook's worker): signals stay as they are.
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
