"""Jobs that share nodes: the best pairing of applications, and plans of jobs on a cluster."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from elbowroom.documents import encode
from elbowroom.draw.files import save
from elbowroom.files import read_text, write_atomically
from elbowroom.schedule.jobs import Jobs, parse_jobs
from elbowroom.schedule.matrix import Matrix, parse_half, parse_matrix
from elbowroom.schedule.pairing import Pair, best_pairing, matrix_figure
from elbowroom.schedule.pairing import Pairing as Pairing
from elbowroom.schedule.pairing import parse_apart as parse_apart
from elbowroom.schedule.plan import PLAN_FORMAT, SECONDS, schedule
from elbowroom.schedule.plan import SchedulePlan as SchedulePlan
from elbowroom.schedule.slurm import slurm_script

_MATRIX = "give a CSV file: a column for each measured application, a row for each companion"
_HALF = "give a CSV file: applications, and their percents with half of the cores"
_JOBS = "give a file of jobs, see `elbowroom help colocate`"


def pair_applications(
    matrix: Path | str,
    *,
    half: Path | str | None = None,
    apart: Collection[Pair] = (),
    limit: float | None = None,
) -> Pairing:
    """The pairing of least mean runtime, from a CSV file of slowdowns (column: measured application, row:
    companion, in percent of the exclusive runtime).

    `half`: a CSV file of percents with half of the cores; `apart`: pairs that must not share; `limit`: nor
    those in which one takes more percent. UsageError with row, column and value for a damaged file.
    """
    return best_pairing(_matrix(matrix), apart=apart, limit=limit, half=_half(half))


def schedule_jobs(
    jobs: Path | str,
    matrix: Path | str,
    *,
    half: Path | str | None = None,
    apart: Collection[Pair] = (),
    limit: float | None = None,
    seconds: float = SECONDS,
) -> SchedulePlan:
    """The plan of least node-hours, found within some `seconds`, for a file of jobs; others as in
    `pair_applications`. UsageError for jobs that no plan can run.
    """
    return schedule(_jobs(jobs), _matrix(matrix), half=_half(half), limit=limit, apart=apart, seconds=seconds)


def save_pairing(pairing: Pairing, path: Path | str) -> None:
    """Writes the pairing as JSON, whole or not at all."""
    write_atomically(Path(path), encode(pairing))


def save_schedule(plan: SchedulePlan, path: Path | str) -> None:
    """Writes the plan as JSON, whole or not at all."""
    PLAN_FORMAT.write(Path(path), plan)


def load_schedule(path: Path | str) -> SchedulePlan:
    """A plan from its file; UsageError where it is none or was written by a newer release."""
    return PLAN_FORMAT.read(Path(path))


def save_slurm_script(plan: SchedulePlan, jobs: Path | str, path: Path | str) -> None:
    """Writes a shell script that submits the plan's jobs to Slurm; UsageError for jobs without a command."""
    target = Path(path)
    write_atomically(target, slurm_script(plan, _jobs(jobs), target.name).encode())


def save_matrix_figure(matrix: Path | str, pairs: Collection[Pair], path: Path | str) -> None:
    """Draws the matrix with pairs of applications on it (.svg or .png)."""
    save(matrix_figure(_matrix(matrix), tuple(pairs)), Path(path))


def application_pairs(plan: SchedulePlan) -> tuple[Pair, ...]:
    """The pairs of applications that share nodes in the plan, each once."""
    of = {job.name: job.application for group in plan.groups for job in group.jobs}
    found = {tuple(sorted((of[a], of[b]))) for a, b in plan.pairs}
    return tuple((pair[0], pair[1]) for pair in sorted(found))


def _matrix(file: Path | str) -> Matrix:
    return parse_matrix(read_text(Path(file), field="matrix", hint=_MATRIX), str(file))


def _half(file: Path | str | None) -> dict[str, float] | None:
    if file is None:
        return None
    return parse_half(read_text(Path(file), field="half", hint=_HALF), str(file))


def _jobs(file: Path | str) -> Jobs:
    return parse_jobs(read_text(Path(file), field="jobs", hint=_JOBS), str(file))
