"""Operations of MPI beside a computation, asked of the probe as docs/reference/protocol.md says.

No test asserts how long anything takes: the machine may be busy.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from elbowroom import cli
from elbowroom.errors import ElbowroomError
from elbowroom.launch.build import probe
from elbowroom.launch.launcher import LaunchRequest
from elbowroom.launch.launchers import build_launch
from elbowroom.launch.mpi import Mpi, find_mpi
from elbowroom.launch.session import Session
from elbowroom.points.calls import COLLECTIVES
from elbowroom.points.unit import Unit
from elbowroom.stats.overlap.measures import OverlapMeasures, measures
from elbowroom.stats.overlap.samples import samples_of
from linked_hosts import NoHostsError, linked_hosts

CORES = sorted(os.sched_getaffinity(0))
PATIENCE = 120.0
OPERATIONS = ("pingpong", "exchange", *COLLECTIVES)
FORMS = ("blocking", "nonblocking", "persistent")

pytestmark = pytest.mark.skipif(len(CORES) < 2, reason="ranks need a core each")

Record = dict[str, Any]
Ask = Callable[..., Record]


def started(
    mpi_name: str | None, ranks: int, *, multiple: bool = False, library: bool = False
) -> Iterator[Ask]:
    """A function that asks `ranks` ranks on this machine, which yield while they wait. `library`: the MPI
    has a progress thread of its own.
    """
    try:
        mpi = find_mpi(mpi_name)
        program = str(probe(mpi)) if mpi_name is None else _probe_of(mpi)
    except ElbowroomError as error:
        pytest.skip(error.sentence())
    arguments = ("measure", "--threads", "multiple") if multiple else ("measure",)
    wanted = LaunchRequest(
        ranks=ranks,
        ranks_per_host=ranks,
        probe=program,
        mpi=mpi,
        arguments=arguments,
        library_progress=library,
    )
    yield from asked(Session(build_launch("local", wanted, {}), ranks=ranks, mpi=mpi), ranks)


def asked(session: Session, ranks: int) -> Iterator[Ask]:
    """A function that asks the ranks of a session, which is closed at the end."""
    numbers = count()

    def ask(
        operation: str, form: str = "nonblocking", *, outside: Record | None = None, **call: Any
    ) -> Record:
        cores = CORES[:ranks]
        shared = {"comp_node": 0, "comm_node": 0}
        places = [
            {"rank": rank, "comp_cores": [core], "comm_cores": [core]} | shared
            for rank, core in enumerate(cores[r % len(cores)] for r in range(ranks))
        ]
        point = f"call {next(numbers)}"
        request = {
            "op": "measure",
            "point": point,
            "repetition": 0,
            "sequence": ["B", "A", "AB"],
            "kernel": "prime",
            "comp_cores": [cores[0]],
            "comm_cores": [cores[0]],
            "computing_ranks": "all",
            "size": 0 if operation == "barrier" else 4096,
            "scheduling": ranks > len(cores),
            "placements": places,
            "overlap": {"operation": operation, "form": form, "iterations": 3} | call,
        }
        return session.ask(Unit(point=point, repetition=0), request | shared | (outside or {}), PATIENCE)

    try:
        yield ask
    finally:
        session.close()


def _probe_of(mpi: Mpi) -> str:
    """The probe of another MPI than the embedded one, which ELBOWROOM_PROBE names; built once if there is
    none, unless ELBOWROOM_MPICH_PROBE names it.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("ELBOWROOM_PROBE", raising=False)
        return os.environ.get("ELBOWROOM_MPICH_PROBE") or str(probe(mpi))


@pytest.fixture(scope="module")
def openmpi() -> Iterator[Ask]:
    yield from started(None, 2)


