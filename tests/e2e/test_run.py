"""The whole program against a made-up site: runs, resumes, failures; nothing here depends on time."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from elbowroom.store.journal import read_journal
from texts import widest

SMALL = ["--sizes", "4,4MiB", "--repeat", "5", "--kernels", "triad"]


def lines(folder: Path) -> list[Any]:
    return read_journal(folder / "samples.jsonl")[0]


def test_a_plan_becomes_a_run_folder_a_table_and_a_report(run: Any, tmp_path: Path) -> None:
    code, out, err = run("run", "quick", *SMALL, "--out", "r")
    assert code == 0, err
    assert sorted(path.name for path in (tmp_path / "r").iterdir()) == [
        "manifest.json",
        "report.html",
        "samples.jsonl",
        "samples.parquet",
        "topology.xml",
    ]
    assert "triad" in out
    assert "report: r/report.html" in out
    assert widest(out) <= 80
    units = [item.unit for item in lines(tmp_path / "r")]
    assert len(units) == len(set(units))


def test_show_json_is_one_object_with_points_as_documented(run: Any) -> None:
    run("run", "quick", *SMALL, "--out", "r")
    code, out, _ = run("show", "r", "--json")
    found = json.loads(out)
    assert code == 0
    assert {"schema", "version", "machine", "verdict", "points", "findings", "notes"} <= found.keys()
    point = next(item for item in found["points"] if item["kernel"] == "triad" and item["size"] == 4 << 20)
    assert {"plan", "n", "comp_node", "comm_node", "comm_core", "metric", "status", "flags"} <= point.keys()
    assert point["comp"]["kept"]["value"] == pytest.approx(0.7)
    assert point["comm"]["alone"].keys() == {"median", "d1", "d9", "low", "high", "count", "unit"}
    latency = next(item for item in found["points"] if item["metric"] == "latency")
    assert latency["comm"]["kept"]["value"] == pytest.approx(1.0)


def test_a_run_that_is_too_noisy_leaves_with_3_and_says_why(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elbowroom.measure.manifest.sample", lambda: 1.5)
    code, out, err = run("run", "quick", *SMALL, "--out", "r")
    assert code == 3
    assert "Other processes kept 1.5" in out
    assert "warning" in err


def test_a_rank_that_dies_fails_its_point_with_the_reason_and_the_rest_goes_on(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_DIE", "triad-n1-4B:1")
    run("run", "quick", *SMALL, "--out", "r")
    failed = [item for item in lines(tmp_path / "r") if item.record["status"] == "failed"]
    assert [(item.point[:11], item.repetition) for item in failed] == [("triad-n1-4B", 1)]
    assert "exit code 7" in failed[0].record["reason"]
    assert "out of luck" in failed[0].record["reason"]
    points = {item["id"]: item for item in json.loads(run("show", "r", "--json")[1])["points"]}
    assert {item["status"] for item in points.values()} == {"ok", "failed"}
    assert "out of luck" in points[failed[0].point]["reason"]


def test_a_rank_that_hangs_is_given_up_and_the_rest_goes_on(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_HANG", "triad-n1-4B:0")
    run("run", "quick", *SMALL, "--out", "r", "--timeout", "2")
    failed = [item for item in lines(tmp_path / "r") if item.record["status"] == "failed"]
    assert {item.repetition for item in failed} == {0}
    assert "no answer within 2 s" in failed[0].record["reason"]


def test_a_point_that_always_kills_the_probe_is_not_asked_for_ever(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    monkeypatch.setenv("FAKE_LOG", str(log))
    monkeypatch.setenv("FAKE_DIE", "triad-n1-4B:*")
    run("run", "quick", *SMALL, "--out", "r")
    asked = [line for line in log.read_text().splitlines() if line.startswith("triad-n1-4B")]
    assert len(asked) == 2
    reasons = {item.record["reason"] for item in lines(tmp_path / "r") if item.record["status"] == "failed"}
    assert any(reason.startswith("not measured again after: the probe died") for reason in reasons)


@pytest.mark.parametrize(("share", "flagged"), [("0.5", True), ("1.1", False)])
def test_a_counter_that_disagrees_with_the_bytes_is_called_suspect(
    run: Any, monkeypatch: pytest.MonkeyPatch, share: str, flagged: bool
) -> None:
    monkeypatch.setenv("FAKE_MISSES", share)
    run("run", "quick", *SMALL, "--out", "r")
    _, out, _ = run("show", "r", "--json")
    triad = [point for point in json.loads(out)["points"] if point["kernel"] == "triad"]
    assert triad
    assert {"counter_suspect:llc_misses" in point["flags"] for point in triad} == {flagged}


def test_a_failed_repetition_is_measured_again_on_demand(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_ERROR", "triad-n1-4B:2")
    run("run", "quick", *SMALL, "--out", "r")
    before = len(lines(tmp_path / "r"))
    monkeypatch.delenv("FAKE_ERROR")
    run("run", "--resume", "r")
    assert any(item.record["status"] == "failed" for item in lines(tmp_path / "r"))
    assert run("run", "--resume", "r", "--retry-failed")[0] == 0
    assert all(item.record["status"] == "ok" for item in lines(tmp_path / "r"))
    assert len(lines(tmp_path / "r")) == before


def test_resuming_measures_only_what_is_missing(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("run", "quick", *SMALL, "--out", "r")
    journal = tmp_path / "r" / "samples.jsonl"
    whole = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(whole[:4]) + whole[4][:50])
    log = tmp_path / "log"
    monkeypatch.setenv("FAKE_LOG", str(log))
    code, _, err = run("run", "--resume", "r")
    assert code == 0, err
    assert len(log.read_text().splitlines()) == len(whole) - 4
    assert journal.read_bytes().startswith(b"".join(whole[:4]))
    assert sorted(map(_of_any_start, journal.read_bytes().splitlines())) == sorted(map(_of_any_start, whole))


def _of_any_start(line: bytes) -> str:
    """A line without the start of the program that it is from: going on is another one."""
    entry = json.loads(line)
    entry["record"] = {key: value for key, value in entry.get("record", {}).items() if key != "start"}
    return json.dumps(entry)


def test_a_finished_run_resumes_without_measuring(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("run", "quick", *SMALL, "--out", "r")
    before = (tmp_path / "r" / "samples.jsonl").read_bytes()
    monkeypatch.setenv("FAKE_RANKS", "1")
    assert run("run", "--resume", "r")[0] == 0
    assert (tmp_path / "r" / "samples.jsonl").read_bytes() == before


def test_a_replayed_run_says_what_the_recorded_one_said(run: Any) -> None:
    run("run", "quick", *SMALL, "--out", "r")
    first = json.loads(run("show", "r", "--json")[1])
    code, _, err = run("run", "quick", *SMALL, "--launcher", "replay:r", "--out", "again")
    assert code == 0, err
    second = json.loads(run("show", "again", "--json")[1])
    assert first["points"] == second["points"]


def test_a_replayed_run_without_a_point_says_so(run: Any) -> None:
    run("run", "quick", *SMALL, "--out", "r")
    run("run", "quick", *SMALL[:1], "8", *SMALL[2:], "--launcher", "replay:r", "--out", "again")
    points = json.loads(run("show", "again", "--json")[1])["points"]
    assert "not in the recorded run" in {item["reason"] for item in points}


def test_dry_run_prints_command_lines_and_measures_nothing(run: Any, tmp_path: Path, site: Path) -> None:
    code, out, _ = run("run", "quick", *SMALL, "--dry-run")
    assert code == 0
    assert f"{site}/bin/mpirun -n 2 --bind-to none" in out
    assert "about" in out
    assert not (tmp_path / "runs").exists()


def test_exports_are_read_by_other_programs(run: Any, tmp_path: Path) -> None:
    import csv

    import pyarrow.parquet

    run("run", "quick", *SMALL, "--out", "r")
    for kind in ("parquet", "csv", "json"):
        assert run("export", "r", "--format", kind, "-o", f"x.{kind}")[0] == 0
    rows = pyarrow.parquet.read_table(tmp_path / "x.parquet").num_rows
    with open(tmp_path / "x.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) == rows
    assert json.loads((tmp_path / "x.json").read_text())["schema"] == "elbowroom/show"


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_figures_are_exported_as_files(run: Any, recorded: Path, tmp_path: Path, kind: str) -> None:
    code, out, _ = run("export", str(recorded), "--format", kind, "-o", "figures")
    assert code == 0
    assert out.splitlines()
    assert {f"figures/{path.name}" for path in (tmp_path / "figures").iterdir()} == set(out.splitlines())


def test_comparison_a_run_with_itself_finds_nothing(run: Any) -> None:
    run("run", "quick", *SMALL, "--out", "r")
    code, out, _ = run("compare", "r", "r", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["changes"]
    assert found["significant"] == 0


BAD = [
    (["run", "quick", "--kernels", "triat"], 2, "kernels 'triat': no such kernel; did you mean 'triad'?"),
    (["run", "quick", "--set", "metric=speed"], 2, "metric"),
    (["run", "quick", "--set", "windows=1"], 2, "windows"),
    (["run", "quik"], 2, "did you mean 'quick'?"),
    (["run"], 2, "no plan is given"),
    (["run", "quick", "--comp-cores", "9"], 2, "core 9 does not exist"),
    (["run", "quick", "--comp-cores", "1,1"], 2, "named twice"),
    (["run", "quick", "--comp-cores", "0", "--comm-core", "0"], 2, "core 0"),
    (["run", "quick", "--comp-node", "5"], 2, "NUMA node 5 does not exist"),
    (["run", "quick", "--sizes", "0"], 2, "at least 1 B"),
    (["run", "quick", "--sizes", "-4"], 2, "at least 1 B"),
    (["run", "quick", "--sizes", "4TiB"], 2, "larger than memory"),
    (["run", "quick", "--repeat", "0"], 2, "repeat"),
    (["run", "quick", "--hosts", "a:1"], 2, "2 ranks need more than the 1 slots"),
    (["run", "quick", "--launcher", "srun"], 2, "no allocation here"),
    (["run", "quick", "--launcher", "slurm"], 2, "no such launcher"),
    (["run", "quick", "--set", "hosts=2"], 2, "needs 2 hosts"),
    (["run", "quick", "--out", "/proc/x/y"], 2, "cannot be written"),
    (["run", "quick", "--no-such-option"], 2, "no such option"),
    (["run", "--resume", "nothing"], 2, "does not exist"),
    (["show", "nothing"], 2, "does not exist"),
]


@pytest.mark.parametrize(("words", "code", "sentence"), BAD, ids=[" ".join(words[0][1:]) for words in BAD])
def test_a_bad_request_is_one_sentence_and_leaves_nothing_behind(
    run: Any, tmp_path: Path, words: list[str], code: int, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("SLURM_JOB_ID", "FLUX_URI", "PBS_NODEFILE"):
        monkeypatch.delenv(variable, raising=False)
    before = sorted(path for path in tmp_path.rglob("*") if "site" not in path.parts)
    found, out, err = run(*words, "--json")
    told = [line for line in err.splitlines() if line.startswith("elbowroom: ")]
    assert (found, len(told)) == (code, 1), err
    assert sentence in told[0]
    assert "Traceback" not in err
    error = json.loads(out)
    assert error["exit_code"] == code
    assert error["error"]["message"]
    assert sorted(path for path in tmp_path.rglob("*") if "site" not in path.parts) == before


def test_core_outside_the_cpuset_is_refused(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0})
    code, _, err = run("run", "quick", "--comp-cores", "1")
    assert code == 2
    assert "cpuset" in err


def test_a_probe_of_another_mpi_is_refused_before_anything_is_written(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_LIBRARY", "Open MPI v4.1.4, other")
    code, _, err = run("run", "quick", *SMALL, "--out", "r")
    assert code == 2
    assert "launcher belongs to Open MPI 9.9.9 but the library belongs to Open MPI v4.1.4" in err
    assert not (tmp_path / "r").exists()


def test_ranks_that_do_not_come_up_together_are_counted(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_RANKS", "1")
    code, _, err = run("run", "quick", *SMALL, "--out", "r")
    assert code == 1
    assert "2 ranks were requested but 1 started" in err
    assert not (tmp_path / "r").exists()


def test_a_missing_compiler_is_a_sentence_with_the_packages(
    run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("ELBOWROOM_PROBE")
    monkeypatch.setenv("CXX", "no-such-compiler")
    code, _, err = run("run", "quick", *SMALL)
    assert code == 1
    assert "no C++ compiler (no-such-compiler) was found" in err
    assert "apt-get install g++" in err


def test_an_unreadable_topology_names_the_file(
    run: Any, recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = recorded / "topology.xml"
    broken.write_text("<topology")
    monkeypatch.setenv("FAKE_TOPOLOGY", str(broken))
    code, _, err = run("run", "quick", *SMALL, "--out", "r")
    assert code == 2
    assert "topology" in err


@pytest.mark.parametrize("name", ["manifest.json", "samples.jsonl"])
def test_a_run_of_a_newer_release_is_refused_in_words(run: Any, recorded: Path, name: str) -> None:
    file = recorded / name
    head, *rest = file.read_bytes().split(b"\n") if name == "samples.jsonl" else (file.read_bytes(),)
    found = msgspec.json.decode(head)
    found["version"] = 99
    file.write_bytes(b"\n".join([msgspec.json.encode(found), *rest]))
    code, _, err = run("show", str(recorded))
    assert code == 2
    assert "newer release" in err


def test_a_run_that_was_begun_elsewhere_is_not_mixed_with_this_machine(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("run", "quick", *SMALL, "--out", "r")
    journal = tmp_path / "r" / "samples.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:3]))
    other = tmp_path / "other.xml"
    here = Path(__file__).parents[1] / "data" / "quick" / "topology.xml"
    other.write_text(here.read_text().replace('name="HostName" value="', 'name="HostName" value="not-'))
    monkeypatch.setenv("FAKE_TOPOLOGY", str(other))
    code, _, err = run("run", "--resume", "r")
    assert code == 2
    assert "another machine" in err


def test_options_that_would_change_a_run_are_refused_with_resume(run: Any, recorded: Path) -> None:
    code, _, err = run("run", "--resume", str(recorded), "--sizes", "4")
    assert code == 2
    assert "cannot be given with --resume" in err


def test_python_can_do_what_the_command_line_does(run: Any, tmp_path: Path) -> None:
    import elbowroom

    run("run", "quick", *SMALL, "--out", "r")
    opened = elbowroom.open(tmp_path / "r")
    assert len(opened.samples().to_pandas()) > len(opened.frame()) == len(opened.points())
    assert opened.show()["verdict"]["trusted"] is opened.verdict.trusted
    assert opened.machine.allowed == (0, 1)
    assert opened.report(tmp_path / "copy.html").read_text().startswith("<!")
    assert elbowroom.compare(opened, opened)
    shutil.rmtree(tmp_path / "r")
