"""`diagnose --from FILE`: the document and text of a profile of another tool."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from elbowroom import cli
from elbowroom.diagnose.account import PARTS

TALP = {
    "dlbVersion": "3.5",
    "popMetrics": {
        "Global": {
            "numMpiRanks": 4, "elapsedTime": 10_000_000_000, "usefulTime": 30_000_000_000,
            "mpiTime": 10_000_000_000, "parallelEfficiency": 0.75, "mpiCommunicationEfficiency": 0.94,
            "mpiLoadBalance": 0.8,
        }
    },
}  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "talp.json"
    path.write_text(json.dumps(TALP))
    return path


def test_the_document_is_that_of_diagnose_with_null_for_what_is_not_in_the_file(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["diagnose", "--from", str(file), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["version"]) == ("elbowroom/diagnosis", 2)
    shares = document["account"]
    assert set(shares) == set(PARTS)
    assert sum(share for share in shares.values() if share is not None) == pytest.approx(1.0)
    assert {part for part, share in shares.items() if share is not None} == {"compute", "not_explained"}
    pop = document["pop"]
    assert (pop["parallel_efficiency"], pop["load_balance"]) == (0.75, 0.8)
    assert (pop["serialisation"], pop["transfer"]) == (None, None)
    assert document["causes"][0]["cause"] == "late-rank"
    assert document["tried"] == []
    assert document["step_s"] == 10.0
    assert document["steps"]["recognised_by"] == "run"


def test_the_folder_has_the_same_document(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "diagnosed"
    assert cli.run(["diagnose", "--from", str(file), "-o", str(folder), "--json"]) == 0
    assert json.loads((folder / "diagnosis.json").read_text()) == json.loads(capsys.readouterr().out)


def test_the_text_names_what_is_not_in_the_file(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["diagnose", "--from", str(file)]) == 0
    text = capsys.readouterr().out
    assert "Not in the file: messages alone" in text
    assert "load balance 0.80" in text


@pytest.mark.parametrize("more", [["--profile", "p"], ["--model", "M.json"], ["--lint"], ["--", "./app"]])
def test_options_that_need_a_program_do_not_go_with_a_file(
    file: Path, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["diagnose", "--from", str(file), *more]) == 2
    assert "runs nothing" in capsys.readouterr().err


def test_a_missing_file_names_the_tools(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["diagnose", "--from", str(tmp_path / "none.mpiP")]) == 2
    assert "mpiP" in capsys.readouterr().err