@pytest.fixture
def slow_link(tmp_path: Path) -> Iterator[Ask]:
    """Two ranks on two hosts, and a link of 100 Mbit/s between them."""
    mpi = find_mpi()
    try:
        with linked_hosts(tmp_path, "ab") as hosts:
            for name in "ab":
                hosts.limit(name, 100)
            wanted = LaunchRequest(
                ranks=2,
                ranks_per_host=1,
                probe=str(probe(mpi)),
                mpi=mpi,
                hosts=tuple(hosts.addresses.values()),
            )
            launch = hosts.on_first(build_launch("mpiexec", wanted, {}))
            yield from asked(Session(launch, ranks=2, mpi=mpi), ranks=2)
    except NoHostsError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def four() -> Iterator[Ask]:
    yield from started(None, 4)


@pytest.fixture(scope="module")
def mpich() -> Iterator[Ask]:
    yield from started("mpich", 2, multiple=True)


def sound(answer: Record, ranks: int = 2, iterations: int = 3) -> Record:
    """The times of a repetition of which all holds that does not depend on how busy the machine is."""
    assert answer["record"] == "repetition", answer
    assert answer["validated"] is True
    assert [phase["phase"] for phase in answer["phases"]] == ["B", "A", "AB"]
    times: Record = answer["overlap"]
    assert times["clock_bound"] >= 0
    for kind in ("message", "computation", "together"):
        assert len(times[kind]["enter"]) == iterations
        assert all(len(row) == ranks for row in times[kind]["enter"])
    columns = (times["together"][name] for name in ("enter", "posted", "computed", "leave"))
    for row in zip(*columns, strict=True):
        assert all(a <= b <= c <= d for a, b, c, d in zip(*row, strict=True))
    return times


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_ends_in_every_form_with_the_right_result(
    openmpi: Ask, operation: str, form: str
) -> None:
    answer = openmpi(operation, form)
    if "record" in answer and answer["record"] == "error":  # an MPI without persistent collectives
        assert (form, answer["field"]) == ("persistent", "overlap.form")
        return
    sound(answer)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_four_ranks_get_the_right_result(four: Ask, operation: str, form: str) -> None:
    answer = four(operation, form)
    sound(answer, ranks=4)
    assert ("scheduling" in answer["flags"]) == (len(CORES) < 4)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_mpich_gets_the_right_result(mpich: Ask, operation: str, form: str) -> None:
    if (operation, form) == ("allgather", "persistent"):
        pytest.skip("crashes, or gives wrong results, with MPICH 4.0 (launch.mpi.refused_persistent)")
    sound(mpich(operation, form))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_tests_while_computing_are_counted_and_timed(openmpi: Ask, operation: str) -> None:
    times = sound(openmpi(operation, progress="test", period=1e-6, ratio=20.0))["together"]
    assert all(tests > 0 for row in times["tests"] for tests in row)
    assert all(spent > 0 for row in times["tests_s"] for spent in row)


@pytest.mark.parametrize("operation", [name for name in OPERATIONS if name != "barrier"])
@pytest.mark.parametrize("form", FORMS)
def test_a_wrong_result_is_detected(openmpi: Ask, operation: str, form: str) -> None:
    answer = openmpi(operation, form, outside={"fault": "message"})
    assert answer["validated"] is False
    assert answer["status"] == "failed"


@pytest.mark.parametrize("rank", [0, 1])
def test_a_late_rank_arrives_late_in_the_samples(openmpi: Ask, rank: int) -> None:
    times = sound(openmpi("allreduce", late={"rank": rank, "seconds": 0.02}))
    for kind in ("message", "together"):
        later = [row[rank] - row[1 - rank] for row in times[kind]["enter"]]
        # Another process may hold up the rank that is on time.
        assert sorted(later)[1] > 0.01


def test_numbers_of_neighbours_up_to_all_of_a_cube_are_exchanged(four: Ask) -> None:
    for neighbours in (2, 5, 26):
        sound(four("exchange", neighbours=neighbours), ranks=4)


def test_what_is_recorded_has_all_numbers_of_an_overlap(openmpi: Ask) -> None:
    found = measures(samples_of([sound(openmpi("allreduce", iterations=9), iterations=9)]))
    assert found.message.value > 0
    assert found.computation.value > 0


