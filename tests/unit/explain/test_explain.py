"""Losses are attributed to what was put in: by contrast, with what nothing tells apart named together."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
import pytest

from elbowroom import experiments
from elbowroom.errors import UsageError
from elbowroom.experiments.contrast import one_socket
from elbowroom.experiments.plans import Overrides, apply, load
from elbowroom.explain.chain import cases, observed_points, remote
from elbowroom.explain.explainer import ObservedRun, contrasts, explain
from elbowroom.explain.explanation import ExplainedPoint, Explanation, SideLoss, SourceStatement
from elbowroom.points.point import Point
from elbowroom.points.program import RuntimeProgram
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import Added, Kept, Side, Summary
from studies import HENRI, SMALL, Truth, by_key, machine, measured, sound, study

TWO = machine(16, 2, 2, nic=0, hosts=2)

KEPT = {
    # (computation, communication) beside large messages, of kernels whose data are local.
    "prime": (1.0, 1.0),
    "fma": (0.99, 0.98),
    "triad_cache": (0.97, 0.98),
    "triad_llc": (0.95, 0.90),
    "memset_nt": (0.8, 0.6),
    "load": (0.8, 0.7),
    "triad": (0.7, 0.6),
    "polling": (1.0, 0.8),
    "paused": (1.0, 1.0),
}
REMOTE = (0.6, 0.45)


def truth(point: Point) -> tuple[float, float, float, float]:
    comp, comm = KEPT[point.kernel] if point.comp_node == 0 else REMOTE
    rate = 1.5 if point.metric == "latency" else 10_000.0
    return 9000.0, 9000.0 * comp, rate, rate / comm if point.metric == "latency" else rate * comm


def points_of(here: Any, **overrides: str) -> tuple[Point, ...]:
    """Those of the plan."""
    plan = apply(load("contrast"), Overrides(settings=overrides))
    return experiments.get("contrast").expand(plan, here).points


@cache
def found(
    made: Truth = truth,
    *,
    here: Any = TWO,
    noise: float = 0.001,
    kernels: tuple[str, ...] = tuple(KEPT),
    asked: tuple[tuple[str, Any], ...] = (),
) -> Explanation:
    """An explanation of the plan's points at all cores as that truth answers them; of these kernels."""
    points = [point for point in points_of(here, n="all") if point.kernel in kernels]
    return explain([ObservedRun(run="r", results=measured(points, made, noise=noise))], here, **dict(asked))


def split(case: ExplainedPoint, side: Any) -> SideLoss:
    chosen = case.split(side)
    assert chosen is not None
    return chosen


def factors(case: ExplainedPoint, side: str) -> dict[str, float]:
    return {" or ".join(step.sources): step.kept.value for step in split(case, side).steps}


def told(explanation: Explanation, source: str) -> SourceStatement:
    return next(item for item in explanation.statements if source in item.sources)


def test_each_source_takes_what_its_contrast_shows() -> None:
    local, far = found().shown
    assert (local.kernel, local.n, local.size, local.remote) == ("triad", 7, 64_000_000, ())
    assert factors(local, "comm") == pytest.approx(
        {
            "everything but memory": 0.98,
            "cache": 1.0,
            "last-level cache": 0.90 / 0.98,
            "memory controller": 0.6 / 0.9,
        },
        rel=0.01,
    )
    assert factors(local, "comp")["memory controller"] == pytest.approx(0.7 / 0.95, rel=0.01)
    assert far.remote == ("computation", "communication")
    assert factors(far, "comm")["link"] == pytest.approx(0.45 / 0.6, rel=0.01)
    assert factors(far, "comm")["memory controller"] == pytest.approx(0.6 / 0.9, rel=0.01)


def test_shares_sum_to_the_whole_and_the_largest_source_is_told_first() -> None:
    explanation = found()
    for case in explanation.cases:
        for part in case.splits:
            shares = [step.share.value for step in part.steps if step.share is not None]
            assert not shares or sum(shares) == pytest.approx(1.0)
    assert explanation.statements[0].sources == ("memory controller",)
    assert explanation.statements[0].text.startswith("Memory controller: ")
    shares = [item.share for item in explanation.statements if item.share is not None]
    assert shares == sorted(shares, reverse=True)


def test_a_step_whose_interval_holds_one_is_undecided() -> None:
    steps = {step.sources[0]: step for step in split(found(noise=0.004).shown[0], "comm").steps}
    assert steps["memory controller"].decided == "loses"
    assert steps["cache"].decided == "undecided"
    assert steps["cache"].kept.low < 1 < steps["cache"].kept.high


