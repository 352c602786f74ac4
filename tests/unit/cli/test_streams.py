"""What the command line does where its streams, its encoding or its environment are not as usual."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

RECORDED = Path(__file__).resolve().parents[2] / "data" / "quick"
SHELL = 'exec "$0" -m elbowroom "$@"'


def elbowroom(
    *words: str | bytes, redirect: str = "", where: Path | None = None, **environment: str | None
) -> subprocess.CompletedProcess[bytes]:
    """Runs the command line in a process of its own, with a shell's redirections; None unsets a variable."""
    known = {name: value for name, value in (os.environ | environment).items() if value is not None}
    return subprocess.run(
        ["sh", "-c", f"{SHELL} {redirect}", sys.executable, *words],
        capture_output=True,
        check=False,
        cwd=where,
        env=known,
        timeout=60,
    )


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_a_terminal_without_unicode_gets_plain_characters(encoding: str) -> None:
    done = elbowroom("show", str(RECORDED), PYTHONIOENCODING=encoding)
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode(encoding)
    assert "interference" in text
    assert "10 838" in text.replace("\xa0", " ")
    assert "?" not in text


@pytest.mark.parametrize(
    ("redirect", "reason"), [(">/dev/full", b"No space left on device"), (">&-", b"is closed")]
)
def test_a_stdout_that_takes_nothing_is_an_error_in_one_sentence(redirect: str, reason: bytes) -> None:
    done = elbowroom("plans", redirect=redirect)
    assert done.returncode == 1
    assert done.stderr.startswith(b"elbowroom: stdout: ")
    assert reason in done.stderr
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("redirect", ["2>/dev/full", "2>&-"])
def test_a_stderr_that_takes_nothing_does_not_fail_a_run(redirect: str, tmp_path: Path) -> None:
    words = (
        "run",
        "sizes",
        "--machine",
        "henri",
        "--sizes",
        "4KiB",
        "--noise",
        "0",
        "--no-report",
        "--out",
        "r",
    )
    done = elbowroom(*words, redirect=redirect, where=tmp_path)
    assert done.returncode == 0, done.stdout
    assert b"kept" in done.stdout
    assert (tmp_path / "r" / "manifest.json").is_file()


def test_a_wrong_input_without_any_stream_has_its_exit_code() -> None:
    assert elbowroom("show", "missing", redirect=">/dev/full 2>&-").returncode == 2


def test_a_plotting_backend_that_does_not_exist_is_not_asked_for(tmp_path: Path) -> None:
    done = elbowroom("predict", "henri", "-o", "p.svg", where=tmp_path, MPLBACKEND="nope")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "p.svg").is_file()


def test_a_word_that_is_not_utf8_is_refused_in_a_sentence() -> None:
    done = elbowroom("show", b"caf\xe9")
    assert done.returncode == 2
    assert b"is not UTF-8" in done.stderr
    assert b"Traceback" not in done.stderr


def test_without_home_the_embedded_mpi_is_recognised() -> None:
    done = elbowroom("doctor", "--mpi", "embedded", HOME=None, PMIX_MCA_base=None)
    assert done.returncode == 0, done.stderr
    assert b"Open MPI" in done.stdout
