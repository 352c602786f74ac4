"""Nothing is silent for long: commands that build, measure, simulate or run a program say so meanwhile."""

from __future__ import annotations

import io
import os
import shutil
import sys
import time
from pathlib import Path

import pytest

import elbowroom
import trace_stand_ins
from elbowroom import cli, heartbeat
from elbowroom.errors import UsageError
from elbowroom.launch import native

PATIENCE = 30
"""Seconds that a program waits for a word on stderr, before it gives up."""

ROOT = Path(__file__).resolve().parents[3]


class Terminal(io.StringIO):
    """stderr; what is written there lets the slow program go on."""

    def __init__(self, release: Path, *, is_terminal: bool) -> None:
        super().__init__()
        self._release, self._is_terminal = release, is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    def write(self, text: str) -> int:
        if self.started.exists() and text.strip("\r\n\x1b[K "):
            self._release.touch()
        return super().write(text)

    @property
    def started(self) -> Path:
        return self._release.with_name("started")

    def check(self) -> None:
        """The program was started, and heard of before it gave up."""
        assert self.started.exists(), self.getvalue()
        assert not self._release.with_name("gave-up").exists(), self.getvalue()


def slow_program(folder: Path, name: str, answer: str = "") -> Path:
    """A program that ends when something was printed since it started; without that, it gives up."""
    path = folder / name
    path.write_text(
        f"#!/bin/sh\ntouch '{folder}/started'\nleft={20 * PATIENCE}\n"
        f"while [ ! -e '{folder}/release' ] && [ $left -gt 0 ]; do sleep 0.05; left=$((left - 1)); done\n"
        f"[ -e '{folder}/release' ] || touch '{folder}/gave-up'\n{answer}\n"
    )
    path.chmod(0o755)
    return path


COMMANDS = {
    "broadcast simulate": "ELBOWROOM_BROADCAST_SIMULATOR",
    "broadcast tune": "ELBOWROOM_BROADCAST_COSTS",
    "broadcast bench --ranks 2": "ELBOWROOM_BROADCAST_BENCH",
    "broadcast factorize": "ELBOWROOM_FACTORIZATIONS_INLINE",
    "broadcast curves 4.14": "ELBOWROOM_FACTORIZATIONS_INLINE",
    "nic measure --ranks 2": "ELBOWROOM_NETWORK_BENCH",
    "simulate --machine henri": "ELBOWROOM_SIMULATOR",
    "run quick --no-report": "ELBOWROOM_PROBE",
    "trace check t": "ELBOWROOM_TRACE_READER",
    "trace overhead --repeat 5 -- ./slow": "",
    "trace flushes --repeat 5 -- ./slow": "",
    "advise henri --job verified.toml --verify": "",
    "colocate measure apps.toml -o m --repeat 1": "",
}
"""Commands, and the variable that names the program which they wait for; none: ./slow."""


@pytest.mark.parametrize("is_terminal", [False, True], ids=["file", "terminal"])
@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_says_that_it_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, is_terminal: bool
) -> None:
    slow = slow_program(tmp_path, "slow", "exit 1")
    if COMMANDS[words]:
        monkeypatch.setenv(COMMANDS[words], str(slow))
    job = (ROOT / "docs" / "guide" / "job.toml").read_text(encoding="utf-8")
    (tmp_path / "verified.toml").write_text(
        f'{job}\n[verify]\ncommand = "./slow {{cores}} {{comp_node}} {{comm_node}} {{size}} {{overlap}} '
        '{comm_threads} {cores_other} {comp_node_other} {w}"\n'
    )
    (tmp_path / "apps.toml").write_text("cores = 2\n[apps.a]\ncommand = './slow'\n")
    trace_stand_ins.recorded(tmp_path / "t")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(heartbeat, "PERIOD", 0.05)
    monkeypatch.setattr(heartbeat, "BEAT", 0.05)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(shutil, "get_terminal_size", lambda *_, **__: os.terminal_size((80, 24)))
    terminal = Terminal(tmp_path / "release", is_terminal=is_terminal)
    monkeypatch.setattr(sys, "stderr", terminal)
    assert cli.run(words.split()) in (1, 2)
    terminal.check()


def test_a_build_says_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slow compiler is one that CMake waits for."""
    for name in ("cmake", "ninja"):
        slow_program(tmp_path, name, "echo no such compiler; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("ELBOWROOM_SIMULATOR", raising=False)
    monkeypatch.setenv("ELBOWROOM_CMAKE", f"-DNOTHING_BUILT_SO={os.getpid()}")
    monkeypatch.setattr(native, "checkout_root", lambda: None)
    monkeypatch.setattr(native, "native_sources", lambda: ROOT)
    monkeypatch.setattr("elbowroom.launch.build.native_sources", lambda: ROOT)
    monkeypatch.setattr(heartbeat, "PERIOD", 0.05)
    monkeypatch.setattr(heartbeat, "BEAT", 0.05)
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal(tmp_path / "release", is_terminal=False)
    monkeypatch.setattr(sys, "stderr", terminal)
    assert cli.run(["simulate-memory", "--machine", "henri"]) == 1
    terminal.check()
    assert "[configuring] the simulator" in terminal.getvalue()


@pytest.mark.parametrize(
    ("words", "place", "doing"),
    [
        ("fit {run} -o m.json", "elbowroom.models.fit.fit", "fitting the models"),
        ("report {run} -o r.html", "elbowroom.verbs.run_folder.render", "writing the report"),
    ],
)
def test_a_long_computation_says_what_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, place: str, doing: str
) -> None:
    """It goes on when it was heard of."""
    terminal = Terminal(tmp_path / "release", is_terminal=False)

    def slow(*_words: object, **_options: object) -> None:
        terminal.started.touch()
        end = time.monotonic() + PATIENCE
        while not (tmp_path / "release").exists() and time.monotonic() < end:
            time.sleep(0.01)
        raise UsageError("is enough", field="test")

    monkeypatch.chdir(tmp_path)
    run = elbowroom.run("quick", machine="henri", out="r", report=False, tell=lambda _: None)
    monkeypatch.setattr(place, slow)
    monkeypatch.setattr(heartbeat, "PERIOD", 0.05)
    monkeypatch.setattr(heartbeat, "BEAT", 0.05)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    assert cli.run(words.format(run=run.path).split()) == 2
    assert doing in terminal.getvalue()
