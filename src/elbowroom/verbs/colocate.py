"""`elbowroom colocate schedule`: which jobs may share nodes, and when."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from elbowroom.cli.answer import Answer, command_line
from elbowroom.cli.console import print_wrapped
from elbowroom.cli.options import Output
from elbowroom.cli.tables import new_table, print_table
from elbowroom.documents import encode
from elbowroom.draw import files
from elbowroom.draw.figure import Figure
from elbowroom.errors import UsageError
from elbowroom.files import read_text, write_atomically
from elbowroom.quantities import parse_percent, percent
from elbowroom.schedule.jobs import Jobs, parse_jobs
from elbowroom.verbs.declaration import Verb, argument, option
from elbowroom.verbs.run_options import out_option

if TYPE_CHECKING:
    from elbowroom.schedule.matrix import Matrix
    from elbowroom.schedule.pairing import Pair, Pairing
    from elbowroom.schedule.plan import SchedulePlan

ScheduleFigure = Literal["matrix", "companions"]

MOST_PAIRS = 12
"""Pairs that a sentence lists."""

_MATRIX = "give a CSV file: a column for each measured application, a row for each companion"
_HALF = "give a CSV file: applications, and their percents with half of the cores"
_JOBS = "give a file of jobs, see `elbowroom help colocate`"


def _parse_limit(text: str, field: str) -> float:
    """Percents of `110` or `110 %`; UsageError where there are none."""
    limit = 100 * parse_percent(text, field)
    if limit <= 0:
        raise UsageError("is not above 0", field=field, value=text, hint="for instance 110%")
    return round(limit, 9)


def _parse_apart(text: str, _field: str) -> tuple[Pair, ...]:
    from elbowroom.schedule.pairing import parse_apart

    return parse_apart(text)


class Schedule(Verb):
    """Find the best pairs of applications, or the plan of jobs with the fewest node-hours.

    Without JOBS.toml, each application of the matrix is paired with another one. With it, jobs share nodes
    where that takes fewer node-hours than exclusive nodes and all constraints are met.
    """

    name = "colocate schedule"
    has_tables = True

    jobs: Path | str | None = argument(None, metavar="[JOBS.toml]")
    matrix: Path | str = option(
        "Slowdowns: a column for each measured application, a row for each companion, in percent.",
        "M.csv",
        required=True,
    )
    half: Path | str | None = option("Runtimes on half of the cores of twice the nodes, in percent.", "H.csv")
    apart: Collection[Pair] = option(
        "Pairs of applications that must not share nodes.", "A:B,...", default=(), parse=_parse_apart
    )
    limit: float | None = option(
        "Applications with a higher percentage do not share nodes.", "PERCENT", parse=_parse_limit
    )
    budget: float | None = option(
        "Time for the search for a plan; default: 10s.", "TIME", formerly="--seconds"
    )
    out: Path | str | None = out_option(
        Output(".json", ".svg", ".png"), "Write pairs or plan (.json), or draw the matrix (.svg, .png)."
    )
    figure: ScheduleFigure | None = option(
        "With -o: the matrix (default), or each application by its companions.", only_with="out FILE"
    )
    slurm: Path | str | None = option(
        "Write a script that submits the jobs to Slurm.",
        "FILE",
        type=Output(".sh", ".sbatch", ".slurm", bare=True),
    )

    def do(self) -> Pairing | SchedulePlan:
        """The pairing, or the plan of the jobs; files are written."""
        common: dict[str, Any] = {"half": self.half, "limit": self.limit, "apart": self.apart}
        if self.jobs is None:
            for name in ("slurm", "budget"):
                value = getattr(self, name)
                if value is not None:
                    raise UsageError(
                        "is only valid with jobs", field=name, value=value, hint="give JOBS.toml"
                    )
            pairing = pair_applications(self.matrix, **common)
            self._save(pairing, pairing.pairs)
            return pairing
        plan = schedule_jobs(self.jobs, self.matrix, seconds=self.budget, **common)
        if self.slurm is not None:
            script = slurm_script(plan, self.jobs, Path(self.slurm).name)
            write_atomically(Path(self.slurm), script.encode())
        self._save(plan, _application_pairs(plan))
        return plan

    def _save(self, result: Pairing | SchedulePlan, pairs: Collection[Pair]) -> None:
        """Writes what -o names."""
        if self.out is None:
            return
        path = Path(self.out)
        if path.suffix.lower() == ".json":
            save(result, path)
        elif self.figure == "companions":
            files.save(companions_figure(self.matrix, self.half), path)
        else:
            files.save(matrix_figure(self.matrix, pairs), path)

    def print(self, result: Pairing | SchedulePlan) -> None:
        """The pairs or the allocations, and their costs beside other ways; then the files."""
        from elbowroom.schedule.plan import SchedulePlan

        if isinstance(result, SchedulePlan):
            _print_plan(result)
        else:
            _print_pairing(result)
        for file in (self.out, self.slurm):
            if file is not None:
                click.echo(str(file))

    def answer(self, result: Pairing | SchedulePlan) -> Answer:
        """What sharing nodes saves, and how far that is from the bound."""
        from elbowroom.schedule.plan import SchedulePlan

        return self._of_plan(result) if isinstance(result, SchedulePlan) else self._of_pairs(result)

    def _of_pairs(self, pairing: Pairing) -> Answer:
        alone = f"; {', '.join(pairing.alone)} stay alone" if pairing.alone else ""
        pairs = _pairs(pairing.pairs, MOST_PAIRS)
        return Answer(
            f"The best pairs are {pairs}{alone}: applications take {pairing.mean:.1f} % of their exclusive "
            "time on average.",
            f"Random pairs take {pairing.random:.1f} %, and no pairing less than {pairing.bound:.1f} %.",
            self.again(out="pairs.svg") if self.out is None else command_line("help", "colocate"),
        )

    def _of_plan(self, plan: SchedulePlan) -> Answer:
        hours = plan.node_hours
        gain = 1 - hours.plan / hours.exclusive
        gap = max(hours.plan / hours.groups_bound - 1 if hours.groups_bound > 0 else 0.0, 0.0)
        late = f" Behind their deadlines: {', '.join(plan.late)}." if plan.late else ""
        return Answer(
            f"{sum(len(group.jobs) for group in plan.groups)} jobs in {len(plan.groups)} allocations take "
            f"{hours.plan:.4g} node-hours, {percent(abs(gain))} {'less' if gain >= 0 else 'more'} than "
            f"exclusively.{late}",
            f"Random pairs would take {hours.random:.4g}, and no choice of the groups that were searched "
            f"takes more than {percent(gap, digits=2)} less.",
            self.again(slurm="jobs.sh") if self.slurm is None else command_line("help", "colocate"),
            "red" if plan.late else "",
        )


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
    from elbowroom.schedule.pairing import best_pairing

    return best_pairing(_matrix(matrix), apart=apart, limit=limit, half=_half(half))


def schedule_jobs(
    jobs: Path | str,
    matrix: Path | str,
    *,
    half: Path | str | None = None,
    apart: Collection[Pair] = (),
    limit: float | None = None,
    seconds: float | None = None,
) -> SchedulePlan:
    """The plan of least node-hours, found within some `seconds` (default: 10), for a file of jobs; others as
    in `pair_applications`. UsageError for jobs that no plan can run.
    """
    from elbowroom.schedule.plan import SECONDS, schedule

    limit_s = SECONDS if seconds is None else seconds
    return schedule(_jobs(jobs), _matrix(matrix), half=_half(half), limit=limit, apart=apart, seconds=limit_s)


def save(result: Pairing | SchedulePlan, path: Path) -> None:
    """Writes a pairing or a plan as JSON, whole or not at all."""
    from elbowroom.schedule.plan import PLAN_FORMAT, SchedulePlan

    if isinstance(result, SchedulePlan):
        PLAN_FORMAT.write(path, result)
    else:
        write_atomically(path, encode(result))


def load_schedule(path: Path | str) -> SchedulePlan:
    """A plan from its file; UsageError where it is none or was written by a newer release."""
    from elbowroom.schedule.plan import PLAN_FORMAT

    return PLAN_FORMAT.read(Path(path))


def slurm_script(plan: SchedulePlan, jobs: Path | str, name: str = "jobs.sh") -> str:
    """A shell script of this name that submits the plan's jobs to Slurm; UsageError for jobs without a
    command.
    """
    from elbowroom.schedule import slurm

    return slurm.slurm_script(plan, _jobs(jobs), name)


def matrix_figure(matrix: Path | str, pairs: Collection[Pair]) -> Figure:
    """The matrix with pairs of applications on it."""
    from elbowroom.schedule import pairing

    return pairing.matrix_figure(_matrix(matrix), tuple(pairs))


def companions_figure(matrix: Path | str, half: Path | str | None = None) -> Figure:
    """The runtimes of each application by companion; `half`: a file of percents with half of the cores."""
    from elbowroom.schedule import pairing

    return pairing.companions_figure(_matrix(matrix), _half(half))


def _application_pairs(plan: SchedulePlan) -> tuple[Pair, ...]:
    """The pairs of applications that share nodes in the plan, each once."""
    of = {job.name: job.application for group in plan.groups for job in group.jobs}
    pairs = {tuple(sorted((of[a], of[b]))) for a, b in plan.pairs}
    return tuple((pair[0], pair[1]) for pair in sorted(pairs))


def _matrix(file: Path | str) -> Matrix:
    from elbowroom.schedule.matrix import parse_matrix

    return parse_matrix(read_text(Path(file), field="matrix", hint=_MATRIX), str(file))


def _half(file: Path | str | None) -> dict[str, float] | None:
    if file is None:
        return None
    from elbowroom.schedule.matrix import parse_half

    return parse_half(read_text(Path(file), field="half", hint=_HALF), str(file))


def _jobs(file: Path | str) -> Jobs:
    return parse_jobs(read_text(Path(file), field="jobs", hint=_JOBS), str(file))


def _print_pairing(pairing: Pairing) -> None:
    """The pairs, and their mean beside a random pairing and the bounds."""
    if len(pairing.pairs) > MOST_PAIRS:
        print_wrapped(f"Best pairs: {_pairs(pairing.pairs, len(pairing.pairs))}")
        print()
    table = new_table("mean runtime, % of exclusive", ">%")
    table.add_row("best pairs", f"{pairing.mean:.1f}")
    table.add_row("random pairs (expected)", f"{pairing.random:.1f}")
    table.add_row("bound: best companion of each", f"{pairing.bound:.1f}")
    if pairing.half_cores is not None:
        table.add_row("half of the cores, no companion", f"{pairing.half_cores:.1f}")
    print_table(table)
    _print_apart(pairing.apart, "Must not share")
    _print_apart(pairing.losing, "Take longer together than alone")


def _print_plan(plan: SchedulePlan) -> None:
    """Node-hours beside other ways, the allocations, and what to know."""
    hours = plan.node_hours
    table = new_table("", ">node-hours", ">% of exclusive")
    rows = (
        ("this plan", hours.plan),
        ("exclusive nodes", hours.exclusive),
        ("random pairs (expected)", hours.random),
        ("bound: best companions, no idle node", hours.bound),
        ("bound of the groups that were searched", hours.groups_bound),
    )
    for name, value in rows:
        table.add_row(name, f"{value:.4g}", f"{100 * value / hours.exclusive:.1f}")
    print_table(table)
    print()
    _print_groups(plan)
    print_wrapped(
        f"All jobs have ended after {plan.makespan:.4g} h (exclusive: {plan.exclusive_makespan:.4g})."
    )
    _print_apart(plan.apart, "Applications that must not share")


def _print_groups(plan: SchedulePlan) -> None:
    table = new_table(">start h", ">end h", ">nodes", "cores", "~jobs")
    for group in plan.groups:
        host = group.jobs[0].name
        queues = " | ".join(", then ".join(queue) for queue in group.queues)
        table.add_row(
            f"{group.start:.3g}",
            f"{group.end:.3g}",
            str(len(group.nodes)),
            group.jobs[0].cores,
            f"{host} with {queues}" if queues else host,
        )
    print_table(table)
    print()


def _print_apart(pairs: Sequence[tuple[str, str]], what: str) -> None:
    if pairs:
        print_wrapped(f"{what}: {_pairs(pairs, MOST_PAIRS)}")


def _pairs(pairs: Sequence[tuple[str, str]], most: int) -> str:
    shown = ", ".join(f"{a}-{b}" for a, b in pairs[:most]) or "none"
    return shown if len(pairs) <= most else f"{shown} and {len(pairs) - most} more"
