"""Jobs and clusters from TOML, and what no plan can meet."""

from __future__ import annotations

import pytest

from elbowroom.errors import UsageError
from elbowroom.schedule.jobs import MOST_JOBS, Jobs, ancestors, memory_of, order_by_dependencies, parse_jobs
from schedule_fixture import job

CLUSTER = '[cluster]\nnodes = 8\ncores = 16\nmemory = "64GiB"\n'
ONE = '[[jobs]]\nname = "a"\nnodes = 2\nhours = 3\n'


def parse(*tables: str, cluster: str = CLUSTER) -> Jobs:
    return parse_jobs(cluster + "".join(tables), "jobs.toml")


def test_a_job_has_the_application_of_its_name_where_none_is_given() -> None:
    (found,) = parse(ONE).jobs
    assert (found.name, found.application, found.node_hours) == ("a", "a", 6)


def test_ranks_and_node_hours_stand_for_nodes_and_hours() -> None:
    (found,) = parse('[[jobs]]\nname = "a"\nranks = 33\nnode_hours = 6\n').jobs
    assert (found.nodes, found.hours) == (3, 2)


def test_half_of_the_cores_need_half_of_the_memory_where_nothing_else_is_given() -> None:
    first, second = parse(
        '[[jobs]]\nname = "a"\nnodes = 1\nhours = 1\nmemory = "40GiB"\n',
        '[[jobs]]\nname = "b"\nnodes = 1\nhours = 1\nmemory = "40GiB"\nmemory_half = "30GiB"\n',
    ).jobs
    assert memory_of(first, "half") == 20 << 30
    assert memory_of(second, "half") == 30 << 30


def test_jobs_are_ordered_behind_those_they_wait_for() -> None:
    jobs = (job("c", after=("b",)), job("a"), job("b", after=("a",)))
    assert [item.name for item in order_by_dependencies(jobs)] == ["a", "b", "c"]
    assert ancestors(jobs) == (frozenset({1, 2}), frozenset(), frozenset({1}))


def test_a_long_chain_of_dependencies_is_no_problem() -> None:
    jobs = [job(str(number), after=(str(number + 1),) if number < 2999 else ()) for number in range(3000)]
    assert order_by_dependencies(jobs)[0].name == "2999"


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ("", "jobs: is missing in jobs.toml"),
        ("[jobs]\nname = 'a'\n", "is not a list of jobs"),
        (ONE + ONE, "is the name of two jobs"),
        ('[[jobs]]\nname = "a"\nnodes = 9\nhours = 1\n', "needs 9 nodes, and the cluster has 8"),
        ('[[jobs]]\nname = "a"\nnodes = 5\nhours = 1\ncores = "half"\n', "needs 10 nodes"),
        ('[[jobs]]\nname = "a"\nnodes = 0\nhours = 1\n', "jobs.nodes"),
        ('[[jobs]]\nname = "a"\nnodes = 1\nhours = nan\n', "jobs.hours"),
        ('[[jobs]]\nname = "a"\nnodes = 1\nhours = inf\n', "jobs.hours"),
        ('[[jobs]]\nname = "a"\nnodes = 1\nhours = -1\n', "jobs.hours"),
        ('[[jobs]]\nname = "a"\nnodes = 1\n', "jobs.hours: is missing"),
        ('[[jobs]]\nname = "a"\nnodes = 1\nhours = 1\nnode_hours = 1\n', "cannot be combined with hours"),
        ('[[jobs]]\nname = "a"\nranks = 0\nhours = 1\n', "jobs.ranks"),
        ('[[jobs]]\nname = "a"\nranks = "x"\nhours = 1\n', "jobs.ranks"),
        ('[[jobs]]\nname = "a"\nranks = 33\nnodes = 2\nhours = 1\n', "are more than the cores of 2 nodes"),
        ('[[jobs]]\nname = "a"\nnodes = 1\nhours = 1\ncommand = "a\\nb"\n', "jobs.command"),
        ('[[jobs]]\nname = ""\nnodes = 1\nhours = 1\n', "jobs.name"),
        ('[[jobs]]\nname = "a"\nnodes = 1\nhours = 1\nwidth = 3\n', "no such key of a job"),
        ('[[jobs]]\nname = "a"\nnodes = 1\nhours = 1\ncores = "most"\n', "jobs.cores"),
        ('[[jobs]]\nname = "a"\nnodes = 1\nhours = 1\nmemory = "much"\n', "jobs.memory"),
        (
            '[[jobs]]\nname = "a"\nnodes = 1\nhours = 1\nmemory = "65GiB"\ncores = "all"\n',
            "needs 65 GiB on each node, and a node has 64 GiB",
        ),
        (
            '[[jobs]]\nname = "a"\nnodes = 5\nhours = 1\nmemory = "65GiB"\n',
            "needs half of the cores for its memory, and then 10 nodes of 8",
        ),
        (ONE + 'after = ["b"]\n', "is not a job"),
        (ONE + 'after = ["a"]\n', "waits for itself (a after a)"),
        (
            '[[jobs]]\nname = "a"\nnodes = 1\nhours = 1\nafter = ["b"]\n'
            '[[jobs]]\nname = "b"\nnodes = 1\nhours = 1\nafter = ["c"]\n'
            '[[jobs]]\nname = "c"\nnodes = 1\nhours = 1\nafter = ["a"]\n',
            "waits for itself (a after b after c after a)",
        ),
    ],
)
def test_impossible_jobs_are_refused_in_one_sentence(tables: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(tables)
    assert message in caught.value.sentence()
    assert caught.value.hint


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        ("", "cluster: is missing"),
        ("cluster = 3\n", "is not a table"),
        ("[cluster]\nnodes = 8\n", "cluster.cores: is missing"),
        ("[cluster]\nnodes = 0\ncores = 1\n", "cluster.nodes"),
        ("[cluster]\nnodes = 1\ncores = 1\nracks = 2\n", "no such key of a cluster"),
        ("[cluster\n", "not a TOML file"),
    ],
)
def test_an_impossible_cluster_is_refused(cluster: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse(ONE, cluster=cluster)


def test_too_many_jobs_are_refused() -> None:
    with pytest.raises(UsageError, match="are more than"):
        parse(*(ONE for _ in range(MOST_JOBS + 1)))


def test_memory_that_only_fits_with_half_of_the_cores_is_accepted() -> None:
    assert parse('[[jobs]]\nname = "a"\nnodes = 4\nhours = 1\nmemory = "65GiB"\n').jobs[0].nodes == 4
