"""The folder of a study: continued by the same command, refused to other settings and other machines."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

import elbowroom
from elbowroom import cli
from elbowroom.errors import MachineError, UsageError
from elbowroom.measure import study as measured
from elbowroom.signals import Stopped

FIGURES = ("Fig. 2", "Fig. 3a")
"""Made from two short runs, prime-counting and avx512."""


def quiet(sentence: str) -> None:
    """Nobody waits."""


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "s")


def studied(folder: str, **options: Any) -> Any:
    settings = {"only": FIGURES, "quick": True, "machine": "henri", **options}
    return elbowroom.study("denis2021", out=folder, tell=quiet, **settings)


def created(folder: str) -> dict[str, str]:
    """When each run was begun."""
    runs = sorted((Path(folder) / "runs").iterdir())
    return {run.name: json.loads((run / "manifest.json").read_bytes())["created"] for run in runs}


def interrupt(monkeypatch: pytest.MonkeyPatch, error: Exception, at: str) -> None:
    """The run of that name fails instead of being measured."""
    start = measured.campaign.start

    def failing(request: Any, *rest: Any) -> Any:
        if request.out.endswith(at):
            raise error
        return start(request, *rest)

    monkeypatch.setattr(measured.campaign, "start", failing)


def test_a_study_writes_its_runs_a_report_and_its_verdicts(folder: str) -> None:
    document = studied(folder)
    assert [run.state for run in document.runs] == ["measured", "measured"]
    assert sorted(path.name for path in Path(folder).iterdir()) == [
        "report.html", "results.json", "runs", "study.json",
    ]  # fmt: skip
    html = (Path(folder) / "report.html").read_text(encoding="utf-8")
    assert [html.index(label) for label in FIGURES] == sorted(html.index(label) for label in FIGURES)
    assert "9097 against 9063 MB/s" in html
    assert "<svg" in html
    assert "http" not in html.replace("http-equiv", "").replace("http://www.w3.org", "")


def test_the_same_command_continues_an_interrupted_study(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        interrupt(patched, Stopped("stopped", field="run"), "avx512")
        with pytest.raises(Stopped, match=r"continue with: elbowroom study --resume .*/s"):
            studied(folder)
    before = created(folder)
    assert list(before) == ["prime-counting"]
    assert all(run.state == "measured" for run in studied(folder).runs)
    assert created(folder)["prime-counting"] == before["prime-counting"]


def test_resume_needs_nothing_but_the_folder(folder: str) -> None:
    first = studied(folder)
    begun = created(folder)
    again = elbowroom.study(resume=folder, tell=quiet)
    assert created(folder) == begun
    assert again.exhibits == first.exhibits


def test_other_settings_are_refused_and_change_nothing(folder: str) -> None:
    studied(folder)
    before = (Path(folder) / "results.json").read_bytes()
    with pytest.raises(UsageError, match="was started with --quick") as error:
        studied(folder, quick=False)
    assert error.value.field == "quick"
    with pytest.raises(UsageError, match="machine henri"):
        studied(folder, machine="bora")
    with pytest.raises(UsageError, match=r"Fig\. 2, Fig\. 3a"):
        studied(folder, only=())
    assert (Path(folder) / "results.json").read_bytes() == before


def test_another_machine_is_refused_in_one_sentence_and_nothing_is_lost(folder: str, tmp_path: Path) -> None:
    machine = tmp_path / "mine.toml"
    text = elbowroom.machine_text(elbowroom.virtual_machine("henri"))
    machine.write_text(text, encoding="utf-8")
    studied(folder, machine=str(machine))
    runs = created(folder)
    machine.write_text(text.replace("cores_per_socket = 18", "cores_per_socket = 19"), encoding="utf-8")
    with pytest.raises(UsageError, match="was started on another machine") as error:
        elbowroom.study(resume=folder, tell=quiet)
    assert "\n" not in error.value.sentence()
    assert created(folder) == runs


def test_a_run_that_fails_is_reported_and_the_others_are_measured(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt(monkeypatch, MachineError("rank 1 died", field="probe"), "prime-counting")
    document = studied(folder)
    assert [(run.name, run.state, run.reason) for run in document.runs] == [
        ("prime-counting", "failed", "rank 1 died"),
        ("avx512", "measured", ""),
    ]
    why = {statement.why for exhibit in document.exhibits[:1] for statement in exhibit.statements}
    assert why == {"rank 1 died"}


def test_a_folder_with_something_else_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="never overwritten"):
        studied(str(tmp_path / "s"))
    assert [path.name for path in (tmp_path / "s").iterdir()] == ["notes.txt"]


def test_a_label_that_the_paper_does_not_have_is_refused(folder: str) -> None:
    with pytest.raises(
        UsageError, match=r"is not a figure or table of denis2021; did you mean 'Fig\. 4[ab]'"
    ):
        studied(folder, only=("Fig. 4",))


def test_a_plan_names_runs_times_and_what_cannot_be_shown() -> None:
    planned = elbowroom.study_plan("denis2021", machine="henri", quick=True)
    runs = {run.name: run for run in planned.runs}
    assert runs["placement"].points > 0
    assert runs["constant-frequencies"].reason == "a virtual machine has no frequencies"
    shown = {exhibit.label: exhibit for exhibit in planned.exhibits}
    assert shown["Fig. 4a"].shown
    assert not shown["Fig. 1a"].shown
    assert planned.seconds == pytest.approx(sum(run.seconds for run in planned.runs))


def test_a_quick_study_measures_less_than_a_whole_one() -> None:
    whole, quick = (
        elbowroom.study_plan("denis2021", machine="henri", quick=short) for short in (False, True)
    )
    assert quick.seconds < whole.seconds / 3


@pytest.mark.parametrize("paper", elbowroom.study_names())
def test_every_study_runs_to_its_end_on_a_virtual_machine(
    paper: str, folder: str, capfd: pytest.CaptureFixture[str]
) -> None:
    only = {
        "denis2021": "Fig. 7a",
        "koop2009": "Slide 23",
        "langguth2018": "Fig. 2",
        "swartvagher2022": "Table 6.1",
        "tan2012": "Fig. 1a",
    }[paper]
    words = ["study", paper, "--machine", "henri", "--quick", "--only", only, "-o", folder]
    assert cli.run(words) == 0
    out = capfd.readouterr().out
    assert only in out
    assert "no evidence for or against the paper" in out.replace("\n", " ")
    # A path is never broken.
    assert max(len(line) for line in out.splitlines() if "/" not in line) <= 80


def test_a_model_is_not_tested_on_a_machine_that_answers_from_it(folder: str) -> None:
    document = elbowroom.study(
        "swartvagher2022", out=folder, only=("Table 6.1",), quick=True, machine="henri", tell=quiet
    )
    [statement] = document.exhibits[0].statements
    assert statement.verdict == "not testable here"
    assert "cannot confirm itself" in statement.why
    assert document.exhibits[0].tables == 1


def test_a_budget_is_shared_among_the_runs(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, float | None] = {}

    def note(request: Any, *rest: Any) -> Any:
        given[Path(request.out).name] = request.overrides.budget
        raise MachineError("not today", field="probe")

    monkeypatch.setattr(measured.campaign, "start", note)
    studied(folder, budget=100.0)
    shares = [seconds for seconds in given.values() if seconds is not None]
    assert len(shares) == 2
    assert all(0 < seconds < 100 for seconds in shares[:1])
    assert shares[-1] == pytest.approx(100, abs=2)


def planned(seconds: dict[str, float]) -> dict[str, Any]:
    """Runs as prepared for a machine that measures, each estimated to take so many seconds."""
    prepared = elbowroom.dry_run("quick", machine="henri")
    return {name: msgspec.structs.replace(prepared, seconds=one) for name, one in seconds.items()}


def test_a_plan_within_a_budget_takes_no_longer_and_says_which_runs_do_not_fit() -> None:
    limited, reasons = measured.within_budget(planned({"long": 900.0, "short": 10.0}), 300.0)
    assert list(limited) == ["long"]
    assert limited["long"].budget == pytest.approx(300 * 900 / 910)
    assert re.fullmatch(r"its share of the budget, 3 s, is too short: it needs \d+ s", reasons["short"]), (
        reasons
    )


def test_a_budget_that_no_run_fits_into_is_refused_with_one_that_does() -> None:
    runs = planned({"one": 100.0, "other": 100.0})
    with pytest.raises(UsageError, match="too short for any of the 2 runs") as caught:
        measured.within_budget(runs, 5.0)
    least = re.match(r"give at least (\d+) s", caught.value.hint)
    assert least, caught.value.hint
    assert measured.within_budget(runs, 1.05 * float(least[1]))[0]


def test_a_dry_run_says_what_could_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["study", "denis2021", "--machine", "henri", "--dry-run"]) == 0
    text = capsys.readouterr().out
    assert ": can be shown, " in text
    assert "statements can be judged" in text
    assert ": shown" not in text