def test_a_progress_thread_is_refused_without_mpi_thread_multiple(openmpi: Ask) -> None:
    places = [{"rank": rank, "comp_cores": [CORES[0]], "comm_cores": [CORES[0]]} for rank in (0, 1)]
    outside = {"placements": places, "scheduling": True}
    answer = openmpi("allreduce", progress="thread", progress_cores=[CORES[1]] * 2, outside=outside)
    assert answer["record"] == "error"
    assert answer["field"] == "overlap.progress"
    assert "MPI_THREAD_MULTIPLE" in answer["message"]


@pytest.mark.parametrize("operation", ["pingpong", "allreduce"])
def test_a_progress_thread_completes_operations(mpich: Ask, operation: str) -> None:
    """Both ranks compute on one core, so that another is left for their progress threads."""
    places = [
        {"rank": rank, "comp_cores": [CORES[0]], "comm_cores": [CORES[0]], "comp_node": 0, "comm_node": 0}
        for rank in (0, 1)
    ]
    answer = mpich(
        operation,
        progress="thread",
        progress_cores=[CORES[1], CORES[1]],
        outside={"placements": places, "scheduling": True},
    )
    sound(answer)


def measured(ask: Ask, operation: str, size: int, **call: Any) -> OverlapMeasures:
    """What 30 iterations say."""
    answer = ask(operation, outside={"size": size}, iterations=30, **call)
    return measures(samples_of([sound(answer, iterations=30)]))


@pytest.mark.alone
@pytest.mark.parametrize("operation", ["exchange", "allreduce"])
def test_a_message_that_nobody_advances_is_lost_for_want_of_progress(openmpi: Ask, operation: str) -> None:
    """Another program may hold up some of the five: three of them say so."""
    reasons: list[str] = []
    while len(reasons) < 5 and reasons.count("no_progress") < 3:
        reasons.append(measured(openmpi, operation, 2**20, ratio=2.0).reason)
    assert reasons.count("no_progress") == 3, reasons


@pytest.mark.alone
def test_calls_of_mpi_test_make_a_message_proceed(slow_link: Ask) -> None:
    """Over a link, where data that wait for a call are on their way once it was made; in shared memory the
    calls copy them themselves, which takes as long as it hides. The better of two: another program may hold
    one up.
    """

    def overlap(**call: Any) -> float:
        return measured(slow_link, "exchange", 2**17, neighbours=2, ratio=1.0, **call).overlap.value

    assert max(overlap(progress="test", period=2e-5) for _ in range(2)) > overlap()


@pytest.mark.alone
def test_a_link_slower_than_the_computation_is_the_reason(slow_link: Ask) -> None:
    """A token bucket lets the few messages of the calibration pass faster than those that follow."""
    assert any(
        measured(slow_link, "exchange", 2**17, neighbours=2, ratio=0.3).reason == "tail" for _ in range(3)
    )


@pytest.mark.parametrize("operation", ["exchange", "allreduce"])
def test_the_progress_thread_of_mpich_completes_operations(operation: str) -> None:
    """Both ranks and the threads of the library share two cores here, so only completion is tested."""
    for ask in started("mpich", 2, multiple=True, library=True):
        sound(ask(operation, progress="library", outside={"scheduling": True}))


def test_a_run_prints_the_numbers_of_each_overlap(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    settings = ("operations=allreduce,barrier", "forms=nonblocking", "progress=none,test", "control=false")
    words = [word for setting in settings for word in ("--set", setting)]
    out = str(tmp_path / "r")
    run = ["run", "collectives", "--sizes", "1KiB", "--set", "window=0.002", *words, "--repeat", "2"]
    code = cli.run([*run, "--out", out, "--json"])
    printed = capfd.readouterr()
    assert code in (0, 3), printed.err
    shown = json.loads(printed.out)
    assert len(shown["points"]) == 4
    for point in shown["points"]:
        assert isinstance(point["overlap"], float)
        assert point["osu_overlap"] >= 0
        assert isinstance(point["fraction_of_ideal"], float)
        assert point["reason"] in ("contention", "no_progress", "late", "tail", "none")
    assert (tmp_path / "r" / "report.html").is_file()
