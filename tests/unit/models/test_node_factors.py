"""NUMA nodes of a socket that are not alike: billy's shape, four nodes on each of two sockets."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np
import pytest

from elbowroom.models.curves import STREAMS, Curves, Row, Situation
from elbowroom.models.load import Computing, Load, Messages
from elbowroom.models.node_factors import NodeFactors, alike, node_factors
from elbowroom.models.predict import FittedModel
from elbowroom.models.published import of_published
from elbowroom.models.threshold.fit import fit
from elbowroom.models.threshold.law import Threshold, curve

PUBLISHED = of_published("billy")
SHAPE = msgspec.structs.replace(PUBLISHED.machine, numa_per_socket=4)
BILLY = msgspec.structs.replace(PUBLISHED, machine=SHAPE)
"""The published parameters are of two nodes, as in the thesis' tables; the machine has eight."""
TRUE = NodeFactors(
    comm=(1.0, 0.93, 0.85, 0.8, 1.0, 0.96, 0.9, 0.88), comp=(1.0, 0.97, 0.9, 0.9, 1.0, 0.99, 0.94, 0.92)
)
"""The further from the first node of the socket, the slower."""


def billy() -> Threshold:
    part = BILLY.models.threshold
    assert part is not None
    return part.model(SHAPE)


def measured(ns: Iterable[int], factors: NodeFactors, noise: float = 0.002) -> Curves:
    """Curves of a machine that is billy but for these factors, from every node into every node."""
    rng = np.random.default_rng(0)
    counts, rows = [*ns], []
    for comp in range(SHAPE.nodes):
        for comm in range(SHAPE.nodes):
            by = np.array([factors.comp[comp], factors.comm[comm]] * 2)
            table = curve(billy(), comp, comm, counts) * by
            for n, streams in zip(counts, table * np.exp(rng.normal(0, noise, table.shape)), strict=True):
                at = Situation(comp_node=comp, comm_node=comm, n=n)
                rows.append(Row(situation=at, **dict(zip(STREAMS, map(float, streams), strict=True))))
    return Curves(shape=SHAPE, rows=tuple(rows))


CALIBRATED, HELD_BACK = range(1, SHAPE.cores_first_socket + 1, 2), range(2, SHAPE.cores_first_socket, 8)


def error(model: Threshold, factors: NodeFactors | None, of: Curves) -> float:
    """Mean relative error of both streams together."""
    off = []
    for row in of.rows:
        at = row.situation
        by = (1.0, 1.0) if factors is None else (factors.comp[at.comp_node], factors.comm[at.comm_node])
        predicted = curve(model, at.comp_node, at.comm_node, [at.n])[0, 2:] * by
        off.append(np.abs(predicted / np.array(row.streams[2:]) - 1))
    return float(np.mean(off))


def test_each_node_has_the_factor_that_its_bandwidths_alone_have() -> None:
    factors = node_factors(measured(CALIBRATED, TRUE))
    assert factors is not None
    assert factors.comm == pytest.approx(TRUE.comm, rel=0.005)
    assert factors.comp == pytest.approx(TRUE.comp, rel=0.005)


def test_nodes_that_are_alike_have_no_factors() -> None:
    assert node_factors(measured(CALIBRATED, NodeFactors(comm=(1.0,) * 8, comp=(1.0,) * 8))) is None


def test_factors_predict_nodes_and_counts_that_were_held_back() -> None:
    curves, held_back = measured(CALIBRATED, TRUE), measured(HELD_BACK, TRUE)
    factors = node_factors(curves)
    assert factors is not None
    assert error(fit(alike(curves, factors), resamples=0).model, factors, held_back) < 0.01
    assert error(fit(curves, resamples=0).model, None, held_back) > 0.05


DIFFERENT = msgspec.structs.replace(BILLY, node_factors=TRUE)


@pytest.mark.parametrize("node", [0, 2, 5])
def test_situations_and_loads_are_predicted_by_the_factors_of_their_nodes(node: int) -> None:
    here, plain = (FittedModel(document, "threshold") for document in (DIFFERENT, BILLY))
    at = Situation(comp_node=node, comm_node=node, n=8)
    load = Load(computing=(Computing(socket=0, node=node, count=8),), messages=Messages(node=node))
    factors = (TRUE.comp[node], TRUE.comm[node]) * 2
    for stream, factor in zip(STREAMS, factors, strict=True):
        for item, other in (
            (here.predict([at])[0], plain.predict([at])[0]),
            (here.predict_loads([load])[0], plain.predict_loads([load])[0]),
        ):
            assert getattr(item, stream).value == pytest.approx(factor * getattr(other, stream).value)
            assert getattr(item, stream).high == pytest.approx(factor * getattr(other, stream).high)
        drawn, same = here.draws([load]), plain.draws([load])
        assert getattr(drawn, stream) == pytest.approx(factor * getattr(same, stream))
    assert here.predict_loads([load])[0].groups[0] == here.predict_loads([load])[0].comp_together


def test_the_equations_as_published_know_no_factors() -> None:
    at = Situation(comp_node=2, comm_node=2, n=8)
    predicted = [
        FittedModel(document, "threshold", faithful=True).predict([at]) for document in (DIFFERENT, BILLY)
    ]
    assert predicted[0] == predicted[1]
