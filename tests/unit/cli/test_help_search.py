"""`elbowroom help WORD`: what is found, in which order, and what is said where nothing is."""

from __future__ import annotations

import pytest

from elbowroom import cli
from elbowroom.verbs import help_search
from elbowroom.verbs.help_search import HelpEntry


def found(capfd: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """What to type for each match, in order."""
    assert cli.run(["help", *words]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    return [line for line in out.splitlines() if line.startswith("elbowroom ")]


@pytest.mark.parametrize(
    ("words", "first"),
    [
        (["export"], "elbowroom export"),
        (["fit"], "elbowroom fit"),
        (["osu"], "elbowroom import"),
        (["roofline"], "elbowroom run intensity"),
        (["stencil"], "elbowroom help diffusion"),
        (["calibration"], "elbowroom calibrate"),
        (["slurm"], "elbowroom colocate schedule"),
    ],
)
def test_a_word_finds_commands_plans_and_pages(
    words: list[str], first: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert first in found(capfd, *words)[:4]


def test_an_option_is_found_with_its_line(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["help", "half-width"]) == 0
    lines = capfd.readouterr().out.splitlines()
    at = lines.index("elbowroom calibrate")
    assert any("--half-width PERCENT" in line for line in lines[at : at + 6])


def test_several_words_are_all_there(capfd: pytest.CaptureFixture[str]) -> None:
    assert "elbowroom run ring" in found(capfd, "memory", "bandwidth")
    assert found(capfd, "memory bandwidth") == found(capfd, "memory", "bandwidth")


def test_a_page_is_still_printed_by_its_name(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["help", "trace-overlap"]) == 0
    assert capfd.readouterr().out.startswith("# ")


def test_a_word_that_is_nowhere_is_answered_with_the_nearest(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["help", "lattency"]) == 2
    err = capfd.readouterr().err
    assert err.startswith("elbowroom: word 'lattency': is in no command and on no page; nearest: latency")
    assert err.count("\n") == 1


@pytest.mark.parametrize("columns", [40, 80])
def test_what_is_found_is_as_wide_as_the_terminal(
    columns: int, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert cli.run(["help", "bandwidth"]) == 0
    assert max(map(len, capfd.readouterr().out.splitlines())) <= columns


def test_names_go_before_titles_titles_before_lines_and_words_before_their_beginnings() -> None:
    entries = [
        HelpEntry("a", "a", "about nothing", ("reads latency",)),
        HelpEntry("b", "b", "latency of messages"),
        HelpEntry("latency", "c", "about nothing"),
        HelpEntry("d", "d", "about nothing", ("latencylike",)),
        HelpEntry("e", "e", "about nothing"),
    ]
    matches = help_search.search(["latency"], entries)
    assert [match.entry.typed for match in matches] == ["c", "b", "a", "d"]
    assert [match.line for match in matches] == ["", "", "reads latency", "latencylike"]
