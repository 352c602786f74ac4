"""`runtime-overhead` finds what StarPU adds to a message, until which size, and at which placement."""

from __future__ import annotations

import pytest

from elbowroom import experiments
from elbowroom.errors import UsageError
from elbowroom.experiments.plans import Overrides, apply, load
from elbowroom.experiments.runtime_overhead.points import OverheadKeys
from elbowroom.machine.topology import Machine
from elbowroom.plan.validation import validate
from elbowroom.points.point import Point
from studies import HENRI, SMALL, by_key, machine, sound, study

Truth = tuple[float, float, float, float]

FOUR = machine(4)
PROGRAM = OverheadKeys().program


def added(more: float) -> object:
    """Messages that take 1.5 us and what 10.5 GB/s give, by MPI; `more` us beside that through StarPU."""

    def truth(point: Point) -> Truth:
        alone = 1.5 + point.size / 10_500
        if point.metric == "bandwidth":
            return 1.0, 1.0, point.size / alone, point.size / alone
        away = 1.0 if point.comp_node != point.comm_node else 0.0
        return 1.0, 1.0, alone + away, alone + more + 6 * away

    return truth


def points(here: Machine, **settings: str) -> list[Point]:
    plan = apply(load("runtime-overhead"), Overrides(settings=settings))
    found = experiments.get("runtime-overhead").expand(plan, here).points
    validate(found, here)
    return [point for point in found if point.role == "point"]


def test_what_starpu_adds_is_found_with_its_interval_and_the_paper_beside_it() -> None:
    experiment, found = study("runtime-overhead", HENRI, added(38.0))  # type: ignore[arg-type]
    findings = experiment.findings(found, HENRI)
    first = by_key(findings, "overhead")
    assert first.values["verdict"] == "confirmed"
    assert first.values["added"] == pytest.approx(38, abs=0.5)
    assert float(first.values["low"] or 0) <= 38 <= float(first.values["high"] or 0)
    assert "38 us on henri" in first.text
    sound(experiment.figures(found, HENRI), {item.id for item in found})


def test_without_an_effect_nothing_is_claimed() -> None:
    experiment, found = study("runtime-overhead", HENRI, added(-1.0))  # type: ignore[arg-type]
    findings = experiment.findings(found, HENRI)
    assert by_key(findings, "overhead").values["verdict"] == "refuted"
    assert by_key(findings, "vanishes").values["last"] is None


@pytest.mark.parametrize(
    ("more", "last", "verdict"), [(38.0, 4 << 20, "refuted"), (300.0, 16 << 20, "confirmed")]
)
def test_the_size_from_which_no_difference_shows_is_held_against_the_papers_64_mb(
    more: float, last: int, verdict: str
) -> None:
    experiment, found = study("runtime-overhead", HENRI, added(more))  # type: ignore[arg-type]
    judged = by_key(experiment.findings(found, HENRI), "vanishes")
    assert (judged.values["last"], judged.values["verdict"]) == (last, verdict)


def test_data_away_from_the_communication_thread_is_told_where_there_are_nodes_to_tell() -> None:
    experiment, found = study("runtime-overhead", HENRI, added(38.0))  # type: ignore[arg-type]
    judged = by_key(experiment.findings(found, HENRI), "placement")
    assert judged.values["verdict"] == "confirmed"
    experiment, found = study("runtime-overhead", SMALL, added(12.0))  # type: ignore[arg-type]
    assert by_key(experiment.findings(found, SMALL), "placement").level == "n/a"


def test_a_run_with_nothing_measured_says_so() -> None:
    assert experiments.get("runtime-overhead").findings((), SMALL)[0].level == "n/a"


def test_on_two_cores_each_rank_has_one_for_all_its_threads() -> None:
    [point] = points(SMALL, sizes="4")
    assert (point.comm_cores, point.peer_cores) == ((0,), (1,))
    assert point.workload == PROGRAM
    assert (point.n, point.comp_cores) == (0, ())


def test_with_more_cores_the_waiting_thread_has_its_own_and_no_core_is_taken_twice() -> None:
    [point] = points(FOUR, sizes="4")
    assert sorted(point.comm_cores + point.peer_cores) == [0, 1, 2, 3]
    assert point.comm_cores[0] == 3
    for point in points(HENRI, sizes="4"):
        assert point.peer_cores == point.comm_cores
        assert len(set(point.comm_cores)) == 2


