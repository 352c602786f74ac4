"""Settings of other programs that a trace suggests to try: channels of NCCL, SMs of kernels.

While a collective of NCCL runs, each of its channels holds an SM (a CU of RCCL). The trace says how many;
what the collective itself loses with fewer is only known by trying.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from elbowroom.stats.interval import Interval
from elbowroom.trace.overlap.document import Estimate, NextSetting
from elbowroom.trace.overlap.events import Events
from elbowroom.trace.overlap.exposure import Exposure

ENVIRONMENT, TUNER, GREEN_CONTEXT = "environment of NCCL", "tuner plug-in of NCCL", "kernels, green contexts"
_GRID = re.compile(r"grid (\d+)x(\d+)x(\d+)")
_CHANNELS = re.compile(r"(\d+) channels")
_COLLECTIVES = ("allreduce", "allgather", "reducescatter", "broadcast", "reduce")
_ALGORITHMS = ("nvls_tree", "nvls", "collnet_direct", "collnet_chain", "tree", "ring", "pat")
_PROTOCOLS = ("ll128", "ll", "simple")
UNKNOWN = "the trace does not say how many channels its collectives hold"
HEADER = "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff"
LARGEST = 2**63 - 1


def settings_of(events: Events, comm: Exposure, answer: Estimate) -> tuple[NextSetting, ...]:
    """What to try, each with the number from the trace; a value of None where the trace does not say it."""
    held = channels_of(events, comm)
    if not held:
        why = UNKNOWN if answer.grade != "nothing hidden" else "no communication is hidden"
        why = f"{why}. {gain(answer)}"
        return tuple(
            NextSetting(program=program, name=name, why=why)
            for program, name in ((ENVIRONMENT, "NCCL_MAX_CTAS"), (GREEN_CONTEXT, "num_sms"))
        )
    most = max(held.values())
    costs = gain(answer)
    fewer = max(most // 2, 1)
    steps = [
        NextSetting(program=ENVIRONMENT, name="NCCL_MAX_CTAS", value=fewer,
                why=f"collectives hold up to {most} channels while they are hidden; half of them is the next "
                f"value to try. {costs}"),
        NextSetting(program=ENVIRONMENT, name="NCCL_CTA_POLICY", value=1,
                why="from NCCL 2.27 on, the policy `efficiency` lets NCCL use as few channels as it needs; "
                f"here up to {most}. {costs}"),
    ]  # fmt: skip
    for kind, channels in held.items():
        if (row := _tuner_row(kind, max(channels // 2, 1))) is not None:
            why = f"{kind} holds {channels} channels while it is hidden. {costs}"
            steps.append(NextSetting(program=TUNER, name=row, value=max(channels // 2, 1), why=why))
    sms = events.multiprocessors
    why = "the trace does not say how many SMs the device has"
    if sms is not None and sms > most:
        why = (
            f"{most} of {sms} SMs are held while communication is hidden; kernels that fill all wait for them"
        )
    left = None if sms is None or sms <= most else sms - most
    return (*steps, NextSetting(program=GREEN_CONTEXT, name="num_sms", value=left, why=f"{why}. {costs}"))


def environment_text(settings: Sequence[NextSetting], source: str) -> str:
    """A file for a shell (`set -a; . FILE`); what the trace does not say is a comment."""
    lines = [f"# what to try next, from {source}"]
    for one in settings:
        if one.program != TUNER:
            assigned = f"{one.name}={one.value}" if one.value is not None else f"# {one.name}: not known"
            if one.program == GREEN_CONTEXT and one.value is not None:
                assigned = f"# {assigned}"
            lines += [f"# {one.program}: {one.why}", assigned]
    return "\n".join(lines) + "\n"


def tuner_text(settings: Sequence[NextSetting], source: str) -> str:
    """A configuration of NCCL's example tuner plug-in (NCCL_TUNER_CONFIG_FILE)."""
    rows = [one for one in settings if one.program == TUNER]
    lines = [f"# what to try next, from {source}", HEADER]
    for one in rows:
        lines += [f"# {one.why}", one.name]
    if not rows:
        lines.append("# no hidden collective says its channels, its algorithm and its protocol")
    return "\n".join(lines) + "\n"


def channels_of(events: Events, comm: Exposure) -> dict[str, int]:
    """By name of a kind of communication on devices that is hidden: the channels that it holds, the median of
    its hidden instances.
    """
    hidden = comm.shared > 0
    by_name: dict[str, list[int]] = {}
    for number in np.unique(events.kind[comm.event[hidden]]).tolist():
        one = events.classes[number]
        if (channels := _channels(one.detail)) is not None:
            count = int((events.kind[comm.event[hidden]] == number).sum())
            by_name.setdefault(one.name, []).extend([channels] * count)
    return {name: int(np.median(values)) for name, values in by_name.items()}


def _channels(detail: str) -> int | None:
    if match := _CHANNELS.search(detail):
        return int(match[1])
    if match := _GRID.search(detail):
        return int(match[1]) * int(match[2]) * int(match[3])
    return None


def _tuner_row(kind: str, channels: int) -> str | None:
    """A line of the plug-in's file; None where the name does not say collective, algorithm and protocol."""
    text = kind.lower().split("(")[0]
    words = text.split("_")
    collective = next((one for one in _COLLECTIVES if one in text.replace("_", "")), None)
    algorithm = next((one for one in _ALGORITHMS if one in text), None)
    protocol = next((one for one in _PROTOCOLS if one in words), None)
    if collective is None or algorithm is None or protocol is None:
        return None
    return f"{collective},0,{LARGEST},{algorithm},{protocol},{channels},-1,-1,-1,-1"


def gain(answer: Estimate) -> str:
    """What hiding costs, and so what a setting can gain at most, in a sentence without its full stop."""
    if answer.grade == "nothing hidden":
        return "Nothing is hidden in this trace, so there is nothing to gain"
    if answer.cost is None:
        return f"Hiding costs at most {answer.at_most_s:.3g} s in this trace, and the trace does not say more"
    cost: Interval = answer.cost
    bounds = f"{cost.value:.3g} s ({cost.low:.3g} to {cost.high:.3g})"
    return f"Hiding costs {bounds} in this trace; no more can be gained"
