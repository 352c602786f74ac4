"""The job description that `advise` takes (docs/guide/advise.md), from the steps of a profile.

What a profile cannot know is in `unknown`, and stands as comments in the text.
"""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec

from elbowroom.profile.analysis import Analysis
from elbowroom.profile.steps import Steps
from elbowroom.profile.summary import OverlapSummary

MOSTLY = 0.5
"""Share of the network time of nonblocking operations that counts as overlapped."""


class ProfiledJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job description: `data` as advise reads it, the same as TOML `text`, and what is not known."""

    data: dict[str, Any]
    text: str
    unknown: tuple[str, ...]


def job_of_steps(
    analysis: Analysis,
    steps: Steps,
    overlap: OverlapSummary,
    *,
    name: str = "profiled",
    cores: int | None = None,
    comp_node: int = 0,
    comm_node: int = 0,
    direction: Literal["receive", "send", "both"] = "receive",
) -> ProfiledJob:
    """What one step does on the node that sends most. `cores`: that compute there (None: one for each rank);
    `direction`: which messages count. The computation is given as the time that was measured.
    """
    ranks = int((analysis.profile.nodes_of == steps.node).sum())
    overlaps = overlap.achieved is not None and overlap.achieved >= MOSTLY
    counted = {
        "receive": steps.received.median,
        "send": steps.sent.median,
        "both": steps.received.median + steps.sent.median,
    }
    computing = cores or ranks
    data: dict[str, Any] = {
        "name": name,
        "step": {
            "t_comp": {"seconds": steps.computation.median, "cores": computing, "comp_node": comp_node},
            "comm_bytes": round(counted[direction]),
            "direction": direction,
        },
        "now": {
            "cores": computing,
            "comp_node": comp_node,
            "comm_node": comm_node,
            "overlap": overlaps,
        },
        "may": {"cores": "every", "comm_node": "every", "overlap": [True, False]},
    }
    unknown = _unknown(analysis, steps, ranks, cores, direction, overlap)
    return ProfiledJob(data=data, text=_toml(data, _measured(analysis, steps), unknown), unknown=unknown)


def _unknown(
    analysis: Analysis,
    steps: Steps,
    ranks: int,
    cores: int | None,
    direction: str,
    overlap: OverlapSummary,
) -> tuple[str, ...]:
    """What the reader has to check, one sentence each."""
    sentences = [
        "The NUMA nodes of the data (comp_node, comm_node) are not in a profile: check them.",
        "The memory traffic of the computation is not known: its time is given, no intensity.",
        "The time of the computation was measured beside the messages that were sent meanwhile.",
    ]
    if cores is None:
        sentences.append(f"Threads are not in a profile: one core for each of the {ranks} ranks is assumed.")
    if direction == "receive" and steps.sent.median > 0:
        sentences.append(f"{steps.sent.median:.0f} B that the node sends in a step are not counted.")
    if steps.sizes:
        sentences.append(
            f"Most bytes are in messages of {steps.sizes[0].bytes} B: give now.size if the model knows sizes."
        )
    if overlap.achieved is None:
        sentences.append("No nonblocking operation was recorded: overlap is taken to be absent.")
    if analysis.network.curve.source != "calibrated":
        sentences.append(f"The network's bandwidth is not calibrated ({analysis.network.curve.source}).")
    if not analysis.network.exact.all():
        sentences.append("Bytes of some collective operations are those of the usual algorithms.")
    return (*sentences, *(f"{note}." for note in analysis.profile.notes if note.startswith("partial")))


def _measured(analysis: Analysis, steps: Steps) -> str:
    duration, computation, network = (
        1e3 * one.median for one in (steps.duration, steps.computation, steps.network)
    )
    how = "between marks" if steps.found_by == "marks" else "by the sequence of calls"
    return (
        f"{steps.count} steps, recognised {how}, on {analysis.profile.names[steps.node]}: a step takes "
        f"{duration:.4g} ms, computes {computation:.4g} ms, and is {network:.4g} ms on the network."
    )


def _toml(data: dict[str, Any], measured: str, unknown: tuple[str, ...]) -> str:
    lines = [
        f"# {line}" for line in (measured, "Not known from the profile:", *(f"- {one}" for one in unknown))
    ]
    lines += ["", f"name = {_value(data['name'])}"]
    for table in ("step", "now", "may"):
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
