"""Verdicts of studies: no model confirms itself, and nothing holds because nothing happened."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from elbowroom.points.payload import Payload
from elbowroom.points.point import Point
from elbowroom.results.judgement import Judgement
from elbowroom.results.result import PointResult
from elbowroom.studies import STUDIES, frequency, memory, needs, runtime, thesis
from elbowroom.studies.document import JudgedStatement, Verdict, counted, judged, planned_exhibits
from elbowroom.studies.evidence import Evidence, PointSelection, RunEvidence
from elbowroom.studies.judgements import (
    Curve,
    affected,
    every,
    gains,
    late,
    loss,
    manner,
    sooner,
    unaffected,
)
from elbowroom.studies.study import Exhibit, Judge, Measurement, Outcome, Statement, Study
from studies import HENRI, SMALL, machine, study

PAPERS = STUDIES.names()
TWO_SOCKETS = machine(36, 2, 2, nic=0, hosts=2)


def kept(comm: float, comp: float = 1.0, from_n: int = 1) -> list[PointResult]:
    """TRIAD on 1 to 35 cores beside 64 MB; both sides keep these shares from so many cores on."""

    def truth(point: Point) -> tuple[float, float, float, float]:
        lost = point.n >= from_n and point.kernel in ("triad", "copy")
        return 1e4, 1e4 * (comp if lost else 1.0), 1e4, 1e4 * (comm if lost else 1.0)

    return study("cores", HENRI, truth, sizes=(64_000_000,))[1]


def evidence(points: Sequence[PointResult], doubt: str = "", name: str = "run") -> Evidence:
    run = RunEvidence(name=name, experiment="cores", machine=HENRI, points=tuple(points), doubt=doubt)
    return Evidence(HENRI, {name: run})


COMM, COMP = Curve("run", "comm"), Curve("run", "comp")


def test_an_effect_is_confirmed_where_a_side_suffers_and_refuted_where_none_does() -> None:
    assert affected(COMM)(evidence(kept(0.6))).judgement == "confirmed"
    assert affected(COMM)(evidence(kept(1.0))).judgement == "refuted"


def test_an_absent_effect_is_confirmed_only_where_its_cause_is_present() -> None:
    cause = affected(COMM)
    assert unaffected(COMP, cause)(evidence(kept(0.6))).judgement == "confirmed"
    nothing = unaffected(COMP, cause, "nothing suffers")(evidence(kept(1.0)))
    assert (nothing.judgement, nothing.why) == ("undecided", "nothing suffers")
    assert unaffected(COMP, cause)(evidence(kept(0.6, comp=0.8))).judgement == "refuted"


def test_a_limit_on_a_loss_is_not_confirmed_where_nothing_is_lost() -> None:
    assert loss(COMM, most=1.0, least=0.7)(evidence(kept(0.8))).judgement == "confirmed"
    assert loss(COMM, most=1.0, least=0.7)(evidence(kept(0.6))).judgement == "refuted"
    outcome = loss(COMM, most=1.1, least=0.7)(evidence(kept(1.0)))
    assert (outcome.judgement, outcome.why) == ("undecided", "nothing is lost here")


def test_a_gain_is_refuted_where_a_side_suffers() -> None:
    assert gains(COMM)(evidence(kept(1.1))).judgement == "confirmed"
    assert gains(COMM)(evidence(kept(0.8))).judgement == "refuted"


@pytest.mark.parametrize(("from_n", "judgement"), [(25, "confirmed"), (3, "refuted")])
def test_a_late_onset_is_told_from_an_early_one(from_n: int, judgement: str) -> None:
    assert late(COMM, 1 / 3)(evidence(kept(0.6, from_n=from_n))).judgement == judgement


def test_an_onset_is_sooner_only_where_one_of_both_suffers() -> None:
    assert sooner(COMM, COMP)(evidence(kept(0.6, comp=1.0))).judgement == "confirmed"
    assert sooner(COMP, COMM)(evidence(kept(0.6, comp=1.0))).judgement == "refuted"
    assert sooner(COMM, COMP)(evidence(kept(1.0))).judgement == "undecided"


def test_a_loss_is_not_called_steady_of_few_points() -> None:
    few = [item for item in kept(0.6) if item.n in (1, 18, 35)]
    assert manner(COMM, "steadily")(evidence(few)).judgement == "not tested"
    assert manner(COMM, "abruptly")(evidence(kept(0.4, from_n=20))).judgement == "confirmed"


def test_one_number_of_cores_has_no_onset() -> None:
    one = [item for item in kept(0.6) if item.n == 35]
    for judge in (late(COMM, 0.3), sooner(COMM, COMP)):
        assert judge(evidence(one)).judgement == "not tested"


def test_a_judge_of_several_is_refuted_by_one_and_not_tested_by_none() -> None:
    here = evidence(())
    words: tuple[Judgement, ...] = ("confirmed", "refuted", "undecided", "not tested")

    def fixed(word: Judgement) -> Judge:
        return lambda _: Outcome(judgement=word)

    yes, no, open_, none = map(fixed, words)
    assert every(yes, yes)(here).judgement == "confirmed"
    assert every(yes, no)(here).judgement == "refuted"
    assert every(yes, open_)(here).judgement == "undecided"
    assert every(yes, none)(here).judgement == "undecided"
    assert every(none, none)(here).judgement == "not tested"


def verdict(points: Sequence[PointResult], *, doubt: str = "", lacks: str = "") -> JudgedStatement:
    needed = (lambda machine: lacks,) if lacks else ()
    statement = Statement(text="it suffers", judge=affected(COMM), criterion="", needs=needed)
    exhibit = Exhibit(label="Fig. 1", title="", runs=("run",), statements=(statement,))
    return judged(statement, exhibit, evidence(points, doubt), HENRI)


def test_a_run_that_is_not_trusted_decides_nothing() -> None:
    assert verdict(kept(0.6)).verdict == "confirmed"
    doubtful = verdict(kept(0.6), doubt="others computed")
    assert (doubtful.verdict, doubtful.why) == ("undecided", "the run is not trusted: others computed")


def test_what_a_machine_lacks_is_the_reason_and_values_are_shown_all_the_same() -> None:
    lacking = verdict(kept(0.6), lacks="one host")
    assert (lacking.verdict, lacking.why) == ("not testable here", "one host")
    assert "0.60" in lacking.ours


def test_a_run_without_points_is_not_testable_with_the_reason_of_the_run() -> None:
    nothing = Evidence(HENRI, {}, {"run": "StarPU is not installed"})
    assert affected(COMM)(nothing).why == "StarPU is not installed"


def test_verdicts_are_counted_by_name() -> None:
    empty = {"confirmed": 0, "refuted": 0, "undecided": 0, "not testable here": 0}
    assert counted(()) == empty


def test_modelled_stalls_decide_nothing() -> None:
    def solved(source: str) -> Evidence:
        points = []
        for task, stalled in (("cg", 0.95), ("gemm", 0.0)):
            item = next(point for point in kept(0.5) if point.n == 35)
            workload = msgspec.convert({"name": "kernels", "task": task, "build": "openmp"}, runtime_type())
            facts = {f"stalled_{source}{end}": stalled for end in ("", "_low", "_high")}
            points.append(
                msgspec.structs.replace(item, id=task, workload=workload, payload=Payload(facts=facts))
            )
        return evidence(points, name=runtime.KERNELS)

    assert runtime.waits_longer()(solved("measured")).judgement == "confirmed"
    modelled = runtime.waits_longer()(solved("modelled"))
    assert modelled.judgement == "not tested"
    assert "cannot confirm itself" in modelled.why


def runtime_type() -> object:
    from elbowroom.points.matrices import MatrixProgram

    return MatrixProgram


def test_frequencies_that_cannot_be_read_confirm_nothing() -> None:
    quiet = [msgspec.structs.replace(item, kernel="fma") for item in kept(1.0)]
    outcome = frequency.stable(frequency.AVX)(evidence(quiet, name=frequency.AVX))
    assert (outcome.judgement, outcome.why) == ("not tested", frequency.READABLE)


def test_a_model_of_sharing_is_not_accurate_where_nothing_is_shared() -> None:
    def truth(point: Point) -> tuple[float, float, float, float]:
        return 4e3 * max(point.n, 1), 4e3 * max(point.n, 1), 1e4, 1e4

    experiment, points = study("model", TWO_SOCKETS, truth, settings={"n": "1,2,3,6,12,18"})
    run = RunEvidence(
        name=thesis.MODEL, experiment=experiment.name, machine=TWO_SOCKETS, points=tuple(points)
    )
    outcome = thesis.accurate()(Evidence(TWO_SOCKETS, {thesis.MODEL: run}))
    assert outcome.judgement in ("undecided", "not tested")


@pytest.mark.parametrize("paper", PAPERS)
def test_every_statement_has_a_criterion_and_what_the_paper_says(paper: str) -> None:
    for exhibit in STUDIES.get(paper).exhibits:
        assert exhibit.runs or exhibit.instead, exhibit.label
        for statement in exhibit.statements:
            assert statement.criterion
            assert statement.paper
            assert statement.section


@pytest.mark.parametrize("paper", PAPERS)
def test_labels_of_a_paper_are_unique(paper: str) -> None:
    labels = [exhibit.label for exhibit in STUDIES.get(paper).exhibits]
    assert len(labels) == len(set(labels))


@pytest.mark.parametrize("paper", PAPERS)
def test_a_study_without_any_run_judges_nothing(paper: str) -> None:
    study = STUDIES.get(paper)
    nothing = Evidence(SMALL, {}, {item.name: "not measured" for item in study.measurements})
    verdicts: set[Verdict] = {
        judged(statement, exhibit, nothing, SMALL).verdict
        for exhibit in study.exhibits
        for statement in exhibit.statements
    }
    assert verdicts <= {"not testable here"}
    assert all(not exhibit.draw(nothing) and not exhibit.tables(nothing) for exhibit in study.exhibits)


def test_a_plan_says_why_a_figure_cannot_be_judged() -> None:
    study = STUDIES.get("denis2021")
    planned = {item.label: item for item in planned_exhibits(study, SMALL, {})}
    assert planned["Fig. 4a"].shown
    assert planned["Fig. 4a"].judged == 0
    assert any("one host" in reason for reason in planned["Fig. 4a"].reasons)
    assert any("one NUMA node" in reason for reason in planned["Table 1"].reasons)


def test_a_study_cannot_use_a_run_that_it_does_not_have() -> None:
    exhibit = Exhibit(label="Fig. 1", title="", runs=("elsewhere",))
    with pytest.raises(ValueError, match="elsewhere"):
        Study(
            name="x",
            paper="x",
            page="",
            measurements=(Measurement(name="here", plan="cores"),),
            exhibits=(exhibit,),
        )


def test_places_are_not_told_apart_on_one_numa_node() -> None:
    _, points = study("cores", SMALL, lambda point: (1e4, 1e4, 1e4, 1e4))
    run = RunEvidence(name="run", experiment="cores", machine=SMALL, points=tuple(points))
    far = Evidence(SMALL, {"run": run}).points("run", PointSelection(data="near", thread="far"))
    assert far
    assert needs.two_nodes(SMALL)
    assert (needs.network, needs.two_nodes) == memory.PLACED
