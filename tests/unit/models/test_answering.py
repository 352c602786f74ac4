"""Predictions of fitted and published models: intervals, flags, refusals."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from elbowroom.errors import UsageError
from elbowroom.models import published
from elbowroom.models.base import Provenance
from elbowroom.models.curves import STREAMS, Situation
from elbowroom.models.document import Document
from elbowroom.models.fit import fit
from elbowroom.models.load import NORMAL_90
from elbowroom.models.predict import FittedModel, check, predict, predictor, situations
from elbowroom.models.published import of_published
from elbowroom.models.registry import fitted_models
from elbowroom.models.threshold import law as threshold
from elbowroom.models.threshold.model import band

FITTED_TO = (1, 2, 4, 6, 8, 10, 12, 14, 16)


@pytest.fixture(scope="module")
def henri(thesis_curves: Any) -> Document:
    curves = thesis_curves("henri", noise=0.01, ns=FITTED_TO, places=[(0, 0), (1, 1), (0, 1)])
    return fit(curves, Provenance(), created="")


@pytest.fixture(scope="module")
def local_only(thesis_curves: Any) -> Document:
    return fit(thesis_curves("henri", noise=0.01, places=[(0, 0)]), Provenance(), created="")


def at(comp: int, comm: int, n: int, n_other: int = 0) -> Situation:
    return Situation(comp_node=comp, comm_node=comm, n=n, n_other=n_other)


@pytest.mark.parametrize("name", published.names())
def test_a_published_machine_answers_as_its_table_says(name: str) -> None:
    document, machine = of_published(name), published.load(name)
    asked = situations(document.machine)
    assert len(asked) == machine.shape.nodes**2 * machine.cores_first_socket
    for item, answer in zip(asked, predict(document, asked, faithful=True), strict=True):
        values = tuple(getattr(answer, stream).value for stream in STREAMS)
        assert values == threshold.predict(machine.model, item, faithful=True)[0]


def test_the_interval_of_a_published_machine_is_its_mean_error_of_table_6_1() -> None:
    samples, other = predict(of_published("billy"), [at(0, 0, 4), at(0, 1, 4)])
    for answer, percent in ((samples.comm_together, 8.22), (other.comm_together, 10.84)):
        half = NORMAL_90 * math.sqrt(math.pi / 2) * percent / 100
        assert answer.high / answer.value - 1 == pytest.approx(half)
        assert 1 - answer.low / answer.value == pytest.approx(half)
    assert "interval: published mean error" in samples.flags


def test_the_default_model_is_the_one_with_intervals_of_its_own(henri: Document) -> None:
    asked = [at(0, 0, 8)]
    assert predict(henri, asked) == predict(henri, asked, name="flow")
    assert predict(henri, asked) != predict(henri, asked, name="threshold")
    assert fitted_models(henri) == ("flow", "robust", "threshold")


@pytest.mark.parametrize("name", ["flow", "robust", "threshold"])
def test_every_model_answers_every_situation_inside_its_interval(henri: Document, name: Any) -> None:
    for answer in predict(henri, situations(henri.machine), name=name):
        for stream in STREAMS:
            interval = getattr(answer, stream)
            assert 0 <= interval.low <= interval.value <= interval.high < 1e6


def test_more_cores_than_measured_are_extrapolated_and_said_so(henri: Document) -> None:
    inside, outside = predict(henri, [at(0, 0, 16), at(0, 0, 17)])
    assert "extrapolated" not in inside.flags
    assert "extrapolated" in outside.flags


def test_both_sockets_are_extrapolated_unless_measured(henri: Document) -> None:
    assert "extrapolated" in predict(henri, [at(0, 0, 4, 4)])[0].flags


def test_no_computing_core_is_no_extrapolation(henri: Document) -> None:
    answer = predict(henri, [at(0, 0, 0)])[0]
    assert answer.comp_together.value == 0
    assert answer.comm_together.value == pytest.approx(answer.comm_alone.value)
    assert "extrapolated" not in answer.flags


def test_a_virtual_machine_stays_virtual(henri: Document) -> None:
    shape = msgspec.structs.replace(henri.machine, virtual=True)
    document = msgspec.structs.replace(henri, machine=shape)
    assert "virtual" in predict(document, [at(0, 0, 8)])[0].flags


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        (at(0, 0, 19), "cores"),
        (at(0, 0, -1), "cores"),
        (at(0, 0, 4, 19), "cores_other"),
        (at(2, 0, 4), "comp_node"),
        (at(0, -1, 4), "comm_node"),
    ],
)
def test_what_the_machine_does_not_have_is_refused(henri: Document, asked: Situation, field: str) -> None:
    with pytest.raises(UsageError) as caught:
        predict(henri, [asked])
    assert caught.value.field == field
    assert caught.value.hint


def test_one_socket_has_no_other_cores(henri: Document) -> None:
    with pytest.raises(UsageError, match="0 cores on its other socket"):
        check(msgspec.structs.replace(henri.machine, sockets=1), at(0, 0, 4, 1))


def test_a_model_that_was_not_fitted_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="it has: threshold"):
        predict(of_published("bora"), [at(0, 0, 4)], name="flow")


def test_faithful_goes_with_the_threshold_model_only(henri: Document) -> None:
    with pytest.raises(UsageError, match="is only valid for the threshold model"):
        predict(henri, [at(0, 0, 4)], name="flow", faithful=True)


def test_a_model_without_any_is_refused(henri: Document) -> None:
    empty = msgspec.structs.replace(henri, models=type(henri.models)())
    with pytest.raises(UsageError, match="it contains no model"):
        predict(empty, [at(0, 0, 4)])


def test_flow_with_other_parameters_is_refused(henri: Document) -> None:
    flow = henri.models.flow
    assert flow is not None
    renamed = msgspec.structs.replace(flow, names=("temperature", *flow.names[1:]))
    models = msgspec.structs.replace(henri.models, flow=renamed)
    with pytest.raises(UsageError, match="temperature"):
        predict(msgspec.structs.replace(henri, models=models), [at(0, 0, 4)])


def test_one_placement_says_nothing_of_the_other_side(local_only: Document) -> None:
    model = FittedModel(local_only, "threshold")
    assert [model.answers(item) for item in (at(0, 0, 4), at(1, 0, 4), at(0, 1, 4))] == [True, False, False]
    with pytest.raises(UsageError, match="calibrated without remote data"):
        predict(local_only, [at(1, 1, 4)], name="threshold")
    assert "extrapolated" in predict(local_only, [at(1, 1, 4)], name="flow")[0].flags
    assert any("remote" in sentence for sentence in local_only.validity)


def test_a_predictor_says_none_where_the_model_cannot(local_only: Document) -> None:
    first, second = predictor(local_only, "threshold")([at(1, 1, 4), at(0, 0, 4)])
    assert first is None
    assert second is not None
    assert second.situation == at(0, 0, 4)


def test_placements_that_were_not_sampled_have_an_interval_of_their_own(
    henri: Document, local_only: Document
) -> None:
    part = henri.models.threshold
    assert part is not None
    assert band(part, henri.machine, 0, 1)[0] == part.bands["other"]
    alone = local_only.models.threshold
    assert alone is not None
    result, notes = band(alone, local_only.machine, 0, 1)
    assert result == alone.bands["local"]
    assert "interval: sample placements only" in notes


def test_fewer_values_than_parameters_are_refused(thesis_curves: Any) -> None:
    with pytest.raises(UsageError) as caught:
        fit(thesis_curves("henri", ns=(4, 5), places=[(0, 0)]), Provenance(), created="")
    assert "2 of the 3 counts" in caught.value.sentence()
    assert caught.value.hint


def test_what_cannot_be_fitted_is_said_and_the_others_are_there(thesis_curves: Any) -> None:
    curves = thesis_curves("henri", ns=(2, 9, 18), places=[(0, 1), (1, 0)])
    result = fit(curves, Provenance(), created="")
    assert fitted_models(result) == ("flow",)
    assert any(sentence.startswith("threshold: not fitted, since") for sentence in result.validity)
    few = fit(thesis_curves("henri", ns=(1, 9, 18), places=[(0, 0)]), Provenance(), created="")
    assert fitted_models(few) == ("robust", "threshold")
    assert any("12 measured bandwidths are fewer than the" in sentence for sentence in few.validity)


def test_what_a_model_rests_on_is_written_down(henri: Document) -> None:
    known = henri.calibration
    assert (known.n_low, known.n_high, known.runs) == (1, 16, 27)
    assert known.placements == ((0, 0), (0, 1), (1, 1))
    assert any("1 to 16 computing cores" in sentence for sentence in henri.validity)
    assert any("Both sockets" in sentence for sentence in henri.validity)