def test_what_no_contrast_tells_apart_is_named_together_with_the_command_that_does() -> None:
    explanation = found(kernels=("fma", "triad"))
    together = told(explanation, "memory controller")
    assert together.sources == ("cache", "last-level cache", "memory controller")
    assert together.status == "not told apart"
    assert together.text.startswith("Cache, last-level cache or memory controller: ")
    assert together.hint == "elbowroom run contrast --sizes 64MB --comp-cores 0-6 --comm-core 7"


def test_prime_stands_for_registers_where_fma_was_not_measured() -> None:
    explanation = found(kernels=("prime", "triad"))
    first = split(explanation.shown[0], "comp").steps[0]
    assert (first.sources, first.before) == (("everything but memory",), "")
    assert first.after.startswith("prime")


def test_a_machine_without_contention_gives_nothing() -> None:
    def free(point: Point) -> tuple[float, float, float, float]:
        rate = 1.5 if point.metric == "latency" else 10_000.0
        return 9000.0, 9000.0, rate, rate

    explanation = found(free, noise=0.0)
    decided = {step.decided for case in explanation.cases for part in case.splits for step in part.steps}
    assert decided == {"undecided"}
    assert all(
        step.share is None for case in explanation.cases for part in case.splits for step in part.steps
    )
    assert {case.regime for case in explanation.cases} <= {"neither", None}
    assert any("nothing to attribute" in sentence for sentence in explanation.summary)


def test_where_intervals_overlap_nothing_is_decided() -> None:
    wide = [
        msgspec.structs.replace(item, comp=of_kept(kept, 0.3), comm=of_kept(kept, 0.3))
        for item, kept in zip(
            measured([point_of(kernel="fma"), point_of()], truth, repetitions=2), (0.9, 0.8), strict=True
        )
    ]
    explanation = explain([ObservedRun(run="r", results=wide)], TWO)
    decided = {step.decided for part in explanation.shown[0].splits for step in part.steps}
    assert decided == {"undecided"}
    assert told(explanation, "memory controller").share is None
    assert "undecided for the communication" in told(explanation, "memory controller").text


def of_kept(kept: float, width: float) -> Side:
    alone = Summary(median=1.0, d1=0.9, d9=1.1, low=0.99, high=1.01, count=16, unit="MB/s")
    return Side(alone=alone, together=alone, kept=Kept(value=kept, low=kept - width, high=kept + width))


def test_a_step_that_gains_has_no_share_and_the_others_sum_to_the_whole() -> None:
    def gains(point: Point) -> tuple[float, float, float, float]:
        a, b, c, d = truth(point)
        return (a, b, c, c * 1.07) if point.kernel == "fma" and point.metric == "bandwidth" else (a, b, c, d)

    steps = split(found(gains).shown[0], "comm").steps
    step = steps[0]
    assert step.kept.value == pytest.approx(1.07, abs=0.005)
    assert step.decided == "gains"
    assert step.share is None
    shares = [item.share.value for item in steps if item.share is not None]
    assert sum(shares) == pytest.approx(1.0)
    assert all(0 <= share <= 1 for share in shares)


def test_data_on_two_nodes_have_no_memory_controller_in_common() -> None:
    near = [point_of(kernel=kernel) for kernel in ("fma", "triad_cache", "triad_llc", "triad")]
    apart = point_of(comm_node=1)
    case = next(
        case
        for case in cases(observed_points(measured([*near, apart], truth)), TWO)
        if (case.comp_node, case.comm_node) == (0, 1)
    )
    assert case.remote == ("communication",)
    assert split(case, "comm").steps[-1].sources == ("on-chip network", "link")


def test_whose_data_are_remote_follows_cores_nic_and_hosts() -> None:
    item = measured([point_of()], truth)[0]
    assert remote(item, TWO) == ()
    assert remote(msgspec.structs.replace(item, comp_node=1, comm_node=1), TWO) == (
        "computation",
        "communication",
    )
    both = msgspec.structs.replace(item, comp_cores=(0, 12))
    assert remote(both, TWO) == ("computation",)
    one_host = msgspec.structs.replace(TWO, hosts=1)
    assert remote(msgspec.structs.replace(item, comm_core=15), one_host) == ("communication",)


def point_of(**changes: Any) -> Point:
    made = Point(
        plan="p", kernel="triad", n=2, size=64_000_000, comp_node=0, comm_node=0, comm_core=7,
        metric="bandwidth", comp_cores=(0, 1), comm_cores=(7,),
    )  # fmt: skip
    return msgspec.structs.replace(made, **changes)


