"""What a document answers: bandwidths with 90 % intervals for any situation of its machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from elbowroom.errors import UsageError
from elbowroom.model import threshold
from elbowroom.model.curves import Shape, Situation
from elbowroom.model.document import Bands, Document, FlowPart, ModelName, ThresholdPart
from elbowroom.model.load import Messages, load_of
from elbowroom.model.prediction import Interval, Prediction
from elbowroom.predict.sizing import at_size

EXTRAPOLATED, VIRTUAL, REPAIRED = "extrapolated", "virtual", "repaired"
SAMPLES_ONLY = "interval: sample placements only"
"""The run measured no other placement, so the interval is that of those the model was calibrated on."""


def situations(
    shape: Shape,
    *,
    n: int | None = None,
    n_other: int = 0,
    comp_node: int | None = None,
    comm_node: int | None = None,
) -> tuple[Situation, ...]:
    """All situations that fit: every n from 1 without `n`, every node without `comp_node`, `comm_node`."""
    counts = range(1, shape.cores_first_socket + 1) if n is None else (n,)
    comps, comms = (range(shape.nodes) if node is None else (node,) for node in (comp_node, comm_node))
    return tuple(
        Situation(comp_node=comp, comm_node=comm, n=count, n_other=n_other)
        for comm in comms
        for comp in comps
        for count in counts
    )


def check(shape: Shape, asked: Situation) -> None:
    """Refuses cores and nodes that the machine does not have."""
    for field, node in (("comp_node", asked.comp_node), ("comm_node", asked.comm_node)):
        if not 0 <= node < shape.nodes:
            raise UsageError(
                f"{shape.name} has {shape.nodes} NUMA node{'s' if shape.nodes > 1 else ''}",
                field=field,
                value=node,
                mend=f"ask for 0 to {shape.nodes - 1}" if shape.nodes > 1 else "ask for 0",
            )
    most = {"cores": shape.cores_first_socket, "cores_other": shape.cores_first_socket}
    if shape.sockets < 2:
        most["cores_other"] = 0
    for field, count in (("cores", asked.n), ("cores_other", asked.n_other)):
        if not 0 <= count <= most[field]:
            which = "first socket" if field == "cores" else "other socket"
            raise UsageError(
                f"{shape.name} has {most[field]} cores on its {which}",
                field=field,
                value=count,
                mend=f"ask for 0 to {most[field]}",
            )


def chosen(document: Document, name: ModelName | None) -> ModelName:
    """The model of that name, else the best one there is; UsageError where it was not fitted."""
    names = document.names()
    if name is None:
        if not names:
            raise UsageError("there is no model in it", field="model", mend="fit it again: elbowroom fit RUN")
        return names[0]
    if name not in names:
        raise UsageError(
            f"is not in the model of {document.machine.name}",
            field="model",
            value=name,
            mend=f"it has: {', '.join(names)}",
        )
    return name


def predict(
    document: Document,
    asked: Sequence[Situation],
    *,
    name: ModelName | None = None,
    faithful: bool = False,
    size: int | None = None,
) -> list[Prediction]:
    """One prediction for each situation, in order; `faithful`: the thesis' equations to the letter; `size`:
    bytes of a message, by default those of the calibration.

    UsageError for cores and nodes outside the machine, and for what the model cannot answer.
    """
    beyond = False
    if size is not None and size != document.calibration.size:
        if chosen(document, name) == "flow" and not faithful and _knows_sizes(document):
            return _of_size(document, asked, size)
        document = at_size(document, size)
        beyond = document.message_size is None or document.message_size.extrapolated(size)
    for item in asked:
        check(document.machine, item)
    model = chosen(document, name)
    if faithful and model != "threshold":
        raise UsageError(
            f"goes with the threshold model, not with {model}",
            field="faithful",
            mend="add --model threshold, or leave it out",
        )
    part = _part(document, model)
    if part is not None:
        answers = _threshold(document, part, asked, faithful)
    else:
        assert document.models.flow is not None
        answers = _flow(document, document.models.flow, asked)
    return [
        Prediction(
            situation=item,
            comp_alone=values[0],
            comm_alone=values[1],
            comp_together=values[2],
            comm_together=values[3],
            flags=(*_flags(document, item, beyond), *flags),
        )
        for item, (values, flags) in zip(asked, answers, strict=True)
    ]


def _knows_sizes(document: Document) -> bool:
    """Whether FLOW was fitted to messages of other sizes, beside computations too."""
    flow = document.models.flow
    return flow is not None and flow.load is not None and "sizes" in flow.load.measured


def _of_size(document: Document, asked: Sequence[Situation], size: int) -> list[Prediction]:
    from elbowroom.predict.loading import predict_loads

    loads = [load_of(item) for item in asked]
    sized = [
        msgspec.structs.replace(load, messages=Messages(node=item.comm_node, size=size))
        for item, load in zip(asked, loads, strict=True)
    ]
    return [
        Prediction(
            situation=item,
            comp_alone=found.comp_alone,
            comm_alone=found.comm_alone,
            comp_together=found.comp_together,
            comm_together=found.comm_together,
            flags=found.flags,
        )
        for item, found in zip(asked, predict_loads(document, sized, name="flow"), strict=True)
    ]


def answerable(
    document: Document, asked: Sequence[Situation], name: ModelName | None = None
) -> tuple[Situation, ...]:
    """Those situations that the model can answer: the threshold model knows no side it was not calibrated
    on, and one socket only.
    """
    part = _part(document, chosen(document, name))
    if part is None:
        return tuple(asked)
    shape = document.machine
    known = {local for local, side in ((True, part.local), (False, part.remote)) if side is not None}
    return tuple(
        item
        for item in asked
        if not item.n_other and {shape.local(item.comp_node), shape.local(item.comm_node)} <= known
    )


def predictor(
    document: Document, name: ModelName, *, faithful: bool = False
) -> Callable[[Sequence[Situation]], list[Prediction | None]]:
    """The model as a function of situations, None where it cannot answer."""

    def answer(asked: Sequence[Situation]) -> list[Prediction | None]:
        inside = answerable(document, asked, name)
        found = dict(zip(inside, predict(document, inside, name=name, faithful=faithful), strict=True))
        return [found.get(item) for item in asked]

    return answer


def _part(document: Document, name: ModelName) -> ThresholdPart | None:
    """The threshold model of that name; None for FLOW."""
    models = document.models
    return {"threshold": models.threshold, "robust": models.robust}.get(name)


Answer = tuple[tuple[Interval, Interval, Interval, Interval], tuple[str, ...]]


def _flags(document: Document, asked: Situation, beyond: bool) -> tuple[str, ...]:
    """`extrapolated` outside what was measured (more or fewer cores, data on a socket where none was, or
    `beyond` the message sizes), `virtual` where no real machine was.
    """
    known, local = document.calibration, document.machine.local
    inside = asked.n == 0 or known.n_low <= asked.n <= known.n_high
    inside &= asked.n_other <= known.n_other_high
    inside &= local(asked.comp_node) in {local(comp) for comp, _ in known.placements}
    inside &= local(asked.comm_node) in {local(comm) for _, comm in known.placements}
    flags = [] if inside and not beyond else [EXTRAPOLATED]
    if document.machine.virtual:
        flags.append(VIRTUAL)
    return tuple(flags)


def _threshold(
    document: Document, part: ThresholdPart, asked: Sequence[Situation], faithful: bool
) -> list[Answer]:
    """Placement by placement, all n at once."""
    model = part.model(document.machine)
    places: dict[tuple[int, int], list[int]] = {}
    for index, item in enumerate(asked):
        if item.n_other:
            threshold.predict(model, item, faithful=faithful)  # refuses both sockets in its own words
        places.setdefault((item.comp_node, item.comm_node), []).append(index)
    answers: dict[int, Answer] = {}
    for (comp, comm), indices in places.items():
        ns = [asked[index].n for index in indices]
        rows = threshold.curve(model, comp, comm, ns, faithful=faithful)
        changed = np.zeros(len(ns), dtype=bool) if faithful else threshold.repaired(model, comp, comm, ns)
        bands, notes = band(part, document.machine, comp, comm)
        for index, row, mended in zip(indices, rows.tolist(), changed.tolist(), strict=True):
            values = [interval(value, width) for value, width in zip(row, bands, strict=True)]
            flags = (*((REPAIRED,) if mended else ()), *notes)
            answers[index] = ((values[0], values[1], values[2], values[3]), flags)
    return [answers[index] for index in range(len(asked))]


def check_parameters(part: FlowPart) -> None:
    """Refuses a part that was fitted with other parameters of FLOW than this release's."""
    from elbowroom.model import flow

    missing = set(flow.NAMES) ^ set(part.names)
    if missing:
        raise UsageError(
            f"was fitted with other parameters of FLOW ({', '.join(sorted(missing))})",
            field="model",
            value="flow",
            mend="fit it again: elbowroom fit RUN",
        )


