"""Cache misses of messages, by `probe misses`: no MPI is started."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest

CORES = sorted(os.sched_getaffinity(0))

pytestmark = pytest.mark.skipif(len(CORES) < 2, reason="sender and receiver need a core each")


def misses(*words: str) -> subprocess.CompletedProcess[str]:
    cores = [] if "--cores" in words else ["--cores", f"{CORES[0]},{CORES[1]}"]
    command = [os.environ["ELBOWROOM_PROBE"], "misses", *cores, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def told(*words: str) -> dict[str, Any]:
    done = misses(*words)
    assert done.returncode == 0, done.stderr
    record: dict[str, Any] = json.loads(done.stdout)
    if "unknown" in record["after"]:
        pytest.skip(record["after"]["unknown"])
    return record


def test_misses_of_the_first_level_rise_on_the_side_that_touches_memory_and_on_no_other() -> None:
    after = told("--who", "receiver", "--step", "400", "--count", "1000")["after"]
    assert after["source"] == "modelled"
    receiver, sender = after["receiver"]["L1"], after["sender"]["L1"]
    assert len(receiver) == len(sender) == 1000
    assert receiver[-1] > receiver[0]
    assert receiver == sorted(receiver)
    assert set(sender) == {sender[0]}


def test_without_accesses_all_sizes_have_the_misses_of_the_smallest() -> None:
    record = told("--who", "sender", "--step", "4MB", "--count", "3")
    for side in ("sender", "receiver"):
        for level, counts in record["without"][side].items():
            assert counts == [record["after"][side][level][0]] * 3


def test_an_answer_says_which_caches_and_what_was_assumed() -> None:
    model = told("--count", "1")["after"]["model"]
    assert {cache["level"] for cache in model["hierarchy"]["caches"]} >= {"L1"}
    assert model["footprint_bytes"]["receiver"] > 0
    assert len(model["assumptions"]) >= 3


def test_past_all_caches_every_line_of_the_sender_misses_in_every_level() -> None:
    record = told("--who", "both", "--first", "0", "--step", "100GiB", "--count", "2")
    lines = {counts[1] for counts in record["after"]["sender"].values()}
    assert len(lines) == 1
    assert lines.pop() > record["after"]["sender"]["L1"][0]


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["--cores", "0"], "cores '0'"),
        (["--cores", "0,99999"], "cores '0,99999'"),
        (["--step", "4X"], "step '4X'"),
        (["--step", "100TB"], "step '100TB'"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(words: list[str], field: str) -> None:
    done = misses(*words)
    assert done.returncode == 2
    assert field in done.stderr
