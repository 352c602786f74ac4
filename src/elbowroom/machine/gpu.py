"""What `gpu-bench facts` prints (docs/reference/gpu-bench.md), and the doctor's lines of a GPU. Pure."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from elbowroom.machine.state import Assessment, Failure, absent, ok, warn

CONNECTIONS = 32
"""Hardware queues that the programs ask for, unless CUDA_DEVICE_MAX_CONNECTIONS is set."""


class Unknown(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why a part is not known."""

    unknown: str
    hint: str = ""


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """The device. `capability` 90 is compute capability 9.0, `memory` in bytes, `node` None: unknown."""

    name: str
    pci: str
    sms: int
    capability: int
    memory: int
    exclusive: bool = False
    prohibited: bool = False
    node: int | None = None


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """PCIe generation and lanes now, and the most that device and slot can."""

    generation: int | None = None
    generation_max: int | None = None
    width: int | None = None
    width_max: int | None = None


class GpuClocks(msgspec.Struct, frozen=True, kw_only=True):
    """Clocks in MHz, now and at most."""

    sm: int | None = None
    sm_max: int | None = None
    memory: int | None = None
    memory_max: int | None = None


class Management(msgspec.Struct, frozen=True, kw_only=True):
    """What NVML says; `processes` are the ids of others on the device, None: not known."""

    driver: str
    link: Link
    clocks_mhz: GpuClocks
    processes: tuple[int, ...] | None = None


class GpuLibrary(msgspec.Struct, frozen=True, kw_only=True):
    """A library that was found, by its path."""

    path: str
    version: str = ""


class _DeviceFacts(msgspec.Struct, frozen=True, kw_only=True):
    cuda: str
    devices: int
    device: Device
    stand_in: bool
    batch_copies: bool
    graphs: bool = True
    connections: int = CONNECTIONS


class GpuFacts(_DeviceFacts, frozen=True, kw_only=True):
    """Everything of one device; Failure stands for what could not be had. `connections`: hardware queues."""

    management: Management | Failure
    compiler: GpuLibrary | Failure
    gemm: GpuLibrary | Failure


class _Printed(_DeviceFacts, frozen=True, kw_only=True):
    management: msgspec.Raw
    compiler: msgspec.Raw
    gemm: msgspec.Raw


def parse_gpu_facts(text: str | bytes) -> GpuFacts | Failure:
    """The document of `gpu-bench facts`. Raises msgspec.DecodeError where it is none."""
    raw = msgspec.Raw(text)
    missing = _missing(raw)
    if missing is not None:
        return missing
    facts = msgspec.structs.asdict(msgspec.json.decode(raw, type=_Printed))
    for name, kind in (("management", Management), ("compiler", GpuLibrary), ("gemm", GpuLibrary)):
        facts[name] = _missing(facts[name]) or msgspec.json.decode(facts[name], type=kind)
    return GpuFacts(**facts)


def _missing(raw: msgspec.Raw) -> Failure | None:
    try:
        part = msgspec.json.decode(raw, type=Unknown)
    except msgspec.ValidationError:
        return None
    return Failure(reason=part.unknown, hint=part.hint)


Look = Callable[[GpuFacts], Assessment]


def look_at_gpu(facts: GpuFacts | Failure, look: Look, *, first: bool = False) -> Assessment:
    """What `look` says; without a device, the `first` line has the reason and all have the hint."""
    if isinstance(facts, Failure):
        return absent(facts.reason if first else "there is no accelerator that can be used", facts.hint)
    return look(facts)


