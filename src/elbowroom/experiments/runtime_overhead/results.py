"""What StarPU-MPI adds to messages, placement by placement, and what that says of the paper's claims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from elbowroom.draw.figure import Axis, Figure, Mark, Series, TextTable
from elbowroom.experiments.common.panels import SIZES, curve, in_microseconds, interval_line, size_of
from elbowroom.experiments.common.sentences import (
    Claim,
    Values,
    grouped,
    node_distance,
    nothing,
    size_text,
    usable,
)
from elbowroom.experiments.common.tables import Column, formatted, rounded, table
from elbowroom.machine.topology import Machine
from elbowroom.plan.placement import nic_node
from elbowroom.points.point import running
from elbowroom.points.program import RuntimeProgram
from elbowroom.quantities import format_size, number, plural
from elbowroom.results.curves import TOLERANCE, affected
from elbowroom.results.judgement import Judgement, above, change, larger, suffers, unanimous
from elbowroom.results.result import Finding, PointResult
from elbowroom.stats.interval import Added, Kept, WithInterval


class LatencyCase(msgspec.Struct, frozen=True, kw_only=True):
    """All sizes, rising, of one placement of data and communication thread and one kind of workers."""

    items: tuple[PointResult, ...]

    @property
    def smallest(self) -> PointResult:
        """The result of the smallest message."""
        return self.items[0]

    @property
    def key(self) -> str:
        """Of findings and figures: data's node, then the thread's core, then the workers that poll."""
        workers = f"-n{self.smallest.n}" if self.smallest.n else ""
        backoff = backoff_of(self.smallest)
        return f"{self.place}{workers}{'' if backoff is None else f'-backoff{backoff}'}"

    @property
    def place(self) -> str:
        """Data's node, then the thread's core."""
        return f"{self.smallest.comp_node}-{self.smallest.comm_core}"


class Recovered(msgspec.Struct, frozen=True, kw_only=True):
    """`last`: the largest size at which the difference shows, bytes; `since`: the first size from which it
    does not; None where there is none. `why`: the reason of the verdict.
    """

    last: int | None
    since: int | None
    verdict: Judgement
    why: str = ""


class PlacedLatency(WithInterval, msgspec.Struct, frozen=True, kw_only=True):
    """The smallest message through StarPU-MPI at one placement: us, with the interval of its median."""

    id: str
    data: int
    core: int
    workers: tuple[int, int | None]
    """How many poll, and their back-off."""
    together: float
    low: float | None
    high: float | None


class Nearness(msgspec.Struct, frozen=True, kw_only=True):
    """Per core of the communication thread: data on its own node, and on another."""

    pairs: tuple[tuple[PlacedLatency, PlacedLatency], ...]
    verdict: Judgement
    values: Values = {}


def cases(results: Sequence[PointResult]) -> tuple[LatencyCase, ...]:
    """The placements, in order of first appearance."""
    measured = [item for item, _ in running(usable(results), RuntimeProgram)]
    groups = grouped(measured, lambda item: (item.comp_node, item.comm_core, item.n, backoff_of(item)))
    return tuple(
        LatencyCase(items=tuple(sorted(group, key=lambda item: item.size))) for group in groups.values()
    )


def backoff_of(item: PointResult) -> int | None:
    """The most nops between two polls of the workers; None where the plan chose none."""
    return next((program.backoff for _, program in running((item,), RuntimeProgram)), None)


def workers_text(item: PointResult) -> str:
    """`, beside 34 polling workers (back-off 2)`; empty where they are paused."""
    backoff = backoff_of(item)
    waiting = "" if backoff is None else f" (back-off {backoff})"
    return f", beside {plural(item.n, 'polling worker')}{waiting}" if item.n else ""


def data_text(item: PointResult, machine: Machine) -> str:
    """Where the data is, seen from the communication thread, and whether workers poll."""
    return _place_text(item, machine) + workers_text(item)


def _place_text(item: PointResult, machine: Machine) -> str:
    if len(machine.nodes) <= 1:
        return "data and communication thread on the one NUMA node"
    same = item.comp_node == item.comm_node
    where = "data on the communication thread's node" if same else f"data on node {item.comp_node}"
    thread = f"thread on core {item.comm_core} of node {item.comm_node}"
    if nic_node(machine) is not None:
        near = node_distance(machine, item.comm_node) == "near"
        thread += ", near the NIC" if near else ", far from the NIC"
    return f"{where} ({thread})"


def recovered(case: LatencyCase, same_from: int) -> Recovered:
    """Up to which size the difference shows; confirmed where it does just below `same_from` bytes, refuted
    where it certainly does not at a size below that.
    """
    kepts = _kepts(case)
    last, since = ends(case)
    below = [(size, kept) for size, kept in kepts if size < same_from]
    verdict: Judgement = "undecided"
    if not below or not any(size >= same_from for size, _ in kepts):
        verdict, why = "not tested", f"no message of {size_text(same_from)} or more was measured"
    elif last is not None and last >= same_from:
        why = "it shows beyond that, too"
    elif suffers(below[-1][1]) == "confirmed":
        verdict, why = "confirmed", ""
    elif any(suffers(kept) == "refuted" for size, kept in below if size > (last or 0)):
        verdict, why = "refuted", "it ends earlier"
    else:
        why = f"at {size_text(below[-1][0])} the interval is too wide; repeat more often"
    return Recovered(last=last, since=since, verdict=verdict, why=why)


def _kepts(case: LatencyCase) -> list[tuple[int, Kept]]:
    return [(item.size, item.comm.kept) for item in case.items if item.comm.kept is not None]


def ends(case: LatencyCase) -> tuple[int | None, int | None]:
    """The largest size at which the difference shows, and the next one; None where there is none."""
    kepts = _kepts(case)
    last = max((size for size, kept in kepts if affected(kept)), default=None)
    return last, next((size for size, _ in kepts if last is None or size > last), None)


def nearness(every: Sequence[LatencyCase]) -> Nearness:
    """Data on the communication thread's node against data on others, at the smallest size of both."""
    places = [_place(case) for case in every if case.smallest.comm.together is not None]
    pairs = [
        (same, away)
        for same, at_home in places
        for away, elsewhere in places
        if at_home and not elsewhere and (same.core, same.workers) == (away.core, away.workers)
    ]
    values: Values = {}
    for same, away in pairs:
        count, backoff = same.workers
        workers = f"_workers_{count}" if count else ""
        workers += "" if backoff is None else f"_backoff_{backoff}"
        values[f"core_{same.core}_data_{away.data}{workers}"] = away.together / same.together
    verdict = unanimous([larger(away, same) for same, away in pairs])
    return Nearness(pairs=tuple(pairs), verdict=verdict, values=values)


