"""benchmarks/device.py on the driver's stand-in, with nothing but the standard library and what it carries:
what was planted is recovered, and what was measured before a fault is there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "device.py"
FOLDER = os.environ.get("ELBOWROOM_GPU_STAND_IN", "")
PATIENCE = 300  # s
TOLERANCE = 0.02
PLANTED = {"h2d": 25000.0, "d2h": 27000.0, "d2d": 80000.0, "both": 52000.0}
"""MB/s (lib/gpu/stand_in/settings.hpp)."""
SLOW = {"h2d": 200.0, "d2h": 240.0}
"""MB/s beside computing cores and messages (benchmarks/device_plans.py)."""

pytestmark = [
    pytest.mark.real,
    pytest.mark.xdist_group("device"),
    pytest.mark.skipif(
        not Path(FOLDER, "stand_in", "libcuda.so.1").exists() or not FOLDER,
        reason="the stand-in driver is not built (./elbowroom test builds it)",
    ),
]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What would be taken to a machine with a GPU."""
    path = tmp_path_factory.mktemp("device") / "bundle"
    subprocess.run([sys.executable, str(SCRIPT), "--prepare", str(path)], check=True, timeout=PATIENCE)
    return path


def measure(bundle: Path, out: Path, *words: str, code: int = 0, **variables: str) -> dict[str, Any]:
    """The summary of a rehearsal without packages, tools and variables of this machine."""
    command = [sys.executable, "-I", "-S", str(SCRIPT), "--stand-in", "--bundle", str(bundle), "-o", str(out)]
    done = subprocess.run(
        [*command, "--minutes", "4", *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=out.parent,
        env={"PATH": "/nowhere", **variables},
    )
    assert done.returncode == code, done.stderr
    summary: dict[str, Any] = json.loads((out / "summary.json").read_text())
    return summary


def planted(folder: Path, **settings: Any) -> str:
    """A file with settings of the stand-in."""
    path = folder / "planted.json"
    path.write_text(json.dumps({"sms": 16, **settings}))
    return str(path)


def records(out: Path, part: str) -> Iterator[tuple[dict[str, Any], dict[str, list[Any]]]]:
    """The cases of a part that were measured, with the phases of each kind."""
    plan = json.loads((out / "raw" / "plan.json").read_text())
    runs = next(one for one in plan["parts"] if one["name"] == part)["runs"]
    for line in map(json.loads, (out / "raw" / f"{part}.jsonl").read_text().splitlines()):
        if line.get("run") and line["record"]["status"] != "failed":
            phases: dict[str, list[Any]] = {}
            for phase in line["record"]["phases"]:
                phases.setdefault(phase["phase"], []).append(phase)
            yield runs[line["run"]]["points"][line["point"]]["gpu"], phases


def rates_of_copies(out: Path, part: str, phases: tuple[str, ...]) -> dict[str, list[float]]:
    """Rates of copies by direction, in these phases."""
    rates: dict[str, list[float]] = defaultdict(list)
    for case, measured in records(out, part):
        side, name = ("comp", "rate") if case["victim"] == "copy" else ("comm", "value")
        if "copy" in (case["victim"], case["mover"]):
            found = [one[side][name] for phase in phases for one in measured.get(phase, ()) if side in one]
            rates[case["direction"]] += found
    return rates


def test_a_rehearsal_needs_nothing_that_is_not_carried_and_recovers_what_is_planted(
    bundle: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    summary = measure(bundle, out)
    assert summary["device"] == "stand-in"
    assert summary["stand_in"] is True
    parts = {part["name"]: part for part in summary["parts"]}
    names = ["facts", "controls", "published", "host", "copies", "copies-messages", "products"]
    assert list(parts) == names
    assert all(part["status"] in ("ok", "partial") for part in parts.values()), parts
    assert (out / "device.tar.gz").stat().st_size <= 16 << 20
    for part in ("controls", "published", "products"):
        for direction, rates in rates_of_copies(out, part, ("B",)).items():
            assert rates == [pytest.approx(PLANTED[direction], rel=TOLERANCE)] * len(rates), (part, direction)
    for part in ("copies", "copies-messages"):
        rates_of = rates_of_copies(out, part, ("A", "B", "AB"))
        # By the host's clock, copies wait where a busy host does not submit the next ones in time.
        best = {direction: max(rates) for direction, rates in rates_of.items()}
        assert best == pytest.approx(SLOW, rel=TOLERANCE), part
    for case, phases in records(out, "products"):
        if case["mover"] == "sm_target":
            kept = phases["AB"][0]["comp"]["rate"] / phases["A"][0]["comp"]["rate"]
            assert kept == pytest.approx(1 - case["sms"] / 16, rel=TOLERANCE)
    check_report(out)


def check_report(out: Path) -> None:
    """The run folders are read by the project, and the page says that it is a rehearsal."""
    command = [sys.executable, str(SCRIPT), "--report", "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    page = (out / "device-stand-in.md").read_text()
    assert "A rehearsal" in page
    assert "| repeat-2 | 12 | 0.00 |" in page
    assert "| triad | copy engine h2d | 70.0 |" in page
    shown = json.loads((out / "runs" / "published" / "manifest.json").read_text())
    assert shown["hello"]["gpu"]["stand_in"] is True


def test_what_was_measured_before_the_device_was_lost_is_there_and_the_rest_follows(
    bundle: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    lost = planted(tmp_path, lost_after=2000)
    [_, part] = measure(bundle, out, "--parts", "published", ELBOW_STAND_IN=lost)["parts"]
    assert part["status"] == "partial"
    assert "the device was lost" in part["reason"]
    assert 0 < part["units"]["measured"] < part["units"]["asked"]
    assert len(list(records(out, "published"))) == part["units"]["measured"]
    [_, part] = measure(bundle, out, "--parts", "published")["parts"]
    assert part["status"] == "ok"


def test_without_a_compiler_products_are_measured_and_without_cublaslt_the_rest(
    bundle: Path, tmp_path: Path
) -> None:
    out = tmp_path / "compiler"
    summary = measure(bundle, out, "--parts", "published", ELBOW_STAND_IN=planted(tmp_path, no_compiler=True))
    assert summary["parts"][1]["status"] == "partial"
    assert {case["victim"] for case, _ in records(out, "published")} == {"gemm"}
    folder = tmp_path / "libraries"
    folder.mkdir()
    (folder / "libnvrtc.so.12").symlink_to(Path(FOLDER, "stand_in", "libnvrtc.so.12"))
    out = tmp_path / "cublaslt"
    [_, part] = measure(bundle, out, "--parts", "published", ELBOWROOM_CUDA_LIBRARIES=str(folder))["parts"]
    assert part["status"] == "partial"
    assert "libcublasLt" in part["reason"]
    assert {case["victim"] for case, _ in records(out, "published")} == {"triad", "chain"}


def test_with_too_little_time_every_part_ends_and_what_was_measured_is_kept(
    bundle: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = ("--minutes", "0.25", "--parts", "published,products")
    slow = planted(tmp_path, query_s=1e-8)
    [_, published, products] = measure(bundle, out, *words, ELBOW_STAND_IN=slow)["parts"]
    assert published["status"] == "partial"
    assert published["reason"] == "the time was over"
    assert products["name"] == "products"
    assert len(list(records(out, "published"))) == published["units"]["measured"] > 0


def test_without_a_driver_the_parts_of_a_gpu_are_not_applicable(bundle: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    for entry in bundle.iterdir():
        if entry.name != "stand-in":
            (bare / entry.name).symlink_to(entry)
    summary = measure(bare, tmp_path / "out", "--parts", "published", code=1)
    assert summary["parts"][1]["status"] == "n/a"
    assert "driver" in summary["parts"][1]["reason"]
