"""What a model learns from: measured bandwidths by placement and number of computing cores."""

from __future__ import annotations

import msgspec

Streams = tuple[float, float, float, float]
"""comp_alone, comm_alone, comp_together, comm_together, MB/s."""
STREAMS = ("comp_alone", "comm_alone", "comp_together", "comm_together")


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """What a model knows of a machine's topology; nodes are counted from 0, those of the first socket first.

    A node is local (to the cores of the first socket) iff it is below `numa_per_socket`.
    """

    name: str
    cores_first_socket: int
    numa_per_socket: int
    sockets: int = 2
    nic_node: int | None = None
    virtual: bool = False

    @property
    def nodes(self) -> int:
        """Number of NUMA nodes."""
        return self.sockets * self.numa_per_socket

    def local(self, node: int) -> bool:
        """Whether the cores of the first socket are beside that node."""
        return node < self.numa_per_socket

    def socket(self, node: int) -> int:
        """The socket of that node."""
        return min(node // self.numa_per_socket, self.sockets - 1)


class Situation(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """What is asked: `n` cores of the first and `n_other` of the second socket compute on data of `comp_node`
    while messages arrive in `comm_node`.
    """

    comp_node: int
    comm_node: int
    n: int
    n_other: int = 0


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One measured run: a situation, its bandwidths (MB/s, of all computing cores together), and where it
    stands (a line of a file, the id of a point), for messages.

    None: this one was not measured. `spread` is the relative standard error of the four, where known.
    """

    situation: Situation
    comp_alone: float | None
    comm_alone: float | None
    comp_together: float | None
    comm_together: float | None
    spread: tuple[float | None, float | None, float | None, float | None] = (None, None, None, None)
    source: str = ""

    @property
    def streams(self) -> tuple[float | None, float | None, float | None, float | None]:
        """The four bandwidths in the order of STREAMS."""
        return self.comp_alone, self.comm_alone, self.comp_together, self.comm_together


class Curves(msgspec.Struct, frozen=True, kw_only=True):
    """All runs of one machine, one kernel and one message size, in no particular order."""

    shape: Shape
    rows: tuple[Row, ...]
    origin: str = ""
    kernel: str = "memset_nt"
    size: int = 64_000_000
