"""Messages that share a bandwidth, against a simulation in small steps and against sums."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elbowroom.profile.curve import NicCurve, estimated_bandwidth, shared
from elbowroom.profile.intervals import shared_finish

Array = npt.NDArray[np.float64]
FREE = 1e9


def stepped(start: Array, limit: Array, work: Array, sender: list[int], totals: list[float]) -> Array:
    """The same by brute force: in steps of 1 ms all senders get the same share, and all messages of each."""
    step = 1e-3
    left = work.copy()
    finish = limit.copy()
    there = np.ones(len(start), dtype=bool)
    time = 0.0
    while there.any():
        now = there & (start <= time + step / 2)
        messages = np.bincount(np.array(sender)[now], minlength=max(sender) + 1)
        senders = np.count_nonzero(messages)
        if now.any():
            left[now] -= totals[senders] / senders / messages[np.array(sender)[now]] * step
        time += step
        done = now & ((left <= 1e-9) | (limit <= time + step / 2))
        finish[done] = np.minimum(time, limit[done])
        there &= ~done
    return finish


def finish_of(
    start: list[float], work: list[float], total: float = 100.0, limit: float = FREE
) -> list[float]:
    count = len(start)
    return shared_finish(
        np.array(start), np.full(count, limit), np.array(work), np.arange(count), [total] * (count + 1)
    ).tolist()


def test_one_message_has_all_of_the_bandwidth() -> None:
    assert finish_of([2.0], [100.0]) == [3.0]


@pytest.mark.parametrize("n", [2, 3, 8])
def test_n_equal_messages_take_n_times_longer(n: int) -> None:
    assert finish_of([1.0] * n, [100.0] * n) == pytest.approx([1.0 + n] * n)


def test_a_short_message_beside_a_long_one_takes_twice_its_time() -> None:
    assert finish_of([0.0, 0.0], [1000.0, 100.0]) == pytest.approx([11.0, 2.0])


def test_a_message_that_is_known_to_be_complete_leaves_its_share() -> None:
    finish = shared_finish(
        np.zeros(2), np.array([1.0, FREE]), np.array([1000.0, 150.0]), np.arange(2), [100.0] * 3
    )
    assert finish.tolist() == pytest.approx([1.0, 2.0])


def test_messages_of_one_sender_count_as_one_sender() -> None:
    totals = [100.0, 100.0, 150.0]
    one = shared_finish(np.zeros(2), np.full(2, FREE), np.full(2, 150.0), np.array([0, 0]), totals)
    two = shared_finish(np.zeros(2), np.full(2, FREE), np.full(2, 150.0), np.array([0, 1]), totals)
    assert one.tolist() == pytest.approx([3.0, 3.0])
    assert two.tolist() == pytest.approx([2.0, 2.0])


def test_a_sender_with_more_messages_gets_no_more_than_another() -> None:
    sender = np.array([0, 0, 0, 1])
    finish = shared_finish(np.zeros(4), np.full(4, FREE), np.full(4, 100.0), sender, [100.0] * 3)
    assert finish.tolist() == pytest.approx([4.0, 4.0, 4.0, 2.0])


@given(
    messages=st.lists(
        st.tuples(st.integers(0, 400), st.integers(1, 300), st.integers(0, 2), st.integers(1, 1200)),
        min_size=1,
        max_size=9,
    ),
    gain=st.sampled_from((1.0, 1.4)),
)
@settings(max_examples=40, deadline=None)
def test_it_agrees_with_a_simulation_in_small_steps(
    messages: list[tuple[int, int, int, int]], gain: float
) -> None:
    start = np.array([one[0] for one in messages]) / 1000
    work = np.array([one[1] for one in messages]) / 1.0
    sender = [one[2] for one in messages]
    limit = start + np.array([one[3] for one in messages]) / 1000
    totals = [1000.0, 1000.0, 1000.0 * gain, 1000.0 * gain]
    expected = stepped(start, limit, work, sender, totals)
    finish = shared_finish(start, limit, work, np.array(sender), totals)
    # Each message that comes or goes is up to a step early or late for all others.
    np.testing.assert_allclose(finish, expected, atol=1.5e-3 * (1 + len(messages)))


@given(
    messages=st.lists(st.tuples(st.floats(0, 10), st.floats(0.1, 500)), min_size=1, max_size=40),
)
@settings(deadline=None)
def test_the_last_finish_is_that_of_any_server_that_never_idles(messages: list[tuple[float, float]]) -> None:
    finish = finish_of([one[0] for one in messages], [one[1] for one in messages])
    end = 0.0
    for start, work in sorted(messages):
        end = max(end, start) + work / 100.0
    assert max(finish) == pytest.approx(end)


def test_the_simulation_has_one_event_for_each_message_that_comes_or_goes() -> None:
    generator = np.random.default_rng(1)
    count = 100_000
    start = np.sort(generator.uniform(0, 100.0, count))
    operations = 0

    class Counted(list[float]):
        def __getitem__(self, index: object) -> float:  # type: ignore[override]
            nonlocal operations
            operations += 1
            return super().__getitem__(index)  # type: ignore[index]

    totals = Counted([1000.0] * 65)
    work = generator.uniform(0.1, 1.8, count)
    shared_finish(start, start + 1e6, work, np.arange(count) % 64, totals)
    assert operations < 3 * count


def test_small_messages_are_more_work_where_the_curve_says_so() -> None:
    curve = NicCurve(total=(1e9,), sizes=(1e3, 1e6), relative=(0.25, 1.0))
    assert curve.work(np.array([1e3, 1e6, 1e7])).tolist() == pytest.approx([4e3, 1e6, 1e7])


def test_more_senders_than_calibrated_get_the_last_bandwidth() -> None:
    assert NicCurve(total=(5.0, 8.0)).totals(4) == [5.0, 5.0, 8.0, 8.0, 8.0]
    assert shared(7.0, source="x").totals(2) == [7.0, 7.0, 7.0]


def test_the_bandwidth_of_a_profile_is_that_of_its_busy_periods() -> None:
    # Two periods at 100 B/s (one of two messages at once), and a slow one with few bytes.
    start, end = np.array([0.0, 0.0, 5.0, 10.0]), np.array([2.0, 2.0, 7.0, 20.0])
    assert estimated_bandwidth(start, end, np.array([100.0, 100.0, 200.0, 5.0])) == pytest.approx(100.0)
    assert estimated_bandwidth(start[:0], end[:0], start[:0]) is None
