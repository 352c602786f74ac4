"""`ema` finds what extraneous accesses do (Tan and Jarvis 2012), and refuses what it cannot measure."""

from __future__ import annotations

from itertools import product

import msgspec
import pytest

import elbowroom
from accessed import FLOOR, L1, L2, cached, flat, plan, study
from elbowroom.errors import UsageError
from elbowroom.experiments.ema import EXPERIMENT as ema
from elbowroom.experiments.ema.cases import cases, data
from elbowroom.experiments.ema.points import windows
from elbowroom.experiments.ema.results import tables
from elbowroom.experiments.plans import Overrides, apply, load
from elbowroom.machine.topology import Machine
from elbowroom.plan.order import closing_points, estimate, order_units
from elbowroom.plan.validation import validate
from elbowroom.points.accesses import CallWork, ExtraneousAccesses, Misses, series_of
from elbowroom.points.point import Steady, running
from elbowroom.results.result import PointResult
from sampled import with_payload
from studies import HENRI, by_key, sound

HERE = cached()


def alone(here: Machine, cores: int) -> Machine:
    return msgspec.structs.replace(here, allowed=tuple(range(cores)))


def test_the_plan_has_the_papers_10000_sizes_for_each_side() -> None:
    chosen = load("ema")
    points = ema.expand(chosen, HERE).points
    for who in ("sender", "receiver", "both"):
        own = [one for _, one in running(points, ExtraneousAccesses) if one.who == who]
        sizes = [size for one in own for size in one.sizes]
        assert sizes == list(range(0, 4_000_001, 400))
        assert {one.count for one in own} <= {100, 101}
    assert {point.size for point in points} == {400}


def test_each_size_has_100_messages_as_in_the_paper() -> None:
    chosen = load("ema")
    points = running(ema.expand(chosen, HERE).points, ExtraneousAccesses)
    assert {one.exchanges * chosen.repetitions for _, one in points} == {100}


def test_two_sides_of_10000_sizes_are_expected_to_take_ten_minutes_at_most() -> None:
    chosen = apply(load("ema"), Overrides(settings={"who": "sender,receiver"}))
    points = ema.expand(chosen, HERE).points
    assert 180 < estimate(points, order_units(points, chosen.repetitions, chosen.seed)) <= 600


def test_sender_and_receiver_have_a_core_each_and_bystanders_the_others() -> None:
    points = ema.expand(plan(who="bystanders", n="1,2"), cached(4)).points
    for point in points:
        assert {point.comm_cores, point.peer_cores} == {(3,), (2,)}
        assert set(point.comp_cores) <= {0, 1}
    assert {point.n for point in points} == {1, 2}
    validate(points, cached(4))


def test_two_cores_leave_none_for_bystanders() -> None:
    expansion = ema.expand(plan(who="sender,bystanders"), HERE)
    assert {one.who for _, one in running(expansion.points, ExtraneousAccesses)} == {"sender"}
    [note] = expansion.notes
    assert note.reason == "this machine has 2 cores, and each runs a rank"


def test_several_hosts_have_several_clocks() -> None:
    expansion = ema.expand(load("ema"), HENRI)
    assert not running(expansion.points, ExtraneousAccesses)
    assert "one clock" in expansion.notes[0].reason


def test_a_virtual_machine_without_effects_has_no_caches() -> None:
    with pytest.raises(UsageError, match="has no caches"):
        elbowroom.dry_run("ema", machine="henri")


def test_every_axis_multiplies() -> None:
    settings = {"access": "read,write", "data": "same,different", "barrier": "true,false", "sizes": "4,400"}
    points = ema.expand(plan(**settings), HERE).points
    assert len({point.id for point in points}) == len(points) == 2 * 2 * 2 * 2 * 2 * 50
    requested = points[-1].workload.request(points[-1], order_units([points[-1]], 1, 1)[0], Steady())
    assert requested["extraneous"] == msgspec.to_builtins(points[-1].workload)
    assert requested["sequence"] == ["B", "AB"]


def test_what_is_timed_and_what_bystanders_are_tell_cases_apart() -> None:
    settings = {"who": "bystanders", "timing": "one-way,recv-cpu", "bystanders": "threads,processes"}
    points = ema.expand(plan(**settings), cached(4)).points
    kinds = {(one.timing, one.bystanders) for _, one in running(points, ExtraneousAccesses)}
    assert kinds == set(product(("one-way", "recv-cpu"), ("threads", "processes")))
    assert len({point.id for point in points}) == len(points)
    with pytest.raises(UsageError, match="timing"):
        plan(timing="wall")


