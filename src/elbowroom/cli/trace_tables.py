"""Tables of `elbowroom trace`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from elbowroom.cli.tables import _say, _table, console
from elbowroom.draw.numbers import number, rounded_size
from elbowroom.trace.stat_figures import rates

if TYPE_CHECKING:
    from elbowroom.api.tracing import Merged, Recorded
    from elbowroom.trace.documents import Check, Stat, Sync
    from elbowroom.trace.overhead import Overhead

_MANY = 12
"""Rows of a kind that are shown; --json tells all."""


def print_recorded(done: Recorded) -> None:
    """What each rank kept and lost, how full its rings were, and what recording took."""
    preloaded = ", ".join(done.adapters) if done.adapters else "nothing"
    mpi = f" ({done.mpi})" if done.mpi is not None else ""
    _say(f"{done.directory}: {number(done.seconds, 3)} s; preloaded: {preloaded}{mpi}", style="bold")
    if done.stat is not None and done.check is not None:
        print()
        _print_ranks(done)
        _print_categories(done)
        _print_warnings(done.check)
    for note in done.notes:
        _say(note, style="yellow")
    if done.exit_code:
        _say(f"The program ended with exit code {done.exit_code}.", style="bold yellow")
    if done.stat is not None:
        _say(f"next: elbowroom trace merge {done.directory} -o timeline.html")


def _print_ranks(done: Recorded) -> None:
    assert done.stat is not None
    table = _table(
        ("rank", "right"), ("host", ""), ("threads", "right"), ("kept", "right"), ("lost", "right"),
        ("fullest\nring", "right"), ("advised\n--buffer", "right"), ("recording\ntook", "right"),
    )  # fmt: skip
    for rank in done.stat.ranks[:_MANY]:
        threads = [one for one in done.stat.threads if one.rank == rank.rank]
        fullest = max((one.recorded for one in threads), default=0) / done.capacity
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
    _more(len(done.stat.ranks), "ranks")
    lost = sum(one.lost for one in done.stat.threads)
    if lost:
        most = max(rank.advised_bytes or 0 for rank in done.stat.ranks)
        bigger = f"with --buffer {rounded_size(most).replace(' ', '')}" if most else "with a bigger --buffer"
        _say(f"{lost} events were lost, for rings were full: record again {bigger}.", style="bold yellow")
        _print_dominant(done.stat)


def _print_dominant(stat: Stat) -> None:
    """The type that is most of what was kept, whose category is the first to leave out (thesis, 3.3.2)."""
    kept = sum(one.events for one in stat.types)
    most = max(stat.types, key=lambda one: one.events, default=None)
    if most is None or 2 * most.events <= kept:
        return
    others = sorted({one.category for one in stat.types if one.events} - {most.category, "trace", "clock"})
    mend = f": leave it out, --categories {','.join(others)}" if others else ""
    _say(
        f"{most.events / kept:.0%} of what was kept is {most.name}, of category {most.category}{mend}.",
        style="bold yellow",
    )


def _print_categories(done: Recorded) -> None:
    """What recording took, of all ranks together: estimated, events times what one took at the start."""
    assert done.stat is not None
    print()
    table = _table(
        ("category", ""), ("events", "right"), ("recording took", "right"), ("of a rank's time", "right")
    )
    for name, events, nanoseconds, share in by_category(done.stat):
        table.add_row(name, str(events), _time(nanoseconds), _share(share))
    console().print(table)
    event = [rank.event_ns for rank in done.stat.ranks if rank.event_ns is not None]
    if event:
        _say(f"Estimated, with what one event took at the start: {_span(event)} ns.")


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
    _say(f"{all_events} events of {len(types)} types in {number(seconds, 4)} s", style="bold")
    print()
    table = _table(
        ("type", "wrap"), ("category", ""), ("events", "right"), ("share", "right"), ("per second", "right"),
        ("highest", "right"), ("begin to end", "right"),
    )  # fmt: skip
    for one in sorted(types, key=lambda one: (-one.events, one.category, one.name)):
        table.add_row(
            one.name,
            one.category,
            str(one.events),
            f"{one.events / all_events:.1%}",
            number(one.events / seconds, 3) if seconds else "n/a",
            number(max(rates(stat, one), default=0.0), 3),
            _time(one.total_ns) if one.begins else "-",
        )
    console().print(table)
    _say(f"highest: events per second in the fullest of {_bins(stat)} parts of {_time(stat.bin_ns)}.")


def _bins(stat: Stat) -> int:
    return max((len(one.per_bin) for one in stat.types), default=0)


def print_check(check: Check, *, trusted: bool) -> None:
    """Counts, pairs of ranks that are odd, and what is wrong."""
    verdict = "Its times can be trusted." if trusted else "Not to be trusted, see below."
    _say(verdict, style="bold green" if trusted else "bold yellow")
    print()
    table = _table(("", ""), ("", "right"))
    table.show_header = False
    for name, value in (
        ("ranks", str(check.ranks)),
        ("threads", str(check.threads)),
        ("duration", _time(check.duration_ns)),
        ("events", str(check.events)),
        ("- kept", str(check.kept)),
        ("- lost", str(check.lost)),
        ("messages", str(check.messages)),
        ("- that arrive before they left", str(check.tachyons)),
        ("- suspect", str(check.suspect)),
        ("- without their other end", str(check.unmatched)),
        ("comparisons of clocks", str(check.sync_points)),
        ("a time is wrong by at most", _time(check.worst_error_ns)),
    ):
        table.add_row(name, value)
    console().print(table)
    _print_pairs(check)
    _print_warnings(check)


def _print_pairs(check: Check) -> None:
    odd = [pair for pair in check.pairs if pair.tachyons or pair.suspect]
    if not odd:
        return
    print()
    table = _table(
        ("from", "right"), ("to", "right"), ("messages", "right"), ("tachyons", "right"),
        ("suspect", "right"), ("floor", "right"),
    )  # fmt: skip
    for pair in sorted(odd, key=lambda pair: (-pair.tachyons, -pair.suspect))[:_MANY]:
        table.add_row(
            str(pair.from_),
            str(pair.to),
            str(pair.messages),
            str(pair.tachyons),
            str(pair.suspect),
            _time(pair.floor_ns),
        )
    console().print(table)
    _more(len(odd), "pairs")


def _print_warnings(check: Check) -> None:
    told = [f"{one.file}: {one.what}" for one in check.damage]
    told += check.warnings
    if told:
        print()
    for sentence in told[:_MANY]:
        _say(f"- {sentence}", style="yellow")
    _more(len(told), "warnings")


def print_merged(done: Merged) -> None:
    """What was written, and what is wrong with it."""
    check = done.check
    _say(f"{check.kept} events of {check.ranks} ranks, {check.messages} messages, {_time(check.duration_ns)}")
    if not done.trusted:
        _say("Not to be trusted:", style="bold yellow")
    _print_pairs(check)
    _print_warnings(check)
    print(done.file)


def print_sync(found: Sync) -> None:
    """A line for each rank's clock."""
    table = _table(
        ("rank", "right"), ("host", ""), ("compared", "right"), ("outliers", "right"), ("offset", "right"),
        ("drift\nppb", "right"), ("wrong by\nat most", "right"), ("", "wrap"),
    )  # fmt: skip
    for rank in found.ranks[:_MANY]:
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
    _more(len(found.ranks), "ranks")


