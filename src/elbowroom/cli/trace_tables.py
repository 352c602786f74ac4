"""Tables of `elbowroom trace`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from elbowroom import api
from elbowroom.api.shell import is_stdout
from elbowroom.cli.console import console, new_table, print_wrapped
from elbowroom.quantities import number, rounded_size, span

if TYPE_CHECKING:
    from elbowroom.api.recording_cost import Overhead
    from elbowroom.api.trace_recorder import Recorded
    from elbowroom.api.traces import ActivityOverTime, Merged, Stat, Sync, TraceCheck


_MANY = 12
"""Rows of a kind that are shown; --json tells all."""


def print_recorded(done: Recorded) -> None:
    """What each rank kept and lost, how full its rings were, and what recording took."""
    preloaded = ", ".join(done.adapters) if done.adapters else "nothing"
    mpi = f" ({done.mpi})" if done.mpi is not None else ""
    print_wrapped(f"{done.directory}: {number(done.seconds, 3)} s; preloaded: {preloaded}{mpi}", style="bold")
    for job in done.jobs:
        print()
        if len(done.jobs) > 1:
            print_wrapped(" ".join((str(job.directory), job.command)).strip(), style="bold")
        _print_ranks(job.stat, done.capacity)
        _print_categories(job.stat)
        _print_warnings(job.check)
    for note in done.notes:
        print_wrapped(note, style="yellow")
    if done.exit_code:
        print_wrapped(f"The program ended with exit code {done.exit_code}.", style="bold yellow")
    if done.jobs:
        print_wrapped(f"next: elbowroom trace merge {done.jobs[0].directory} -o timeline.html")


def _print_ranks(stat: Stat, capacity: int) -> None:
    table = new_table(
        ("rank", "right"), ("host", ""), ("threads", "right"), ("kept", "right"), ("lost", "right"),
        ("fullest\nring", "right"), ("advised\n--buffer", "right"), ("recording\ntook", "right"),
    )  # fmt: skip
    for rank in stat.ranks[:_MANY]:
        threads = [one for one in stat.threads if one.rank == rank.rank]
        fullest = max((one.recorded for one in threads), default=0) / capacity
        table.add_row(
            str(rank.rank),
            rank.host,
            str(len(threads)),
            str(sum(one.kept for one in threads)),
            str(sum(one.lost for one in threads)),
            f"{fullest:.0%}",
            "n/a" if rank.advised_bytes is None else rounded_size(rank.advised_bytes),
            _time(rank.overhead_ns),
        )
    console().print(table)
    _more(len(stat.ranks), "ranks")
    lost = sum(one.lost for one in stat.threads)
    if lost:
        most = max(rank.advised_bytes or 0 for rank in stat.ranks)
        bigger = f"with --buffer {rounded_size(most).replace(' ', '')}" if most else "with a bigger --buffer"
        print_wrapped(
            f"{lost} events were lost because rings were full: record {bigger}, or with --policy drain.",
            style="bold yellow",
        )
        _print_dominant(stat)


def _print_dominant(stat: Stat) -> None:
    """The type that is most of what was kept, whose category is the first to leave out (thesis, 3.3.2)."""
    kept = sum(one.events for one in stat.types)
    most = max(stat.types, key=lambda one: one.events, default=None)
    if most is None or 2 * most.events <= kept:
        return
    others = sorted({one.category for one in stat.types if one.events} - {most.category, "trace", "clock"})
    hint = f": leave it out, --categories {','.join(others)}" if others else ""
    print_wrapped(
        f"{most.events / kept:.0%} of what was kept is {most.name}, of category {most.category}{hint}.",
        style="bold yellow",
    )


def _print_categories(stat: Stat) -> None:
    """What recording took, of all ranks together: estimated, events times what one took at the start."""
    print()
    table = new_table(
        ("category", ""), ("events", "right"), ("recording took", "right"), ("of a rank's time", "right")
    )
    for name, events, nanoseconds, share in by_category(stat):
        table.add_row(name, str(events), _time(nanoseconds), _share(share))
    console().print(table)
    event = [rank.event_ns for rank in stat.ranks if rank.event_ns is not None]
    if event:
        print_wrapped(f"Estimated, with what one event took at the start: {_span(event)} ns.")


def _share(share: float | None) -> str:
    if share is None:
        return "n/a"
    return "< 0.01%" if 0 < share < 1e-4 else f"{share:.2%}"


def by_category(stat: Stat) -> list[tuple[str, int, float | None, float | None]]:
    """Each category's events, the ns that recording them took in ranks that tell it (None: none does), and
    the share that is of the time of the rank it takes most of; the costliest first.
    """
    names = dict.fromkeys(one.name for rank in stat.ranks for one in rank.by_category if one.events)
    rows: list[tuple[str, int, float | None, float | None]] = []
    for name in names:
        members = [one for rank in stat.ranks for one in rank.by_category if one.name == name]
        costs = [one.overhead_ns for one in members if one.overhead_ns is not None]
        share = max(costs) / stat.duration_ns if costs and stat.duration_ns else None
        rows.append((name, sum(one.events for one in members), sum(costs) if costs else None, share))
    return sorted(rows, key=lambda row: -(row[2] or 0.0))


def print_stat(stat: Stat) -> None:
    """A line for each type of events, the most frequent first."""
    all_events = sum(one.events for one in stat.types)
    seconds = stat.duration_ns / 1e9
    types = [one for one in stat.types if one.events]
    print_wrapped(f"{all_events} events of {len(types)} types in {number(seconds, 4)} s", style="bold")
    _print_doubts(stat.doubts)
    print()
    table = new_table(
        ("type", "wrap"), ("category", ""), ("count", "right"), ("share", "right"),
        ("highest\nrate", "right"), ("total", "right"), ("mean", "right"), ("longest", "right"),
        ("bytes\neach", "right"),
    )  # fmt: skip
    for one in sorted(types, key=lambda one: (-one.events, one.category, one.name)):
        table.add_row(
            one.name,
            one.category,
            str(one.calls),
            f"{one.events / all_events:.1%}",
            number(max(api.traces.rates(stat, one), default=0.0), 3),
            _time(one.total_ns) if one.begins else "-",
            _time(one.total_ns / one.whole) if one.whole else "-",
            _time(one.longest_ns) if one.whole else "-",
            number(one.bytes / one.calls, 3) if one.bytes and one.calls else "-",
        )
    console().print(table)
    print_wrapped(
        "count: a call with its begin and its end counts once. share: of all events, which fill the rings. "
        f"highest rate: events per second in the fullest of {_bins(stat)} parts of {_time(stat.bin_ns)}."
    )


def _bins(stat: Stat) -> int:
    return max((len(one.per_bin) for one in stat.types), default=0)


def print_activity(shown: ActivityOverTime, *, trusted: bool) -> None:
    """Counts, and utilisation and imbalance of the whole trace."""
    if not trusted:
        print_wrapped("Its times cannot be trusted: elbowroom trace check says why.", style="bold yellow")
    table = new_table(("", ""), ("", "right"))
    table.show_header = False
    rows = [
        ("duration", _time(shown.duration_ns)),
        ("tasks", str(shown.tasks)),
        ("workers", str(shown.workers)),
        ("messages", str(shown.messages)),
    ]
    for name, counts in (("submitted", shown.submitted), ("ready", shown.ready)):
        most = "n/a: not recorded" if counts is None else str(max(counts))
        rows.append((f"- most {name}, not begun", most if shown.tasks else "n/a: no tasks"))
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
        spread = f"{_time(exits.median_ns)}, {_time(exits.d9_ns)}, {_time(exits.most_ns)}"
        rows.append(("- last exit after the first: median, d9, most", spread))
    for row in rows:
        table.add_row(*row)
    console().print(table)


def print_check(check: TraceCheck, *, trusted: bool) -> None:
    """Counts, pairs of ranks that are odd, and what is wrong."""
    if trusted:
        print_wrapped("It can be trusted.", style="bold green")
    else:
        _print_doubts(check.doubts or ("see below",))
    print()
    table = new_table(("", ""), ("", "right"))
    table.show_header = False
    for name, value in (
        ("ranks", str(check.ranks)),
        ("threads", str(check.threads)),
        ("duration", _time(check.duration_ns)),
        ("events", str(check.events)),
        ("- kept", str(check.kept)),
        ("- lost", str(check.lost)),
        ("messages", str(check.messages)),
        ("- that arrive before they were sent", str(check.tachyons)),
        ("- suspect", str(check.suspect)),
        ("- with ends of different sizes", str(check.mismatched)),
        ("- without their other end", str(check.unmatched)),
        ("comparisons of clocks", str(check.sync_points)),
        ("a time is wrong by at most", _time(check.worst_error_ns)),
    ):
        table.add_row(name, value)
    console().print(table)
    _print_pairs(check)
    _print_warnings(check)


def _print_pairs(check: TraceCheck) -> None:
    odd = [pair for pair in check.pairs if pair.tachyons or pair.suspect or pair.mismatched]
    if not odd:
        return
    print()
    table = new_table(
        ("from", "right"), ("to", "right"), ("messages", "right"), ("tachyons", "right"),
        ("suspect", "right"), ("sizes\ndiffer", "right"), ("floor", "right"),
    )  # fmt: skip
    for pair in sorted(odd, key=lambda pair: (-pair.mismatched, -pair.tachyons, -pair.suspect))[:_MANY]:
        counts = (pair.messages, pair.tachyons, pair.suspect, pair.mismatched)
        table.add_row(*map(str, (pair.from_, pair.to, *counts)), _time(pair.floor_ns))
    console().print(table)
    _more(len(odd), "pairs")


def _print_warnings(check: TraceCheck) -> None:
    _print_sentences(check.warnings)


def _print_doubts(doubts: Sequence[str]) -> None:
    if doubts:
        print_wrapped(f"Cannot be trusted: {'; '.join(doubts)}.", style="bold yellow")


def _print_sentences(sentences: Sequence[str]) -> None:
    if sentences:
        print()
    for sentence in sentences[:_MANY]:
        print_wrapped(f"- {sentence}", style="yellow")
    _more(len(sentences), "warnings")


def print_merged(done: Merged) -> None:
    """What was written, and what is wrong with it."""
    check = done.check
    print_wrapped(
        f"{check.kept} events of {check.ranks} ranks, {check.messages} messages, {_time(check.duration_ns)}"
    )
    if not done.trusted:
        _print_doubts(check.doubts or ("see below",))
    _print_pairs(check)
    _print_warnings(check)
    if not is_stdout(done.file):
        print(done.file)


def print_sync(sync: Sync) -> None:
    """A line for each rank's clock."""
    _print_doubts(sync.doubts)
    table = new_table(
        ("rank", "right"), ("host", ""), ("compared", "right"), ("outliers", "right"), ("offset", "right"),
        ("drift\nppb", "right"), ("wrong by\nat most", "right"), ("", "wrap"),
    )  # fmt: skip
    for rank in sync.ranks[:_MANY]:
        used = [point for point in rank.points if point.used]
        drifts = [segment.drift_ppb for segment in rank.segments]
        errors = [segment.error_ns for segment in rank.segments if segment.error_ns is not None]
        table.add_row(
            str(rank.rank),
            rank.host,
            str(len(rank.points)),
            str(len(rank.points) - len(used)),
            _time(used[0].offset) if used else "n/a",
            _span(drifts),
            _time(max(errors)) if errors else "n/a",
            ", ".join(rank.flags),
        )
    console().print(table)
    _more(len(sync.ranks), "ranks")
    _print_sentences(sync.warnings)


