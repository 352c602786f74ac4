"""Programs that benchmarks/device.py starts where nothing is installed, and its folder of results."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "benchmarks"))

from device_programs import Lost, Program, cuda_folders, library_path, output, own_environment  # noqa: E402
from device_study import Study, whole_lines  # noqa: E402

HELLO = 'print(\'{"record": "hello"}\', flush=True)\n'
ENVIRONMENT = dict(os.environ)


def program(code: str, patience: float = 30.0) -> Program:
    """A program that says hello and then does something else."""
    return Program([sys.executable, "-c", HELLO + code], ENVIRONMENT, patience)


def test_a_request_is_answered_and_what_an_mpi_prints_is_skipped() -> None:
    one = program("import sys\nprint('a warning')\nprint(sys.stdin.readline(), flush=True)")
    assert one.ask({"op": "measure"}, 30) == {"op": "measure"}
    one.close()
    assert not Program.running


def test_a_program_that_hangs_is_lost_in_time_and_its_children_are_killed(tmp_path: Path) -> None:
    child = tmp_path / "child"
    code = (
        "import os, signal, time\n"
        "if os.fork() == 0:\n"
        "    os.setpgid(0, 0)\n"
        "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"    open({str(child)!r}, 'w').write(str(os.getpid()))\n"
        "time.sleep(600)"
    )
    one = program(code)
    with pytest.raises(Lost, match="no answer in time"):
        one.ask({}, 2)
    one.close()
    # A dead one may wait for its parent to notice, and has no program then.
    assert not Path("/proc", child.read_text(), "exe").exists()


def test_a_program_that_dies_is_lost_with_its_last_words() -> None:
    one = program("import sys\nsys.stdin.readline()\nsys.exit('the device fell off')")
    with pytest.raises(Lost, match=r"exit code 1.*the device fell off"):
        one.ask({}, 30)
    one.close()


def test_a_program_that_is_not_there_is_lost() -> None:
    with pytest.raises(Lost, match="cannot be started"):
        Program(["/nowhere/mpirun"], ENVIRONMENT, 1)
    with pytest.raises(Lost, match="cannot be started"):
        output(["/nowhere/nvidia-smi"], ENVIRONMENT, 1)


def test_a_short_command_that_hangs_is_ended() -> None:
    with pytest.raises(Lost, match="did not end"):
        output([sys.executable, "-c", "import time; time.sleep(600)"], ENVIRONMENT, 0.3)


def test_variables_of_another_mpi_are_not_passed_on() -> None:
    given = {"PATH": "/bin", "OPAL_PREFIX": "/opt/mpi", "OMPI_MCA_pml": "ucx", "TMPDIR": "/" + "t" * 60}
    assert own_environment(given) == {"HOME": "/", "PATH": "/bin", "TMPDIR": "/tmp"}


def test_spare_libraries_are_used_only_where_the_system_has_none(tmp_path: Path) -> None:
    for name in ("libc.so.6", "libnowhere.so.1"):
        (tmp_path / "spare" / name).mkdir(parents=True)
    path = library_path(tmp_path, "/driver").split(":")
    assert str(tmp_path / "spare" / "libnowhere.so.1") in path
    assert str(tmp_path / "spare" / "libc.so.6") not in path
    assert path[-1] == "/driver"
    assert str(tmp_path / "spare" / "libc.so.6") in library_path(tmp_path, "", all_spare=True)


def test_libraries_of_cuda_are_found_in_wheels_of_a_python_in_path(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").touch()
    folder = tmp_path / "lib" / "python3.12" / "site-packages" / "nvidia" / "cu13" / "lib"
    folder.mkdir(parents=True)
    (folder / "libnvrtc.so.13").touch()
    (folder.parents[1] / "cudnn" / "lib").mkdir(parents=True)
    assert cuda_folders({"PATH": str(tmp_path / "bin")})[:1] == [str(folder)]


def test_a_line_that_was_cut_off_is_removed_before_others_follow(tmp_path: Path) -> None:
    path = tmp_path / "part.jsonl"
    path.write_text('{"a": 1}\n{"a": ')
    assert whole_lines(path) == ['{"a": 1}']
    assert path.read_text() == '{"a": 1}\n'
    assert whole_lines(tmp_path / "none.jsonl") == []


def test_an_archive_that_is_too_large_lacks_the_least_valuable_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("device_study.MOST_ARCHIVE", 3000)
    study = Study(tmp_path, 1.0, None)
    for name in ("first", "second"):
        (study.raw / f"{name}.jsonl").write_text(os.urandom(1200).hex())
        study.keep(name, study.begun, "ok")
    assert json.loads((tmp_path / "summary.json").read_text())["left_out"] == ["second.jsonl"]
    assert study.archive.stat().st_size <= 3000


def test_results_go_on_from_the_archive_alone(tmp_path: Path) -> None:
    study = Study(tmp_path / "a", 1.0, tmp_path / "kept.tar.gz")
    study.write("facts.json", {"gpu": {}})
    study.keep("facts", study.begun, "ok")
    again = Study(tmp_path / "b", 1.0, tmp_path / "kept.tar.gz")
    assert again.read("facts.json") == {"gpu": {}}
