"""A factorization on a simulated cluster: the question, and how long it takes."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import msgspec

from elbowroom.broadcast.simulated import check_tree
from elbowroom.documents import DocumentFormat
from elbowroom.errors import UsageError
from elbowroom.points.factorizations import MOST_TILES, Task, count_flops

STEPS = ("potrf", "trsm", "syrk", "gemm", "geqrt", "ormqr", "tpqrt", "tpmqrt")
"""The kernels in the order of lib/taskflow/factorization.hpp."""

MOST_PROCESSES = 1024
ELEMENT = 8
INNER_BLOCK = 32
"""Rows of a T: reflectors of QR's that are applied together (apps/factorizations)."""

GIGA = 1e9
MOST_BLOCK = 1_000_000


class KernelTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of each kernel on one core, for tiles of `block` rows: what `factorizations-inline times`
    prints.
    """

    schema: str = "elbowroom/step-times"
    version: int = 1
    block: int
    seconds: dict[str, float]

    def __post_init__(self) -> None:
        if not 1 <= self.block <= MOST_BLOCK:
            hint = f"give 1 to {MOST_BLOCK} rows"
            raise UsageError(
                "is not a valid number of rows of a tile", field="block", value=self.block, hint=hint
            )
        for step in STEPS:
            value = self.seconds.get(step, 0.0)
            if not 0 < value < 1e6:
                raise UsageError(
                    "must be a positive time", field=f"seconds.{step}", value=value, hint="give seconds"
                )


class FactorizationRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`task` on `rows` x `columns` tiles (Cholesky's: square), distributed block-cyclically over processes in
    a grid, each with `workers` cores that compute and a link of `bandwidth` B/s in each direction and
    `latency` s to one switch; `sharing` processes, one after another, are on a node and share its link.
    `tree`: of the broadcasts, `none` for a message to each recipient; `early`: readers start at RECEIVED;
    `priorities`: of Cholesky's tasks.
    """

    task: Task
    rows: int
    columns: int
    grid: tuple[int, int]
    times: KernelTimes
    workers: int
    bandwidth: float
    latency: float
    overhead: float = 0.0
    tree: str = "binomial"
    segment: int = 0
    priorities: bool = True
    early: bool = True
    sharing: int = 1

    RANGES: ClassVar[dict[str, int]] = {
        "rows": MOST_TILES, "columns": MOST_TILES, "workers": 1024, "sharing": 1024,
    }  # fmt: skip

    def __post_init__(self) -> None:
        for name, most in self.RANGES.items():
            if not 1 <= getattr(self, name) <= most:
                raise UsageError(
                    f"is not between 1 and {most}", field=name, value=getattr(self, name), hint="give less"
                )
        if self.task == "cholesky" and self.rows != self.columns:
            raise UsageError(
                f"differ from the {self.rows} rows of tiles, and Cholesky's matrix is square",
                field="tile_columns",
                value=self.columns,
                hint="leave them out",
            )
        if self.processes > MOST_PROCESSES:
            raise UsageError(
                f"has more than {MOST_PROCESSES} processes",
                field="grid",
                value=f"{self.grid[0]}x{self.grid[1]}",
                hint="give fewer",
            )
        if self.tree != "none":
            check_tree(self.tree)

    @property
    def processes(self) -> int:
        """In the grid."""
        return self.grid[0] * self.grid[1]

    @property
    def flops(self) -> float:
        """Operations of the whole factorization."""
        return count_flops(self.task, self.rows * self.times.block, self.columns * self.times.block)


class SimulatedFactorization(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds until the last process has finished, the share of them that workers computed, and the counts of
    the task graph: `data` are versions that other processes read, `broadcasts` those that several others
    read, of which `complete` were sent to all at once; `messages` would be needed without broadcasts.
    """

    seconds: float
    busy: float
    tasks: int
    data: int
    broadcasts: int
    complete: int
    messages: int
    most_recipients: int


class FactorizationBounds(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds that a factorization needs at least: the workers of the busiest process (`work`), the busiest
    link (`links`), and the longest chain of tasks and messages (`path`), each as if the others cost nothing;
    and that it takes by a `schedule` of all three without a protocol.
    """

    work: float
    links: float
    path: float
    schedule: float


STEP_TIMES_FORMAT = DocumentFormat(
    kind=KernelTimes,
    schema="elbowroom/step-times",
    version=1,
    name="times",
    hint="factorizations-inline times prints such a file",
)


def read_step_times(file: str | Path) -> KernelTimes:
    """The times that `factorizations-inline times` printed into a file. UsageError where they are none."""
    return STEP_TIMES_FORMAT.read(Path(file))


class FactorizationDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What `broadcast factorize --json` prints: the time of the factorization, its rate (Gflop/s of all
    processes), the share of time that workers computed, and the counts of its broadcasts; `complete_share` is
    null where there are none.
    """

    schema: str = "elbowroom/factorization"
    version: int = 1
    simulated: bool
    time_us: float
    Gflop_s: float
    busy: float
    task: str
    tree: str
    segment: int
    processes: int
    tasks: int
    data: int
    broadcasts: int
    complete_share: float | None
    messages: int
    most_recipients: int


def factorization_document(
    simulated: SimulatedFactorization, request: FactorizationRequest
) -> FactorizationDocument:
    """A simulated factorization and what was asked, as one document."""
    return FactorizationDocument(
        simulated=True,
        time_us=simulated.seconds * 1e6,
        Gflop_s=request.flops / simulated.seconds / GIGA,
        busy=simulated.busy,
        task=request.task,
        tree=request.tree,
        segment=request.segment,
        processes=request.processes,
        tasks=simulated.tasks,
        data=simulated.data,
        broadcasts=simulated.broadcasts,
        complete_share=simulated.complete / simulated.broadcasts if simulated.broadcasts else None,
        messages=simulated.messages,
        most_recipients=simulated.most_recipients,
    )
