"""What the command line prints, compared with kept texts."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from elbowroom import cli
from elbowroom.machine.doctor import DoctorLine

COMMANDS = (
    "doctor", "run", "show", "compare", "report", "export", "plans",
    "import", "fit", "evaluate", "predict",
)  # fmt: skip


@pytest.fixture
def here(tmp_path: Path, recorded: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the recorded run in it, as `recorded`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    return tmp_path


def printed(capfd: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    found = cli.run(list(words))
    out, err = capfd.readouterr()
    assert found == code, err
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out)
    assert (
        max(
            len(line) for line in plain.splitlines() if "mpirun" not in line and not line.startswith("next: ")
        )
        <= 80
    )
    # Rich pads cells with blanks to the right edge; editors strip them from kept texts.
    return "\n".join(line.rstrip() for line in out.splitlines())


def test_show_prints_the_verdict_and_a_line_for_each_side(
    here: Path, capfd: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    assert printed(capfd, "show", "recorded") == snapshot


def test_show_without_colour_has_no_escape_sequences(
    here: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[3" not in printed(capfd, "show", "recorded")


def test_compare_says_which_run_is_better(
    here: Path, capfd: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    shutil.copytree(here / "recorded", here / "other")
    journal = here / "other" / "samples.jsonl"
    # The other run is the same with all computing rates halved.
    text = re.sub(r'"rate":([0-9.]+)', lambda found: f'"rate":{float(found[1]) / 2}', journal.read_text())
    journal.write_text(text)
    assert printed(capfd, "compare", "recorded", "other") == snapshot


def test_a_dry_run_prints_points_time_command_and_notes(
    here: Path,
    site: Path,
    capfd: pytest.CaptureFixture[str],
    snapshot: SnapshotAssertion,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setenv("TMPDIR", "/tmp")
    for variable in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        monkeypatch.delenv(variable, raising=False)
    text = printed(capfd, "run", "placement", "--dry-run", "--mpi", str(site))
    assert text.replace(str(site), "/site") == snapshot


def test_the_doctor_prints_a_line_and_a_mend_for_each_thing(
    capfd: pytest.CaptureFixture[str], snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = [
        DoctorLine(name="load", status="ok", text="0.02 runnable tasks in the last minute"),
        DoctorLine(
            name="memory",
            status="warn",
            text="hwloc reports 10.2 GB, the kernel 25.3 GB, and this sentence is long enough to be broken",
            hint="trust the kernel's figure: memory plugged in after start-up is missing from hwloc's",
        ),
        DoctorLine(name="governor", status="n/a", text="no cpufreq"),
    ]
    monkeypatch.setattr("elbowroom.verbs.doctor.Doctor.do", lambda self: checks)
    assert printed(capfd, "doctor") == snapshot


def test_plans_lists_each_with_its_question(
    capfd: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    assert printed(capfd, "plans") == snapshot


@pytest.mark.parametrize("command", COMMANDS)
def test_help_names_every_option(
    capfd: pytest.CaptureFixture[str],
    snapshot: SnapshotAssertion,
    command: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert printed(capfd, command, "--help") == snapshot
