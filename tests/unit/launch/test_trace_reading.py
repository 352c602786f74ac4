"""What is said of traces that are not what they should be, with the real reader."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trace_stand_ins
from elbowroom import api, cli
from elbowroom.errors import ElbowroomError
from elbowroom.launch import build
from made_rings import BEGIN, COUNTER, END, EVENT, RECEIVE, SEND, MadeRank


@pytest.fixture(scope="module")
def reader() -> Path:
    try:
        return build.trace_reader()
    except ElbowroomError as error:
        pytest.skip(f"the reader of traces cannot be built here: {error}")


def two_ranks(folder: Path, *, lost: int = 0, received: int = 4096) -> Path:
    """Two ranks with a call around a message, whose receive has `received` bytes; rank 1 lost `lost`
    events.
    """
    for number in (0, 1):
        rank = MadeRank(number, 2)
        call = rank.type("MPI_Send" if number == 0 else "MPI_Recv", "mpi", ("peer", "bytes", None))
        message = rank.type("message", "message")
        thread = rank.thread(b"main")
        rank.sync(0, 0)
        rank.sync(10**9, 0)
        rank.add(thread, 1000, call, BEGIN, 1 - number, 4096)
        kind, size = (SEND, 4096) if number == 0 else (RECEIVE, received)
        rank.add(thread, 2000 + 5000 * number, message, kind, 3, 1 - number, 1 << 40 | size)
        rank.add(thread, 9000, call, END, 1 - number, 4096)
        if lost and number == 1:
            for time in range(61):  # until the ring is full
                rank.add(thread, 9001 + time, call, EVENT)
            rank.lost[thread] = lost
        rank.write(folder)
    return folder


def said(capfd: pytest.CaptureFixture[str], *words: str | Path, code: int) -> str:
    assert cli.run(["trace", *map(str, words)]) == code
    return " ".join(capfd.readouterr().out.split())


@pytest.mark.usefixtures("reader")
class TestVerdicts:
    def test_a_whole_trace_can_be_trusted(self, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        assert "its times can be trusted" in said(capfd, "check", two_ranks(tmp_path / "t"), code=0)

    def test_a_trace_that_lost_most_of_its_events_cannot(
        self, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        trace = two_ranks(tmp_path / "t", lost=1536)
        for command in ("check", "stat"):
            found = said(capfd, command, trace, code=3)
            assert (
                "its times cannot be trusted: rank 1 lost 96 % of its events (1536 of 1600); record again"
                in found
            )
        assert said(capfd, "merge", trace, "-o", tmp_path / "o.json", code=3)

    def test_ends_of_different_sizes_point_to_threads_and_not_to_clocks(
        self, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        found = said(capfd, "check", two_ranks(tmp_path / "t", received=100), code=3)
        assert "1 of 1 messages are received with another size than they were sent with" in found
        assert "threads that share requests (MPI_THREAD_MULTIPLE) are the likely cause" in found

    @pytest.mark.parametrize("command", ["stat", "sync"])
    def test_what_is_told_of_a_damaged_trace_says_so(
        self, tmp_path: Path, capfd: pytest.CaptureFixture[str], command: str
    ) -> None:
        trace = two_ranks(tmp_path / "t")
        ring = trace / "rank-00001.thread-00000.ring"
        ring.write_bytes(ring.read_bytes()[:-40])
        found = said(capfd, command, trace, code=3)
        assert "its times cannot be trusted: files are damaged: rank-00001.thread-00000.ring:" in found
        documents = json.loads(said(capfd, command, trace, "--json", code=3))
        assert documents["doubts"]

    def test_a_call_is_counted_once_with_its_mean_maximum_and_bytes(
        self, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        trace = two_ranks(tmp_path / "t")
        stat = api.trace_stat(trace)
        send = next(one for one in stat.types if one.name == "MPI_Send")
        assert (send.events, send.calls, send.whole, send.total_ns) == (2, 1, 1, 8000)
        assert (send.longest_ns, send.bytes) == (8000, 4096)
        row = said(capfd, "stat", trace, code=0).split("MPI_Send", 1)[1].split("MPI_Recv", 1)[0]
        assert row.split()[:2] == ["mpi", "1"]


def long_call(folder: Path) -> Path:
    """A rank that is in one call for a ms, with a counter, and an event of a step each 100 us."""
    rank = MadeRank(0, 1)
    call = rank.type("solve", "work", ("block", "task", None))
    step, power = rank.type("step", "work"), rank.type("power", "energy", ("socket", "watt", None))
    thread = rank.thread(b"main")
    rank.add(thread, 1000, call, BEGIN, 5, 77)
    rank.add(thread, 1001, power, COUNTER, 0, 42)
    for number in range(10):
        rank.add(thread, 51_000 + 100_000 * number, step, EVENT)
    rank.add(thread, 1_001_000, call, END, 5, 77)
    rank.write(folder)
    return folder


def facts_of(page: Path) -> dict[str, Any]:
    match = re.search(r'<script[^>]*id="facts"[^>]*>(.*?)</script>', page.read_text(), re.DOTALL)
    assert match is not None
    facts: dict[str, Any] = json.loads(match[1])
    return facts


@pytest.mark.usefixtures("reader")
def test_a_timeline_of_a_part_inside_a_long_call_shows_that_call(tmp_path: Path) -> None:
    page = tmp_path / "o.html"
    api.merge_trace(long_call(tmp_path / "t"), page, begin_s=0.0002, end_s=0.0003)
    facts = facts_of(page)
    assert (facts["from"], facts["until"]) == (200_000, 300_000)
    assert facts["events"] == 4  # the call's cut begin and end, the counter's value, one step
    assert "12 events outside are left out" in page.read_text()
    assert "1 rank · 1 thread · 1 event · 0 messages · 0.1 ms" in page.read_text()


def many(folder: Path, events: int) -> Path:
    """A rank with so many events."""
    rank = MadeRank(0, 1)
    step = rank.type("step", "work")
    thread = rank.thread(b"main")
    slots = np.zeros(events, dtype=[("time", "<u8"), ("type", "<u2"), ("rest", "V22")])
    slots["time"] = 1000 + 10 * np.arange(events)
    slots["type"] = step
    raw = slots.tobytes()
    rank.threads[thread][1].extend(raw[at : at + 32] for at in range(0, len(raw), 32))
    rank.write(folder)
    return folder


def test_a_merge_that_is_ended_leaves_nothing_of_its_output(reader: Path, tmp_path: Path) -> None:
    trace, out = many(tmp_path / "t", 500_000), tmp_path / "out"
    for to in ("json", "otf2"):
        out.mkdir()
        process = subprocess.Popen(
            [reader, "merge", trace, "--to", to, "-o", out / "o"], stdout=subprocess.DEVNULL
        )
        while process.poll() is None and not list(out.iterdir()):
            time.sleep(0.001)
        process.terminate()
        code = process.wait(60)
        assert not list(out.glob("*.part-*"))
        # On a very busy machine it may have been done before the signal.
        assert code in (-signal.SIGTERM, 0)
        assert (out / "o").exists() == (code == 0)
        subprocess.run(["rm", "-r", out], check=True)


@pytest.mark.usefixtures("reader")
def test_what_a_shell_has_opened_is_written_into(tmp_path: Path) -> None:
    got: list[bytes] = []
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb") as pipe:
        thread = threading.Thread(target=lambda: got.append(pipe.read()))
        thread.start()
        try:
            api.merge_trace(long_call(tmp_path / "t"), f"/dev/fd/{write_end}", format="paje")
        finally:
            os.close(write_end)
            thread.join()
    assert b"%EventDef" in got[0]


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize(("more", "report"), [([], "13 events of 1 ranks"), (["--json"], '"trusted": true')])
def test_a_merge_to_stdout_prints_its_report_on_stderr(tmp_path: Path, more: list[str], report: str) -> None:
    words = ["trace", "merge", str(long_call(tmp_path / "t")), "-o", "-", "--format", "paje", *more]
    done = subprocess.run(
        [sys.executable, "-m", "elbowroom", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("%EventDef")
    assert report in done.stderr
    assert report not in done.stdout


def ended(words: list[str], folder: Path, ready: Path) -> int:
    """The exit code of `elbowroom WORDS` in `folder`, ended with SIGTERM once `ready` is there."""
    with subprocess.Popen(
        [sys.executable, "-m", "elbowroom", *words], cwd=folder, stderr=subprocess.DEVNULL
    ) as process:
        while process.poll() is None and not ready.exists():
            time.sleep(0.01)
        process.terminate()
        return process.wait(60)


def test_measuring_what_recording_costs_ends_its_program_when_it_is_ended(tmp_path: Path) -> None:
    ready = tmp_path / "pid"
    app = trace_stand_ins.script(
        tmp_path / "app",
        "import os, time\n"
        f"with open({str(tmp_path / 'new')!r}, 'w') as file:\n    file.write(str(os.getpid()))\n"
        f"os.rename({str(tmp_path / 'new')!r}, {str(ready)!r})\n"
        "time.sleep(300)\n",
    )
    work = tmp_path / "work"
    work.mkdir()
    assert ended(["trace", "overhead", "--", str(app)], work, ready) == 1
    number = int(ready.read_text())
    limit = time.monotonic() + 10
    while Path(f"/proc/{number}").exists() and time.monotonic() < limit:
        time.sleep(0.01)
    assert not Path(f"/proc/{number}").exists()
    assert not list(work.iterdir())


def test_a_merge_whose_command_is_ended_ends_its_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader removes what it has written when it is told to end."""
    told, ready = tmp_path / "told", tmp_path / "ready"
    reader = trace_stand_ins.script(
        tmp_path / "trace-reader",
        "import os, signal, sys, time\n"
        f"def end(*_):\n    open({str(told)!r}, 'w').close()\n    sys.exit(1)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        f"open({str(ready)!r}, 'w').close()\n"
        "time.sleep(300)\n",
    )
    monkeypatch.setenv("ELBOWROOM_TRACE_READER", str(reader))
    trace_stand_ins.recorded(tmp_path / "t")
    assert ended(["trace", "merge", "t", "-o", "o.json"], tmp_path, ready) == 1
    assert told.exists()
