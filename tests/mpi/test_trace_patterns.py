"""Patterns of well-known programs: traced they do what they do untraced, and the trace has every call and
message that an independent counter counted.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from counted import build_counter, c_wrapper, read_counts
from elbowroom.launch.mpi import Mpi
from trace_rings import BEGIN
from traced import MPIS, RECEIVE, SEND, Ran, ends, interposer, mpi_called, run

RANKS = 4
PATTERNS = ["cg", "ft", "lu", "mg", "is", "ep", "lulesh", "rma", "persistent", "inter"]


class Pair(NamedTuple):
    """A program without and with the tracer; the traced one was counted, too."""

    alone: Ran
    traced: Ran

    def results(self) -> list[tuple[int, list[str]]]:
        """Exit code and checksums of both."""
        return [
            (ran.code, re.findall(r"^[a-z]+ -?\d+$", ran.said, re.MULTILINE))
            for ran in (self.alone, self.traced)
        ]


@pytest.fixture(scope="module", params=MPIS)
def mpi(request: pytest.FixtureRequest) -> Mpi:
    return mpi_called(request.param)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, mpi: Mpi) -> Path:
    """Holds the program and the counter for this MPI."""
    made = tmp_path_factory.mktemp("patterns")
    source = Path(__file__).with_name("patterns.c")
    subprocess.run([c_wrapper(mpi), "-w", "-O1", "-o", made / "patterns", source, "-lpthread"], check=True)
    build_counter(mpi, made)
    return made


def pair(
    mpi: Mpi, folder: Path, name: str, patterns: list[str], library: Path, categories: str, behind: str = ""
) -> Pair:
    words = [str(folder / "patterns"), *patterns]
    alone = run(mpi, RANKS, words, folder / f"{name}-alone", None)
    where = folder / f"{name}-traced"
    # `env` of the innermost program wins: what is preloaded there is the counter and, behind it, the tracer.
    counted = [f"PMPI_COUNTER={where}", f"LD_PRELOAD={folder / 'libcounter.so'}:{library}{behind}"]
    settings = [f"ELBOW_TRACE_CATEGORIES={categories}", "ELBOW_TRACE_BYTES=8388608"]
    return Pair(alone, run(mpi, RANKS, ["env", *counted, *settings, *words], where, library))


@pytest.fixture(scope="module")
def patterns(mpi: Mpi, folder: Path) -> Pair:
    return pair(mpi, folder, "patterns", PATTERNS, interposer(mpi), "mpi,poll,message")


@pytest.fixture(scope="module")
def threads(mpi: Mpi, folder: Path) -> Pair:
    """Four threads a process, whose requests have each other's handles one after another."""
    found = pair(mpi, folder, "threads", ["threads"], interposer(mpi), "mpi,message,poll")
    if found.alone.code != 0:
        pytest.skip(f"{mpi.name}: threads do not work there, also untraced: {found.alone.said[-300:]}")
    return found


@pytest.fixture(scope="module")
def late_threads(mpi: Mpi, folder: Path, threads: Pair) -> Pair:
    """The same where a thread tells of a request after others have had its handle."""
    late = folder / "liblate.so"
    source = Path(__file__).with_name("late_return.c")
    subprocess.run([c_wrapper(mpi), "-shared", "-fPIC", "-O1", "-o", late, source], check=True)
    return pair(mpi, folder, "late", ["threads"], interposer(mpi), "mpi,message", f":{late}")


def check_calls(ran: Ran) -> None:
    counts = read_counts(ran.folder)
    assert [count.rank for count in counts] == list(range(RANKS))
    for count in counts:
        events = ran.recorded(count.rank).events
        recorded = Counter(event.type for event in events if event.kind == BEGIN)
        assert {name: recorded[name] for name in count.calls} == count.calls
        assert sum(count.calls.values()) > 100


def check_messages(ran: Ran) -> None:
    sent, received = (
        [end for rank in range(RANKS) for end in ends(ran.recorded(rank), rank, kind)]
        for kind in (SEND, RECEIVE)
    )
    # Also their bytes: those of the sender and of the receiver are counted apart.
    assert sorted(sent) == sorted(received)
    for count in read_counts(ran.folder):
        own = [end.bytes for end in sent if end.source == count.rank]
        assert (len(own), sum(own)) == (count.messages, count.bytes)
    assert len(sent) > 1000


def test_a_traced_program_prints_and_exits_as_it_does_untraced(patterns: Pair) -> None:
    alone, traced = patterns.results()
    assert alone == traced, patterns.traced.said
    assert (alone[0], len(alone[1])) == (0, len(PATTERNS)), patterns.alone.said


def test_a_trace_has_every_call_that_was_counted(patterns: Pair) -> None:
    check_calls(patterns.traced)


def test_a_trace_has_every_message_that_was_counted_with_both_ends(patterns: Pair) -> None:
    check_messages(patterns.traced)


def test_threads_that_share_handles_print_and_exit_as_they_do_untraced(threads: Pair) -> None:
    alone, traced = threads.results()
    assert alone == traced, threads.traced.said


def test_calls_of_threads_that_share_handles_are_all_recorded(threads: Pair) -> None:
    check_calls(threads.traced)


def test_messages_of_threads_that_share_handles_are_told_apart(threads: Pair) -> None:
    check_messages(threads.traced)


def test_a_handle_that_a_send_has_from_a_receive_leaves_the_receive_its_message(late_threads: Pair) -> None:
    check_messages(late_threads.traced)