def _flow(document: Document, part: FlowPart, asked: Sequence[Situation]) -> list[Answer]:
    """All situations at once."""
    from elbowroom.model import flow_fit

    check_parameters(part)
    values, low, high = flow_fit.bands(part.fit(document.machine), asked)
    answers: list[Answer] = []
    for index in range(len(asked)):
        four = [Interval(value=values[k][index], low=low[k][index], high=high[k][index]) for k in range(4)]
        answers.append(((four[0], four[1], four[2], four[3]), ()))
    return answers


def band(part: ThresholdPart, shape: Shape, comp_node: int, comm_node: int) -> tuple[Bands, tuple[str, ...]]:
    """Relative half-widths for a placement, and what to say of them."""
    notes = (f"interval: {part.bands_from}",) if part.bands_from else ()
    if comp_node == comm_node and comp_node in (0, shape.numa_per_socket):
        side = "local" if comp_node == 0 else "remote"
        if side in part.bands:
            return part.bands[side], notes
    if "other" in part.bands:
        return part.bands["other"], notes
    widest = np.max([part.bands[side] for side in sorted(part.bands)], axis=0).tolist()
    return (widest[0], widest[1], widest[2], widest[3]), (*notes, SAMPLES_ONLY)


def interval(value: float, width: float) -> Interval:
    """value (1 +- width); a bandwidth is not below 0."""
    return Interval(value=value, low=max(value * (1 - width), 0.0), high=value * (1 + width))
