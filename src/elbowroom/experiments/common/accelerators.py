"""What experiments with an accelerator share: who sits where, their points, the control, sources of a loss by
contrast, and their table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from elbowroom.draw.figure import TextTable
from elbowroom.errors import UsageError
from elbowroom.experiments.common.points import point_of
from elbowroom.experiments.common.tables import Column, Row, table
from elbowroom.machine.topology import Machine
from elbowroom.plan import placement
from elbowroom.plan.axes import comm_cores, metric_of
from elbowroom.plan.file import Plan
from elbowroom.plan.kernels import find
from elbowroom.points.gpu import GpuCase
from elbowroom.points.point import Note, Point
from elbowroom.results.curves import affected
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import Kept, WithInterval


class DeviceSeats(NamedTuple):
    """Cores: of the thread that submits work to the device, of both ends of messages (-1: none is left for
    them), and those left to compute.
    """

    submit: int
    message: int
    peer: int
    computing: tuple[int, ...]

    @property
    def can_send(self) -> bool:
        """Whether messages have cores."""
        return self.message >= 0


def device_seats(plan: Plan, machine: Machine, messages: bool) -> DeviceSeats:
    """The thread that submits is on the plan's communication core, messages on those before it, all of them
    on that one with `scheduling`. Without a core for each, messages have none.
    """
    cores = placement.usable(machine)
    if not cores:
        raise UsageError("no core is usable", field="cpuset", hint="allow at least two")
    core = comm_cores(plan, machine)[0][0]
    free = [other for other in placement.downwards(cores, core)[1:] if other not in plan.comp_cores]
    if plan.scheduling:
        chosen = core, core, core
    else:
        wanted = 1 if machine.hosts > 1 else 2
        left = len(free) + len(plan.comp_cores) - wanted
        ends = free[:wanted] if messages and len(free) >= wanted and left > 0 else [-1]
        chosen = core, ends[0], ends[-1]
    pool = plan.comp_cores or tuple(item.number for item in cores if item.number not in chosen)
    return DeviceSeats(*chosen, pool)


def no_messages(machine: Machine) -> Note:
    """Why copies are not measured beside messages."""
    count = len(placement.usable(machine))
    return Note(
        what="copies beside messages",
        reason=(
            f"{count} usable cores: the thread that submits copies and both ends of messages need a core "
            "each, and computing at least one; `scheduling = true` lets the first three share one"
        ),
    )


def device_point(
    plan: Plan,
    machine: Machine,
    workload: GpuCase,
    seats: DeviceSeats,
    *,
    kernel: str = "none",
    cursor: int = 1,
    n: int = 0,
    comp_node: int = 0,
    size: int = 0,
    **others: Any,
) -> Point:
    """A point of a case; `size`: of messages where it has any, else of its copies."""
    return point_of(
        plan,
        (comp_node, workload.node if workload.node >= 0 else comp_node),
        kernel=kernel,
        cursor=cursor,
        n=n,
        size=size,
        comm_core=seats.message if workload.sends else seats.submit,
        metric=metric_of(plan, size) if workload.mover == "messages" else "bandwidth",
        comp_cores=seats.computing[:n],
        peer_cores=(seats.peer,) if workload.sends else (),
        working_set=plan.working_set or placement.working_set(find(kernel), n, comp_node, machine),
        scheduling=plan.scheduling,
        workload=workload,
        **others,
    )


def control(plan: Plan, machine: Machine, seats: DeviceSeats, comp_node: int, size: int) -> tuple[Point, ...]:
    """Prime counting on all computing cores beside copies to the host; none without a computing core, or
    where the plan wants none.
    """
    if not (plan.control and seats.computing):
        return ()
    case = GpuCase(
        victim="cores", mover="copy", kernel="prime", direction="d2h", bytes=size, submit_core=seats.submit
    )
    n = len(seats.computing)
    return (
        device_point(
            plan, machine, case, seats, kernel="prime", n=n, comp_node=comp_node, size=size, role="control"
        ),
    )


class ContrastSource(WithInterval, msgspec.Struct, frozen=True, kw_only=True):
    """A share of its rate that `victim` loses to the source `name`; `contrast` says which cases were
    compared, `points` are their ids. A negative loss is a gain. `low` and `high`: of a difference of two
    kept shares, the ends of both 95 % intervals; None where one has none.
    """

    name: str
    victim: str
    contrast: str
    value: float
    low: float | None = None
    high: float | None = None
    sms: int = 0
    points: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """`SM occupancy takes 9.5% (9.2% to 9.8%) of GEMM (idle SMs, k = 8)`."""
        ends = "" if self.low is None or self.high is None else f" ({self.low:.1%} to {self.high:.1%})"
        held = f", k = {self.sms}" if self.sms else ""
        return f"{self.name} takes {self.value:.1%}{ends} of {self.victim} ({self.contrast}{held})"


def loss(
    name: str, victim: str, contrast: str, item: PointResult, kept: Kept | None, sms: int = 0
) -> ContrastSource | None:
    """What a side lost beside something, from nothing beside it; None where that was not measured."""
    if kept is None:
        return None
    low, high = kept.bounds or (None, None)
    return ContrastSource(
        name=name,
        victim=victim,
        contrast=contrast,
        value=1 - kept.value,
        low=None if high is None else 1 - high,
        high=None if low is None else 1 - low,
        sms=sms,
        points=(item.id,),
    )


def difference(
    name: str, contrast: str, larger: ContrastSource | None, smaller: ContrastSource | None
) -> ContrastSource | None:
    """What one case costs more than another; None where one of them was not measured."""
    if larger is None or smaller is None:
        return None
    ends: Sequence[float | None] = (larger.low, larger.high, smaller.low, smaller.high)
    known = [end for end in ends if end is not None]
    low, high = (known[0] - known[3], known[1] - known[2]) if len(known) == 4 else (None, None)
    return ContrastSource(
        name=name,
        victim=larger.victim,
        contrast=contrast,
        value=larger.value - smaller.value,
        low=low,
        high=high,
        sms=larger.sms,
        points=(*larger.points, *smaller.points),
    )


KEPT_LEGEND = "Percent kept, ± the wider part of the 95 % interval."
STAND_IN_SENTENCE = "A stand-in answered: its rates are planted, and nothing was measured."


def percent(kept: Kept | None) -> str:
    """`90.5 ±0.4`: half of the interval, its wider part; a dash for what was not measured."""
    if kept is None:
        return "-"
    if kept.low is None or kept.high is None:
        return f"{100 * kept.value:.1f}"
    return f"{100 * kept.value:.1f} ±{100 * max(kept.value - kept.low, kept.high - kept.value):.1f}"


def kept_column(name: str, kept_of: Callable[[Row], Kept | None]) -> Column[Row]:
    """A column of percent kept, which marks what is affected."""

    def hit(row: Row) -> bool:
        kept = kept_of(row)
        return kept is not None and affected(kept)

    return Column(name, lambda row: percent(kept_of(row)), marked=hit)


def _tenths(share: float) -> str:
    """In percent, without a sign of what rounds to 0."""
    return f"{round(100 * share, 1) + 0.0:.1f}"


def source_table(sources: Sequence[ContrastSource]) -> TextTable | None:
    """A line for each source; None without any."""
    if not sources:
        return None
    columns: tuple[Column[ContrastSource], ...] = (
        Column("victim", lambda item: item.victim, left=True),
        Column("source", lambda item: item.name, left=True),
        Column("k", lambda item: str(item.sms or "-"), shown=any(item.sms for item in sources)),
        Column("lost %", lambda item: _tenths(item.value)),
        Column("95 %", _ends_of),
        Column("contrast", lambda item: item.contrast, left=True),
    )
    legend = "The interval of a difference is the widest that both allow; a negative loss is a gain."
    return table("Sources of loss, by contrast", sources, columns, legend=legend)


def _ends_of(item: ContrastSource) -> str:
    return "none" if item.bounds is None else " to ".join(map(_tenths, item.bounds))
