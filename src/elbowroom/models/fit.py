"""From curves to the document M.json: every model that they allow, and where not to trust it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from elbowroom.errors import UsageError
from elbowroom.models.base import Provenance
from elbowroom.models.curves import Curves, Shape
from elbowroom.models.document import Calibration, Document, Models, models_of
from elbowroom.models.gpu.part import GpuPart
from elbowroom.models.message_size import MessageSize, fit_if_known
from elbowroom.models.node_factors import STEADY, NodeFactors, alike, alike_loads, node_factors
from elbowroom.models.registry import MODELS, accelerator, names
from elbowroom.models.threshold.law import Parameters, ThresholdPart
from elbowroom.quantities import format_size
from elbowroom.version import __version__

FAR = 0.1
"""Mean relative error of a model, held out, above which it is said."""


def fit(curves: Curves, source: Provenance, *, created: str) -> Document:
    """Fits every model that the curves and the runs of an accelerator allow; what cannot be fitted is said in
    `validity`.

    Raises UsageError, that of the first model of loads, where none of these can be fitted, and that of the
    accelerator's model.
    """
    parts: dict[str, Any] = {}
    refused: dict[str, UsageError] = {}
    gpu = accelerator_part(source)
    nodes = node_factors(curves)
    if nodes is not None:
        source = msgspec.structs.replace(source, loads=alike_loads(source.loads, nodes))
        curves = alike(curves, nodes)
    for kind in (MODELS.get(name) for name in reversed(names())):
        try:
            parts[kind.name] = kind.fit(curves, source)
        except UsageError as error:
            refused[kind.name] = error
    if not parts:
        raise next(iter(refused.values()))
    calibration = _calibration(curves, source)
    models = models_of(parts)
    sizes = fit_if_known(source.sizes)
    doubts = validity(curves, calibration, models, refused, source.doubts)
    return Document(
        elbowroom=__version__,
        created=created,
        machine=curves.shape,
        calibration=calibration,
        models=models,
        validity=(*doubts, *_nodes(nodes), *_loads(models, calibration, sizes), *of_gpu(gpu)),
        message_size=sizes,
        gpu=gpu,
        node_factors=nodes or msgspec.UNSET,
    )


def _nodes(factors: NodeFactors | None) -> list[str]:
    """Which nodes are how far from the first one of their socket."""
    if factors is None:
        return []
    far = [
        f"{what} node {node} {factor:.2f} times"
        for what, row in (("messages into", factors.comm), ("computations on", factors.comp))
        for node, factor in enumerate(row)
        if abs(factor - 1) > STEADY
    ]
    return [f"The nodes of a socket are not alike; over its first node: {', '.join(far)}."]


def accelerator_part(source: Provenance) -> GpuPart | None:
    """The model of the accelerator that the runs measured, if they measured one; UsageError of its fit."""
    part: GpuPart | None = accelerator().fit(None, source)
    return part


def accelerator_document(
    gpu: GpuPart | None, shape: Shape, source: Provenance, reason: str, *, created: str
) -> Document:
    """The document of a run that measured an accelerator only; `reason`: why there is no other model."""
    only = f"Only the accelerator was measured, and only cases on it are predicted: {reason}"
    return Document(
        elbowroom=__version__,
        created=created,
        machine=shape,
        calibration=_calibration(Curves(shape=shape, rows=(), kernel="", size=0), source),
        models=Models(),
        validity=(only, *source.doubts[:1], *of_gpu(gpu)),
        gpu=gpu,
    )


def of_gpu(part: GpuPart | None) -> list[str]:
    """Where not to trust an accelerator's model."""
    if part is None:
        return []
    sentences = [f"gpu: {note}" for note in part.notes]
    worse = [item.family for item in part.errors if not item.better]
    if worse:
        sentences.append(
            "gpu: held out, no closer than a rule without a fit (1 - k / S, max-min, or no loss): "
            f"{', '.join(worse)}."
        )
    far = [f"{item.family} {item.held_out:.0%}" for item in part.errors if (item.held_out or 0) > FAR]
    if far:
        sentences.append(f"gpu: far off where SMs were not measured: {', '.join(far)} on average.")
    sentences += [f"gpu: left out: {count}, {reason}." for reason, count in part.left_out.items()]
    return sentences


def _calibration(curves: Curves, source: Provenance) -> Calibration:
    at = [row.situation for row in curves.rows]
    counts = [item.n for item in at if item.n] or [0]
    loads = [row.load for row in source.loads]
    others = [group.count for load in loads for group in load.computing if group.socket == 1]
    places = {
        (group.node, load.messages.node)
        for load in loads
        for group in load.computing
        if load.messages is not None
    }
    return Calibration(
        run=source.run,
        plan=source.plan,
        origin=source.origin,
        kernel=curves.kernel,
        size=curves.size,
        runs=len(curves.rows),
        n_low=min(counts),
        n_high=max(counts),
        n_other_high=max([*others, *(item.n_other for item in at)], default=0),
        placements=tuple(sorted(places | {(item.comp_node, item.comm_node) for item in at})),
        nodes=source.nodes,
        left_out=source.left_out,
        pattern=source.pattern,
        with_runs=source.with_runs,
        store_factor=source.store_factor,
    )


