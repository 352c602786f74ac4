"""Copies and kernels of an accelerator beside each other, and copies beside computing cores and messages.

The program `gpu-streams` answers (docs/reference/gpu-bench.md). `comp` of a result is the victim, `comm` the
mover.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, ClassVar, Literal

import msgspec

from elbowroom.errors import UsageError
from elbowroom.machine.gpu import GpuFacts
from elbowroom.machine.state import Failure
from elbowroom.machine.topology import Machine
from elbowroom.points.payload import Collected, Payload, Records
from elbowroom.points.point import (
    USUAL,
    AnyPhase,
    Facts,
    Labels,
    Needs,
    Point,
    Steady,
    Times,
    Workload,
    register,
)
from elbowroom.points.probe import FIRST_TOUCH, START
from elbowroom.points.streams import StreamPayload, streams_of
from elbowroom.points.unit import Startup, Unit
from elbowroom.quantities import format_size

Victim = Literal["cores", "gemm", "triad", "chain", "copy"]
Mover = Literal["copy", "messages", "sm_copy", "sm_idle", "sm_target"]
Holders = Literal["single", "pairs"]
Planned = Literal["all", "others"]
Direction = Literal["h2d", "d2h", "both", "d2d", "hbm", "host", ""]

PROGRAM = "gpu-streams"

TRIAD_BYTES = 3 * (256 << 20)
"""Of the three arrays of the device's triad: far more than its caches."""

LAUNCHES = 50
"""Kernels of a chain, whose launches are timed together."""

GEMM = (8192, 4096, 7168)
"""m, n and k of the published comparison that the plan `gpu-overlap` repeats."""

CLUSTERS = 90
"""The first compute capability with clusters of blocks: 9.0."""

SLOW_LINK = 1e10
"""B/s of a slow PCIe link, for the estimate only."""
PHASE_OVERHEAD = 0.02  # s
STEADY_PHASES = 4
"""Phases that run before the first one that counts, until clocks are steady; later, one is enough."""
UNIT_OVERHEAD = 0.1  # s

SEQUENCE: tuple[AnyPhase, ...] = ("A", "B", "AB", "AB", "B", "A")
WITHOUT_MOVER: tuple[AnyPhase, ...] = ("A", "AB", "AB", "A")
"""Of movers that have no rate: SMs that are idle, or that a product leaves free."""
THREE: tuple[AnyPhase, ...] = ("A", "B", "C", "AB", "AC", "BC", "ABC", "ABC", "BC", "AC", "AB", "C", "B", "A")
"""Cores A, copies B and messages C: alone, in pairs, all three."""

_NAMES = {"gemm": "GEMM", "triad": "device triad", "chain": "launch chain"}


