"""What the analysis of a trace's overlap finds, on traces with a known truth (tests/made_overlap.py)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from elbowroom import api, cli
from elbowroom.errors import UsageError
from elbowroom.trace.overlap.document import TraceOverlap
from elbowroom.trace.overlap.figures import overlap_figures, overlap_page
from made_overlap import (
    COLLECTIVES,
    COMM,
    KERNELS,
    Made,
    Recipe,
    Span,
    kineto,
    make,
    nsight,
    scheduled,
    write_gzip,
)


def analysed(folder: Path, made: Made, **options: bool) -> TraceOverlap:
    path = folder / "trace.json"
    path.write_bytes(kineto(made, **options))
    return api.trace_overlap(path)


@pytest.mark.parametrize("slowdown", [1.02, 1.1, 1.5])
def test_a_planted_slowdown_is_recovered_within_one_point(tmp_path: Path, slowdown: float) -> None:
    errors = []
    for seed in range(3):
        found = analysed(tmp_path, make(Recipe(seed=seed, instances=2000, slowdown=slowdown)))
        errors += [one.slowdown.value - slowdown for one in found.classes if one.slowdown is not None]
    assert len(errors) >= 20
    assert abs(float(np.mean(errors))) < 0.01


def test_traces_without_an_effect_rarely_claim_one(tmp_path: Path) -> None:
    claims = [analysed(tmp_path, make(Recipe(seed=seed, instances=500))).effect for seed in range(40, 64)]
    assert sum(claims) <= 3  # benchmarks/autopsy.py counts those of a thousand


def test_a_comparison_of_all_instances_would_find_an_effect_that_does_not_exist() -> None:
    made = make(Recipe(seed=5, instances=3000))
    beside, alone = [], []
    comm = np.array([(span.start, span.start + span.duration) for span in made.spans if span.stream == COMM])
    for span in made.spans:
        if span.name == "gemm":
            active = ((comm[:, 0] <= span.start) & (span.start < comm[:, 1])).any()
            (beside if active else alone).append(span.duration)
    assert np.mean(beside) > 1.08 * np.mean(alone)


def test_only_the_class_and_the_collective_that_interfere_are_blamed(tmp_path: Path) -> None:
    made = make(Recipe(seed=2, instances=3000, slowdown={("gemm", COLLECTIVES[0]): 1.3}))
    found = analysed(tmp_path, made)
    changed = {(one.name, one.communication) for one in found.classes if one.changed}
    assert changed == {("gemm", COLLECTIVES[0])}


@pytest.mark.parametrize("differ", [True, False])
def test_operations_are_shown_where_their_slowdowns_differ(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], differ: bool
) -> None:
    slowed = COLLECTIVES[:1] if differ else COLLECTIVES
    slowdown = {(name, one): 1.3 for name in KERNELS for one in slowed}
    made = make(Recipe(seed=2, instances=2000, slowdown=slowdown))
    path = tmp_path / "trace.json"
    path.write_bytes(kineto(made))
    assert cli.run(["trace", "overlap", str(path)]) == 0
    operations = [one.operation for one in api.trace_overlap(path).estimate.operations]
    assert operations == (["all-reduce", "reduce-scatter"] if differ else [])
    page = overlap_page(api.trace_overlap(path))
    assert ("all computation during" in capfd.readouterr().out) == ("differs between" in page) == differ


def test_hidden_exposed_and_lost_time_are_those_of_the_simulation(tmp_path: Path) -> None:
    made = make(Recipe(seed=7, ranks=2, instances=2500, slowdown=1.4))
    found = analysed(tmp_path, made)
    assert found.ranks == 2
    assert found.hidden_s == pytest.approx(made.hidden_s, rel=1e-4)
    assert found.exposed_s == pytest.approx(made.exposed_s, rel=1e-3)
    assert found.cost_s == pytest.approx(made.cost_s, rel=0.05)
    assert found.cost is not None
    assert found.cost.low < made.cost_s < found.cost.high


def test_the_fraction_of_ideal_follows_from_the_times(tmp_path: Path) -> None:
    made = make(Recipe(seed=7, instances=2500, slowdown=1.4))
    found = analysed(tmp_path, made)
    comp, comm = found.comp_s - made.cost_s, found.comm_s
    truth = (comp + comm - found.together_s) / min(comp, comm)
    assert found.fraction_of_ideal == pytest.approx(truth, abs=0.02)
    assert found.osu_overlap == pytest.approx(truth, abs=0.02)


def test_the_verdict_gives_times_of_a_step_where_the_trace_names_steps(tmp_path: Path) -> None:
    found = analysed(tmp_path, make(Recipe(seed=1, slowdown=1.3)))
    assert found.steps == 125
    assert found.verdict.startswith("Hiding saves")
    assert "a step and costs" in found.verdict


def test_renamed_collectives_are_recognised_by_what_launched_them(tmp_path: Path) -> None:
    made = make(Recipe(seed=1, slowdown=1.3))
    found = analysed(tmp_path, made, renamed=True, launches=True)
    assert [one.name for one in found.communications] == ["hidden_kernel_17"]
    assert found.hidden_s == pytest.approx(made.hidden_s, rel=1e-4)


def test_some_renamed_collectives_are_recognised_by_their_stream(tmp_path: Path) -> None:
    made = make(Recipe(seed=1))
    odd = [span for span in made.spans if span.stream == COMM][::3]
    spans = [
        Span(rank=0, stream=COMM, name="mystery", start=span.start, duration=span.duration)
        if span in odd
        else span
        for span in made.spans
    ]
    found = analysed(tmp_path, Made(spans=spans))
    assert "mystery" in {one.name for one in found.communications}


def test_renamed_collectives_without_launches_are_named_by_the_user(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(kineto(make(Recipe(seed=1)), renamed=True))
    with pytest.raises(UsageError, match="no communication that is recognised"):
        api.trace_overlap(path)
    assert api.trace_overlap(path, communication=["hidden_kernel"]).hidden_s > 0


def test_missing_streams_change_nothing(tmp_path: Path) -> None:
    made = make(Recipe(seed=1, slowdown=1.2))
    whole, without = analysed(tmp_path, made), analysed(tmp_path, made, streams=False)
    assert without.hidden_s == pytest.approx(whole.hidden_s)
    assert without.cost_s == pytest.approx(whole.cost_s)


def test_clock_offsets_between_ranks_change_nothing(tmp_path: Path) -> None:
    files = []
    for offset in (0.0, 3e9):
        made = make(Recipe(seed=1, ranks=2, slowdown=1.2, clock_offset=offset))
        for rank in range(2):
            files.append(tmp_path / f"{offset:g}-{rank}.json")
            files[-1].write_bytes(kineto(made, rank=rank))
    near, far = api.trace_overlap(files[:2]), api.trace_overlap(files[2:])
    assert near.ranks == far.ranks == 2
    assert far.hidden_s == pytest.approx(near.hidden_s, rel=1e-4)
    assert far.cost_s == pytest.approx(near.cost_s, rel=0.02)


def test_nothing_is_said_of_the_cost_where_a_class_always_runs_beside_communication(tmp_path: Path) -> None:
    spans = [Span(rank=0, stream=7, name="gemm", start=100.0 * n, duration=90.0) for n in range(300)]
    spans.append(Span(rank=0, stream=COMM, name=COLLECTIVES[0], start=0.0, duration=1e6))
    found = analysed(tmp_path, Made(spans=spans))
    assert found.cost_s is None
    assert found.fraction_of_ideal is None
    assert "what it costs cannot be said" in found.verdict
    assert "never begins alone" in found.verdict


def test_the_comparison_of_two_traces_finds_the_class_that_changed(tmp_path: Path) -> None:
    files = []
    for name, slowdown in (("before", 1.4), ("after", 1.1)):
        files.append(tmp_path / f"{name}.json")
        files[-1].write_bytes(kineto(make(Recipe(seed=3, instances=3000, slowdown=slowdown))))
    compared = api.compare_trace_overlaps(*files)
    assert compared.per == "step"
    assert compared.verdict.endswith("a step less.")
    gemm = next(one for one in compared.classes if one.name == "gemm")
    assert gemm.changed
    assert gemm.ratio.low < 1.1 / 1.4 < gemm.ratio.high


def test_scripts_find_counts_and_ratios(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trace.json.gz"
    write_gzip(kineto(make(Recipe(seed=1, slowdown=1.3))), path)
    assert cli.run(["trace", "overlap", str(path), "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert {"classes", "hidden_s", "cost_s", "exposed_s", "fraction_of_ideal", "verdict"} <= set(document)
    row = next(one for one in document["classes"] if one["name"] == "gemm")
    assert isinstance(row["alone"], int)
    assert isinstance(row["overlapped"], int)
    assert row["communication"] in COLLECTIVES
    assert set(row["slowdown"]) == {"value", "low", "high"}
    assert {one["name"] for one in document["classes"]} == set(KERNELS)


def test_an_export_of_nsight_systems_gives_the_same(tmp_path: Path) -> None:
    made = make(Recipe(seed=1, slowdown=1.2))
    nsight(made, tmp_path / "trace.sqlite")
    found, beside = api.trace_overlap(tmp_path / "trace.sqlite"), analysed(tmp_path, made)
    assert found.format == "nsight"
    assert found.hidden_s == pytest.approx(beside.hidden_s, rel=1e-5)
    assert found.cost_s == pytest.approx(beside.cost_s, rel=1e-2)
    assert {one.label for one in found.classes} == {one.label for one in beside.classes}


def test_the_median_step_shows_when_each_side_is_active(tmp_path: Path) -> None:
    made = scheduled(steps=9, places=6, where=range(1, 3))
    path = tmp_path / "trace.json"
    path.write_bytes(kineto(made))
    found = api.trace_overlap(path)
    step = found.median_step
    assert step is not None
    lengths = [length for _, _, _, length in made.steps]
    assert step.seconds == pytest.approx(sorted(lengths)[4] / 1e6, rel=0.05)
    assert len(step.communicating) == 1
    assert sum(end - begin for begin, end in step.computing) <= step.seconds
    assert [figure.name for figure in overlap_figures(found)][-1] == "overlap-step"
