"""What the page says in words: what flags and statuses mean, how it was measured, what is unknown and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from elbowroom.draw import numbers
from elbowroom.stats.result import Finding

FLAGS = {
    "migrated": "A thread was on another core at the end of a sample than at its start.",
    "wrong_node": (
        "Memory was found on another NUMA node than asked for, so the placement is not the one written; void."
    ),
    "not_overlapped": (
        "Computation and communication were not both active for the whole sample; the sample is void."
    ),
    "validation_failed": "Arrays or received messages held wrong values afterwards; the sample is void.",
    "too_short": "A sample lasted less than 20 ticks of the clock or 100 clock calls; the sample is void.",
    "scheduling": "Two threads shared one core: this measures the scheduler's time slices, not the memory.",
    "shared_comm_core": "Both communicating ranks share a core of one host, and yield to each other.",
    "steal": "The hypervisor took processor time away while this was measured.",
    "frequency_moved": (
        "A core's frequency differed by more than 2 % between alone and together; "
        "part of the difference is frequency."
    ),
    "counter_suspect": "A hardware counter disagreed by more than 20 % with the bytes counted; it is not "
    "used.",
    "working_set_small": (
        "The computing arrays are smaller than four times the last-level cache: part of the traffic stays "
        "in it."
    ),
    "region_capped": "Fewer message buffers than the reuse policy wants, for lack of memory.",
    "virtual": "A virtual machine answered: the value follows from a law and noise, nothing was measured.",
    "void": "So many samples broke a rule; they are kept in the run folder and not summarised.",
    "not_stable": "So many samples found no steady state in time; their values are those of whole windows.",
    "imported": "The values come from a file: one for each bandwidth, measured by something else.",
    "drift": "The baseline at the end of the run is 5 % or more off, and outside d1 to d9.",
}
NO_EXPLANATION = "This version of elbowroom has no explanation for it; the release that measured it has."
STATUSES = {
    "ok": "Measured in a steady state.",
    "not_stable": "Too many samples found no steady state in time; the values are those of whole windows.",
    "failed": "Not measured: a rank failed or hung, or every sample is void. The reason is with the point.",
    "incomplete": "Fewer repetitions than asked for.",
    "void": "A rule was broken (overlap, validation, length of samples); not summarised.",
    "n/a": "This machine cannot answer this point; the reason is with the point.",
}
PROTOCOL = (
    "Each repetition of a point measures computation alone (A), communication alone (B) and both together "
    "(AB), "
    "interleaved, so that slow changes of the machine touch all three alike. A sample of both together "
    "counts "
    "only if every computing thread and the communication thread were active for the whole of it: the "
    "computation "
    "runs until told to stop, and the communication starts when all computing threads run. Each window is "
    "measured in a steady state; warm-up uses the same buffers and sizes."
)
STEPS = (
    " Points of the application time whole steps of one variant each, in random order inside each "
    "repetition: none computes only (A), communication exchanges only (B), apart does one after the other, "
    "overlap both at once (AB); their values are durations."
)
IMPORT = (
    "The values were measured by something else and imported from a file, one for each bandwidth: how often "
    "and how they were measured, and in what state the machine was, the file does not tell."
)
SIMULATION = (
    "Nothing was measured. A virtual machine answered each phase of each repetition at once: computation "
    "alone (A), communication alone (B) and both together (AB) follow from the law of that machine, and "
    "every value has noise of its own (docs/virtual.md)."
)
SUMMARY = (
    "Values are medians; d1 and d9 are the first and last decile; brackets are 95 % bootstrap intervals. "
    "Bandwidths are in MB/s with MB = 1e6 B; a latency is half the round trip. Kept is together/alone of a "
    "rate and "
    "alone/together of a latency: 1 always means undisturbed. Nothing is clamped: a value above 1 is "
    "printed as it is."
)
# What a manifest may say, in the order the page shows it: label, and the places it may stand.
FACTS = (
    ("plan", ("plan.name",)),
    ("experiment", ("plan.experiment",)),
    ("command line", ("command",)),
    ("elbowroom", ("elbowroom",)),
    ("started", ("created",)),
    ("finished", ("finished",)),
    ("resumed", ("resumed",)),
    ("launcher", ("launcher",)),
    ("launched as", ("launch",)),
    ("seed of the random order", ("seed",)),
    ("order reversed", ("reverse",)),
    ("repetitions", ("plan.repetitions",)),
    ("sequence of a repetition", ("plan.sequence",)),
    ("window, at least (s)", ("plan.window",)),
    ("steady state", ("plan.steady",)),
    ("wall time (s)", ("wall_s",)),
    ("of which inside windows (s)", ("measured_s",)),
    ("bandwidths of the virtual machine", ("hello.virtual.definition.origin",)),
    ("its truth", ("hello.virtual.definition.truth",)),
    ("its noise, relative", ("hello.virtual.noise",)),
    ("seed of its noise", ("hello.virtual.seed",)),
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
    """Each flag that occurs, once and without its count or side (`void:3`, `drift:comp`), with its
    explanation.
    """
    names = sorted({flag.partition(":")[0] for flag in flags})
    return [(name, FLAGS.get(name, NO_EXPLANATION)) for name in names]


def status_meanings(statuses: Iterable[str]) -> list[tuple[str, str]]:
    """Each status that occurs, once, with its explanation."""
    return [(status, STATUSES.get(status, NO_EXPLANATION)) for status in sorted(set(statuses))]


def facts(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What the manifest tells of the measurement, as (label, text); what it does not tell is left out."""
    result = []
    for label, places in FACTS:
        found = (_find(manifest, place) for place in places)
        value = next((v for v in found if v not in (None, "", {}, [], ())), None)
        if value is not None:
            result.append((label, plain(value)))
    return result


