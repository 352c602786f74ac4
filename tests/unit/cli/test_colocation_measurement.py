"""`elbowroom colocate measure`, over applications that are short shell scripts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from elbowroom import cli
from elbowroom.measure import colocation
from elbowroom.schedule import measured
from elbowroom.schedule.matrix import parse_half, parse_matrix
from elbowroom.schedule.measured import MeasuredMatrix
from made_profiles import MS, MadeJob
from texts import widest


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of a moment, which a busy machine does not start at the same time."""
    monkeypatch.setattr(colocation, "LONGEST_OFFSET", 0.0)
    monkeypatch.setattr(measured, "LEAST_BESIDE", 0.0)


def applications(folder: Path, lines: str = "", **commands: str) -> str:
    """A file of applications; the time of each is what its command prints behind `seconds`."""
    folder.mkdir(exist_ok=True)
    text = f"cores = 2\nnumber = 'seconds (\\S+)'\n{lines}\n"
    for name, command in commands.items():
        text += f"[apps.{name}]\ncommand = '''sh -c \"{command}\"'''\n"
    path = folder / "apps.toml"
    path.write_text(text)
    return str(path)


def measure(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = cli.run(["colocate", "measure", *words])
    out, err = capfd.readouterr()
    return code, out, err


def test_the_matrix_is_printed_and_written_for_the_schedule(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    apps = applications(tmp_path, a="sleep 0.2; echo seconds {nodes}", b="sleep 0.2; echo seconds 4")
    code, out, err = measure(capfd, apps, "-o", str(tmp_path / "m"), "--repeat", "1", "--json")
    assert code == 0, err
    found = msgspec.json.decode(out, type=MeasuredMatrix, strict=False)
    # `a` takes 1 s alone on one node, and 2 s on two.
    assert found.percent("a", "b") == pytest.approx(200)
    assert found.percent("b", "a") == pytest.approx(100)
    folder = tmp_path / "m"
    assert parse_matrix((folder / "matrix.csv").read_text(), "").slowdown("a", "b") == pytest.approx(2)
    assert parse_half((folder / "half.csv").read_text(), "") == {"a": 200.0, "b": 100.0}
    assert json.loads((folder / "matrix.json").read_text())["schema"] == "elbowroom/colocation"
    assert cli.run(["colocate", "schedule", "--matrix", str(folder / "matrix.csv")]) == 0


def test_the_table_fits_a_terminal_and_progress_goes_to_stderr(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    command = "sleep 0.1; echo seconds 2"
    apps = applications(tmp_path, **{f"application-{number}": command for number in range(3)})
    code, out, err = measure(capfd, apps, "-o", str(tmp_path / "m"), "--repeat", "1")
    assert code == 0
    assert widest(out) <= 80
    assert "half, alone" in out
    assert "one repetition" in out
    assert "12 of 12 runs" in err


def test_runs_that_differ_are_too_noisy_to_trust(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    count = tmp_path / "count"
    apps = applications(tmp_path, a=f"echo x >> {count}; echo seconds $(wc -l < {count})")
    code, out, _ = measure(capfd, apps, "-o", str(tmp_path / "m"), "--repeat", "3")
    assert code == 3
    assert "Too noisy to trust: the runs of a alone" in out.replace("\n", " ")


def test_a_dry_run_starts_nothing(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    apps = applications(tmp_path, a=f"touch {tmp_path}/started")
    code, out, _ = measure(capfd, apps, "--dry-run", "--json")
    assert code == 0
    assert json.loads(out)["measurements"] == 9
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize(
    ("command", "code", "reason"),
    [
        ("exit 7", 1, "exit code 7"),
        ("echo nothing", 1, "matches no time in the output of a: nothing"),
        ("echo seconds -1", 1, "matches no time"),
    ],
)
def test_a_program_that_fails_or_prints_no_time_is_named(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, command: str, code: int, reason: str
) -> None:
    found, out, err = measure(capfd, applications(tmp_path, a=command), "-o", str(tmp_path / "m"))
    assert (found, out) == (code, "")
    assert reason in err


def test_a_measurement_of_other_applications_is_not_continued(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = str(tmp_path / "m")
    apps = applications(tmp_path, a="sleep 0.1; echo seconds 1")
    assert measure(capfd, apps, "-o", out, "--repeat", "1")[0] == 0
    code, _, err = measure(capfd, applications(tmp_path, b="echo seconds 1"), "-o", out, "--resume")
    assert code == 2
    assert "was started for other applications" in err


def test_profiles_are_compared_with_the_measurement(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    job = MadeJob(4)
    for _ in range(20):
        job.compute(10 * MS)
        job.allreduce()
    profile = job.write(tmp_path / "a.prof")
    apps = tmp_path / "apps.toml"
    apps.write_text(
        "cores = 2\nnodes = 2\n[apps.a]\ncommand = 'sh -c \"sleep 0.2; echo 2\"'\nnumber = '(2)'\n"
        f"profile = '{profile}'\n"
    )
    code, out, err = measure(capfd, str(apps), "-o", str(tmp_path / "m"), "--repeat", "1", "--json")
    assert code == 0, err
    found = json.loads(out)["prediction"]
    assert found["agreement"]["cells"] == 1
    assert found["cells"][0]["percent"]["value"] == pytest.approx(100, abs=1)
    assert found["agreement"]["mean_error"] < 1


def test_a_profile_of_other_nodes_is_refused_before_anything_runs(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    job = MadeJob(4, nodes=4)
    job.compute(10 * MS)
    profile = job.write(tmp_path / "a.prof")
    apps = tmp_path / "apps.toml"
    apps.write_text(f"cores = 2\n[apps.a]\ncommand = 'touch {tmp_path}/x'\nprofile = '{profile}'\n")
    code, _, err = measure(capfd, str(apps), "-o", str(tmp_path / "m"))
    assert code == 2
    assert "has 4 nodes, and the application runs on 1" in err
    assert not (tmp_path / "x").exists()


def test_a_terminated_measurement_keeps_what_was_timed_and_goes_on(tmp_path: Path) -> None:
    apps = applications(tmp_path, a="sleep 0.2; echo seconds 1")
    words = [sys.executable, "-m", "elbowroom", "colocate", "measure", apps, "-o", str(tmp_path / "m")]
    process = subprocess.Popen([*words, "--repeat", "9"], stderr=subprocess.PIPE, text=True)
    journal = tmp_path / "m" / "times.jsonl"
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and not (journal.exists() and journal.read_text().count("\n") >= 1):
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "what was timed is kept" in err
    kept = journal.read_text()
    done = subprocess.run([*words, "--repeat", "1", "--resume"], capture_output=True, text=True, check=False)
    # Runs of 0.2 s that start up to a second apart are mostly not beside each other, which is noise.
    assert done.returncode in (0, 3), done.stderr
    assert "Runtime beside a companion" in done.stdout
    assert journal.read_text().startswith(kept)
