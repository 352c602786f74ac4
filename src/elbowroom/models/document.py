"""M.json as data: what was calibrated on what, every model side by side, and where not to trust them.

Flat on purpose: the C library and the page's JavaScript evaluate the models from it
(docs/reference/model-file.md). Bandwidths are MB/s (1e6 B/s), sizes bytes, nodes as in Shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from elbowroom.errors import UsageError
from elbowroom.models.curves import Shape
from elbowroom.models.flow.part import FlowPart
from elbowroom.models.gpu.part import GpuPart
from elbowroom.models.message_size import SIZES_NEEDED, MessageSize, threshold_at
from elbowroom.models.node_factors import NodeFactors
from elbowroom.models.threshold.law import ThresholdPart
from elbowroom.plan.kernels import ASSUMED_STORE_FACTOR
from elbowroom.quantities import format_size

SCHEMA = "elbowroom/model"
VERSION = 1

Origin = Literal["measured", "virtual", "imported", "published"]

LEVEL = 0.90
"""Coverage of every interval in the file and in predictions."""


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """What the models were fitted on. `n_low`..`n_high`: computing cores of the first socket that were
    measured; `n_other_high`: most of the second; `placements`: pairs of comp_node, comm_node; `runs`: rows
    used; `left_out`: points that were not, by reason; `nodes`: the operating system's number of each;
    `pattern`: how messages were exchanged; `with_runs`: further runs, fitted together with `run`;
    `store_factor`: bytes on the memory bus for a byte of a plain store, if it was measured.
    """

    run: str
    plan: str
    origin: Origin
    kernel: str
    size: int
    runs: int
    n_low: int
    n_high: int
    n_other_high: int = 0
    placements: tuple[tuple[int, int], ...] = ()
    nodes: tuple[int, ...] = ()
    left_out: dict[str, int] = {}
    pattern: str = "receive"
    with_runs: tuple[str, ...] = ()
    store_factor: float | msgspec.UnsetType = msgspec.UNSET

    @property
    def counted_store_factor(self) -> float:
        """The store factor, measured or assumed."""
        return self.store_factor or ASSUMED_STORE_FACTOR

    @property
    def benchmark(self) -> str:
        """What was measured, as the first of a document's sentences."""
        return (
            f"For {self.kernel} beside messages of {format_size(self.size)}: other kernels and sizes share "
            "differently."
        )


class Models(msgspec.Struct, frozen=True, kw_only=True):
    """Every model that could be fitted: `threshold` as the thesis calibrates, `robust` against noise;
    `added`: plain data of the models of installed packages, by name.
    """

    threshold: ThresholdPart | None = None
    robust: ThresholdPart | None = None
    flow: FlowPart | None = None
    added: dict[str, dict[str, Any]] | msgspec.UnsetType = msgspec.UNSET

    def part(self, name: str) -> Any:
        """The part of that model; None where it was not fitted."""
        added = self.added or {}
        return added[name] if name in added else getattr(self, name, None)


def models_of(parts: Mapping[str, Any]) -> Models:
    """The models of these parts, by name."""
    own = {name: part for name, part in parts.items() if name in Models.__struct_fields__}
    added = {name: msgspec.to_builtins(part) for name, part in parts.items() if name not in own}
    return Models(**own, added=added or msgspec.UNSET)


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """The file M.json. `validity`: where not to trust the models, one sentence each; `message_size`: what
    messages of other sizes than the calibrated one ask for, None where too few sizes were measured; `gpu`: of
    its accelerator, None where none was measured; `node_factors`: where the nodes of a socket are not alike.
    A file of an accelerator alone has no `models`.
    """

    schema: str = SCHEMA
    version: int = VERSION
    elbowroom: str
    created: str
    machine: Shape
    calibration: Calibration
    models: Models
    validity: tuple[str, ...] = ()
    message_size: MessageSize | None = None
    gpu: GpuPart | None = None
    node_factors: NodeFactors | msgspec.UnsetType = msgspec.UNSET


FLOW_MESSAGES = ("comm_first", "comm_second")


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
