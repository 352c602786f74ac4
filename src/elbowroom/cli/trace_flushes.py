"""`elbowroom trace flushes`: what an application loses where the recorder writes to a file meanwhile."""

from __future__ import annotations

from typing import Any

import click

from elbowroom import api
from elbowroom.cli.console import console, new_table, print_json, print_wrapped
from elbowroom.cli.dry_runs import dry_run_option, show_planned
from elbowroom.cli.options import NOISY, Output, json_option
from elbowroom.cli.trace_progress import name_list, run_steps


@click.command("flushes")
@click.option(
    "--repeat", type=int, default=10, show_default=True, metavar="N", help="Runs with, and without, flushes."
)
@click.option(
    "--metric",
    default="wall",
    show_default=True,
    metavar="wall|REGEX",
    help="Wall time, or a pattern of a number that CMD prints.",
)
@click.option("--rate", is_flag=True, help="The metric is a rate: higher is better.")
@click.option("--adapters", metavar="A,A", help="As in `record`.")
@click.option("--mpi", metavar="PREFIX", help="As in `record`.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Seed of the order of runs.")
@click.option(
    "-o",
    "--out",
    type=Output(".svg", ".png", ".html"),
    metavar="FILE",
    help="Draw figures (.svg, .png), or write a page (.html).",
)
@dry_run_option
@json_option
@click.argument("command", nargs=-1, metavar="-- CMD...", type=click.UNPROCESSED)
def trace_flushes(command: tuple[str, ...], dry_run: bool, **options: Any) -> int:
    """Measure what CMD loses in runs in which the recorder flushes its buffers to a file.

    Runs with flushes, each at another time, alternate with runs without. Exit code 3 means that the cost is
    unknown.
    """
    settings = {
        "adapters": name_list(options["adapters"]),
        **{name: options[name] for name in ("repeat", "metric", "mpi")},
    }
    if dry_run:
        return show_planned(api.flush_cost.plan_flushes(command, **settings), options["as_json"])
    with run_steps() as step:
        costs = api.trace_flushes(command, rate=options["rate"], seed=options["seed"], step=step, **settings)
    if options["out"] is not None:
        api.save_flush_figure(costs, options["out"])
    if options["as_json"]:
        print_json(costs)
    else:
        _print(costs)
        if options["out"] is not None:
            click.echo(f"figure: {options['out']}")
    return 0 if costs.cost is not None else NOISY


def _print(costs: Any) -> None:
    table = new_table(
        ("run", "right"), ("metric", "right"), ("lost", "right"), ("flush at", "right"), ("took", "right"),
        ("thread", "wrap"), ("inside", "wrap"), ("others\nin tasks", "right"),
    )  # fmt: skip
    for number, run in enumerate(costs.runs, start=1):
        for row in api.flush_cost.flush_rows(number, run):
            table.add_row(*row)
    console().print(table)
    for sentence in api.flush_cost.flush_sentences(costs):
        print_wrapped(sentence)
