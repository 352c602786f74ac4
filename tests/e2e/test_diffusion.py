"""`elbowroom run diffusion` against a made-up solver and on simulated clusters: from plan to Table II."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from answers import refused, told
from elbowroom.models.overlap.law import OverlappedStep
from elbowroom.store.journal import read_journal
from elbowroom.verbs.model_file import load_model
from elbowroom.virtual import partitions
from texts import widest

MACHINES = Path(__file__).parents[2] / "machines"
QUICK = ("--repeat", "5", "--set", "cells=2000", "--set", "steps=5", "--set", "window=0.01")


def test_the_table_is_the_papers_formula_on_the_measured_parts(run: Any) -> None:
    shown = told(run, "run", "diffusion", *QUICK, "--out", "r")
    [row] = shown["steps"]["rows"]
    ring = next(point for point in shown["points"] if point["pattern"] == "ring" and point["role"] == "point")
    step = OverlappedStep(
        t_comp=2010.0,
        t_comm=300.0,
        l_comp=1 / ring["comp"]["kept"]["value"],
        l_comm=1 / ring["comm"]["kept"]["value"],
    )
    assert row["step"]["t_comp"] == pytest.approx(2010)
    assert row["step"]["t_comm"] == pytest.approx(300)
    assert row["separator"] == pytest.approx(100)
    assert row["predicted"] == pytest.approx(step.total + 100)
    assert row["naive_sum"] == pytest.approx(2310 + 100)
    assert row["measured"]["median"] == pytest.approx(2310)
    assert row["apart"]["median"] == pytest.approx(2410)
    assert row["errors_of_measured"]["predicted"] == pytest.approx((step.total + 100) / 2310 - 1)
    assert row["errors_of_predicted"]["predicted"] == pytest.approx(abs(1 - 2310 / (step.total + 100)))
    assert row["saved"] == pytest.approx(100 / 2410)


def test_it_says_in_a_sentence_whether_overlapping_paid(run: Any, tmp_path: Path) -> None:
    _, out, _ = run("run", "diffusion", *QUICK, "--out", "r")
    assert "Overlapping paid: 2.31 ms (2.31 to 2.31) overlapped" in " ".join(out.split())
    assert "T_M^C" in out
    assert widest(out) <= 80
    report = (tmp_path / "r" / "report.html").read_text()
    assert "Overlapping paid" in report
    assert "overlap k=1" in report
    assert "T_M^C" in report


def test_variants_are_in_random_order_inside_each_repetition(run: Any, tmp_path: Path) -> None:
    told(run, "run", "diffusion", *QUICK, "--out", "r")
    entries = read_journal(tmp_path / "r" / "samples.jsonl")[0]
    steps = [entry for entry in entries if entry.point.startswith("diffusion-") and not entry.closing]
    orders = [[entry.point for entry in steps if entry.repetition == number] for number in range(4)]
    assert all(sorted(order) == sorted(orders[0]) and len(order) == 4 for order in orders)
    assert len({tuple(order) for order in orders}) > 1
    again = [entry.point.split("-")[1] for entry in entries if entry.closing and "diffusion" in entry.point]
    assert sorted(again) == ["communication", "none"]


def test_an_interrupted_run_goes_on(run: Any, tmp_path: Path) -> None:
    whole = told(run, "run", "diffusion", *QUICK, "--out", "r")
    journal = tmp_path / "r" / "samples.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-3]))
    resumed = told(run, "run", "--resume", "r")
    assert resumed["steps"] == whole["steps"]
    assert len(journal.read_bytes().splitlines()) == len(lines)


def test_the_raw_steps_are_sealed(run: Any, tmp_path: Path) -> None:
    import pyarrow.parquet

    told(run, "run", "diffusion", *QUICK, "--out", "r")
    rows = pyarrow.parquet.read_table(tmp_path / "r" / "samples.parquet").to_pylist()
    steps = [row for row in rows if row["point"].startswith("diffusion-overlap") and row["side"] == "step"]
    assert len(steps) == 5
    assert [len(row["batches"]) for row in steps] == [5] * 5


def test_a_dry_run_says_both_command_lines_and_starts_nothing(run: Any, tmp_path: Path) -> None:
    found = told(run, "run", "diffusion", *QUICK, "--dry-run", code=0)
    assert [line.split()[-1] for line in found["commands"]] == ["measure", "CONFIG.json"]
    assert not list(tmp_path.glob("runs/*"))


def test_a_variant_that_the_solver_refuses_is_a_failed_point(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_REFUSES", "apart")
    shown = told(run, "run", "diffusion", *QUICK)
    [failed] = [point for point in shown["points"] if point["status"] == "failed"]
    assert failed["reason"] == "variant 'apart': not today; ask tomorrow"
    [row] = shown["steps"]["rows"]
    assert row["apart"] is None
    assert row["saved"] is None


def test_loss_ratios_may_come_from_a_model(run: Any) -> None:
    shown = told(
        run, "run", "diffusion", "--machine", "henri", "--nodes", "4", *QUICK[:2], "--set", "model=henri"
    )
    assert {point["kernel"] for point in shown["points"]} == {"prime", "none"}
    said = load_model("henri").predict(18, 0, 0)
    for row in shown["steps"]["rows"]:
        for side, ratio in (("comp", row["l_comp"]), ("comm", row["l_comm"])):
            alone, together = getattr(said, f"{side}_alone"), getattr(said, f"{side}_together")
            assert ratio[0] == pytest.approx(alone.value / together.value)
            assert ratio[1] <= ratio[0] <= ratio[2]


def test_a_model_of_another_machine_is_refused(run: Any) -> None:
    error = refused(run, "run", "diffusion", *QUICK, "--set", "model=henri")
    assert error["field"] == "model"
    assert "is from another machine" in error["message"]


@pytest.mark.parametrize(
    ("words", "field", "said"),
    [
        (("--set", "cells=1"), "cells", "2 processes are more than cells"),
        (("--set", "cells=150"), "cells", "the mesh is too small to partition among 2"),
        (("--set", "cells=900000000000"), "cells", "the mesh is larger than memory"),
        (("--nodes", "64"), "nodes", "a run measures the 1 host it has"),
        (("--set", "comm_threads=2"), "comm_threads", "leaves no core to compute"),
        (("--set", "sizes=4,8"), "sizes", "must be a single value"),
        (("--set", "model=nowhere.json"), "model", "cannot be read"),
        (("--set", "partitioner=kahip"), "partitioner", "invalid enum value"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_starts(
    run: Any, tmp_path: Path, words: tuple[str, ...], field: str, said: str
) -> None:
    error = refused(run, "run", "diffusion", *words)
    assert error["field"] == field
    assert said in error["message"]
    assert not (tmp_path / "runs").exists()


def test_what_the_solver_refuses_at_its_start_leaves_the_reason(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_CELLS", "2000")
    error = refused(run, "run", "diffusion", *QUICK)
    assert (error["field"], error["message"]) == ("cells", "too few")


def test_several_threads_of_open_mpi_on_one_host_are_refused(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_TOPOLOGY", str(MACHINES / "example-2socket.xml"))
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(256)))
    error = refused(run, "run", "diffusion", *QUICK, "--set", "comm_threads=2")
    assert (error["field"], error["value"]) == ("comm_threads", 2)
    assert "crash or hang in Open MPI" in error["message"]
    shown = told(run, "run", "diffusion", *QUICK, "--set", "comm_threads=1,2", "--dry-run", code=0)
    assert any("crash or hang" in note["reason"] for note in shown["notes"])


def test_a_solver_that_is_not_there_is_the_machines_failure(
    run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ELBOWROOM_DIFFUSION", str(tmp_path / "nowhere"))
    error = refused(run, "run", "diffusion", *QUICK, code=1)
    assert error["field"] == "ELBOWROOM_DIFFUSION"


def test_plans_of_kernels_refuse_what_is_an_applications(run: Any) -> None:
    error = refused(run, "run", "quick", "--set", "cells=5")
    assert "elbowroom run diffusion" in error["hint"]


def test_a_cluster_is_simulated_and_says_so(run: Any, tmp_path: Path) -> None:
    shown = told(run, "run", "diffusion", "--machine", "henri", "--nodes", "4,256", *QUICK[:2], "--out", "r")
    rows = shown["steps"]["rows"]
    assert [(row["nodes"], row["comm_threads"]) for row in rows] == [(4, 1), (4, 2), (256, 1), (256, 2)]
    assert shown["verdict"]["text"].startswith("Virtual machine henri, nothing was measured")
    assert {point["status"] for point in shown["points"]} == {"ok"}
    small, large = rows[0], rows[2]
    assert large["step"]["t_comp"] < small["step"]["t_comp"] / 50
    assert small["step"]["t_comm"] > large["step"]["t_comm"]
    _, out, _ = run("show", "r")
    assert "Steps of a simulated cluster" in out
    assert widest(out) <= 80
    assert run("export", "r", "--format", "svg", "-o", "figures")[0] == 0
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == [
        "diffusion-performance.svg",
        "diffusion-sides.svg",
        "diffusion-volumes.svg",
    ]


def test_nodes_without_partitions_are_refused(run: Any) -> None:
    most = max(item.parts for item in partitions.partitions().volumes)
    error = refused(run, "run", "diffusion", "--machine", "henri", "--nodes", str(2 * most))
    assert f"to {most} nodes" in str(error)
