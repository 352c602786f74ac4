"""The timeline of a trace in a real browser: what it draws, finds and sums up, beside what Python counts."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import made_columns as made
from elbowroom.trace import columns, timeline
from elbowroom.trace.timeline import timeline_page

pytest.importorskip("selenium.webdriver", reason="selenium is not installed (test extras)")

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

Browser = Any
Show = Callable[[bytes], Browser]

TASKS = 60
WARNING = "rank 1 was killed </script><b>bold</b>"


def work() -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Tasks on four threads one after the other, a message from every tenth, one of them a tachyon."""
    events: list[tuple[Any, ...]] = []
    messages = []
    for thread in range(4):
        for index in range(TASKS):
            begin = 1000 * index + 10 * thread
            number = 100 * thread + index
            events += made.task(number, begin, begin + 600, thread, made.SOLVE if index % 3 else made.FACTOR)
            if index:
                events.append(made.event(begin, thread, 0, made.DEPENDENCY, first=number - 1, second=number))
            if index % 10 == 5:
                late = -50 if (thread, index) == (1, 25) else 300
                ends, message = made.message(
                    len(messages) + 1,
                    begin + 200,
                    thread,
                    begin + 200 + late,
                    (thread + 2) % 4,
                    4096,
                    late < 0,
                )
                events += ends
                messages.append(message)
    return events, messages


def whole() -> bytes:
    events, messages = work()
    events += [made.event(2000 * i, 0, columns.COUNTER, made.POWER, small=1, first=i) for i in range(20)]
    events += [
        made.event(5000, 0, columns.REGION, made.REGION_TYPE, small=1),
        made.event(50000, 0, columns.REGION, made.REGION_TYPE),
        made.event(70000, 3, columns.SEND, made.MPI_SEND, first=7 << 32, second=8, flags=4),
        made.event(71000, 3, columns.END, made.SOLVE, first=9999),
    ]
    head = made.job(
        threads=2, texts=[(1, made.SOLVE, 117, "row 117 & <i>its</i> neighbour")], warnings=[WARNING]
    )
    return made.stream(head, events, messages, [(61000, 65000, 17, 1), (65000, 66000, 0, 1)], block=512)


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Show:
    def open_(data: bytes) -> Browser:
        file = tmp_path / "timeline.html"
        file.write_text(timeline_page(io.BytesIO(data), "a <trace>"), encoding="utf-8")
        browser.get_log("browser")
        browser.set_window_size(1300, 900)
        browser.get(file.as_uri())
        browser.execute_async_script(
            """const done = arguments[0], wait = () => {
            if (document.documentElement.dataset.ready || !document.getElementById('failed').hidden) done();
            else setTimeout(wait, 5); }; wait();"""
        )
        assert browser.find_element(By.ID, "failed").text == ""
        settle(browser)
        return browser

    return open_


def settle(browser: Browser) -> None:
    browser.execute_async_script(
        "const done = arguments[0], frame = requestAnimationFrame; frame(() => frame(() => setTimeout(done)))"
    )


def text(browser: Browser, id_: str) -> str:
    return str(browser.find_element(By.ID, id_).text).replace("\u202f", "")


def asked(browser: Browser, script: str) -> Any:
    return browser.execute_script(f"return {script}")


