"""What advise prints, compared with kept texts.

Only a published machine: its numbers are arithmetic on the thesis' parameters, those of fits are not.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from elbowroom import cli
from texts import widest

JOB = """
[step]
comp_bytes = "3GB"
comm_bytes = "1GB"

[now]
cores = 18
comp_node = 0
comm_node = 0
overlap = true

[may]
cores = "every"
comp_node = "every"
comm_node = "every"
overlap = [true, false]
"""


@pytest.mark.parametrize("comm_bytes", ["1GB", "1MB"])
def test_an_advice_is_printed_with_its_reasons(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], snapshot: SnapshotAssertion, comm_bytes: str
) -> None:
    job = tmp_path / "job.toml"
    job.write_text(JOB.replace("1GB", comm_bytes))
    code = cli.run(["advise", "henri", "--job", str(job)])
    out, err = capfd.readouterr()
    assert code == 0, err
    assert widest(out) <= 80
    assert out.replace(str(tmp_path), "FOLDER") == snapshot


def test_help_names_every_option(capfd: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    assert cli.run(["advise", "--help"]) == 0
    assert capfd.readouterr().out == snapshot
