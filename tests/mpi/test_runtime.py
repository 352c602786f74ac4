"""apps/runtime, driven through its pipes: two ranks of StarPU's MPI. No test asserts a time."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from elbowroom.launch.launcher import LaunchRequest
from elbowroom.launch.launchers import build_launch
from starpu_site import starpu_mpi, starpu_program

Record = dict[str, Any]

CORES = sorted(os.sched_getaffinity(0))
PATIENCE = 120  # seconds that a busy machine may take for anything

pytestmark = pytest.mark.skipif(len(CORES) < 2, reason="needs two cores: StarPU's communication threads poll")


@pytest.fixture(scope="module")
def runtime() -> Path:
    return starpu_program("runtime")


def config(task: str = "overhead", backoff: int | None = None, **changes: Any) -> Record:
    program = {"name": "runtime", "task": task, "build": "starpu", "ranks": 2, "backoff": backoff}
    places = {"comm_cores": [CORES[0]], "peer_cores": [CORES[1]], "comp_cores": []}
    return {"program": program, "comp_node": 0, "comm_node": 0, **places} | changes


def polling(backoff: int | None) -> Record:
    """Both ranks communicate from one core, a worker of the first polls on another."""
    return config("polling", backoff, peer_cores=[CORES[0]], comp_cores=[CORES[1]])


def ask(size: int = 4, **changes: Any) -> Record:
    steady = {"window": 2, "cov": 0.9, "limit": 0.05}
    request = {"op": "measure", "point": "p", "repetition": 0, "sequence": ["B", "AB"], "size": size}
    return request | {"metric": "latency", "window": 0.005, "steady": steady} | changes


def run(program: Path, folder: Path, settings: Record, *requests: Record, ranks: int = 2) -> list[Record]:
    """The lines of a whole conversation."""
    path = folder / "config.json"
    path.write_text(json.dumps(settings))
    launch = build_launch(
        "local",
        LaunchRequest(
            ranks=ranks,
            ranks_per_host=ranks,
            probe=str(program),
            mpi=starpu_mpi(),
            share_core=settings["comm_cores"] == settings["peer_cores"],
            arguments=("measure", "--config", str(path)),
        ),
    )
    done = subprocess.run(
        launch.command,
        input="".join(json.dumps(request) + "\n" for request in (*requests, {"op": "quit"})),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, **launch.env, "STARPU_HOME": str(folder)},
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert lines, f"exit code {done.returncode}: {done.stderr}"
    return lines


def test_messages_pass_both_ways_and_every_thread_is_where_it_was_put(runtime: Path, tmp_path: Path) -> None:
    wrong = ask(size=0)
    hello, small, large, broken, refused, odd = run(
        runtime,
        tmp_path,
        config(),
        ask(sequence=["B", "AB", "AB", "B"]),
        ask(size=100_003, metric="bandwidth"),
        ask(fault="message"),
        wrong,
        ask(sequence=["A"]),
    )
    assert hello["mpi"]["thread_level"] == "multiple"
    for rank in hello["starpu"]["threads"]:
        core = CORES[rank["rank"]]
        assert {tuple(thread["cores"]) for thread in rank["threads"]} <= {(core,), (core, core)}
        assert [thread["role"] for thread in rank["threads"]] == ["communication", "worker", "messages"]
    assert [phase["phase"] for phase in small["phases"]] == ["B", "AB", "AB", "B"]
    assert small["validated"]
    assert large["validated"]
    assert all(phase["comm"]["value"] > 0 for phase in (*small["phases"], *large["phases"]))
    assert {phase["comm"]["unit"] for phase in large["phases"]} == {"MB/s"}
    first = small["phases"][0]["comm"]
    assert first["bytes"] == 4 * first["messages"] > 0
    assert small["pages"]["comm"]["wanted"] == 0
    assert not broken["validated"]
    assert broken["status"] == "failed"
    assert {phase["status"] for phase in broken["phases"]} == {"void"}
    assert (refused["record"], refused["field"], refused["value"]) == ("error", "size", "0")
    assert (odd["record"], odd["field"], odd["value"]) == ("error", "sequence", "A")


@pytest.mark.parametrize("backoff", [2, 0])
def test_workers_poll_beside_messages_only_when_they_should(
    runtime: Path, tmp_path: Path, backoff: int
) -> None:
    hello, *answers = run(runtime, tmp_path, polling(backoff), *[ask(window=0.05)] * 4)
    # A machine that is busy may keep the worker from its core in some of them.
    answer = next((told for told in answers if "not_overlapped" not in told["flags"]), answers[-1])
    assert set(answer["flags"]) - {"steal"} == {"shared_comm_core"}
    assert answer["validated"]
    alone, together = (phase["observed"]["workers_ran"] for phase in answer["phases"])
    assert alone < 0.05
    assert together < 0.05 if backoff == 0 else together > 0.001
    assert hello["starpu"]["threads"][0]["threads"][1]["cores"] == [CORES[1]]


@pytest.mark.parametrize(
    ("settings", "field", "words"),
    [
        (config(peer_cores=[CORES[0]]), "comm_cores", "would share core"),
        (config("polling", 32, comp_cores=[CORES[1]]), "comp_cores", "would share core"),
    ],
)
def test_threads_that_would_share_a_core_are_refused(
    runtime: Path, tmp_path: Path, settings: Record, field: str, words: str
) -> None:
    (error,) = run(runtime, tmp_path, settings)
    assert (error["record"], error["kind"], error["field"]) == ("error", "usage", field)
    assert words in error["message"]
    assert error["hint"]


def test_a_shared_core_that_is_wanted_is_flagged(runtime: Path, tmp_path: Path) -> None:
    settings = config(peer_cores=[CORES[0]], scheduling=True)
    _, answer = run(runtime, tmp_path, settings, ask(sequence=["B"]))
    assert answer["flags"] == ["scheduling"]
