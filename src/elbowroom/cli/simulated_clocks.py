"""`elbowroom trace simulate-clocks`: how right times are when clocks drift, jump and lie."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from elbowroom import api
from elbowroom.api.quantities import number
from elbowroom.cli.console import console, new_table, print_json, print_wrapped
from elbowroom.cli.options import Command, Output, json_option
from elbowroom.errors import UsageError

if TYPE_CHECKING:
    from elbowroom.api.simulation import SimulatedClocks


@click.command(cls=Command, name="simulate-clocks")
@click.option("--clocks", type=int, default=1024, show_default=True, metavar="N", help="Number of clocks.")
@click.option(
    "--seconds", type=float, default=600.0, show_default=True, metavar="S", help="Duration of the simulation."
)
@click.option(
    "--every", type=float, default=10.0, show_default=True, metavar="S", help="Time between comparisons."
)
@click.option(
    "--clock",
    default="thermal",
    show_default=True,
    metavar="KIND",
    help="affine (±100 ppm), thermal, walk, steps, slewing, mixed.",
)
@click.option(
    "--link",
    default="symmetric",
    show_default=True,
    metavar="KIND",
    help="symmetric, asymmetric, lossy, heavy-tail, busy.",
)
@click.option(
    "--bad", default="0%", show_default=True, metavar="SHARE", help="Share of wrong sync points: 5%, 0.05."
)
@click.option(
    "--seed",
    type=click.IntRange(min=0, max=2**53),
    default=1,
    show_default=True,
    help="Seed of random numbers.",
)
@click.option(
    "-o",
    "--out",
    type=Output(".svg", ".png", ".html"),
    metavar="FILE",
    help="Draw errors and drifts (.svg, .png), or write a page (.html).",
)
@json_option
def simulate_clocks(bad: str, out: str | None, as_json: bool, **options: Any) -> int:
    """Simulate clocks, compare them, and compare the corrected times with the truth.

    Drift, jumps, links and wrong sync points are simulated; the library that compares and corrects clocks is
    the real one (`elbowroom help clock`).
    """
    simulated = api.simulate_clocks(bad=_share(bad), **options)
    if out is not None:
        api.save_simulated_clocks(simulated, out)
    if as_json:
        print_json(api.simulation.clocks_document(simulated))
    else:
        _print(simulated, out)
    return 0


def _share(text: str) -> float:
    number, percent, rest = text.partition("%")
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        rest = text
        share = 0.0
    if rest:
        raise UsageError("is not a share", field="bad", value=text, hint="for instance 5% or 0.05")
    return share


def _print(simulated: SimulatedClocks, out: str | None) -> None:
    print_wrapped(
        f"{simulated.clocks} {simulated.clock} clocks over {simulated.link} links for "
        f"{simulated.duration_ns / 1e9:g} s, simulated (seed {simulated.seed}): nothing is measured",
        style="bold",
    )
    print_wrapped(
        f"{simulated.comparisons} comparisons, one every {simulated.every_ns / 1e9:g} s, of "
        f"{simulated.rounds} rounds each; {number(simulated.exchanges, 4)} messages there and back; "
        f"the longest took {number(simulated.longest_ns / 1e6, 3)} ms."
    )
    print_wrapped(
        f"{simulated.points} points, {simulated.told_wrong} of them wrong; {simulated.rejected} "
        f"left out, {simulated.steps} jumps flagged, {simulated.incomparable} comparisons failed."
    )
    print()
    table = new_table(
        ("clocks are\ncompared by", ""), ("error:\nmedian", "right"), ("\n95 %", "right"),
        ("\nat most", "right"), ("its bound,\nmedian", "right"), ("inside\nit", "right"),
        ("outside,\nno flag", "right"), ("\ntachyons", "right"),
    )  # fmt: skip
    for method in simulated.methods:
        times = (method.p50_ns, method.p95_ns, method.max_ns, method.bound_p50_ns)
        inside = f"{math.floor(method.inside * 1e4) / 1e2:.2f}%" if method.inside < 1 else "all"
        table.add_row(method.name, *map(_time, times), inside, str(method.unflagged), str(method.tachyons))
    console().print(table)
    print_wrapped(
        f"Tachyons: of {number(simulated.messages, 7)} messages those that arrive before they are sent."
    )
    if out is not None:
        print_wrapped(f"{'page' if out.endswith('.html') else 'figure'}: {out}")


def _time(ns: float) -> str:
    """Three digits in the unit that reads best."""
    for factor, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if ns >= factor:
            return f"{number(ns / factor, 3)} {unit}"
    return f"{number(ns, 3)} ns"
