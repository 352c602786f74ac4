"""Tables of traces: statistics, activity, checks, clocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from elbowroom.cli.console import print_wrapped
from elbowroom.cli.tables import new_table, print_table
from elbowroom.quantities import number, short_time

if TYPE_CHECKING:
    from elbowroom.trace.activity_figures import ActivityOverTime
    from elbowroom.trace.documents import Stat, Sync, TraceCheck

MANY = 12
"""Rows of a kind that are printed; --json has all."""


def print_stat(stat: Stat) -> None:
    """A line for each type of events, the most frequent first."""
    from elbowroom.trace.activity_figures import rates

    all_events = sum(one.events for one in stat.types)
    seconds = stat.duration_ns / 1e9
    types = [one for one in stat.types if one.events]
    print_wrapped(f"{all_events} events of {len(types)} types in {number(seconds, 4)} s", style="bold")
    print()
    table = new_table(
        "~type",
        "category",
        ">count",
        ">share",
        ">highest\nrate",
        ">total",
        ">mean",
        ">longest",
        ">bytes\neach",
    )
    for one in sorted(types, key=lambda one: (-one.events, one.category, one.name)):
        table.add_row(
            one.name,
            one.category,
            str(one.calls),
            f"{one.events / all_events:.1%}",
            number(max(rates(stat, one), default=0.0), 3),
            time_text(one.total_ns) if one.begins else "-",
            time_text(one.total_ns / one.whole) if one.whole else "-",
            time_text(one.longest_ns) if one.whole else "-",
            number(one.bytes / one.calls, 3) if one.bytes and one.calls else "-",
        )
    print_table(table)
    print_wrapped(
        "count: a call with its begin and its end counts once. share: of all events, which fill the rings. "
        f"highest rate: events per second in the fullest of {_bins(stat)} parts of {time_text(stat.bin_ns)}."
    )


def _bins(stat: Stat) -> int:
    return max((len(one.per_bin) for one in stat.types), default=0)


def print_activity(shown: ActivityOverTime, *, trusted: bool) -> None:
    """Counts, and utilisation and imbalance of the whole trace."""
    if not trusted:
        print_wrapped("Its times cannot be trusted: see elbowroom trace check.", style="bold yellow")
    table = new_table("", ">", with_heads=False)
    rows = [
        ("duration", time_text(shown.duration_ns)),
        ("tasks", str(shown.tasks)),
        ("workers", str(shown.workers)),
        ("messages", str(shown.messages)),
    ]
    for name, counts in (("submitted", shown.submitted), ("ready", shown.ready)):
        most = "n/a: not recorded" if counts is None else str(max(counts))
        rows.append((f"- most {name}, not started", most if shown.tasks else "n/a: no tasks"))
    for name, value in (
        ("utilisation of the workers", shown.whole_utilisation),
        ("imbalance (busiest / mean - 1)", shown.whole_imbalance),
    ):
        rows.append((name, "n/a: no tasks" if value is None else f"{value:.1%}"))
    if shown.barriers is None:
        rows.append(("barriers of all ranks", "n/a: none is known"))
    else:
        exits = shown.barriers
        rows.append(("barriers of all ranks", str(exits.barriers)))
        spread = f"{time_text(exits.median_ns)}, {time_text(exits.d9_ns)}, {time_text(exits.most_ns)}"
        rows.append(("- last exit after the first: median, d9, most", spread))
    for row in rows:
        table.add_row(*row)
    print_table(table)


def print_check(check: TraceCheck) -> None:
    """Counts, pairs of ranks that are odd, and what is wrong."""
    table = new_table("", ">", with_heads=False)
    for name, value in (
        ("ranks", str(check.ranks)),
        ("threads", str(check.threads)),
        ("duration", time_text(check.duration_ns)),
        ("events", str(check.events)),
        ("- kept", str(check.kept)),
        ("- lost", str(check.lost)),
        ("messages", str(check.messages)),
        ("- that arrive before they were sent", str(check.tachyons)),
        ("- suspect", str(check.suspect)),
        ("- with ends of different sizes", str(check.mismatched)),
        ("- without their other end", str(check.unmatched)),
        ("comparisons of clocks", str(check.sync_points)),
        ("a time is wrong by at most", time_text(check.worst_error_ns)),
    ):
        table.add_row(name, value)
    print_table(table)
    print_pairs(check)
    print_sentences(check.warnings)


def print_pairs(check: TraceCheck) -> None:
    """Pairs of ranks whose messages are odd."""
    odd = [pair for pair in check.pairs if pair.tachyons or pair.suspect or pair.mismatched]
    if not odd:
        return
    print()
    table = new_table(">from", ">to", ">messages", ">tachyons", ">suspect", ">sizes\ndiffer", ">floor")
    for pair in sorted(odd, key=lambda pair: (-pair.mismatched, -pair.tachyons, -pair.suspect)):
        counts = (pair.messages, pair.tachyons, pair.suspect, pair.mismatched)
        table.add_row(*map(str, (pair.from_, pair.to, *counts)), time_text(pair.floor_ns))
    print_table(table)


def print_sentences(sentences: Sequence[str]) -> None:
    """Warnings, the first of them."""
    if sentences:
        print()
    for sentence in sentences[:MANY]:
        print_wrapped(f"- {sentence}", style="yellow")
    print_rest(len(sentences), "warnings")


def print_sync(sync: Sync) -> None:
    """A line for each rank's clock."""
    table = new_table(
        ">rank", "host", ">compared", ">outliers", ">offset", ">drift\nppb", ">wrong by\nat most", "~"
    )
    for rank in sync.ranks:
        used = [point for point in rank.points if point.used]
        drifts = [segment.drift_ppb for segment in rank.segments]
        errors = [segment.error_ns for segment in rank.segments if segment.error_ns is not None]
        table.add_row(
            str(rank.rank),
            rank.host,
            str(len(rank.points)),
            str(len(rank.points) - len(used)),
            time_text(used[0].offset) if used else "n/a",
            span_text(drifts),
            time_text(max(errors)) if errors else "n/a",
            ", ".join(rank.flags),
        )
    print_table(table)
    print_sentences(sync.warnings)


def span_text(values: Sequence[float]) -> str:
    """`3` or `-2..5`."""
    if not values:
        return "n/a"
    low, high = number(min(values), 3), number(max(values), 3)
    return low if low == high else f"{low}..{high}"


def print_rest(count: int, what: str) -> None:
    """How many more there are than are printed."""
    if count > MANY:
        print_wrapped(f"... and {count - MANY} more {what} (all are in --json)")


def time_text(nanoseconds: float | None) -> str:
    """`830 ns`, `12.1 us`, `3.2 s`."""
    return "n/a" if nanoseconds is None else short_time(nanoseconds / 1e9, smallest="ns")
