"""An operation of MPI beside a fixed amount of computation, on every rank."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Annotated, ClassVar, Literal, get_args

import msgspec
from msgspec import Meta

from elbowroom.errors import UsageError
from elbowroom.machine.topology import Machine
from elbowroom.points.payload import Collected, Payload, Records
from elbowroom.points.point import USUAL, Facts, Needs, Phase, Point, Steady, Times, register
from elbowroom.points.probe import SLOW_EXCHANGE, UNIT_OVERHEAD, ProbeWorkload, role_id, unit_times
from elbowroom.points.unit import Unit
from elbowroom.quantities import format_size
from elbowroom.stats.overlap import samples
from elbowroom.stats.overlap.measures import OverlapMeasures, measures

Collective = Literal["bcast", "reduce", "allreduce", "allgather", "alltoall", "reduce_scatter", "barrier"]
Messages = Literal["pingpong", "exchange"]
Operation = Messages | Collective
Form = Literal["blocking", "nonblocking", "persistent"]
Progress = Literal["none", "test", "thread", "library"]

COLLECTIVES: tuple[Collective, ...] = get_args(Collective)
REDUCTIONS = ("reduce", "allreduce", "reduce_scatter")
ELEMENT = 4
"""Bytes of the numbers that reductions add."""

NEIGHBOURS = (2, 26)
"""Fewest and most: of a line, and of a cube with its edges and corners."""

KINDS = 3
"""Kinds of iterations: the operation, the computation, both."""
WARM_UP = 12
"""Iterations before the measured ones, about."""
LEAST = 5e-3
"""Seconds that a repetition takes in any case, about."""


class Late(msgspec.Struct, frozen=True, kw_only=True):
    """A rank that starts every operation so many seconds late, planted for tests."""

    rank: int
    seconds: float


class OverlapPayload(Payload, frozen=True, kw_only=True):
    """What is hidden of a call beside a computation, as shares, and all of it with intervals; None if nothing
    was computed beside it.
    """

    overlap: float | None = None
    osu_overlap: float | None = None
    fraction_of_ideal: float | None = None
    overlapped: OverlapMeasures | None = None


def overlap_of(payload: Payload) -> OverlapMeasures | None:
    """What was measured of a call beside a computation; None for other points, and without a computation."""
    return payload.overlapped if isinstance(payload, OverlapPayload) else None


@register
class CallBesideComputation(ProbeWorkload, msgspec.Struct, frozen=True, kw_only=True):
    """All `ranks` call `operation` and compute for about `ratio` times as long as it takes alone.

    `progress`: what lets the operation proceed meanwhile: nothing before the final wait, a call of MPI_Test
    every `period` seconds, a thread of ours on a core of `progress_cores` (one for each rank), or the
    library as it was started. `neighbours` of an exchange. `iterations` of each kind in a repetition; 0: as
    many as the window has room for. `shared`: ranks of a host take turns on a core.
    """

    key: ClassVar[str] = "call"
    facts: ClassVar[Facts] = Facts(
        explainable=False,
        without_model="an operation beside a fixed amount of computation",
        computes_on_comm_core=True,
    )
    virtual_refusal: ClassVar[str] = (
        "a virtual machine has no MPI whose calls could progress: overlap is measured on a real one, and "
        "predicted by `elbowroom predict-step`"
    )
    payload: ClassVar[type[Payload]] = OverlapPayload

    operation: Operation
    form: Form
    progress: Progress = "none"
    ranks: Annotated[int, Meta(ge=1)] = 2
    neighbours: int = 2
    period: float = 20e-6
    progress_cores: tuple[int, ...] = ()
    ratio: float = 1.0
    iterations: int = 0
    late: Late | None = None
    shared: bool = False

    def id(self, point: Point) -> str:
        parts: list[str] = [self.operation, self.form]
        parts += [f"{self.neighbours}neighbours"] if self.operation == "exchange" else []
        parts += [self.policy_id] if self.form != "blocking" else []
        parts += [f"{point.size}B"] if self.operation != "barrier" else []
        parts += [point.kernel] + ([f"cursor{point.cursor}"] if point.cursor != 1 else [])
        parts += [f"n{point.n}", f"{self.ranks}ranks"]
        parts += [f"ratio{self.ratio:g}"] if self.ratio != 1 else []
        parts += [f"late{self.late.rank}-{self.late.seconds:g}s"] if self.late else []
        return "-".join(parts + role_id(point))

    @property
    def policy_id(self) -> str:
        """The policy, and what sets it apart from others of its kind."""
        return f"test{self.period * 1e6:g}us" if self.progress == "test" else self.progress

    @property
    def call(self) -> str:
        """The function of MPI that starts it: `MPI_Iallreduce`."""
        if self.operation == "pingpong":
            return f"ping-pong, {self.form}"
        if self.operation == "exchange":
            return f"exchange with {self.neighbours} neighbours, {self.form}"
        if self.form == "nonblocking":
            return f"MPI_I{self.operation}"
        return f"MPI_{self.operation.capitalize()}{'_init' if self.form == 'persistent' else ''}"

    @property
    def policy(self) -> str:
        """What lets it progress, in words."""
        return {
            "none": "no progress before the wait",
            "test": f"MPI_Test every {self.period * 1e6:g} us",
            "thread": "a progress thread",
            "library": "the library's progress thread",
        }[self.progress]

    @property
    def title(self) -> str:
        """Call and policy, in few letters: `MPI_Iallreduce, test20us`."""
        return self.call if self.form == "blocking" else f"{self.call}, {self.policy_id}"

    @property
    def needs(self) -> Needs:
        persistent = self.form == "persistent" and self.operation in COLLECTIVES
        return Needs(
            several_threads=self.progress in ("thread", "library"),
            persistent_call=self.call if persistent else "",
            library_progress=self.progress == "library",
            shared_core=self.shared,
        )

    def rank_count(self, point: Point, machine: Machine) -> int:
        return self.ranks

    def group(self, point: Point, ranks: int) -> tuple[Hashable, ...]:
        """Points of one start of the probe, and of one way to start the library."""
        return (*super().group(point, ranks), self.progress == "library")

    def sequence(self, point: Point, closing: bool = False, repetition: int = 0) -> tuple[Phase, ...]:
        """All three kinds of iterations are measured in turn; without a kernel only operations."""
        return ("B",) if point.kernel == "none" else ("B", "A", "AB")

    def request(self, point: Point, unit: Unit, steady: Steady) -> dict[str, object]:
        """A request with `overlap`."""
        message = super().request(point, unit, steady)
        message["overlap"] = message.pop(self.key)
        return message

    def validate(self, point: Point, machine: Machine) -> None:
        """Refuses sizes that cannot be added or do not fit in memory."""
        if self.operation in REDUCTIONS and point.size % ELEMENT:
            raise UsageError(
                f"{self.operation} adds numbers of {ELEMENT} bytes",
                field="sizes",
                value=point.size,
                hint=f"give a multiple of {ELEMENT}",
            )
        blocks = {"exchange": 2 * self.neighbours, "allgather": self.ranks + 1, "alltoall": 2 * self.ranks}
        needed = point.size * blocks.get(self.operation, 2) * -(-self.ranks // machine.hosts)
        if machine.memory and needed > machine.memory:
            raise UsageError(
                "larger than memory",
                field="sizes",
                value=format_size(point.size),
                hint=f"the messages of all ranks of a host must fit in {format_size(machine.memory)}",
            )

    def collect(self, point: Point, records: Records) -> Collected:
        """What is hidden of it, and why not more."""
        answers = [entry.record for entry in records.entries if entry.record.get("status") != "failed"]
        calls = [record.get("overlap") or {} for record in answers]
        whole = [call for call in calls if all(kind in call for kind in samples.KINDS)]
        if not whole:
            return Collected(self.fill(point, records))
        overlapped = measures(samples.samples_of(whole), seed=records.seed)
        ideal = overlapped.fraction_of_ideal
        shares = {
            "overlap": overlapped.overlap.value,
            "osu_overlap": overlapped.osu_overlap.value,
            "fraction_of_ideal": None if ideal is None else ideal.value,
        }
        return Collected(self.fill(point, records, overlapped=overlapped, **shares))

    def times(self, point: Point, closing: bool = False, steady: Steady = USUAL) -> Times:
        """A phase takes the window, or the fewest iterations through a slow memory; others come before."""
        phases, slow = len(self.sequence(point)), self._slow(point)
        phase = max(point.window, LEAST, slow * 5)
        whole = UNIT_OVERHEAD + phases * phase + WARM_UP * slow
        return unit_times(point, phases, phase, steady)._replace(unit=whole)

    def _slow(self, point: Point) -> float:
        moved = point.size * (self.neighbours if self.operation == "exchange" else self.ranks)
        return 1e-5 + 2 * moved / SLOW_EXCHANGE
