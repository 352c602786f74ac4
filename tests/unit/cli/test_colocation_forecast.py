"""`elbowroom colocate predict`: what scripts rely on, and profiles that it cannot use, or only in part."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from elbowroom import cli
from elbowroom.profile.summary import MANIFEST, MANIFEST_FILE, EmulatedNic, ProfileManifest
from elbowroom.schedule.matrix import parse_matrix
from made_profiles import MS, MadeJob

VERSION_AT = 8
"""Bytes before the version in a rank's file (profile-files.md)."""


def profiled(folder: Path, size: int = 2_000_000, *, ranks: int = 4, machine: str = "") -> Path:
    """A job of two nodes that exchanges `size` bytes 20 times (0: it only computes), with a manifest."""
    job = MadeJob(ranks, nodes=2)
    for _ in range(20):
        job.compute(2 * MS)
        if size:
            job.exchange(size)
    if not size:
        job.mark()
    job.write(folder)
    manifest = ProfileManifest(
        nic=EmulatedNic(name="x", bandwidth=1e9, ranks_per_node=ranks // 2),
        machine={"name": machine} if machine else {},
    )
    MANIFEST.write(folder / MANIFEST_FILE, manifest)
    return folder


def predicted(capfd: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = cli.run(["colocate", "predict", *map(str, words)])
    out, err = capfd.readouterr()
    return code, out, err


def test_all_pairs_are_printed_as_the_contract_says(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    a, b = profiled(tmp_path / "a.prof"), profiled(tmp_path / "b.prof", size=500_000)
    matrix = tmp_path / "m.csv"
    code, out, err = predicted(capfd, a, b, "--json", "-o", matrix)
    assert code == 0, err
    found = json.loads(out)
    assert [(pair["a"], pair["b"]) for pair in found["pairs"]] == [("a", "a"), ("a", "b"), ("b", "b")]
    for pair in found["pairs"]:
        for key in ("slowdown_a", "slowdown_b"):
            assert set(pair[key]) == {"value", "low", "high"}
            assert pair[key]["low"] <= pair[key]["value"] <= pair[key]["high"]
    read = parse_matrix(matrix.read_text(), "m.csv")
    assert read.slowdown("a", companion="b") == pytest.approx(
        found["pairs"][1]["slowdown_a"]["value"], abs=1e-3
    )
    assert read.slowdown("b", companion="a") == pytest.approx(
        found["pairs"][1]["slowdown_b"]["value"], abs=1e-3
    )


def test_profiles_of_different_machines_are_labelled(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    a, b = profiled(tmp_path / "a", machine="henri"), profiled(tmp_path / "b", machine="bora")
    code, out, _ = predicted(capfd, a, b)
    assert code == 0
    assert "the profiles are of different machines" in " ".join(out.split())


def test_a_profile_without_communication_is_labelled_and_disturbs_nobody(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    a, b = profiled(tmp_path / "a"), profiled(tmp_path / "b", size=0)
    code, out, _ = predicted(capfd, a, b, "--json")
    assert code == 0
    found = json.loads(out)
    assert any("b: the program sent no data by MPI" in note for note in found["notes"])
    pair = next(one for one in found["pairs"] if (one["a"], one["b"]) == ("a", "b"))
    assert pair["slowdown_a"]["value"] == pytest.approx(1, abs=1e-6)
    assert pair["slowdown_b"]["value"] == pytest.approx(1, abs=1e-6)


def test_a_profile_that_lacks_ranks_is_labelled(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    a = profiled(tmp_path / "a")
    (a / "rank-000003.profile").unlink()
    code, out, _ = predicted(capfd, a)
    assert code == 0
    assert "partial: rank 3 of 4 ranks left no file" in " ".join(out.split())


def test_jobs_of_different_width_are_labelled(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    job = MadeJob(4, nodes=4)
    job.compute(10 * MS)
    job.exchange(1000)
    code, out, _ = predicted(capfd, profiled(tmp_path / "a"), job.write(tmp_path / "b"), "--json")
    assert code == 0
    assert any("they share the first 2" in note for note in json.loads(out)["notes"])


def test_a_profile_of_a_newer_release_is_refused(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    a, b = profiled(tmp_path / "a"), profiled(tmp_path / "b")
    file = b / "rank-000001.profile"
    data = bytearray(file.read_bytes())
    data[VERSION_AT : VERSION_AT + 4] = struct.pack("<I", 99)
    file.write_bytes(data)
    code, out, err = predicted(capfd, a, b)
    assert (code, out) == (2, "")
    assert "newer" in err or "version" in err
    assert err.count("\n") == 1


def test_two_profiles_of_one_name_are_refused(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    a, b = profiled(tmp_path / "x" / "a"), profiled(tmp_path / "y" / "a")
    code, _, err = predicted(capfd, a, b)
    assert code == 2
    assert "names two profiles" in err
