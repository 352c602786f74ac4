"""What a document answers: bandwidths with 90 % intervals, for loads or for situations of its machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from elbowroom.errors import UsageError
from elbowroom.models.base import ContentionModel, LoadDraws
from elbowroom.models.curves import STREAMS, Shape, Situation
from elbowroom.models.document import Document, at_size
from elbowroom.models.load import Load, LoadPrediction, Prediction, check_load, load_at
from elbowroom.models.node_factors import NodeFactors
from elbowroom.models.registry import MODELS, fitted_models
from elbowroom.quantities import plural
from elbowroom.stats.interval import times

EXTRAPOLATED, VIRTUAL = "extrapolated", "virtual"


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
    # Without a call where sockets are alike: predictions are asked for in loops.
    nodes, cores = shape.sockets * shape.numa_per_socket, shape.cores_first_socket
    others = cores if shape.sockets > 1 else 0
    if not isinstance(shape.layout, msgspec.UnsetType):
        nodes, others = shape.nodes, shape.cores_of(1)
    for field, node in (("comp_node", situation.comp_node), ("comm_node", situation.comm_node)):
        if not 0 <= node < nodes:
            raise UsageError(
                f"{shape.name} has {plural(nodes, 'NUMA node')}",
                field=field,
                value=node,
                hint=f"ask for 0 to {nodes - 1}" if nodes > 1 else "ask for 0",
            )
    for field, count, most, which in (
        ("cores", situation.n, cores, "first socket"),
        ("cores_other", situation.n_other, others, "other socket"),
    ):
        if not 0 <= count <= most:
            raise UsageError(
                f"{shape.name} has {most} cores on its {which}",
                field=field,
                value=count,
                hint=f"ask for 0 to {most}",
            )


def chosen(document: Document, name: str | None) -> str:
    """The model of that name, else the best one there is; UsageError where it was not fitted."""
    names = fitted_models(document)
    if name is None:
        if not names and document.gpu is not None:
            raise UsageError(
                "only an accelerator is in it, and no model of the host's memory",
                field="model",
                hint="ask with --gpu, or fit a run of the plan model together with those of the accelerator",
            )
        if not names:
            raise UsageError("it contains no model", field="model", hint="fit it again: elbowroom fit RUN")
        return names[0]
    if name not in names:
        raise UsageError(
            f"is not in the model of {document.machine.name}",
            field="model",
            value=name,
            hint=f"it has: {', '.join(names)}",
        )
    return name


class FittedModel:
    """One model of a document, made once and asked often: that of `name`, else the best one there is;
    `faithful`: by the equations as published.
    """

    def __init__(self, document: Document, name: str | None = None, *, faithful: bool = False) -> None:
        kind = MODELS.get(chosen(document, name))
        if faithful and not kind.faithful:
            raise UsageError(
                f"is only valid for the threshold model, not for {kind.name}",
                field="faithful",
                hint="add --model-kind threshold, or leave it out",
            )
        self.document, self.name, self.faithful = document, kind.name, faithful
        self.model: ContentionModel = kind.model(document, faithful=faithful)
        local, places = document.machine.local, document.calibration.placements
        self._comp_sides = {local(comp) for comp, _ in places}
        self._comm_sides = {local(comm) for _, comm in places}
        # Of nodes that are not alike; the equations as published know none.
        self._factors = None if faithful else document.node_factors or None

    def predict(self, situations: Sequence[Situation], size: int | None = None) -> list[Prediction]:
        """One prediction for each situation, in order; `size`: bytes of a message, by default those of the
        calibration. UsageError for cores and nodes outside the machine, and for what the model cannot answer.
        """
        document, beyond = self.document, False
        size = None if size == document.calibration.size else size
        for situation in situations:
            check(document.machine, situation)
        model = self.model
        if size is not None and self._only_by_law():
            # FLOW's own messages change: what it knows beyond them was not fitted to that size.
            changed = at_size(document, size)
            beyond = document.message_size is None or document.message_size.extrapolated(size)
            model, size = FittedModel(changed, self.name).model, None
        loads = [load_at(situation, size) for situation in situations]
        predicted = model.predict(loads, plain=size is None)
        if self._factors:
            predicted = [_by_node(item, self._factors) for item in predicted]
        return [
            Prediction(
                situation=situation,
                **{stream: getattr(item, stream) for stream in STREAMS},
                flags=self._flags(item.load, beyond=beyond) + item.flags,
            )
            for situation, item in zip(situations, predicted, strict=True)
        ]

    def predict_loads(self, loads: Sequence[Load]) -> list[LoadPrediction]:
        """One prediction with 90 % intervals for each load, in order. UsageError for a load that does not fit
        the machine, or that the model has no runs for.
        """
        self._check(loads)
        predicted = self.model.predict(loads)
        if self._factors:
            predicted = [_by_node(item, self._factors) for item in predicted]
        return [
            msgspec.structs.replace(item, flags=self._flags(self.model.answered(item.load)) + item.flags)
            for item in predicted
        ]

    def draws(self, loads: Sequence[Load]) -> LoadDraws:
        """The best fit and the draws for every load, in order; UsageError as `predict_loads`."""
        self._check(loads)
        drawn = self.model.draws(loads)
        if not self._factors:
            return drawn
        streams = np.array([self._factors.streams(load) for load in loads]).T
        groups = np.ones((len(drawn.groups), len(loads)))
        for place, load in enumerate(loads):
            groups[: len(load.computing), place] = [
                self._factors.comp[group.node] for group in load.computing
            ]
        changed = {name: getattr(drawn, name) * row for name, row in zip(STREAMS, streams, strict=True)}
        return msgspec.structs.replace(drawn, **changed, groups=drawn.groups * groups[:, None])

    def answers(self, situation: Situation) -> bool:
        """Whether the model can answer that."""
        return self.model.answers(load_at(situation))

    def _check(self, loads: Sequence[Load]) -> None:
        for load in loads:
            check_load(self.document.machine, load)

    def _only_by_law(self) -> bool:
        """Whether FLOW knows of other message sizes only by messages alone."""
        return self.name == "flow" and self.model.reach.sizes is None

    def _flags(self, load: Load, *, beyond: bool = False) -> tuple[str, ...]:
        """`extrapolated` outside what was measured (more or fewer cores, data on a socket where none was,
        other message sizes and intensities), or `beyond` it; `virtual` where no real machine was.
        """
        known, machine, messages = self.document.calibration, self.document.machine, load.messages
        local, inside = machine.numa_per_socket, not beyond
        counts = [sum([g.count for g in load.computing if g.socket == socket]) for socket in (0, 1)]
        inside &= counts[0] == 0 or known.n_low <= counts[0] <= known.n_high
        inside &= counts[1] <= known.n_other_high
        # As in lib/predict, the node of no cores counts beside messages of the calibrated size only.
        sized = messages is not None and messages.size not in (None, known.size)
        for group in load.computing:
            inside &= (group.node < local) in self._comp_sides or (sized and not group.count)
            inside &= group.intensity <= self.model.reach.intensity
        if messages is not None:
            inside &= (messages.node < local) in self._comm_sides
            inside &= not sized or self._size_inside(messages.size or 0)
        return (*(() if inside else (EXTRAPOLATED,)), *((VIRTUAL,) if machine.virtual else ()))

    def _size_inside(self, size: int) -> bool:
        if self.model.reach.sizes is not None:
            low, high = self.model.reach.sizes
            return low <= size <= high
        law = self.document.message_size
        return law is not None and not law.extrapolated(size)


def _by_node(item: LoadPrediction, factors: NodeFactors) -> LoadPrediction:
    """The prediction of alike nodes as that of these nodes."""
    streams = zip(STREAMS, factors.streams(item.load), strict=True)
    groups = zip(item.groups, item.load.computing, strict=True)
    return msgspec.structs.replace(
        item,
        **{name: times(getattr(item, name), factor) for name, factor in streams},
        groups=tuple(times(rate, factors.comp[group.node]) for rate, group in groups),
    )


def predict(
    document: Document,
    situations: Sequence[Situation],
    *,
    name: str | None = None,
    faithful: bool = False,
    size: int | None = None,
) -> list[Prediction]:
    """`FittedModel.predict` of a document that is asked once."""
    return FittedModel(document, name, faithful=faithful).predict(situations, size)


def predictor(
    document: Document, name: str, *, faithful: bool = False
) -> Callable[[Sequence[Situation]], list[Prediction | None]]:
    """The model as a function of situations, None where it cannot answer."""
    model = FittedModel(document, name, faithful=faithful)

    def answer(situations: Sequence[Situation]) -> list[Prediction | None]:
        inside = [item for item in situations if model.answers(item)]
        predictions = dict(zip(inside, model.predict(inside), strict=True))
        return [predictions.get(item) for item in situations]

    return answer
