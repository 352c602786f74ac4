"""What tests share: the real probe (built once, cached) and a made-up site whose probe answers without
measuring.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from elbowroom.errors import ElbowroomError
from elbowroom.launch import build
from elbowroom.launch.mpi import Mpi, find_mpi, launch_environment

DATA = Path(__file__).parent / "data"
FAKE = Path(__file__).parent / "fake_site.py"

# The same examples every time, so that a failure belongs to the change that brought it; ELBOWROOM_EXPLORE=1
# looks at other ones, and more of them. No deadline: the machine may be busy.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", max_examples=1000, deadline=None, print_blob=True)
settings.load_profile("explore" if os.environ.get("ELBOWROOM_EXPLORE") == "1" else "repeatable")


def _needs_probe(item: pytest.Item) -> bool:
    path = item.path.relative_to(Path(__file__).parent)
    return path.parts[0] == "mpi" or item.get_closest_marker("real") is not None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sets ELBOWROOM_PROBE and ELBOWROOM_MPIRUN where a test wants the real probe; builds it before the
    first.
    """
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


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A prefix of a made-up MPI; `--mpi PREFIX` runs tests/fake_site.py as compiler, launcher and probe."""
    prefix = tmp_path / "site"
    (prefix / "bin").mkdir(parents=True)
    for name in ("mpicxx", "mpirun", "probe"):
        program = prefix / "bin" / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E {FAKE} {name} "$@"\n')
        program.chmod(0o755)
    monkeypatch.setenv("ELBOWROOM_PROBE", str(prefix / "bin" / "probe"))
    monkeypatch.setenv("FAKE_TOPOLOGY", str(DATA / "quick" / "topology.xml"))
    return prefix