def test_points_of_other_cores_or_messages_are_no_contrast() -> None:
    points = [
        point_of(),
        point_of(kernel="fma", n=3, comp_cores=(0, 1, 2)),
        point_of(kernel="triad_cache", size=4, metric="latency"),
        point_of(kernel="triad_llc", comm_core=6),
    ]
    case = cases(observed_points(measured(points, truth)), TWO)[0]
    assert [step.sources for step in split(case, "comm").steps] == [
        ("everything but memory", "cache", "last-level cache", "memory controller")
    ]


def test_a_contrast_in_the_same_run_is_preferred_to_another_runs() -> None:
    def slower(point: Point) -> tuple[float, float, float, float]:
        return 9000.0, 4500.0, 10_000.0, 5000.0

    points = [point_of(), point_of(kernel="fma")]
    runs = [observed_points(measured(points, slower), 0), observed_points(measured(points, truth), 1)]
    second = next(
        case for case in cases([*runs[0], *runs[1]], TWO) if case.run == 1 and case.kernel == "triad"
    )
    assert split(second, "comm").steps[0].kept.value == pytest.approx(0.98, abs=0.005)


def test_a_point_of_one_repetition_tells_nothing_of_a_loss() -> None:
    assert observed_points(measured([point_of()], truth, repetitions=1)) == []


def test_polling_workers_are_set_against_paused_ones() -> None:
    explanation = found()
    polling = [item for item in explanation.contrasts if item.source == "polling"]
    assert {item.side for item in polling} == {"comm"}
    assert all(item.kept.value == pytest.approx(0.8, abs=0.01) for item in polling)
    text = told(explanation, "polling").text
    assert "workers that poll (backoff" in text
    assert "the communication loses 20 %" in text
    assert text.endswith("of its speed beside paused workers (the largest loss of 2).")


def of_program(task: Any, kept: float, **more: Any) -> PointResult:
    alone = Summary(median=1.0, d1=0.9, d9=1.1, low=0.99, high=1.01, count=24, unit="us")
    program = RuntimeProgram(task=task, backoff=more.get("backoff"))
    return PointResult(
        id=task, plan="p", kernel="none", n=1, size=4, comp_node=0, comm_node=0, comm_core=0,
        metric="latency", status="ok", flags=(), comp=Side(), workload=program,
        comm=Side(
            alone=alone, together=alone, kept=Kept(value=kept, low=kept * 0.99, high=kept * 1.01),
            added=Added(value=20.1, low=19.5, high=20.6),
        ),
    )  # fmt: skip


def test_the_runtime_system_is_set_against_mpi_inside_its_point() -> None:
    explanation = explain([ObservedRun(run="r", results=[of_program("overhead", 0.1)])], SMALL)
    (item,) = explanation.contrasts
    assert (item.source, item.decided, item.reference) == ("runtime overhead", "loses", "")
    assert "20.1 us (19.5 to 20.6) longer than through MPI" in told(explanation, "runtime overhead").text


def test_workers_of_a_runtime_system_are_their_own_control() -> None:
    (item,) = contrasts(observed_points([of_program("polling", 0.9, backoff=2)]))
    assert (item.source, item.control) == ("polling", "beside paused workers")
    assert contrasts(observed_points([of_program("polling", 1.0, backoff=0)])) == ()


def test_two_threads_on_one_core_are_set_against_a_core_for_each() -> None:
    apart, shared = point_of(), point_of(comp_cores=(6, 7), scheduling=True)
    results = measured([apart], truth) + [
        msgspec.structs.replace(item, id="shared", flags=("scheduling",))
        for item in measured([shared], lambda point: (9000.0, 3000.0, 10_000.0, 1000.0))
    ]
    explanation = explain([ObservedRun(run="r", results=results)], TWO)
    scheduling = {item.side: item.kept.value for item in explanation.contrasts}
    assert scheduling == pytest.approx({"comm": 0.1 / 0.6, "comp": 0.3333 / 0.7}, rel=0.02)
    assert "two threads sharing a core" in told(explanation, "scheduling").text


def test_flags_of_the_scheduler_are_told_where_there_is_no_contrast() -> None:
    results = [msgspec.structs.replace(item, flags=("steal",)) for item in measured([point_of()], truth)]
    response = told(explain([ObservedRun(run="r", results=results)], TWO), "scheduling")
    assert response.status == "not told apart"
    assert "the hypervisor took time away" in response.text


@pytest.mark.parametrize(
    ("here", "status"), [(SMALL, "n/a"), (TWO, "not measured")], ids=["one socket", "two sockets"]
)
def test_a_link_that_was_not_measured_is_told_with_the_reason(here: Any, status: str) -> None:
    point = point_of(comm_core=0, comp_cores=(1,), n=1) if here is SMALL else point_of()
    response = told(explain([ObservedRun(run="r", results=measured([point], truth))], here), "link")
    assert response.status == status
    assert ("elbowroom run contrast" in response.hint) == (status == "not measured")