def test_windows_need_no_closing_baselines() -> None:
    points = ema.expand(plan(), HERE).points
    assert closing_points(points) == ()
    assert points[0].workload.sequence(points[0]) == ("B", "AB")


@pytest.mark.parametrize(
    ("field", "settings"),
    [
        ("accesses", {"accesses": "8MB,0"}),
        ("accesses", {"accesses": "0,0"}),
        ("accesses", {"accesses": "0,900GB"}),
        ("accesses", {"accesses": "0,much"}),
        ("accesses", {"accesses": "0,4MB,8MB"}),
        ("access_step", {"access_step": "5MB"}),
        ("access_step", {"access_step": "1"}),
        ("access_step", {"access_step": "0"}),
        ("window_sizes", {"window_sizes": "0"}),
        ("exchanges", {"exchanges": "0"}),
        ("who", {"who": "server"}),
        ("who", {"who": "bystanders"}),
        ("access", {"access": "touch"}),
        ("barrier", {"barrier": "maybe"}),
        ("peer_core", {"peer_core": "0"}),
        ("comm_cores", {"comm_cores": "0,1"}),
        ("comm_cores", {"comm_cores": "far"}),
    ],
)
def test_what_cannot_be_measured_is_refused_with_its_field(field: str, settings: dict[str, str]) -> None:
    with pytest.raises(UsageError) as refused:
        ema.expand(plan(**settings), HERE)
    assert refused.value.field == field
    assert refused.value.hint


def test_one_core_is_too_few() -> None:
    with pytest.raises(UsageError, match="a core each"):
        ema.expand(plan(), alone(HERE, 1))


def test_accesses_of_several_cores_must_fit_in_memory_together() -> None:
    settings = {"who": "both", "accesses": "0,20GB", "access_step": "1GB"}
    with pytest.raises(UsageError, match="larger than memory"):
        validate(ema.expand(plan(**settings), HERE).points, HERE)


def test_keys_of_ema_are_refused_elsewhere() -> None:
    with pytest.raises(UsageError, match="is only valid for experiment ema"):
        apply(load("quick"), Overrides(settings={"access_step": "800"}))


def test_one_size_is_a_window() -> None:
    assert windows(plan(accesses="4MB,4MB").keys) == ((4_000_000, 1),)


def test_the_rise_past_each_cache_is_told_with_its_interval() -> None:
    result = ema.findings(study(HERE), HERE)
    rise = by_key(result, "rise-sender")
    assert rise.level == "interference"
    assert rise.values["past_L2_over"] == pytest.approx(0.5, abs=0.02)
    assert "past L2 (2 MiB). Nothing" in rise.text
    assert "Nothing was accessed past L3 (32 MiB)." in rise.text


def loaded_again(who: str, size: int) -> float:
    """A fifth more once L1 is outgrown, a half more past L2, in proportion before."""
    return 0.2 * min(1.0, size / L1) + 0.5 * min(1.0, size / L2)


def test_what_a_message_loads_again_from_each_cache_predicts_windows_that_were_held_back() -> None:
    results = study(HERE, loaded_again)
    [sender, _] = cases(results, HERE)
    model = sender.message_model
    assert model is not None
    assert model.costs == pytest.approx({"L1": 0.2 * FLOOR, "L2": 0.5 * FLOOR, "L3": 0.0}, abs=0.02 * FLOOR)
    assert model.time(L2, sender.levels) == pytest.approx(1.7 * FLOOR, rel=0.03)
    assert model.error < 0.2 * model.constant_error
    assert by_key(ema.findings(results, HERE), "model-sender").values["verdict"] == "confirmed"


def test_a_term_for_accesses_that_do_not_matter_predicts_no_better() -> None:
    judged = by_key(ema.findings(study(HERE, flat), HERE), "model-sender")
    assert judged.values["verdict"] != "confirmed"


def test_too_few_windows_have_no_message_model() -> None:
    results = study(HERE, settings={"accesses": "0,160000", "access_step": "8000"})
    assert [case.message_model for case in cases(results, HERE)] == [None, None]


def test_the_observations_of_the_paper_have_verdicts() -> None:
    result = ema.findings(study(HERE, wider=4.0), HERE)
    assert by_key(result, "first-sender").values["verdict"] == "confirmed"
    assert by_key(result, "first-receiver").values["verdict"] == "confirmed"
    second = by_key(result, "second-").values
    assert second["less_predictable"] == "confirmed"
    assert by_key(result, "side-").text.startswith(("The sender's", "Neither side's"))


