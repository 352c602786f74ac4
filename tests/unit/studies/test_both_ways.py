"""Every statement of every study, through the whole judge: confirmed with the paper's numbers, refuted with
the opposite, undecided where noise hides everything (tests/worlds.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import papers
from elbowroom.studies import STUDIES
from elbowroom.studies.document import JudgedStatement, judged
from worlds import ALL

Name = tuple[str, str, str]
"""Paper, label of the exhibit, text of the statement."""


def statements() -> Iterator[Name]:
    for paper in ("denis2021", "langguth2018", "swartvagher2022", "tan2012"):
        for exhibit in STUDIES.get(paper).exhibits:
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
    study, here, evidence = papers.evidence(paper, world)
    return {
        (paper, exhibit.label, statement.text): judged(statement, exhibit, evidence, here)
        for exhibit in study.exhibits
        for statement in exhibit.statements
    }


def test_every_paper_has_worlds() -> None:
    assert set(ALL) == set(STUDIES.names())


@pytest.mark.parametrize("name", list(statements()), ids=" / ".join)
@pytest.mark.parametrize(
    ("kind", "verdict"), [("paper", "confirmed"), ("opposite", "refuted"), ("noise", "undecided")]
)
def test_a_statement_comes_out_as_planted(verdicts: Verdicts, name: Name, kind: str, verdict: str) -> None:
    outcomes = {world: found[name] for world, found in verdicts(name[0], kind).items()}
    assert verdict in [outcome.verdict for outcome in outcomes.values()], outcomes
