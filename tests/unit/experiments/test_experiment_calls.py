"""Calls beside a computation: which points, notes and refusals; what rows, sentences and tables say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from elbowroom import cli, experiments
from elbowroom.errors import UsageError
from elbowroom.experiments.common.calls.results import rows
from elbowroom.experiments.plans import Overrides, apply, load
from elbowroom.machine.topology import Machine
from elbowroom.plan.validation import validate
from elbowroom.points.calls import CallBesideComputation
from elbowroom.points.point import Expansion, Point, Steady, running
from elbowroom.points.probe import several_threads, shares_core
from elbowroom.points.unit import Unit
from elbowroom.results.points import results
from elbowroom.results.result import PointResult
from elbowroom.stats.summary import Samples
from sampled import entries
from simulated_overlaps import Overlap, answers
from studies import SMALL, machine

FOUR = machine(4)
NO_SAMPLES = Samples([], [], [], [], [], [], [], [])


def expanded(name: str, here: Machine = FOUR, **settings: str) -> Expansion:
    plan = apply(load(name), Overrides(settings={"control": "false"} | settings))
    return experiments.expand(plan, here)


def calls(name: str, here: Machine = FOUR, **settings: str) -> list[tuple[Point, CallBesideComputation]]:
    return running(expanded(name, here, **settings).points, CallBesideComputation)


def test_every_collective_is_measured_in_every_form_and_policy() -> None:
    kinds = {(call.operation, call.form, call.progress) for _, call in calls("collectives", n="1")}
    assert len(kinds) == 7 * (1 + 2 * 4)  # no policy helps a call that blocks


def test_an_exchange_has_all_numbers_of_neighbours_and_a_pingpong_none() -> None:
    found = calls("overlap", n="1", neighbours="2,6,26", sizes="64", forms="nonblocking", progress="none")
    exchanges = sorted(call.neighbours for _, call in found if call.operation == "exchange")
    assert exchanges == [2, 2, 6, 6, 26, 26]  # beside two kernels
    assert sum(call.operation == "pingpong" for _, call in found) == 2


def test_points_have_names_of_their_own() -> None:
    names = [point.id for point, _ in calls("overlap", neighbours="2,26", periods="1e-5,1e-3")]
    assert len(set(names)) == len(names)


def test_each_rank_has_cores_of_its_own_and_communicates_from_the_first() -> None:
    point, _ = calls("overlap", n="2", progress="none")[0]
    assert [place.comp_cores for place in point.placements] == [(0, 1), (2, 3)]
    assert [place.comm_cores for place in point.placements] == [(0,), (2,)]
    validate([point], FOUR)
    assert not shares_core(point)


def test_one_rank_a_host_needs_no_placements() -> None:
    point, call = calls("overlap", machine(4, hosts=3), n="4", progress="none")[0]
    assert call.ranks == 3
    assert point.placements == ()
    assert point.comp_cores == (0, 1, 2, 3)


def test_progress_threads_get_the_cores_that_nothing_computes_on() -> None:
    point, call = next(one for one in calls("collectives", n="1") if one[1].progress == "thread")
    assert call.progress_cores == (2, 3)
    assert several_threads(point)


def test_without_a_free_core_a_note_says_that_no_progress_thread_is_measured() -> None:
    expansion = expanded("collectives", SMALL)
    note = next(note for note in expansion.notes if note.what == "progress thread")
    assert note.reason == "2 ranks compute on both cores, so no core is left for it"
    assert not any(call.progress == "thread" for _, call in running(expansion.points, CallBesideComputation))


def test_more_ranks_than_cores_take_turns_only_if_scheduling_is_wanted() -> None:
    with pytest.raises(UsageError) as refused:
        expanded("collectives", SMALL, ranks="8")
    assert refused.value.field == "ranks"
    point, call = calls("collectives", SMALL, ranks="8", scheduling="true")[0]
    assert [place.comm_cores for place in point.placements] == [(0,), (1,)] * 4
    assert (call.ranks, shares_core(point), point.scheduling) == (8, True, True)
    validate([point], SMALL, scheduling=True)


WRONG = (
    ({"ranks": "1"}, "ranks", "no other"),
    ({"progress_cores": "0", "n": "1"}, "progress_cores", "among the computing cores"),
    ({"progress_cores": "9", "n": "1"}, "progress_cores", "does not exist"),
    ({"late": "0.1", "late_rank": "2"}, "late_rank", "is not a rank"),
    ({"comm_cores": "1"}, "comm_cores", "not a key of this plan"),
    ({"forms": "eager"}, "forms", ""),
    ({"progress": "magic"}, "progress", ""),
    ({"operations": "pingpong"}, "operations", ""),
)


@pytest.mark.parametrize(("settings", "field", "sentence"), WRONG)
def test_what_cannot_be_measured_is_refused_by_its_key(
    settings: dict[str, str], field: str, sentence: str
) -> None:
    with pytest.raises(UsageError) as refused:
        expanded("collectives", **settings)
    assert refused.value.field == field
    assert sentence in str(refused.value)


def test_sizes_that_are_no_numbers_of_four_bytes_are_refused_for_reductions() -> None:
    points = [
        point for point, call in calls("collectives", sizes="6", n="1") if call.operation == "allreduce"
    ]
    with pytest.raises(UsageError, match="adds numbers of 4 bytes"):
        validate(points[:1], FOUR)


def test_a_request_has_the_call_and_one_order_of_phases() -> None:
    point, call = next(one for one in calls("collectives", late="0.5", late_rank="1") if one[0].size)
    request = call.request(point, Unit(point=point.id, repetition=3), Steady())
    assert request["sequence"] == ["B", "A", "AB"]
    overlap: Any = request["overlap"]
    assert overlap["operation"] == call.operation
    assert overlap["late"] == {"rank": 1, "seconds": 0.5}
    assert msgspec.convert(point.plain()["call"], CallBesideComputation) == call


THREAD = ("progress=thread", "forms=nonblocking", "comp_cores=0", "scheduling=true", "control=false")
PERSISTENT = ("progress=none", "forms=persistent", "control=false")


@pytest.mark.parametrize(
    ("facts", "settings", "sentence"),
    [
        ({"thread_level": "funneled"}, THREAD, "does not grant MPI_THREAD_MULTIPLE"),
        ({"persistent_collectives": False}, PERSISTENT, "has no persistent collectives"),
    ],
)
def test_what_the_mpi_does_not_have_ends_with_a_sentence_and_exit_code_2(
    site: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    facts: dict[str, Any],
    settings: tuple[str, ...],
    sentence: str,
) -> None:
    words = [word for setting in settings for word in ("--set", setting)]
    command = ["run", "collectives", "--mpi", str(site), "--dry-run", *words]
    monkeypatch.setenv("FAKE_MPI", json.dumps(facts))
    assert cli.run(command) == 2
    assert sentence in capfd.readouterr().err


def found(point: Point, truth: Overlap) -> PointResult:
    [result] = results(
        [point],
        NO_SAMPLES,
        entries={point.id: entries(point.id, *({"overlap": one} for one in answers(truth)))},
    )
    return msgspec.structs.replace(result, status="ok")


def test_the_numbers_of_an_overlap_stand_beside_the_point() -> None:
    point, _ = calls("collectives", n="1", progress="none")[1]
    plain = found(point, Overlap(progresses=False)).plain()
    assert plain["reason"] == "no_progress"
    assert plain["fraction_of_ideal"] == pytest.approx(plain["overlap"])
    assert plain["overlap"] == pytest.approx(0.0, abs=0.1)
    assert plain["osu_overlap"] == pytest.approx(0.0, abs=0.1)


def test_what_was_not_measured_is_null_and_not_zero() -> None:
    point, _ = calls("collectives", n="1", progress="none")[1]
    [result] = results([point], NO_SAMPLES)
    plain = result.plain()
    assert [plain[key] for key in ("overlap", "osu_overlap", "fraction_of_ideal")] == [None] * 3
    assert plain["reason"] == "no sample was measured"


def policies() -> list[PointResult]:
    """MPI_Iallreduce that proceeds inside MPI only, and with a progress thread beside contention."""
    points = calls("collectives", n="1", operations="allreduce", sizes="1MiB", forms="nonblocking")
    truths = {
        "none": Overlap(progresses=False),
        "thread": Overlap(kept_comp=0.8),
        "test": Overlap(progresses=False, tests=0.3),
        "library": Overlap(),
    }
    return [found(point, truths[call.progress]) for point, call in points]


def test_a_finding_compares_the_policies_of_a_call() -> None:
    experiment = experiments.get("collectives")
    [finding] = experiment.findings(policies(), FOUR)
    start = "MPI_Iallreduce of 1 MiB between 2 ranks progresses only inside MPI calls here: overlap "
    assert finding.text.startswith(start)
    assert "with a progress thread on cores 2-3, 0." in finding.text
    assert finding.values["best"] == "library"


def test_tables_and_figures_have_every_policy() -> None:
    experiment = experiments.get("collectives")
    [table] = experiment.tables(policies(), FOUR)
    assert [row[:2] for row in table.rows] == [
        ("Iallreduce", name) for name in ("none", "test20us", "thread", "library")
    ]
    assert table.rows[0][-1] == "no progress"
    hidden, kept = experiment.figures(policies(), FOUR)
    assert len(hidden.series) == len(kept.series) == 4


def test_rows_know_whether_a_call_proceeds_outside_of_calls_of_mpi() -> None:
    assert [row.progresses for row in rows(policies())] == [False, False, True, True]