def _place(case: LatencyCase) -> tuple[PlacedLatency, bool]:
    """And whether the data is on the communication thread's node."""
    item = case.smallest
    summary = item.comm.together
    assert summary is not None
    place = PlacedLatency(
        id=item.id,
        data=item.comp_node,
        core=item.comm_core,
        workers=(item.n, backoff_of(item)),
        together=summary.median,
        low=summary.low,
        high=summary.high,
    )
    return place, item.comp_node == item.comm_node


PAPER = "38 us on henri, 23 on billy, 45 on pyxis"
"""What was added there (section 5.2)."""


SAME_FROM = 64_000_000
"""Bytes from which the paper sees no difference (section 5.2)."""


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:
    """What is added to the smallest message, up to which size it shows, and the effect of placement."""
    every = cases(results)
    both = [finding for case in every for finding in (_added(case, machine), _vanishes(case, machine))]
    findings = [finding for finding in both if finding is not None]
    if not findings:
        return (nothing("overhead", "Messages through StarPU-MPI"),)
    return (*findings, *_backoffs(every), _placement(every, machine))


def _added(case: LatencyCase, machine: Machine) -> Finding | None:
    item = case.smallest
    side = item.comm
    if side.added is None or side.alone is None or side.together is None:
        return None
    more = side.added
    judgement = above(more)
    if suffers(side.kept) == "refuted":
        # Less than 5 % of the latency is no effect, however narrow the interval.
        judgement = "refuted"
    claim = Claim(statement="StarPU adds to the latency", judgement=judgement, paper=PAPER)
    before = (
        f"A message of {size_text(item.size)} takes {side.together.median:.3g} us through StarPU-MPI and "
        f"{side.alone.median:.3g} us by MPI, {data_text(item, machine)}: {more.value:.3g} us more "
        f"({more.text('.3g')})."
    )
    values: Values = {
        "size": item.size,
        "alone": side.alone.median,
        "together": side.together.median,
        "added": more.value,
        "low": more.low,
        "high": more.high,
    }
    return claim.finding(
        f"overhead-{case.key}", before=before, values=values, points=(item.id,), shows_interference=True
    )


def _vanishes(case: LatencyCase, machine: Machine) -> Finding | None:
    if len(case.items) < 2:
        return None
    end = recovered(case, SAME_FROM)
    where = data_text(case.smallest, machine)
    if end.since is None:
        before = f"StarPU-MPI is slower than MPI at every size up to {size_text(end.last or 0)}, {where}."
    elif end.last is None:
        before = f"StarPU-MPI is as fast as MPI at every size, {where}."
    else:
        until, since = size_text(end.last), size_text(end.since)
        before = f"StarPU-MPI is slower than MPI up to {until} and as fast from {since} on, {where}."
    statement = f"the difference shows below {size_text(SAME_FROM)} only"
    claim = Claim(statement=statement, judgement=end.verdict, why=end.why)
    points = (item.id for item in case.items)
    values: Values = {"last": end.last, "since": end.since}
    return claim.finding(f"vanishes-{case.key}", before=before, values=values, points=points)


