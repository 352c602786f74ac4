"""`elbowroom colocate`: which jobs may share nodes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from elbowroom import api
from elbowroom.cli.colocation_measurement import measure
from elbowroom.cli.colocation_model import calibrate
from elbowroom.cli.console import console, new_table, print_json, print_wrapped
from elbowroom.cli.options import Group, Output, json_option
from elbowroom.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from elbowroom.api.colocation import Pairing, SchedulePlan
    from elbowroom.api.colocation_forecast import ForecastDocument, Slowdown

MOST_LINES = 40
"""Allocations that are printed of a plan; -o writes all of them."""

MOST_PAIRS = 12
"""Pairs that a sentence lists."""


@click.group(cls=Group)
def colocate() -> None:
    """Find the jobs that may share nodes, and schedule them (`elbowroom help colocate`)."""


colocate.add_command(measure)
colocate.add_command(calibrate)


@colocate.command()
@click.argument("jobs", required=False, metavar="[JOBS.toml]")
@click.option(
    "--matrix",
    required=True,
    metavar="M.csv",
    help="Slowdowns: a column for each measured application, a row for each companion, in percent.",
)
@click.option("--half", metavar="H.csv", help="Runtimes on half of the cores of twice the nodes, in percent.")
@click.option("--apart", metavar="A:B,...", help="Pairs of applications that must not share nodes.")
@click.option(
    "--limit",
    type=click.FloatRange(min=0, min_open=True),
    metavar="PERCENT",
    help="Applications with a higher percentage do not share nodes.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Time limit of the search for a plan; default: 10.",
)
@click.option(
    "-o",
    "--out",
    type=Output(".json", ".svg", ".png"),
    metavar="FILE",
    help="Write pairs or plan (.json), or draw the matrix (.svg, .png).",
)
@click.option(
    "--slurm",
    type=Output(".sh", ".sbatch", ".slurm", bare=True),
    metavar="FILE",
    help="Write a script that submits the jobs to Slurm.",
)
@json_option
def schedule(jobs: str | None, as_json: bool, **options: Any) -> int:
    """Find the best pairs of applications, or the plan of jobs of the least node-hours.

    Without JOBS.toml, each application of the matrix is paired with another one. With it, jobs share nodes
    where that takes fewer node-hours than exclusive nodes and all constraints are met.
    """
    common = {
        "half": options["half"],
        "limit": options["limit"],
        "apart": () if options["apart"] is None else api.colocation.parse_apart(options["apart"]),
    }
    if jobs is None:
        return _pair(options, common, as_json)
    if options["seconds"] is not None:
        common["seconds"] = options["seconds"]
    plan = api.schedule_jobs(jobs, options["matrix"], **common)
    if options["slurm"] is not None:
        api.save_slurm_script(plan, jobs, options["slurm"])
    _save(plan, options)
    if as_json:
        print_json(plan)
        return 0
    print_plan(plan)
    for name in ("out", "slurm"):
        if options[name] is not None:
            click.echo(options[name])
    return 0


@colocate.command()
@click.argument("profiles", nargs=-1, required=True, metavar="PROFILE...")
@click.option("--half", is_flag=True, help="Each job has half of its ranks on a node, on twice the nodes.")
@click.option("--curve", metavar="FILE", help="NIC by `profile calibrate -o`; default: from the profiles.")
@click.option("--model", metavar="M.json", help="FLOW model of the machine, for memory and last-level cache.")
@click.option(
    "--memory",
    multiple=True,
    metavar="JOB=RATE",
    help="Memory traffic on a node while JOB computes: cg=6.2GB/s.",
)
@click.option(
    "--cache",
    multiple=True,
    metavar="JOB=SIZE@RATE",
    help="What JOB reuses on a node, and how fast: cg=20MiB@30GB/s.",
)
@click.option("--llc", metavar="SIZE", help="Last-level cache that jobs share; default: the profiled host's.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the offsets.")
@click.option("-o", "--out", type=Output(".csv"), metavar="M.csv", help="Write it for `schedule --matrix`.")
@json_option
def predict(profiles: tuple[str, ...], out: str | None, as_json: bool, **options: Any) -> int:
    """Predict what jobs cost each other on shared nodes, from profiles of each alone.

    Replays each pair on one NIC per node, at random offsets. No pair is run. With --model both also share the
    node's memory and last-level cache; without counters state what the jobs do there.
    """
    found = api.forecast_colocation(profiles, **options)
    if out is not None:
        api.save_forecast(found, out)
    if as_json:
        print_json(found)
    else:
        _print_forecast(found)
    return 0


def _print_forecast(found: ForecastDocument) -> None:
    print_wrapped("Predicted duration beside a companion by duration alone; nothing was run", style="bold")
    table = new_table(("a", ""), ("b", ""), ("a slower", "right"), ("b slower", "right"))
    for pair in found.pairs:
        table.add_row(pair.a, pair.b, _slower(pair.slowdown_a), _slower(pair.slowdown_b))
    console().print(table)
    for note in found.notes:
        print_wrapped(note, style="yellow")


def _slower(found: Slowdown) -> str:
    return f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f})"


def _pair(options: dict[str, Any], common: dict[str, Any], as_json: bool) -> int:
    for name in ("slurm", "seconds"):
        if options[name] is not None:
            raise UsageError(
                "is only valid with jobs", field=name, value=options[name], hint="give JOBS.toml"
            )
    pairing = api.pair_applications(options["matrix"], **common)
    _save(pairing, options)
    if as_json:
        print_json(pairing)
        return 0
    print_pairing(pairing)
    if options["out"] is not None:
        click.echo(options["out"])
    return 0


def _save(found: Pairing | SchedulePlan, options: dict[str, Any]) -> None:
    """Writes what -o names."""
    out = options["out"]
    if out is None:
        return
    drawn = os.path.splitext(out)[1].lower() != ".json"
    if isinstance(found, api.colocation.SchedulePlan):
        if drawn:
            api.save_matrix_figure(options["matrix"], api.colocation.application_pairs(found), out)
        else:
            api.save_schedule(found, out)
    elif drawn:
        api.save_matrix_figure(options["matrix"], found.pairs, out)
    else:
        api.save_pairing(found, out)


def print_pairing(pairing: Pairing) -> None:
    """The pairs, and their mean beside a random pairing and the bounds."""
    print_wrapped(f"Best pairs: {_pairs(pairing.pairs, len(pairing.pairs))}", style="bold")
    if pairing.alone:
        print_wrapped(f"Alone: {', '.join(pairing.alone)}")
    print()
    table = new_table(("mean runtime, % of exclusive", ""), ("%", "right"))
    table.add_row("best pairs", f"{pairing.mean:.1f}")
    table.add_row("random pairs (expected)", f"{pairing.random:.1f}")
    table.add_row("bound: best companion of each", f"{pairing.bound:.1f}")
    if pairing.half_cores is not None:
        table.add_row("half of the cores, no companion", f"{pairing.half_cores:.1f}")
    console().print(table)
    _print_apart(pairing.apart, "Must not share")
    _print_apart(pairing.losing, "Take longer together than alone")


def print_plan(plan: SchedulePlan) -> None:
    """Node-hours beside other ways, the allocations, and what to know."""
    hours = plan.node_hours
    gain = 1 - hours.plan / hours.exclusive
    print_wrapped(
        f"{sum(len(group.jobs) for group in plan.groups)} jobs in {len(plan.groups)} allocations take "
        f"{hours.plan:.4g} node-hours, {abs(gain):.1%} {'less' if gain >= 0 else 'more'} than exclusively.",
        style="bold",
    )
    print()
    table = new_table(("", ""), ("node-hours", "right"), ("% of exclusive", "right"))
    rows = (
        ("this plan", hours.plan),
        ("exclusive nodes", hours.exclusive),
        ("random pairs (expected)", hours.random),
        ("bound: best companions, no idle node", hours.bound),
        ("bound of the groups that were searched", hours.groups_bound),
    )
    for name, value in rows:
        table.add_row(name, f"{value:.4g}", f"{100 * value / hours.exclusive:.1f}")
    console().print(table)
    print()
    _print_groups(plan)
    print_wrapped(
        f"All jobs have ended after {plan.makespan:.4g} h (exclusive: {plan.exclusive_makespan:.4g})."
    )
    gap = hours.plan / hours.groups_bound - 1 if hours.groups_bound > 0 else 0.0
    print_wrapped(f"No choice of the groups that were searched takes more than {max(gap, 0.0):.2%} less.")
    if plan.late:
        print_wrapped(f"Behind their deadlines: {', '.join(plan.late)}", style="red")
    _print_apart(plan.apart, "Applications that must not share")


def _print_groups(plan: SchedulePlan) -> None:
    table = new_table(
        ("start h", "right"), ("end h", "right"), ("nodes", "right"), ("cores", ""), ("jobs", "wrap")
    )
    for group in plan.groups[:MOST_LINES]:
        host = group.jobs[0].name
        queues = " | ".join(", then ".join(queue) for queue in group.queues)
        table.add_row(
            f"{group.start:.3g}",
            f"{group.end:.3g}",
            str(len(group.nodes)),
            group.jobs[0].cores,
            f"{host} with {queues}" if queues else host,
        )
    console().print(table)
    if len(plan.groups) > MOST_LINES:
        print_wrapped(f"and {len(plan.groups) - MOST_LINES} more allocations (-o plan.json writes all)")
    print()


def _print_apart(pairs: Sequence[tuple[str, str]], what: str) -> None:
    if pairs:
        print_wrapped(f"{what}: {_pairs(pairs, MOST_PAIRS)}")


def _pairs(pairs: Sequence[tuple[str, str]], most: int) -> str:
    shown = ", ".join(f"{a}-{b}" for a, b in pairs[:most]) or "none"
    return shown if len(pairs) <= most else f"{shown} and {len(pairs) - most} more"