def print_overhead(overhead: Overhead) -> None:
    """Every set's median and cost, then the verdicts."""
    unit = "s" if overhead.metric == "wall" else "metric"
    several = len(overhead.verdicts) > 1
    table = new_table(
        *([("threads", "right")] if several else []),
        ("recorded", "wrap"), (unit, "right"), ("costs", "right"), ("95 %", ""), ("events", "right"),
        ("per second", "right"), ("lost", "right"),
    )  # fmt: skip
    for case in overhead.cases:
        cost = case.overhead
        table.add_row(
            *([str(case.threads)] if several else []),
            case.set,
            number(case.median.value),
            "-" if cost is None else f"{cost.value:+.1%}",
            "" if cost is None else span(f"{cost.low:+.1%}", f"{cost.high:+.1%}"),
            str(case.events),
            number(case.events_per_second, 3),
            str(case.lost),
        )
    console().print(table)
    print_wrapped("none: nothing preloaded. off: preloaded, every category off.")
    styles = {"trusted": "bold green", "costly": "bold red"}
    for verdict in overhead.verdicts:
        print()
        plural = "s" if verdict.threads != 1 else ""
        head = f"{verdict.threads} thread{plural}: " if several else ""
        print_wrapped(head + verdict.text, style=styles.get(verdict.state, "bold yellow"))
        for sentence in verdict.advice:
            print_wrapped(f"- {sentence}", indent="  ")


def _span(values: Sequence[float]) -> str:
    """`3` or `-2..5`."""
    if not values:
        return "n/a"
    low, high = number(min(values), 3), number(max(values), 3)
    return low if low == high else f"{low}..{high}"


def _more(count: int, what: str) -> None:
    if count > _MANY:
        print_wrapped(f"... and {count - _MANY} more {what} (--json tells all)")


def _time(nanoseconds: float | None) -> str:
    """`830 ns`, `12.1 us`, `3.2 s`."""
    if nanoseconds is None:
        return "n/a"
    size = abs(nanoseconds)
    for factor, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if size >= factor:
            return f"{number(nanoseconds / factor, 3)} {unit}"
    return f"{number(nanoseconds, 3)} ns"
