"""Whether a run is to be believed, and what its verdict says."""

from __future__ import annotations

import msgspec
import pytest

from elbowroom.results.grades import assess, sentence
from elbowroom.results.points import results
from elbowroom.results.quiet import Observations, controls, judge, verdict
from elbowroom.results.result import Finding, PointResult
from elbowroom.stats.interval import Kept, Side, Summary
from sampled import only, point, rows, samples


def control(kept_value: float, width: float = 0.01, spread: float = 0.01, count: int = 20) -> PointResult:
    def summary(median: float) -> Summary:
        low, high = median * (1 - spread / 2), median * (1 + spread / 2)
        return Summary(median=median, d1=low, d9=high, low=low, high=high, count=count, unit="M/s")

    ratio = Kept(value=kept_value, low=kept_value - width / 2, high=kept_value + width / 2)
    base = only(rows())
    return PointResult(
        **{
            **{name: getattr(base, name) for name in base.__struct_fields__},
            "kernel": "prime",
            "comp": Side(alone=summary(6.0), together=summary(6.0 * kept_value), kept=ratio),
        }
    )


def test_a_control_that_keeps_its_rate_is_trusted() -> None:
    assert judge([control(1.0)]) == (True, ())


def test_a_control_that_loses_is_not_quiet() -> None:
    trusted, reasons = judge([control(0.9)])
    assert not trusted
    assert "0.97" in reasons[0]


def test_a_little_less_than_the_limit_inside_the_interval_is_trusted() -> None:
    assert judge([control(0.965, width=0.02)])[0]


def test_a_control_too_uncertain_to_tell_is_not_trusted() -> None:
    trusted, reasons = judge([control(0.95, width=0.2)])
    assert not trusted
    assert "uncertain" in reasons[0]


def test_a_control_that_does_not_repeat_is_not_quiet() -> None:
    trusted, reasons = judge([control(1.0, spread=0.3)])
    assert not trusted
    assert "varied by 30%" in reasons[0]


def test_without_a_control_nothing_is_trusted() -> None:
    assert not judge([only(rows())])[0]


def test_a_control_of_a_run_is_prime_at_the_largest_n_and_size() -> None:
    assert controls([only(rows()), control(1.0)]) == [control(1.0)]


@pytest.mark.parametrize(
    "seen",
    [
        Observations(others_before=1.0),
        Observations(others_during=0.5),
        Observations(others_after=2.0),
        Observations(steal_share=0.1),
    ],
)
def test_other_load_and_steal_are_reasons(seen: Observations) -> None:
    trusted, reasons = judge([control(1.0)], seen)
    assert not trusted
    assert len(reasons) == 1


def test_what_is_unknown_is_not_held_against_the_run() -> None:
    assert judge([control(1.0)], Observations())[0]


def test_too_few_repetitions_are_a_reason() -> None:
    trusted, reasons = judge([only(rows(repetitions=4)), control(1.0)])
    assert not trusted
    assert "fewer than 5 repetitions" in reasons[0]


def test_many_samples_of_one_repetition_are_too_few_and_have_no_interval() -> None:
    one = [(*row[:1], 0, *row[2:]) for row in rows(repetitions=6)]
    found = only(one)
    assert found.comp.kept is not None
    assert found.comp.alone is not None
    assert found.comp.kept.bounds is None
    assert found.comp.alone.bounds is None
    assert found.comp.alone.count == 12
    assert not judge([found, control(1.0)])[0]


def test_four_repetitions_have_no_interval_and_five_have_one() -> None:
    four, five = (only(rows(repetitions=count)).comp.kept for count in (4, 5))
    assert four is not None
    assert five is not None
    assert (four.low, four.high) == (None, None)
    assert five.bounds is not None


@pytest.mark.parametrize(("width", "trusted"), [(0.08, True), (0.12, False)])
def test_unsteady_windows_matter_where_repetitions_disagree(width: float, trusted: bool) -> None:
    base = only(rows())
    kept = Kept(value=0.8, low=0.8 - width / 2, high=0.8 + width / 2)
    sides = {name: msgspec.structs.replace(getattr(base, name), kept=kept) for name in ("comp", "comm")}
    unsteady = msgspec.structs.replace(base, status="not_stable", **sides)
    assert judge([control(1.0), unsteady, unsteady])[0] == trusted


def test_many_failed_points_are_a_reason() -> None:
    failed = results([point(n) for n in (1, 2)], samples([]))
    assert any("failed" in reason for reason in judge([control(1.0), *failed])[1])


