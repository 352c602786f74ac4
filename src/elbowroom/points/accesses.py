"""Memory accesses between two messages: how long they take, and whether they fit."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec

from elbowroom.errors import UsageError
from elbowroom.machine.topology import Machine
from elbowroom.points.kernel import check_memory
from elbowroom.points.point import Point, Steady, Unit, register
from elbowroom.points.probe import ProbeWorkload, message_id, role_id
from elbowroom.quantities import format_size
from elbowroom.schemas import WRITTEN

# For the ETA only, on the safe side.
SMALL = 8_000_000  # bytes up to which most of them stay in some cache
TOUCHED = 14e9  # B/s and core, of small sizes
FAR = 4e9  # B/s and core, of larger ones
EXCHANGE = 3e-6  # s, a message and the barrier before it
UNTIMED = 1  # messages of each size with accesses, and as many without, before those that are timed

Who = Literal["none", "sender", "receiver", "both", "bystanders"]
Access = Literal["read", "write"]
Data = Literal["same", "different"]
Timing = Literal["one-way", "recv", "send", "recv-cpu", "send-cpu"]
BystanderKind = Literal["threads", "processes"]

TIMED: dict[Timing, str] = {
    "one-way": "one-way time",
    "recv": "duration of MPI_Recv",
    "send": "duration of MPI_Send",
    "recv-cpu": "CPU time of the thread in MPI_Recv",
    "send-cpu": "CPU time of the thread in MPI_Send",
}
"""What a message's time is, by how it is timed."""


@register
class ExtraneousAccesses(ProbeWorkload, msgspec.Struct, frozen=True, kw_only=True):
    """Extraneous memory accesses between two messages (Tan and Jarvis 2012, section 2): a window of sizes.

    `who` touches memory that no message is in: 64 B lines of `first`, `first + step` ... bytes, `count`
    sizes, read or written. `data`: whether the sender writes new contents before each message; `barrier`:
    whether one parts the accesses from the message, else the sender waits by the clock. Each size has
    `exchanges` timed messages with accesses, and as many without, interleaved, as a control. `timing`: the
    one-way time of a message, or how long a call lasts, by the clock or by the CPU time of its thread;
    `bystanders`: threads of the sender's process, or processes of their own.
    """

    key: ClassVar[str] = "extraneous"
    explainable: ClassVar[bool] = False
    virtual_refusal: ClassVar[str] = (
        "a virtual machine has no caches: extraneous accesses are measured on a real one"
    )

    who: Who
    access: Access
    first: int
    step: int
    count: int
    data: Annotated[Data, WRITTEN] = "same"
    barrier: Annotated[bool, WRITTEN] = True
    exchanges: Annotated[int, WRITTEN] = 16
    timing: Timing = "one-way"
    bystanders: BystanderKind = "threads"

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of the window in bytes, rising."""
        return tuple(self.first + number * self.step for number in range(self.count))

    @property
    def accessing_ranks(self) -> tuple[str, ...]:
        """Both for `both`, and where nobody accesses."""
        return (self.who,) if self.who in ("sender", "receiver", "bystanders") else ("sender", "receiver")

    def id(self, point: Point) -> str:
        """The axes of messages, and the accesses."""
        parts = [*message_id(point), self.who, self.access, self.data]
        parts += [] if self.barrier else ["nobarrier"]
        parts += [] if self.timing == "one-way" else [self.timing]
        parts += [] if self.bystanders == "threads" else [self.bystanders]
        parts += [f"from{self.first}", f"by{self.step}", f"x{self.count}"]
        return "-".join(parts + role_id(point))

    @property
    def title(self) -> str:
        """The accesses: `sender writes, 0 to 39600 B`."""
        verb = "reads" if self.access == "read" else "writes"
        accesses = "no accesses" if self.who == "none" else f"{self.who} {verb}"
        data = "" if self.data == "same" else ", new data"
        barrier = "" if self.barrier else ", no barrier"
        timing = "" if self.timing == "one-way" else f", {TIMED[self.timing]}"
        processes = ", processes" if self.bystanders == "processes" else ""
        return f"{accesses}{processes}{data}{barrier}{timing}, {self.first} to {self.sizes[-1]} B"

    def validate(self, point: Point, machine: Machine) -> None:
        """Refuses messages and accesses that do not fit in memory."""
        check_memory(point, machine)
        cores = {"none": 0, "both": 2, "bystanders": point.n}.get(self.who, 1)
        fits(cores, self.sizes[-1], machine)

    def phase_seconds(self, point: Point) -> float:
        """All messages of its sizes, with accesses and without, shared out among the phases, which are
        interleaved.
        """
        messages = self.exchanges + UNTIMED
        sizes = () if self.who == "none" else (*self.sizes * messages, self.sizes[-1])
        touching = sum(size / (TOUCHED if size <= SMALL else FAR) for size in sizes)
        return (touching + 2 * self.count * messages * EXCHANGE) / len(point.sequence)

    def patience(self, point: Point, unit: Unit, steady: Steady) -> float:
        """Twenty times all phases."""
        return 60.0 + 20.0 * len(self.sequence(point, unit.closing)) * self.phase_seconds(point)


def fits(cores: int, most: int, machine: Machine) -> None:
    """UsageError where so many bytes for each of these cores are more than the memory of a host."""
    if machine.memory and cores * most > machine.memory:
        each = f"{cores} cores' accesses" if cores > 1 else "they"
        raise UsageError(
            "larger than memory",
            field="accesses",
            value=format_size(most),
            hint=f"{each} must fit in {format_size(machine.memory)}",
        )
