"""Builds: what is said meanwhile, what outlives an interruption, and what a dry run does."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from elbowroom import cli
from elbowroom.errors import MachineError
from elbowroom.launch import build, native, topologies
from elbowroom.launch.mpi import Mpi
from elbowroom.launch.native import Target, missing_packages
from elbowroom.launch.topologies import own_topology_xml
from elbowroom.machine.hwloc import read_topology

ROOT = Path(__file__).resolve().parents[3]

needs_ninja = pytest.mark.skipif(
    not (shutil.which("cmake") and shutil.which("ninja")), reason="cmake and ninja are not installed"
)

PATIENCE = 120.0
"""Seconds: a busy machine starts a process late."""

PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(thing LANGUAGES NONE)
add_custom_command(OUTPUT first COMMAND echo first >> ${CMAKE_SOURCE_DIR}/log COMMAND touch first)
add_custom_command(OUTPUT thing DEPENDS first
  COMMAND echo thing >> ${CMAKE_SOURCE_DIR}/log
  COMMAND sh ${CMAKE_SOURCE_DIR}/wait.sh
  COMMAND cp ${CMAKE_SOURCE_DIR}/CMakeLists.txt thing)
add_custom_target(all_of_it DEPENDS thing)
"""
BUILD = """
from pathlib import Path
from elbowroom.launch import native
from elbowroom.launch.native import Target

target = Target("thing", Path("sources"), (), ("thing",), "", "the thing (some seconds, once)", "all_of_it")
print(native.kept(target, "things", "key"))
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "CMakeLists.txt").write_text(PROJECT)
    hold = tmp_path / "sources" / "hold"
    (tmp_path / "sources" / "wait.sh").write_text(f"while [ -e '{hold}' ]; do sleep 0.05; done\n")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def start(place: Path) -> subprocess.Popen[str]:
    """A process that builds the thing, as an installed elbowroom does."""
    code = BUILD.replace("\ntarget", "\nnative.checkout_root = lambda: None\ntarget")
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=place,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def wait_for(text: str, log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while not (log.exists() and text in log.read_text()):
        assert time.monotonic() < end
        time.sleep(0.02)


@needs_ninja
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_build_that_was_interrupted_goes_on(place: Path, how: signal.Signals) -> None:
    log, hold = place / "sources" / "log", place / "sources" / "hold"
    hold.touch()
    first = start(place)
    wait_for("thing", log)
    os.killpg(first.pid, how) if how == signal.SIGINT else first.kill()
    first.communicate(timeout=PATIENCE)
    hold.unlink()
    assert not (place / "cache" / "elbowroom" / "things" / "key").exists()
    out, err = start(place).communicate(timeout=PATIENCE)
    assert out.endswith("things/key/thing\n"), err
    assert log.read_text().count("first") == 1
    assert sorted(path.name for path in (place / "cache" / "elbowroom" / "things").iterdir()) == [
        "key",
        "key.lock",
    ]


@needs_ninja
def test_a_process_that_waits_says_for_which_one_and_what_it_builds(place: Path) -> None:
    log, hold = place / "sources" / "log", place / "sources" / "hold"
    hold.touch()
    first = start(place)
    wait_for("thing", log)
    second = start(place)
    assert first.stderr is not None
    assert second.stderr is not None
    line = second.stderr.readline()
    begun, reached = first.stderr.readline(), first.stderr.readline()
    hold.unlink()
    first.communicate(timeout=PATIENCE)
    out = second.communicate(timeout=PATIENCE)[0]
    assert re.match(rf"waiting for process {first.pid}, which builds the thing", line), line
    assert out.endswith("things/key/thing\n")
    assert begun == "building the thing (some seconds, once)\n"
    assert re.fullmatch(r"\[(configuring|...|\d/\d)\] the thing, \d+ s\n", reached), reached
    assert log.read_text().count("thing") == 1


def test_a_dry_run_answers_where_a_program_will_be_and_builds_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "checkout_root", lambda: None)
    target = Target("thing", place / "sources", (), ("thing",), "", "the thing")
    with native.dry_run():
        path = native.kept(target, "things", "key")
    assert path == place / "cache" / "elbowroom" / "things" / "key" / "thing"
    assert not (place / "cache").exists()


@pytest.mark.parametrize(
    "find",
    [
        build.simulator,
        build.clock_simulator,
        build.broadcast_costs,
        build.trace_reader,
        build.nic_library,
        build.gpu_bench,
        build.trace_libraries,
        build.probe,
        build.broadcast_bench,
        build.network_bench,
        lambda: build.application("forwarder"),
    ],
)
def test_what_was_built_is_not_built_again(
    place: Path, monkeypatch: pytest.MonkeyPatch, find: Callable[[], Path]
) -> None:
    """What is built appears in its place; afterwards nothing is missing."""
    for name in [name for name in os.environ if name.startswith("ELBOWROOM_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(native, "checkout_root", lambda: None)
    monkeypatch.setattr(build, "native_sources", lambda: ROOT)
    made = []

    def publish(target: Target, folder: Path, *_words: object, **_options: object) -> None:
        folder.mkdir(parents=True)
        made.append(target.name)
        for product in target.products:
            (folder / Path(product.replace("*", "0")).name).touch()

    monkeypatch.setattr(native, "build", publish)
    try:
        first = find()
    except MachineError as error:
        pytest.skip(error.sentence())
    assert find() == first
    assert len(made) == 1
    with native.dry_run() as missing:
        assert find() == first
    assert missing == []


def test_a_cache_where_no_program_can_be_started_is_a_sentence(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "checkout_root", lambda: None)
    monkeypatch.setattr(native, "_noexec", lambda _folder: True)
    target = Target("thing", place / "sources", (), ("thing",), "", "the thing")
    with pytest.raises(MachineError, match="noexec") as caught:
        native.kept(target, "things", "key")
    assert "XDG_CACHE_HOME" in caught.value.hint


def test_without_a_home_folder_nothing_is_written_into_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "checkout_root", lambda: None)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(MachineError, match=r"HOME.*not an absolute path"):
        native.cache_folder()


def test_programs_that_another_user_built_in_the_checkout_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = tmp_path / ".elbowroom" / "things" / "key" / "thing"
    built.parent.mkdir(parents=True)
    built.touch()
    monkeypatch.setattr(native, "checkout_root", lambda: tmp_path)
    monkeypatch.setattr(os, "access", lambda *_: False)
    target = Target("thing", tmp_path, (), ("thing",), "", "the thing")
    assert native.kept(target, "things", "key") == built


@needs_ninja
@pytest.mark.parametrize("other", ["", "CXX", "CXXFLAGS", "ELBOWROOM_CMAKE", "version", "site"])
def test_what_a_wheel_carries_serves_the_embedded_mpi_that_it_was_built_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    monkeypatch.setattr(native, "__file__", str(tmp_path / "elbowroom" / "launch" / "native.py"))
    carried = tmp_path / "elbowroom" / "_prebuilt"
    carried.mkdir(parents=True)
    (carried / "mpi-version").write_text("5.0.11\n")
    for name in ("CXX", "CXXFLAGS", "ELBOWROOM_CMAKE"):
        monkeypatch.delenv(name, raising=False)
    if other.isupper():
        monkeypatch.setenv(other, "anything")
    version = "5.0.8" if other == "version" else "5.0.11"
    mpi = Mpi(kind="openmpi", version=version, prefix="", compiler="", launcher="", embedded=other != "site")
    assert native.prebuilt("probe", mpi) == (None if other else carried / "probe")


def test_a_full_disk_is_called_full(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "checkout_root", lambda: None)
    (place / "sources" / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\nproject(thing LANGUAGES NONE)\n"
        'message(FATAL_ERROR "No space left on device")\n'
    )
    target = Target("thing", place / "sources", (), ("thing",), "no-such-package", "the thing")
    with pytest.raises(MachineError, match="the disk is full") as caught:
        native.kept(target, "things", "key")
    assert "XDG_CACHE_HOME" in caught.value.hint
    assert not list((place / "cache").rglob("*.build"))


@needs_ninja
def test_a_package_that_is_missing_is_named_in_place_of_the_output_of_ninja(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("dpkg-query") is None:
        pytest.skip("dpkg is not installed")
    assert missing_packages("dpkg no-such-package-dev") == "no-such-package-dev"
    monkeypatch.setattr(native, "checkout_root", lambda: None)
    target = Target("thing", place / "sources", (), ("thing",), "no-such-package-dev", "the thing", "none")
    with pytest.raises(MachineError) as caught:
        native.kept(target, "things", "key")
    assert caught.value.hint == "as root: apt-get install no-such-package-dev"
    assert "ninja" not in caught.value.sentence()


@pytest.mark.parametrize(
    "command",
    [
        ["run", "quick"],
        ["run", "diffusion"],
        ["run", "model", "--machine", "henri:requests"],
        ["study", "denis2021"],
    ],
)
def test_a_dry_run_plans_for_this_machine_without_a_program(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_words: object, **_options: object) -> None:
        pytest.fail("a dry run builds")

    try:
        own_topology_xml()
    except MachineError as error:
        pytest.skip(error.sentence())
    for name in [name for name in os.environ if name.startswith("ELBOWROOM_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("ELBOWROOM_CMAKE", f"-DNOTHING_BUILT_SO={os.getpid()}")
    monkeypatch.setattr(native, "build", refuse)
    assert cli.run([*command, "--dry-run"]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    assert "points" in out


def test_hwloc_describes_this_machine_as_the_probe_does() -> None:
    given = os.environ.get("ELBOWROOM_PROBE")
    if not given:
        pytest.skip("ELBOWROOM_PROBE names no probe")
    assert read_topology(own_topology_xml()) == read_topology(topologies.topology_xml(given))
