"""What `machine` prints, kept."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from elbowroom import cli


@pytest.mark.parametrize(
    "words",
    [
        ["machine", "--help"],
        ["machine", "from-run", "--help"],
        ["machine", "list"],
        ["machine", "show", "henrisubnuma"],
        ["machine", "show", "h200-nvl"],
        ["machine", "show", "henri:credits", "--toml"],
    ],
    ids=" ".join,
)
def test_machines_are_printed_as_before(
    words: list[str],
    capfd: pytest.CaptureFixture[str],
    snapshot: SnapshotAssertion,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.run(words) == 0
    assert capfd.readouterr().out == snapshot
