from __future__ import annotations

import numpy as np
import pytest

from elbowroom.models.curves import Curves, Row, Shape, Situation
from elbowroom.models.flow import fit as flow_fit
from elbowroom.models.flow.part import FlowPart
from elbowroom.models.next_run import first, half_widths, news, next_run, teaches, width

TWO_SOCKETS = Shape(name="two", cores_first_socket=18, numa_per_socket=1)
FOUR_NODES = Shape(name="four", cores_first_socket=18, numa_per_socket=2)
ONE_NODE = Shape(name="one", cores_first_socket=8, numa_per_socket=1, sockets=1)


def every(shape: Shape) -> tuple[Situation, ...]:
    nodes, cores = range(shape.nodes), range(1, shape.cores_first_socket + 1)
    return tuple(Situation(comp_node=i, comm_node=j, n=n) for i in nodes for j in nodes for n in cores)


def at(comp_node: int, comm_node: int, n: int) -> Situation:
    return Situation(comp_node=comp_node, comm_node=comm_node, n=n)


def test_the_start_bends_both_diagonals_and_tries_every_other_kind_of_placement() -> None:
    start = first(TWO_SOCKETS, every(TWO_SOCKETS), 24)
    assert start[:2] == (at(0, 0, 18), at(1, 1, 18))
    assert set(start) == {
        *(at(node, node, n) for node in (0, 1) for n in (1, 7, 18)),
        at(0, 1, 18),
        at(1, 0, 18),
    }
    kinds = {(item.comp_node, item.comm_node) for item in first(FOUR_NODES, every(FOUR_NODES), 24)}
    assert kinds == {(0, 0), (2, 2), (0, 2), (2, 0), (0, 1), (2, 3)}


@pytest.mark.parametrize("budget", [1, 2, 5])
def test_the_start_keeps_to_the_budget(budget: int) -> None:
    assert len(first(TWO_SOCKETS, every(TWO_SOCKETS), budget)) == budget


def test_the_start_takes_the_nearest_count_that_can_be_measured() -> None:
    few = tuple(item for item in every(TWO_SOCKETS) if item.n in (2, 9, 16))
    assert {item.n for item in first(TWO_SOCKETS, few, 24)} == {2, 9, 16}
    assert first(ONE_NODE, (at(0, 0, 1),), 24) == (at(0, 0, 1),)
    assert first(TWO_SOCKETS, (at(1, 0, 3), at(1, 0, 4)), 24) == (at(1, 0, 4),)


def test_what_moves_with_everything_teaches_most_and_what_is_known_nothing() -> None:
    generator = np.random.default_rng(1)
    shared = generator.standard_normal((4000, 1))
    own = generator.standard_normal((4000, 1))
    nothing = np.zeros((4000, 1))
    # Situations 0-3 vary together, 4 alone, 5 not at all; all four streams alike.
    table = 0.1 * np.concatenate([shared, shared, shared, shared, own, nothing], axis=1)
    gains = teaches(np.repeat(table[:, :, None], 4, axis=2), np.full(4, 0.01))
    assert gains[5] == 0.0
    assert gains[0] == pytest.approx(4 * gains[4], rel=0.05)
    # All of the variance of four situations' two streams together, but for the error of measuring.
    assert gains[0] == pytest.approx(8 * 0.1**2, rel=0.05)


def test_a_value_that_is_measured_badly_teaches_less() -> None:
    logs = 0.1 * np.random.default_rng(2).standard_normal((500, 3, 4))
    assert (teaches(logs, np.full(4, 0.01)) > teaches(logs, np.full(4, 0.3))).all()


def test_what_was_measured_is_no_news_and_its_neighbours_little() -> None:
    candidates = (at(0, 0, 9), at(0, 0, 10), at(0, 0, 18), at(1, 1, 9), at(0, 1, 9))
    found = news(TWO_SOCKETS, candidates, [at(0, 0, 9)])
    assert found[0] == 0.0
    assert 0 < found[1] < 0.2
    assert found[2:] == pytest.approx([1.0, 1.0, 1.0], abs=0.01)
    symmetric = news(FOUR_NODES, (at(3, 2, 9), at(1, 1, 9)), [at(2, 3, 9)])
    assert symmetric == pytest.approx([0.1, 1.0])


def fitted(rows: int, noise: float) -> FlowPart:
    """FLOW on the start of a machine whose memory saturates."""
    generator = np.random.default_rng(3)
    start = first(TWO_SOCKETS, every(TWO_SOCKETS), rows)
    found = []
    for item in start:
        most = 70000.0 if item.comp_node == 0 else 30000.0
        alone = min(4500.0 * item.n, most)
        together = min(alone, most - 9000.0) if item.comp_node == item.comm_node else alone
        streams = np.array([alone, 11000.0, together, 9000.0 if together < alone else 11000.0])
        values = (streams * (1 + noise * generator.standard_normal(4))).tolist()
        found.append(
            Row(
                situation=item,
                comp_alone=values[0],
                comm_alone=values[1],
                comp_together=values[2],
                comm_together=values[3],
            )
        )
    return flow_fit.fit(Curves(shape=TWO_SOCKETS, rows=tuple(found)))


def test_the_next_run_is_one_that_was_not_measured() -> None:
    fit = fitted(8, 0.01)
    candidates = every(TWO_SOCKETS)
    measured = list(first(TWO_SOCKETS, candidates, 8))
    for _ in range(6):
        item = next_run(TWO_SOCKETS, fit, candidates, measured)
        assert item not in measured
        measured.append(item)
    last = next_run(TWO_SOCKETS, fit, candidates, candidates[1:])
    assert last == candidates[0]


def test_without_a_fit_the_farthest_run_is_next() -> None:
    candidates = tuple(at(0, 0, n) for n in range(1, 19))
    assert next_run(TWO_SOCKETS, None, candidates, [at(0, 0, 1), at(0, 0, 4)]) == at(0, 0, 18)


def test_nine_of_ten_half_widths_are_below_the_width() -> None:
    candidates = every(TWO_SOCKETS)
    fit = fitted(8, 0.01)
    widths = half_widths(TWO_SOCKETS, fit, candidates)
    assert widths.shape == (72, 2)
    assert (widths > 0).all()
    assert np.mean(widths <= width(TWO_SOCKETS, fit, candidates)) == pytest.approx(0.9, abs=0.01)
