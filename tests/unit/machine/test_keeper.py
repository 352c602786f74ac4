"""The process that holds a host's settings: what it answers, and that it sets back however it ends."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from elbowroom.machine.keeper import command
from fake_cpufreq import cpufreq_tree, setting_values


@pytest.fixture
def sys_root(tmp_path: Path) -> Path:
    return cpufreq_tree(tmp_path / "sys")


@contextlib.contextmanager
def keeper(root: Path, state: Path) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        command("--root", str(root), "--state", str(state)), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        yield process
        if process.stdin is not None:
            process.stdin.close()
        process.wait(30)


def ask(process: subprocess.Popen[bytes], **settings: object) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(settings).encode() + b"\n")
    process.stdin.flush()
    answer: dict[str, Any] = json.loads(process.stdout.readline())
    return answer


def test_settings_are_held_until_the_next_line(sys_root: Path, tmp_path: Path) -> None:
    before = setting_values(sys_root)
    with keeper(sys_root, tmp_path / "state") as process:
        assert ask(process, core_khz=1_000_000) == {}
        assert set(setting_values(sys_root, "scaling_max_freq").values()) == {"1000000"}
        assert ask(process, uncore_khz=1_200_000) == {}
        assert set(setting_values(sys_root, "scaling_max_freq").values()) == {"3700000"}
        assert ask(process) == {}
        assert setting_values(sys_root) == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_sets_back(sys_root: Path, tmp_path: Path, number: signal.Signals) -> None:
    before = setting_values(sys_root)
    with keeper(sys_root, tmp_path / "state") as process:
        assert ask(process, core_khz=1_000_000) == {}
        process.send_signal(number)
        process.wait(30)
        assert setting_values(sys_root) == before


def test_the_end_of_its_input_sets_back(sys_root: Path, tmp_path: Path) -> None:
    before = setting_values(sys_root)
    with keeper(sys_root, tmp_path / "state") as process:
        assert ask(process, core_khz=1_000_000, uncore_khz=2_400_000) == {}
        assert setting_values(sys_root) != before
    assert setting_values(sys_root) == before


def test_the_next_one_sets_back_what_a_killed_one_left(sys_root: Path, tmp_path: Path) -> None:
    before = setting_values(sys_root)
    with keeper(sys_root, tmp_path / "state") as process:
        assert ask(process, core_khz=1_000_000) == {}
        process.kill()
        process.wait(30)
    assert setting_values(sys_root) != before
    with keeper(sys_root, tmp_path / "state") as process:
        assert ask(process) == {}
        assert setting_values(sys_root) == before


def test_a_setting_that_somebody_changes_meanwhile_is_said(sys_root: Path, tmp_path: Path) -> None:
    with keeper(sys_root, tmp_path / "state") as process:
        assert ask(process, governor="schedutil") == {}
        for file in sys_root.rglob("scaling_governor"):
            file.write_text("performance\n")
        assert "holds 'performance'" in ask(process)["changed"]


def test_a_refusal_names_the_setting_and_leaves_everything_as_it_was(sys_root: Path, tmp_path: Path) -> None:
    before = setting_values(sys_root)
    with keeper(sys_root, tmp_path / "state") as process:
        error = ask(process, turbo=False, core_khz=1_000_000)["error"]
        assert (error["field"], error["value"], error["kind"]) == ("turbo", "False", "machine")
        assert "no switch" in error["message"]
        assert setting_values(sys_root) == before
        assert ask(process, core_khz=1_000_000) == {}, "it goes on after a refusal"


def test_what_cannot_be_set_back_is_said(sys_root: Path, tmp_path: Path) -> None:
    with keeper(sys_root, tmp_path / "state") as process:
        assert ask(process, uncore_khz=1_200_000) == {}
        for file in sys_root.rglob("max_freq_khz"):
            file.unlink()
        assert "does not take" in ask(process)["left"]
