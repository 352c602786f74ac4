"""What is measured: a point, and the order in which its repetitions are visited."""

from __future__ import annotations

from typing import Literal

import msgspec

Metric = Literal["latency", "bandwidth"]
Pattern = Literal["pingpong", "receive", "bidirectional", "ring"]
Reuse = Literal["same", "rotate", "off-cache"]
Phase = Literal["A", "B", "AB", "S"]
Variant = Literal["none", "communication", "apart", "overlap"]
Who = Literal["none", "sender", "receiver", "both", "bystanders"]
Access = Literal["read", "write"]
Data = Literal["same", "different"]
Build = Literal["openmp", "starpu"]


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """Where one rank computes and communicates (used by `ring` with several processes per host)."""

    rank: int
    comp_cores: tuple[int, ...]
    comm_cores: tuple[int, ...]
    comp_node: int
    comm_node: int


class Losses(msgspec.Struct, frozen=True, kw_only=True):
    """Loss ratios (bandwidth alone / together) of computation and communication that a model predicts, with
    the ends of their intervals; `source` names the model, `flags` are its prediction's.
    """

    comp: float
    comp_low: float
    comp_high: float
    comm: float
    comm_low: float
    comm_high: float
    source: str
    flags: tuple[str, ...] = ()


class Application(msgspec.Struct, frozen=True, kw_only=True):
    """Steps of a real program instead of a kernel beside messages: `name` is its executable.

    `variant`: `none` computes only, `communication` exchanges only, `apart` does one after the other,
    `overlap` both at once. `nodes` processes, one a node (or several on one host, which then is labelled),
    share `cells` cells; a repetition times `steps` steps after `warmup` others. `losses`: where a model and
    not this run tells them.
    """

    name: str
    variant: Variant
    cells: int
    nodes: int
    steps: int
    warmup: int
    partitioner: str = "metis"
    losses: Losses | None = None

    def label(self, threads: int) -> str:
        """The variant in a table: `overlap, k = 2` on 8 nodes."""
        text = self.variant if self.variant in ("none", "apart") else f"{self.variant} k={threads}"
        return f"{text} on {self.nodes}"