RARE = 1000
"""Nops between two polls from which the paper's second claim, of 10000, can be judged (section 5.4)."""


def _backoffs(every: Sequence[LatencyCase]) -> Iterator[Finding]:
    """Section 5.4, Fig. 9: the smallest message beside workers that poll more and less often."""
    for place, group in grouped(every, lambda case: case.place).items():
        waits = {
            backoff: case.smallest
            for case in sorted(group, key=lambda case: backoff_of(case.smallest) or 0)
            if (backoff := backoff_of(case.smallest)) is not None and case.smallest.comm.together is not None
        }
        paused = next((case.smallest for case in group if not case.smallest.n), None)
        if paused is not None and paused.comm.together is not None and waits:
            yield _backoff_finding(place, waits, paused)


def _backoff_finding(place: str, waits: Mapping[int, PointResult], paused: PointResult) -> Finding:
    items = (*waits.values(), paused)
    took = [item.comm.together.median for item in items if item.comm.together is not None]
    names = [*(f"with back-off {nops}" for nops in waits), "beside paused ones"]
    n = next(iter(waits.values())).n
    frequent = Claim(
        statement="the latency through StarPU is higher the more often workers poll",
        judgement=_longer(waits[min(waits)], paused),
    )
    rare = Claim(
        statement="rare polls cost no more than paused workers",
        judgement=_rare(waits, paused, frequent.judgement),
    )
    values: Values = {f"together_{nops}": time for nops, time in zip([*waits, "paused"], took, strict=True)}
    return frequent.finding(
        f"backoffs-{place}",
        before=(
            f"Through StarPU-MPI a message of {size_text(paused.size)} takes, beside "
            f"{plural(n, 'polling worker')}, "
            + ", ".join(f"{time:.3g} us {name}" for time, name in zip(took, names, strict=True))
            + "."
        ),
        after=rare.text,
        values={**values, "n": n, "rare": rare.judgement},
        points=(item.id for item in items),
        shows_interference=True,
    )


def _longer(item: PointResult, paused: PointResult) -> Judgement:
    """Whether a message takes longer than beside paused workers, by more than is no effect."""
    new, old = item.comm.together, paused.comm.together
    return "not tested" if new is None or old is None else above(change(new, old), TOLERANCE)


def _rare(waits: Mapping[int, PointResult], paused: PointResult, frequent: Judgement) -> Judgement:
    """Where frequent polls cost nothing, rare ones cannot show that they cost less."""
    if max(waits) < RARE:
        return "not tested"
    longer = _longer(waits[max(waits)], paused)
    if longer == "refuted":
        return "confirmed" if frequent == "confirmed" else "undecided"
    return "refuted" if longer == "confirmed" else "undecided"


def _placement(every: Sequence[LatencyCase], machine: Machine) -> Finding:
    """Section 5.3: for small messages data and communication thread should be on one node."""
    if len(machine.nodes) < 2:
        text = "This machine has one NUMA node, so the distance of the data cannot be varied."
        return Finding(key="placement", level="n/a", text=text)
    near = nearness(every)
    if not near.pairs:
        text = "Data was not measured both on the communication thread's node and on another."
        return Finding(key="placement", level="n/a", text=text)
    parts = [
        f"{away.together:.3g} us from node {away.data} and {same.together:.3g} us from its own (node "
        f"{same.data}) to the thread on core {same.core}"
        for same, away in near.pairs
    ]
    statement = "data and communication thread should be on one node (section 5.3)"
    return Claim(statement=statement, judgement=near.verdict).finding(
        "placement",
        before=f"Through StarPU-MPI the smallest message takes {'; '.join(parts)}.",
        values=near.values,
        points=(place.id for pair in near.pairs for place in pair),
        shows_interference=True,
    )


NAMES: dict[Literal["alone", "together"], str] = {"alone": "by MPI", "together": "through StarPU-MPI"}


def latency_figure(case: LatencyCase, machine: Machine) -> Figure | None:
    """Half the round trip by MPI (plain) and through StarPU-MPI (dashed), bands d1 to d9."""
    drawn = [_latency(case, style, name) for style, name in NAMES.items()]
    series = tuple(line for line in drawn if line is not None)
    if not series:
        return None
    last, since = ends(case)
    lines = () if since is None or last is None else (_mark(since),)
    return Figure(
        name=f"runtime-overhead-{case.key}",
        title=f"Latency by MPI and through StarPU-MPI{_where(case, machine)}",
        x=SIZES,
        left=Axis(label="Half the round trip (µs)", scale="log10"),
        series=series,
        marks=lines,
        caption="Plain by MPI, dashed through StarPU-MPI; the band goes from the first to the last decile.",
    )


