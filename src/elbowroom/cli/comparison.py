"""`elbowroom compare`: the answer in a sentence, then a line for each value that changed."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from elbowroom import api
from elbowroom.api.quantities import number
from elbowroom.cli.console import console, new_table, print_json, print_wrapped, styled
from elbowroom.cli.options import command, json_option
from elbowroom.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from elbowroom.api.measurement import Change
    from elbowroom.api.runs import Run


@command()
@click.argument("first", metavar="A")
@click.argument("others", metavar="B...", nargs=-1, required=True)
@click.option(
    "--at-least", default="1%", show_default=True, metavar="PERCENT", help="Smallest change that is reported."
)
@click.option(
    "--fail-above", metavar="PERCENT", help="Exit with code 1 if a value got worse by more than this."
)
@click.option("--all", "every", is_flag=True, help="Also print values that did not change.")
@json_option
def compare(
    first: str, others: tuple[str, ...], at_least: str, fail_above: str | None, every: bool, as_json: bool
) -> int:
    """Compare runs with run A: what changed, by how much, and whether it improved."""
    least = _percent(at_least, "at_least")
    limit = None if fail_above is None else _percent(fail_above, "fail_above")
    runs = [api.open(path) for path in (first, *others)]
    changes = api.compare(*runs, at_least=least)
    for item in runs:
        if not item.verdict.trusted:
            click.echo(f"warning: {item.path} is not trusted: {item.verdict.reasons[0]}", err=True)
    if as_json:
        print_json(api.measurement.comparison(runs, changes, least, sentence(changes, least)))
    else:
        print_compare(runs, changes, least, every)
    return int(limit is not None and bool(api.measurement.worse(changes, limit)))


def _percent(text: str, field: str) -> float:
    """The share that `5%` or `5` says. UsageError where it says none."""
    number = re.fullmatch(r"([0-9]+\.?[0-9]*|\.[0-9]+) ?%?", text)
    value = float(number[1]) / 100 if number else -1.0
    if not 0 <= value < 1:
        raise UsageError("is not a percentage", field=field, value=text, hint="0 to less than 100, as in 5%")
    return value


def sentence(changes: Sequence[Change], at_least: float) -> str:
    """What changed, in one sentence."""
    significant = [change for change in changes if change.significant]
    if not changes:
        return "No verdict: no value has five repetitions in both runs, so no change can be detected."
    if not significant:
        return f"No change of {100 * at_least:.3g} % or more is shown in {len(changes)} values."
    worsened = sum(change.better == "a" for change in significant)
    largest = max(significant, key=lambda change: abs(change.change))
    return (
        f"{len(significant)} of {len(changes)} values changed, {worsened} for the worse; the largest change: "
        f"{largest.side} {largest.phase} of {largest.point}, {largest.change:+.1%} "
        f"({largest.low:+.1%} to {largest.high:+.1%})."
    )


def print_compare(runs: Sequence[Run], changes: Sequence[Change], at_least: float, every: bool) -> None:
    """The sentence of each run against the first, then what changed by point; all values with `every`."""
    print_wrapped(f"a = {runs[0].path}{' (virtual)' * runs[0].machine.virtual}")
    for place, run in enumerate(runs[1:], 1):
        own = [change for change in changes if change.run == place]
        shown = [change for change in own if every or change.significant]
        print_wrapped(f"b = {run.path}{' (virtual)' * run.machine.virtual}")
        print_wrapped(sentence(own, at_least), style="bold")
        for point, members in itertools.groupby(shown, key=lambda change: change.point):
            print()
            print_wrapped(point, style="bold")
            console().print(_changes_table(list(members)))
        if shown:
            print()
    print_wrapped(
        "Reported: changes whose 95 % interval excludes 0, at a false discovery rate of 5 %, of at least "
        f"{100 * at_least:.3g} %. Less is better for durations (us), more for everything else."
    )


def _changes_table(changes: Sequence[Change]) -> Table:
    """Columns as wide for every point, so that they line up down the page."""
    table = new_table()
    table.show_header = False
    widths = (
        ("left", 6),
        ("left", 8),
        ("left", 7),
        ("right", 8),
        ("right", 8),
        ("right", 8),
        ("left", 18),
        ("left", 8),
    )
    for justify, width in widths:
        table.add_column(justify="right" if justify == "right" else "left", width=width, no_wrap=True)
    for change in changes:
        unit = change.metric.partition("(")[2].rstrip(")")
        table.add_row(
            f"  {change.side}",
            change.phase,
            unit,
            number(change.a, 3),
            number(change.b, 3),
            styled(f"{change.change:+.1%}", "bold" if change.significant else ""),
            f"{change.low:+.1%}..{change.high:+.1%}",
            {"a": "a better", "b": "b better"}.get(change.better, "same"),
        )
    return table
