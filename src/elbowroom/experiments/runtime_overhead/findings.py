"""What StarPU-MPI adds to messages, finding by finding."""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.experiments.common.claims import Claim
from elbowroom.experiments.common.sentences import Values, nothing, size_text
from elbowroom.experiments.runtime_overhead.rows import (
    LatencyCase,
    cases,
    data_text,
    nearness,
    recovered,
)
from elbowroom.machine.topology import Machine
from elbowroom.results.judgement import above, suffers
from elbowroom.results.result import Finding, PointResult

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
    return (*findings, _placement(every, machine))


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
