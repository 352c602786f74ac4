"""`elbowroom trace simulate-clocks`: how right times are when clocks drift, jump and lie."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from elbowroom.cli.commands import _Command, _json
from elbowroom.cli.output import print_json
from elbowroom.errors import UsageError

if TYPE_CHECKING:
    from elbowroom.trace.simulated_clocks import SimulatedClocks

SCHEMA, VERSION = "elbowroom/simulated-clocks", 1


@click.command(cls=_Command, name="simulate-clocks")
@click.option("--clocks", type=int, default=1024, show_default=True, metavar="N", help="How many.")
@click.option("--seconds", type=float, default=600.0, show_default=True, metavar="S", help="For how long.")
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
@click.option("--bad", default="0%", show_default=True, metavar="SHARE", help="Points told wrong: 5%, 0.05.")
@click.option("--seed", type=click.IntRange(min=0, max=2**53), default=1, show_default=True)
@click.option(
    "-o", "--out", metavar="FILE", help="Draw errors and drifts (.svg, .png), or write a page (.html)."
)
@_json
def simulate_clocks(bad: str, out: str | None, as_json: bool, **options: Any) -> int:
    """Compare simulated clocks, and judge corrected times by the truth.

    Drift, jumps, links and points told wrong are made up, the library that compares and corrects is the real
    one (docs/clock.md).
    """
    from elbowroom.api import clocks as api

    found = api.simulate_clocks(bad=_share(bad), **options)
    if out is not None:
        api.save_simulated_clocks(found, out)
    if as_json:
        import msgspec

        print_json({"schema": SCHEMA, "version": VERSION, "virtual": True, **msgspec.to_builtins(found)})
    else:
        _print(found, out)
    return 0


def _share(text: str) -> float:
    number, percent, rest = text.partition("%")
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        rest = text
        share = 0.0
    if rest:
        raise UsageError("is no share", field="bad", value=text, mend="for instance 5% or 0.05")
    return share


def _print(found: SimulatedClocks, out: str | None) -> None:
    from elbowroom.cli.tables import _say, _table, console
    from elbowroom.draw.numbers import number

    _say(
        f"{found.clocks} {found.clock} clocks over {found.link} links for {found.duration_ns / 1e9:g} s, "
        f"simulated (seed {found.seed}): nothing is measured",
        style="bold",
    )
    _say(
        f"{found.comparisons} comparisons, one every {found.every_ns / 1e9:g} s, of {found.rounds} rounds "
        f"each; {number(found.exchanges, 4)} messages there and back; the longest took "
        f"{number(found.longest_ns / 1e6, 3)} ms."
    )
    _say(
        f"{found.points} points, {found.told_wrong} of them told wrong; {found.rejected} left out, "
        f"{found.steps} jumps flagged, {found.incomparable} comparisons failed."
    )
    print()
    table = _table(
        ("clocks are\ncompared by", ""), ("error:\nmedian", "right"), ("\n95 %", "right"),
        ("\nat most", "right"), ("its bound,\nmedian", "right"), ("inside\nit", "right"),
        ("outside,\nno flag", "right"), ("\ntachyons", "right"),
    )  # fmt: skip
    for one in found.methods:
        times = (one.p50_ns, one.p95_ns, one.max_ns, one.bound_p50_ns)
        inside = f"{math.floor(one.inside * 1e4) / 1e2:.2f}%" if one.inside < 1 else "all"
        table.add_row(one.name, *map(_time, times), inside, str(one.unflagged), str(one.tachyons))
    console().print(table)
    _say(f"Tachyons: of {number(found.messages, 7)} messages those that arrive before they are sent.")
    if out is not None:
        _say(f"{'page' if out.endswith('.html') else 'figure'}: {out}")


def _time(ns: float) -> str:
    """Three digits in the unit that reads best."""
    from elbowroom.draw.numbers import number

    for factor, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if ns >= factor:
            return f"{number(ns / factor, 3)} {unit}"
    return f"{number(ns, 3)} ns"
