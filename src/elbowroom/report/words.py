"""Texts of the report: meanings of flags and statuses, how the run was measured, and what is unknown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from elbowroom.quantities import number

FLAGS = {
    "migrated": "A thread moved to another core during a sample.",
    "wrong_node": (
        "Memory was on another NUMA node than requested, so the placement is wrong; the sample is void."
    ),
    "not_overlapped": (
        "Computation and communication were not both active for the whole sample; the sample is void."
    ),
    "validation_failed": "Arrays or received messages had wrong values afterwards; the sample is void.",
    "too_short": "A sample was shorter than 20 ticks of the clock or 100 clock calls; the sample is void.",
    "scheduling": (
        "Two threads shared one core: the value measures the time slices of the scheduler, not memory."
    ),
    "shared_comm_core": "Both communicating ranks share one core of one host and yield to each other.",
    "steal": "The hypervisor took CPU time away from this machine during the measurement (steal).",
    "frequency_moved": (
        "The frequency of a core differed by more than 2 % between alone and together: "
        "part of the difference comes from the frequency."
    ),
    "settings_changed": (
        "A frequency, turbo or the governor did not stay as it was set on a host; the sample is void."
    ),
    "sampling_disturbs": (
        "All cores were in use, so the thread that samples frequencies took time from one of them."
    ),
    "counter_suspect": "A hardware counter and the counted bytes differ by more than 20 %, so the counter is "
    "not used.",
    "working_set_small": (
        "The computing arrays are smaller than four times the last-level cache, so part of the traffic "
        "stays in the cache."
    ),
    "region_capped": "Fewer message buffers than the reuse policy requires, because memory is short.",
    "stand_in": "A simulated GPU driver answered: its rates are made up, and nothing was measured.",
    "shared_sms": "Blocks that should occupy one SM each shared some SMs.",
    "engine_unknown": (
        "It is unknown whether copy engines or SMs made the copies: no kernel was compiled to find out."
    ),
    "not_steady": "The clock of the GPU's SMs or its link did not become steady before counting began.",
    "short_phases": "Phases were shorter than 0.5 s, the shortest time for which GPU results are repeatable.",
    "no_graph": (
        "The GPU driver built no graph of the small operations, so the time to submit them "
        "may limit their rate."
    ),
    "throttled": "The GPU ran below its highest clock, for the reason that NVML gives.",
    "pages_unknown": "The kernel does not report the NUMA node of pinned pages.",
    "virtual": "A virtual machine computed the value from a model with noise; nothing was measured.",
    "void": "Number of invalid samples. They are stored in the run folder and left out of summaries.",
    "not_stable": (
        "Number of samples that reached no steady state in time; they are averages over whole windows."
    ),
    "imported": "Another program measured the values; the file has one value per bandwidth.",
    "drift": "The baseline measured again at the end differs by 5 % or more and lies outside d1 to d9.",
}
NO_EXPLANATION = "Unknown to this version of elbowroom. The release that measured the run explains it."
STATUSES = {
    "ok": "Measured in a steady state.",
    "not_stable": "Too many samples reached no steady state in time; values are averages over whole windows.",
    "failed": "Not measured: a rank failed or hung, or all samples are void. The point gives the reason.",
    "incomplete": "Fewer repetitions than planned.",
    "void": "Invalid (no overlap, failed validation, or samples too short); left out of summaries.",
    "n/a": "Not available on this machine. The point gives the reason.",
}
PROTOCOL = (
    "Each repetition of a point measures computation alone (A), communication alone (B) and both together "
    "(AB), "
    "interleaved, so that slow changes of the machine affect all three equally. A sample of both together is "
    "valid only if all computing threads and the communication thread were active throughout: the "
    "computation runs until it is stopped, and the communication starts once all "
    "computing threads are running. "
    "Each window is measured in a steady state; the warm-up uses the same buffers and sizes."
)
STEPS = (
    " Points of an application time whole steps, each in one variant, in random order within a repetition: "
    "`none` only computes (A), `communication` only communicates (B), `apart` does one after the other, and "
    "`overlap` both at the same time (AB). Their values are durations."
)
IMPORT = (
    "Another program measured the values, one per bandwidth; they were imported from a "
    "file. The file does not "
    "say how or how often they were measured, or what state the machine was in."
)
SIMULATION = (
    "Nothing was measured. A virtual machine computed every phase of every repetition: computation alone "
    "(A), communication alone (B) and both together (AB) follow from the model of that machine, plus random "
    "noise for each value (elbowroom help virtual)."
)
SUMMARY = (
    "Values are medians; d1 and d9 are the first and last decile; 95 % intervals are in "
    "parentheses. Bandwidths "
    "are in MB/s (1 MB = 1e6 B); a latency, in µs, is half of a round trip. Kept = "
    "together/alone for a rate and "
    "alone/together for a latency: 1 means undisturbed, 0.69 means a loss of 31 %. Noise "
    "can push it above 1. "
    "Memory traffic counts a regular store twice (read and write), unless a finding above "
    "gives a measured factor."
)
# Fields of a manifest in the order of the page: label, and the keys that may hold it.
FACTS = (
    ("plan", ("plan.name",)),
    ("experiment", ("plan.experiment",)),
    ("command line", ("command",)),
    ("elbowroom", ("elbowroom",)),
    ("started", ("created",)),
    ("finished", ("finished",)),
    ("resumed", ("resumed",)),
    ("launcher", ("launcher",)),
    ("launch command", ("launch",)),
    ("seed of the random order", ("seed",)),
    ("reversed order", ("reverse",)),
    ("repetitions", ("plan.repetitions",)),
    ("sequence of a repetition", ("plan.sequence",)),
    ("minimum window (s)", ("plan.window",)),
    ("steady state", ("plan.steady",)),
    ("wall time (s)", ("wall_s",)),
    ("time inside windows (s)", ("measured_s",)),
    ("bandwidths of the virtual machine", ("hello.virtual.definition.origin",)),
    ("truth of the virtual machine", ("hello.virtual.definition.truth",)),
    ("relative noise", ("hello.virtual.noise",)),
    ("seed of the noise", ("hello.virtual.seed",)),
    ("MPI", ("hello.mpi.library", "mpi.library")),
    ("MPI standard", ("hello.mpi.standard", "mpi.standard")),
    ("MPI threads", ("hello.mpi.thread_level", "mpi.thread_level")),
    ("transport", ("hello.mpi.transport", "mpi.transport")),
    ("clock", ("hello.clock",)),
    ("hwloc", ("hello.hwloc.version",)),
    ("probe", ("hello.version",)),
)
ABSENT = ("n/a", "unknown", "absent")


def flag_meanings(flags: Iterable[str]) -> list[tuple[str, str]]:
    """Explains each flag that occurs, without its count or side (`void:3`, `drift:comp`)."""
    names = sorted({flag.partition(":")[0] for flag in flags})
    return [(name, FLAGS.get(name, NO_EXPLANATION)) for name in names]


def status_meanings(statuses: Iterable[str]) -> list[tuple[str, str]]:
    """Each status that occurs, once, with its explanation."""
    return [(status, STATUSES.get(status, NO_EXPLANATION)) for status in sorted(set(statuses))]


def facts(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What the manifest says about the measurement, as (label, text) pairs."""
    result = []
    for label, places in FACTS:
        values = (_find(manifest, place) for place in places)
        value = next((v for v in values if v not in (None, "", {}, [], ())), None)
        if value is not None:
            result.append((label, plain(value)))
    return result


