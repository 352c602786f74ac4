"""The report in a real browser: Debian's chromium, driven through its own chromedriver, without a network."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from elbowroom.quantities import interval, number
from elbowroom.report.page import Page

pytest.importorskip("selenium.webdriver", reason="selenium is not installed (test extras)")

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

PAGES = runpy.run_path(str(Path(__file__).parents[1] / "report_pages.py"))
Browser = Any


def table_rows(browser: Browser) -> list[list[str]]:
    """The texts of the rows that are drawn now."""
    script = """return [...document.querySelectorAll('#table tbody tr[data-row]')]
        .map(row => [...row.cells].map(cell => cell.textContent))"""
    return list(browser.execute_script(script))


def column(browser: Browser, button: Any) -> int:
    """The place of a heading's column in the table."""
    return int(browser.execute_script("return arguments[0].closest('th').cellIndex", button))


def shown(browser: Browser) -> str:
    return str(browser.find_element(By.ID, "shown").text)


def settle(browser: Browser) -> None:
    """Waits until what was asked for is drawn and its scroll events are over."""
    browser.execute_async_script(
        "const done = arguments[0], frame = requestAnimationFrame; frame(() => frame(() => setTimeout(done)))"
    )


def type_filter(browser: Browser, text: str) -> None:
    box = browser.find_element(By.ID, "filter")
    box.clear()
    box.send_keys(text)
    settle(browser)


def vertex(browser: Browser, figure: Any, curve: int, index: int) -> tuple[float, float]:
    """Where a vertex of a curve is, from the middle of the figure, in CSS pixels: measured by the browser,
    not by the page's script.
    """
    place = browser.execute_script(
        """const [svg, curve, index] = arguments, path = svg.querySelectorAll('.series .curve')[curve];
        const lengths = [], total = path.getTotalLength();
        const steps = path.getAttribute('d').split('l')[1].match(/-?(\\d+\\.?\\d*|\\.\\d+)/g).map(Number);
        let length = 0;
        for (let i = 0; i < 2 * index; i += 2) length += Math.hypot(steps[i], steps[i + 1]);
        const at = path.getPointAtLength(Math.min(length, total)).matrixTransform(path.getScreenCTM());
        const box = svg.getBoundingClientRect();
        return [at.x - box.x - box.width / 2, at.y - box.y - box.height / 2];""",
        figure,
        curve,
        index,
    )
    return float(place[0]), float(place[1])


def first_figure(browser: Browser) -> Any:
    """The first of the figures, in the middle of the window."""
    figure = browser.find_element(By.CSS_SELECTOR, "#figures .figure")
    for _ in range(2):  # figures out of sight get their height when they come into it, and move the others
        browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", figure)
        settle(browser)
    return figure


def test_pointing_at_a_point_shows_its_own_values(browser: Browser, opened: Callable[[Page], Page]) -> None:
    page = opened(PAGES["page"](70))
    figure = first_figure(browser)
    for index in (4, 21):
        x, y = vertex(browser, figure, 0, index)
        ActionChains(browser).move_to_element_with_offset(figure, round(x), round(y)).perform()
        result = next(r for r in page.results if r.id == page.figures[0].series[0].points[index])
        alone, kept = result.comm.alone, result.comm.kept
        assert alone
        assert kept
        text = browser.find_element(By.ID, "tip").text
        for value in (alone.median, alone.d1, alone.d9):
            assert number(value) in text
        assert interval(kept.value, kept.low, kept.high) in text
        assert f"{result.n} computing cores" in text
        assert re.search(r"samples\s+20", text)


def test_the_arrow_keys_read_the_same_values_as_the_pointer(
    browser: Browser, opened: Callable[[Page], Page]
) -> None:
    page = opened(PAGES["page"](70))
    figure = first_figure(browser)
    browser.execute_script("arguments[0].focus({focusVisible: true})", figure)
    figure.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    together = page.figures[0].series[1]
    tip = browser.find_element(By.ID, "tip")
    assert together.name in tip.text
    assert number(together.y[1]) in tip.text
    figure.send_keys(Keys.ESCAPE)
    assert not tip.is_displayed()


