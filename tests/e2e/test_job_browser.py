"""A job on its contention map in a real browser: what the pointer is told, and that a telephone shows it."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from elbowroom.report.page import Page

pytest.importorskip("selenium.webdriver", reason="selenium is not installed (test extras)")

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

PAGES = runpy.run_path(str(Path(__file__).parents[1] / "report_pages.py"))
JOB = {
    "name": "stencil",
    "step": {"comp_bytes": "2GB", "comm_bytes": "64MB"},
    "now": {"cores": 6, "comp_node": 0, "comm_node": 0, "size": "64KiB"},
    "may": {"cores": "every", "size": ["64KiB", "1MiB"]},
}
Browser = Any


@pytest.fixture(scope="module")
def part() -> Any:
    """The job as the page shows it."""
    return PAGES["jobbed"](JOB)


@pytest.fixture
def shown(opened: Callable[[Page], Page], part: Any) -> Any:
    """The page of the job, and the job."""
    opened(msgspec.structs.replace(PAGES["page"](24, PAGES["small"]()), job=part))
    return part


@pytest.fixture
def telephone(browser: Browser) -> Iterator[Browser]:
    """The browser with a window of 400 px."""
    metrics = {"width": 400, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    yield browser
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def the_map(browser: Browser) -> Any:
    found = browser.find_element(By.CSS_SELECTOR, "#job svg.figure")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", found)
    return found


def told(browser: Browser) -> str:
    browser.execute_async_script(
        "const done = arguments[0], frame = requestAnimationFrame; frame(() => frame(() => setTimeout(done)))"
    )
    return str(browser.find_element(By.ID, "tip").text)


def test_the_map_tells_what_both_keep_at_its_nodes(browser: Browser, shown: Any) -> None:
    found = shown.maps[0]
    size, first, second = found.sizes[0], found.counts[0], found.counts[1]
    the_map(browser).send_keys(Keys.ARROW_RIGHT)
    text = told(browser)
    comm, comp = found.kept_comm[0, 1], found.kept_comp[0, 1]
    assert f"messages of {size} B" in text
    assert f"communication {comm:.2f}, computation {comp:.2f}" in text
    assert f"Number of computing cores\n{second}" in text
    the_map(browser).send_keys(Keys.ARROW_LEFT)
    assert f"Number of computing cores\n{first}" in told(browser)


def test_the_next_row_of_the_map_is_the_next_size(browser: Browser, shown: Any) -> None:
    before, after = (field for field in shown.figures[0].fields[0].rows[1:3])
    the_map(browser).send_keys(Keys.ARROW_RIGHT)
    assert before in told(browser)
    the_map(browser).send_keys(Keys.ARROW_DOWN)
    assert after in told(browser)


def test_a_telephone_scrolls_the_map_and_nothing_else(telephone: Browser, shown: Any) -> None:
    assert the_map(telephone).is_displayed()
    assert telephone.execute_script("return document.documentElement.scrollWidth") <= 400
    table = telephone.find_element(By.CSS_SELECTOR, "#job table")
    assert "a step" in table.text


def test_nothing_of_the_map_leaves_its_drawing(browser: Browser, shown: Any) -> None:
    outside = browser.execute_script(
        """const found = [];
        for (const svg of document.querySelectorAll('#job svg.figure')) {
          const box = svg.viewBox.baseVal;
          for (const text of svg.querySelectorAll('text')) {
            const at = text.getBBox(), turned = text.getAttribute('transform');
            const right = at.x + at.width - box.width, below = at.y + at.height - box.height;
            if (!turned && (at.x < -1 || right > 1 || below > 1)) found.push(text.textContent);
          }
        }
        return found;"""
    )
    assert the_map(browser)
    assert outside == []
