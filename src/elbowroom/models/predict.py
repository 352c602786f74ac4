"""What a document answers: bandwidths with 90 % intervals, for loads or for situations of its machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from elbowroom.errors import UsageError
from elbowroom.models.base import EXTRAPOLATED, ContentionModel, LoadDraws
from elbowroom.models.curves import Shape, Situation
from elbowroom.models.document import Document
from elbowroom.models.load import Load, LoadPrediction, check_load, load_at
from elbowroom.models.prediction import Prediction
from elbowroom.models.registry import ModelName, kind_of
from elbowroom.models.sizes import at_size


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


def check(shape: Shape, situation: Situation) -> None:
    """Refuses cores and nodes that the machine does not have."""
    for field, node in (("comp_node", situation.comp_node), ("comm_node", situation.comm_node)):
        if not 0 <= node < shape.nodes:
            raise UsageError(
                f"{shape.name} has {shape.nodes} NUMA node{'s' if shape.nodes > 1 else ''}",
                field=field,
                value=node,
                hint=f"ask for 0 to {shape.nodes - 1}" if shape.nodes > 1 else "ask for 0",
            )
    most = {"cores": shape.cores_first_socket, "cores_other": shape.cores_first_socket}
    if shape.sockets < 2:
        most["cores_other"] = 0
    for field, count in (("cores", situation.n), ("cores_other", situation.n_other)):
        if not 0 <= count <= most[field]:
            which = "first socket" if field == "cores" else "other socket"
            raise UsageError(
                f"{shape.name} has {most[field]} cores on its {which}",
                field=field,
                value=count,
                hint=f"ask for 0 to {most[field]}",
            )


def chosen(document: Document, name: ModelName | None) -> ModelName:
    """The model of that name, else the best one there is; UsageError where it was not fitted."""
    names = document.names()
    if name is None:
        if not names:
            raise UsageError("there is no model in it", field="model", hint="fit it again: elbowroom fit RUN")
        return names[0]
    if name not in names:
        raise UsageError(
            f"is not in the model of {document.machine.name}",
            field="model",
            value=name,
            hint=f"it has: {', '.join(names)}",
        )
    return name


def model_of(document: Document, name: ModelName | None, *, faithful: bool = False) -> ContentionModel:
    """The model of that name, else the best one there is; `faithful`: by the equations as published."""
    kind = kind_of(chosen(document, name))
    if faithful and not kind.faithful:
        raise UsageError(
            f"goes with the threshold model, not with {kind.name}",
            field="faithful",
            hint="add --model threshold, or leave it out",
        )
    return kind.model(document, faithful=faithful)


def predict(
    document: Document,
    situations: Sequence[Situation],
    *,
    name: ModelName | None = None,
    faithful: bool = False,
    size: int | None = None,
) -> list[Prediction]:
    """One prediction for each situation, in order; `faithful`: the thesis' equations to the letter; `size`:
    bytes of a message, by default those of the calibration.

    UsageError for cores and nodes outside the machine, and for what the model cannot answer.
    """
    answering, beyond = document, False
    size = None if size == document.calibration.size else size
    if size is not None and _only_by_law(document, chosen(document, name)):
        # FLOW's own messages change: what it knows beyond them was not fitted to that size.
        answering = at_size(document, size)
        beyond = answering is not document and (
            document.message_size is None or document.message_size.extrapolated(size)
        )
        size = None
    for situation in situations:
        check(document.machine, situation)
    model = model_of(answering, name, faithful=faithful)
    loads = [load_at(situation, size) for situation in situations]
    predictions = model.predict(loads, plain=size is None)
    return [
        Prediction(
            situation=situation,
            comp_alone=item.comp_alone,
            comm_alone=item.comm_alone,
            comp_together=item.comp_together,
            comm_together=item.comm_together,
            flags=(EXTRAPOLATED, *item.flags) if beyond and EXTRAPOLATED not in item.flags else item.flags,
        )
        for situation, item in zip(situations, predictions, strict=True)
    ]


def _only_by_law(document: Document, name: ModelName) -> bool:
    """Whether FLOW knows of other message sizes only by messages alone."""
    flow = document.models.flow
    return name == "flow" and (flow is None or flow.load is None or "sizes" not in flow.load.measured)


def predict_loads(
    document: Document, loads: Sequence[Load], *, name: ModelName | None = None
) -> list[LoadPrediction]:
    """One prediction with 90 % intervals for each load, in order.

    UsageError for a load that does not fit the machine, or that the model has no runs for.
    """
    return _checked(document, loads, name).predict(loads)


def load_draws(document: Document, loads: Sequence[Load], *, name: ModelName | None = None) -> LoadDraws:
    """The best fit and the draws for every load, in order; UsageError as `predict_loads`."""
    return _checked(document, loads, name).draws(loads)


def _checked(document: Document, loads: Sequence[Load], name: ModelName | None) -> ContentionModel:
    model = model_of(document, name)
    for load in loads:
        check_load(document.machine, load)
    return model


def answerable(
    document: Document, situations: Sequence[Situation], name: ModelName | None = None
) -> tuple[Situation, ...]:
    """Those situations that the model can answer."""
    model = model_of(document, name)
    return tuple(item for item in situations if model.answers(load_at(item)))


def predictor(
    document: Document, name: ModelName, *, faithful: bool = False
) -> Callable[[Sequence[Situation]], list[Prediction | None]]:
    """The model as a function of situations, None where it cannot answer."""

    def answer(situations: Sequence[Situation]) -> list[Prediction | None]:
        inside = answerable(document, situations, name)
        predictions = dict(zip(inside, predict(document, inside, name=name, faithful=faithful), strict=True))
        return [predictions.get(item) for item in situations]

    return answer
