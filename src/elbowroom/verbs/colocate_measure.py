"""`elbowroom colocate measure` and `fit`: all pairs of some applications, and the machine's model."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations_with_replacement
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from elbowroom.cli.answer import Answer, command_line
from elbowroom.cli.console import chatter, print_all, print_list, print_wrapped
from elbowroom.cli.options import REPEAT, Output
from elbowroom.cli.tables import new_table, print_table
from elbowroom.documents import encode
from elbowroom.errors import UsageError
from elbowroom.files import read_text, write_atomically
from elbowroom.launch import build, native, topologies
from elbowroom.launch.mpi import find_mpi
from elbowroom.launch.planned_starts import PlannedStart
from elbowroom.launch.topologies import KernelRate, kernel_rate, own_topology_xml
from elbowroom.machine.hwloc import read_topology
from elbowroom.machine.identity import SHAPE, check_same, difference
from elbowroom.machine.topology import Machine, here
from elbowroom.measure.colocation_commands import check_commands
from elbowroom.models.load import LoadRow
from elbowroom.progress import Progress
from elbowroom.schedule.applications import Applications, decode, turns
from elbowroom.verbs.declaration import Verb, argument, dry_run_option, function_of, included, option
from elbowroom.verbs.fit import fit
from elbowroom.verbs.run_options import Launching, out_option, timeout_option

if TYPE_CHECKING:
    from elbowroom.models.fit import FitDocument
    from elbowroom.models.run_data import FitData
    from elbowroom.profile.analysis import Analysis
    from elbowroom.profile.curve import NicCurve
    from elbowroom.profile.forecast import Forecast
    from elbowroom.schedule.measured import MeasuredMatrix, Percent, PredictedCell
    from elbowroom.verbs.model_file import Model
    from elbowroom.verbs.run_folder import Run

MOST_COLUMNS = 8
"""Of more applications only the files have the matrix: it would not fit 80 columns."""

MATRIX, HALF, DOCUMENT = "matrix.csv", "half.csv", "matrix.json"
"""What a measurement leaves in its folder beside the journal."""

_APPS = "give a file of applications, see `elbowroom help colocate`"


FIRST_GUESS = 10.0
"""Seconds of a run in a dry run, which starts none."""


class PlannedRuns(msgspec.Struct, frozen=True, kw_only=True):
    """What `colocate measure --dry-run --json` prints: how many runs and pairs of runs would be measured, a
    first guess of the seconds that they take, and the commands of each application alone on all cores, alone
    on half of them, and as the second one of a pair.
    """

    schema: str = "elbowroom/colocation-plan"
    version: int = 1
    measurements: int
    seconds: float
    commands: dict[str, tuple[str, str, str]]


class MeasurePairs(Verb):
    """Measure how much applications slow each other down on shared nodes.

    Runs each one alone on all cores, alone on half of the cores of twice the nodes, and beside each one,
    itself included. Exit code 3 means that the runs differ too much to be trusted.
    """

    name = "colocate measure"
    has_tables = True

    apps: Path | str = argument(metavar="APPS.toml")
    out: Path | str | None = option(
        "New folder for the times and the matrix.", "FOLDER", spelled="-o --out", positional=True
    )
    repetitions: int = option("Number of repetitions.", "N", spelled="--repeat", default=3, type=REPEAT)
    resume: bool = option("Continue a measurement that was stopped, in FOLDER.")
    dry_run: bool = dry_run_option("Print the commands and how many runs; start nothing.")
    timeout: float | None = timeout_option("Time limit of a run, or of two that run together; default: none.")
    seed: int = option("Seed of the order and of the starts.", default=1, type=click.IntRange(min=0))
    curve: Path | str | None = option("NIC of the forecast: a file that `nic measure -o` wrote.")
    tell: Callable[[str], object] = chatter

    def do(self) -> MeasuredMatrix:
        """Runs all applications of a file alone, on half of the cores, and in pairs, into the folder `out`;
        the matrix, which is written there too (matrix.csv, half.csv, matrix.json).

        `timeout`: seconds that a run, or a pair, may take; `resume`: goes on with a measurement that was
        stopped; `curve`: the NIC of the forecast, a file of `nic measure`. `tell` gets lines of
        progress. UsageError for applications that cannot be measured, MachineError where one fails or prints
        no time. What was measured before an error or an interrupt is kept.
        """
        from elbowroom.measure.colocation import measure_colocation
        from elbowroom.profile.curve import load_curve
        from elbowroom.schedule.measured import measured_matrix, with_prediction

        if self.out is None:
            raise UsageError("is missing", field="out", hint="name a folder: -o FOLDER")
        applications = self._applications()
        profiles = _profiles(applications, None if self.curve is None else load_curve(self.curve))
        folder = Path(self.out)
        lines = measure_colocation(
            applications,
            folder,
            repetitions=self.repetitions,
            seed=self.seed,
            patience=self.timeout,
            tell=self.tell,
            again=self.resume,
        )
        matrix = measured_matrix(applications.names, lines)
        if profiles:
            matrix = with_prediction(matrix, *_predicted(profiles, self.seed))
        write_atomically(folder / MATRIX, matrix.csv().encode())
        write_atomically(folder / HALF, matrix.half_csv().encode())
        write_atomically(folder / DOCUMENT, encode(matrix))
        return matrix

    def planned(self) -> PlannedRuns:
        """What would be run; nothing is."""
        applications = self._applications()
        count = len(turns(applications, self.repetitions, 0))
        return PlannedRuns(
            measurements=count,
            seconds=count * FIRST_GUESS,
            commands={
                name: (
                    " ".join(applications.words(name, "exclusive")),
                    " ".join(applications.words(name, "half")),
                    " ".join(applications.words(name, "shared", 1)),
                )
                for name in applications.names
            },
        )

    def _applications(self) -> Applications:
        applications = read_applications(self.apps)
        check_commands(applications, os.environ)
        return applications

    def print(self, result: MeasuredMatrix) -> None:
        """The matrix, how it agrees with the forecast, and whether it can be trusted."""
        _print_measured(result)

    def answer(self, result: MeasuredMatrix) -> Answer:
        """The cell of the matrix that loses most, beside the one that loses least."""
        cells = sorted(result.cells, key=lambda cell: cell.percent.value)
        least, most = cells[0], cells[-1]
        noise = f"Too noisy to trust: {'; '.join(result.noise)}." if result.noise else ""
        return Answer(
            noise
            or f"{most.application} loses most: beside {most.companion} it takes {most.percent.value:.0f} % "
            "of its time on all cores alone.",
            f"{least.application} loses least, beside {least.companion}: {least.percent.value:.0f} % "
            f"(100 % is no loss), in {result.repetitions} repetitions.",
            command_line(
                "colocate", "schedule", "--matrix", f"{self.out}/{MATRIX}", "--half", f"{self.out}/{HALF}"
            ),
            "yellow" if result.noise else "",
        )

    def print_planned(self, planned: PlannedRuns) -> None:
        """How many runs, and the commands."""
        _print_runs(planned)

    def trusted(self, result: MeasuredMatrix) -> bool:
        return not result.noise


measure_pairs = function_of(MeasurePairs, "measure_pairs")
plan_colocation = function_of(MeasurePairs, "plan_colocation", dry_run=True)


def read_applications(file: Path | str) -> Applications:
    """The applications of a file; UsageError where they cannot be measured."""
    return decode(read_text(Path(file), field="apps", hint=_APPS), str(file))


def _profiles(apps: Applications, curve: NicCurve | None) -> dict[str, Analysis]:
    """Of the applications that name one. UsageError for one of other nodes than the applications run on."""
    from elbowroom.profile.analysis import analyse
    from elbowroom.profile.profile import read_profile

    analyses = {}
    for name, app in apps.apps.items():
        if app.profile is None:
            continue
        profile = read_profile(Path(app.profile))
        if profile.nodes != apps.nodes:
            raise UsageError(
                f"has {profile.nodes} nodes, and the application runs on {apps.nodes}",
                field=f"apps.{name}.profile",
                value=app.profile,
                hint="profile it alone on all cores",
            )
        analyses[name] = analyse(profile, curve)
    return analyses


def _predicted(jobs: dict[str, Analysis], seed: int) -> tuple[list[PredictedCell], list[str]]:
    """All pairs of these jobs on half of the cores, and notes."""
    from elbowroom.profile.forecast import OFFSETS, forecast
    from elbowroom.schedule.measured import PredictedCell

    cells, notes = {}, dict[str, None]()
    for a, b in combinations_with_replacement(jobs, 2):
        pair = forecast(jobs[a], jobs[b], half=True, offsets=OFFSETS, seed=seed)
        notes.update(dict.fromkeys(pair.notes))
        cells[b, a] = pair.slowdown_b
        cells[a, b] = pair.slowdown_a
    return [
        PredictedCell(application=name, companion=companion, percent=_percent(cells[name, companion]))
        for name in jobs
        for companion in jobs
    ], list(notes)


def _percent(slowdown: Forecast) -> Percent:
    from elbowroom.schedule.measured import PERCENT, Percent

    values = (slowdown.value, slowdown.low, slowdown.high)
    value, low, high = (PERCENT * item for item in values)
    return Percent(value=value, low=low, high=high)


def _print_runs(planned: PlannedRuns) -> None:
    print_wrapped(
        f"{planned.measurements} measurements, about {planned.seconds / 60:.0f} min if each takes 10 s",
        style="bold",
    )
    for name, words in planned.commands.items():
        print_wrapped(f"{name}:")
        for what, words_of_mode in zip(("all cores", "half", "beside another"), words, strict=True):
            print_wrapped(f"  {what}: {words_of_mode}")


def _print_measured(matrix: MeasuredMatrix) -> None:
    """The matrix, how it agrees with the forecast, and whether it can be trusted."""
    names = matrix.applications
    print_wrapped(
        f"Runtime beside a companion, % of exclusive ({matrix.repetitions} repetitions)", style="bold"
    )
    if len(names) > MOST_COLUMNS:
        print_wrapped(f"{len(names)} applications: see matrix.csv")
    else:
        table = new_table("companion", *(f">{name}" for name in names))
        for companion in names:
            table.add_row(companion, *(f"{matrix.percent(name, companion):.1f}" for name in names))
        table.add_row("half, alone", *(f"{percent.value:.1f}" for percent in matrix.half))
        table.add_row("exclusive, s", *(f"{seconds:.4g}" for seconds in matrix.exclusive_s))
        print_table(table)
    if matrix.prediction is not None:
        _print_prediction(matrix)
    print_all((*matrix.notes, *(matrix.prediction.notes if matrix.prediction else ())), style="yellow")


def _print_prediction(matrix: MeasuredMatrix) -> None:
    assert matrix.prediction is not None
    compared = matrix.prediction.agreement
    ranks = compared.rank_correlation
    print_wrapped(
        f"Forecast of {compared.cells} cells from profiles of each alone: mean error "
        f"{compared.mean_error:.1f} %, worst {compared.worst_error:.1f} %, rank correlation "
        f"{'n/a, all are alike' if ranks is None else f'{ranks:.2f}'}."
    )


SECONDS = 0.1
"""Of a measurement of one kernel."""
_RUN = "elbowroom run model --kernels triad"


class CalibrateForJobs(Verb):
    """Fit a model of the machine for `colocate predict --model`.

    RUN is a run of the plan `model` on this machine. Also measures what 1 to all cores get from memory at
    several arithmetic intensities: jobs that share a node compute on more cores than RUN did.
    """

    name = "colocate fit"

    run: Run | Path | str = argument(metavar="RUN")
    repeat: int = option("Number of repetitions.", "N", default=5, type=REPEAT)
    launching: Launching = included(Launching, only=("mpi",))
    out: Path | str | None = out_option(
        Output(".json"), "Model file to write; default: in the run folder.", "M.json", positional=True
    )
    dry_run: bool = dry_run_option()
    seconds: float = SECONDS
    tell: Callable[[str], object] = chatter

    def do(self) -> Model:
        """Measures what the cores of this machine get from memory and what plain stores move over its bus,
        and fits its model to that and to a run of it.

        `out`: default as `fit`. UsageError for a run of another machine or of a virtual one, MachineError
        where the probe fails.
        """
        from elbowroom.measure.core_rates import core_rates, measured_store_factor

        source, probe, machine = self._place()
        cores, starts = self._cores(machine)
        common: dict[str, Any] = {"seconds": self.seconds, "repeat": self.repeat}
        with Progress(starts, starts * self.seconds, tell=self.tell) as bar:

            def measure(path: Path | str, kernel: str, *words: Any, **options: Any) -> KernelRate:
                rate = kernel_rate(path, kernel, *words, **options)
                bar.step()
                return rate

            def computing(data: FitData) -> Sequence[LoadRow]:
                return core_rates(probe, machine, data, measure=measure, **common)

            stores = measured_store_factor(probe, machine, cores, measure=measure, **common)
            model: Model = fit(source, self.out, computing=computing, store_factor=stores)
            return model

    def planned_starts(self) -> Iterator[PlannedStart]:
        _, probe, machine = self._place()
        cores, starts = self._cores(machine)
        yield PlannedStart(
            what=f"the probe, with kernels on 1 to {len(cores)} cores",
            commands=(f"{shlex.quote(str(probe))} kernel …",),
            times=starts,
            seconds=starts * self.seconds,
        )

    def _cores(self, machine: Machine) -> tuple[Sequence[int], int]:
        """The cores that are measured, and how often the probe starts."""
        from elbowroom.measure.core_rates import count_starts, first_cores
        from elbowroom.models.run_data import layout_of

        cores = first_cores(machine, layout_of(machine))
        return cores, count_starts(len(cores)) * self.repeat

    def _place(self) -> tuple[Run, Path, Machine]:
        """The run, the probe, and this machine; UsageError where the run is not of it, or no model can be
        fitted to it.
        """
        from elbowroom.models.run_data import layout_of
        from elbowroom.verbs.run_folder import open
        from elbowroom.verbs.run_models import pooled

        source = open(self.run)
        if source.machine.virtual:
            raise UsageError(
                "was made for a virtual machine",
                field="run",
                value=str(source.path),
                hint=f"measure it here: {_RUN}",
            )
        pooled([source], None, None, msgspec.UNSET)  # before minutes of measuring
        probe = build.probe(find_mpi(self.launching.mpi))
        known = own_topology_xml() if native.is_dry_run() else topologies.topology_xml(probe)
        machine = here(read_topology(known))
        shape, own = layout_of(source.machine).shape, layout_of(machine).shape
        check_same(
            difference(shape, own, SHAPE),
            message="was made for another machine",
            field="run",
            value=str(source.path),
            hint=f"measure it here: {_RUN}",
            places=("there", "here"),
        )
        return source, probe, machine

    def document(self, result: Model) -> FitDocument:
        """The file, and the model in it."""

        return FitDocument(file=str(result.path), model=result.document)

    def print(self, result: Model) -> None:
        """Where not to trust it, and the file."""
        print_list(result.document.validity)
        click.echo(str(result.path))

    def answer(self, result: Model) -> Answer:
        from elbowroom.verbs.model_answers import fit_answer

        return fit_answer(result)


calibrate_for_jobs = function_of(CalibrateForJobs, "calibrate_for_jobs")
