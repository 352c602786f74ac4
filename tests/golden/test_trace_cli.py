"""What `elbowroom trace` prints, compared with kept texts, and what it refuses; the reader is a stand-in."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

import trace_stand_ins
from elbowroom import cli
from elbowroom.launch import build
from texts import widest


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a trace, in the current folder."""
    monkeypatch.setenv("ELBOWROOM_TRACE_READER", str(trace_stand_ins.reader(tmp_path)))
    monkeypatch.chdir(tmp_path)
    trace_stand_ins.program(tmp_path)
    trace_stand_ins.recorded(tmp_path / "t")
    return Path("t")


def printed(capfd: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    found = cli.run(["trace", *words])
    out, err = capfd.readouterr()
    assert found == code, err
    assert widest(out) <= 80
    return "\n".join(line.rstrip() for line in out.splitlines())


@pytest.mark.usefixtures("trace")
@pytest.mark.parametrize("command", ["stat", "check", "sync"])
def test_a_trace_is_told(
    capfd: pytest.CaptureFixture[str], snapshot: SnapshotAssertion, command: str
) -> None:
    assert printed(capfd, command, "t") == snapshot


def test_a_recorded_run_is_told_with_what_is_lost_and_advised(
    trace: Path, capfd: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    words = ["record", "-o", "new", "--buffer", "4MiB", "--categories", "task,moon", "--", "./app", "5"]
    assert cli.run(["trace", *words]) == 5
    out, err = capfd.readouterr()
    assert "new: " not in out  # stdout is the program's
    said = "\n".join(line.rstrip() for line in err.splitlines())
    said = re.sub(r"recorded\s+in\s.*?code\s5\.", "recorded in SECONDS.", said, flags=re.DOTALL)
    assert re.sub(r"new: \S+ s", "new: SECONDS s", said) == snapshot


@pytest.mark.usefixtures("trace")
def test_with_json_stdout_holds_one_object(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["trace", "record", "-o", "new", "--json", "--", "./app"]) == 0
    out, err = capfd.readouterr()
    told = json.loads(out)
    assert told["schema"] == "elbowroom/trace-record"
    assert told["exit_code"] == 0
    assert told["check"]["lost"] == 50
    assert "took 2.5 s" in err


@pytest.mark.usefixtures("trace")
@pytest.mark.parametrize(
    ("out", "kind"),
    [("o.pftrace", "pftrace"), ("o.json", "json"), ("o.otf2", "otf2"), ("o.paje", "paje"), ("o.dot", "dot")],
)
def test_the_format_is_that_of_the_ending(capfd: pytest.CaptureFixture[str], out: str, kind: str) -> None:
    assert out in printed(capfd, "merge", "t", "-o", out).splitlines()
    assert json.loads(Path("words.json").read_text()) == ["merge", "t", "--to", kind, "-o", out, "--progress"]


@pytest.mark.usefixtures("trace")
def test_a_format_that_is_asked_for_wins_over_the_ending() -> None:
    assert cli.run(["trace", "merge", "t", "-o", "o.txt", "--format", "paje"]) == 0
    assert json.loads(Path("words.json").read_text())[3] == "paje"


@pytest.mark.usefixtures("trace")
def test_a_graph_of_tasks_is_a_merge_into_dot() -> None:
    assert cli.run(["trace", "merge", "t", "-o", "g.gv", "--format", "dot"]) == 0
    assert json.loads(Path("words.json").read_text()) == [
        "merge",
        "t",
        "--to",
        "dot",
        "-o",
        "g.gv",
        "--progress",
    ]


@pytest.mark.parametrize("command", [["check", "t"], ["merge", "t", "-o", "o.json"]], ids=" ".join)
def test_what_is_not_to_be_trusted_has_exit_code_3(trace: Path, command: list[str]) -> None:
    trace_stand_ins.reader(Path.cwd(), code=3)
    assert cli.run(["trace", *command]) == 3


@pytest.mark.usefixtures("trace")
def test_numbers_of_events_are_drawn(tmp_path: Path) -> None:
    assert cli.run(["trace", "stat", "t", "-o", "s.svg"]) == 0
    drawn = Path("s.svg").read_text()
    assert "Events by type" in drawn
    assert "MPI_Send" in drawn
    assert "mask" not in drawn


@pytest.mark.usefixtures("trace")
def test_progress_of_a_merge_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    from elbowroom import api

    heard: list[tuple[int, int]] = []
    api.merge_trace("t", "o.json", tell=lambda done, total: heard.append((done, total)))
    assert heard == [(1, 2), (2, 2)]
    assert json.loads(Path("words.json").read_text())[-1] == "--progress"


@pytest.mark.usefixtures("trace")
def test_the_cost_of_recording_is_measured_in_turns(
    capfd: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    words = ("overhead", "--repeat", "5", "--threads", "1,2", "--metric", r"took ([\d.]+)", "-o", "o.html")
    said = printed(capfd, *words, "--", "./app")
    # Events per second follow the wall time.
    assert re.sub(r"(\d+) +(?:-|\d+(?:\s\d+)*) +0$", r"\1 PER-SECOND 0", said, flags=re.MULTILINE) == snapshot
    assert "<svg" in Path("o.html").read_text()
    assert not list(Path().glob(".elbowroom-trace-*"))


@pytest.mark.usefixtures("trace")
def test_lost_events_leave_the_cost_undecided(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN_LOST", "9")
    words = ("overhead", "--repeat", "5", "--categories", "task", "--metric", r"took ([\d.]+)", "--json")
    told = json.loads(printed_json(capfd, *words, "--", "./app"))
    assert told["verdicts"][0]["state"] == "lost"
    assert [case["set"] for case in told["cases"]] == ["none", "off", "task", "all"]


def printed_json(capfd: pytest.CaptureFixture[str], *words: str) -> str:
    assert cli.run(["trace", *words]) == 3
    return capfd.readouterr().out


APP = ["--", "./app"]
REFUSED: list[tuple[list[str], str, int]] = [
    (["record"], "command: no command is given", 2),
    (["record", "--", "nosuch"], "command 'nosuch': is not found", 2),
    (["record", "-o", "t", *APP], "directory 't': already holds a trace", 2),
    (["record", "-o", "n", "--buffer", "12parsec", *APP], "buffer '12parsec': not a size", 2),
    (["record", "-o", "n", "--policy", "never", *APP], "policy 'never': no such policy", 2),
    (["record", "-o", "n", "--drain-core", "1", *APP], "drain_core 1: is the draining thread's", 2),
    (
        ["record", "-o", "n", "--policy", "drain", "--drain-core", "-1", *APP],
        "drain_core -1: does not exist",
        2,
    ),
    (["record", "-o", "n", "--sync", "-1", *APP], "sync '-1': is not a duration", 2),
    (["record", "-o", "n", "--clock", "sundial", *APP], "clock 'sundial': no such clock", 2),
    (
        ["record", "-o", "n", "--clock", "monotonic", "--sync", "1", *APP],
        "sync 1.0: clocks are compared once",
        2,
    ),
    (["record", "-o", "n", "--without", "a,,b", *APP], "without '': is not a name", 2),
    (["flushes", "--repeat", "2", *APP], "repeat 2: is too few", 2),
    (["flushes", "--metric", "(", *APP], "metric '(': is not an expression", 2),
    (["flushes", "--", "true"], "recorded nothing", 1),
    (["record", "-o", "n", "--categories", "mpi,", *APP], "categories '': is not a name", 2),
    (["record", "-o", "n", "--adapters", "cuda", *APP], "adapters 'cuda': no such adapter", 2),
    (["record", "-o", "n", "--adapters", "mpi", *APP], "mpi: the program's MPI is unknown", 2),
    (["record", "-o", "n", "--mpi", "/nowhere", "--adapters", "mpi", *APP], "no bin/mpicxx", 2),
    (["merge", "t", "-o", "o.txt"], "out 'o.txt': its ending names no format", 2),
    (["merge", "t", "-o", "o.json", "--format", "mp3"], "format 'mp3': no such format", 2),
    (["merge", "nowhere", "-o", "o.json"], "directory 'nowhere': does not exist", 2),
    (["check", "."], "holds no trace", 2),
    (["stat", "t", "--bins", "0"], "bins 0: there is at least one", 2),
    (["stat", "t", "--bins", "2000000000"], "bins 2000000000: there are at most 100000", 2),
    (["activity", "t", "--bins", "2000000000"], "bins 2000000000: there are at most 100000", 2),
    (["overhead", "--repeat", "2", *APP], "repeat 2: is too few", 2),
    (["overhead", "--threads", "0", *APP], "threads 0: is not a number", 2),
    (["overhead", "--limit", "0", *APP], "limit 0.0: is not a share", 2),
    (["overhead", "--metric", "(", *APP], "metric '(': is not an expression", 2),
    (["overhead", "--repeat", "5", "--metric", "speed", *APP], "metric 'speed': finds no number", 1),
    (
        ["overhead", "--", "./app", "{threads}"],
        "threads: is used in the command, but --threads is missing",
        2,
    ),
    (["overhead", "--", "./app", "4"], "ended with exit code 4", 1),
    (["overhead", "--", "true"], "recorded nothing", 1),
]


@pytest.mark.usefixtures("trace")
@pytest.mark.parametrize(("words", "sentence", "code"), REFUSED, ids=lambda value: str(value)[:60])
def test_wrong_requests_are_refused_with_what_mends_them(
    capfd: pytest.CaptureFixture[str], words: list[str], sentence: str, code: int
) -> None:
    assert cli.run(["trace", *words]) == code
    assert sentence in capfd.readouterr().err


@pytest.mark.usefixtures("trace")
@pytest.mark.parametrize(("program", "code"), [("true", 0), ("false", 1), ("sh -c 'exit 3'", 3)])
def test_a_program_without_a_trace_keeps_its_exit_code(
    program: str, code: int, capfd: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["trace", "record", "-o", "new", "--", *shlex.split(program)]) == code
    out, err = capfd.readouterr()
    assert out == ""
    assert "No process recorded anything in new" in " ".join(err.split())


def test_what_is_preloaded_is_built_for_what_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of the folder says which MPI, and follows the sources."""
    kept: list[Any] = []

    def keep(target: Any, kind: str, key: str) -> Path:
        kept.append((target, key))
        return Path(kind, key, "libelbow_trace.so")

    monkeypatch.delenv("ELBOWROOM_TRACE_LIBRARIES", raising=False)
    monkeypatch.setattr("elbowroom.launch.native.kept", keep)
    monkeypatch.setattr("elbowroom.launch.native.compiler_identity", lambda *_: "c++ 12")
    (tmp_path / "bin").mkdir()
    mpi = build.Mpi(
        kind="mpich", version="4.0.2", prefix="/p", compiler="/p/bin/mpicxx.mpich", launcher="/p/bin/mpiexec"
    )
    folder = build.trace_libraries(mpi)
    assert build.trace_libraries() != folder
    assert folder.name.startswith("mpich-4.0.2-")
    assert kept[0][0].options == ("-DMPI_C_COMPILER=/p/bin/mpicc.mpich",)
