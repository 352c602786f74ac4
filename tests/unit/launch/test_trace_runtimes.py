"""The adapters to StarPU and OpenMP (lib/trace/adapters), preloaded into small programs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from elbowroom.errors import ElbowroomError
from elbowroom.launch import build, starpu
from elbowroom.launch.mpi import find_mpi
from trace_rings import BEGIN, END, EVENT, Event, Recorded, read_rings

SOURCES = Path(__file__).parents[2] / "data"
PATIENCE = 120  # seconds that a busy machine may take for anything

DATA = {
    "chain 1": {"chain 0"},
    "chain 2": {"chain 1"},
    "diamond 1": {"diamond 0"},
    "diamond 2": {"diamond 0"},
    "diamond 3": {"diamond 1", "diamond 2"},
    "read 0": {"write 0"},
    "read 1": {"write 0"},
    "write 1": {"read 0", "read 1"},
    "commute 0": {"write 1"},
    "commute 1": {"write 1"},
    "read 2": {"commute 0", "commute 1"},
    "twice": {"read 2"},
    "after twice": {"twice"},
    "total": {"add 0", "add 1", "add 2"},
}
"""What each task of the program waits for by the data it uses."""
REDUCTION = "redux_task_between_replicates"
SAID = {"third": {"first", "second"}, "empty": {"third"}, "last": {"empty"}, "late": {"early"}}
"""The same of what the program declares, tags included."""


@pytest.fixture(scope="module")
def libraries() -> Path:
    try:
        return build.trace_libraries(find_mpi())  # the same as for traced jobs: built once
    except ElbowroomError as error:
        pytest.skip(error.sentence())


def run(command: list[str], folder: Path, **environment: str) -> str:
    """What a program says; its trace lies in `folder`/trace."""
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, "ELBOW_TRACE_DIRECTORY": str(folder / "trace")} | environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module", autouse=True)
def _starpu_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Where StarPU keeps what it measures of a machine, once for all programs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STARPU_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(scope="module")
def starpu_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not starpu.installed("starpu-1.3"):
        pytest.skip("StarPU 1.3 is not installed (Debian: libstarpu-dev)")
    program = tmp_path_factory.mktemp("starpu") / "tasks"
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "starpu-1.3"], capture_output=True, text=True, check=True
    )
    source = str(SOURCES / "trace_starpu.c")
    subprocess.run(["cc", "-o", str(program), source, *flags.stdout.split(), "-pthread"], check=True)
    return program


class Traced:
    """A traced run of the program over StarPU: what it said, and what was recorded."""

    def __init__(self, said: str, recorded: Recorded) -> None:
        self.said = said
        self.recorded = recorded
        self.names = {key: text for (_, key), text in recorded.texts.items()}
        self.tasks = [event for event in recorded.events if event.category == "task"]

    def waits(self) -> dict[str, set[str]]:
        """Which tasks each task waits for, by their names."""
        found: dict[str, set[str]] = {}
        for event in self.recorded.of("dependency"):
            found.setdefault(self.names[event.second], set()).add(self.names[event.first])
        return found

    def ends(self, kind: int) -> list[Event]:
        """The beginnings or ends of tasks."""
        return [event for event in self.tasks if event.kind == kind]


@pytest.fixture(scope="module")
def traced(libraries: Path, starpu_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Traced:
    folder = tmp_path_factory.mktemp("traced")
    said = run([str(starpu_program)], folder, LD_PRELOAD=str(libraries / "libelbow_trace_starpu.so"))
    return Traced(said, read_rings(folder / "trace"))


def test_a_traced_program_over_starpu_computes_and_calls_back_as_before(traced: Traced) -> None:
    assert traced.said.startswith("ran 132 callbacks 2 prologues 2 pops 1 total 3 many 50 50\n")


def test_each_task_is_submitted_once_ready_once_begun_once_and_ended_once(traced: Traced) -> None:
    submitted = Counter(event.first for event in traced.recorded.of("submit"))
    assert set(submitted.values()) == {1}
    (refused,) = traced.recorded.of("refused")
    assert traced.names[refused.first] == "refused"
    done = submitted - Counter([refused.first])
    assert Counter(event.first for event in traced.recorded.of("ready")) == done
    assert Counter(event.first for event in traced.ends(BEGIN)) == done
    assert Counter(event.first for event in traced.ends(END)) == done
    # 132 functions that count themselves, the reductions that StarPU submits, and an empty task.
    reductions = traced.recorded.of("sum", BEGIN)
    assert len(reductions) >= 1
    assert len(done) == 132 + len(reductions) + 1


def test_tasks_run_on_the_threads_that_starpu_calls_its_workers(traced: Traced) -> None:
    assert "CPU 0" in traced.recorded.threads
    for event in traced.tasks:
        if event.kind in (BEGIN, END) and event.type != "empty task":
            assert event.thread == f"CPU {event.small}"


def test_a_task_begins_when_it_is_ready_and_after_all_that_it_waits_for_have_ended(traced: Traced) -> None:
    begun = {event.first: event.time for event in traced.ends(BEGIN)}
    ended = {event.first: event.time for event in traced.ends(END)}
    ready = {event.first: event.time for event in traced.recorded.of("ready")}
    assert all(ready[task] < time for task, time in begun.items())
    for event in traced.recorded.of("dependency"):
        assert ended[event.first] < begun[event.second]


def test_tasks_wait_for_those_that_used_their_data_before_as_starpu_says(traced: Traced) -> None:
    waits = traced.waits()
    assert waits.pop("many") == {"many"}
    # Reductions that StarPU submits wait for each other, as many as there were workers that added.
    assert waits.pop(REDUCTION, {REDUCTION}) == {REDUCTION}
    assert waits == DATA | SAID
    chains = [event for event in traced.recorded.of("dependency") if traced.names[event.first] == "many"]
    assert len(chains) == 2 * 49


def test_types_are_codelets_and_names_are_the_tasks_own(traced: Traced) -> None:
    types = {event.type for event in traced.ends(BEGIN)}
    assert types == {"any", "increment", "sum", "plain", "both", "task", "empty task"}
    assert sum(name == "again" for name in traced.names.values()) == 2


def test_the_scheduler_pushes_and_pops_each_task_where_its_categories_are_named(
    libraries: Path, starpu_program: Path, traced: Traced, tmp_path: Path
) -> None:
    preload = str(libraries / "libelbow_trace_starpu.so")
    named = "task,starpu,scheduler,idle"
    said = run([str(starpu_program)], tmp_path, LD_PRELOAD=preload, ELBOW_TRACE_CATEGORIES=named)
    assert said.startswith("ran 132 callbacks")
    recorded = read_rings(tmp_path / "trace")
    pushed = {event.first for event in recorded.of("push", BEGIN)}
    popped = [event.first for event in recorded.of("pop") if event.first]
    begun = {event.first for event in recorded.events if event.category == "task" and event.kind == BEGIN}
    assert len(pushed) > 100
    assert set(popped) == pushed <= begun
    assert len(popped) == len(pushed)
    assert recorded.of("idle", BEGIN)
    assert not traced.recorded.of("push")


def test_registered_data_have_their_bytes(traced: Traced) -> None:
    assert {event.first for event in traced.recorded.of("register data")} == {4}  # of an int


@pytest.fixture(scope="module")
def described(libraries: Path, starpu_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """The trace of a program that says more of its tasks, and moves data, with all categories named."""
    folder = tmp_path_factory.mktemp("described")
    (folder / "disk").mkdir()
    run(
        [str(starpu_program), "data", str(folder / "disk")],
        folder,
        LD_PRELOAD=str(libraries / "libelbow_trace_starpu.so"),
        ELBOW_TRACE_CATEGORIES="task,starpu,scheduler,idle,data",
        STARPU_LIMIT_MAX_SUBMITTED_TASKS="4",
        STARPU_LIMIT_MIN_SUBMITTED_TASKS="2",
        STARPU_SCHED="lws",
    )
    return read_rings(folder / "trace")


def test_tasks_have_the_colour_and_the_iteration_that_the_program_gave_them(described: Recorded) -> None:
    submitted = [event.first for event in described.of("submit")][:12]
    assert {event.small for event in described.of("colour")} == {0xFF8000}
    assert [event.first for event in described.of("colour")] == submitted
    assert {event.first: event.second for event in described.of("iteration")} == {
        task: 10 + place // 4 for place, task in enumerate(submitted)
    }


def test_throttled_submission_is_a_wait_of_the_application(described: Recorded) -> None:
    begun = described.of("wait for fewer tasks", BEGIN)
    assert begun
    assert not any(event.thread.startswith("CPU") for event in begun)


def test_data_have_numbers_by_which_tasks_use_workers_fetch_and_copies_move_them(described: Recorded) -> None:
    (registered,) = described.of("register data")
    assert (registered.first, registered.second) == (1 << 20, 1)
    assert {text for (_, key), text in described.texts.items() if key == 1} >= {"vector"}
    used = described.of("use")
    assert [event.first for event in used] == [event.first for event in described.of("submit")]
    assert [event.small for event in used] == [1] * 12 + [2, 1, 1]  # read, written
    assert {event.second for event in used} == {1}
    fetched = described.of("fetch inputs", BEGIN)
    assert {event.first for event in fetched} == {event.first for event in used}
    assert all(event.thread.startswith("CPU") for event in fetched)
    copied = [
        (event.small >> 16, event.small & 0xFFFF) for event in described.of("copy", BEGIN) if event.second
    ]
    assert (0, 1) in copied  # to the disk
    assert {event.first for event in described.of("allocate") if event.small == 1} == {1 << 20}
    assert [event.first for event in described.of("unregister data", BEGIN)] == [1]


def test_idle_workers_have_the_cpu_time_of_their_polling(described: Recorded) -> None:
    ended = described.of("idle", END)
    assert ended
    assert all(event.thread.startswith("CPU") for event in ended)
    assert all(0 < event.first < PATIENCE * 10**9 for event in ended)


def test_a_task_that_another_worker_made_ready_is_stolen(described: Recorded) -> None:
    pushed, popped = (
        [event for event in described.of(name, kind) if event.first]
        for name, kind in (("push", BEGIN), ("pop", EVENT))
    )
    assert len(pushed) == len(popped) == 15
    assert all(1 <= event.second <= 12 for event in pushed)
    assert popped[-1].second == 0  # none is queued any more
    (stolen,) = described.of("steal")
    assert {stolen.small, stolen.second} == {0, 1}
    assert stolen.first in {event.first for event in described.of("meet", BEGIN)}


def test_waiting_in_starpu_is_recorded_on_the_thread_that_waits(traced: Traced) -> None:
    for name in ("wait for all tasks", "wait for a task", "wait for a tag", "unregister data", "shut down"):
        begun, ended = traced.recorded.of(name, BEGIN), traced.recorded.of(name, END)
        assert len(begun) == len(ended) > 0
        assert not any(event.thread.startswith("CPU") for event in begun)


def test_the_graph_is_that_of_starpu_itself(libraries: Path, starpu_program: Path, tmp_path: Path) -> None:
    graph = tmp_path / "graph.dot"
    preload = str(libraries / "libelbow_trace_starpu.so")
    run([str(starpu_program), str(graph)], tmp_path, LD_PRELOAD=preload)
    traced = Traced("", read_rings(tmp_path / "trace"))
    own = {
        (int(first), int(second)) for first, second in re.findall(r'"t(\d+)" -> "t(\d+)"', graph.read_text())
    }
    assert len(own) == 60
    # Both count tasks from 1 in the order they are submitted.
    assert {(event.first, event.second) for event in traced.recorded.of("dependency")} == own


def test_nothing_is_recorded_or_said_where_no_directory_is_named(
    libraries: Path, starpu_program: Path, tmp_path: Path
) -> None:
    preload = ":".join(str(libraries / f"libelbow_trace_{name}.so") for name in ("starpu", "omp"))
    said = run([str(starpu_program)], tmp_path, LD_PRELOAD=preload, ELBOW_TRACE_DIRECTORY="")
    assert said.startswith("ran 132 ")
    assert not (tmp_path / "trace").exists()


def test_what_starpu_cannot_be_traced_for_is_said_and_the_program_runs(
    libraries: Path, starpu_program: Path, tmp_path: Path
) -> None:
    preload = str(libraries / "libelbow_trace_starpu.so")
    said = run([str(starpu_program)], tmp_path, LD_PRELOAD=preload, ELBOW_TRACE_POLICY="forget")
    assert "elbow_trace: StarPU is not traced: ELBOW_TRACE_POLICY 'forget'" in said
    assert "ran 132 " in said


OMP_SAID = "a 5 b 2 c 3 many 40 sum 438\n"
"""What the program over OpenMP prints: sums that depend on the order of its tasks."""


@pytest.fixture(scope="module")
def omp_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("omp") / "tasks"
    subprocess.run(["cc", "-fopenmp", "-o", str(program), str(SOURCES / "trace_omp.c")], check=True)
    return program


def libomp() -> Path:
    """LLVM's runtime system, which GCC's programs can run over."""
    for folder in ("/usr/lib/*-linux-gnu", "/usr/lib/llvm-*/lib", "/usr/lib64"):
        for path in sorted(Path("/").glob(f"{folder[1:]}/libomp.so*")):
            return path
    pytest.skip("LLVM's OpenMP is not installed (Debian: libomp-dev)")


@pytest.fixture(scope="module")
def traced_omp(libraries: Path, omp_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    if not (libraries / "libelbow_trace_omp.so").exists():
        pytest.skip("omp-tools.h is not installed (Debian: libomp-dev)")
    folder = tmp_path_factory.mktemp("omp")
    (folder / "libgomp.so.1").symlink_to(libomp())
    preload = str(libraries / "libelbow_trace_omp.so")
    assert run([str(omp_program)], folder, LD_PRELOAD=preload, LD_LIBRARY_PATH=str(folder)) == OMP_SAID
    return read_rings(folder / "trace")


def test_each_task_of_openmp_is_created_begun_and_ended(traced_omp: Recorded) -> None:
    created = Counter(event.first for event in traced_omp.of("create"))
    assert len(created) == 4 + 20 + 20
    assert set(created.values()) == {1}
    tasks = [event for event in traced_omp.events if event.category == "task" and event.type != "dependency"]
    begun = Counter(event.first for event in tasks if event.kind == BEGIN)
    assert begun == Counter(event.first for event in tasks if event.kind == END)
    assert set(begun) == set(created)
    # Tied tasks begin once.
    assert all(begun[task] == 1 for task in list(created)[:4])
    parents = Counter(event.second for event in traced_omp.of("create"))
    assert parents.pop(0) == 24
    assert set(parents.values()) == {1}


def test_tasks_of_openmp_wait_for_each_other_as_their_depend_clauses_say(traced_omp: Recorded) -> None:
    first = min(event.first for event in traced_omp.of("create"))
    waits = {(event.first - first, event.second - first) for event in traced_omp.of("dependency")}
    assert waits == {(0, 1), (0, 2), (1, 3), (2, 3)}


def test_regions_barriers_and_work_sharing_of_openmp_are_recorded(traced_omp: Recorded) -> None:
    assert [event.small for event in traced_omp.of("parallel region", BEGIN)] == [3, 2]
    assert len(traced_omp.of("parallel region", END)) == 2
    assert len(traced_omp.of("implicit task", BEGIN)) == 5
    assert len(traced_omp.of("loop", BEGIN)) == len(traced_omp.of("loop", END)) == 3
    assert len(traced_omp.of("single", BEGIN)) == 1
    assert len(traced_omp.of("single of another", BEGIN)) == 2
    assert len(traced_omp.of("wait for a lock", BEGIN)) == 3
    assert len(traced_omp.of("wait", BEGIN)) >= len(traced_omp.of("wait", END)) > 5
    assert {"OpenMP 1", "OpenMP 2"} <= set(traced_omp.threads)


def test_a_program_over_gcc_s_openmp_is_told_of(libraries: Path, omp_program: Path, tmp_path: Path) -> None:
    if not (libraries / "libelbow_trace_omp.so").exists():
        pytest.skip("omp-tools.h is not installed (Debian: libomp-dev)")
    said = run([str(omp_program)], tmp_path, LD_PRELOAD=str(libraries / "libelbow_trace_omp.so"))
    assert OMP_SAID in said
    assert "OpenMP is not traced: this program uses GCC's libgomp" in said
    assert not (tmp_path / "trace").exists()


def test_adapters_find_the_recorder_beside_them_wherever_their_folder_is(
    libraries: Path, tmp_path: Path
) -> None:
    for library in libraries.iterdir():
        shutil.copy(library, tmp_path / library.name)
    for name in ("starpu", "omp"):
        library = tmp_path / f"libelbow_trace_{name}.so"
        if library.exists():
            told = subprocess.run(["ldd", str(library)], capture_output=True, text=True, check=True).stdout
            assert f"{tmp_path}/libelbow_trace.so.0.1" in told
