"""What holds of every predicted step and every gain."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.advise.job import Job, of_data
from elbowroom.advise.steps import SetupRates, best_share, gain, overlapped, predicted, steps
from elbowroom.models.overlap.law import AcceleratedNode, OverlappedStep

TIMES = st.floats(1e-3, 1e3)
LOSSES = st.floats(1.0, 20.0)
BANDWIDTHS = st.floats(1e2, 1e5)


def array(value: float) -> np.ndarray:
    return np.array([value])


@given(TIMES, TIMES, LOSSES, LOSSES)
def test_a_step_is_that_of_the_overlap_model(
    t_comp: float, t_comm: float, l_comp: float, l_comm: float
) -> None:
    step = OverlappedStep(t_comp=t_comp, t_comm=t_comm, l_comp=l_comp, l_comm=l_comm)
    found = overlapped(array(t_comp), array(t_comm), array(l_comp), array(l_comm))
    assert float(found[0]) == pytest.approx(step.total, rel=1e-12)


@given(TIMES, TIMES, TIMES, LOSSES, LOSSES)
def test_the_best_share_takes_as_little_as_bisection_finds(
    whole: float, t_acc: float, t_comm: float, l_comp: float, l_comm: float
) -> None:
    node = AcceleratedNode(
        work=1.0, p_comp=1 / whole, p_acc=1 / t_acc, t_comm=t_comm, l_comp=l_comp, l_comm=l_comm
    )
    times = (array(value) for value in (whole, t_comm, l_comp, l_comm, t_acc))
    share = float(best_share(*times, np.array([True]))[0])
    assert node.split(share).total == pytest.approx(node.best_split().total, rel=1e-9)


def job(**step: object) -> Job:
    return of_data(
        {
            "step": {"comp_bytes": 1e9, "comm_bytes": 1e8, **step},
            "now": {"cores": 4, "comp_node": 0, "comm_node": 0, "overlap": True},
            "may": {"overlap": [False], "cores": "every"},
        }
    )


STREAMS = st.tuples(BANDWIDTHS, BANDWIDTHS, st.floats(0.1, 1.0), st.floats(0.1, 1.0))


def rates(streams: list[tuple[float, float, float, float]]) -> SetupRates:
    """Three draws around each setup's bandwidths."""
    columns = np.array([(a, b, a * c, b * d) for a, b, c, d in streams]).T
    draws = np.stack([columns, columns * 1.01, columns * 0.99], axis=1)
    return SetupRates(streams=draws, moved=np.array([1e9]), discrepancy=np.full((4, len(streams)), 0.01))


@given(STREAMS, st.floats(0.0, 0.9))
def test_a_separator_only_adds_what_it_takes_alone(
    streams: tuple[float, float, float, float], share: float
) -> None:
    asked = job(separator=share)
    found = steps(asked, [asked.now], rates([streams]))
    rest = overlapped(found.t_comp, found.t_comm, found.l_comp, found.l_comm)
    assert found.total == pytest.approx(found.separator + rest, rel=1e-12)
    assert found.separator + found.t_comp == pytest.approx(
        1e9 / np.array([[streams[0] * f] for f in (1.0, 1.01, 0.99)]) / 1e6, rel=1e-9
    )


@given(STREAMS, STREAMS)
def test_what_a_change_gains_its_reverse_costs(
    one: tuple[float, float, float, float], two: tuple[float, float, float, float]
) -> None:
    asked = job()
    other = of_data(
        {
            "step": {"comp_bytes": 1e9, "comm_bytes": 1e8},
            "now": {"cores": 5, "comp_node": 0, "comm_node": 0, "overlap": True},
            "may": {"cores": [4]},
        }
    ).now
    a, b = predicted(asked, [asked.now, other], rates([one, two]))
    there, back = gain(a, b), gain(b, a)
    assert (1 - there.value) * (1 - back.value) == pytest.approx(1.0, rel=1e-9)
    assert (1 - there.low) * (1 - back.high) == pytest.approx(1.0, rel=1e-9)
    assert there.low <= there.value <= there.high
    assert there.value == pytest.approx(1 - b.total / a.total, rel=1e-9)


@given(STREAMS)
def test_a_change_that_changes_no_bandwidth_is_sure_of_what_it_gains(
    streams: tuple[float, float, float, float],
) -> None:
    asked = job()
    a, b = predicted(asked, [asked.now, asked.now], rates([streams, streams]))
    found = gain(a, b)
    assert found.low == pytest.approx(0.0, abs=1e-9)
    assert found.high == pytest.approx(0.0, abs=1e-9)
