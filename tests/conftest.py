"""What tests share: the real probe (built once, cached) and a made-up site whose probe answers without
measuring.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

import sanitized
import turns
from elbowroom.errors import ElbowroomError
from elbowroom.launch import build
from elbowroom.launch.mpi import Mpi, find_mpi, launch_environment
from elbowroom.launch.processes import one_thread
from elbowroom.models.curves import STREAMS, Curves, Row, Situation
from elbowroom.store.curves import write_curves
from plugin_site import install_plugin

__all__ = ["install_plugin"]

DATA = Path(__file__).parent / "data"
STARPU = (
    "test_trace_runtimes", "test_starpu", "test_runtime", "test_run_runtime", "test_kernels_apps",
    "test_factorizations", "test_kernels", "test_polling",
)  # fmt: skip
"""Programs over StarPU share a folder of the user; those that start at once disturb each other."""
GUARDS = ("test_guard_command", "test_guard_progress", "test_guard_starpu")
"""One guard acts on a node at a time."""
SPLIT = ("test_benchmarks", "test_calibrate", "test_quoted")
"""Files whose tests take long and have nothing in common: workers share them."""
WAITING = ("mpi", "e2e")
"""Folders whose tests mostly wait for programs; the others compute. Workers have some of both at a time."""
LONG = (
    "starpu", "guards", "test_calls", "test_starpu_mpi", "test_trace_mpi", "test_account", "test_extraneous",
    "test_quoted_output_is_what_the_commands_print", "test_terminals", "test_papers",
)  # fmt: skip
"""Groups that begin first: one that begins last is waited for by all workers."""
FAKE = Path(__file__).parent / "fake_site.py"

# A shell's background job ignores interrupts, nohup hang-ups, and children inherit that; tests send such
# signals. A handler of this process is the default in its children, and lets a hang-up pass here as before.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for _number in (signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, lambda _number, _frame: None)

# Nor does what a terminal, a shell or a service leaves in the environment change what a test sees.
for _name in (
    "COLUMNS",
    "LINES",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR_FORCE",
    "TTY_COMPATIBLE",
    "MPLBACKEND",
):
    os.environ.pop(_name, None)
for _name in ("PYTHONIOENCODING", "PYTHONWARNINGS", "PYTHONOPTIMIZE", "CDPATH", "GREP_OPTIONS"):
    os.environ.pop(_name, None)
# Each process that a test starts would compile the package again, in up to a second.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ["TERM"] = "dumb"
os.environ["LC_ALL"] = "C.UTF-8"
os.umask(0o022)

# The same examples every time, so that a failure belongs to the change that brought it; ELBOWROOM_EXPLORE=1
# looks at other ones, and more of them. No deadline: the machine may be busy.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", max_examples=1000, deadline=None, print_blob=True)
settings.load_profile("explore" if os.environ.get("ELBOWROOM_EXPLORE") == "1" else "repeatable")


def pytest_configure(config: pytest.Config) -> None:
    """Before any test loads numpy: with threads for linear algebra, fits on a busy machine take ten times as
    long.
    """
    one_thread()
    config.addinivalue_line("markers", "alone: compares measured times; no other test runs meanwhile")


@pytest.hookimpl(tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What `./elbowroom test` runs beside these tests; waits for its end."""
    folder = os.environ.get("ELBOWROOM_BESIDE")
    if folder is None or not Path(folder, "beside.lock").exists():
        return
    with open(Path(folder, "beside.lock"), encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
    for name in ("lint", "ctest"):
        log = Path(folder, f"{name}.log")
        if log.exists():
            terminalreporter.section(name)
            terminalreporter.write(log.read_text(encoding="utf-8", errors="replace"))


def _needs_probe(item: pytest.Item) -> bool:
    path = item.path.relative_to(Path(__file__).parent)
    return path.parts[0] == "mpi" or item.get_closest_marker("real") is not None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, bool, bool]:
    """With several workers, a test with the mark `alone` waits until no other test runs."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return (yield)
    with turns.turn(_folder_of_turns(item), alone=_is_alone(item)):
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test that is run again, as it failed beside others (`--reruns`), runs alone."""
    if "PYTEST_XDIST_WORKER" in os.environ and getattr(item, "execution_count", 1) > 1:
        turns.wait_until_alone(_folder_of_turns(item))


def _folder_of_turns(item: pytest.Item) -> Path:
    folder: Path = item.config._tmp_path_factory.getbasetemp().parent  # type: ignore[attr-defined]
    return folder


def _is_alone(item: pytest.Item) -> bool:
    return item.get_closest_marker("alone") is not None


def _group(item: pytest.Item) -> str:
    if _is_alone(item):
        return "alone"
    if item.path.stem in SPLIT:
        return item.name
    if item.path.stem in GUARDS:
        return "guards"
    return "starpu" if item.path.stem in STARPU else item.path.stem


