"""The first screen of a run's report: the point, the numbers of both sides, and the plot of their losses."""

from __future__ import annotations

import runpy
from pathlib import Path

import msgspec
import pytest

from elbowroom.report import first_screen
from elbowroom.report.page import Page, render
from elbowroom.results.result import LostShare
from elbowroom.stats.interval import Kept

PAGES = runpy.run_path(str(Path(__file__).parents[2] / "report_pages.py"))


@pytest.fixture
def page() -> Page:
    made: Page = PAGES["page"](350)
    return made


def test_the_point_is_the_one_that_the_grade_rests_on(page: Page) -> None:
    chosen = page.results[40]
    verdict = msgspec.structs.replace(page.verdict, point=chosen.id)
    assert first_screen.shown_point(page.results, verdict) is chosen


def test_without_a_grade_it_is_what_the_plan_is_about_first(page: Page) -> None:
    shown = first_screen.shown_point(page.results, page.verdict)
    assert shown is not None
    assert (shown.n, shown.size) == (35, 64 * 10**6)


def test_a_run_without_points_has_no_numbers_and_says_so(page: Page) -> None:
    assert first_screen.shown_point((), page.verdict) is None
    html = render(msgspec.structs.replace(page, results=(), figures=()))
    assert "This run has no points" in html


def test_losses_have_intervals_and_a_gain_is_called_so(page: Page) -> None:
    result = next(item for item in page.results if item.status == "ok")
    comm = msgspec.structs.replace(result.comm, kept=Kept(value=0.69, low=0.62, high=0.76))
    comp = msgspec.structs.replace(result.comp, kept=Kept(value=1.04, low=1.01, high=1.07))
    sides = first_screen.numbers(msgspec.structs.replace(result, comm=comm, comp=comp))
    assert [side["loss"] for side in sides] == ["loses 31 %", "gains 4 %"]
    assert sides[0]["span"] == "24 to 38 %"
    assert sides[1]["span"].startswith("as a loss:")


def test_an_interval_that_allows_no_loss_is_not_certain(page: Page) -> None:
    result = next(item for item in page.results if item.status == "ok")
    comm = msgspec.structs.replace(result.comm, kept=Kept(value=0.98, low=0.95, high=1.01))
    side = first_screen.numbers(msgspec.structs.replace(result, comm=comm))[0]
    assert side["span"].startswith("not certain:")


def test_the_plot_goes_over_the_axis_with_more_points(page: Page) -> None:
    shown = first_screen.shown_point(page.results, page.verdict)
    assert shown is not None
    figure = first_screen.loss_figure(page.results, shown)
    assert figure.x.label == "Computing cores"
    assert figure.below is None
    measured = [item.n for item in page.results if item.kernel == shown.kernel and item.size == shown.size]
    assert len(figure.series[0].x) > len(measured) / 2
    alone = first_screen.loss_figure([shown], shown)
    assert [series.drawn for series in alone.series] == ["bars", "bars"]


@pytest.mark.parametrize(
    ("grade", "comm", "comp", "line"),
    [
        (
            "yes",
            (0.26, 0.25, 0.27),
            (0.14, 0.13, 0.15),
            "Yes: communication loses 26 %, computation loses 14 %.",
        ),
        ("likely", (0.26, 0.05, 0.4), (0.02, -0.1, 0.1), "Likely: communication loses 26 %."),
        ("no", (0.0, -0.01, 0.02), (0.0, -0.02, 0.03), "No: neither side loses more than 3 %."),
        ("at most", (0.1, -0.1, 0.18), None, "Neither side loses more than 18 %."),
        ("cannot say", (0.1, None, None), None, "Cannot say: a loss of 12 % or more would have been seen."),
        ("yes", None, None, ""),
    ],
)
def test_the_headline_is_the_grade_with_its_losses(page: Page, grade, comm, comp, line) -> None:
    sides = {
        name: None if ends is None else LostShare(loss=ends[0], low=ends[1], high=ends[2])
        for name, ends in (("comm", comm), ("comp", comp))
    }
    verdict = msgspec.structs.replace(page.verdict, grade=grade, visible=0.12, **sides)
    assert first_screen.headline(verdict) == line