EXPLAINED = {
    "not_measured": "its data was not measured, and is not predicted",
    "too_few_counts": "its data was measured at too few numbers of cores, and is not predicted",
    "one_core": "one core alone does not determine a threshold",
    "no_contention": "nothing was lost at any n, so its capacity is only known to be at least that much",
    "n_par_above_n_seq": "both streams together peak at more cores than computations alone do",
    "negative_slope": "more cores get more bandwidth where the model expects less",
    "unstable_network": "communications alone vary with n, which no model here follows",
    "missing_counts": "some numbers of cores were not measured: the true peaks may lie between",
    "interpolated": "both streams at the peak of computations alone were not measured but interpolated",
}


def validity(
    curves: Curves,
    calibration: Calibration,
    models: Models,
    refused: dict[str, UsageError],
    doubts: Sequence[str] = (),
) -> list[str]:
    """Where not to trust the models, one sentence each."""
    shape = curves.shape
    sentences = [calibration.benchmark]
    if calibration.origin == "virtual":
        sentences.append("Virtual: the values come from a simulated machine, not from a real one.")
    elif calibration.origin == "imported":
        sentences.append(
            "Imported: how the values were measured, and in what state the machine was, is unknown."
        )
    elif doubts:
        sentences.append(f"The run itself is doubtful: {doubts[0]}")
    if calibration.n_high < shape.cores_first_socket:
        sentences.append(
            f"Measured with {calibration.n_low} to {calibration.n_high} computing cores; other numbers are "
            "extrapolated."
        )
    if shape.sockets > 1 and not calibration.n_other_high:
        sentences.append("Both sockets computing at once was not measured: that is extrapolated.")
    sentences += [f"{name}: not fitted, since {error.sentence()}" for name, error in refused.items()]
    sentences += _unconstrained(curves, models)
    for name in ("threshold", "robust"):
        part: ThresholdPart | None = getattr(models, name)
        for flag in part.flags if part is not None else ():
            side, _, word = flag.partition(":")
            sentences.append(f"{name}, {side}: {EXPLAINED.get(word, word.replace('_', ' '))}.")
    sentences += [f"flow: {flag}." for flag in (models.flow.flags if models.flow is not None else ())]
    return sentences


def _unconstrained(curves: Curves, models: Models) -> list[str]:
    """That the threshold model has more parameters than there are measured values to tell them."""
    needed = len(msgspec.structs.fields(Parameters))
    values = sum(value is not None for row in curves.rows for value in row.streams)
    if values >= needed or (models.threshold is None and models.robust is None):
        return []
    return [
        f"The threshold model has {needed} parameters for a side, but {values} values were measured: it "
        "repeats them and knows nothing of other numbers of cores or placements. Measure more with: "
        "elbowroom run model (on a machine with more cores, or two hosts)."
    ]


def _loads(models: Models, calibration: Calibration, sizes: MessageSize | None) -> list[str]:
    """What was learned beyond situations, and from how little."""
    sentences = []
    load = models.flow.load if models.flow is not None else None
    if load is not None:
        questions = {
            "intensity": f"arithmetic intensities up to {load.intensity_high:g} flop/B",
            "sizes": f"messages of {format_size(load.size_low)} to {format_size(load.size_high)}",
            "send": "sending",
            "both": "both directions at once",
            "threads": "several communication threads",
            "copies": "accelerators' copies",
            "nodes": "cores of one socket on several nodes",
        }
        what = ", ".join(questions[item] for item in load.measured)
        sentences.append(
            f"flow: other loads from {load.runs} runs ({what}); what they did not cover is flagged."
        )
    if calibration.pattern != "receive":
        sentences.append(
            f"Messages were exchanged by {calibration.pattern}: receiving and sending are not distinguished."
        )
    by_law = models.threshold is not None or models.robust is not None
    if sizes is not None and (by_law or load is None or "sizes" not in load.measured):
        sentences.append(_other_sizes(sizes))
    return sentences


def _other_sizes(sizes: MessageSize) -> str:
    return (
        f"Where only messages alone tell of other sizes they follow t0 + s/B, t0 = {sizes.t0:.3g} us, which "
        f"misses the bandwidths alone of {len(sizes.sizes)} sizes by {sizes.misfit:.1%} on average; beside "
        "computations it is not checked."
    )


class FitDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What `fit --json` prints: the file that was written, and the model in it."""

    schema: str = "elbowroom/fit"
    version: int = 1
    file: str
    model: Document
