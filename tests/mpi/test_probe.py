"""The probe, driven through its pipes (docs/reference/protocol.md): two ranks of a real MPI on this machine.

No test asserts a rate: the machine may be busy. What is asserted holds on any machine, however slow.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Record = dict[str, Any]

CORES = sorted(os.sched_getaffinity(0))
PATIENCE = 120  # seconds that a busy machine may take for anything

pytestmark = pytest.mark.skipif(len(CORES) < 2, reason="needs two cores: one computes, one communicates")


def executable(variable: str) -> str:
    path = os.environ.get(variable, "")
    if not path or not Path(path).exists():
        pytest.skip(f"{variable} does not name an executable")
    return path


def environment() -> dict[str, str]:
    """Shared memory without single copy, ranks that yield: what a small machine is measured with."""
    return {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_smsc": "^cma,xpmem,knem",
        "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
        "TMPDIR": "/tmp",
        **os.environ,
    }


def probe_command(ranks: int, *options: str) -> list[str]:
    launcher = [executable("ELBOWROOM_MPIRUN"), "--bind-to", "none", "--oversubscribe", "-n", str(ranks)]
    return [*launcher, executable("ELBOWROOM_PROBE"), "measure", *options]


class Probe:
    """One started probe: `ask` sends a request and returns the answer."""

    def __init__(self, ranks: int, *options: str) -> None:
        self.process = subprocess.Popen(
            probe_command(ranks, *options),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        self.hello = self.read()

    def read(self) -> Record:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the probe ended: {self.process.poll()}"
        record: Record = json.loads(line)
        return record

    def send(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def ask(self, **changes: Any) -> Record:
        self.send(json.dumps(request(**changes)))
        return self.read()

    def quit(self) -> int:
        if self.process.poll() is None:
            self.send('{"op": "quit"}')
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
        return code


def request(**changes: Any) -> Record:
    """A small valid request; `changes` replaces fields."""
    return {
        "op": "measure",
        "point": "a point",
        "repetition": 1,
        "sequence": ["B"],
        "kernel": "triad",
        "cursor": 1,
        "comp_cores": [CORES[1]],
        "comp_node": 0,
        "computing_ranks": "first",
        "working_set": 16 << 20,
        "pattern": "pingpong",
        "size": 4096,
        "comm_node": 0,
        "comm_cores": [CORES[0]],
        "peer_cores": [CORES[0]],
        "reuse": "same",
        "metric": "bandwidth",
        "window": 0.02,
        "steady": {"window": 3, "cov": 0.5, "limit": 0.2},
    } | changes


def sound(phase: Record) -> bool:
    """True unless a rule was broken. On a busy machine a computing thread may not run at all during a short
    window, flagged as `too_short`.
    """
    return phase["status"] in {"ok", "not_stable"} or set(phase["flags"]) & VOIDING == {"too_short"}


VOIDING = {"too_short", "not_overlapped", "validation_failed", "wrong_node"}


def ask_until_sound(probe: Probe, **changes: Any) -> Record:
    """The first answer whose phases are all sound, or the third: on a busy machine a computing thread may not
    run at both ends of a short window, flagged as `not_overlapped`.
    """
    for _ in range(3):
        answer = probe.ask(**changes)
        if all(sound(phase) for phase in answer.get("phases", ())):
            break
    return answer


@pytest.fixture(scope="module")
def probe() -> Iterator[Probe]:
    started = Probe(2)
    yield started
    assert started.quit() == 0


@pytest.fixture
def own_probe() -> Iterator[Callable[..., Probe]]:
    started: list[Probe] = []

    def start(ranks: int, *options: str) -> Probe:
        started.append(Probe(ranks, *options))
        return started[-1]

    yield start
    for each in started:
        each.quit()


def test_hello_tells_ranks_library_and_clock(probe: Probe) -> None:
    hello = probe.hello
    assert hello["record"] == "hello"
    assert hello["protocol"] == 1
    assert [rank["rank"] for rank in hello["ranks"]] == [0, 1]
    assert len({rank["pid"] for rank in hello["ranks"]}) == 2
    assert hello["mpi"]["library"]
    assert "\x00" not in hello["mpi"]["library"]
    assert hello["mpi"]["transport"] in {"shm", "shm+cma", "tcp", "verbs", "unknown"}
    assert hello["build"]["compiler"].split()[0] in {"GNU", "Clang"}
    assert "-O" in hello["build"]["flags"]
    assert hello["clock"]["source"] in {"tsc", "CLOCK_MONOTONIC_RAW"}
    assert hello["clock"]["call_ns"] > 0
    assert {"prime", "triad"} <= {kernel["name"] for kernel in hello["kernels"]}


def test_the_library_lies_below_the_prefix_told(probe: Probe) -> None:
    prefix = Path(probe.hello["mpi"]["prefix"])
    maps = Path(f"/proc/{probe.hello['ranks'][0]['pid']}/maps").read_text()
    library = next(line.split()[-1] for line in maps.splitlines() if "/libmpi" in line)
    assert Path(library).is_relative_to(prefix)


def test_the_hwloc_in_use_is_the_systems_with_pci_and_xml(probe: Probe) -> None:
    assert probe.hello["hwloc"]["pci"] is True
    assert probe.hello["hwloc"]["xml"] is True
    maps = Path(f"/proc/{probe.hello['ranks'][0]['pid']}/maps").read_text()
    loaded = {line.split()[-1] for line in maps.splitlines() if "libhwloc" in line}
    assert not any("/openmpi/" in path for path in loaded)


def test_a_transport_without_single_copy_is_told_as_such(
    own_probe: Callable[..., Probe], monkeypatch: pytest.MonkeyPatch
) -> None:
    version = subprocess.run(
        [executable("ELBOWROOM_MPIRUN"), "--version"], capture_output=True, text=True, env=environment()
    )
    if "Open MPI" not in version.stdout:
        pytest.skip("the names of the parameters are Open MPI's")
    if " 4." in version.stdout:
        monkeypatch.setenv("OMPI_MCA_btl", "self,vader")
        monkeypatch.setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none")
    else:
        monkeypatch.setenv("OMPI_MCA_btl", "self,sm")
        monkeypatch.setenv("OMPI_MCA_smsc", "^cma,xpmem,knem")
    assert own_probe(2).hello["mpi"]["transport"] == "shm"


def test_a_transport_over_tcp_is_told_as_such(
    own_probe: Callable[..., Probe], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMPI_MCA_btl", "self,tcp")
    monkeypatch.setenv("OMPI_MCA_btl_tcp_if_include", "lo")  # a host without a network has no other
    started = own_probe(2)
    if "Open MPI" not in started.hello["mpi"]["library"]:
        pytest.skip("the names of the parameters are Open MPI's")
    assert started.hello["mpi"]["transport"] == "tcp"


def test_a_whole_repetition_has_every_phase_with_its_sides(probe: Probe) -> None:
    answer = ask_until_sound(probe, sequence=["A", "B", "AB", "AB", "B", "A", "S"])
    assert answer["record"] == "repetition"
    assert (answer["point"], answer["repetition"]) == ("a point", 1)
    assert [phase["phase"] for phase in answer["phases"]] == ["A", "B", "AB", "AB", "B", "A", "S"]
    assert [phase["index"] for phase in answer["phases"]] == list(range(7))
    for phase in answer["phases"]:
        assert ("comp" in phase) == ("A" in phase["phase"])
        assert ("comm" in phase) == ("B" in phase["phase"])
        assert sound(phase)
        assert phase["start_ns"] < phase["end_ns"]
        assert 0.02 <= phase["measured_s"] <= (phase["end_ns"] - phase["start_ns"]) / 1e9
    assert answer["validated"] is True


def test_numbers_of_a_phase_agree_with_one_another(probe: Probe) -> None:
    phase = probe.ask(sequence=["AB"])["phases"][0]
    comm = phase["comm"]
    assert comm["unit"] == "MB/s"
    assert comm["bytes"] == comm["messages"] * 4096
    assert min(comm["batches"]) * 0.999 <= comm["value"] <= max(comm["batches"]) * 1.001
    comp = phase["comp"]
    assert comp["unit"] == "MB/s"
    assert comp["rate"] == pytest.approx(sum(comp["per_core"]), rel=1e-4)


def test_a_computation_together_is_counted_only_inside_the_window_of_the_communication(probe: Probe) -> None:
    answer = probe.ask(sequence=["AB"])
    phase = answer["phases"][0]
    moved = phase["comp"]["items"] * answer["bytes"]["algorithmic_per_item"] / 1e6
    assert moved <= phase["comp"]["rate"] * phase["measured_s"] * 1.01


def test_items_of_the_whole_phase_hold_those_before_and_after_the_window(probe: Probe) -> None:
    (phase,) = probe.ask(sequence=["A"])["phases"]
    assert phase["comp"]["items_all"] > phase["comp"]["items"]


def test_a_latency_is_half_the_round_trip_in_microseconds(probe: Probe) -> None:
    comm = probe.ask(size=4, metric="latency")["phases"][0]["comm"]
    assert comm["unit"] == "us"
    assert 0 < comm["value"] < 1e6
    assert comm["messages"] % 2 == 0


@pytest.mark.parametrize("pattern", ["pingpong", "receive", "bidirectional", "ring"])
@pytest.mark.parametrize("size", [1, 4, 1001, 70001, 4 << 20])
def test_every_pattern_delivers_valid_messages(probe: Probe, pattern: str, size: int) -> None:
    answer = ask_until_sound(probe, sequence=["B", "AB"], pattern=pattern, size=size)
    assert answer["record"] == "repetition", answer
    assert answer["validated"] is True
    assert [phase for phase in answer["phases"] if not sound(phase)] == []
    assert all(phase["comm"]["value"] > 0 for phase in answer["phases"])


@pytest.mark.parametrize("reuse", ["same", "rotate", "off-cache"])
@pytest.mark.parametrize("pattern", ["pingpong", "receive", "ring"])
def test_every_policy_of_reuse_delivers_valid_messages(probe: Probe, reuse: str, pattern: str) -> None:
    answer = probe.ask(pattern=pattern, reuse=reuse, size=100_000)
    assert answer["validated"] is True
    assert answer["pages"]["comm"]["wanted"] == 0


def test_a_ring_of_three_reports_every_rank(own_probe: Callable[..., Probe]) -> None:
    phase = own_probe(3).ask(pattern="ring", size=65536, sequence=["AB"])["phases"][0]
    assert [rank["rank"] for rank in phase["ranks"]] == [0, 1, 2]
    assert all(rank["comm"]["value"] > 0 for rank in phase["ranks"])
    assert ["comp" in rank for rank in phase["ranks"]] == [True, False, False]


THREADS = {"pattern": "ring", "kernel": "none", "comm_cores": CORES[:2], "peer_cores": CORES[:2]}


def test_a_ring_may_have_several_communication_threads_or_says_why_not(
    own_probe: Callable[..., Probe],
) -> None:
    started = own_probe(2, "--threads", "multiple")
    assert started.hello["mpi"]["thread_level"] == "multiple"
    answer = started.ask(**THREADS, size=65536)
    if started.hello["mpi"]["library"].startswith("Open MPI"):
        assert (answer["record"], answer["field"], answer["kind"]) == ("error", "comm_cores", "machine")
        assert "crash or hang in Open MPI" in answer["message"]
        assert started.ask(size=65536)["validated"] is True
        return
    assert answer["record"] == "repetition", answer
    assert answer["validated"] is True
    assert "shared_comm_core" in answer["flags"]


def test_a_probe_of_one_thread_communicates_and_refuses_to_compute(own_probe: Callable[..., Probe]) -> None:
    started = own_probe(2, "--threads", "single")
    assert started.ask(sequence=["B"], kernel="none")["status"] != "failed"
    answer = started.ask(sequence=["A"], kernel="prime")
    assert (answer["record"], answer["field"]) == ("error", "kernel")


def test_several_communication_threads_are_refused_where_the_mpi_was_not_started_for_them(
    probe: Probe,
) -> None:
    answer = probe.ask(**THREADS)
    assert (answer["record"], answer["field"], answer["kind"]) == ("error", "comm_cores", "machine")
    assert "--threads multiple" in answer["hint"]


def test_a_probe_that_refuses_several_communication_threads_goes_on_with_one(
    own_probe: Callable[..., Probe], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMPI_MCA_smsc", "^xpmem,knem")
    monkeypatch.setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "cma")
    started = own_probe(2, "--threads", "multiple")
    if started.hello["mpi"]["transport"] != "shm+cma":
        pytest.skip("this MPI makes no single copies here")
    answer = started.ask(**THREADS)
    assert (answer["record"], answer["field"], answer["kind"]) == ("error", "comm_cores", "machine")
    assert started.ask(size=1 << 20)["validated"] is True


def test_a_register_only_kernel_needs_no_memory(probe: Probe) -> None:
    answer = probe.ask(kernel="prime", sequence=["A", "AB"], working_set=0)
    assert answer["phases"][0]["comp"]["unit"] == "M/s"
    assert "comp" not in answer["pages"]


def test_communication_alone_needs_no_kernel(probe: Probe) -> None:
    answer = probe.ask(kernel="none", comp_cores=[], sequence=["B", "S"])
    assert [phase["phase"] for phase in answer["phases"]] == ["B", "S"]
    assert "bytes" not in answer


def test_computation_alone_works_on_one_rank(own_probe: Callable[..., Probe]) -> None:
    alone = own_probe(1)
    assert alone.ask(sequence=["A", "S"])["phases"][0]["comp"]["rate"] > 0
    refused = alone.ask(sequence=["B"])
    assert (refused["field"], refused["value"]) == ("ranks", "1")


def test_two_communicating_ranks_on_one_core_are_flagged(probe: Probe) -> None:
    assert "shared_comm_core" in probe.ask()["flags"]


def test_a_core_shared_on_purpose_is_labelled(probe: Probe) -> None:
    shared = {"comp_cores": [CORES[0]], "sequence": ["A", "AB"], "size": 1 << 20, "metric": "bandwidth"}
    assert probe.ask(**shared)["record"] == "error"
    assert "scheduling" in probe.ask(**shared, scheduling=True)["flags"]


def test_a_small_working_set_is_flagged_for_kernels_of_main_memory_only(probe: Probe) -> None:
    small = probe.ask(sequence=["A"], working_set=1 << 16)
    assert "working_set_small" in small["flags"]
    assert (
        "working_set_small"
        not in probe.ask(sequence=["A"], kernel="triad_cache", working_set=1 << 16)["flags"]
    )


def test_pages_are_verified_on_the_node_wanted(probe: Probe) -> None:
    pages = probe.ask(sequence=["AB"])["pages"]
    for side in ("comp", "comm"):
        assert pages[side]["wanted"] == 0
        assert "unknown" in pages[side] or pages[side]["share"] == 1.0


def test_a_corrupted_message_voids_the_phase(probe: Probe) -> None:
    answer = probe.ask(fault="message", sequence=["B", "A"])
    assert answer["validated"] is False
    assert answer["phases"][0]["status"] == "void"
    assert "validation_failed" in answer["phases"][0]["flags"]
    assert sound(answer["phases"][1])
    assert answer["status"] == "failed"
    assert "validation_failed" in answer["reason"]


def test_a_computation_that_ends_before_the_communication_voids_the_phase(probe: Probe) -> None:
    phase = probe.ask(fault="early_stop", sequence=["AB"])["phases"][0]
    assert phase["status"] == "void"
    assert "not_overlapped" in phase["flags"]


def test_an_unreachable_steadiness_is_reported_and_the_whole_phase_counted(probe: Probe) -> None:
    # A thousand samples: three in a row can be equal to the nanosecond, and then they are steady.
    answer = probe.ask(sequence=["A", "B"], steady={"window": 1000, "cov": 1e-12, "limit": 0.1})
    assert answer["status"] == "not_stable"
    assert [phase["status"] for phase in answer["phases"]] == ["not_stable", "not_stable"]
    assert all(phase["measured_s"] >= 0.1 for phase in answer["phases"])


MISSING_CORE = 100_000
OTHER = CORES[-1]

BAD_REQUESTS = [
    ({"kernel": "nonsense", "sequence": ["A"]}, "kernel", "nonsense"),
    ({"pattern": "nonsense"}, "pattern", "nonsense"),
    ({"metric": "nonsense"}, "metric", "nonsense"),
    ({"reuse": "nonsense"}, "reuse", "nonsense"),
    ({"sequence": ["A", "X"]}, "sequence", "X"),
    ({"sequence": []}, "sequence", "[]"),
    ({"kernel": "none", "sequence": ["AB"]}, "kernel", "none"),
    ({"sequence": ["A"], "comp_cores": [MISSING_CORE]}, "comp_cores", str(MISSING_CORE)),
    ({"comm_cores": [MISSING_CORE]}, "comm_cores", str(MISSING_CORE)),
    ({"peer_cores": [MISSING_CORE]}, "comm_cores", str(MISSING_CORE)),
    ({"sequence": ["A"], "comp_cores": [OTHER] * 2}, "comp_cores", str(OTHER)),
    ({"sequence": ["AB"], "comp_cores": [CORES[0]]}, "comm_cores", str(CORES[0])),
    ({"sequence": ["A"], "comp_cores": []}, "comp_cores", ""),
    ({"sequence": ["A"], "comp_node": 77}, "comp_node", "77"),
    ({"comm_node": 77}, "comm_node", "77"),
    ({"size": 0}, "size", "0"),
    ({"size": -1}, "size", "-1"),
    ({"size": 1 << 40}, "size", str(1 << 40)),
    ({"size": "4"}, "size", "4"),
    ({"sequence": ["A"], "working_set": 1}, "working_set", "1"),
    ({"sequence": ["A"], "working_set": 1 << 50}, "working_set", str(1 << 50)),
    ({"cursor": 0}, "cursor", "0"),
    ({"hosts": 2}, "hosts", "2"),
    ({"window": 0}, "window", "0"),
    ({"op": "fly"}, "op", "fly"),
    ({"sequence": ["AB"], "computing_ranks": "all"}, "comp_cores", str(OTHER)),
    ({"sequence": ["AB"], "peer_cores": [OTHER]}, "peer_cores", str(OTHER)),
    ({"pattern": "receive", "metric": "latency"}, "metric", "latency"),
]


@pytest.mark.parametrize(("changes", "field", "value"), BAD_REQUESTS)
def test_a_bad_request_is_answered_with_field_value_and_mend(
    probe: Probe, changes: Record, field: str, value: str
) -> None:
    answer = probe.ask(**changes)
    assert answer["record"] == "error", answer
    assert (answer["field"], answer["value"], answer["kind"]) == (field, value, "usage")
    assert answer["point"] == "a point"
    assert answer["message"]
    assert answer["hint"]


@pytest.mark.parametrize("line", ["{", "[]", "nonsense", '"text"', "{}"])
def test_a_line_that_is_no_request_is_answered_and_the_next_one_works(probe: Probe, line: str) -> None:
    probe.send(line)
    assert probe.read()["record"] == "error"
    assert probe.ask()["record"] == "repetition"


def test_a_killed_rank_ends_the_job_with_an_error(own_probe: Callable[..., Probe]) -> None:
    started = own_probe(2)
    os.kill(started.hello["ranks"][1]["pid"], signal.SIGKILL)
    assert started.process.wait(PATIENCE) != 0


def test_the_ranks_end_when_who_asks_is_killed(tmp_path: Path) -> None:
    """PRRTE does not tell rank 0 that its input has ended, so the probe looks for itself."""
    script = tmp_path / "ask.py"
    script.write_text(
        "import subprocess, sys, time\n"
        f"started = subprocess.Popen({probe_command(2)!r}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "print(started.stdout.readline().decode(), flush=True)\n"
        "time.sleep(1000)\n"
    )
    asking = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment(),
    )
    assert asking.stdout is not None
    pids = [rank["pid"] for rank in json.loads(asking.stdout.readline())["ranks"]]
    asking.stdout.close()
    asking.kill()
    asking.wait()
    deadline = time.monotonic() + PATIENCE
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < deadline, "the ranks still wait for requests"
        time.sleep(0.1)
