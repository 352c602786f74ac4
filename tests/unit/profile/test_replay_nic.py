"""Flows of a replay that share both ends of their way: rates that follow from the definition."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from elbowroom.profile.replay import Nics

FULL = 100.0


def out(node: int) -> int:
    return 2 * node


def into(node: int) -> int:
    return 2 * node + 1


def rates(
    *flows: Sequence[int], weights: Sequence[float] = (), totals: Sequence[float] = (FULL, FULL)
) -> list[float]:
    """Bandwidth of each flow over these ends, each of a rank of its own, when all send at once."""
    nics = Nics(totals)
    for number, ends in enumerate(flows):
        weight = weights[number] if weights else 1.0
        nics.open(ends, [[(0, number)]] * len(ends), weight)
        nics.add(0.0, number, 1.0, 0, (number,))
    first = {number: then for then, number, _ in nics.share(0.0)}
    return [1.0 / first[number] for number in range(len(flows))]


def test_a_flow_alone_gets_the_whole_nic() -> None:
    assert rates((out(0), into(1))) == pytest.approx([FULL])


def test_what_a_flow_cannot_use_at_its_receiver_is_left_to_its_senders_other_flows() -> None:
    # Three flows into node 1 get a third of it each; the other one out of node 0 has the rest of its egress.
    found = rates((out(0), into(1)), (out(2), into(1)), (out(3), into(1)), (out(0), into(4)))
    assert found == pytest.approx([FULL / 3, FULL / 3, FULL / 3, 2 * FULL / 3])


def test_what_a_flow_cannot_use_at_its_sender_is_left_to_its_receivers_other_flows() -> None:
    found = rates((out(0), into(1)), (out(0), into(2)), (out(0), into(3)), (out(4), into(1)))
    assert found == pytest.approx([FULL / 3, FULL / 3, FULL / 3, 2 * FULL / 3])


def test_connections_of_a_flow_count() -> None:
    assert rates((out(0), into(1)), (out(0), into(2)), weights=(3.0, 1.0)) == pytest.approx([75.0, 25.0])


def test_a_flow_of_which_one_end_is_known_shares_that_end() -> None:
    assert rates((out(0),), (out(0), into(1)), (into(1),)) == pytest.approx([50.0, 50.0, 50.0])


def test_an_end_has_the_bandwidth_of_its_senders() -> None:
    # Two senders reach 150 together, and the receiver's end has as many receivers.
    found = rates((out(0), into(1)), (out(0), into(1)), totals=(FULL, FULL, 150.0))
    assert found == pytest.approx([75.0, 75.0])


def test_messages_of_a_flow_share_it_and_end_in_order_of_size() -> None:
    nics = Nics((FULL, FULL))
    nics.open((out(0), into(1)), [[(0, 0)], [(0, 1)]], 1.0)
    nics.add(0.0, 0, 100.0, 0, (7,))
    nics.add(0.0, 0, 50.0, 0, (8,))
    ((then, number, _),) = nics.share(0.0)
    assert then == pytest.approx(1.0)
    job, groups, last = nics.take(then, number)
    assert (job, groups) == (0, (8,))
    assert last == pytest.approx(1.5)
    assert nics.take(1.5, number) == (0, (7,), None)


def test_only_flows_that_an_event_touches_get_new_rates() -> None:
    nics = Nics((FULL, FULL))
    for number, (a, b) in enumerate(((0, 1), (2, 3), (0, 4))):
        nics.open((out(a), into(b)), [[(0, a)], [(0, b)]], 1.0)
        if number < 2:
            nics.add(0.0, number, 100.0, 0, (number,))
    nics.share(0.0)
    before = nics.version(1)
    nics.add(0.5, 2, 100.0, 0, (2,))
    assert {number for _, number, _ in nics.share(0.5)} == {0, 2}
    assert nics.version(1) == before
    assert not nics.dirty