def test_data_is_on_both_nodes_for_each_place_of_the_thread() -> None:
    found = {(point.comp_node, point.comm_core) for point in points(HENRI, sizes="4")}
    assert found == {(0, 8), (0, 35), (3, 8), (3, 35)}
    assert all(
        (point.comp_node == point.comm_node) == ((point.comm_core > 8) == (point.comp_node > 0))
        for point in points(HENRI, sizes="4")
    )


def test_one_numa_node_is_noted() -> None:
    notes = experiments.get("runtime-overhead").expand(load("runtime-overhead"), SMALL).notes
    assert "data away from the communication thread's node" in {note.what for note in notes}


@pytest.mark.parametrize(
    ("here", "settings", "field"),
    [(machine(1), {}, "cpuset"), (SMALL, {"kernels": "prime"}, "kernels")],
)
def test_what_cannot_be_measured_is_refused(here: Machine, settings: dict[str, str], field: str) -> None:
    with pytest.raises(UsageError) as caught:
        points(here, **settings)
    assert caught.value.field == field
    assert caught.value.hint


def test_polling_workers_are_on_every_core_that_no_other_thread_has() -> None:
    found = points(HENRI, sizes="4,1KiB")
    polling = [point for point in found if point.n]
    assert len(polling) * 2 == len(found)
    for point in polling:
        assert (point.n, point.computing_ranks) == (34, "all")
        assert set(point.comp_cores).isdisjoint(point.comm_cores)
        assert point.workload == PROGRAM
    eight = machine(8)
    [point] = [point for point in points(eight, sizes="4") if point.n]
    assert [place.comp_cores for place in point.placements] == [point.comp_cores, ()]
    assert set(point.comp_cores).isdisjoint((*point.comm_cores, *point.peer_cores))


def test_without_a_core_for_polling_workers_a_note_says_so() -> None:
    expansion = experiments.get("runtime-overhead").expand(load("runtime-overhead"), SMALL)
    assert "polling workers" in {note.what for note in expansion.notes}
    with pytest.raises(UsageError, match="no core is left"):
        points(SMALL, workers="polling")


def polled(frequent: float, rare: float) -> object:
    """Messages through StarPU that take as much longer beside workers with a back-off of 2, and of 10000."""

    def truth(point: Point) -> Truth:
        backoff = getattr(point.workload, "backoff", None)
        return 1.0, 1.0, 1.5, 40.0 + {2: frequent, 32: frequent / 2, 10_000: rare}.get(backoff or 0, 0.0)

    return truth


BACKOFFS = {
    "sizes": "4",
    "backoffs": "2,32,10000",
    "scheduler": "eager",
    "comp_nodes": "near",
    "comm_cores": "near",
}


@pytest.mark.parametrize(
    ("frequent", "rare", "verdicts"),
    [
        (10.0, 0.0, ("confirmed", "confirmed")),
        (10.0, 10.0, ("confirmed", "refuted")),
        (0.0, 0.0, ("refuted", "undecided")),
    ],
)
def test_more_frequent_polls_are_held_against_paused_workers(
    frequent: float, rare: float, verdicts: tuple[str, str]
) -> None:
    experiment, found = study("runtime-overhead", machine(8), polled(frequent, rare), settings=BACKOFFS)  # type: ignore[arg-type]
    judged = by_key(experiment.findings(found, machine(8)), "backoffs")
    assert (judged.values["verdict"], judged.values["rare"]) == verdicts
    assert "beside 4 polling workers" in judged.text


def test_workers_with_a_back_off_are_points_of_their_own() -> None:
    polling = [point for point in points(machine(8), **BACKOFFS) if point.n]
    assert [point.workload.backoff for point in polling] == [2, 32, 10_000]  # type: ignore[attr-defined]
    assert {point.workload.scheduler for point in polling} == {"eager"}  # type: ignore[attr-defined]


def test_paused_and_polling_workers_have_a_curve_over_the_size_each() -> None:
    experiment, found = study("runtime-overhead", machine(8), added(38.0))  # type: ignore[arg-type]
    names = [figure.name for figure in experiment.figures(found, SMALL)]
    assert {"runtime-overhead-0-7", "runtime-overhead-0-7-n4"} <= set(names)
    keys = {finding.key: finding for finding in experiment.findings(found, SMALL)}
    assert "beside 4 polling workers" in keys["overhead-0-7-n4"].text
    [table] = experiment.tables(found, SMALL)
    assert "polling" in table.columns
