"""What intervals say of claims, and the claims' sentences."""

from __future__ import annotations

import pytest

from elbowroom.experiments.common.sentences import Claim
from elbowroom.results.judgement import Judgement, above, larger, suffers, unanimous
from elbowroom.stats.interval import Interval, Kept


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.1, 0.2, "confirmed"), (-0.2, -0.1, "refuted"), (-0.1, 0.1, "undecided"), (0.0, 0.1, "undecided")],
)
def test_a_value_is_above_a_limit_with_its_whole_interval(low: float, high: float, expected: str) -> None:
    assert above(Interval(value=(low + high) / 2, low=low, high=high)) == expected


def test_what_was_not_measured_was_not_tested() -> None:
    kept = Kept(value=0.5, low=0.4, high=0.6)
    assert {above(None), larger(None, kept), larger(kept, None), suffers(None)} == {"not tested"}


def test_of_two_values_one_is_larger_where_their_intervals_are_apart() -> None:
    small, large = Kept(value=0.5, low=0.4, high=0.6), Kept(value=0.8, low=0.7, high=0.9)
    assert (larger(large, small), larger(small, large)) == ("confirmed", "refuted")
    assert larger(small, Kept(value=0.6, low=0.5, high=0.7)) == "undecided"
    assert larger(small, Kept(value=0.9)) == "undecided"


@pytest.mark.parametrize(
    ("low", "value", "high", "expected"),
    [(0.8, 0.9, 0.94, "confirmed"), (0.96, 0.97, 1.0, "refuted"), (0.9, 0.94, 1.01, "undecided")],
)
def test_a_side_suffers_where_it_loses_more_than_5_percent(
    low: float, value: float, high: float, expected: str
) -> None:
    assert suffers(Kept(value=value, low=low, high=high)) == expected


@pytest.mark.parametrize(
    ("judgements", "expected"),
    [(["confirmed", "confirmed"], "confirmed"), (["confirmed", "refuted"], "undecided"), ([], "not tested")],
)
def test_several_judgements_are_one_where_they_agree(judgements: list[Judgement], expected: str) -> None:
    assert unanimous(judgements) == expected


def test_a_claim_is_a_sentence_and_a_finding() -> None:
    claim = Claim(statement="sends lose", judgement="refuted", why="they do not", paper="they do")
    assert claim.text == "The claim that sends lose is refuted here: they do not. The paper: they do."
    finding = claim.finding("k", before="Sends:", values={"n": 1}, shows_interference=True)
    assert finding.text.startswith("Sends: the claim that sends lose is refuted")
    assert (finding.level, finding.values) == ("quiet", {"verdict": "refuted", "n": 1})
    untested = Claim(statement="sends lose", judgement="not tested")
    assert untested.text == "The claim that sends lose was not tested here."
    assert untested.finding("k").level == "n/a"