def test_values_that_are_not_those_of_the_table_are_read_from_the_curve(
    browser: Browser, opened: Callable[[Page], Page]
) -> None:
    import msgspec

    page = PAGES["page"](35)
    first = page.figures[0].series[0]
    scaled = msgspec.structs.replace(first, y=tuple(y * 3 for y in first.y), low=(), high=())
    figure = msgspec.structs.replace(page.figures[0], series=(scaled,))
    opened(msgspec.structs.replace(page, figures=(figure,)))
    drawn = first_figure(browser)
    browser.execute_script("arguments[0].focus({focusVisible: true})", drawn)
    assert number(scaled.y[0]) in browser.find_element(By.ID, "tip").text


def test_the_table_sorts_by_a_column_both_ways_and_keeps_missing_values_last(
    browser: Browser, opened: Callable[[Page], Page]
) -> None:
    page = opened(PAGES["page"](70))
    measured = sorted(r.comm.alone.median for r in page.results if r.comm.alone)
    button = browser.find_element(By.CSS_SELECTOR, "button[aria-label='sort by communication alone']")
    cell = column(browser, button)
    button.click()
    assert table_rows(browser)[0][cell].startswith(number(measured[0]))
    button.click()
    rows = table_rows(browser)
    assert rows[0][cell].startswith(number(measured[-1]))
    assert rows[0][cell] != "–"
    button.click()
    assert [row[1] for row in table_rows(browser)[:5]] == ["1", "2", "3", "4", "5"]


def test_the_status_of_a_point_is_in_sight_on_a_screen_of_1200_pixels(
    browser: Browser, opened: Callable[[Page], Page]
) -> None:
    browser.set_window_size(1200, 900)
    opened(PAGES["page"](70))
    heading = browser.find_element(By.CSS_SELECTOR, "button[aria-label='sort by status']")
    box = browser.find_element(By.ID, "table-box")
    assert heading.rect["x"] + heading.rect["width"] <= box.rect["x"] + box.rect["width"]


def test_a_column_whose_rows_are_all_alike_becomes_a_sentence(
    browser: Browser, opened: Callable[[Page], Page]
) -> None:
    import msgspec

    page = PAGES["page"](70)
    alike = tuple(msgspec.structs.replace(r, comp_node=0, comm_node=1, comm_core=35) for r in page.results)
    opened(msgspec.structs.replace(page, results=alike))
    assert not browser.find_elements(By.CSS_SELECTOR, "button[aria-label='sort by placement core']")
    assert "communication core 35" in browser.find_element(By.ID, "constant").text


def test_the_table_filters_by_all_words(browser: Browser, opened: Callable[[Page], Page]) -> None:
    page = opened(PAGES["page"](700))
    type_filter(browser, "PRIME 64mb")
    expected = [r for r in page.results if r.kernel == "prime" and r.size == 64 * 10**6]
    assert shown(browser) == f"{len(expected)} of 700 points"
    assert all(row[0] == "prime" and row[2] == "64 MB" for row in table_rows(browser))
    type_filter(browser, "no such kernel")
    assert shown(browser) == "0 of 700 points"
    browser.find_element(By.ID, "clear").click()
    assert shown(browser) == "700 points"


def test_only_rows_in_sight_are_drawn_and_scrolling_draws_the_last_one(
    browser: Browser, opened: Callable[[Page], Page]
) -> None:
    opened(PAGES["page"](2000))
    assert 10 < len(table_rows(browser)) < 100
    browser.execute_async_script(
        "const done = arguments[0], box = document.getElementById('table-box'); box.scrollTop = "
        "box.scrollHeight;"
        "requestAnimationFrame(() => requestAnimationFrame(() => done()))"
    )
    rows = browser.find_elements(By.CSS_SELECTOR, "#table tbody tr[data-row]")
    assert rows[-1].get_attribute("data-row") == "1999"
    assert len(rows) < 100


def test_clicking_a_core_shows_what_it_is_and_filters_the_table(
    browser: Browser, opened: Callable[[Page], Page]
) -> None:
    page = opened(PAGES["page"](350))
    core = browser.find_element(By.CSS_SELECTOR, "[data-core='30']")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", core)
    core.click()
    text = browser.find_element(By.ID, "machine-details").text
    for said in ("Core 30", "30,66", "L3 cache", "24.8 MiB"):
        assert said in text
    using = [r for r in page.results if 30 in page.uses[r.id].comp_cores]
    assert f"{len(using)} of 350 points" in text
    assert shown(browser).startswith(f"{len(using)} of 350 points")
    assert {int(row[1]) for row in table_rows(browser)} <= {r.n for r in using}


