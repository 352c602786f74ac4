"""The job description that `advise` takes (docs/guide/advise.md), from the steps of a profile.

What a profile cannot know is in `unknown`, and stands as comments in the text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from elbowroom.errors import UsageError
from elbowroom.profile.analysis import Analysis, NodeAnalysis, analyse_nodes, summarise
from elbowroom.profile.steps import Steps, StepSearch, find_steps
from elbowroom.profile.summary import OverlapSummary

MOSTLY = 0.5
"""Share of the network time of nonblocking operations that counts as overlapped."""

NO_TRAFFIC = "The memory traffic of the computation is not known: its time is given, no intensity."
UNEVEN = 0.1
"""Imbalance from which on it is mentioned."""


class ProfiledSteps(NamedTuple):
    """A profile with its steps: what a job is made of. `inside`: of messages inside the only node."""

    analysis: Analysis
    steps: Steps
    overlap: OverlapSummary
    inside: bool
    hosts: tuple[str, ...]

    @property
    def message_bytes(self) -> int | None:
        """The size of the messages with most bytes; None without messages."""
        return self.steps.sizes[0].bytes if self.steps.sizes else None


def profiled_steps(
    directory: Path | str, *, curve: Path | str | None = None, communication_threads: bool = False
) -> ProfiledSteps:
    """The steps in a profile. UsageError where it holds no profile, no steps or no communication."""
    read = analyse_nodes(directory, curve, communication_threads=communication_threads)
    return steps_of_job(read, find_steps(read.analysis, of_all_ranks=read.inside), directory)


def steps_of_job(read: NodeAnalysis, search: StepSearch, directory: Path | str) -> ProfiledSteps:
    """The steps that were searched, for a job. UsageError where there are none, they send no data, or they
    compute nothing.
    """
    analysis, inside = read.analysis, read.inside
    if search.steps is None:
        raise UsageError(
            f"has no steps: {search.reason}",
            field="profile",
            value=str(directory),
            hint="profile more steps, or call MPI_Pcontrol(1) at the begin of each",
        )
    steps = search.steps
    if steps.received.mean + steps.sent.mean == 0:
        raise UsageError(
            f"has {steps.count} steps that send no data{'' if inside else ' between nodes'}",
            field="profile",
            value=str(directory),
            hint="no choice of cores, nodes or messages changes what such a program communicates",
        )
    if steps.computation.median <= 0:
        raise UsageError(
            "has steps that compute nothing outside MPI",
            field="profile",
            value=str(directory),
            hint="if other threads compute, say so: --other-threads-compute",
        )
    return ProfiledSteps(analysis, steps, summarise(analysis).overlap, inside, read.hosts)


class JobFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller knows and a profile does not. `cores`, `cores_other`: that compute on the first and on
    the second socket (None: one for each rank); `direction`: which messages count; `overlap` None: as
    recorded; `size`: of messages, where the model knows sizes; `may`: what may change (None: cores,
    comm_node, overlap); `verify`: the table of that name; `traffic`: B/s to and from memory, measured beside
    a known load; `notes`: more sentences on what is not known.
    """

    name: str = "profiled"
    cores: int | None = None
    cores_other: int = 0
    comp_node: int = 0
    comm_node: int = 0
    direction: Literal["receive", "send", "both"] = "receive"
    overlap: bool | None = None
    size: int | None = None
    may: dict[str, Any] | None = None
    verify: dict[str, str] | None = None
    traffic: float | None = None
    notes: tuple[str, ...] = ()


class ProfiledJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job description: `data` as advise reads it, the same as TOML `text`, and what is not known."""

    data: dict[str, Any]
    text: str
    unknown: tuple[str, ...]


def job_of_steps(
    analysis: Analysis,
    steps: Steps,
    overlap: OverlapSummary,
    facts: JobFacts = JobFacts(),  # noqa: B008
) -> ProfiledJob:
    """What one step does on the node that sends most, or on the only one: the trimmed mean of the time of
    its computation, as measured, and the bytes that most steps have.
    """
    cores = steps.ranks if facts.cores is None else facts.cores
    now: dict[str, Any] = {
        "cores": cores,
        **({"cores_other": facts.cores_other} if facts.cores_other else {}),
        "comp_node": facts.comp_node,
        "comm_node": facts.comm_node,
        **({} if facts.size is None else {"size": facts.size}),
        "overlap": overlaps(overlap) if facts.overlap is None else facts.overlap,
    }
    placed = {key: now[key] for key in ("cores", "cores_other", "comp_node") if key in now}
    seconds = computation_seconds(steps, cores + facts.cores_other)
    data: dict[str, Any] = {
        "name": facts.name,
        "step": {
            "t_comp": {"seconds": seconds, **placed},
            "comm_bytes": round(counted_bytes(steps, facts.direction)),
            "direction": facts.direction,
        },
        "now": now,
        "may": facts.may or {"cores": "every", "comm_node": "every", "overlap": [True, False]},
        **({"verify": facts.verify} if facts.verify else {}),
    }
    unknown = _unknown(analysis, steps, facts, overlap)
    measured = _measured(analysis, steps, seconds)
    if facts.traffic is not None:
        measured += f" It is as much of a load as {facts.traffic / 1e9:.3g} GB/s to and from memory."
    return ProfiledJob(data=data, text=_toml(data, measured, unknown), unknown=unknown)


def overlaps(overlap: OverlapSummary) -> bool:
    """Whether most of the network time of nonblocking operations was beside computation."""
    return overlap.achieved is not None and overlap.achieved >= MOSTLY


def computation_seconds(steps: Steps, cores: int) -> float:
    """T_M, the trimmed mean of the steps: of the mean rank; where ranks share cores, the time in which at
    least one of them computes.
    """
    return (steps.computing if cores < steps.ranks else steps.computation).trimmed


def counted_bytes(steps: Steps, direction: str) -> float:
    """Bytes of a step's messages in that direction: those that most steps have, else the mean."""
    parts = {"receive": (steps.received,), "send": (steps.sent,), "both": (steps.received, steps.sent)}
    return sum(part.usual for part in parts[direction])


def _unknown(analysis: Analysis, steps: Steps, facts: JobFacts, overlap: OverlapSummary) -> tuple[str, ...]:
    """What the reader has to check, one sentence each."""
    sentences = [
        "The NUMA nodes of the data (comp_node, comm_node) are not in a profile: check them.",
        *([] if facts.traffic is not None else [NO_TRAFFIC]),
        "The time of the computation was measured beside the messages that were sent meanwhile.",
        *facts.notes,
    ]
    if facts.cores is None:
        sentences.append(
            f"Threads are not in a profile: one core for each of the {steps.ranks} ranks is assumed."
        )
    elif facts.cores + facts.cores_other < steps.ranks:
        sentences.append(
            f"{steps.ranks} ranks share the computing cores: T_M is the time in which at least one of them "
            "computes."
        )
    if steps.imbalance > UNEVEN and (facts.cores is None or facts.cores + facts.cores_other >= steps.ranks):
        sentences.append(
            f"One rank computes {100 * steps.imbalance:.0f} % longer than the mean, which the job does not "
            "describe."
        )
    if (
        facts.direction == "receive"
        and steps.sent.mean > 0
        and analysis.profile.nodes != analysis.profile.size
    ):
        sentences.append(f"{steps.sent.mean:.0f} B that the node sends in a step are not counted.")
    if steps.sizes and facts.size is None:
        sentences.append(
            f"Most bytes are in messages of {steps.sizes[0].bytes} B: give now.size if the model knows sizes."
        )
    if overlap.achieved is None and facts.overlap is None:
        sentences.append("No nonblocking operation was recorded: overlap is taken to be absent.")
    if analysis.polling:
        sentences.append(
            f"{analysis.polling} ranks test their operations all the time: between post and completion they "
            "are taken to wait."
        )
    if analysis.network.curve.source != "calibrated":
        sentences.append(f"The network's bandwidth is not calibrated ({analysis.network.curve.source}).")
    if not analysis.network.exact.all():
        sentences.append("Bytes of some collective operations are those of the usual algorithms.")
    return (*sentences, *(f"{note}." for note in analysis.profile.notes if note.startswith("partial")))


def _measured(analysis: Analysis, steps: Steps, seconds: float) -> str:
    duration, network = (1e3 * one.trimmed for one in (steps.duration, steps.network))
    how = "between marks" if steps.recognised_by == "marks" else "by the sequence of calls"
    return (
        f"{steps.count} steps, recognised {how}, on {analysis.profile.names[steps.node]}: a step takes "
        f"{duration:.4g} ms, computes {1e3 * seconds:.4g} ms, and is {network:.4g} ms on the network."
    )


def _toml(data: dict[str, Any], measured: str, unknown: tuple[str, ...]) -> str:
    lines = [
        f"# {line}" for line in (measured, "Not known from the profile:", *(f"- {one}" for one in unknown))
    ]
    lines += ["", f"name = {_value(data['name'])}"]
    for table in ("step", "now", "may", "verify"):
        if table in data:
            lines += ["", f"[{table}]", *(f"{key} = {_value(value)}" for key, value in data[table].items())]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return '"' + re.sub(r'["\\\x00-\x1f\x7f]', lambda one: f"\\u{ord(one[0]):04x}", value) + '"'
        case dict():
            return "{" + ", ".join(f"{key} = {_value(one)}" for key, one in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_value, value)) + "]"
        case _:
            return repr(value)
