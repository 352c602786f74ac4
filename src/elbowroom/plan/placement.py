"""Who sits where: computing cores, communication cores, NUMA nodes, working sets."""

from __future__ import annotations

import msgspec

from elbowroom.machine.topology import Core, Machine
from elbowroom.plan.kernels import Kernel
from elbowroom.points.probe import CACHES

MIB = 2**20
UNKNOWN_CACHE_WORKING_SET = 1024 * MIB
NON_TEMPORAL_WORKING_SET = 256 * MIB
UNKNOWN_PRIVATE_CACHE = 256 * 1024
UNKNOWN_SHARED_CACHE = 8 * MIB


class Seats(msgspec.Struct, frozen=True, kw_only=True):
    """Cores of the communication threads (rank 0, and other ranks of the same host), and those left to
    compute.
    """

    comm_cores: tuple[int, ...]
    peer_cores: tuple[int, ...]
    comp_cores: tuple[int, ...]


def usable(machine: Machine) -> tuple[Core, ...]:
    """Cores inside the cpuset, in logical order."""
    allowed = set(machine.allowed)
    return tuple(
        sorted((core for core in machine.cores if core.number in allowed), key=lambda core: core.logical)
    )


def nic_node(machine: Machine) -> int | None:
    """NUMA node of the fastest kind of NIC that says where it is; None where none does."""
    ranking = ("openfabrics", "infiniband", "omnipath", "slingshot")
    known = [nic for nic in machine.nics if nic.node is not None]
    known.sort(
        key=lambda nic: ranking.index(nic.kind.lower()) if nic.kind.lower() in ranking else len(ranking)
    )
    return known[0].node if known else None


def near_node(machine: Machine) -> int:
    """The NIC's node; where the NIC does not say, the first node of the machine's ordinary memory."""
    node = nic_node(machine)
    return machine.ordinary_nodes[0].number if node is None else node


def far_node(machine: Machine) -> int | None:
    """A node of another socket than the near one, else any other node; the last such, of ordinary memory
    before HBM, CXL and the like; None with one node.
    """
    near = near_node(machine)
    package = next((node.package for node in machine.nodes if node.number == near), 0)
    for nodes in (machine.ordinary_nodes, machine.nodes):
        others = [node for node in nodes if node.number != near]
        elsewhere = [node for node in others if node.package != package] or others
        if elsewhere:
            return elsewhere[-1].number
    return None


def last_core_of(machine: Machine, node: int) -> int | None:
    """Last usable core of a node, in logical order; None where the node has none."""
    cores = [core.number for core in usable(machine) if core.node == node]
    return cores[-1] if cores else None


def distance(machine: Machine, core: int) -> str:
    """`near` or `far` (from the NIC) of a core; near where there is one node only."""
    node = next((item.node for item in machine.cores if item.number == core), None)
    return "near" if node == near_node(machine) or len(machine.nodes) <= 1 else "far"


def shares_core(machine: Machine) -> bool:
    """Whether both communicating ranks must share one core: one host with fewer than four cores (method.md,
    end).
    """
    return machine.hosts < 2 and len(usable(machine)) < 4


def default_comm_core(machine: Machine, computing: tuple[int, ...] = ()) -> int:
    """Last core of the machine, as in the paper (section 4.2); the first one where both ranks share it.

    Cores named for computing are passed over where others are left.
    """
    inside = usable(machine)
    cores = [core.number for core in inside if core.number not in computing] or [c.number for c in inside]
    if shares_core(machine):
        return cores[0]
    first = [core.number for core in first_socket(machine, inside)]
    # A first socket of one core, which is the last one, is left to compute.
    return cores[-2] if first == cores[-1:] and len(cores) > 1 else cores[-1]


def seats(
    machine: Machine,
    comm_core: int,
    threads: int = 1,
    *,
    comp_cores: tuple[int, ...] = (),
    peer_core: int | None = None,
    socket_only: bool = False,
) -> Seats | None:
    """Communication threads on `comm_core` and the cores before it, the peer's beside them, the rest
    computes.

    The peer has cores of its own only where it runs on the same host and there are four cores or more.
    Computing cores are in logical order, all of the machine or of the first socket that has memory; named
    ones are taken as they are. None where the machine has too few cores for that many communication threads.
    """
    cores = usable(machine)
    inside = {core.number for core in (first_socket(machine, cores) if socket_only else cores)}
    order = downwards(cores, comm_core)
    named = set(comp_cores)
    free = [core for core in order[1:] if core not in named]
    if len(free) < threads - 1:
        return None
    comm = (comm_core, *free[: threads - 1])
    free = free[threads - 1 :]
    peer = comm
    if peer_core is not None:
        peer = (peer_core, *[core for core in free if core != peer_core][: threads - 1])
    elif machine.hosts < 2 and not shares_core(machine) and len(free) > threads:
        peer = tuple(free[:threads])
    taken = {*comm, *peer}
    pool = comp_cores or tuple(
        core.number for core in cores if core.number not in taken and core.number in inside
    )
    return Seats(comm_cores=comm, peer_cores=peer, comp_cores=pool) if pool else None


def first_socket(machine: Machine, cores: tuple[Core, ...]) -> tuple[Core, ...]:
    """Those of the cores that are of the first of their sockets, as models count sockets."""
    socket_of = machine.socket_of
    first = min((socket_of[core.package] for core in cores), default=0)
    return tuple(core for core in cores if socket_of[core.package] == first)


def downwards(cores: tuple[Core, ...], start: int) -> list[int]:
    """Core numbers from `start` downwards through its own node, then the others from the last one."""
    node = next((core.node for core in cores if core.number == start), None)
    own = [core.number for core in cores if core.node == node and core.number != start]
    others = [core.number for core in cores if core.node != node and core.number != start]
    return [start, *reversed(own), *reversed(others)]


def working_set(kernel: Kernel | None, n: int, node: int, machine: Machine) -> int:
    """Bytes per computing core, all arrays together (docs/design/method.md, rule 8).

    At least 4 times the last-level cache (1 GiB where it is unknown, 256 MiB for non-temporal stores), at
    most what lets all `n` threads fit in half of the node's memory. Cache-resident kernels take half of the
    private cache, or their share of a quarter of the last-level one.
    """
    if kernel is None or kernel.arrays == 0:
        return 0
    cache = machine.last_level_cache
    if kernel.shared_cache:
        return max((cache or UNKNOWN_SHARED_CACHE) // 4 // max(n, 1), _private_cache(machine))
    if kernel.cache_resident:
        return _private_cache(machine) // 2
    wanted = NON_TEMPORAL_WORKING_SET if kernel.non_temporal else CACHES * cache or UNKNOWN_CACHE_WORKING_SET
    wanted = -(-wanted // MIB) * MIB
    memory = next((item.memory for item in machine.nodes if item.number == node), 0) or machine.memory
    if memory:
        wanted = min(wanted, memory // 2 // max(n, 1) // MIB * MIB)
    return max(wanted, MIB)


def _private_cache(machine: Machine) -> int:
    """Bytes of level-2 cache per core; 256 KiB where hwloc reports none."""
    level2 = [cache.size // max(len(cache.cores), 1) for cache in machine.caches if cache.level == 2]
    return min(level2) if level2 else UNKNOWN_PRIVATE_CACHE