def test_a_node_is_chosen_from_the_keyboard(browser: Browser, opened: Callable[[Page], Page]) -> None:
    opened(PAGES["page"](70))
    node = browser.find_element(By.CSS_SELECTOR, "[data-node='3']")
    browser.execute_script("arguments[0].focus()", node)
    ActionChains(browser).send_keys(Keys.ENTER).perform()
    assert "NUMA node 3" in browser.find_element(By.ID, "machine-details").text
    assert shown(browser).startswith("0 of 70 points")


def test_clicking_a_row_shows_the_whole_point_and_paints_its_cores(
    browser: Browser, opened: Callable[[Page], Page]
) -> None:
    page = opened(PAGES["page"](70))
    type_filter(browser, "wrong_node")
    browser.find_element(By.CSS_SELECTOR, "#table tbody tr[data-row]").click()
    result = next(r for r in page.results if "wrong_node" in r.flags)
    text = browser.find_element(By.ID, "point-details").text
    assert result.comp.together
    assert number(result.comp.together.d9) in text
    assert "another NUMA node than requested" in text
    live = browser.execute_script(
        "return [...document.querySelectorAll('.core.live.comp')].map(c => Number(c.dataset.core))"
    )
    assert sorted(live) == list(page.uses[result.id].comp_cores)


def test_a_finding_shows_its_points_in_the_table(browser: Browser, opened: Callable[[Page], Page]) -> None:
    page = opened(PAGES["page"](350))
    browser.find_element(By.CSS_SELECTOR, "[data-show-rows]").click()
    assert shown(browser).startswith(f"{len(page.verdict.findings[0].points)} of 350 points")


@pytest.mark.parametrize("machine", ["henri", "small"])
@pytest.mark.parametrize("width", [320, 768, 1600])
def test_nothing_is_wider_than_the_window(
    browser: Browser, opened: Callable[[Page], Page], width: int, machine: str
) -> None:
    opened(PAGES["page"](70, PAGES[machine]()))
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
    )
    needed, given = browser.execute_script(
        "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert width - 20 <= given <= width, "the window must have the width asked for, less a scroll bar"
    assert needed == given


def test_names_with_markup_stay_text(browser: Browser, opened: Callable[[Page], Page]) -> None:
    page = opened(PAGES["page"](24, PAGES["small"](), trusted=False))
    assert browser.find_element(By.TAG_NAME, "h1").text == page.title
    assert page.machine.name in browser.find_element(By.TAG_NAME, "header").text
    assert "</script>" in browser.find_element(By.ID, "how").text
    assert not browser.find_elements(By.CSS_SELECTOR, "h1 b, #how b")


def test_the_console_is_silent_and_nothing_is_requested_but_the_file(
    browser: Browser, opened: Callable[[Page], Page]
) -> None:
    opened(PAGES["page"](350))
    figure = first_figure(browser)
    ActionChains(browser).move_to_element(figure).perform()
    browser.find_element(By.CSS_SELECTOR, "[data-core='0']").click()
    type_filter(browser, "triad")
    assert browser.get_log("browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = {m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"}
    assert asked, "the performance log must at least have seen the file itself"
    assert {url.partition(":")[0] for url in asked} <= {"file", "data"}


def test_without_a_script_verdict_figures_and_points_are_there(
    browser: Browser, opened: Callable[[Page], Page]
) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        page = opened(PAGES["page"](600))
        assert page.verdict.text in browser.find_element(By.ID, "verdict").text
        assert browser.find_element(By.CSS_SELECTOR, ".figure .series").is_displayed()
        rows = browser.find_elements(By.CSS_SELECTOR, "#points tbody tr")
        assert len(rows) == 500
        assert "500 of 600 points" in browser.find_element(By.ID, "points").text
        assert not browser.find_element(By.ID, "filter").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_a_page_of_ten_thousand_points_stays_small_and_works(
    browser: Browser, opened: Callable[[Page], Page], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opened(PAGES["page"](10_000))
    size = (tmp_path / "report.html").stat().st_size
    loaded = browser.execute_script("return performance.getEntriesByType('navigation')[0].loadEventEnd")
    with capsys.disabled():
        print(f"\nreport of 10,000 points: {size / 1e6:.2f} MB, open after {loaded:.0f} ms")
    assert size < 5e6
    assert shown(browser) == "10000 points"
    type_filter(browser, "n=35 64 mb prime")
    assert 0 < len(table_rows(browser)) < 100
