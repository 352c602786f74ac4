"""The registry of experiments, and what holds for every one of them."""

from __future__ import annotations

import pytest

from elbowroom import experiments
from elbowroom.errors import UsageError
from elbowroom.experiments.plans import load, names
from elbowroom.plan.file import Plan
from elbowroom.points.point import Point
from studies import HENRI, SMALL, machine, sound, study


def test_every_experiment_of_the_issue_is_registered_with_a_plan_of_its_name() -> None:
    wanted = {"quick", "cores", "placement", "sizes", "intensity", "frequency", "model", "ring"}
    assert wanted <= {experiment.name for experiment in experiments.all()}
    for experiment in experiments.all():
        plan = load(experiment.name)
        assert (plan.experiment, plan.question) == (experiment.name, experiment.question)


def test_an_unknown_experiment_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="did you mean 'sizes'"):
        experiments.get("size")


@pytest.mark.parametrize("name", names())
def test_an_experiment_without_results_says_so(name: str) -> None:
    experiment = experiments.get(load(name).experiment)
    assert [finding.level for finding in experiment.findings([], HENRI)] == ["n/a"]
    assert experiment.figures([], HENRI) == ()


@pytest.mark.parametrize("name", names())
def test_an_undisturbed_machine_shows_no_interference_in_any_experiment(name: str) -> None:
    def truth(point: Point) -> tuple[float, float, float, float]:
        comm = 1.5 if point.metric == "latency" else 10_000.0
        return 9000.0, 9000.0, comm, comm

    # One-way times need one host, and a tenth of the sizes shows as much.
    one_host = load(name).experiment == "ema"
    settings = {"access_step": "4000", "window_sizes": "50"} if one_host else {}
    if load(name).experiment in ("collectives", "overlap"):
        first = {"collectives": "bcast,allreduce", "overlap": "pingpong"}[load(name).experiment]
        settings = {"sizes": "1MiB", "progress": "none", "forms": "nonblocking", "operations": first}
    here = machine(8, 2, 2, nic=0, hosts=1 if one_host else 2)
    experiment, found = study(name, here, truth, settings=settings)
    levels = {finding.level for finding in experiment.findings(found, HENRI)}
    assert "interference" not in levels
    assert "quiet" in levels
    sound(experiment.figures(found, HENRI), {item.id for item in found})


def test_a_plan_may_name_another_plans_experiment() -> None:
    plan = Plan(name="mine", experiment="sizes", sizes=(4, 64))
    assert experiments.get(plan.experiment).expand(plan, SMALL).points
