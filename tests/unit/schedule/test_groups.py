"""How long jobs of a group take, and which may form one."""

from __future__ import annotations

import pytest

from elbowroom.errors import UsageError
from elbowroom.schedule.groups import Group
from schedule_fixture import job, problem


def test_a_job_alone_takes_its_exclusive_hours() -> None:
    case = problem(job("a", nodes=2, hours=3))
    assert case.ends(Group(0)) == {0: 3}
    assert case.cost(Group(0)) == 6


def test_a_job_on_half_of_the_cores_holds_twice_the_nodes() -> None:
    case = problem(job("a", "CG", nodes=2, hours=3))
    assert case.ends(Group(0, "half"))[0] == pytest.approx(3 * 0.752)
    assert case.cost(Group(0, "half")) == pytest.approx(4 * 3 * 0.752)


def test_a_pair_is_slowed_down_as_in_the_matrix() -> None:
    case = problem(job("a", "CG", hours=100.5), job("b", "EP", hours=75.2))
    ends = case.ends(Group(0, "half", ((1,),)))
    assert ends[0] == pytest.approx(100.5 * 0.752)
    assert ends[1] == pytest.approx(75.2 * 1.005)


def test_the_longer_job_of_a_pair_goes_on_without_a_companion() -> None:
    case = problem(job("a", "CG", hours=2), job("b", "CG", hours=1))
    ends = case.ends(Group(0, "half", ((1,),)))
    assert ends[1] == pytest.approx(1.018)
    assert ends[0] == pytest.approx(1.018 + 0.5 * 2 * 0.752)


def test_companions_run_one_after_the_other_in_a_queue() -> None:
    case = problem(job("a", "EP", hours=2), job("b", "EP", hours=1), job("c", "EP", hours=1))
    ends = case.ends(Group(0, "half", ((1, 2),)))
    assert ends[1] == pytest.approx(0.996)
    assert ends[2] == pytest.approx(2 * 0.996)
    assert ends[0] == pytest.approx(2 * 0.996)


def test_the_worst_of_two_companions_side_by_side_holds_the_host_up() -> None:
    case = problem(job("a", "CG", nodes=2, hours=1), job("b", "EP", hours=5), job("c", "CG", hours=5))
    group = Group(0, "half", ((1,), (2,)))
    assert case.possible(group)
    assert case.ends(group)[0] == pytest.approx(1.018)


def test_companions_do_not_need_more_nodes_than_their_host_has() -> None:
    case = problem(job("a", nodes=1), job("b", nodes=1), job("c", nodes=1), job("d", nodes=2))
    assert not case.possible(Group(0, "half", ((1,), (2,))))
    assert not case.possible(Group(0, "half", ((3,),)))
    assert case.possible(Group(3, "half", ((0,), (1,))))


@pytest.mark.parametrize(
    "others",
    [{"share": False}, {"share": ("LU",)}, {"cores": "all"}, {"memory": 40, "memory_half": 35}, {"nodes": 5}],
)
def test_a_job_that_cannot_share_is_in_no_pair(others: dict[str, object]) -> None:
    case = problem(job("a", "EP", memory=60), job("b", "EP", **others), memory=64)
    assert not case.possible(Group(0, "half", ((1,),)))
    assert not case.possible(Group(1, "half", ((0,),)))


def test_a_job_may_name_the_applications_and_jobs_it_shares_with() -> None:
    case = problem(job("a", "EP", share=("LU", "c")), job("b", "LU"), job("c", "BT"), job("d", "SP"))
    assert [case.possible(Group(0, "half", ((other,),))) for other in (1, 2, 3)] == [True, True, False]


def test_a_limit_keeps_jobs_with_more_slowdown_apart() -> None:
    case = problem(job("a", "CG"), job("b", "SP"), limit=101)
    assert not case.possible(Group(0, "half", ((1,),)))


def test_a_job_does_not_share_with_one_that_it_waits_for() -> None:
    case = problem(job("a"), job("b", after=("a",)), job("c", after=("b",)))
    assert not case.possible(Group(0, "half", ((2,),)))


def test_a_deadline_excludes_slower_ways() -> None:
    case = problem(job("a", "CG", hours=1, deadline=0.8))
    assert not case.possible(Group(0))
    assert case.single(0) == Group(0, "half")


def test_a_deadline_that_nothing_meets_is_refused() -> None:
    with pytest.raises(UsageError, match=r"cannot end before 0\.752 h"):
        problem(job("a", "CG", hours=1, deadline=0.7))


def test_a_deadline_counts_the_jobs_that_end_before() -> None:
    with pytest.raises(UsageError, match=r"deadline of 1\.5 h"):
        problem(job("a", "EP"), job("b", "EP", after=("a",), deadline=1.5))


def test_an_application_that_the_matrix_lacks_is_refused() -> None:
    with pytest.raises(UsageError, match="is not in the matrix"):
        problem(job("a", "LAMMPS"))


def test_an_unknown_runtime_on_half_of_the_cores_is_that_beside_the_best_companion() -> None:
    case = problem(job("a", "MG"), job("b", "MG", half=80.0))
    assert case.half.tolist() == pytest.approx([0.976, 0.8])
