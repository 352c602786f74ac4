"""The documents of a profile: its analysis as `profile show --json` prints it, the manifest of its folder,
and samples of memory traffic. Times are in seconds, sizes in bytes, if names do not say otherwise.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from elbowroom.documents import DocumentFormat
from elbowroom.machine.host_use import HostUse


class CallSummary(msgspec.Struct, frozen=True, kw_only=True):
    """An MPI function in all ranks together."""

    name: str
    count: int
    seconds: float
    bytes: int


class OverlapSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Of the network time of nonblocking operations between nodes, or, `inside` the only node, of the time
    that their data takes: the share in which its rank was outside MPI (`achieved`), and the share that the
    computation between post and completion could cover (`possible`). None where there is no such operation.
    `network_s`: that time, of all ranks together; `operations`: how many transfers these are; `waited_s`:
    what ranks waited for them in MPI_Wait and its family since they could begin; `reason`: why, although
    computation could have covered them; empty where none waited so, or the reason is not known.
    """

    achieved: float | None
    possible: float | None
    network_s: float
    waited_s: float = 0.0
    operations: int = 0
    reason: str = ""
    inside: bool = False


class NodeSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A node. `bytes_inside`, `bytes_between`: sent by its ranks to ranks of this node, of other nodes;
    `bytes_received`: from other nodes. `mpi_s`: inside MPI, all ranks together, without `setup_s`: in calls
    that neither move data nor wait (MPI_Finalize, MPI_Comm_dup); `network_s`: at least one rank was on the
    network; `network_rank_s`: on the network, all ranks together. `concurrency`: share of the time with 0, 1,
    2 … ranks on the network; `idle_share`: the first of it. `burstiness`: standard deviation by mean of the
    bytes between nodes per window of `window_s`; None without such bytes. `imbalance`: how much longer than
    the mean the rank computes that computes longest, 0.1 is 10 %. `estimated_bytes`: share of the bytes
    between nodes that usual algorithms say, not records.
    """

    name: str
    ranks: int
    bytes_inside: float
    bytes_between: float
    bytes_received: float
    mpi_s: float
    setup_s: float
    network_s: float
    network_rank_s: float
    idle_share: float
    concurrency: tuple[float, ...]
    burstiness: float | None
    window_s: float
    imbalance: float
    estimated_bytes: float
    overlap: OverlapSummary


class RankSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A rank: outside MPI (`computation_s`), inside it, setting it up, and with a message on the network. The
    bytes that it sends inside its node (`bytes_inside`), sends to other nodes and receives from them.
    """

    rank: int
    node: int
    computation_s: float
    mpi_s: float
    setup_s: float
    network_s: float
    calls: int
    lost: int
    bytes_inside: float
    bytes_between: float
    bytes_received: float


class MemorySummary(msgspec.Struct, frozen=True, kw_only=True):
    """Memory traffic of the job's first host; `bytes` None is n/a, with the reason. `source`: the counters;
    `scope`: `host`, everything that ran there, or `job`; `rate` B/s while the mean rank there computes;
    `highest` B/s of a tenth of a second.
    """

    bytes: float | None
    reason: str = ""
    host: str = ""
    source: str = ""
    scope: str = ""
    rate: float | None = None
    highest: float | None = None


class CurveSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What the network times rest on: bandwidth in B/s of 1, 2 … senders together."""

    source: str
    total: tuple[float, ...]
    latency_s: float


class ProfileSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A job: its nodes, its ranks and the calls that took longest. `calls`, `lost`: of all ranks."""

    schema: str = "elbowroom/profile-summary"
    version: int = 1
    ranks: int
    calls: int
    lost: int
    duration_s: float
    nodes: tuple[NodeSummary, ...]
    per_rank: tuple[RankSummary, ...]
    top_calls: tuple[CallSummary, ...]
    overlap: OverlapSummary
    memory: MemorySummary
    curve: CurveSummary
    notes: tuple[str, ...]


SCHEMA = "elbowroom/profile"
MANIFEST_VERSION = 1
MANIFEST_FILE = "profile.json"


class EmulatedNic(msgspec.Struct, frozen=True, kw_only=True):
    """The emulated NIC of a job: `bandwidth` in B/s of each direction of each node. `nodes`: those that the
    job is on, in the order of its ranks; empty: 0, 1, 2, …
    """

    name: str = ""
    bandwidth: float | None = None
    ranks_per_node: int | None = None
    nodes: tuple[int, ...] = ()


class ProfileManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What `elbowroom profile` knows beside the files of the ranks. `machine`: the host that it ran on
    (machine/identity.py), {} in older profiles; `exit_code` None: the program still runs, or elbowroom was
    killed; `memory_bytes`: of that host during the job, None where no counter was there, `memory_reason`
    says why. Samples of it are in memory.json. `use`: of that host meanwhile, None in older profiles.
    `own_functions`: of MPI, which the program defines itself; calls of these are not recorded.
    """

    schema: str = SCHEMA
    version: int = MANIFEST_VERSION
    elbowroom: str = ""
    command: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    machine: dict[str, Any] = {}
    mpi: str = ""
    started: str = ""
    exit_code: int | None = None
    window_ns: int | None = None
    nic: EmulatedNic | None = None
    memory_bytes: float | None = None
    memory_reason: str = "no counter of memory traffic was read"
    use: HostUse | None = None
    own_functions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


MANIFEST = DocumentFormat(
    kind=ProfileManifest,
    schema=SCHEMA,
    version=MANIFEST_VERSION,
    name="profile",
    hint="name a folder that `profile -o` wrote",
)


TRAFFIC_FILE = "memory.json"
TRAFFIC_VERSION = 1

Floats = npt.NDArray[np.float64]


class MemoryTraffic(msgspec.Struct, frozen=True, kw_only=True):
    """`bytes` to and from memory since the first sample, at `times_ns` of the host's monotonic clock.
    `scope`: `host`, everything that ran there, or `job`, the program's processes.
    """

    schema: str = "elbowroom/profile-memory"
    version: int = TRAFFIC_VERSION
    host: str
    source: str
    scope: Literal["host", "job"]
    times_ns: tuple[int, ...]
    bytes: tuple[float, ...]

    @property
    def total(self) -> float:
        """Bytes of the whole job."""
        return self.bytes[-1]

    def rates(self, start_ns: int, edges: Floats) -> Floats:
        """B/s between each two of `edges`, seconds since `start_ns`; nan where nothing was sampled."""
        times = (np.array(self.times_ns) - start_ns) / 1e9
        at = np.interp(edges, times, self.bytes, left=np.nan, right=np.nan)
        rates: Floats = np.diff(at) / np.diff(edges)
        return rates


MEMORY = DocumentFormat(
    kind=MemoryTraffic,
    schema="elbowroom/profile-memory",
    version=TRAFFIC_VERSION,
    name="memory traffic",
    hint="profile the program again, into a new folder",
)
