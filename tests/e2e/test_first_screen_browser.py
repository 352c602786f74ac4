"""What a reader meets first on each page, in Chromium: the boxes of the first screen, and the faults of
accessibility that axe-core finds.
"""

from __future__ import annotations

import os
import runpy
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import pytest

from elbowroom import api
from elbowroom.report.page import Page, render
from elbowroom.verbs import profile, trace_overlap

pytest.importorskip("selenium.webdriver", reason="selenium is not installed (test extras)")

from selenium.webdriver.common.by import By

TESTS = Path(__file__).parents[1]
PAGES = runpy.run_path(str(TESTS / "report_pages.py"))
AXE = Path(
    os.environ.get("ELBOWROOM_AXE")
    or TESTS.parent / ".elbowroom" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
)
JOB = {
    "name": "stencil",
    "step": {"comp_bytes": "2GB", "comm_bytes": "64MB"},
    "now": {"cores": 6, "comp_node": 0, "comm_node": 0, "size": "64KiB", "overlap": True},
    "may": {"cores": "every", "size": ["64KiB", "1MiB"], "overlap": [True, False]},
}
SHOWN = ("run", "noisy", "empty", "job", "profile", "diagnosis", "study", "overlap")
Browser = Any
BOXES = """
const box = (name, element) => {
  const {left, right, top, bottom} = element.getBoundingClientRect();
  return {name, left, right, top, bottom, text: element.textContent.trim()};
};
const parts = [['answer', '#answer'], ['sentence', '#sentence'], ['reason', '#why'], ['next', '#next'],
               ['plot', '#first-plot .figure']];
const all = parts
  .map(([name, selector]) => box(name, document.querySelector(selector)));
document.querySelectorAll('.sides > div').forEach((side) => all.push(box(side.className, side)));
return all;
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page of each kind."""
    folder = tmp_path_factory.mktemp("pages")
    noisy: Page = PAGES["page"](70, PAGES["henri"](), trusted=False)
    made: dict[str, Page] = {
        "noisy": noisy,
        "empty": msgspec.structs.replace(noisy, results=(), figures=(), drifts=()),
        "job": msgspec.structs.replace(
            PAGES["page"](24, PAGES["small"]()),
            job=PAGES["jobbed"](JOB),
            models=(PAGES["modelled"](PAGES["document"]()),),
        ),
    }
    for name, page in made.items():
        (folder / f"{name}.html").write_text(render(page), encoding="utf-8")
    job = runpy.run_path(str(TESTS / "made_profiles.py"))["MadeJob"](8)
    for _ in range(5):
        job.compute(8_000_000, 0.1)
        job.exchange(1_000_000)
        job.allreduce()
    job.write(folder / "profile")
    profile.save(api.show_profile(folder / "profile"), folder / "profile.html")
    api.diagnose(folder / "profile", out=folder)
    overlap = runpy.run_path(str(TESTS / "made_overlap.py"))
    trace = folder / "trace.json.gz"
    overlap["write_gzip"](overlap["kineto"](overlap["make"](overlap["Recipe"](slowdown=1.3))), trace)
    trace_overlap.save(api.trace_overlap(trace), folder / "overlap.html")
    run = api.run("quick", machine="henri", out=folder / "run", seed=1, tell=lambda _: None)
    figures = ("Fig. 5.6a", "Fig. 3.1")
    study = api.study(
        "swartvagher2022",
        quick=True,
        machine="henri",
        only=figures,
        out=folder / "study",
        tell=lambda _: None,
    )
    return {
        "run": run.path / "report.html",
        "study": Path(study.report),
        **{name: folder / f"{name}.html" for name in SHOWN if name not in ("run", "study")},
    }


