"""Every statement of every study, through the whole judge: confirmed with the paper's numbers, refuted with
the opposite, undecided where noise hides everything (tests/worlds.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import papers
from elbowroom.studies import STUDIES
from elbowroom.studies.document import JudgedStatement, judged
from elbowroom.studies.study import Exhibit, Judge
from worlds import ALL

Name = tuple[str, str, str]
"""Paper, label of the exhibit, text of the statement."""


def judges(paper: str) -> set[Judge]:
    return {statement.judge for exhibit in STUDIES.get(paper).exhibits for statement in exhibit.statements}


THESIS, PAPER = "swartvagher2022", "denis2021"


def exhibits(paper: str) -> list[Exhibit]:
    """Those of a paper that are not those of another one: chapter 5 of the thesis is the paper of 2021."""
    every = STUDIES.get(paper).exhibits
    if paper != THESIS:
        return list(every)
    shared = judges(PAPER)
    return [item for item in every if not {statement.judge for statement in item.statements} & shared]


def statements() -> Iterator[Name]:
    for paper in ("denis2021", "langguth2018", "swartvagher2022", "tan2012"):
        for exhibit in exhibits(paper):
            for statement in exhibit.statements:
                yield paper, exhibit.label, statement.text


Verdicts = Callable[[str, str], dict[str, dict[Name, JudgedStatement]]]


@pytest.fixture(scope="session")
def verdicts() -> Verdicts:
    """The statements of a paper in all worlds of a kind, judged once for all tests."""
    known: dict[tuple[str, str], dict[str, dict[Name, JudgedStatement]]] = {}

    def in_worlds(paper: str, kind: str) -> dict[str, dict[Name, JudgedStatement]]:
        if (paper, kind) not in known:
            worlds = getattr(ALL[paper], kind)
            known[paper, kind] = {name: judged_in(paper, world) for name, world in worlds.items()}
        return known[paper, kind]

    return in_worlds


def judged_in(paper: str, world: papers.World) -> dict[Name, JudgedStatement]:
    own = exhibits(paper)
    needed = [name for exhibit in own if exhibit.statements for name in exhibit.runs]
    _, here, evidence = papers.evidence(paper, world, needed)
    return {
        (paper, exhibit.label, statement.text): judged(statement, exhibit, evidence, here)
        for exhibit in own
        for statement in exhibit.statements
    }


def judging() -> set[str]:
    """The papers whose exhibits have statements."""
    return {paper for paper in STUDIES.names() if any(one.statements for one in exhibits(paper))}


def test_every_paper_with_statements_has_worlds() -> None:
    assert set(ALL) == judging()


def test_the_statements_of_chapter_5_are_judged_as_those_of_the_paper() -> None:
    assert judges(PAPER) < judges(THESIS)
    assert {paper for paper, _, _ in statements()} == judging()


@pytest.mark.parametrize("name", list(statements()), ids=" / ".join)
@pytest.mark.parametrize(
    ("kind", "verdict"), [("paper", "confirmed"), ("opposite", "refuted"), ("noise", "undecided")]
)
def test_a_statement_comes_out_as_planted(verdicts: Verdicts, name: Name, kind: str, verdict: str) -> None:
    outcomes = {world: found[name] for world, found in verdicts(name[0], kind).items()}
    assert verdict in [outcome.verdict for outcome in outcomes.values()], outcomes