def protocol(manifest: Mapping[str, Any]) -> str:
    """How the run was measured; of imported values that is not known."""
    if manifest.get("launcher") == "imported":
        return IMPORT
    runs = any(point.get("application") for point in manifest.get("points", ()))
    return (SIMULATION if _is_virtual(manifest) else PROTOCOL) + STEPS * runs


def _is_virtual(manifest: Mapping[str, Any]) -> bool:
    return str(manifest.get("launcher")).startswith("virtual:")


def transport(manifest: Mapping[str, Any], hosts: int) -> str:
    """One sentence on what carried the messages; messages inside one host are labelled as such (METHOD.md,
    rule 16).
    """
    if manifest.get("launcher") == "imported":
        return "What carried the messages is unknown."
    if _is_virtual(manifest):
        return "No message was sent: the machine and the network are simulated."
    found = str(_find(manifest, "hello.mpi.transport") or _find(manifest, "mpi.transport") or "unknown")
    name = f" ({found})" if found != "unknown" else ""
    if hosts <= 1 or found.startswith("shm"):
        return (
            f"Both ranks ran on one host: messages are copies by the CPU through shared memory or the "
            f"loopback{name}, "
            "not transfers by a network card. What is measured is contention for the memory of that host."
        )
    if not name:
        return f"Messages went between {hosts} hosts; which transport carried them is unknown."
    return f"Messages went between {hosts} hosts{name}."


def plain(value: object) -> str:
    """A value of a manifest or a machine state as one line of text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return numbers.number(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{str(key).replace('_', ' ')} {plain(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        # A command line is words, everything else a list.
        return (" " if all(isinstance(item, str) for item in value) else ", ").join(
            plain(item) for item in value
        )
    return "unknown" if value is None else str(value)


def known_and_unknown(state: Mapping[str, Any]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """A machine state or the observers, split into (what, value) that are known and (what, why) that are not.

    Not known is `{"unknown": why}`, `{"status": "n/a", "reason": why}`, None, or one of the words of ABSENT.
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


def finding_values(finding: Finding) -> list[tuple[str, str]]:
    """A finding's numbers as (name, text); `x`, `x_low`, `x_high` (or a single value with `low`, `high`)
    become one interval. What was not found (None) is said in the finding's text and has no number.
    """
    values = {name: value for name, value in finding.values.items() if value is not None}
    plain_names = [
        name for name in values if name not in ("low", "high") and not name.endswith(("_low", "_high"))
    ]
    result = []
    for name in plain_names:
        keys = (f"{name.removesuffix('_kept')}_low", f"{name.removesuffix('_kept')}_high")
        if not all(key in values for key in keys) and name in ("kept", "value", "ratio", "change"):
            keys = ("low", "high")
        bounds = [values.get(key) for key in keys]
        value = values[name]
        if isinstance(value, int | float) and all(isinstance(b, int | float) for b in bounds):
            result.append(
                (
                    name.replace("_", " "),
                    numbers.interval(value, *(float(b) for b in bounds if b is not None)),
                )
            )
            for key in keys:
                values.pop(key)
        else:
            result.append((name.replace("_", " "), _finding_value(name, value)))
    rest = [name for name in finding.values if name in values and name not in plain_names]
    return result + [(name.replace("_", " "), _finding_value(name, values[name])) for name in rest]


def _finding_value(name: str, value: float | int | str) -> str:
    if isinstance(value, int | float) and ("size" in name or name.endswith("bytes")):
        return numbers.size(value)
    return numbers.number(value) if isinstance(value, float) else str(value)


def _find(manifest: Mapping[str, Any], place: str) -> Any:
    value: Any = manifest
    for key in place.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value
