"""lib/clock over MPI: one time for processes whose clocks are truly different."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import clock_program

TRUTH = 100
"""How well the truth itself is known, ns: both clocks are read one after the other."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        subprocess.run(["unshare", "-T", "--monotonic", "1", "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"time namespaces cannot be made here ({error})")
    return clock_program.build(tmp_path_factory.mktemp("clock"))


def test_a_clock_a_day_ahead_is_found_inside_the_published_bounds(program: Path) -> None:
    told = clock_program.run(program, 20)
    assert told["clocks"] == 2
    assert told["source"] == "raw"
    if not told["counter"]:
        pytest.skip("no counter tells the truth here: the kernel keeps time with another clock")
    for point in told["points"]:
        assert point["below"] >= -TRUTH
        assert point["above"] >= -TRUTH


def test_both_processes_leave_the_barrier_at_the_same_agreed_moment(program: Path) -> None:
    told = clock_program.run(program, 20)
    if not told["counter"]:
        pytest.skip("no counter tells the truth here: the kernel keeps time with another clock")
    for point in told["points"]:
        bound = point["below"] + point["above"]
        assert abs(point["barrier"]) <= 2 * bound + TRUTH
        assert min(point["late"]) >= 0