def protocol(manifest: Mapping[str, Any]) -> str:
    """How the run was measured; unknown for imported values."""
    if manifest.get("launcher") == "imported":
        return IMPORT
    runs = any(point.get("application") for point in manifest.get("points", ()))
    return (SIMULATION if _is_virtual(manifest) else PROTOCOL) + STEPS * runs


def _is_virtual(manifest: Mapping[str, Any]) -> bool:
    return str(manifest.get("launcher")).startswith("virtual:")


def transport(manifest: Mapping[str, Any], hosts: int) -> str:
    """One sentence on the transport of messages; says if they stayed in one host (method.md, rule 16)."""
    if manifest.get("launcher") == "imported":
        return "The transport of the messages is unknown."
    if _is_virtual(manifest):
        return "No messages were sent: the machine and the network are simulated."
    carrier = str(_find(manifest, "hello.mpi.transport") or _find(manifest, "mpi.transport") or "unknown")
    name = f" ({carrier})" if carrier != "unknown" else ""
    if hosts <= 1 or carrier.startswith("shm"):
        return (
            "Both ranks ran on one host: the CPU copies messages through shared memory or the loopback device"
            f"{name}; no network card transfers them. The run measures contention for that host's memory."
        )
    if not name:
        return f"Messages went between {hosts} hosts; their transport is unknown."
    return f"Messages went between {hosts} hosts{name}."


def plain(value: object) -> str:
    """A value of a manifest or a machine state as one line of text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return number(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{str(key).replace('_', ' ')} {plain(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        # A command line is words, everything else a list.
        return (" " if all(isinstance(item, str) for item in value) else ", ").join(
            plain(item) for item in value
        )
    return "unknown" if value is None else str(value)


def known_and_unknown(state: Mapping[str, Any]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """A machine state or the observers, split into known (what, value) and unknown (what, why) pairs.

    Unknown is `{"unknown": why}`, `{"status": "n/a", "reason": why}`, None, or one of the words of ABSENT.
    """
    known: list[tuple[str, str]] = []
    unknown: list[tuple[str, str]] = []
    for key, value in state.items():
        name = str(key).replace("_", " ")
        if isinstance(value, Mapping) and set(value) == {"unknown"}:
            unknown.append((name, str(value["unknown"])))
        elif isinstance(value, Mapping) and str(value.get("status", "")) in ABSENT:
            unknown.append((name, str(value.get("reason") or "no reason recorded")))
        elif value is None or (isinstance(value, str) and value in ABSENT):
            unknown.append((name, "no reason recorded"))
        elif isinstance(value, Mapping) and any(isinstance(item, Mapping) for item in value.values()):
            inner_known, inner_unknown = known_and_unknown(value)
            known += [(f"{name}: {what}", text) for what, text in inner_known]
            unknown += [(f"{name}: {what}", why) for what, why in inner_unknown]
        else:
            known.append((name, plain(value)))
    return known, unknown


def _find(manifest: Mapping[str, Any], place: str) -> Any:
    value: Any = manifest
    for key in place.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value