def place_name(case: LatencyCase) -> str:
    """Data and communication thread in a few words."""
    item = case.smallest
    place = f"data on node {item.comp_node}, thread on {item.comm_node} (core {item.comm_core})"
    return place + workers_text(item)


def _where(case: LatencyCase, machine: Machine) -> str:
    return f", {place_name(case)}" if len(machine.nodes) > 1 else workers_text(case.smallest)


def _mark(size: int) -> Mark:
    return Mark(x=float(size), text=f"no difference shows from {size_text(size)} on")


def _latency(case: LatencyCase, style: Literal["alone", "together"], name: str) -> Series | None:
    return curve(
        case.items,
        "comm",
        style,
        size_of,
        name="",
        axis="left",
        transform=in_microseconds,
        label=name,
    )


def added_figure(case: LatencyCase, machine: Machine) -> Figure | None:
    """What StarPU-MPI adds, with its 95 % interval."""
    rows = [(item, item.comm.added) for item in case.items if item.comm.added is not None]
    shown = [(item, added) for item, added in rows if _tells(added, rows[0][1])]
    if not shown:
        return None
    known = [(float(item.size), added, item.id) for item, added in shown]
    series = interval_line("added by StarPU-MPI", known, side="communication", value="added")
    left_out = len(rows) - len(shown)
    caption = "Through StarPU-MPI less by MPI; the band is the 95 % interval."
    if left_out:
        caption += f" {left_out} sizes whose interval is wider than what the smallest shows are left out."
    return Figure(
        name=f"runtime-added-{case.key}",
        title=f"Latency that StarPU-MPI adds{_where(case, machine)}",
        x=SIZES,
        left=Axis(label="Added latency (µs)", reach=0.0),
        series=(series,),
        caption=caption,
    )


def _tells(added: Added, smallest: Added) -> bool:
    """Whether the interval is narrower than the effect: that of large messages is not."""
    return added is smallest or (added.width is not None and added.width <= abs(smallest.value))


def placement_figure(every: Sequence[LatencyCase]) -> Figure | None:
    """StarPU-MPI's latency at every placement in one panel (Figure 8); None where there is one only."""
    series = [_latency(case, "together", place_name(case)) for case in every]
    drawn = tuple(line for line in series if line is not None)
    if len(drawn) < 2:
        return None
    return Figure(
        name="runtime-placement",
        title="Latency through StarPU-MPI by where data and communication thread are",
        x=SIZES,
        left=Axis(label="Half the round trip (µs)", scale="log10"),
        series=drawn,
        caption="Through StarPU-MPI; the band goes from the first to the last decile.",
    )


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:
    """Both latencies over the size and the difference, per placement; StarPU's side by side (Figure 8)."""
    every = cases(results)
    drawn = [draw(case, machine) for case in every for draw in (latency_figure, added_figure)]
    drawn.append(placement_figure(every))
    return tuple(figure for figure in drawn if figure is not None)


def tables(results: Sequence[PointResult], machine: Machine) -> tuple[TextTable, ...]:  # noqa: ARG001
    """A line for each size and placement: by MPI, through StarPU-MPI, the difference with its interval."""
    measured = [(item, item.comm.added) for item, _ in running(results, RuntimeProgram)]
    shown = [(item, added) for item, added in measured if added is not None]
    if not shown:
        return ()
    polled = any(item.n for item, _ in shown)
    placed = len({(item.comp_node, item.comm_node, item.comm_core) for item, _ in shown}) > 1
    columns: tuple[Column[tuple[PointResult, Added]], ...] = (
        Column("size", lambda row: format_size(row[0].size)),
        Column("data/thread", lambda row: _cores(row[0]), left=True, shown=placed),
        Column("polling", lambda row: str(row[0].n), shown=polled),
        Column("by MPI", lambda row: rounded(row[0].comm.alone, 4)),
        Column("StarPU-MPI", lambda row: rounded(row[0].comm.together, 4)),
        Column("unit", lambda row: row[1].unit, left=True),
        Column("added", lambda row: number(row[1].value, 4), marked=lambda row: row[1].above(0.0)),
        Column("95 %", lambda row: _ends(row[1]), left=True),
        Column("kept", lambda row: formatted(row[0].comm.kept, ".2f")),
    )
    title = "Latency by MPI and through StarPU-MPI"
    return (table(title, shown, columns, points=tuple(item.id for item, _ in shown)),)


def _cores(item: PointResult) -> str:
    return f"{item.comp_node}/{item.comm_node} c{item.comm_core}"


def _ends(added: Added) -> str | None:
    return None if added.bounds is None else " to ".join(number(end, 3) for end in added.bounds)
