"""`elbowroom tour`: on a bare machine, and the page that is made of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import five_minutes
import msgspec
import pytest

from elbowroom import cli
from elbowroom.verbs import tour
from elbowroom.verbs.tour import STEPS, Tour, TourStep


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Tour:
    """A tour where nothing can be compiled, and neither HOME nor the working directory can be written."""
    temporary = tmp_path_factory.mktemp("temporary")
    keep = {name: value for name, value in os.environ.items() if not name.startswith(("ELBOWROOM", "CMAKE"))}
    done = subprocess.run(
        [sys.executable, "-m", "elbowroom", "tour", "--json"],
        cwd="/proc",
        capture_output=True,
        text=True,
        env={**keep, "PATH": "/nowhere", "HOME": "/nowhere", "TMPDIR": str(temporary)},
    )
    assert done.returncode == 0, done.stderr
    assert "building" not in done.stderr
    document = msgspec.convert(json.loads(done.stdout), Tour)
    assert Path(document.folder).parent == temporary
    return document


@pytest.mark.slow
@pytest.mark.xdist_group("tour")
def test_the_tour_needs_no_compiler_no_home_and_no_working_directory(played: Tour) -> None:
    assert [step.title for step in played.steps] == ["Measure", "Read", "Fit", "Predict", "Advise", "Verify"]
    files = {path.name for path in Path(played.folder).iterdir()}
    assert files == {"henri", "henri.json", "job.toml", "verified"}


@pytest.mark.slow
@pytest.mark.xdist_group("tour")
def test_every_excerpt_is_found_and_every_step_ends_with_a_command(played: Tour) -> None:
    for step, done in zip(STEPS, played.steps, strict=True):
        for pattern in step.excerpts:
            assert re.search(pattern, done.output, re.MULTILINE), (step.title, pattern)
        assert re.match("next: elbowroom .*", done.paragraphs()[-1]), step.title


def test_the_five_minute_page_has_the_words_of_the_tour() -> None:
    """Its output is compared by tests/unit/docs/test_quoted.py. `python tools/five_minutes.py` writes it."""
    page = five_minutes.PAGE.read_text(encoding="utf-8")
    outputs = re.findall(
        r"^<!-- fitted -->\n```console\n\$ [^\n]*\n(.*?)\n```$", page, re.MULTILINE | re.DOTALL
    )
    assert page == five_minutes.page(outputs)
    assert len(page.splitlines()) <= 150


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Steps that are not run, in a folder of their own."""

    def play(step: tour.Step, folder: Path) -> TourStep:
        output = f"above\n\nVerdict of {step.title}.\n\nWhy.\n\nnext: elbowroom list\n"
        return TourStep(title=step.title, text=step.text, command=step.command, output=output, seconds=1.0)

    monkeypatch.setattr(tour, "play", play)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_tour_ends_with_what_to_do_next(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["tour"]) == 0
    text = capsys.readouterr().out
    assert (recorded / "tour").is_dir()
    assert text.index("--- 6 of 6: Verify ---") < text.index("elbowroom diagnose -- mpirun")
    assert text.split("\n\n")[-3:] == [
        "Verdict of Verify.",
        "Six commands led there in 6 s, and left their files in tour. A virtual machine\n"
        "answered: your own is still to be measured.",
        "next: elbowroom run quick\n",
    ]


def test_commands_begin_as_the_script_was_typed(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ELBOWROOM_TYPED", "../check out/elbowroom")
    assert cli.run(["tour"]) == 0
    assert capsys.readouterr().out.endswith("\nnext: '../check out/elbowroom' run quick\n")


def test_a_second_tour_has_a_folder_of_its_own(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (recorded / "tour").mkdir()
    assert cli.run(["tour"]) == 0
    assert "/elbowroom-tour-" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("folder", "code", "sentence"), [("x", 2, "exists already"), ("/proc/x", 2, "cannot be written")]
)
def test_a_folder_that_cannot_be_used_is_refused(
    recorded: Path, capsys: pytest.CaptureFixture[str], folder: str, code: int, sentence: str
) -> None:
    (recorded / "x").mkdir()
    assert cli.run(["tour", "--out", folder]) == code
    assert sentence in capsys.readouterr().err


def test_a_step_that_fails_says_which(tmp_path: Path) -> None:
    broken = STEPS[1]._replace(command="show nothing-here")
    with pytest.raises(tour.MachineError, match="ended with exit code 2"):
        tour.play(broken, tmp_path)
