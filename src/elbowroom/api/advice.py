"""Advice for a job: files, verification by measurement, and contention maps."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from elbowroom.advise.advice import ADVICE_FORMAT
from elbowroom.advise.advice import Advice as Advice
from elbowroom.advise.advice import Choice as Choice
from elbowroom.advise.advice import Configuration as Configuration
from elbowroom.advise.contention_map import check_shown
from elbowroom.advise.contention_map import contention_maps as mapped
from elbowroom.advise.map_figures import figures
from elbowroom.advise.setups import differing as differing
from elbowroom.advise.verification import Compared as Compared
from elbowroom.advise.verification import span as span
from elbowroom.cli.console import chatter
from elbowroom.draw.files import save_panels
from elbowroom.errors import UsageError
from elbowroom.measure import program_times, verify
from elbowroom.measure.planned_starts import PlannedStart, PlannedStarts, plan_starts, start_of
from elbowroom.measure.prepared import Request
from elbowroom.measure.session import default_out
from elbowroom.measure.source import Where, choose
from elbowroom.stats.interval import Interval as Interval
from elbowroom.verbs.model_file import load_model
from elbowroom.verbs.run_folder import Run

if TYPE_CHECKING:
    from elbowroom.advise.contention_map import ContentionMap
    from elbowroom.draw.figure import Figure
    from elbowroom.verbs.model_file import Model


def save_advice(advice: Advice, path: Path | str) -> Path:
    """Writes the advice as JSON, whole or not at all."""
    target = Path(path)
    ADVICE_FORMAT.write(target, advice)
    return target


def load_advice(path: Path | str) -> Advice:
    """Advice from its file; UsageError where it is none, is damaged, or was written by a newer release."""
    return ADVICE_FORMAT.read(Path(path))


def verify_advice(
    advice: Advice,
    model: Model | Path | str,
    *,
    repetitions: int = 9,
    run: Path | str | None = None,
    resume: Path | str | None = None,
    machine: str | None = None,
    noise: float | None = None,
    seed: int | None = None,
    launcher: str | None = None,
    mpi: str | None = None,
    hosts: Sequence[str] = (),
    hostfile: str | None = None,
    patience: float | None = None,
    command: Sequence[str] = (),
    tell: Callable[[str], object] = chatter,
) -> Compared:
    """Measures the present and the advised configuration, interleaved, in a new folder `run` (or goes on with
    `resume`), and says what was gained beside what was predicted; where nothing is advised, the best other
    prediction takes the advised one's place.

    The probe measures both sides' bandwidths, of which the steps follow, or the job's own command is timed.
    `model`: that of the advice. `machine`: a virtual one answers, as of `elbowroom.run`.
    """
    if resume is not None and run is not None:
        raise UsageError("cannot be given with resume", field="run", value=str(run), hint="leave one out")
    document = load_model(model).document
    if advice.job.verify.command is not None:
        if machine is not None:
            raise UsageError(
                "cannot run a program",
                field="machine",
                value=machine,
                hint="leave verify.command out of the job",
            )
        out = Path(resume or run or default_out(verify.NAME))
        return program_times.time_program(
            advice,
            document,
            out,
            repetitions=repetitions,
            seed=seed or 1,
            patience=patience,
            tell=tell,
            again=resume is not None,
        )
    if resume is not None:
        folder, results, compared = verify.verify_again(advice, document, Path(resume), tell)
    else:
        where = Where.of(launcher, mpi, hosts, hostfile, machine, noise, seed)
        request = Request(
            plan=verify.NAME,
            where=where,
            out=None if run is None else str(run),
            seed=seed,
            patience=patience,
            command=tuple(command),
        )
        folder, results, compared = verify.verify(advice, document, request, choose(where), repetitions, tell)
    Run(folder, results).report()
    return compared


def plan_verification(
    advice: Advice,
    model: Model | Path | str,
    *,
    repetitions: int = 9,
    machine: str | None = None,
    noise: float | None = None,
    seed: int | None = None,
    launcher: str | None = None,
    mpi: str | None = None,
    hosts: Sequence[str] = (),
    hostfile: str | None = None,
) -> PlannedStarts:
    """What `verify_advice` would build and start; errors as there."""
    document = load_model(model).document

    def find() -> Iterator[PlannedStart]:
        if advice.job.verify.command is not None:
            yield from (
                PlannedStart(what=what, commands=(shlex.join(words),), times=repetitions)
                for what, words in zip(
                    ("the present setup", "the other setup"),
                    program_times.commands(advice, document),
                    strict=True,
                )
            )
            return
        source = choose(Where.of(launcher, mpi, hosts, hostfile, machine, noise, seed))
        prepared = verify.prepare(advice, document, source, repetitions, seed or 1)
        yield start_of(prepared, "the present and the other setup")

    return plan_starts(find)


COLUMNS = 2


def contention_maps(advice: Advice, model: Model | Path | str | None = None) -> tuple[ContentionMap, ...]:
    """What each side keeps and how long a step takes, for any number of cores and any message size, with the
    job's data as now, and as advised where that differs; with the job's points on it.

    `model`: that of the advice (default: the file or machine it names). UsageError for one of another
    machine.
    """
    document = load_model(advice.model if model is None else model).document
    check_shown(advice, document)
    return mapped(document, advice)


def map_figures(advice: Advice, model: Model | Path | str | None = None) -> tuple[Figure, ...]:
    """The maps of `contention_maps` as figures: two for each, who loses and how long a step takes."""
    return figures(contention_maps(advice, model), advice.machine)


def save_map(advice: Advice, path: Path | str, model: Model | Path | str | None = None) -> Path:
    """Writes the maps as one .png or .svg, a row for each placement."""
    title = f"{advice.job.name} on {advice.machine.name}{' (virtual)' if advice.machine.virtual else ''}"
    save_panels(
        map_figures(advice, model),
        Path(path),
        columns=COLUMNS,
        title=f"{title}: {advice.sentence}",
        shared=False,
    )
    return Path(path)
