"""What import, fit, evaluate and predict print, compared with kept texts.

Only published machines: their numbers are arithmetic on the thesis' parameters, those of fits are not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from elbowroom import cli
from texts import widest


def printed(capfd: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    found = cli.run(list(words))
    out, err = capfd.readouterr()
    assert found == code, err
    assert widest(out) <= 80
    return "\n".join(line.rstrip() for line in out.splitlines())


@pytest.mark.parametrize(
    "words",
    [
        ("billy", "--cores", "31", "--comp-node", "0", "--comm-node", "0"),
        ("billy", "--cores", "31", "--comp-node", "0", "--comm-node", "0", "--faithful"),
        ("henri", "--comp-node", "1", "--comm-node", "1"),
        ("occigen", "--cores", "7", "--comp-node", "1", "--comm-node", "1", "--json"),
    ],
    ids=" ".join,
)
def test_predictions_of_a_published_machine(
    capfd: pytest.CaptureFixture[str], snapshot: SnapshotAssertion, words: tuple[str, ...]
) -> None:
    assert printed(capfd, "predict", *words) == snapshot


def test_evaluate_prints_a_line_for_each_model_and_the_thesis(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    snapshot: SnapshotAssertion,
    curves_csv: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    cli.run(["import", str(curves_csv("henri", noise=0.01)), "-o", "r"])
    capfd.readouterr()
    assert printed(capfd, "evaluate", "r", "henri") == snapshot


def test_an_import_prints_what_it_read_and_what_it_does_not_know(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    snapshot: SnapshotAssertion,
    curves_csv: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    source = curves_csv("henri", ns=(1, 9, 18), places=[(0, 0)])
    assert printed(capfd, "import", source.name, "-o", "r") == snapshot