def test_a_verdict_says_the_first_finding_and_whether_to_believe_it() -> None:
    found = [Finding(key="a", level="interference", text="They elbow each other.")]
    alone = results([point()], samples([row for row in rows() if row[3] != "AB"]))
    controls_of = [msgspec.structs.replace(control(kept), role="control") for kept in (1.0, 0.8)]
    calm, noisy = (verdict(found, [item, *alone]) for item in controls_of)
    assert (calm.trusted, calm.text, calm.interference) == (True, "They elbow each other.", True)
    assert (calm.grade, calm.comp, calm.comm) == ("yes", None, None)
    assert not noisy.trusted
    assert noisy.text.startswith("They elbow each other. The run is not trusted: Prime counting")
    assert noisy.reasons
    assert noisy.grade == "likely"


def test_a_run_whose_only_point_failed_measured_nothing() -> None:
    """The control stands, and says that nothing interferes: it was not asked."""
    quiet = msgspec.structs.replace(control(1.0), id="control", role="control")
    failed = results([point()], samples([]), failures={point().id: "rank 1 died"})
    said = Finding(key="answer", level="quiet", text="No interference is seen.", points=(quiet.id,))
    found = verdict([said], [quiet, *failed])
    assert (found.trusted, found.interference) == (False, None)
    assert found.text == "Nothing was measured: 1 of 1 points failed; the first one: rank 1 died."


def test_a_run_that_lost_one_of_three_points_is_not_trusted() -> None:
    stand = results([point(2), point(3)], samples([*rows(0), *rows(1)]))
    failed = results([point()], samples([]), failures={point().id: "rank 1 died"})
    quiet = msgspec.structs.replace(control(1.0), id="control", role="control")
    found = verdict([], [quiet, *stand, *failed])
    assert not found.trusted
    assert "1 of 3 points failed" in found.reasons[0]


def test_one_lost_repetition_of_many_leaves_the_point() -> None:
    found = only(rows(repetitions=21), failures={point().id: "validation failed"}, repetitions=22)
    assert (found.status, found.reason) == ("incomplete", "21 of 22 repetitions measured; validation failed")
    assert found.comp.kept is not None
    assert judge([control(1.0), found])[0]


def test_more_repetitions_than_were_asked_for_are_not_counted_out_of_fewer() -> None:
    found = only(rows(repetitions=7), failures={point().id: "a rule was broken"}, repetitions=5)
    assert (found.status, found.reason) == ("incomplete", "7 repetitions measured; a rule was broken")


@pytest.mark.parametrize(("stands", "wanted"), [(4, 6), (8, 22)])
def test_a_point_fails_where_few_repetitions_stand(stands: int, wanted: int) -> None:
    found = only(rows(repetitions=stands), failures={point().id: "rank 1 died"}, repetitions=wanted)
    assert (found.status, found.reason) == ("failed", "rank 1 died")


def test_a_control_is_never_the_answer() -> None:
    quiet = msgspec.structs.replace(control(1.0), id="control", role="control")
    asked = only(rows())
    findings = [
        Finding(key="a", level="quiet", text="The control is quiet.", points=(quiet.id,)),
        Finding(key="b", level="interference", text="TRIAD suffers.", points=(asked.id,)),
    ]
    judged = verdict(findings, [quiet, asked])
    assert judged.text.startswith("Yes, there is interference here, both sides suffer: TRIAD")
    assert (judged.point, judged.grade) == (asked.id, "yes")


def test_an_untrusted_run_gives_no_answer_but_what_the_numbers_show() -> None:
    asked = only(rows())
    assessment = assess([asked])
    assert assessment is not None
    text = sentence(assessment)
    found = verdict(
        [Finding(key="answer", level="interference", text=text, points=(asked.id,))], [control(0.8), asked]
    )
    assert not found.trusted
    assert found.text.startswith("Interference is likely here, both sides suffer: TRIAD")
    assert "The run is not trusted: Prime counting" in found.text
    assert "Yes" not in found.text
    assert "Yes" not in found.findings[0].text
    assert found.findings[0].text in found.text


def test_a_verdict_of_no_findings_says_nothing_about_interference() -> None:
    alone = results([point()], samples([row for row in rows() if row[3] != "AB"]))
    judged = verdict([], alone)
    assert (judged.interference, judged.grade) == (None, "cannot say")


def test_a_budget_that_ended_before_the_answers_point_is_not_a_plan_of_controls() -> None:
    only_control = [msgspec.structs.replace(control(1.0), role="control")]
    shortage = "the budget of 30 s ended after 11 repetitions"
    for measured in ([], only_control):
        found = verdict([], measured, shortage=shortage)
        assert found.text == f"No verdict: {shortage}"
        assert not found.trusted
    assert "the plan has only controls" in verdict([], only_control).text
