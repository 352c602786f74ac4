"""Two hosts on one machine (tests/linked_hosts.py): what is measured between them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from elbowroom.launch.build import probe
from elbowroom.launch.launcher import Launch, LaunchRequest
from elbowroom.launch.launchers import build_launch
from elbowroom.launch.mpi import find_mpi, launch_environment
from elbowroom.launch.session import Session
from elbowroom.points.unit import Unit
from linked_hosts import LinkedHosts, NoHostsError, linked_hosts


@pytest.fixture
def two_hosts(tmp_path: Path) -> Iterator[LinkedHosts]:
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


def ping_pong(live: Session, size: int, metric: str) -> dict[str, Any]:
    """One phase of communication alone, as docs/reference/protocol.md spells it."""
    unit = Unit(point=f"two-hosts-{size}", repetition=0)
    answer = live.ask(
        unit,
        {
            "op": "measure",
            "point": unit.point,
            "repetition": unit.repetition,
            "sequence": ["B"],
            "kernel": "none",
            "cursor": 1,
            "comp_cores": [],
            "comp_node": 0,
            "computing_ranks": "first",
            "working_set": 0,
            "pattern": "pingpong",
            "size": size,
            "comm_node": 0,
            "comm_cores": [0],
            "peer_cores": [0],
            "reuse": "same",
            "metric": metric,
            "window": 0.1,
            "steady": {"window": 7, "cov": 0.05, "limit": 0.5},
            "observe": [],
        },
        patience=60.0,
    )
    assert answer["record"] == "repetition", answer
    phase: dict[str, Any] = answer["phases"][0]["comm"]
    return phase


def test_the_ranks_are_on_two_hosts_and_say_that_they_speak_tcp(two_hosts: LinkedHosts) -> None:
    with session(two_hosts) as live:
        assert [rank["host"] for rank in live.hello["ranks"]] == ["a", "b"]
        assert live.hello["mpi"]["transport"] == "tcp"


def test_every_byte_of_the_messages_crosses_the_link(two_hosts: LinkedHosts) -> None:
    with session(two_hosts) as live:
        before = {host: two_hosts.sent(host) for host in "ab"}
        measured = ping_pong(live, 1 << 20, "bandwidth")
        crossed = {host: two_hosts.sent(host) - before[host] for host in "ab"}
    assert measured["messages"] > 0
    # Warm-up messages cross too, and headers; so more than what was counted, never less.
    for host in "ab":
        assert crossed[host] >= measured["messages"] // 2 * (1 << 20)
    assert sum(crossed.values()) >= measured["bytes"]


def test_a_small_message_crosses_the_link_as_a_packet(two_hosts: LinkedHosts) -> None:
    with session(two_hosts) as live:
        before = two_hosts.sent("a")
        measured = ping_pong(live, 4, "latency")
        crossed = two_hosts.sent("a") - before
    assert measured["unit"] == "us"
    # An Ethernet, an IP and a TCP header make at least 54 bytes around each message that a sent.
    assert crossed >= measured["messages"] // 2 * 54


def test_a_collective_between_two_hosts_crosses_the_link_and_has_times_of_both(
    two_hosts: LinkedHosts,
) -> None:
    cores = sorted(os.sched_getaffinity(0))
    places = [
        {"rank": rank, "comp_cores": [core], "comm_cores": [core], "comp_node": 0, "comm_node": 0}
        for rank, core in enumerate((cores[0], cores[-1]))
    ]
    request = {
        "op": "measure",
        "point": "allreduce",
        "repetition": 0,
        "sequence": ["B", "A", "AB"],
        "kernel": "prime",
        "size": 65536,
        "placements": places,
        "overlap": {"operation": "allreduce", "form": "nonblocking", "iterations": 5},
    }
    with session(two_hosts) as live:
        before = {host: two_hosts.sent(host) for host in "ab"}
        answer = live.ask(Unit(point="allreduce", repetition=0), request, patience=60.0)
        crossed = {host: two_hosts.sent(host) - before[host] for host in "ab"}
    assert answer["validated"] is True, answer
    assert all(len(row) == 2 for row in answer["overlap"]["together"]["leave"])
    # Ten operations at least: of every one half of the vector, or more, goes to the other host.
    assert min(crossed.values()) > 10 * 65536 // 2


def test_one_way_times_between_two_hosts_are_refused(two_hosts: LinkedHosts) -> None:
    """Both have the same clock here, which nobody could know of two hosts."""
    request = {
        "op": "measure",
        "sequence": ["B", "AB"],
        "kernel": "none",
        "size": 400,
        "comm_cores": [0],
        "peer_cores": [0],
        "metric": "latency",
        "extraneous": {"who": "sender", "first": 0, "step": 400, "count": 1},
    }
    with session(two_hosts) as live:
        answer = live.ask(Unit(point="one way", repetition=0), request, patience=60.0)
    assert (answer["record"], answer["field"], answer["value"]) == ("error", "hosts", "2"), answer
    assert "clocks of a and b" in answer["message"]


def test_a_slower_link_is_measured_as_slower(two_hosts: LinkedHosts) -> None:
    with session(two_hosts) as live:
        free = ping_pong(live, 1 << 20, "bandwidth")["value"]
        try:
            for host in "ab":
                two_hosts.limit(host, 400)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no token bucket here: {error.stderr.strip()}")
        time.sleep(0.1)
        limited = ping_pong(live, 1 << 20, "bandwidth")["value"]
    assert limited < free
    # 400 Mbit/s are 50 MB/s; the bucket lets a burst of 0.13 MB of each 1 MB pass at once.
    assert limited < 50 * 1.25


@pytest.mark.alone
def test_a_run_measures_over_two_hosts_and_says_so(two_hosts: LinkedHosts, tmp_path: Path) -> None:
    words = [
        "run",
        "quick",
        "--hosts",
        ",".join(two_hosts.addresses.values()),
        "--out",
        str(tmp_path / "run"),
        "--json",
    ]
    words += [
        "--kernels",
        "prime",
        "--sizes",
        "64KiB",
        "--repeat",
        "2",
        "--set",
        "window=0.05",
        "--no-report",
    ]
    launch = two_hosts.on_first(
        Launch(command=(sys.executable, "-m", "elbowroom", *words), env=launch_environment())
    )
    before = two_hosts.sent("a")
    done = subprocess.run(
        launch.command,
        env={**os.environ, **launch.env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    # Two repetitions are too few to trust (exit code 3); the measuring itself must have worked.
    assert done.returncode in (0, 3), done.stderr
    shown = msgspec.json.decode(done.stdout)
    assert shown["machine"]["hosts"] == 2
    assert shown["mpi"]["transport"] == "tcp"
    assert [point["status"] for point in shown["points"]] in (["ok"], ["not_stable"])  # on a busy machine
    assert two_hosts.sent("a") - before > 1 << 20
