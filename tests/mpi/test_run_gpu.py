"""`elbowroom run gpu` and `gpu-overlap` with the real program on the stand-in driver: what was planted is
found, and what cannot be measured is said.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from elbowroom import cli
from elbowroom.launch import native

FOLDER = os.environ.get("ELBOWROOM_GPU_STAND_IN", "")
pytestmark = pytest.mark.skipif(
    not FOLDER
    or not Path(FOLDER, "stand_in", "libcuda.so.1").exists()
    or native.given("gpu-streams") is None,
    reason="gpu-streams and the stand-in driver are not built (./elbowroom test builds them)",
)

SMALL = (
    "gemm=64,64,64", "triad_bytes=96KiB", "copy_size=1MiB", "launches=10", "window=0.002", "sms=4",
    "orders=victim", "paces_mb_s=0", "control=false",
)  # fmt: skip
TWO_POINTS = 0.02

Plant = Callable[..., None]


@pytest.fixture
def plant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plant:
    """Plants settings of the stand-in for the programs that are started next."""

    def write(driver: str = "stand_in", **settings: Any) -> None:
        folder = Path(FOLDER, "stand_in")
        path = tmp_path / "stand-in.json"
        path.write_text(json.dumps({"sms": 16, **settings}))
        monkeypatch.setenv("ELBOW_STAND_IN", str(path))
        monkeypatch.setenv("ELBOWROOM_CUDA", str(Path(FOLDER, driver, "libcuda.so.1")))
        monkeypatch.setenv("ELBOWROOM_NVML", str(folder / "libnvidia-ml.so.1"))
        monkeypatch.setenv("ELBOWROOM_CUDA_LIBRARIES", str(folder))

    return write


@pytest.fixture
def run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    """Runs a plan into `tmp_path/r`, with `settings`; its `show --json`."""

    def go(plan: str, *settings: str, repeat: int = 2, words: tuple[str, ...] = ()) -> dict[str, Any]:
        set_ = [word for setting in settings for word in ("--set", setting)]
        out = ("--out", str(tmp_path / "r")) if "--out" not in words else ()
        code = cli.run(["run", plan, *set_, "--repeat", str(repeat), "--no-report", *out, *words, "--json"])
        printed = capfd.readouterr()
        assert code == 3, printed.err
        result: dict[str, Any] = json.loads(printed.out)
        return result

    return go


def kept(document: dict[str, Any]) -> dict[tuple[str, str], float]:
    """By victim and mover."""
    rows = document["gpu_overlap"]["rows"]
    return {(row["victim"], row["mover"]): row["kept"]["value"] for row in rows}


def test_what_is_planted_is_kept_within_two_points_in_every_case(plant: Plant, run: Any) -> None:
    names = {"gemm": "gemm", "triad": "elbow_triad", "chain": "elbow_small"}
    movers = {"h2d": "h2d", "d2h": "d2h", "d2d": "d2d", "elbow_hold": "sm_idle", "elbow_copy": "sm_host"}
    planted = {
        (victim, mover): round(0.4 + 0.1 * number + 0.03 * at, 2)
        for number, victim in enumerate(names)
        for at, mover in enumerate(movers)
    }
    plant(
        interference=[
            {"victim": names[victim], "mover": mover, "kept": share}
            for (victim, mover), share in planted.items()
        ]
    )
    found = kept(run("gpu-overlap", *SMALL, repeat=1))
    for (victim, mover), share in planted.items():
        assert found[victim, movers[mover]] == pytest.approx(share, abs=TWO_POINTS), (victim, mover)
    assert found["gemm", "sm_target"] == pytest.approx(0.75, abs=TWO_POINTS)


def test_sms_are_held_in_pairs_and_the_product_is_planned_for_the_others(plant: Plant, run: Any) -> None:
    plant(interference=[{"victim": "gemm", "mover": "elbow_hold_pairs", "kept": 0.6}])
    ways = ("holders=single,pairs", "plan_for=all,others")
    rows = run("gpu-overlap", *SMALL, *ways, "victims=gemm", "movers=sm_idle", repeat=1)["gpu_overlap"][
        "rows"
    ]
    found = {(row["holders"], row["plan_for"]): row["kept"]["value"] for row in rows}
    # The stand-in has 16 SMs, of which 4 are held; its plant is for a product that is planned for all.
    shares = {("single", "all"): 1.0, ("pairs", "all"): 0.6}
    shares |= {(holders, "others"): 0.75 for holders in ("single", "pairs")}
    assert found == pytest.approx(shares, abs=TWO_POINTS)


def test_a_run_on_a_stand_in_says_so_and_is_never_trusted(plant: Plant, run: Any, tmp_path: Path) -> None:
    plant()
    document = run("gpu-overlap", *SMALL, "victims=triad", "movers=h2d,sm_idle")
    assert not document["verdict"]["trusted"]
    assert "stand-in" in document["verdict"]["text"]
    assert all("stand_in" in point["flags"] for point in document["points"])
    manifest = json.loads((tmp_path / "r" / "manifest.json").read_text())
    assert manifest["hello"]["gpu"]["stand_in"] is True
    clock = next(stream for stream in document["points"][0]["streams"] if stream["name"] == "sm_clock")
    assert clock["alone"]["median"] == 1700


def test_power_and_the_reasons_of_a_low_clock_are_in_the_results(plant: Plant, run: Any) -> None:
    plant(power_w=650, throttle=4)
    point = run("gpu-overlap", *SMALL, "victims=triad", "movers=sm_idle", repeat=1)["points"][0]
    power = next(stream for stream in point["streams"] if stream["name"] == "power")
    assert power["alone"]["median"] == 650
    assert power["beside"][0]["together"]["median"] == 650
    assert "throttled:power_cap" in point["flags"]


def test_what_is_planted_is_found_after_clocks_and_link_have_risen(plant: Plant, run: Any) -> None:
    plant(rise_s=0.02, interference=[{"victim": "elbow_triad", "mover": "h2d", "kept": 0.5}])
    document = run("gpu-overlap", *SMALL, "victims=triad", "movers=h2d", repeat=1)
    alone = document["points"][0]["comp"]["alone"]["median"]
    assert alone == pytest.approx(96 * 1024 / 100, rel=0.01)  # the triad takes 100 us
    assert kept(document)["triad", "h2d"] == pytest.approx(0.5, abs=TWO_POINTS)


def test_a_kernel_that_does_not_end_leaves_a_run_with_the_reason(plant: Plant, run: Any) -> None:
    plant(stop_ignored=True)
    document = run("gpu-overlap", *SMALL, "victims=triad", "movers=sm_idle,h2d", repeat=1)
    reasons = [point["reason"] for point in document["points"]]
    assert all("still holds 4 SMs" in reason for reason in reasons), reasons


def test_a_recorded_run_is_answered_again_without_a_driver(
    plant: Plant, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(interference=[{"victim": "elbow_triad", "mover": "h2d", "kept": 0.5}])
    settings = (*SMALL, "victims=triad", "movers=h2d")
    first = run("gpu-overlap", *settings)
    monkeypatch.setenv("ELBOWROOM_CUDA", "/nowhere/libcuda.so.1")
    again = run(
        "gpu-overlap",
        *settings,
        words=("--launcher", f"replay:{tmp_path / 'r'}", "--out", str(tmp_path / "s")),
    )
    assert kept(again) == kept(first)
    assert "stand-in" in again["verdict"]["text"]


def test_traps_are_caught_in_a_run(plant: Plant, run: Any) -> None:
    plant(batch_on_sms=True, holders_share=True)
    document = run("gpu-overlap", *SMALL, "victims=triad", "movers=d2d,sm_idle,h2d")
    points = {(point["gpu"]["mover"], point["gpu"]["direction"]): point for point in document["points"]}
    assert points["copy", "d2d"]["status"] == "failed"
    assert "meant for a copy engine" in points["copy", "d2d"]["reason"]
    assert "shared_sms" in points["sm_idle", ""]["flags"]
    assert points["copy", "h2d"]["status"] == "ok"


def test_what_a_device_cannot_answer_is_not_applicable_and_the_rest_is_measured(
    plant: Plant, run: Any
) -> None:
    plant(no_compiler=True)
    document = run("gpu-overlap", *SMALL, "sms=4,16", "victims=gemm,triad", "movers=h2d,sm_target")
    reasons = " ".join(note["reason"] for note in document["notes"])
    assert "kernels cannot be compiled" in reasons
    assert "k = 16: the device has 16 SMs" in reasons
    assert {point["gpu"]["victim"] for point in document["points"]} == {"gemm"}
    assert {point["status"] for point in document["points"]} == {"ok"}
    assert any("engine_unknown" in point["flags"] for point in document["points"])


def test_a_driver_before_batch_copies_has_none_inside_the_device(plant: Plant, run: Any) -> None:
    plant("stand_in_old")
    document = run("gpu-overlap", *SMALL, "victims=triad", "movers=h2d,d2d")
    assert "update NVIDIA's driver to CUDA 12.8" in document["notes"][0]["reason"]
    assert [point["gpu"]["direction"] for point in document["points"]] == ["h2d"]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"lost_after": 60}, "the device was lost"),
        ({"busy": True}, "CUDA_ERROR_DEVICE_UNAVAILABLE"),
        ({"pinned_refused": True}, "raise the limit of locked memory"),
        ({"memory": 2_195_460}, "take smaller buffers"),
    ],
)
def test_a_device_that_fails_in_mid_run_leaves_a_run_with_reasons(
    plant: Plant, run: Any, settings: dict[str, Any], reason: str
) -> None:
    plant(**settings)
    document = run("gpu-overlap", *SMALL, "victims=triad", "movers=h2d,sm_hbm", repeat=1)
    failed = [point for point in document["points"] if point["status"] == "failed"]
    assert failed
    assert any(reason in point["reason"] for point in failed)
    assert "Nothing was measured" in document["verdict"]["text"] or len(failed) < len(document["points"])


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"driver_version": 10020}, "the driver supports CUDA 10.2"),
        ({"devices": 0}, "the driver finds no device"),
    ],
)
def test_a_driver_that_cannot_be_used_is_one_sentence_with_exit_code_2(
    plant: Plant, capfd: pytest.CaptureFixture[str], settings: dict[str, Any], reason: str
) -> None:
    plant(**settings)
    assert cli.run(["run", "gpu", "--dry-run"]) == 2
    printed = capfd.readouterr()
    assert reason in printed.err
    assert "this machine cannot measure any point of the plan" in printed.err


def test_without_a_driver_a_plan_is_refused_with_a_hint(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELBOWROOM_CUDA", "/nowhere/libcuda.so.1")
    assert cli.run(["run", "gpu-overlap"]) == 2
    assert "no CUDA driver: /nowhere" in capfd.readouterr().err


def test_copies_cores_and_messages_run_alone_in_pairs_and_at_once(plant: Plant, run: Any) -> None:
    plant(virtual_clock=False, rates={"h2d": 2e9})
    document = run(
        "gpu", "scheduling=true", "copy_sizes=1MiB", "directions=h2d", "kernels=triad", "sizes=64KiB", "n=1",
        "working_set=3MiB", "window=0.02", "control=false", repeat=1,
    )  # fmt: skip
    three = next(point for point in document["points"] if point["gpu"]["messages"])
    streams = {stream["name"]: stream for stream in three["streams"]}
    for name, phases in {"cores": "AB AC ABC", "copies": "AB BC ABC", "messages": "AC BC ABC"}.items():
        assert streams[name]["alone"]["median"] > 0
        assert [beside["phase"] for beside in streams[name]["beside"]] == phases.split()
        assert all(beside["kept"]["value"] > 0 for beside in streams[name]["beside"])
    assert streams["messages"]["alone"]["unit"] == "MB/s"
    pair = next(point for point in document["points"] if point["gpu"]["mover"] == "messages")
    assert pair["comp"]["kept"]["value"] > 0
    assert pair["comm"]["kept"]["value"] > 0
    assert "shared_comm_core" in pair["flags"]


def test_a_stopped_run_goes_on_where_it_was(plant: Plant, run: Any, tmp_path: Path, capfd: Any) -> None:
    plant()
    run("gpu-overlap", *SMALL, "victims=triad", "movers=h2d,d2h")
    journal = tmp_path / "r" / "samples.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:-2]))
    (tmp_path / "r" / "samples.parquet").unlink()
    assert cli.run(["run", "--resume", str(tmp_path / "r"), "--no-report"]) == 3
    capfd.readouterr()
    assert len(journal.read_text().splitlines()) == len(lines)


def test_each_start_of_the_program_measures_its_share_of_the_repetitions(
    plant: Plant, run: Any, tmp_path: Path
) -> None:
    plant()
    run("gpu-overlap", *SMALL, "victims=triad", "movers=h2d", repeat=4, words=("--starts", "2"))
    lines = [json.loads(line) for line in (tmp_path / "r" / "samples.jsonl").read_text().splitlines()[1:]]
    assert {line["record"]["start"] for line in lines} == {0, 1}
    assert {line["repetition"] for line in lines} == {0, 1, 2, 3}


def test_a_budget_measures_what_there_is_time_for_and_names_the_rest(
    plant: Plant, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    plant()
    words = [word for setting in (*SMALL, "window=0.05", "victims=triad") for word in ("--set", setting)]
    out = tmp_path / "r"
    code = cli.run(
        ["run", "gpu-overlap", *words, "--budget", "20s", "--out", str(out), "--no-report", "--json"]
    )
    printed = capfd.readouterr()
    assert code == 3, printed.err
    document = json.loads(printed.out)
    assert document["points"]
    assert all(point["status"] != "failed" for point in document["points"])
