"""M.json: written and read back, older and newer ones, damage named by line or field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from elbowroom.errors import UsageError
from elbowroom.models.base import Provenance
from elbowroom.models.document import Document
from elbowroom.models.fit import fit
from elbowroom.models.published import of_published
from elbowroom.store.models import read_model, write_model


@pytest.fixture(scope="module")
def document(thesis_curves: Any) -> Document:
    curves = thesis_curves("henri", ns=(1, 2, 9, 18), places=[(0, 0), (1, 1)])
    return fit(curves, Provenance(run="runs/henri", plan="model"), created="2026-01-01T00:00:00+00:00")


def changed(path: Path, change: Any) -> Path:
    raw = json.loads(path.read_text())
    change(raw)
    path.write_text(json.dumps(raw, indent=1))
    return path


def test_a_model_is_read_as_it_was_written(document: Document, tmp_path: Path) -> None:
    write_model(tmp_path / "M.json", document)
    assert read_model(tmp_path / "M.json") == document


def test_a_published_machine_is_written_like_any_other(tmp_path: Path) -> None:
    billy = of_published("billy")
    write_model(tmp_path / "M.json", billy)
    assert read_model(tmp_path / "M.json") == billy


def test_fields_that_this_release_does_not_know_are_passed_over(document: Document, tmp_path: Path) -> None:
    write_model(tmp_path / "M.json", document)

    def later(raw: Any) -> None:
        raw["colour"] = "green"
        raw["machine"]["altitude"] = 35
        raw["models"]["threshold"]["local"]["gamma"] = 1.0

    assert read_model(changed(tmp_path / "M.json", later)) == document


def test_a_newer_version_is_refused_with_the_release_that_reads_it(
    document: Document, tmp_path: Path
) -> None:
    write_model(tmp_path / "M.json", document)
    newer = changed(tmp_path / "M.json", lambda raw: raw.update(version=2, elbowroom="7.1.0"))
    with pytest.raises(UsageError) as caught:
        read_model(newer)
    assert "written by a newer release" in caught.value.sentence()
    assert "elbowroom 7.1.0" in caught.value.hint


@pytest.mark.parametrize("version", [None, "1", 0, True, -3])
def test_a_version_that_is_none_is_refused(document: Document, tmp_path: Path, version: object) -> None:
    write_model(tmp_path / "M.json", document)
    with pytest.raises(UsageError, match="has no version"):
        read_model(changed(tmp_path / "M.json", lambda raw: raw.update(version=version)))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda raw: raw["machine"].update(cores_first_socket="many"), "machine.cores_first_socket"),
        (lambda raw: raw["machine"].update(cores_first_socket=0), "machine.cores_first_socket"),
        (lambda raw: raw["machine"].update(numa_per_socket=-1), "machine.numa_per_socket"),
        (lambda raw: raw["models"]["threshold"]["local"].update(alpha=None), "models.threshold.local.alpha"),
        (lambda raw: raw["models"]["threshold"]["local"].pop("alpha"), "models.threshold.local.alpha"),
        (
            lambda raw: raw["models"]["threshold"]["local"].update(t_seq_max=0.0),
            "models.threshold.local.t_seq_max",
        ),
        (lambda raw: raw["models"]["robust"]["remote"].update(n_par_max=0), "models.robust.remote.n_par_max"),
        (lambda raw: raw["models"]["robust"]["remote"].update(alpha=-0.1), "models.robust.remote.alpha"),
        (lambda raw: raw["models"]["flow"]["values"].pop(), "models.flow.values"),
        (lambda raw: raw["models"]["flow"]["draws"][3].append(1.0), "models.flow.draws[3]"),
        (lambda raw: raw.pop("calibration"), "calibration"),
        (lambda raw: raw["calibration"].update(origin="guessed"), "calibration.origin"),
    ],
)
def test_a_wrong_field_is_named(document: Document, tmp_path: Path, change: Any, field: str) -> None:
    write_model(tmp_path / "M.json", document)
    with pytest.raises(UsageError) as caught:
        read_model(changed(tmp_path / "M.json", change))
    assert caught.value.field == field
    assert str(tmp_path / "M.json") in caught.value.sentence()
    assert caught.value.hint


def test_a_torn_file_is_refused_with_its_line(document: Document, tmp_path: Path) -> None:
    write_model(tmp_path / "M.json", document)
    lines = (tmp_path / "M.json").read_text().splitlines()
    (tmp_path / "M.json").write_text("\n".join([*lines[:6], "  oops"]))
    with pytest.raises(UsageError, match="line 7 is not JSON"):
        read_model(tmp_path / "M.json")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is not JSON"),
        (b"\x00\xff", "is not JSON"),
        (b"[]", "does not have the schema 'elbowroom/model'"),
        (b'{"schema": "elbowroom/manifest", "version": 1}', "does not have the schema 'elbowroom/model'"),
    ],
)
def test_what_is_no_model_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "M.json").write_bytes(data)
    with pytest.raises(UsageError, match=message):
        read_model(tmp_path / "M.json")


def test_a_folder_and_a_missing_file_are_refused(document: Document, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder"):
        read_model(tmp_path)
    with pytest.raises(UsageError, match="cannot be read"):
        read_model(tmp_path / "nothing.json")
    with pytest.raises(UsageError, match="is a folder"):
        write_model(tmp_path, document)
    with pytest.raises(UsageError, match="cannot be written"):
        write_model(tmp_path / "nowhere" / "M.json", document)
