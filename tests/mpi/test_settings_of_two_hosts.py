"""Frequencies on both hosts of a job (tests/linked_hosts.py): held, refused by one, undone whatever dies."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from elbowroom.launch.build import probe
from elbowroom.launch.launcher import LaunchRequest
from elbowroom.launch.launchers import build_launch
from elbowroom.launch.mpi import find_mpi
from elbowroom.launch.session import Session, SessionLost
from elbowroom.machine.keeper import command
from elbowroom.points.unit import Unit
from fake_cpufreq import cpufreq_tree, setting_values
from linked_hosts import LinkedHosts, NoHostsError, linked_hosts


@pytest.fixture
def two_hosts(tmp_path: Path) -> Iterator[LinkedHosts]:
    for name in "ab":
        cpufreq_tree(tmp_path / name)
    try:
        with linked_hosts(tmp_path, "ab") as hosts:
            yield hosts
    except NoHostsError as error:
        pytest.skip(str(error))


@contextlib.contextmanager
def session(hosts: LinkedHosts) -> Iterator[Session]:
    """The probe with rank 0 on host a and rank 1 on host b."""
    mpi = find_mpi()
    request = LaunchRequest(
        ranks=2, ranks_per_host=1, probe=str(probe(mpi)), mpi=mpi, hosts=tuple(hosts.addresses.values())
    )
    live = Session(hosts.on_first(build_launch("mpiexec", request, {})), ranks=2, mpi=mpi)
    try:
        yield live
    finally:
        live.close()


def keeper(folder: Path) -> list[str]:
    """A keeper over the tree of the host that it runs on, which says its number and what it holds."""
    words = command("--root", f"{folder}/$(hostname)", "--state", f"{folder}/$(hostname)/state")
    inner = " ".join(f'"{word}"' for word in words)
    return ["sh", "-c", f"echo $$ > {folder}/$(hostname)/keeper; exec {inner}"]


def ask(live: Session, folder: Path, window: float = 0.05, **settings: object) -> dict[str, Any]:
    unit = Unit(point="held", repetition=0)
    request = {
        "op": "measure",
        "point": "held",
        "repetition": 0,
        "sequence": ["B"],
        "size": 4,
        "metric": "latency",
        "comm_cores": [0],
        "peer_cores": [0],
        "window": window,
        "settings": {**settings, "keeper": keeper(folder)},
    }
    return live.ask(unit, request, patience=90.0)


def both(folder: Path, *names: str) -> dict[str, str]:
    return {
        f"{host}/{file}": text
        for host in "ab"
        for file, text in setting_values(folder / host, *names).items()
    }


def wait_until(what: Any) -> bool:
    end = time.monotonic() + 20
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def test_both_hosts_hold_the_settings_while_they_measure_and_are_as_before_afterwards(
    two_hosts: LinkedHosts, tmp_path: Path
) -> None:
    before = both(tmp_path)
    stamps = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("scaling_max_freq")}
    with session(two_hosts) as live:
        answer = ask(live, tmp_path, core_khz=1_000_000, uncore_khz=2_400_000)
        assert answer["record"] == "repetition", answer
        assert "settings_changed" not in answer["flags"]
        assert both(tmp_path) == before
    assert len(stamps) == 4
    assert all(file.stat().st_mtime_ns > stamp for file, stamp in stamps.items()), "both hosts were set"


def test_a_host_that_refuses_is_named_and_no_host_is_left_changed(
    two_hosts: LinkedHosts, tmp_path: Path
) -> None:
    for file in (tmp_path / "b").rglob("scaling_max_freq"):
        file.unlink()
    before = both(tmp_path)
    with session(two_hosts) as live:
        answer = ask(live, tmp_path, core_khz=1_000_000)
        assert (answer["record"], answer["field"], answer["kind"]) == ("error", "core_frequency", "machine")
        assert "(rank 1 on b)" in answer["message"]
        assert both(tmp_path) == before
        assert ask(live, tmp_path, uncore_khz=1_200_000)["record"] == "repetition", "the probe goes on"


@pytest.mark.parametrize("victim", ["keeper", "rank"])
def test_a_kill_leaves_no_host_changed(two_hosts: LinkedHosts, tmp_path: Path, victim: str) -> None:
    """Killed with SIGKILL while both hosts are held: a long point is measured meanwhile."""
    before = both(tmp_path)
    with session(two_hosts) as live:
        ranks = [rank["pid"] for rank in live.hello["ranks"]]
        child = os.fork()
        if child == 0:
            held = wait_until(lambda: len(set(both(tmp_path, "scaling_max_freq").values())) == 1 and
                              set(both(tmp_path, "scaling_max_freq").values()) == {"1000000"})  # fmt: skip
            number = int((tmp_path / "b/keeper").read_text()) if victim == "keeper" else ranks[1]
            os.kill(number, signal.SIGKILL)
            os._exit(0 if held else 1)
        try:
            answer = ask(live, tmp_path, window=0.5, core_khz=1_000_000)
        except SessionLost as error:
            answer = {"lost": str(error)}
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert wait_until(lambda: both(tmp_path) == before), both(tmp_path)
    if victim == "keeper":
        lost_early = "(rank 1 on b)" in answer.get("message", "")  # before the rank knew that it holds
        assert answer.get("status") == "failed" or lost_early, answer
        assert "settings_changed" in answer["flags"]
        assert "host b" in answer["reason"]
    else:
        assert "lost" in answer
