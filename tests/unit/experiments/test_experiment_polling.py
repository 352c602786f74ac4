"""`polling` finds what the paper saw of polling workers (Denis et al. 2021, section 5.4, Figure 9)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import pytest

import elbowroom
from elbowroom import experiments
from elbowroom.errors import UsageError
from elbowroom.experiments.plans import Overrides, apply, load
from elbowroom.experiments.polling import EXPERIMENT as polling
from elbowroom.experiments.polling.points import PollingKeys
from elbowroom.machine.topology import Machine
from elbowroom.plan.file import Plan
from elbowroom.plan.order import order_units
from elbowroom.plan.validation import validate
from elbowroom.points.point import Point, Steady, running
from elbowroom.points.program import AppProgram
from elbowroom.results.points import results
from elbowroom.results.quiet import controls
from elbowroom.results.result import Finding, PointResult
from elbowroom.stats.summary import Samples
from studies import HENRI, SMALL, by_key, machine, sound

ALONE = 1.5  # us
PAIR, EIGHT = machine(8, 2, 2, nic=0, hosts=2), machine(8)
POLLS = 25.0  # million polls per second and worker
Added = Callable[[int | None, int], float]
"""us that workers add to the latency, by back-off (None: paused) and number of workers."""


def henri(nops: int | None, n: int) -> float:
    """Figure 9, on fewer cores: the latency rises with polling workers, the more the more often they poll."""
    return n * {2: 0.1, 32: 0.05}.get(nops or 0, 0.0)


def billy(nops: int | None, n: int) -> float:
    """Polling workers have no impact."""
    return 0.0


def nops_of(point: Point) -> int | None:
    if isinstance(point.workload, AppProgram):
        return point.workload.backoff or None
    return point.cursor if point.kernel == "polling" else None


def measured(
    points: Sequence[Point], added: Added, control: float = 0.0, noise: float = 0.004
) -> list[PointResult]:
    """Samples around a truth: latencies in us, polls in million a second; the control adds `control` us."""
    rng = np.random.default_rng(0)
    rows = []
    for index, point in enumerate(points):
        more = control if point.kernel == "prime" else added(nops_of(point), point.n)
        cells = [("B", "comm", ALONE, "us"), ("AB", "comm", ALONE + more, "us")]
        if point.kernel != "none":
            cells += [(phase, "comp", POLLS * point.n, "M/s") for phase in ("A", "AB")]
        for phase, side, value, unit in cells:
            for sample in range(24):
                rows.append(
                    (index, sample // 2, False, phase, side, value * rng.normal(1, noise), unit, "ok")
                )
    return results(points, Samples(*zip(*rows, strict=True)))


def expanded(here: Machine, **settings: object) -> tuple[Point, ...]:
    plan = msgspec.structs.replace(load("polling"), **settings)
    return experiments.get("polling").expand(plan, here).points


def said(here: Machine, added: Added, **more: float) -> tuple[Finding, ...]:
    found = measured(expanded(here), added, **more)
    sound(polling.figures(found, here), {item.id for item in found})
    return polling.findings(found, here)


def test_every_number_of_workers_is_measured_with_every_back_off_and_paused() -> None:
    points = expanded(HENRI)
    workers = [point for point in points if point.kernel == "polling"]
    assert {(point.n, point.cursor) for point in workers} == {
        (n, nops) for n in range(1, 36) for nops in (2, 32, 10000)
    }
    paused = [point for point in points if point.kernel == "paused"]
    assert sorted(point.n for point in paused) == list(range(1, 36))
    assert all(point.metric == "latency" and point.size == 4 for point in points)
    assert [(point.n, point.role) for point in points if point.kernel == "prime"] == [(35, "control")]


def test_starpus_workers_sit_where_those_of_the_pool_do_and_wait_in_the_baseline() -> None:
    points = expanded(HENRI)
    validate(points, HENRI)
    programs = [point for point in points if isinstance(point.workload, AppProgram)]
    seats = {point.n: point.comp_cores for point in points if point.kernel == "paused"}
    assert {(point.n, program.backoff) for point, program in running(programs, AppProgram)} == {
        (n, nops) for n in range(1, 36) for nops in (2, 32, 10000, 0)
    }
    for point in programs:
        assert point.comp_cores == seats[point.n]
        assert set(point.sequence) == {"B", "AB"}
        assert point.placements == ()
    assert len({point.id for point in points}) == len(points)


def test_on_one_host_only_one_rank_has_workers_and_each_core_one_thread() -> None:
    here = machine(8)
    points = expanded(here)
    validate(points, here)
    program = max((point for point, _ in running(points, AppProgram)), key=lambda point: point.n)
    first, other = program.placements
    assert first.comp_cores == program.comp_cores
    assert other.comp_cores == ()
    assert not set(first.comp_cores) & {*first.comm_cores, *other.comm_cores}
    asked = program.workload.request(program, order_units([program], 1, 1)[0], Steady())
    assert asked["program"] == {**msgspec.to_builtins(program.workload)}


def test_starpus_workers_are_named_as_those_of_the_pool_are() -> None:
    labels = {point.workload.title for point in expanded(SMALL) if isinstance(point.workload, AppProgram)}
    assert labels == {
        "polling x2 (starpu)",
        "polling x32 (starpu)",
        "polling x10000 (starpu)",
        "paused (starpu)",
    }


def test_both_hosts_have_workers_as_both_of_the_papers_nodes_had() -> None:
    assert {point.computing_ranks for point in expanded(HENRI)} == {"all"}
    assert {point.computing_ranks for point in expanded(machine(8))} == {"first"}


def test_without_back_offs_of_starpu_only_the_pool_is_measured() -> None:
    assert all(not isinstance(point.workload, AppProgram) for point in expanded(HENRI, keys=PollingKeys()))


def test_paused_workers_alone_make_no_claim() -> None:
    found = measured(expanded(EIGHT, kernels=("paused",), keys=PollingKeys()), billy)
    only = polling.findings(found, EIGHT)
    assert [item.key.rpartition("-4-")[0] for item in only] == ["polling-pool"]
    assert only[0].level == "note"
    assert "suffer" not in only[0].text
    assert [figure.x.label for figure in polling.figures(found, EIGHT)] == ["Number of polling workers"]


def test_one_free_core_is_said_to_have_the_list_to_itself() -> None:
    notes = experiments.get("polling").expand(load("polling"), SMALL).notes
    assert any("the list to itself" in note.reason for note in notes)


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"settings": {"n": "5"}}, "n", "5 workers are more than there are cores"),
        ({"settings": {"n": "every,9"}}, "n", "9 workers are more than there are cores"),
        ({"kernels": ("polling", "triad")}, "kernels", "is not a kernel of the task pool"),
        ({"settings": {"metric": "bandwidth"}}, "metric", "adds to latencies"),
    ],
)
def test_what_cannot_be_measured_is_refused_with_field_and_mend(
    changes: dict[str, object], field: str, words: str
) -> None:
    plan: Plan = apply(load("polling"), Overrides(**changes))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=words) as error:
        experiments.get("polling").expand(plan, SMALL)
    assert error.value.field == field
    assert error.value.hint


def test_a_virtual_machine_without_effects_has_no_list_to_poll() -> None:
    with pytest.raises(UsageError, match="no list of tasks"):
        elbowroom.dry_run("polling", machine="henri")


def test_back_offs_of_starpu_are_refused_in_other_plans() -> None:
    with pytest.raises(UsageError, match="is only valid for experiment polling"):
        apply(load("cores"), Overrides(settings={"backoffs": "2"}))


@pytest.mark.parametrize("source", ["pool", "starpu"])
def test_the_papers_henri_confirms_that_more_frequent_polls_cost_more(source: str) -> None:
    found = said(PAIR, henri)
    added, claim = by_key(found, f"polling-{source}"), by_key(found, f"polling-claim-{source}")
    assert added.level == "interference"
    assert added.values["added_2"] == pytest.approx(7 * 0.1, rel=0.02)
    assert added.values["added_32"] == pytest.approx(7 * 0.05, rel=0.02)
    assert added.values["added_10000_low"] < 0.01  # type: ignore[operator]
    assert added.values["from_10000"] is None
    assert added.values["from_2"] in (1, 2)
    assert (claim.values["verdict"], claim.values["rare"]) == ("confirmed", "confirmed")
    assert "With back-off 2 it suffers from" in added.text
    assert "With back-off 10000 it is not affected" in added.text


def test_polls_are_told_per_second_and_worker() -> None:
    added = by_key(said(EIGHT, henri), "polling-pool")
    assert added.values["polls_32"] == pytest.approx(POLLS * 1e6, rel=0.01)
    assert "polls_paused" not in added.values
    assert "polls_2" not in by_key(said(EIGHT, henri), "polling-starpu").values


def test_billy_refutes_it() -> None:
    found = said(PAIR, billy)
    assert {item.level for item in found} == {"quiet", "note"}
    claim = by_key(found, "polling-claim-pool")
    assert claim.values["verdict"] == "refuted"
    assert "it suffers" not in found[0].text
    assert "It does not suffer: it is at most 1.0" in said(SMALL, billy)[0].text


def test_rare_polls_confirm_nothing_where_frequent_ones_cost_nothing() -> None:
    assert by_key(said(PAIR, billy), "polling-claim-pool").values["rare"] == "undecided"


def test_one_worker_that_costs_nothing_leaves_it_undecided() -> None:
    claim = by_key(said(SMALL, billy), "polling-claim-pool")
    assert claim.values["verdict"] == "undecided"
    assert "the list to itself" in claim.text


def test_a_latency_that_rises_with_rarer_polls_refutes_it() -> None:
    found = said(EIGHT, lambda nops, n: n * {2: 0.03, 32: 0.06}.get(nops or 0, 0.0))
    assert by_key(found, "polling-claim-pool").values["verdict"] == "refuted"


def test_what_a_register_kernel_costs_as_well_is_not_called_polling() -> None:
    found = said(EIGHT, henri, control=6 * 0.1)
    claim = by_key(found, "polling-claim-pool")
    assert claim.values["verdict"] == "undecided"
    assert "touches no list" in claim.text


def test_rare_polls_that_cost_as_much_as_frequent_ones_are_not_as_paused() -> None:
    found = said(EIGHT, lambda nops, n: 0.0 if nops is None else n * 0.03)
    claim = by_key(found, "polling-claim-pool")
    assert (claim.values["verdict"], claim.values["rare"]) == ("undecided", "refuted")


def test_wide_intervals_decide_nothing() -> None:
    found = said(EIGHT, billy, noise=0.5)
    assert by_key(found, "polling-claim-pool").values["verdict"] == "undecided"


def test_figure_9_has_a_line_for_each_back_off_and_the_latency_alone() -> None:
    found = measured(expanded(PAIR), henri)
    figures = {figure.name: figure for figure in polling.figures(found, PAIR)}
    over = next(figure for name, figure in figures.items() if name.startswith("polling-pool"))
    assert [(line.name, line.style) for line in over.series] == [
        ("alone", "alone"),
        ("back-off 2 together", "together"),
        ("back-off 32 together", "together"),
        ("back-off 10000 together", "together"),
        ("paused together", "together"),
    ]
    assert all(line.x == tuple(float(n) for n in range(1, 8)) and line.low for line in over.series)
    assert over.series[1].y[-1] == pytest.approx(ALONE + 7 * 0.1, rel=0.02)


def test_a_single_number_of_workers_is_drawn_over_the_back_off_only() -> None:
    found = measured(expanded(SMALL), billy)
    figures = polling.figures(found, SMALL)
    assert [figure.name.rpartition("-4-")[0] for figure in figures] == [
        "polling-nops-pool",
        "polling-nops-starpu",
    ]
    assert figures[0].series[0].x == (2.0, 32.0, 10000.0)
    assert figures[0].below is not None
    assert figures[1].below is None


def test_a_single_back_off_is_drawn_beside_the_paused_workers() -> None:
    found = measured(expanded(SMALL, cursors=(32,), keys=PollingKeys()), billy)
    (figure,) = polling.figures(found, SMALL)
    assert {line.name: line.x for line in figure.series if line.style == "line"} == {
        "beside paused workers": (16.0, 64.0)
    }


def test_the_control_of_a_polling_plan_is_prime_counting_alone() -> None:
    assert [item.kernel for item in controls(measured(expanded(SMALL), billy))] == ["prime"]