@pytest.fixture
def window(browser: Browser) -> Iterator[Callable[..., None]]:
    """Sets the size of the screen and its colours; both are undone afterwards."""

    def set_window(width: int, height: int, scheme: str = "light") -> None:
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)

    yield set_window
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def apart(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two boxes have no place in common."""
    return bool(
        one["right"] <= other["left"]
        or other["right"] <= one["left"]
        or one["bottom"] <= other["top"]
        or other["bottom"] <= one["top"]
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(1200, 900), (1600, 1000)])
def test_answer_numbers_plot_reason_and_next_command_are_on_the_first_screen(
    browser: Browser,
    window: Callable[..., None],
    pages: dict[str, Path],
    size: tuple[int, int],
    scheme: str,
) -> None:
    window(*size, scheme)
    browser.get(pages["run"].as_uri())
    dark = browser.execute_script("return matchMedia('(prefers-color-scheme: dark)').matches")
    assert dark == (scheme == "dark")
    boxes = browser.execute_script(BOXES)
    assert sorted(box["name"] for box in boxes) == [
        "answer",
        "comm",
        "comp",
        "next",
        "plot",
        "reason",
        "sentence",
    ]
    for box in boxes:
        assert box["text"], box
        assert box["right"] - box["left"] > 20, box
        assert box["bottom"] - box["top"] > 10, box
        assert box["left"] >= 0, box
        assert box["right"] <= size[0], box
        assert box["top"] >= 0, box
        assert box["bottom"] <= size[1], box
    for one, other in combinations(boxes, 2):
        assert apart(one, other), (one, other)


def test_the_first_screen_of_a_diagnosis_has_answer_account_and_median_step(
    browser: Browser, window: Callable[..., None], pages: dict[str, Path]
) -> None:
    window(1200, 900)
    browser.get(pages["diagnosis"].as_uri())
    for name in ("#answer", "#why", "#next", "#first-plot .account", "#step .timeline"):
        box = browser.find_element(By.CSS_SELECTOR, name).rect
        assert box["height"] > 10, name
        assert box["y"] + box["height"] <= 900, name
    bars = browser.find_elements(By.CSS_SELECTOR, "#first-plot .account .part-compute")
    assert len(bars) == 8


def test_each_side_has_one_number_with_its_interval(
    browser: Browser, window: Callable[..., None], pages: dict[str, Path]
) -> None:
    window(1200, 900)
    browser.get(pages["run"].as_uri())
    for side in browser.find_elements(By.CSS_SELECTOR, ".sides > div"):
        assert "loses" in side.find_element(By.TAG_NAME, "strong").text
        low, _, high = side.find_element(By.CLASS_NAME, "span").text.removesuffix(" %").partition(" to ")
        assert float(low) < float(high)
    lengths = browser.execute_script(
        "return [...document.querySelectorAll('#first-plot .series .curve')].map(c => c.getTotalLength())"
    )
    assert len(lengths) == 2
    assert min(lengths) > 100


def test_the_page_ends_its_first_screen_as_the_command_ends(
    browser: Browser, window: Callable[..., None], pages: dict[str, Path]
) -> None:
    from elbowroom.verbs.run_answer import run_answer

    window(1200, 900)
    browser.get(pages["run"].as_uri())
    answer = run_answer(api.open(pages["run"].parent))
    shown = [browser.find_element(By.ID, name).text for name in ("sentence", "why", "next")]
    assert shown == [answer.verdict, answer.why, answer.next]


def test_a_run_without_points_says_so(
    browser: Browser, window: Callable[..., None], pages: dict[str, Path]
) -> None:
    window(1200, 900)
    browser.get(pages["empty"].as_uri())
    assert "This run has no points" in browser.find_element(By.ID, "verdict").text
    assert "This run has no points" in browser.find_element(By.ID, "points").text
    assert not browser.find_elements(By.CSS_SELECTOR, ".sides > div")
    assert not browser.find_element(By.ID, "table-box").is_displayed()


def test_no_cell_of_the_table_is_cut(
    browser: Browser, window: Callable[..., None], pages: dict[str, Path]
) -> None:
    window(1200, 900)
    browser.get(pages["noisy"].as_uri())
    cut = browser.execute_script(
        "return [...document.querySelectorAll('#table th, #table tbody tr[data-row] td')]"
        ".filter(cell => cell.scrollWidth > cell.clientWidth).map(cell => cell.textContent)"
    )
    assert cut == []


@pytest.mark.parametrize("width", [400, 1200])
@pytest.mark.parametrize("name", SHOWN)
def test_no_page_is_wider_than_its_window(
    browser: Browser, window: Callable[..., None], pages: dict[str, Path], name: str, width: int
) -> None:
    window(width, 900)
    browser.get(pages[name].as_uri())
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", SHOWN)
def test_axe_finds_no_serious_fault(
    browser: Browser, window: Callable[..., None], pages: dict[str, Path], name: str, scheme: str
) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is not installed (npm ci in tests/axe; ./elbowroom test does it where npm is)")
    window(1200, 900, scheme)
    browser.get(pages[name].as_uri())
    browser.execute_script(AXE.read_text(encoding="utf-8"))
    found = browser.execute_async_script(
        """const done = arguments[0];
        axe.run(document, {resultTypes: ['violations']}).then((result) => done(result.violations
          .filter((one) => ['serious', 'critical'].includes(one.impact))
          .map((one) => [one.id, one.help, one.nodes.slice(0, 4).map((node) => node.html.slice(0, 160) + ' | '
            + node.failureSummary.slice(0, 300))])));"""
    )
    assert found == []
