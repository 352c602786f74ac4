"""`elbowroom broadcast bench`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from elbowroom import api
from elbowroom.api.choices import launcher_names
from elbowroom.cli.console import console, new_table, print_json, print_wrapped
from elbowroom.cli.dry_runs import dry_run_option, show_planned
from elbowroom.cli.options import FIGURE, REPEAT, command, json_option, mpi_option
from elbowroom.cli.run_options import launch_options
from elbowroom.errors import UsageError
from elbowroom.quantities import format_size, number, parse_cores, parse_size

if TYPE_CHECKING:
    from elbowroom.api.broadcast_bench import BroadcastEntry, Time


@command()
@click.option(
    "--ranks", type=click.IntRange(min=2), metavar="N", help="Default: one for each core, 2 at least."
)
@click.option(
    "--sizes", default="4B,64KiB,1MiB", show_default=True, metavar="LIST", help="Bytes of the data."
)
@click.option(
    "--recipients", metavar="LIST", help="How many ranks receive: 1,3,7; default: all but the root."
)
@click.option(
    "--trees",
    default="flat,binary,binomial,two",
    show_default=True,
    metavar="LIST",
    help="flat, chain, binary, binomial, 4-ary, 8-nomial, two; with delegate- or split3- before it.",
)
@click.option("--segment", metavar="SIZE", help="Segments that ranks forward one by one; default: whole.")
@click.option("--repeat", type=REPEAT, default=15, show_default=True, metavar="N", help="Repetitions.")
@click.option("--rising", is_flag=True, help="Priorities rise with the rank (thesis, Fig. 4.5).")
@click.option(
    "--launcher",
    metavar="NAME",
    help=f"{', '.join(launcher_names())}; default: that of the allocation, else local.",
)
@mpi_option
@click.option("--hosts", metavar="A,B", help="Hosts for mpiexec, srun, flux.")
@click.option("--hostfile", metavar="FILE", help="File of hosts for mpiexec, one per line.")
@click.option("-o", "--out", type=FIGURE, metavar="FILE", help="Draw latency and bandwidth: .svg or .png.")
@dry_run_option
@json_option
def bench(as_json: bool, dry_run: bool, **options: Any) -> int:
    """Measure broadcasts beside MPI_Bcast, MPI_Ibcast and a loop of sends.

    Prints the time until the last recipient has the data. All take turns, repetition by repetition.
    """
    sizes = [parse_size(word) for word in _words(options, "sizes")]
    words = options["recipients"]
    recipients = None if words is None else parse_cores(words, "recipients")
    if options["out"] is not None:
        api.broadcast_bench.check_drawable(sizes, recipients or (), options["out"])
    settings: dict[str, Any] = {
        "recipients": recipients,
        "segment": 0 if options["segment"] is None else parse_size(options["segment"], "segment"),
        **{name: options[name] for name in ("ranks", "repeat", "rising")},
        **launch_options(options),
    }
    trees = _words(options, "trees")
    if dry_run:
        return show_planned(api.broadcast_bench.plan_broadcast_bench(sizes, trees, **settings), as_json)
    found = api.bench_broadcasts(sizes, trees, **settings)
    if options["out"] is not None:
        api.save_broadcast_figure(found, options["out"])
    if as_json:
        print_json(found)
    else:
        _print(found)
    return 0


def _words(options: dict[str, Any], name: str) -> list[str]:
    words = [word.strip() for word in options[name].split(",")]
    if not all(words):
        raise UsageError("has an empty part", field=name, value=options[name], hint="write a,b")
    return list(dict.fromkeys(words))


def _print(found: list[BroadcastEntry]) -> None:
    first = found[0]
    print_wrapped(f"Time until the last recipient has the data, µs ({first.mpi})", style="bold")
    table = new_table(
        ("size", "right"), ("recipients", "right"), ("tree", ""), ("time", "right"),
        ("95 % interval", "right"), ("MPI_Bcast", "right"), ("MPI_Ibcast", "right"), ("sends", "right"),
    )  # fmt: skip
    for entry in found:
        beside = entry.beside
        table.add_row(
            format_size(entry.size),
            str(entry.ranks - 1),
            entry.tree,
            number(entry.time.median),
            _interval(entry.time),
            *(number(time.median) for time in (beside.bcast, beside.ibcast, beside.sends)),
        )
    console().print(table)
    if first.oversubscribed:
        print_wrapped(
            "Ranks shared cores: these times depend on when the system let each rank run, and say little "
            "about a network.",
            style="yellow",
        )


def _interval(time: Time) -> str:
    return "n/a" if time.low is None or time.high is None else f"{number(time.low)} - {number(time.high)}"
