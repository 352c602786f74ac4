"""What a model learns from: measured bandwidths by placement and number of computing cores."""

from __future__ import annotations

from itertools import accumulate

import msgspec

Streams = tuple[float, float, float, float]
"""comp_alone, comm_alone, comp_together, comm_together, MB/s."""
STREAMS = ("comp_alone", "comm_alone", "comp_together", "comm_together")


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """What a model knows of a machine's topology; nodes are counted from 0, those of the first socket first.

    A node is local (to the cores of the first socket) iff it is below `numa_per_socket`. `layout`: cores and
    nodes of each socket, the first one included, where sockets are not alike.
    """

    name: str
    cores_first_socket: int
    numa_per_socket: int
    sockets: int = 2
    nic_node: int | None = None
    virtual: bool = False
    layout: tuple[tuple[int, int], ...] | msgspec.UnsetType = msgspec.UNSET

    @property
    def of_sockets(self) -> tuple[tuple[int, int], ...]:
        """Cores and NUMA nodes of each socket."""
        if isinstance(self.layout, msgspec.UnsetType):
            return ((self.cores_first_socket, self.numa_per_socket),) * self.sockets
        return self.layout

    @property
    def nodes(self) -> int:
        return sum(nodes for _, nodes in self.of_sockets)

    @property
    def cores(self) -> int:
        return sum(cores for cores, _ in self.of_sockets)

    @property
    def cores_other(self) -> int:
        """Cores of all sockets but the first."""
        return self.cores - self.cores_first_socket

    def local(self, node: int) -> bool:
        """Whether the cores of the first socket are beside that node."""
        return node < self.numa_per_socket

    def socket(self, node: int) -> int:
        """The socket of that node; the last one for numbers beyond."""
        if isinstance(self.layout, msgspec.UnsetType):
            return min(node // self.numa_per_socket, self.sockets - 1)
        ends = accumulate(nodes for _, nodes in self.layout)
        return next((socket for socket, end in enumerate(ends) if node < end), self.sockets - 1)

    def cores_of(self, socket: int) -> int:
        """Cores of a socket; 0 where there is no such socket."""
        return self.of_sockets[socket][0] if socket < self.sockets else 0

    def spread(self, n: int, n_other: int) -> tuple[int, ...]:
        """`n` cores of the first socket and `n_other` of the others, filled in turn, by socket."""
        counts = [n]
        for cores, _ in self.of_sockets[1:]:
            counts.append(min(cores, n_other - sum(counts[1:])))
        return tuple(counts)


class Situation(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """What is asked: `n` cores of the first and `n_other` of the second socket compute on data of `comp_node`
    while messages arrive in `comm_node`.
    """

    comp_node: int
    comm_node: int
    n: int
    n_other: int = 0


class MeasuredStreams(msgspec.Struct, frozen=True, kw_only=True):
    """Bandwidths of one measured run (MB/s, of all computing cores and all messages together; None: not
    measured), `spread`: the relative standard errors of the four, where known, and where they stand (a line
    of a file, the id of a point), for messages.
    """

    comp_alone: float | None = None
    comm_alone: float | None = None
    comp_together: float | None = None
    comm_together: float | None = None
    spread: tuple[float | None, float | None, float | None, float | None] = (None, None, None, None)
    source: str = ""

    @property
    def streams(self) -> tuple[float | None, float | None, float | None, float | None]:
        """The four bandwidths in the order of STREAMS."""
        return self.comp_alone, self.comm_alone, self.comp_together, self.comm_together


class Row(MeasuredStreams, frozen=True, kw_only=True):
    """One measured run of a situation."""

    situation: Situation


class Curves(msgspec.Struct, frozen=True, kw_only=True):
    """All runs of one machine, one kernel and one message size, in no particular order."""

    shape: Shape
    rows: tuple[Row, ...]
    origin: str = ""
    kernel: str = "memset_nt"
    size: int = 64_000_000
