"""What would change for a profiled program: numbers that follow from the profile and the model by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from elbowroom import api, cli
from elbowroom.advise.what_if import ChangeEffect, WhatIf
from elbowroom.errors import UsageError
from elbowroom.profile import rank_file as f
from made_profiles import MS, Row, write_profile

STEPS = 20


def profile_of(folder: Path, *, overlapping: bool = False, host: bytes = b"henri") -> Path:
    """Two nodes of a rank each; a step computes 8 ms and sends 20 MB, in the 2 ms after it or meanwhile."""
    rows: list[list[Row]] = [[], []]
    for step in range(STEPS):
        for rank in (0, 1):
            begin = 10 * step * MS
            if overlapping:
                both = (begin, begin + 2 * MS, 20_000_000, 1 - rank)
                rows[rank] += [
                    (*both, "MPI_Isend", f.POSTED_SEND, f.SPAN | f.BETWEEN),
                    (*both, "MPI_Irecv", f.POSTED_RECEIVE, f.SPAN | f.BETWEEN),
                    (begin + 8 * MS, begin + 10 * MS, 0, -1, "MPI_Waitall", f.COMPLETION, f.CALL),
                ]
            else:
                sent = (begin + 8 * MS, begin + 10 * MS, 20_000_000, 1 - rank, "MPI_Sendrecv")
                rows[rank] += [(*sent, f.SENDRECV, f.CALL | f.BETWEEN), (*sent, f.RECEIVE, f.BETWEEN)]
    return write_profile(folder, rows, (0, 1), end=200 * MS, host=host)


def change(found: WhatIf, name: str) -> ChangeEffect:
    return next(one for one in found.changes if name in one.name)


def test_fewer_cores_take_longer_by_the_models_bandwidth(tmp_path: Path) -> None:
    found = api.predict_changes(profile_of(tmp_path), "henri", cores=4, fewer_cores=2)
    four, two = (api.predict("henri", n, 0, 0).comp_alone.value for n in (4, 2))
    longer = found.computation_s * (four / two - 1) / found.now_s
    assert change(found, "bound by memory").change is not None
    assert change(found, "bound by memory").change.value == pytest.approx(longer, rel=1e-6)
    assert change(found, "bound by the cores").change.value == pytest.approx(
        found.computation_s / found.now_s
    )


def test_data_near_the_nic_take_less_by_the_models_bandwidth(tmp_path: Path) -> None:
    found = api.predict_changes(profile_of(tmp_path), "henri", cores=4, comm_node=1)
    far, near = (api.predict("henri", 4, 0, node).comm_alone.value for node in (1, 0))
    saved = found.network_s * (1 - far / near) / found.now_s
    assert change(found, "near the NIC").change.value == pytest.approx(-saved, abs=1e-9)


def test_data_that_are_near_the_nic_have_nothing_to_change(tmp_path: Path) -> None:
    found = api.predict_changes(profile_of(tmp_path), "henri", cores=4)
    assert change(found, "near the NIC").change is None
    assert change(found, "near the NIC").reason == "it is: node 0"


def test_without_overlap_what_overlapped_comes_after(tmp_path: Path) -> None:
    found = api.predict_changes(profile_of(tmp_path, overlapping=True), "henri", cores=4)
    now = api.predict("henri", 4, 0, 0)
    lost = found.both_s * (
        now.comp_together.value / now.comp_alone.value + now.comm_together.value / now.comm_alone.value - 1
    )
    assert found.both_s == pytest.approx(2e-3 * found.steps, rel=0.01)
    assert change(found, "without overlap").change.value == pytest.approx(lost / found.now_s, rel=1e-6)


def test_one_computing_core_has_none_to_give(tmp_path: Path) -> None:
    found = api.predict_changes(profile_of(tmp_path), "henri")
    assert change(found, "fewer").reason == "1 core computes now (--cores N says how many)"
    with pytest.raises(UsageError, match="is too many: 1 core computes now"):
        api.predict_changes(profile_of(tmp_path / "p"), "henri", fewer_cores=1)


def test_the_command_prints_each_change_with_its_interval(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["profile", "what-if", str(profile_of(tmp_path)), "--model", "henri", "--cores", "8"]
    assert cli.run(words) == 0
    text = capsys.readouterr().out
    assert "n/a, messages' data near the NIC: it is: node 0" in " ".join(text.split())
    assert cli.run([*words, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["changes"]
    assert len(rows) == 4
    known = [row["change"] for row in rows if row["change"]]
    assert all(one["low"] <= one["value"] <= one["high"] for one in known)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"model": "dahu"}, "another machine than the profile's"),
        ({"model": "henri", "cores": 40}, "henri has 18 cores on its second socket"),
        ({"model": "henri", "comm_node": 2}, "henri has 2 NUMA nodes"),
        ({"model": None}, "no model of the profile's machine is in runs/"),
    ],
)
def test_what_does_not_fit_the_machine_is_refused(
    tmp_path: Path, options: dict[str, Any], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=sentence):
        api.predict_changes(profile_of(tmp_path / "p"), **options)


def test_a_profile_without_messages_is_refused(tmp_path: Path) -> None:
    rows: list[Row] = [(MS, 2 * MS, 0, -3, "MPI_Barrier", f.BARRIER, f.CALL)]
    write_profile(tmp_path / "p", [rows, rows], (0, 1), host=b"henri")
    with pytest.raises(UsageError, match="has no communication"):
        api.predict_changes(tmp_path / "p", "henri")