class Extraneous(msgspec.Struct, frozen=True, kw_only=True):
    """Extraneous memory accesses between two messages (Tan and Jarvis 2012, section 2): a window of sizes.

    `who` touches memory that no message is in: 64 B lines of `first`, `first + step` ... bytes, `count`
    sizes, read or written. `data`: whether the sender writes new contents before each message; `barrier`:
    whether one parts the accesses from the message, else the sender waits by the clock. Each size has
    `exchanges` timed messages with accesses, and as many without, interleaved, as a control.
    """

    who: Who
    access: Access
    first: int
    step: int
    count: int
    data: Data = "same"
    barrier: bool = True
    exchanges: int = 16

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of this window in bytes, rising."""
        return tuple(self.first + number * self.step for number in range(self.count))

    def label(self) -> str:
        """The point in a table: `sender writes, 0 to 39600 B`."""
        deeds = "reads" if self.access == "read" else "writes"
        one = "no accesses" if self.who == "none" else f"{self.who} {deeds}"
        more = "" if self.data == "same" else ", new data"
        return f"{one}{more}{'' if self.barrier else ', no barrier'}, {self.first} to {self.sizes[-1]} B"


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """A program of apps/ that answers as the probe does (docs/protocol.md), in place of kernel and messages.

    `runtime` passes messages through StarPU-MPI (`task` overhead), or by MPI beside StarPU's polling workers
    (`task` polling, `backoff` nops at most, 0: paused). `kernels` solves by conjugate gradients (cg,
    cg-sparse) or multiplies (gemm) matrices of `order`, in blocks of `block`, `iterations` times at most.
    """

    name: Literal["runtime", "kernels"]
    task: Literal["overhead", "polling", "cg", "cg-sparse", "gemm"]
    build: Build
    ranks: int = 2
    order: int = 0
    block: int = 0
    iterations: int = 0
    backoff: int | None = None

    def label(self) -> str:
        """The program in a table: `gemm (starpu)`, `polling x32 (starpu)`, `paused (starpu)`."""
        if self.backoff == 0:
            return f"paused ({self.build})"
        return f"{self.task}{'' if self.backoff is None else f' x{self.backoff}'} ({self.build})"


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One combination of the axes of a plan. Cores and nodes carry the operating system's numbers.

    `size` and `working_set` are bytes; `working_set` is per computing core, all arrays together; `n_other` of
    the `n` computing cores are of another socket than the first, where a plan tells points apart by that;
    `application`: what runs in place of kernel and messages (`kernel` is then `none`, `size` 0, and
    `placements` say where each process of a host is), `program` likewise; `extraneous`: what is touched
    between messages (`kernel` is `none`); `role` is `point` for what the plan asks and `control`
    for the register-only kernel that tells whether the machine was quiet (METHOD.md, rule 15).
    """

    plan: str
    kernel: str
    n: int
    size: int
    comp_node: int
    comm_node: int
    comm_core: int
    metric: Metric
    comp_cores: tuple[int, ...] = ()
    comm_cores: tuple[int, ...] = ()
    peer_cores: tuple[int, ...] = ()
    pattern: Pattern = "pingpong"
    cursor: int = 1
    working_set: int = 0
    reuse: Reuse = "same"
    computing_ranks: Literal["first", "all"] = "first"
    processes: Literal["node", "socket"] = "node"
    placements: tuple[Placement, ...] = ()
    core_khz: int | None = None
    uncore_khz: int | None = None
    role: Literal["point", "control"] = "point"
    sequence: tuple[Phase, ...] = ("A", "B", "AB", "AB", "B", "A")
    window: float = 0.12
    observe: tuple[str, ...] = ()
    scheduling: bool = False
    n_other: int = 0
    application: Application | None = None
    extraneous: Extraneous | None = None
    program: Program | None = None

    @property
    def id(self) -> str:
        """A readable name, equal for equal points and different for different ones within a plan."""
        if self.application is not None:
            return self._application_id(self.application)
        if self.program is not None:
            return self._program_id(self.program)
        parts = [
            self.kernel,
            f"n{self.n}",
            f"{self.size}B",
            self.pattern,
            self.metric,
            f"comp{self.comp_node}",
            f"comm{self.comm_node}",
            f"core{self.comm_core}",
        ]
        if self.n_other:
            parts.append(f"other{self.n_other}")
        if self.cursor != 1:
            parts.append(f"cursor{self.cursor}")
        if len(self.comm_cores) > 1:
            parts.append(f"k{len(self.comm_cores)}")
        if self.reuse != "same":
            parts.append(self.reuse)
        if self.processes != "node":
            parts.append(f"per-{self.processes}")
        if self.core_khz is not None:
            parts.append(f"core{self.core_khz}kHz")
        if self.uncore_khz is not None:
            parts.append(f"uncore{self.uncore_khz}kHz")
        if self.extraneous is not None:
            parts += _extraneous_id(self.extraneous)
        if self.role != "point":
            parts.append(self.role)
        return "-".join(parts)

    def _program_id(self, program: Program) -> str:
        parts = [program.task, program.build, f"n{self.n}", f"{program.ranks}ranks"]
        parts += [f"{self.size}B", self.metric] if self.size else []
        parts += [f"comp{self.comp_node}", f"comm{self.comm_node}", f"core{self.comm_core}"]
        for name in ("order", "block", "iterations"):
            if getattr(program, name):
                parts.append(f"{name}{getattr(program, name)}")
        if program.backoff is not None:
            parts.append(f"backoff{program.backoff}")
        return "-".join(parts)

    def _application_id(self, application: Application) -> str:
        parts = [application.name, application.variant, f"n{self.n}", f"{application.nodes}nodes"]
        parts.append(f"{application.cells}cells")
        if len(self.comm_cores) > 1:
            parts.append(f"k{len(self.comm_cores)}")
        return "-".join(parts)


def _extraneous_id(extraneous: Extraneous) -> list[str]:
    parts: list[str] = [extraneous.who, extraneous.access, extraneous.data]
    parts += [] if extraneous.barrier else ["nobarrier"]
    return [*parts, f"from{extraneous.first}", f"by{extraneous.step}", f"x{extraneous.count}"]


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """What the probe is asked for at once and the journal keeps as one line: one repetition of one point.

    `closing` marks the alone baselines that are measured again at the end of the run.
    """

    point: str
    repetition: int
    closing: bool = False


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the plan that this machine cannot answer, and why."""

    what: str
    status: Literal["n/a"] = "n/a"
    reason: str


class Expansion(msgspec.Struct, frozen=True, kw_only=True):
    """A plan expanded for a machine: the points that can be measured and the notes for those that cannot."""

    points: tuple[Point, ...]
    notes: tuple[Note, ...]