def print_overhead(found: Overhead) -> None:
    """Every set's median and cost, then the verdicts."""
    unit = "s" if found.metric == "wall" else "metric"
    several = len(found.verdicts) > 1
    table = _table(
        *([("threads", "right")] if several else []),
        ("recorded", "wrap"), (unit, "right"), ("costs", "right"), ("95 %", ""), ("events", "right"),
        ("per second", "right"), ("lost", "right"),
    )  # fmt: skip
    for case in found.cases:
        cost = case.overhead
        table.add_row(
            *([str(case.threads)] if several else []),
            case.set,
            number(case.median.value),
            "-" if cost is None else f"{cost.value:+.1%}",
            "" if cost is None else f"{cost.low:+.1%}..{cost.high:+.1%}",
            str(case.events),
            number(case.events_per_second, 3),
            str(case.lost),
        )
    console().print(table)
    _say("none: nothing preloaded. off: preloaded, every category off.")
    styles = {"trusted": "bold green", "costly": "bold red"}
    for verdict in found.verdicts:
        print()
        plural = "s" if verdict.threads != 1 else ""
        head = f"{verdict.threads} thread{plural}: " if several else ""
        _say(head + verdict.text, style=styles.get(verdict.state, "bold yellow"))
        for sentence in verdict.advice:
            _say(f"- {sentence}", indent="  ")


def _span(values: Sequence[float]) -> str:
    """`3` or `-2..5`."""
    if not values:
        return "n/a"
    low, high = number(min(values), 3), number(max(values), 3)
    return low if low == high else f"{low}..{high}"


def _more(count: int, what: str) -> None:
    if count > _MANY:
        _say(f"... and {count - _MANY} more {what} (--json tells all)")


def _time(nanoseconds: float | None) -> str:
    """`830 ns`, `12.1 us`, `3.2 s`."""
    if nanoseconds is None:
        return "n/a"
    size = abs(nanoseconds)
    for factor, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if size >= factor:
            return f"{number(nanoseconds / factor, 3)} {unit}"
    return f"{number(nanoseconds, 3)} ns"