def drag(browser: Browser, element: str, start: float, end: float) -> None:
    """From one time to another, over an element."""
    canvas = browser.find_element(By.ID, element)
    half = canvas.size["width"] / 2
    a, b = (round(asked(browser, f"toX({time})") - half) for time in (start, end))
    chain = ActionChains(browser, duration=20).move_to_element_with_offset(canvas, a, 0).click_and_hold()
    chain.move_by_offset((b - a) // 2, 0).move_by_offset(b - a - (b - a) // 2, 0).release().perform()
    settle(browser)


def test_all_events_arrive_and_are_drawn_in_rows(show: Show) -> None:
    browser = show(whole())
    events, messages = work()
    assert browser.get_log("browser") == []
    assert asked(browser, "trace.count") == len(events) + 24
    assert asked(browser, "trace.slices.count") == 4 * TASKS
    assert asked(browser, "trace.messages.count") == len(messages)
    assert asked(browser, "trace.dependencies.pairs.length") == 4 * (TASKS - 1)
    assert asked(browser, "view.rows.map(row => row.kind)") == [
        *("rank", "thread", "counter", "thread"),
        *("rank", "thread", "thread"),
    ]
    pixels = asked(
        browser,
        """new Set(new Uint32Array(elements.canvas.getContext('2d').getImageData(
        gutter, 0, elements.canvas.width - gutter, 200).data.buffer)).size""",
    )
    assert pixels > 20, "slices, ticks and areas have many colours and shades"
    assert browser.find_element(By.TAG_NAME, "h1").text == "a <trace>"
    assert WARNING in browser.find_element(By.CSS_SELECTOR, ".notes").get_attribute("textContent")
    assert "1 tachyon or suspect message visible" in text(browser, "note")
    assert "wrong by at most 7 ns" in text(browser, "clocks")


def test_wheel_keys_and_dragging_change_what_is_in_sight(show: Show) -> None:
    browser = show(whole())
    axis = browser.find_element(By.ID, "axis")
    whole_time = asked(browser, "[view.from, view.to]")
    ActionChains(browser).scroll_from_origin(_origin(axis), 0, -300).perform()
    settle(browser)
    zoomed = asked(browser, "[view.from, view.to]")
    assert whole_time[0] < zoomed[0] < zoomed[1] < whole_time[1]
    drag(browser, "canvas", sum(zoomed) / 2, sum(zoomed) / 2 - (zoomed[1] - zoomed[0]) / 5)
    moved = asked(browser, "[view.from, view.to]")
    assert moved[0] > zoomed[0]
    assert moved[1] - moved[0] == pytest.approx(zoomed[1] - zoomed[0])
    body = browser.find_element(By.TAG_NAME, "body")
    body.send_keys("a")
    assert asked(browser, "view.from") < moved[0]
    body.send_keys("w")
    assert asked(browser, "view.to - view.from") < moved[1] - moved[0]
    body.send_keys("0")
    assert asked(browser, "[view.from, view.to]") == pytest.approx(whole_time)


def _origin(element: Any) -> Any:
    from selenium.webdriver.common.actions.wheel_input import ScrollOrigin

    return ScrollOrigin.from_element(element)


def test_search_finds_types_texts_numbers_and_fields_and_goes_there(show: Show) -> None:
    browser = show(whole())
    box = browser.find_element(By.ID, "search")
    begins = sum(1 for row in work()[0] if row[-3] == columns.BEGIN and row[8] == made.FACTOR)
    for words, count in (
        ("factor", begins),
        ("neighbour", 1),
        ("task=117", 2),
        ("power 3", 1),
        ("nowhere", 0),
    ):
        box.clear()
        box.send_keys(words, Keys.ENTER)
        settle(browser)
        assert asked(browser, "view.results.ids.length") == count, words
    assert text(browser, "results") == "no results"
    box.clear()
    box.send_keys("neighbour", Keys.ENTER)
    settle(browser)
    assert text(browser, "results") == "1 of 1"
    told = text(browser, "details")
    assert "row 117 & <i>its</i> neighbour" in told
    assert "lasts\n600 ns" in told
    assert "begins\n17.01 µs ± 7 ns" in told
    assert "waits for\n" in told


def test_a_selection_has_the_sums_that_python_counts(show: Show) -> None:
    browser = show(whole())
    drag(browser, "axis", 12000, 40000)
    low, high = asked(browser, "view.range")
    assert (low, high) == (pytest.approx(12000, abs=80), pytest.approx(40000, abs=80))
    events, messages = work()
    inside = [row for row in events if low <= row[0] <= high]
    powers = sum(1 for i in range(20) if low <= 2000 * i <= high)
    found = asked(browser, "inRange(...view.range)")
    assert found["events"] == len(inside) + powers
    assert found["messages"] == sum(1 for message in messages if low <= message[1] <= high)
    solve = next(one for one in found["types"] if one["name"] == "solve")
    assert solve["events"] == sum(1 for row in inside if row[8] == made.SOLVE)
    spans = [(1000 * i + 10 * t, 1000 * i + 10 * t + 600) for t in range(4) for i in range(TASKS) if i % 3]
    lasted = sum(max(0, min(end, high) - max(begin, low)) for begin, end in spans)
    assert solve["inside"] == pytest.approx(lasted)
    assert [rank["sent"] for rank in found["ranks"]] == [
        sum(1 for row in inside if row[-3] == columns.SEND and row[7] // 2 == rank) for rank in (0, 1)
    ]
    assert f"{len(inside) + powers} events" in text(browser, "sums")
    browser.find_element(By.ID, "clear-range").click()
    assert asked(browser, "view.range") is None


def test_the_legend_hides_types_and_the_pointer_is_told_what_it_is_over(show: Show) -> None:
    browser = show(whole())
    canvas = browser.find_element(By.ID, "canvas")
    x, y = asked(
        browser,
        "[toX(30300) - elements.canvas.clientWidth / 2, middleOf(0, 0) - elements.canvas.clientHeight / 2]",
    )
    ActionChains(browser, duration=20).move_to_element_with_offset(canvas, round(x), round(y)).perform()
    settle(browser)
    assert "factor (task)" in text(browser, "tip")
    gap = asked(browser, "hit(toX(63000), middleOf(1, 0))")
    assert gap["gap"]["lost"] == 17
    browser.find_element(By.XPATH, "//ul[@id='legend']//button[.='factor']").click()
    settle(browser)
    assert asked(browser, "hit(toX(30300), middleOf(0, 0))") is None


@pytest.mark.parametrize(
    ("events", "counted"),
    [([], 0), ([made.event(5000, 0, 0, made.SOLVE)], 1), ([made.event(9, 1, 5, made.MPI_RECV, flags=4)], 1)],
    ids=["no event", "one event", "one message without its other end"],
)
def test_a_page_of_next_to_nothing_works(show: Show, events: list[Any], counted: int) -> None:
    browser = show(made.stream(made.job(), events))
    browser.find_element(By.TAG_NAME, "body").send_keys("w]n")
    settle(browser)
    assert browser.get_log("browser") == []
    assert asked(browser, "trace.count") == counted
    assert f"{counted} event" in text(browser, "sums")


def test_compressed_data_are_unpacked(show: Show, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "SMALL", 0)
    assert asked(show(whole()), "trace.count") == len(work()[0]) + 24