def _in_turns(items: list[pytest.Item]) -> list[pytest.Item]:
    """The tests by their groups, long ones first: one of a folder whose tests mostly wait, one of another,
    and so on. At last those that wait for the builds with sanitizers, and those that no other test may run
    beside: before each of these, all workers wait for the longest test that runs.
    """
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        groups.setdefault(_group(item), []).append(item)
    places: dict[str, int] = {}
    counts = Counter[bool]()
    for name in sorted(groups, key=lambda name: name.partition("[")[0] not in LONG):
        path = groups[name][0].path
        waits = path.relative_to(Path(__file__).parent).parts[0] in WAITING
        last = (path.name == sanitized.MODULE) + 2 * (name == "alone")
        places[name] = 2 * last * len(items) if last else 2 * counts[waits] + (not waits)
        counts[waits] += 1
    return [item for name in sorted(groups, key=places.__getitem__) for item in groups[name]]


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sets ELBOWROOM_PROBE and ELBOWROOM_MPIRUN where a test wants the real probe; builds it before the
    first. With several workers (pytest -n), one has all tests of a file, and one all over StarPU.
    """
    items[:] = _in_turns(items)
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))
    if not any(_needs_probe(item) for item in items):
        return
    try:
        mpi = find_mpi()
        os.environ.setdefault("ELBOWROOM_PROBE", str(build.probe(mpi)))
    except ElbowroomError as error:
        for item in items:
            if _needs_probe(item):
                item.add_marker(pytest.mark.skip(reason=error.sentence()))
        return
    os.environ.setdefault("ELBOWROOM_MPIRUN", mpi.launcher)
    os.environ.update(launch_environment())


@pytest.fixture(scope="session", autouse=True)
def _sanitized(request: pytest.FixtureRequest) -> None:
    """Builds with sanitizers beside the other tests, where they are asked for."""
    chosen = any(item.path.name == sanitized.MODULE for item in request.session.items)
    first = os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0"
    if chosen and first and os.environ.get("ELBOWROOM_SANITIZERS"):
        sanitized.begin()


@pytest.fixture(scope="session")
def embedded_mpi() -> Mpi:
    """The embedded MPI, for tests that start real ranks."""
    return find_mpi()


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A copy of the recorded run of `quick`: a test may damage it."""
    copy = tmp_path / "recorded"
    shutil.copytree(DATA / "quick", copy)
    return copy


def _thesis_curves(
    name: str = "henri",
    *,
    noise: float = 0.0,
    ns: Sequence[int] | None = None,
    places: Sequence[tuple[int, int]] | None = None,
) -> Curves:
    from elbowroom.models import published
    from elbowroom.virtual.machines import PublishedCurves
    from elbowroom.virtual.truth import generator

    machine = published.load(name)
    truth = PublishedCurves(machine.model)
    nodes, cores = range(machine.shape.nodes), range(1, machine.cores_first_socket + 1)
    rows = []
    for comp, comm in places or [(i, j) for i in nodes for j in nodes]:
        for n in ns or cores:
            at = Situation(comp_node=comp, comm_node=comm, n=n)
            found = truth.sample(at, noise, generator(1, machine.shape, at))
            values = dict(zip(STREAMS, (round(value, 1) for value in found), strict=True))
            rows.append(Row(situation=at, **values))
    return Curves(shape=machine.shape, rows=tuple(rows))


@pytest.fixture(scope="session")
def thesis_curves() -> Callable[..., Curves]:
    """Curves of a machine of the thesis, from its published model with seeded noise."""
    return _thesis_curves


@pytest.fixture
def curves_csv(tmp_path: Path) -> Callable[..., Path]:
    """Writes such curves as NAME.csv."""

    def write(name: str = "henri", **options: Any) -> Path:
        path = tmp_path / f"{name}.csv"
        write_curves(path, _thesis_curves(name, **options))
        return path

    return write


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A prefix of a made-up MPI; `--mpi PREFIX` runs tests/fake_site.py as compiler, launcher and probe."""
    prefix = tmp_path / "site"
    (prefix / "bin").mkdir(parents=True)
    for name in ("mpicxx", "mpirun", "probe", "diffusion", "kernels-openmp"):
        program = prefix / "bin" / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E {FAKE} {name} "$@"\n')
        program.chmod(0o755)
    monkeypatch.setenv("ELBOWROOM_PROBE", str(prefix / "bin" / "probe"))
    monkeypatch.setenv("ELBOWROOM_DIFFUSION", str(prefix / "bin" / "diffusion"))
    monkeypatch.setenv("ELBOWROOM_KERNELS_OPENMP", str(prefix / "bin" / "kernels-openmp"))
    monkeypatch.setenv("FAKE_TOPOLOGY", str(DATA / "quick" / "topology.xml"))
    return prefix
