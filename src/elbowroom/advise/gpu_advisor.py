"""Advice for a step of an accelerator: who moves the bytes, with how many SMs, from where, beside how many
cores.

Setups are compared by their draws, so that what two have in common cancels. What the draws cannot tell apart
is said to make no difference.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from elbowroom.advise.gpu_job import (
    GpuAdvice,
    GpuAnswer,
    GpuConfiguration,
    GpuJob,
    GpuSteps,
    setups_of,
    steps,
)
from elbowroom.errors import UsageError
from elbowroom.models.document import Document
from elbowroom.models.flow.law import Array
from elbowroom.models.gpu.case import LINKS
from elbowroom.models.gpu.model import GpuModel
from elbowroom.models.load import Computing, Copy, Load
from elbowroom.models.predict import FittedModel
from elbowroom.models.registry import accelerator
from elbowroom.quantities import percent, short_time
from elbowroom.stats.interval import Interval
from elbowroom.version import __version__

ENDS = (5.0, 95.0)
"""Percentiles of a 90 % interval."""


def advise_gpu(document: Document, job: GpuJob, *, model: str = "") -> GpuAdvice:
    """How a step should run on the accelerator of a document that has one.

    UsageError where no setup that the job may choose can be answered, or the present one cannot.
    """
    device: GpuModel = accelerator().model(document)
    part = device.part
    setups, left_out = setups_of(device, job)
    if not setups:
        reasons = "; ".join(left_out) or "no way moves data so"
        raise UsageError(
            f"the model cannot answer any setup of the job ({reasons})",
            field="gpu.ways", value=list(job.ways), hint="measure them: elbowroom run gpu-overlap",
        )  # fmt: skip
    known = steps(device, job, setups)
    order = [int(place) for place in np.argsort(known.totals[0], kind="stable")]
    best = _simplest(known, order)
    now = None if job.now is None else known.place(job.now)
    gain = None if now is None else _gain(known, best, now)
    significant = gain is not None and gain.low > 0
    chosen = best if now is None or significant else now
    return GpuAdvice(
        elbowroom=__version__,
        model=model,
        device=part.device,
        sms=part.sms,
        origin=part.origin,
        job=job,
        now=None if now is None else _configuration(known, now),
        advised=_configuration(known, chosen),
        gain=gain,
        significant=significant,
        sentence=_sentence(known, best, now, gain),
        answers=(
            _sms(known, order),
            _way(known, order),
            _node(known, order, job),
            _cores(document, device, job),
        ),
        configurations=tuple(_configuration(known, place) for place in order),
        left_out=left_out,
        notes=_notes(known, best),
    )


def _interval(values: Array) -> Interval:
    low, high = np.percentile(values, ENDS)
    value = float(values[0])
    return Interval(value=value, low=min(float(low), value), high=max(float(high), value))


def _gain(known: GpuSteps, better: int, other: int) -> Interval:
    """The share of the other's time that the better one saves."""
    return _interval(1 - known.totals[:, better] / known.totals[:, other])


def _simplest(known: GpuSteps, order: Sequence[int]) -> int:
    """The best setup; of those that cannot be told from it a copy engine, then the one with fewest SMs."""
    alike = [place for place in order if place == order[0] or _gain(known, order[0], place).low <= 0]
    ways = {"copy": 0, "planned": 1, "sm_copy": 2}
    # Whose interval is wide cannot be told from anything: it must itself be good.
    near = [place for place in alike if known.totals[0, place] <= known.totals[0, order[0]] * NEAR]
    return min(near, key=lambda place: (ways[known.setups[place].way], known.setups[place].sms))


NEAR = 1.01
"""A setup this much slower at most may stand for the best one that it cannot be told from."""


def _configuration(known: GpuSteps, place: int) -> GpuConfiguration:
    return GpuConfiguration(
        setup=known.setups[place],
        total=_interval(known.totals[:, place]),
        kept=float(known.kept[0, place]),
        mover_kept=float(known.mover_kept[0, place]),
        mover_alone=float(known.mover_alone[0, place]),
        flags=known.flags[place],
    )


def _sentence(known: GpuSteps, best: int, now: int | None, gain: Interval | None) -> str:
    setup, total = known.setups[best], float(known.totals[0, best])
    if now is None or gain is None:
        return f"Best of {len(known.setups)} setups: {setup.text()}; a step then takes {short_time(total)}."
    if best == now:
        return "Keep the present setup: no other one is faster."
    if gain.low <= 0:
        return f"Keep the present setup: {setup.text()} makes no difference that the model can tell."
    span = f"{percent(gain.low)} to {percent(gain.high)}"
    return f"Use {setup.text()}: it saves {percent(gain.value)} ({span}) of the step's time."


def _compared(
    question: str, known: GpuSteps, order: Sequence[int], values: Sequence[str | int], words: str
) -> GpuAnswer:
    """The best of each value, the best value, and whether it can be told from the others; `order`: setups,
    best first, `values` of each.
    """
    first: dict[str | int, int] = {}
    for place in order:
        first.setdefault(values[place], place)
    (value, best), *others = first.items()
    if not others:
        return GpuAnswer(
            question=question, advised=value, reason=f"{words} {value}: there is no other choice"
        )
    gains = {other: _gain(known, best, place) for other, place in others}
    alike = tuple(other for other, gain in gains.items() if gain.low <= 0)
    gain = gains[others[0][0]]
    if alike:
        reason = f"no difference that the model can tell between {value} and {', '.join(map(str, alike))}"
    else:
        reason = f"{words} {value} saves {percent(gain.value)} beside {others[0][0]}"
    return GpuAnswer(
        question=question, advised=value, reason=reason, gain=gain, significant=not alike, alike=alike
    )


