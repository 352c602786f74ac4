"""A wheel that was built with ELBOWROOM_PREBUILT=1 measures, and gives the recorder its libraries, where
there is no compiler and no network. Opt-in, as it installs the dependencies: ELBOWROOM_TEST_WHEEL is 1 (the
wheel is built, some minutes) or the path of such a wheel.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet")
COMPILERS = ("ar", "as", "c++", "cc", "clang", "cmake", "cpp", "g++", "gcc", "ld", "make", "ninja")
WHEEL = os.environ.get("ELBOWROOM_TEST_WHEEL", "")
ALONE = ("unshare", "--net", "--map-root-user", "sh", "-c", 'ip link set lo up && exec "$0" "$@"')
LIBRARIES = """
from elbowroom.launch import build
from elbowroom.launch.mpi import find_mpi
folder = build.trace_libraries(find_mpi())
print(build.probe(), *sorted(folder.iterdir()), sep="\\n")
"""

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.skipif(not WHEEL, reason="opt-in: set ELBOWROOM_TEST_WHEEL=1 (some minutes)"),
]


def checked(*command: object, env: dict[str, str] | None = None, cwd: Path | None = None) -> str:
    """What the command prints; the test fails with all of it where the command does, but by points that are
    flagged on a busy machine (3).
    """
    words = [str(word) for word in command]
    done = subprocess.run(
        words, env=env, cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert done.returncode in (0, 3), done.stdout
    return done.stdout


def programs_without_compilers(folder: Path) -> Path:
    """A folder with links to the system's programs but compilers and what builds by them."""
    folder.mkdir()
    for program in [*Path("/bin").iterdir(), *Path("/usr/bin").iterdir()]:
        name = program.name
        compiles = any(
            name == one or name.startswith(f"{one}-") or name.endswith(f"-{one}") for one in COMPILERS
        )
        if not compiles and not (folder / name).is_symlink():
            (folder / name).symlink_to(program)
    return folder


def built(folder: Path, env: dict[str, str]) -> Path:
    """The wheel, built into the folder where none is given."""
    if WHEEL != "1":
        return Path(WHEEL)
    checked(
        sys.executable, *PIP, "wheel", "--no-deps", "-w", folder, ROOT, env={**env, "ELBOWROOM_PREBUILT": "1"}
    )
    (wheel,) = folder.glob("elbowroom-*.whl")
    return wheel


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The folder of an environment that the wheel is installed in, and the variables of its commands."""
    folder = tmp_path_factory.mktemp("wheel")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("ELBOWROOM_", "CMAKE_"))}
    wheel = built(folder, env)
    assert "-any" not in wheel.name
    assert "elbowroom/_prebuilt/probe" in zipfile.ZipFile(wheel).namelist()
    checked(sys.executable, "-m", "venv", folder / "venv")
    checked(folder / "venv/bin/python", *PIP, "install", wheel, env=env)
    path = programs_without_compilers(folder / "bin")
    assert shutil.which("c++", path=str(path)) is None
    home = folder / "home"
    home.mkdir()
    return folder / "venv", {"PATH": str(path), "HOME": str(home), "LANG": "C.UTF-8"}


def offline(command: list[object], installed: tuple[Path, dict[str, str]]) -> str:
    venv, env = installed
    # Open MPI needs the interface to itself.
    words = [*ALONE, venv / "bin/python", *command] if shutil.which("ip") else [venv / "bin/python", *command]
    return checked(*words, env=env, cwd=Path(env["HOME"]))


def test_the_wheel_measures_without_a_compiler_and_without_a_network(
    installed: tuple[Path, dict[str, str]],
) -> None:
    command = ["-m", "elbowroom", "run", "quick", "--repeat", "2", "-o", "run"]
    text = offline(command, installed)
    assert "building" not in text
    home = Path(installed[1]["HOME"])
    assert (home / "run" / "manifest.json").exists()
    assert not (home / ".cache" / "elbowroom" / "probes").exists()


def test_the_recorder_finds_its_libraries_in_the_wheel(installed: tuple[Path, dict[str, str]]) -> None:
    places = [Path(line) for line in offline(["-c", LIBRARIES], installed).split()]
    assert all("_prebuilt" in place.parts for place in places)
    names = {place.name for place in places}
    assert {"probe", "libelbow_trace.so", "libelbow_trace_mpi.so", "libelbow_profile_mpi.so"} <= names
    for place in places:
        assert "not found" not in checked("ldd", place)