@register
class GpuCase(Workload, msgspec.Struct, frozen=True, kw_only=True):
    """A victim beside a mover; with `messages` a third stream, MPI messages of the point's size.

    `direction` is that of copies: of a mover, or of the victim `copy`; `sms` the SMs that a mover holds or
    that a product leaves free (0: none); `pace_mb_s` of copies by SMs (0: as fast as they can); `bytes` of a
    copy; `node` the NUMA node of the pinned buffer (-1: anywhere); `first` starts first when both run.
    `holders`: SMs are held one by one, or in pairs by clusters of two blocks. `plan_for`: a product beside
    held SMs is planned for all SMs, or for the others; alone it is planned for all.
    `shape`: m, n and k of a product; `victim_bytes`: of the arrays of the device's triad; `launches` of a
    chain. `submit_core` is the core of the thread that submits work to the device (-1: not bound); `kernel`
    names what computing cores run, which is the point's kernel.
    """

    key: ClassVar[str] = "gpu"
    facts: ClassVar[Facts] = Facts(
        explainable=False,
        without_model="work of an accelerator (elbowroom fit has models of its own for it)",
        program_facts=True,
        order="last, sorted",
    )
    payload: ClassVar[type[Payload]] = StreamPayload
    virtual_refusal: ClassVar[str] = "this virtual machine has no GPU"

    victim: Victim
    mover: Mover
    direction: Direction = ""
    sms: int = 0
    holders: Holders = "single"
    plan_for: Planned = "all"
    pace_mb_s: float = 0.0
    bytes: int = 0
    node: int = -1
    first: Literal["victim", "mover"] = "victim"
    messages: bool = False
    shape: tuple[int, int, int] = GEMM
    victim_bytes: int = TRIAD_BYTES
    launches: int = LAUNCHES
    submit_core: int = -1
    kernel: str = ""

    def id(self, point: Point) -> str:
        parts: list[str] = [self.victim]
        parts += [point.kernel, f"n{point.n}", f"comp{point.comp_node}"] * (self.victim == "cores")
        parts += [f"cursor{point.cursor}"] * (point.cursor != 1)
        parts += ["beside", self.mover]
        parts += [self.direction] * bool(self.direction)
        parts += [f"k{self.sms}"] * bool(self.sms)
        parts += [self.holders] * (self.holders != "single")
        parts += ["planned-for-others"] * (self.plan_for == "others")
        parts += [f"{self.bytes}B"] * bool(self.bytes)
        parts += [f"{self.pace_mb_s:g}MBps"] * bool(self.pace_mb_s)
        parts += [f"node{self.node}"] * (self.node >= 0)
        parts += ["and", "messages"] * self.messages
        parts += [f"{point.size}B"] * self.sends
        parts += ["mover-first"] * (self.first == "mover")
        parts += [point.role] * (point.role != "point")
        return "-".join(parts)

    @property
    def sends(self) -> bool:
        """Whether MPI messages are one of its streams."""
        return self.messages or self.mover == "messages"

    @property
    def title(self) -> str:
        """Victim and mover: `GEMM beside 8 idle SMs`."""
        victim = {"copy": f"{self.direction} copies", "cores": self.kernel or "cores"}.get(self.victim, "")
        victim = victim or _NAMES[self.victim]
        return f"{victim}{self.beside}"

    @property
    def beside(self) -> str:
        """The mover: ` beside 8 idle SMs`."""
        pace = f" at {self.pace_mb_s / 1e3:g} GB/s" if self.pace_mb_s else ""
        word = {
            "copy": f" beside {self.direction} copies",
            "messages": " beside messages",
            "sm_copy": f" beside {self.sms} SMs that copy to {self.direction}{pace}",
            "sm_idle": f" beside {self.sms} idle SMs",
            "sm_target": f" planned for all but {self.sms} SMs",
        }[self.mover]
        return f"{word}{how_held(self.holders, self.plan_for)}{' and messages' * self.messages}"

    def labels(self, threads: int) -> Labels:
        """The node of the buffer and the order set a case apart from others."""
        order = ", mover first" if self.first == "mover" else ""
        node = f", node {self.node}" if self.node >= 0 else ""
        return Labels(self.title, f"{self.title}{node}{order}")

    # Requests

    @property
    def program(self) -> str:
        return PROGRAM

    @property
    def needs(self) -> Needs:
        """An accelerator that can answer it."""
        return Needs(gpu=self.refusal)

    def collect(self, point: Point, records: Records) -> Collected:
        """What else ran, alone and beside others."""
        return Collected(self.fill(point, records, streams=streams_of(records) or msgspec.UNSET))

    def rank_count(self, point: Point, machine: Machine) -> int:
        """A second one answers messages."""
        return 2 if self.sends else 1

    def group(self, point: Point, ranks: int) -> tuple[Hashable, ...]:
        """Points of as many ranks: one start of the program answers them all."""
        return (PROGRAM, ranks)

    def startup(self, point: Point) -> Startup:
        """The program; where threads are is in each request."""
        settings = {"program": {"name": PROGRAM, "ranks": 2 if self.sends else 1}}
        return Startup(name=PROGRAM, ranks=2 if self.sends else 1, settings=settings, patience=120.0)

    def sequence(self, point: Point, closing: bool = False, repetition: int = 0) -> tuple[AnyPhase, ...]:
        """The phases of one unit: the same forwards and backwards, so that a drift meets all alike."""
        if self.messages:
            phases = THREE
        else:
            phases = WITHOUT_MOVER if self.mover in ("sm_idle", "sm_target") else SEQUENCE
        return tuple(phase for phase in phases if phase in ("A", "B")) if closing else phases

    def request(self, point: Point, unit: Unit, steady: Steady) -> dict[str, object]:
        """A case as `gpu-bench measure` takes it, with its phases."""
        return {
            "op": "measure",
            "point": point.id,
            "repetition": unit.repetition,
            "sequence": list(self.sequence(point, unit.closing, unit.repetition)),
            "window": point.window,
            "core": self.submit_core,
            "case": self.case(point),
        }

    def case(self, point: Point) -> dict[str, object]:
        """The sides a (victim), b (mover) and c (messages)."""
        sides: dict[str, object] = {"a": self._victim(point), "b": self._mover(point)}
        if self.messages:
            sides["c"] = messages_side(point)
        return sides | {"name": point.id, "first": "b" if self.first == "mover" else "a"}

    def _victim(self, point: Point) -> dict[str, object]:
        if self.victim == "cores":
            size = {"bytes": point.working_set} if point.working_set else {}
            cores = {"cores": list(point.comp_cores), "node": point.comp_node, "cursor": point.cursor}
            return {"kind": "cores", "kernel": point.kernel, **cores, **size}
        if self.victim == "gemm":
            return {"kind": "gemm", **dict(zip("mnk", self.shape, strict=True))}
        if self.victim == "triad":
            return {"kind": "triad", "bytes": self.victim_bytes}
        if self.victim == "chain":
            return {"kind": "chain", "launches": self.launches}
        return self._copy()

    def _mover(self, point: Point) -> dict[str, object]:
        if self.mover == "copy":
            return self._copy()
        if self.mover == "messages":
            return messages_side(point)
        if self.mover != "sm_copy":
            return {"kind": self.mover, "sms": self.sms, **self._holding()}
        place = {"node": self.node} if self.direction == "host" and self.node >= 0 else {}
        sizes = {"sms": self.sms, "bytes": self.bytes, "pace_mb_s": self.pace_mb_s}
        return {"kind": "sm_copy", "direction": self.direction, **sizes, **place, **self._holding()}

    def _holding(self) -> dict[str, bool]:
        pairs = {"pairs": True} if self.holders == "pairs" else {}
        return pairs | ({"plan_others": True} if self.plan_for == "others" else {})

    def _copy(self) -> dict[str, object]:
        place = {"node": self.node} if self.direction != "d2d" and self.node >= 0 else {}
        return {"kind": "copy", "direction": self.direction, "bytes": self.bytes, **place}

    # Limits

    def validate(self, point: Point, machine: Machine) -> None:
        """UsageError for SMs, sizes and nodes that make no sense on any device."""
        if self.mover.startswith("sm_") and self.sms < 1:
            raise UsageError("is at least 1", field="sms", value=self.sms, hint="leave the mover out")
        if self.holders == "pairs" and self.sms % 2:
            raise UsageError(
                "pairs hold an even number of SMs",
                field="sms",
                value=self.sms,
                hint="give even numbers, or holders=single",
            )
        if (self.victim == "copy" or self.mover in ("copy", "sm_copy")) and self.bytes < 1:
            raise UsageError(
                "a copy has at least 1 B", field="copy_sizes", value=self.bytes, hint="write 64MiB"
            )
        nodes = {node.number: node.memory for node in machine.nodes}
        if self.node >= 0 and self.node not in nodes:
            raise UsageError("unknown NUMA node", field="pinned_nodes", value=self.node, hint="see --dry-run")
        memory = nodes.get(self.node) or machine.memory
        if memory and 2 * self.bytes > memory:
            raise UsageError(
                "larger than memory",
                field="copy_sizes",
                value=format_size(self.bytes),
                hint=f"buffers for both directions must fit in {format_size(memory)}",
            )
        if self.submit_core in point.comp_cores:
            raise UsageError(
                f"core {self.submit_core} submits work to the device, and cannot compute",
                field="comp_cores",
                value=self.submit_core,
                hint="name other computing cores",
            )

    def refusal(self, facts: GpuFacts | Failure) -> str:
        """Why this accelerator cannot answer it; empty where it can."""
        if not isinstance(facts, GpuFacts):
            return _with_hint(facts)
        device = facts.device
        if device.prohibited:
            return "the device's compute mode prohibits programs; ask its administrator for another mode"
        if self.mover.startswith("sm_") and self.sms >= device.sms:
            least = f"k is at most {device.sms - 1}, so that an SM is left for the victim"
            return f"k = {self.sms}: the device has {device.sms} SMs; {least}"
        if self.holders == "pairs" and device.capability < CLUSTERS:
            capability = f"{device.capability // 10}.{device.capability % 10}"
            return (
                f"compute capability {capability} has no clusters of blocks, which hold SMs in pairs; "
                "name holders=single"
            )
        kernels = self.victim in ("triad", "chain") or self.mover in ("sm_copy", "sm_idle")
        if kernels and not hasattr(facts.compiler, "path"):
            return f"kernels cannot be compiled: {_with_hint(facts.compiler)}"
        if self.victim == "gemm" and not hasattr(facts.gemm, "path"):
            return f"no matrix products: {_with_hint(facts.gemm)}"
        if self.direction == "d2d" and not facts.batch_copies:
            return (
                f"CUDA {facts.cuda} cannot leave copies inside the device to a copy engine; update NVIDIA's "
                "driver to CUDA 12.8 or newer"
            )
        if self.device_bytes > device.memory:
            needed, there = self.device_bytes / 1e9, device.memory / 1e9
            return f"its buffers take {needed:.3g} GB, and the device has {there:.3g} GB; name smaller sizes"
        return ""

    @property
    def device_bytes(self) -> int:
        """Bytes on the device of all buffers."""
        m, n, k = self.shape
        # A product that is planned for fewer SMs has buffers of its own.
        products = 2 if self.mover == "sm_target" or self.plan_for == "others" else 1
        product = 2 * (m * k + k * n + m * n)
        of_victim = {"gemm": products * product, "triad": self.victim_bytes}.get(self.victim, 0)
        return of_victim + self.bytes * (2 if self.direction in ("both", "d2d", "hbm") else 1)

    def times(self, point: Point, closing: bool = False, steady: Steady = USUAL) -> Times:
        """A phase takes the window, or a few copies over a slow link. The memory of computing cores is
        touched in each unit. Kernels are compiled and buffers are made before the first phase.
        """
        phases, phase = len(self.sequence(point, closing)), max(point.window, 6 * self.bytes / SLOW_LINK)
        touched = point.working_set / FIRST_TOUCH
        unit = UNIT_OVERHEAD + touched + (phases + 1) * (phase + PHASE_OVERHEAD)
        return Times(phase, phases, unit, 120.0 + 20.0 * unit, self._preparation(point, phase))

    def _preparation(self, point: Point, phase: float) -> dict[Hashable, float]:
        """The program starts, and compiles its kernels, once for each number of ranks; buffers of the device
        are filled with random data once; for each kind of case the clocks become steady.
        """
        filled = {repr(self._mover(point)): self.bytes}
        if self.victim in ("gemm", "triad"):
            filled[repr(self._victim(point))] = self.device_bytes - self.bytes
        times: dict[Hashable, float] = {(PROGRAM, side): size / FIRST_TOUCH for side, size in filled.items()}
        times[PROGRAM, self.victim, self.mover, self.direction] = (STEADY_PHASES - 1) * phase
        return times | {(PROGRAM, self.sends): START + 5.0}

    def baseline(self, point: Point) -> frozenset[Hashable]:
        """Every victim and every copy alone."""
        case = self.case(point)
        held = {"a": repr(case["a"])}
        if self.mover not in ("sm_idle", "sm_target"):
            held["b"] = repr(case["b"])
        return frozenset(held.items())


def how_held(holders: Holders, plan_for: Planned) -> str:
    """`, in pairs, planned for others`; empty for SMs that are held one by one beside a product planned for
    all.
    """
    return ", in pairs" * (holders == "pairs") + ", planned for others" * (plan_for == "others")


def messages_side(point: Point) -> dict[str, object]:
    """The MPI messages of a point as a side."""
    cores = {"core": point.comm_core, "peer_core": (point.peer_cores or (point.comm_core,))[0]}
    return {"kind": "messages", "bytes": point.size, "latency": point.metric == "latency", **cores}


def _with_hint(failure: Any) -> str:
    return f"{failure.reason}; {failure.hint}" if failure.hint else str(failure.reason)