def _sms(known: GpuSteps, order: Sequence[int]) -> GpuAnswer:
    with_sms = [place for place in order if known.setups[place].way != "copy"]
    if not with_sms:
        return GpuAnswer(question="sms", advised=0, reason="no SMs move data, so none are left to them")
    way = known.setups[with_sms[0]].way
    places = [place for place in with_sms if known.setups[place].way == way]
    words = "SMs left out of the plan:" if way == "planned" else "SMs that copy:"
    return _compared("sms", known, places, [setup.sms for setup in known.setups], words)


def _way(known: GpuSteps, order: Sequence[int]) -> GpuAnswer:
    names = {"copy": "copy engine", "sm_copy": "kernel", "planned": "kernel"}
    return _compared("way", known, order, [names[setup.way] for setup in known.setups], "the")


def _node(known: GpuSteps, order: Sequence[int], job: GpuJob) -> GpuAnswer:
    if job.moves not in LINKS:
        return GpuAnswer(question="node", advised=None, reason="n/a: the copies stay inside the device")
    places = [place for place in order if known.setups[place].way == "copy"]
    if not places:
        return GpuAnswer(question="node", advised=None, reason="n/a: no copies of an engine were compared")
    if known.setups[places[0]].node < 0:
        return GpuAnswer(
            question="node", advised=None, reason="n/a: runs did not say on which NUMA node the buffer was"
        )
    return _compared("node", known, places, [setup.node for setup in known.setups], "a buffer on node")


def _cores(document: Document, device: GpuModel, job: GpuJob) -> GpuAnswer:
    """The most cores beside which copies surely keep `keep`."""

    def missing(reason: str) -> GpuAnswer:
        return GpuAnswer(question="cores", advised=None, reason=f"n/a: {reason}")

    flow, most = document.models.flow, document.machine.cores_first_socket
    if job.moves not in LINKS:
        return missing("copies inside the device do not touch the host's memory")
    if flow is None:
        return missing("the model has no FLOW: fit a run of the plan model together with one of gpu")
    if flow.load is None or "copies" not in flow.load.measured:
        return missing("copies beside computing cores were not measured: elbowroom run gpu")
    nodes = [node for node in device.nodes(job.moves) if 0 <= node < document.machine.nodes]
    if not nodes or not job.comp_node < document.machine.nodes:
        return missing(
            "no copy was measured with a buffer on a node of the model, or there is no such comp_node"
        )
    node = max(nodes, key=lambda at: device.link(job.moves, at).value)
    copy = Copy(node=node, demand=device.link(job.moves, node).value)
    counts = range(1, min(job.cores or most, most) + 1)
    loads = [
        Load(computing=(Computing(socket=0, node=job.comp_node, count=count),), copies=(copy,))
        for count in counts
    ]
    kept = [
        Interval(value=c.value / copy.demand, low=c.low / copy.demand, high=c.high / copy.demand)
        for c in (item.copies[0] for item in FittedModel(document, "flow").predict_loads(loads))
    ]
    surely = _while([item.low >= job.keep for item in kept])
    perhaps = _while([item.high >= job.keep for item in kept])
    reason = (
        f"beside {surely} computing cores copies keep {percent(job.keep)} at the low end of their interval, "
        f"beside {perhaps} at its high end (data of the cores on node {job.comp_node}, buffer on node {node})"
    )
    return GpuAnswer(
        question="cores", advised=surely, reason=reason, significant=surely == perhaps,
        alike=tuple(range(surely + 1, perhaps + 1)),
    )  # fmt: skip


def _while(true: Sequence[bool]) -> int:
    """How many are true before the first that is not."""
    return next((place for place, item in enumerate(true) if not item), len(true))


def _notes(known: GpuSteps, best: int) -> tuple[str, ...]:
    return tuple(f"the advised setup: {flag}" for flag in known.flags[best])


HEADER = "colltype,minbytes,maxbytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff"

ANY = -1

LONGEST = 250
"""Characters of a line: the plugin's buffer has 256."""


def nccl_tuner(advice: GpuAdvice) -> str:
    """The text of the file."""
    collective = advice.job.nccl
    virtual = ", a virtual machine" if advice.origin == "virtual" else ""
    lines = [
        f"# elbowroom {advice.elbowroom}: {advice.device or 'accelerator'}, {advice.sms} SMs{virtual}",
        f"# {HEADER}",
    ]
    channels, reason = _channels(advice)
    lines.append(f"# channels: {reason}")
    if collective is None:
        lines.append("# n/a: the job names no collective; add [gpu.nccl] with colltype, algorithm, protocol")
    elif collective.algorithm is None or collective.protocol is None:
        lines.append(
            f"# n/a: {collective.colltype} without algorithm and protocol, which elbowroom does not know"
        )
    else:
        fields = (
            collective.colltype, collective.minbytes, collective.maxbytes, collective.algorithm,
            collective.protocol, channels, collective.nodes, collective.ranks, ANY, ANY,
        )  # fmt: skip
        lines.append(",".join(map(str, fields)))
    return "".join(f"{line[:LONGEST]}\n" for line in lines)


def _channels(advice: GpuAdvice) -> tuple[int, str]:
    """The number of channels, and why."""
    answer = next(item for item in advice.answers if item.question == "sms")
    if not isinstance(answer.advised, int) or answer.advised < 1:
        return ANY, f"n/a, NCCL's own choice: {answer.reason}"
    return answer.advised, answer.reason
