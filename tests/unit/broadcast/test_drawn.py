"""`broadcast draw`: the trees of the thesis, as text and as a picture."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.broadcast.drawn import BroadcastTree, TreeMessage, ranks_by_priority, tree_rows, tree_svg
from elbowroom.errors import ElbowroomError, UsageError
from elbowroom.launch import build
from elbowroom.verbs.broadcast_draw import DrawBroadcast


@pytest.fixture(scope="module")
def library() -> None:
    try:
        build.broadcast_costs()
    except ElbowroomError as error:
        pytest.skip(error.sentence())


def drawn(**options: object) -> BroadcastTree:
    return DrawBroadcast(**options).do()


@pytest.mark.parametrize(("tree", "steps"), [("flat", 6), ("binary", 4), ("binomial", 3)])
def test_trees_for_six_recipients_have_the_steps_of_figure_4_1(library: None, tree: str, steps: int) -> None:
    assert drawn(tree=tree, recipients=6).steps == steps


def test_the_binomial_tree_is_drawn_rank_below_rank(library: None) -> None:
    rows = [(text, message.step) for text, message in tree_rows(drawn(recipients=6)) if message]
    assert rows == [("├─ 1", 1), ("│  ├─ 3", 2), ("│  └─ 5", 3), ("├─ 2", 2), ("│  └─ 6", 3), ("└─ 4", 3)]


def test_recipients_of_higher_priority_get_the_data_sooner(library: None) -> None:
    tree = drawn(recipients=11, priorities="rising")  # Fig. 4.2b
    step = {message.receiver: message.step for message in tree.messages}
    assert step[11] == 1
    assert sorted(step, key=lambda rank: (step[rank], -rank)) == list(range(11, 0, -1))


def test_a_picture_has_each_rank_once_and_a_line_for_each_message(library: None) -> None:
    root = ElementTree.fromstring(tree_svg(drawn(tree="4-ary", recipients=30)))
    circles = [element for element in root.iter() if element.tag.endswith("circle")]
    lines = [element for element in root.iter() if element.tag.endswith("line")]
    assert (len(circles), len(lines)) == (31, 30)
    assert len({(circle.get("cx"), circle.get("cy")) for circle in circles}) == 31


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20))
def test_the_order_of_priorities_is_stable(priorities: list[int]) -> None:
    ranks = ranks_by_priority(len(priorities), tuple(priorities))
    assert sorted(ranks) == list(range(1, len(priorities) + 1))
    keys = [(-priorities[rank - 1], rank) for rank in ranks]
    assert keys == sorted(keys)


def test_a_chain_of_many_ranks_is_drawn() -> None:
    messages = tuple(
        TreeMessage(sender=rank, receiver=rank + 1, depth=rank + 1, step=rank + 1) for rank in range(3000)
    )
    tree = BroadcastTree(tree="chain", recipients=3000, steps=3000, depth=3000, messages=messages)
    assert sum(1 for _ in tree_rows(tree)) == 3001
    assert tree_svg(tree).count("<circle") == 3001


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"tree": "two"}, "tree"),
        ({"tree": "oak"}, "tree"),
        ({"recipients": 0}, "recipients"),
        ({"recipients": 501, "out": "t.svg"}, "recipients"),
        ({"recipients": 3, "priorities": "1,2"}, "priorities"),
    ],
)
def test_what_cannot_be_drawn_is_named(options: dict[str, object], field: str) -> None:
    with pytest.raises(UsageError) as refused:
        drawn(**options)
    assert refused.value.field == field