def test_accesses_that_do_not_matter_show_no_interference() -> None:
    result = ema.findings(study(HERE, flat), HERE)
    assert {finding.level for finding in result} == {"quiet", "note"}


def test_bystanders_answer_the_papers_open_question() -> None:
    here = cached(4)
    results = study(here, settings={"who": "bystanders", "accesses": "0,64MiB", "access_step": "1MiB"})
    [answer] = [finding for finding in ema.findings(results, here) if finding.key.startswith("open-")]
    assert answer.level == "interference"
    assert "2 of them raise the floor" in answer.text


def test_figures_show_times_bounds_and_caches() -> None:
    results = study(HERE)
    figures = ema.figures(results, HERE)
    sound(figures, {item.id for item in results})
    assert [figure.name.split("-")[1] for figure in figures] == [
        "write", "scatter", "scatter", "lower", "upper", "fastest"
    ]  # fmt: skip
    assert [mark.text for mark in figures[0].marks] == ["L1: 48 KiB", "L2: 2 MiB"]
    assert [series.name for series in figures[0].series] == ["without accesses", "the sender", "the receiver"]
    assert figures[0].x.scale == "linear"
    wide = study(HERE, settings={"accesses": "0,64MiB", "access_step": "1MiB"})
    assert ema.figures(wide, HERE)[0].x.scale == "log2"


def test_the_scatter_has_a_point_for_every_size_of_a_side() -> None:
    results = study(HERE)
    for who, figure in zip(("sender", "receiver"), ema.figures(results, HERE)[1:3], strict=True):
        [series] = figure.series
        assert (series.drawn, series.name) == ("points", f"the {who}")
        assert series.x == tuple(float(size) for size in range(0, 4_000_001, 8000))
        assert len(series.y) == 501
        assert "average of 60 messages" in figure.caption


def counted(source: str) -> list[PointResult]:
    """Windows with L1 misses of one source and L2 misses that are modelled, and work that was counted."""
    windows = []
    for item in study(HERE):
        window = series_of(item.payload)
        assert window is not None
        count = tuple(float(size + 1) for size in window.sizes)
        misses = (
            Misses(level="L1", rank="receiver", source=source, count=count),  # type: ignore[arg-type]
            Misses(level="L2", rank="receiver", source="modelled", count=count),
        )
        work = (CallWork(name="instructions", rank="receiver", count=count),)
        series = msgspec.structs.replace(window, misses=misses, work=work)
        windows.append(with_payload(item, series=series))
    return windows


def test_each_level_says_its_own_source() -> None:
    found = by_key(ema.findings(counted("measured"), HERE), "misses-receiver")
    assert (found.values["L1_source"], found.values["L2_source"]) == ("measured", "modelled")
    assert "L1 misses (measured;" in found.text
    assert "L2 misses (modelled;" in found.text


def test_a_model_s_number_stands_beside_the_count_of_a_level_with_the_limits_of_the_events() -> None:
    windows = []
    for item in counted("measured"):
        series = series_of(item.payload)
        assert series is not None
        modelled = msgspec.structs.replace(
            series.misses[0], source="modelled", count=(9.0,) * len(series.sizes)
        )
        more = msgspec.structs.replace(series, misses=(*series.misses, modelled))
        windows.append(with_payload(item, series=more))
    result = ema.findings(windows, HERE)
    told = by_key(result, "misses-receiver")
    assert told.values["L1_source"] == "measured"
    assert told.values["L1_modelled_most"] == 9
    assert "A model of the caches has up to 9 L1 misses (modelled;" in told.text
    assert "reads only" in told.text


def test_instructions_are_told_where_they_were_counted_and_nothing_where_not() -> None:
    found = by_key(ema.findings(counted("modelled"), HERE), "work-receiver-sender")
    assert (found.values["instructions_first"], found.values["instructions_last"]) == (1, 4_000_001)
    assert not [item for item in ema.findings(study(HERE), HERE) if item.key.startswith("work-")]


def test_the_table_has_a_row_for_each_region_and_the_object_every_window() -> None:
    results = study(HERE)
    messages = tables(results, HERE)
    assert [table.title.split(",")[0] for table in messages] == [
        "Writes by the sender",
        "Writes by the receiver",
    ]
    assert [row[0] for row in messages[0].rows] == [
        "no accesses",
        "within L1 (48 KiB)",
        "past L1 (48 KiB)",
        "past L2 (2 MiB)",
    ]
    table = data(results, HERE)["extraneous"]
    assert len(table.cases[0].bounds.mean_after) == 50
    assert table.cases[0].caches["L2"] == L2
    assert table.sides[0].windows == 50
    assert data([], HERE) == {}
