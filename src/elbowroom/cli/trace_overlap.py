"""`elbowroom trace overlap`: what overlap hides in a trace, and what hiding costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from elbowroom import api
from elbowroom.cli.console import console, new_table, print_json, print_wrapped, styled
from elbowroom.cli.options import NOISY, Output, command, json_option
from elbowroom.errors import UsageError
from elbowroom.quantities import number, span

if TYPE_CHECKING:
    from rich.text import Text

    from elbowroom.api.trace_overlaps import OverlapComparison, TraceOverlap

MOST_ROWS = 20
LETTERS = 21


@command("overlap")
@click.argument("files", metavar="TRACE...", nargs=-1, required=True)
@click.option("--computation", multiple=True, metavar="PATTERN", help="Names that match are computation.")
@click.option("--communication", multiple=True, metavar="PATTERN", help="Names that match are communication.")
@click.option("--step", multiple=True, metavar="PATTERN", help="Names that match are steps of the program.")
@click.option(
    "--between-calls", is_flag=True, help="The time between a thread's calls of MPI is computation."
)
@click.option("--compare", is_flag=True, help="Compare two traces of one program.")
@click.option(
    "-o",
    "--out",
    type=Output(".svg", ".png", ".html"),
    metavar="FILE",
    help="Draw a figure (.svg, .png), or write a page (.html).",
)
@json_option
def trace_overlap(
    files: tuple[str, ...],
    computation: tuple[str, ...],
    communication: tuple[str, ...],
    step: tuple[str, ...],
    between_calls: bool,
    compare: bool,
    out: str | None,
    as_json: bool,
) -> int:
    """Report what overlap hides in a trace, and what hiding costs.

    TRACE is Kineto's or Chrome's JSON, Nsight Systems' SQLite export, OTF2, or a trace of elbowroom; several
    files are the ranks of one run. Exit code 3 means that the trace is incomplete.
    """
    chosen: dict[str, Any] = {
        "computation": computation,
        "communication": communication,
        "step": step,
        "between_calls": between_calls,
    }
    if compare:
        return _compare(files, chosen, out, as_json)
    found = api.trace_overlap(files, **chosen)
    if out is not None:
        api.save_trace_overlap(found, out)
    if as_json:
        print_json(found)
    else:
        _print(found)
        if out is not None:
            click.echo(f"{'page' if out.endswith('.html') else 'figure'}: {out}")
    return NOISY if found.doubts else 0


def _compare(files: tuple[str, ...], chosen: dict[str, Any], out: str | None, as_json: bool) -> int:
    if len(files) != 2:
        raise UsageError("needs two traces", field="compare", value=" ".join(files), hint="name two traces")
    if out is not None:
        raise UsageError("cannot be combined with --compare", field="out", value=out, hint="leave one out")
    compared = api.compare_trace_overlaps(files[0], files[1], **chosen)
    if as_json:
        print_json(compared)
    else:
        _print_comparison(compared)
    return NOISY if compared.first.doubts or compared.second.doubts else 0


def _print(found: TraceOverlap) -> None:
    print_wrapped(found.counts)
    print_wrapped(found.verdict, style="bold")
    print()
    console().print(_times(found))
    print()
    table = new_table(
        ("computation", "wrap"), ("beside", "wrap"), ("alone", "right"), ("over-\nlapped", "right"),
        ("slowdown", "right"), ("interval", ""),
    )  # fmt: skip
    for one in found.classes[:MOST_ROWS]:
        table.add_row(_cut(one.label), _cut(one.communication or "-"), str(one.alone), str(one.overlapped),
                      *_slowdown(one))  # fmt: skip
    console().print(table)
    if len(found.classes) > MOST_ROWS:
        print_wrapped(f"{len(found.classes) - MOST_ROWS} more with --json, or in a page (-o FILE.html).")
    reasons = {
        one.reason: _cut(one.label) for one in found.classes[:MOST_ROWS] if one.overlapped and one.reason
    }
    for reason, label in reasons.items():
        print_wrapped(f"n/a: {reason} ({label})")
    for text in found.notes:
        print_wrapped(f"note: {text}")
    for text in found.doubts:
        print_wrapped(f"partial: {text}", style="bold yellow")


def _times(found: TraceOverlap) -> object:
    """The time of a rank, in a step where the trace names steps."""
    per = found.steps or 1
    duration = api.trace_overlaps.duration
    table = new_table(("", ""), ("a step" if found.steps else "in all", "right"), ("", ""))
    table.add_row("computation", duration(found.comp_s / per), "")
    table.add_row(found.hidden_kind, duration(found.comm_s / per), "")
    table.add_row("  hidden", duration(found.hidden_s / per), f"{found.hidden_share:.1%} of it")
    table.add_row("  exposed", duration(found.exposed_s / per), "")
    cost = found.cost
    if cost is None:
        table.add_row("cost of hiding", "n/a", f"at most {duration(found.cost_at_most_s / per)}")
    else:
        ends = span(duration(cost.low / per), duration(cost.high / per))
        table.add_row("cost of hiding", duration(cost.value / per), ends)
    fraction = "n/a" if found.fraction_of_ideal is None else number(found.fraction_of_ideal, 3)
    osu = "" if found.osu_overlap is None else f"OSU's overlap: {found.osu_overlap:.1%}"
    table.add_row("fraction of ideal", fraction, osu)
    return table


def _slowdown(one: object) -> tuple[str, str]:
    slowdown = getattr(one, "slowdown", None)
    if slowdown is None:
        return "n/a", ""
    return f"{slowdown.value:.3f}", span(f"{slowdown.low:.3f}", f"{slowdown.high:.3f}")


def _print_comparison(compared: OverlapComparison) -> None:
    print_wrapped(compared.verdict, style="bold")
    print()
    table = new_table(
        ("computation", "wrap"), ("beside", "wrap"), ("first", "right"), ("second", "right"),
        ("ratio", "right"), ("interval", ""),
    )  # fmt: skip
    for one in compared.classes[:MOST_ROWS]:
        ratio = one.ratio
        table.add_row(
            _cut(one.name), _cut(one.communication), f"{one.first.value:.3f}", f"{one.second.value:.3f}",
            f"{ratio.value:.3f}", span(f"{ratio.low:.3f}", f"{ratio.high:.3f}"),
        )  # fmt: skip
    console().print(table)
    for name, one_trace in (("first", compared.first), ("second", compared.second)):
        print_wrapped(f"{name} ({' '.join(one_trace.files)}): {one_trace.counts} {one_trace.verdict}")
        for text in one_trace.doubts:
            print_wrapped(f"partial: {text}", style="bold yellow")


def _cut(text: str) -> Text:
    return styled(api.trace_overlaps.short_name(text, LETTERS))
