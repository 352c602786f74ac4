"""Message sizes other than the calibrated one: what a run tells of them, and a document asked for another."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import msgspec

from elbowroom.errors import UsageError
from elbowroom.models.document import Document
from elbowroom.models.flow.part import FlowPart
from elbowroom.models.message_size import SIZES_NEEDED, MessageBandwidth, MessageSize, fit, threshold_at
from elbowroom.models.threshold.law import ThresholdPart
from elbowroom.quantities import format_size
from elbowroom.results.result import PointResult

COMMUNICATION = (
    "pattern", "comm_core", "comm_threads", "processes", "reuse", "core_khz", "uncore_khz",
    "turbo", "governor",
)  # fmt: skip
"""What points share that communicated alike, whatever their message size and computation."""
FLOW_MESSAGES = ("comm_first", "comm_second")


def observations(
    results: Sequence[PointResult], like: object, nodes: Sequence[int]
) -> tuple[MessageBandwidth, ...]:
    """Bandwidths of messages alone by node and size: the median over the points that communicated `like`
    those of the curves (an object with the fields of COMMUNICATION). `nodes`: the system's numbers in order.
    """
    bandwidths: dict[tuple[int, int], list[float]] = {}
    wanted = tuple(getattr(like, field) for field in COMMUNICATION)
    for item in results:
        alone = item.comm.alone
        if item.status != "ok" or item.comm_node not in nodes or alone is None or not alone.median > 0:
            continue
        if tuple(getattr(item, field) for field in COMMUNICATION) == wanted:
            # A latency is half a round trip in us: B/us are MB/s.
            value = item.size / alone.median if alone.unit == "us" else alone.median
            bandwidths.setdefault((nodes.index(item.comm_node), item.size), []).append(value)
    return tuple(
        MessageBandwidth(node=node, size=size, bandwidth=median(values))
        for (node, size), values in sorted(bandwidths.items())
    )


def law(sizes: Sequence[MessageBandwidth]) -> MessageSize | None:
    """The law that fits those bandwidths; None where too few sizes were measured for it."""
    return fit(sizes) if len({item.size for item in sizes}) >= SIZES_NEEDED else None


def at_size(document: Document, size: int) -> Document:
    """The document with its models for messages of `size` bytes.

    UsageError where the document knows one size only, or the law has no bandwidth for it.
    """
    known = document.calibration.size
    if size == known:
        return document
    sizes = document.message_size
    if sizes is None:
        raise UsageError(
            f"is not the size of the model, {format_size(known)}, and it knows no other",
            field="size",
            value=format_size(size) if size > 0 else size,
            hint="fit it with the plan `sizes` too: elbowroom run sizes --out RUN2; elbowroom fit RUN RUN2; "
            f"or measure at least {SIZES_NEEDED} sizes in one run: --sizes 64KiB,1MiB,64MB",
        )
    models = document.models
    return msgspec.structs.replace(
        document,
        models=msgspec.structs.replace(
            models,
            threshold=_threshold(models.threshold, document, sizes, size),
            robust=_threshold(models.robust, document, sizes, size),
            flow=_flow(models.flow, document, sizes, size),
        ),
    )


def _threshold(
    part: ThresholdPart | None, document: Document, sizes: MessageSize, size: int
) -> ThresholdPart | None:
    if part is None:
        return None
    model = threshold_at(part.model(document.machine), sizes, at=document.calibration.size, size=size)
    return msgspec.structs.replace(part, local=model.local, remote=model.remote)


def _flow(part: FlowPart | None, document: Document, sizes: MessageSize, size: int) -> FlowPart | None:
    if part is None:
        return None
    places = [part.names.index(name) for name in FLOW_MESSAGES if name in part.names]

    def changed(values: Sequence[float]) -> tuple[float, ...]:
        return tuple(
            sizes.bandwidth(size, known=value, at=document.calibration.size) if place in places else value
            for place, value in enumerate(values)
        )

    return msgspec.structs.replace(
        part, values=changed(part.values), draws=tuple(changed(draw) for draw in part.draws)
    )
