"""Finding StarPU and its MPI, with made-up installations; which runs take its MPI, and which are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from elbowroom import experiments
from elbowroom.errors import ElbowroomError, MachineError
from elbowroom.experiments.plans import decode
from elbowroom.launch import mpi, starpu
from elbowroom.launch.mpi import Mpi
from elbowroom.launch.starpu import StarPU, find_starpu, refused
from elbowroom.measure import source
from elbowroom.measure.source import Where, with_starpu

MPI = Mpi(
    kind="openmpi", version="4.1.4", prefix="/site", compiler="/site/bin/mpicxx", launcher="/site/bin/mpirun"
)
OTHER = msgspec.structs.replace(MPI, version="5.0.1", prefix="/other", compiler="/other/bin/mpicxx")
FOUND = StarPU(version="1.3.10", module="starpumpi-1.3", library="/site/lib/libmpi.so.40", mpi=MPI)


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def site(folder: Path, version: str = "4.1.4") -> Path:
    """An MPI below a folder: its library, its compiler wrapper and its launcher."""
    prefix = folder / version
    (prefix / "lib").mkdir(parents=True)
    (prefix / "lib" / "libmpi.so.40.1").write_text("")
    (prefix / "lib" / "libmpi.so").symlink_to("libmpi.so.40.1")
    link = f"echo g++ -L{prefix}/lib -lmpi"
    says = f"echo 'mpicxx: Open MPI {version}'"
    script(prefix / "bin" / "mpicxx", f'if [ "$1" = -show ]; then {link}; else {says}; fi')
    script(prefix / "bin" / "mpirun", f"echo 'mpirun (Open MPI) {version}'")
    return prefix


def said(folder: Path, *modules: str) -> Callable[..., str]:
    """pkg-config that knows these modules; other commands are run."""

    def ask(*command: str) -> str:
        if command[0] != "pkg-config":
            return mpi.stdout_of(*command)
        if command[2] not in modules:
            return ""
        return "1.3.10\n" if command[1] == "--modversion" else f"{folder}\n"

    return ask


def test_the_mpi_of_starpu_is_the_one_whose_library_it_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = site(tmp_path, "4.1.4"), site(tmp_path, "5.0.1")
    monkeypatch.setenv("PATH", f"{other}/bin:/usr/bin:/bin")
    monkeypatch.setattr(starpu, "loaded_library", lambda _: str(own / "lib" / "libmpi.so.40.1"))
    found = find_starpu({}, said(tmp_path, "starpumpi-1.3"))
    assert (found.version, found.module) == ("1.3.10", "starpumpi-1.3")
    assert found.mpi.version == "4.1.4"
    assert found.mpi.launcher == str(own / "bin" / "mpirun")


def test_a_library_far_from_its_compiler_is_found_by_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As Debian has it: the wrapper's folder holds links to where the library is.
    prefix = site(tmp_path)
    far = tmp_path / "arch" / "libmpi.so.40.1"
    far.parent.mkdir()
    (prefix / "lib" / "libmpi.so.40.1").rename(far)
    (prefix / "lib" / "libmpi.so").unlink()
    (prefix / "lib" / "libmpi.so").symlink_to(far)
    monkeypatch.setenv("PATH", f"{prefix}/bin:/usr/bin:/bin")
    monkeypatch.setattr(starpu, "loaded_library", lambda _: str(far))
    assert find_starpu({}, said(tmp_path, "starpumpi-1.3")).mpi.prefix == str(prefix)


def test_the_newest_starpu_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = site(tmp_path)
    monkeypatch.setattr(starpu, "loaded_library", lambda _: str(own / "lib" / "libmpi.so.40.1"))
    found = find_starpu({}, said(tmp_path, "starpumpi-1.3", "starpumpi-1.4"))
    assert found.module == "starpumpi-1.4"


@pytest.mark.parametrize(
    ("env", "modules", "library", "words"),
    [
        ({}, (), "", "StarPU is not installed; on Debian or Ubuntu `apt-get install libstarpu-dev"),
        ({"ELBOWROOM_STARPU": "none"}, ("starpumpi-1.3",), "", "unset ELBOWROOM_STARPU"),
        ({}, ("starpumpi-1.3",), None, "loads no MPI library"),
        ({}, ("starpumpi-1.3",), "/nowhere/libmpi.so.40", "whose mpicxx was not found"),
    ],
)
def test_an_absent_starpu_is_told_with_the_one_command_that_mends_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    env: dict[str, str],
    modules: tuple[str, ...],
    library: str | None,
    words: str,
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(starpu, "loaded_library", lambda _: library)
    with pytest.raises(MachineError) as caught:
        find_starpu(env, said(tmp_path, *modules))
    assert words in caught.value.sentence()


def test_a_run_with_another_mpi_leaves_programs_over_starpu_out_and_names_both() -> None:
    reason = refused(FOUND, OTHER)
    assert "Open MPI 4.1.4 in /site" in reason
    assert "Open MPI 5.0.1 in /other" in reason
    assert "leave --mpi out" in reason
    assert refused(FOUND, MPI) == ""
    assert refused(MachineError("StarPU is not installed", hint="install it"), MPI).endswith("install it")


@pytest.mark.parametrize(
    ("plan", "wanted"),
    [
        ({"experiment": "runtime-overhead"}, True),
        ({"experiment": "kernels"}, True),
        ({"experiment": "kernels", "builds": ["openmp"]}, False),
        ({"experiment": "polling", "backoffs": [2]}, True),
        ({"experiment": "polling"}, False),
        ({"experiment": "quick"}, False),
    ],
)
def test_plans_with_programs_over_starpu_are_known(plan: dict[str, object], wanted: bool) -> None:
    decoded = decode({"name": "p", **plan})
    assert experiments.get(decoded.experiment).needs_starpu(decoded) is wanted


def asked(
    monkeypatch: pytest.MonkeyPatch, where: Where, found: StarPU | ElbowroomError = FOUND
) -> tuple[Where, list[str]]:
    told: list[str] = []
    monkeypatch.setattr(source.starpu, "look", lambda: found)
    monkeypatch.setattr(source, "spec_of", lambda mpi: mpi.prefix)
    plan = decode({"name": "p", "experiment": "runtime-overhead"})
    return with_starpu(where, plan, told.append), told


def test_a_run_over_starpu_takes_its_mpi_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    where, told = asked(monkeypatch, Where())
    assert where.mpi == "/site"
    assert told == ["programs over StarPU 1.3.10 run with its MPI, Open MPI 4.1.4 in /site"]


@pytest.mark.parametrize("where", [Where(mpi="mpich"), Where(machine="henri"), Where(launcher="replay:old")])
def test_another_mpi_a_recording_and_a_virtual_machine_stay_what_they_are(
    monkeypatch: pytest.MonkeyPatch, where: Where
) -> None:
    assert asked(monkeypatch, where) == (where, [])


def test_without_starpu_a_run_takes_the_mpi_it_would_take(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = MachineError("StarPU is not installed")
    assert asked(monkeypatch, Where(), absent) == (Where(), [])
