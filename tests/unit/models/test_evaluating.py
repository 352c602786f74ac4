from __future__ import annotations

import msgspec
import pytest

from elbowroom.errors import UsageError
from elbowroom.models import published
from elbowroom.models.curves import Curves, Row, Shape, Situation, Streams
from elbowroom.models.evaluate import (
    MAX_MIN,
    NO_CONTENTION,
    Answer,
    ErrorTable,
    ModelErrors,
    evaluate,
    sample_placements,
    threshold_predictor,
)
from elbowroom.models.load import Prediction
from elbowroom.models.threshold.law import curve
from elbowroom.stats.interval import Interval

SHAPE = Shape(name="toy", cores_first_socket=4, numa_per_socket=1)


def row(at: tuple[int, int, int], streams: tuple[float | None, ...], n_other: int = 0) -> Row:
    comp_alone, comm_alone, comp_together, comm_together = streams
    return Row(
        situation=Situation(comp_node=at[0], comm_node=at[1], n=at[2], n_other=n_other),
        comp_alone=comp_alone,
        comm_alone=comm_alone,
        comp_together=comp_together,
        comm_together=comm_together,
    )


def table(*rows: Row, **predictors: Answer) -> ErrorTable:
    """The table of predictors that always say the same."""
    said = {name: (lambda asked, answer=answer: [answer] * len(asked)) for name, answer in predictors.items()}
    return evaluate(Curves(shape=SHAPE, rows=rows), said)


def line(found: ErrorTable, name: str) -> ModelErrors:
    return next(item for item in found.lines if item.model == name)


def test_errors_are_relative_to_the_measured_value_and_apart_by_stream_and_placement() -> None:
    found = table(
        row((0, 0, 1), (100.0, 100.0, 80.0, 50.0)),
        row((0, 1, 1), (100.0, 100.0, 100.0, 100.0)),
        row((1, 0, 1), (100.0, 100.0, 100.0, 80.0)),
        steady=(0.0, 0.0, 100.0, 100.0),
    )
    steady = line(found, "steady")
    assert steady.comp.samples == pytest.approx(0.25)
    assert steady.comp.others == 0.0
    assert steady.comm.samples == pytest.approx(1.0)
    assert steady.comm.others == pytest.approx(0.125)
    assert steady.comm.all == pytest.approx(1.25 / 3)
    assert steady.average == pytest.approx((1.25 / 3 + 0.25 / 3) / 2)


def test_the_naive_models_stand_behind_the_others() -> None:
    found = table(row((0, 0, 1), (100.0, 100.0, 80.0, 50.0)), mine=(0.0, 0.0, 80.0, 50.0))
    assert [(item.model, item.baseline) for item in found.lines] == [
        ("mine", False),
        (NO_CONTENTION, True),
        (MAX_MIN, True),
    ]
    assert line(found, NO_CONTENTION).comp.all == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("n", "alone", "comp", "comm"),
    [
        # 120 in all among n cores and the NIC: both fit; the NIC asks less than a share; the cores do; none.
        (1, (40.0, 60.0), 40.0, 60.0),
        (3, (150.0, 20.0), 100.0, 20.0),
        (3, (60.0, 90.0), 60.0, 60.0),
        (3, (150.0, 60.0), 90.0, 30.0),
    ],
)
def test_plain_max_min_shares_one_capacity(
    n: int, alone: tuple[float, float], comp: float, comm: float
) -> None:
    sample = row((0, 0, 4), (None, None, 70.0, 50.0))
    found = table(sample, row((0, 0, n), (*alone, comp, comm)))
    assert line(found, MAX_MIN).rows == 1
    assert line(found, MAX_MIN).average == pytest.approx(0.0)


def test_plain_max_min_is_wrong_by_up_to_63_percent_for_the_nic_of_henri() -> None:
    model = published.load("henri").model
    streams = curve(model, 0, 0, (18,), faithful=True)[0]
    peak = curve(model, 0, 0, (17,), faithful=True)[0]
    found = table(*(row((0, 0, n), tuple(values.tolist())) for n, values in ((17, peak), (18, streams))))
    assert line(found, MAX_MIN).comm.all == pytest.approx(0.62, abs=0.02)


def test_the_published_model_on_its_own_curves_errs_nowhere() -> None:
    model = published.load("henrisubnuma").model
    rows = [
        row((a, b, n), tuple(curve(model, a, b, (n,), faithful=True)[0].tolist()))
        for a in range(4)
        for b in range(4)
        for n in (1, 9, 18)
    ]
    curves = Curves(shape=model.shape, rows=tuple(rows))
    predictors = {
        "faithful": threshold_predictor(model, faithful=True),
        "repaired": threshold_predictor(model),
    }
    found = evaluate(curves, predictors)
    assert found.samples == ((0, 0), (2, 2))
    assert line(found, "faithful").average == pytest.approx(0.0)
    assert (line(found, "repaired").average or 0.0) > 0.001
    assert line(found, "repaired").comp.samples == pytest.approx(0.0, abs=0.01)


def test_what_a_model_cannot_answer_is_counted_not_scored() -> None:
    model = published.load("henri").model
    shape = model.shape
    good: Streams = (4455.4, 11481.1, 4455.4, 11481.1)
    curves = Curves(shape=shape, rows=(row((0, 0, 1), good), row((0, 0, 1), good, n_other=3)))
    found = line(evaluate(curves, {"threshold": threshold_predictor(model)}), "threshold")
    assert (found.rows, found.unanswered) == (1, 1)
    assert found.comm.all == pytest.approx(0.0)
    silent = line(evaluate(curves, {"silent": lambda asked: [None] * len(asked)}), "silent")
    assert silent.average is None
    assert silent.comp.samples is None


def test_intervals_are_judged_by_what_they_hold() -> None:
    at = Situation(comp_node=0, comm_node=0, n=1)
    narrow, wide = Interval(value=100.0, low=99.0, high=101.0), Interval(value=100.0, low=50.0, high=150.0)
    said = Prediction(
        situation=at, comp_alone=wide, comm_alone=wide, comp_together=wide, comm_together=narrow
    )
    found = table(
        row((0, 0, 1), (100.0, 100.0, 80.0, 100.5)), row((0, 0, 2), (100.0, 100.0, 80.0, 70.0)), said=said
    )
    assert line(found, "said").comm.covered == 0.5
    assert line(found, "said").comp.covered == 1.0
    assert line(found, NO_CONTENTION).comp.covered is None


def test_a_stream_that_was_not_measured_is_left_out_of_its_error_only() -> None:
    found = table(row((0, 0, 1), (100.0, 100.0, 80.0, None)), mine=(0.0, 0.0, 88.0, 1.0))
    assert line(found, "mine").comp.all == pytest.approx(0.1)
    assert line(found, "mine").comm.all is None
    assert line(found, "mine").average == pytest.approx(0.1)


def test_without_anything_together_there_is_nothing_to_evaluate() -> None:
    with pytest.raises(UsageError, match="nothing was measured together"):
        table(row((0, 0, 1), (100.0, 100.0, None, None)), mine=(0.0, 0.0, 0.0, 0.0))


def test_one_socket_has_one_sample_placement() -> None:
    assert sample_placements(msgspec.structs.replace(SHAPE, sockets=1)) == ((0, 0),)


def test_a_table_is_ready_for_json() -> None:
    found = table(row((0, 0, 1), (100.0, 100.0, 80.0, 50.0)), mine=(0.0, 0.0, 80.0, 50.0))
    assert msgspec.json.decode(msgspec.json.encode(found), type=ErrorTable) == found