def device_line(facts: GpuFacts) -> Assessment:
    """Driver and device."""
    device = facts.device
    driver = facts.management.driver if isinstance(facts.management, Management) else ""
    capability = f"{device.capability // 10}.{device.capability % 10}"
    text = (
        f"{device.name}, {device.sms} SMs, compute capability {capability}, "
        f"{device.memory / 1e9:.1f} GB; driver {driver or 'of unknown version'}, CUDA {facts.cuda}"
    )
    if facts.stand_in:
        return warn(
            f"{text}: a stand-in for tests", "unset ELBOWROOM_CUDA: nothing is measured on a stand-in"
        )
    if device.prohibited:
        return warn(f"{text}: its compute mode prohibits programs", "ask its administrator for another mode")
    if not facts.batch_copies:
        return warn(
            f"{text}: copies inside the device use its SMs",
            "update NVIDIA's driver to CUDA 12.8 or newer: it can leave such copies to a copy engine",
        )
    if facts.connections < CONNECTIONS:
        return warn(
            f"{text}: CUDA_DEVICE_MAX_CONNECTIONS is {facts.connections}, and kernels may wait for others",
            f"unset it: elbowroom then uses {CONNECTIONS} hardware queues",
        )
    if not facts.graphs:
        return warn(
            f"{text}: without graphs, submitting small kernels and copies may limit their rates",
            "update NVIDIA's driver to CUDA 11.4 or newer",
        )
    return ok(f"{text}{f'; the first of {facts.devices} devices' if facts.devices > 1 else ''}")


def link_line(facts: GpuFacts) -> Assessment:
    """PCIe width and generation now, and the NUMA node."""
    node = facts.device.node
    near = "NUMA node unknown" if node is None else f"NUMA node {node}"
    if isinstance(facts.management, Failure):
        return absent(f"{facts.management.reason}; {near}", facts.management.hint)
    link = facts.management.link
    if link.generation is None or link.width is None:
        return absent(f"NVML does not know the link; {near}")
    text = f"PCIe generation {link.generation} x{link.width} now"
    if link.generation_max is not None and link.width_max is not None:
        text += f", at most generation {link.generation_max} x{link.width_max}"
    text += f"; {near}"
    if link.width_max is not None and link.width < link.width_max:
        return warn(text, "put the device into a wider slot: copies with the host get no more than this link")
    return ok(text)


def clocks_line(facts: GpuFacts) -> Assessment:
    """Clocks, which are read and never set."""
    if isinstance(facts.management, Failure):
        return absent(facts.management.reason, facts.management.hint)
    clocks = facts.management.clocks_mhz
    if clocks.sm is None or clocks.memory is None:
        return absent("NVML does not know the clocks")
    return ok(
        f"SMs {_clock(clocks.sm, clocks.sm_max)}, memory {_clock(clocks.memory, clocks.memory_max)} "
        "(they rise under load; read, never set)"
    )


def _clock(now: int, most: int | None) -> str:
    return f"{now} MHz" if most is None else f"{now} of {most} MHz"


def processes_line(facts: GpuFacts) -> Assessment:
    """Who else is on the device."""
    if isinstance(facts.management, Failure):
        return absent(facts.management.reason, facts.management.hint)
    others = facts.management.processes
    if others is None:
        return absent(
            "which processes are on the device is unknown: NVML does not say, or a container hides it"
        )
    if not others:
        return ok("no other process is on the device")
    listed = ", ".join(str(pid) for pid in others)
    word = "process is" if len(others) == 1 else "processes are"
    exclusive = ", which takes one process only" if facts.device.exclusive else ""
    return warn(
        f"{len(others)} other {word} on the device{exclusive} (ids {listed})",
        "wait until they end, or take another device",
    )


def compiler_line(facts: GpuFacts) -> Assessment:
    """Whether kernels can be compiled for this device: they have been."""
    if isinstance(facts.compiler, Failure):
        return absent(f"kernels cannot be compiled: {facts.compiler.reason}", facts.compiler.hint)
    return ok(f"kernels are compiled by NVRTC {facts.compiler.version} ({facts.compiler.path})")


def gemm_line(facts: GpuFacts) -> Assessment:
    """Whether matrix products are there."""
    if isinstance(facts.gemm, Failure):
        return absent(f"no matrix products: {facts.gemm.reason}", facts.gemm.hint)
    return ok(f"matrix products by cuBLASLt ({facts.gemm.path})")
