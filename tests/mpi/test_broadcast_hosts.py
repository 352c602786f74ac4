"""Broadcasts over TCP between hosts with clocks of their own, one behind a slow link."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from elbowroom.broadcast.measured import BenchCase, CaseTimes
from elbowroom.launch.executables import JobLaunch, measure_broadcasts
from linked_hosts import LinkedHosts, NoHostsError, linked_hosts

SIZE = 1_000_000
SLOW = "b"
"""Rank 1: the first of a chain."""


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[LinkedHosts]:
    try:
        with linked_hosts(tmp_path, "abcd", clocks_apart=True) as made:
            made.limit(SLOW, 100)
            yield made
    except NoHostsError as error:
        pytest.skip(str(error))
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no token bucket here: {error.stderr.strip()}")


def sent_by_the_slow_host(hosts: LinkedHosts, case: BenchCase) -> tuple[CaseTimes, float]:
    """Times of a case, which checks the data; and how often the slow host sent them."""
    job = JobLaunch(ranks=4, launcher="mpiexec", hosts=tuple(hosts.addresses.values()))
    before = hosts.sent(SLOW)
    (times,) = measure_broadcasts([case], job, beside=False, adapt=hosts.on_first).cases
    return times, (hosts.sent(SLOW) - before) / (SIZE * (case.repeat + 1))


def test_a_tree_leaves_out_the_slow_link_when_told_of_it(hosts: LinkedHosts) -> None:
    case = BenchCase(size=SIZE, recipients=3, tree="chain", repeat=3)
    through, copies = sent_by_the_slow_host(hosts, case)
    told = BenchCase(size=SIZE, recipients=3, tree="chain", repeat=3, speeds=(1, 0.1, 1, 1))
    around, copies_told = sent_by_the_slow_host(hosts, told)
    assert copies > 0.9
    assert copies_told < 0.2
    # 100 Mbit/s are 12.5 MB/s: one copy takes 70 ms, and all ranks are behind the slow one.
    assert min(min(row) for row in through.received) > 0.05
    slow, *fast = (min(row[place] for row in around.received) for place in range(3))
    assert max(fast) < slow
