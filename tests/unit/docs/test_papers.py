"""The items of the papers: each figure has one, its command can be typed, and the pages show the same."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import paper_pages
import pytest

from cli_commands import refusal
from elbowroom import cli
from elbowroom.studies import STUDIES
from elbowroom.studies.items import STATUSES, PaperItem, paper_items

ROOT = Path(__file__).resolve().parents[3]
ITEMS = paper_items().items
COMMANDS = sorted({item.command for item in ITEMS if item.command})
OURS = [shlex.split(command)[1:] for command in COMMANDS if command.startswith("elbowroom ")]
SCRIPTS = [shlex.split(command)[1:] for command in COMMANDS if command.startswith("python ")]


def labels(label: str) -> list[str]:
    """The single figures of a label of a study: `Fig. 3.3, 3.4`, `Fig. 3.5 to 3.7`."""
    if between := re.fullmatch(r"Fig\. (\d+)\.(\d+) to \d+\.(\d+)", label):
        chapter, first, last = map(int, between.groups())
        return [f"Fig. {chapter}.{number}" for number in range(first, last + 1)]
    if label.startswith("Fig. "):
        return [f"Fig. {number}" for number in label.removeprefix("Fig. ").split(", ")]
    return [label]


def test_figures_of_a_range_are_counted_one_by_one() -> None:
    assert labels("Fig. 3.5 to 3.7") == ["Fig. 3.5", "Fig. 3.6", "Fig. 3.7"]
    assert labels("Fig. 5.4b, 5.4c") == ["Fig. 5.4b", "Fig. 5.4c"]
    assert labels("3.2, bora") == ["3.2, bora"]


@pytest.mark.parametrize("paper", STUDIES.names())
def test_every_figure_and_table_of_a_study_has_an_item(paper: str) -> None:
    own = {figure for item in ITEMS if item.document == paper for figure in item.figures}
    if paper == "swartvagher2022":
        shared = (figure for item in ITEMS if item.document == "denis2021" for figure in item.figures)
        own |= {figure.removeprefix("thesis ") for figure in shared if figure.startswith("thesis ")}
    every = [single for exhibit in STUDIES.get(paper).exhibits for single in labels(exhibit.label)]
    assert [single for single in every if single not in own] == []


def test_every_study_has_items_and_there_are_more_than_214() -> None:
    assert {item.document for item in ITEMS} == set(STUDIES.names())
    assert len(ITEMS) >= 214


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: f"{item.document}-{item.section}-{item.item[:30]}")
def test_what_is_done_has_a_command_and_anything_else_a_reason(item: PaperItem) -> None:
    assert item.command or item.status == "refused"
    assert item.reason or item.status == "done"


@pytest.mark.parametrize("words", OURS, ids=" ".join)
def test_the_command_of_an_item_parses(words: list[str]) -> None:
    assert not refusal(words, whole=True)


@pytest.mark.parametrize("words", [words for words in OURS if words[0] == "study"], ids=" ".join)
def test_the_figure_that_a_command_names_is_one_of_its_study(words: list[str]) -> None:
    known = {exhibit.label for exhibit in STUDIES.get(words[1]).exhibits}
    named = {words[place + 1] for place, word in enumerate(words) if word == "--only"}
    assert named <= known


@pytest.mark.parametrize("script", sorted({words[0] for words in SCRIPTS}))
def test_the_benchmark_of_an_item_has_the_options_of_its_commands(script: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / script), "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    options = {word for words in SCRIPTS if words[0] == script for word in words if word.startswith("--")}
    assert [option for option in options if option not in done.stdout] == []


PREPARED = ("run", "study")
"""Commands that expand a plan."""
LACKS = ("cannot measure any point", "cannot be set on this machine", "needs", "nothing to measure")
"""Parts of what a command says that this machine lacks something for."""


@pytest.mark.parametrize("words", [words for words in OURS if words[0] in PREPARED], ids=" ".join)
def test_the_plan_of_an_item_is_one_that_this_machine_can_run_or_lacks_something_for(
    words: list[str], capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if "--hosts" in words or "mesh=FILE" in words:
        pytest.skip("names hosts or a mesh that are not here")
    code = cli.run([*words, "--dry-run", "--json"])
    document = json.loads(capfd.readouterr().out)
    if code:
        error = document["error"]
        assert any(part in f"{error['message']} {error['hint']}" for part in LACKS), error
    else:
        assert document["schema"] in ("elbowroom/dry-run", "elbowroom/study-plan")


QUICK = ("predict-step", "predict", "machine", "broadcast draw", "colocate schedule", "doctor")
"""Commands that answer at once, without a run or a trace."""
ANSWERED = [
    words
    for words in OURS
    if " ".join(words).startswith(QUICK) and not any(word in ("steps.csv", "RUN") for word in words)
]


@pytest.mark.parametrize("words", ANSWERED, ids=" ".join)
def test_a_command_that_takes_no_time_gives_its_answer(
    words: list[str], capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("docs", "machines"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    assert cli.run([*words, "--json"]) in (0, 3)
    assert json.loads(capfd.readouterr().out)
    drawn = [words[place + 1] for place, word in enumerate(words) if word == "-o"]
    assert all((tmp_path / name).stat().st_size for name in drawn)


def test_a_document_without_items_is_refused_with_the_known_ones(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["papers", "tan2013", "--json"]) == 2
    error = json.loads(capfd.readouterr().out)["error"]
    assert error["field"] == "document"
    assert "tan2012" in error["hint"]


def test_the_document_of_the_command_counts_its_items(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["papers", "koop2009", "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert document["schema"] == "elbowroom/papers"
    assert {item["document"] for item in document["items"]} == {"koop2009"}
    assert sum(document["counts"].values()) == len(document["items"])
    assert set(document["counts"]) == set(STATUSES)


@pytest.mark.parametrize("page", paper_pages.PAGES, ids=lambda page: page.name)
def test_a_page_of_items_is_that_of_the_data(page: paper_pages.ItemPage) -> None:
    text = page.path.read_text(encoding="utf-8")
    assert text == paper_pages.render(page), "run python tools/paper_pages.py --update"
    assert len(text.splitlines()) <= 150
    titles = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert titles[-1] == "What only other hardware can show"


def test_every_item_is_on_one_page() -> None:
    for item in ITEMS:
        assert sum(page.takes(item) for page in paper_pages.PAGES) == 1, item


def test_a_changed_item_changes_its_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from elbowroom.studies import items

    copy = tmp_path / "items.csv"
    shutil.copy(ROOT / "src" / "elbowroom" / "studies" / "items.csv", copy)
    text = copy.read_text(encoding="utf-8")
    copy.write_text(text.replace(",done,elbowroom run ema,", ",part,elbowroom run ema,", 1))
    page = next(page for page in paper_pages.PAGES if page.document == "tan2012")
    before = paper_pages.render(page)
    monkeypatch.setattr(items, "_FILE", copy)
    assert paper_pages.render(page) != before


def page_of(paper: str) -> str:
    return (ROOT / STUDIES.get(paper).page).read_text(encoding="utf-8")


@pytest.mark.parametrize("paper", STUDIES.names())
def test_the_page_of_a_paper_points_to_its_items(paper: str) -> None:
    for page in paper_pages.PAGES:
        if page.document == paper:
            assert f"({page.path.name})" in page_of(paper)


@pytest.mark.parametrize("paper", STUDIES.names())
def test_the_page_of_a_paper_ends_with_what_could_not_be_tested(paper: str) -> None:
    titles = re.findall(r"^## (.+)$", page_of(paper), re.MULTILINE)
    assert titles[-1] == "What could not be tested here"