def test_what_was_not_measured_is_told_with_its_command() -> None:
    explanation = explain([ObservedRun(run="r", results=measured([point_of()], truth))], TWO)
    assert told(explanation, "polling").hint == "elbowroom run polling"
    assert told(explanation, "runtime overhead").hint == "elbowroom run runtime-overhead"


def test_frequencies_and_noise_are_told_beside_what_registers_lose() -> None:
    results = measured([point_of(), point_of(kernel="fma")], truth)
    run = ObservedRun(
        run="r", results=results, trusted=False, reasons=("load",), frequency="cannot be read here"
    )
    explanation = explain([run], TWO)
    text = told(explanation, "everything but memory").text
    assert text.startswith("Everything but memory: ")
    assert "Frequencies cannot be read here." in text
    assert "not quiet" in text
    assert (explanation.trusted, explanation.reasons) == (False, ("load",))


@pytest.mark.parametrize(
    ("choice", "value", "field", "hint"),
    [
        ("kernel", "traid", "kernel", "did you mean 'triad'"),
        ("n", 99, "cores", "measured: 7"),
        ("size", 64, "size", "measured: 4 B, 64 MB"),
    ],
)
def test_what_was_not_measured_is_refused(choice: str, value: Any, field: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        found(asked=((choice, value),))
    assert caught.value.field == field
    assert hint in caught.value.hint


def test_a_run_that_tells_of_no_loss_is_refused() -> None:
    with pytest.raises(UsageError, match="has no point with a side both alone and together"):
        explain([ObservedRun(run="r", results=[])], TWO)


def test_a_run_of_an_accelerator_points_to_the_sources_that_show_names() -> None:
    plan = apply(load("gpu-overlap"), Overrides(settings={"sms": "8", "victims": "gemm"}))
    points = experiments.get("gpu-overlap").expand(plan, TWO).points
    results = measured(points, lambda point: (1000.0, 500.0, 500.0, 500.0))
    with pytest.raises(UsageError) as caught:
        explain([ObservedRun(run="r", results=results)], TWO)
    assert caught.value.sentence() == (
        "run 'r': holds points of an accelerator, whose sources of loss are in its tables; "
        "print them: elbowroom show r"
    )


def test_kernel_cores_and_size_choose_the_case() -> None:
    case = found(asked=(("kernel", "load"), ("n", 7), ("size", 4))).shown[0]
    assert (case.kernel, case.n, case.size) == ("load", 7, 4)


def test_the_contrast_plan_takes_the_nics_socket_only() -> None:
    assert one_socket(TWO).allowed == tuple(range(8))
    assert one_socket(SMALL) == SMALL
    shared = machine(4, 2, 2, nic=0)
    assert one_socket(shared) == shared


def test_only_kernels_that_move_memory_have_their_data_far_too() -> None:
    far = {point.kernel for point in points_of(HENRI) if point.comp_node != 0}
    assert far == {"memset_nt", "load", "triad"}


def test_the_page_of_a_contrast_run_explains_itself() -> None:
    experiment, results = study("contrast", TWO, truth, settings={"n": "all"})
    findings = experiment.findings(results, TWO)
    assert findings[0].level == "interference"
    assert findings[0].text.startswith("For triad on 7 computing cores beside 64 MB messages, data on node 0")
    assert by_key(findings, "source-memory-controller").text.startswith("Memory controller: ")
    assert by_key(findings, "source-link").level == "note"
    figures = experiment.figures(results, TWO)
    sound(figures, {item.id for item in results})
    assert [len(figure.x.names) for figure in figures[:4]] == [6, 6, 7, 7]


def test_a_loss_of_another_kernel_than_the_first_is_told() -> None:
    def cached(point: Point) -> tuple[float, float, float, float]:
        rate = 1.5 if point.metric == "latency" else 10_000.0
        kept = 0.77 if point.kernel == "triad_llc" and point.metric == "bandwidth" else 1.0
        return 9000.0, 9000.0, rate, rate * kept

    experiment, results = study("contrast", SMALL, cached)
    answer = experiment.findings(results, SMALL)[0]
    assert answer.level == "interference"
    assert "The communication loses most with triad_llc" in answer.text
    explanation = explain([ObservedRun(run="r", results=results)], SMALL)
    assert any("`explain --kernel triad_llc`" in sentence for sentence in explanation.summary)
    chosen = explain([ObservedRun(run="r", results=results)], SMALL, kernel="triad_llc")
    assert chosen.statements[0].sources == ("last-level cache",)
    assert not any("link" in item.sources for item in chosen.statements)
