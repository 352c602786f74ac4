"""The package of docs/reference/extend.md, installed: all that it adds is used from the command line."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import made_columns
from elbowroom import cli
from elbowroom.measure.doctor_facts import REGISTRIES
from elbowroom.store.exporters import EXPORTERS
from elbowroom.store.folder import RunFolder
from elbowroom.trace.columns import EVENT
from elbowroom.trace.exporter import ExportRequest
from plugin_site import Install, documented

JSRUN = '#!/bin/sh\nexport FAKE_RANKS=$(($2 * $4))\nshift 6\nexec "$@"\n'
"""`jsrun --nrs N --tasks_per_rs M --bind none PROGRAM`, as far as the made-up site needs it."""

RUN = ["run", "halo", "--launcher", "jsrun", "--out", "r", "--repeat", "5"]


@pytest.fixture
def halo(install_plugin: Install) -> None:
    install_plugin("halo", *documented())


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """Runs the command line, and returns (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, str, str]:
        code = cli.run(list(words))
        return code, *capfd.readouterr()

    return run


@pytest.fixture
def allocation(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An allocation of LSF with the made-up site's MPI and a `jsrun`."""
    script = tmp_path / "bin" / "jsrun"
    script.parent.mkdir()
    script.write_text(JSRUN)
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(script.parent), prepend=":")
    monkeypatch.setenv("LSB_JOBID", "1")
    return site


def shown(invoke: Any, *words: str) -> dict[str, Any]:
    """What a command prints as JSON; few repetitions are no reason to fail."""
    code, out, err = invoke(*words, "--json")
    assert code in (0, 3), err
    document: dict[str, Any] = json.loads(out)
    return document


def test_the_documented_package_is_declared_without_problems(halo: None) -> None:
    assert {registry.kind for registry in REGISTRIES} == {*documented()[1]}
    assert [problem for registry in REGISTRIES for problem in registry.problems()] == []


def test_every_block_of_the_page_is_below_60_lines() -> None:
    assert all(len(text.splitlines()) < 60 for text in documented()[0].values())


def test_a_run_of_its_workload_is_measured_shown_and_reported(
    halo: None, allocation: Path, invoke: Any
) -> None:
    run = shown(invoke, *RUN, "--mpi", str(allocation))
    assert run["points"] == shown(invoke, "show", "r")["points"]
    assert [point["halo"] for point in run["points"]] == [{"neighbours": 2}] * 2
    assert [point["comm"]["kept"]["value"] for point in run["points"]] == [0.5, 0.5]
    assert "keep 0.50" in " ".join(finding["text"] for finding in run["findings"])
    code, out, err = invoke("show", "r")
    assert code in (0, 3), err
    assert "Halo exchange" in out
    assert invoke("report", "r")[0] == 0
    assert "Halo exchange" in Path("r/report.html").read_text(encoding="utf-8")


def test_a_run_of_its_workload_is_resumed(halo: None, allocation: Path, invoke: Any) -> None:
    whole = shown(invoke, *RUN, "--mpi", str(allocation))
    journal = RunFolder.open(Path("r")).journal_path
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:-3]))
    assert shown(invoke, "run", "--resume", "r")["points"] == whole["points"]


def test_its_launcher_is_that_of_its_allocation(halo: None, allocation: Path, invoke: Any) -> None:
    words = [word for word in RUN if word not in ("--launcher", "jsrun")]
    shown(invoke, *words, "--mpi", str(allocation))
    assert RunFolder.open(Path("r")).manifest.launcher == "jsrun"


def test_its_keys_are_set_on_the_command_line(halo: None, allocation: Path, invoke: Any) -> None:
    run = shown(invoke, *RUN, "--mpi", str(allocation), "--set", "keys.neighbours=4")
    assert {point["halo"]["neighbours"] for point in run["points"]} == {4}


def test_its_machine_answers_and_its_model_is_fitted_and_predicts(halo: None, invoke: Any) -> None:
    assert "twin" in {item["name"] for item in shown(invoke, "machine", "list")["machines"]}
    shown(invoke, "run", "model", "--machine", "twin", "--out", "m")
    assert invoke("fit", "m", "-o", "m.json")[0] == 0
    assert set(json.loads(Path("m.json").read_text())["models"]["added"]["mean"]) >= {"comm_together"}
    words = ("predict", "m.json", "--cores", "4", "--comp-node", "0", "--comm-node", "0")
    assert shown(invoke, *words)["model"] == "flow"
    assert shown(invoke, *words, "--model-kind", "mean")["model"] == "mean"
    assert "Mean of all points" in report_of(invoke, "m", "m.json")


def report_of(invoke: Any, run: str, model: str) -> str:
    assert invoke("report", run, "--model", model)[0] == 0
    return Path(run, "report.html").read_text(encoding="utf-8")


def test_its_format_is_written(halo: None, tmp_path: Path) -> None:
    exporter = EXPORTERS.get("csv")
    assert exporter.write is not None
    request = ExportRequest(directory="t", path=tmp_path / "t.csv")
    exporter.write(
        io.BytesIO(
            made_columns.stream(made_columns.job(), [made_columns.event(5, 0, EVENT, made_columns.POWER)])
        ),
        request,
    )
    assert request.path.read_text() == "time_ns,thread,type,kind\n5,worker 0,power,event\n"


def test_its_log_is_imported(halo: None, invoke: Any) -> None:
    Path("mine.log").write_text("mybench with 4 ranks\n1024 100.5\n")
    assert shown(invoke, "import", "mine.log", "-o", "m")["imported"]["format"] == "mybench"
    assert shown(invoke, "show", "m")["tables"][0]["settings"] == {"ranks": 4}


def test_without_its_package_a_run_names_it_and_other_runs_are_shown(
    halo: None, allocation: Path, invoke: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown(invoke, *RUN, "--mpi", str(allocation))
    shown(invoke, "run", "quick", "--machine", "henri", "--out", "q", "--repeat", "5")
    monkeypatch.setattr(sys, "path", [path for path in sys.path if "site-halo" not in path])
    code, _, err = invoke("show", "r")
    assert code == 2
    assert err == (
        "elbowroom: workload 'halo': is a workload of the package halo, which is not installed; "
        "install it: pip install halo\n"
    )
    listed = {run["path"]: run["state"] for run in shown(invoke, "list", ".")["runs"]}
    assert listed == {"q": "finished", "r": "unreadable"}
    shown(invoke, "show", "q")


@pytest.mark.usefixtures("halo")
def test_its_format_of_an_acceptance_is_chosen_by_the_ending(invoke: Any, tmp_path: Path) -> None:
    code, _, err = invoke("accept", "--virtual", "20", "--plant", "link:3", "-o", "nodes.tickets")
    assert code == 4, err
    assert (tmp_path / "nodes.tickets").read_text().startswith("n3: link, loses ")
