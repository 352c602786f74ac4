"""The sliders of the report in a real browser: the page's models say what Python's say."""

from __future__ import annotations

import json
import random
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from elbowroom.models import published
from elbowroom.models.curves import STREAMS, Situation
from elbowroom.models.document import Document
from elbowroom.models.load import Prediction
from elbowroom.models.predict import predict
from elbowroom.models.published import of_published
from elbowroom.quantities import number
from elbowroom.report.page import Page

pytest.importorskip("selenium.webdriver", reason="selenium is not installed (test extras)")

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

PAGES = runpy.run_path(str(Path(__file__).parents[1] / "report_pages.py"))
Browser = Any
SIZES = (64_000_000, 4, 1024, 2**20, 2**31)
CASES = 60


def page(*documents: Document) -> Page:
    """A small report with these models."""
    models = tuple(PAGES["modelled"](document, f"{index}.json") for index, document in enumerate(documents))
    made: Page = msgspec.structs.replace(PAGES["page"](24, PAGES["small"]()), models=models)
    return made


def situations(document: Document, seed: int, *, other: bool) -> list[Situation]:
    shape, random_ = document.machine, random.Random(seed)
    most = shape.cores_first_socket
    return [
        Situation(
            comp_node=random_.randrange(shape.nodes),
            comm_node=random_.randrange(shape.nodes),
            n=random_.randint(0, most),
            n_other=random_.choice((0, random_.randint(1, most))) if other else 0,
        )
        for _ in range(CASES)
    ]


def said(
    browser: Browser, document: Document, name: str, asked: list[Situation], size: int
) -> list[dict[str, Any]]:
    """What the page's script answers."""
    found = browser.execute_script(
        "const [text, name, asked, size] = arguments; "
        "return JSON.stringify(Models.predict(JSON.parse(text), name, JSON.parse(asked), size))",
        msgspec.json.encode(document).decode(),
        name,
        msgspec.json.encode(asked).decode(),
        size,
    )
    return list(json.loads(found))


def assert_equal(answers: list[dict[str, Any]], expected: list[Prediction]) -> None:
    assert len(answers) == len(expected)
    for answer, prediction in zip(answers, expected, strict=True):
        for stream in STREAMS:
            for end in ("value", "low", "high"):
                value = getattr(getattr(prediction, stream), end)
                assert answer[stream][end] == pytest.approx(value, rel=1e-6, abs=1e-6), prediction.situation
        assert tuple(answer["flags"]) == prediction.flags


def test_the_threshold_model_says_the_same_in_the_page_and_in_python(
    browser: Browser, opened: Callable[[Page], Page]
) -> None:
    opened(page(PAGES["document"]()))
    for seed, machine in enumerate(published.names()):
        document = PAGES["document"](machine)
        asked = situations(document, seed, other=False)
        for size in SIZES:
            expected = predict(document, asked, name="threshold", size=size)
            assert_equal(said(browser, document, "threshold", asked, size), expected)


def test_threshold_models_of_odd_parameters_say_the_same(
    browser: Browser, opened: Callable[[Page], Page]
) -> None:
    opened(page(PAGES["document"]()))
    for seed in range(12):
        random_ = random.Random(seed)
        document = of_published(random_.choice(published.names()))
        part = document.models.threshold
        assert part is not None
        sides = []
        for side in (part.local, part.remote):
            assert side is not None
            odd = {
                "n_par_max": random_.randint(1, document.machine.cores_first_socket),
                "n_seq_max": random_.randint(1, document.machine.cores_first_socket),
                "alpha": random_.uniform(0.1, 1.2),
                "delta_l": random_.uniform(-500, 3000),
                "delta_r": random_.uniform(-500, 3000),
                "t_par_max": side.t_par_max * random_.uniform(0.5, 1.1),
            }
            sides.append(msgspec.structs.replace(side, **odd))
        part = msgspec.structs.replace(part, local=sides[0], remote=sides[1], bands={"local": (0.1,) * 4})
        models = msgspec.structs.replace(document.models, threshold=part)
        document = msgspec.structs.replace(document, models=models)
        asked = situations(document, seed, other=False)
        size = document.calibration.size
        expected = predict(document, asked, name="threshold")
        assert_equal(said(browser, document, "threshold", asked, size), expected)


def test_flow_says_the_same_in_the_page_and_in_python(
    browser: Browser, opened: Callable[[Page], Page]
) -> None:
    opened(page(PAGES["document"]()))
    for seed in range(24):
        machine = published.names()[seed % len(published.names())]
        document = PAGES["document"](machine, seed=seed, virtual=seed % 2 == 1)
        asked = situations(document, seed, other=True)
        size = SIZES[seed % len(SIZES)]
        expected = predict(document, asked, name="flow", size=size)
        assert_equal(said(browser, document, "flow", asked, size), expected)


def slider(browser: Browser, name: str) -> Any:
    return browser.find_element(By.ID, f"what-if-{name}")


def printed(browser: Browser, name: str) -> str:
    return str(browser.find_element(By.CSS_SELECTOR, f"output[for=what-if-{name}]").text)


def press(browser: Browser, name: str, *keys: str) -> None:
    """Presses keys on a slider and waits until the page has drawn."""
    found = slider(browser, name)
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", found)
    found.send_keys(*keys)
    browser.execute_async_script(
        "const done = arguments[0], frame = requestAnimationFrame; frame(() => frame(() => setTimeout(done)))"
    )


def table(browser: Browser) -> list[list[str]]:
    script = """return [...document.querySelectorAll('#what-if tbody tr')]
        .map(row => [...row.cells].map(cell => cell.textContent))"""
    return list(browser.execute_script(script))


def cells(prediction: Prediction) -> list[list[str]]:
    """The table's cells for a prediction, without those of what is kept."""

    def text(stream: str) -> str:
        found = getattr(prediction, stream)
        low, high = number(found.low), number(found.high)
        return f"{number(found.value)} [{low}, {high}]"

    return [
        [name, text(f"{side}_alone"), text(f"{side}_together")]
        for name, side in (("computation", "comp"), ("communication", "comm"))
    ]


def test_the_sliders_are_moved_by_keys_and_the_table_says_what_python_says(
    browser: Browser, opened: Callable[[Page], Page]
) -> None:
    document = PAGES["document"]()
    opened(page(document))
    assert printed(browser, "n") == "18 cores of 18"
    press(browser, "n", Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    press(browser, "comp-node", Keys.ARROW_RIGHT)
    press(browser, "comm-node", Keys.END)
    press(browser, "n-other", Keys.HOME, Keys.ARROW_RIGHT)
    assert printed(browser, "n") == "16 cores of 18"
    assert printed(browser, "n-other") == "1 core"
    assert printed(browser, "comp-node").startswith("node 1: remote")
    at = Situation(comp_node=1, comm_node=1, n=16, n_other=1)
    (expected,) = predict(document, [at])
    assert [row[:3] for row in table(browser)] == cells(expected)
    kept = round(expected.comm_together.value / expected.comm_alone.value, 3)
    assert table(browser)[1][3] == number(kept)
    assert slider(browser, "n").get_attribute("aria-valuetext") == "16 cores of 18"


def test_the_message_size_moves_where_the_model_knows_several(
    browser: Browser, opened: Callable[[Page], Page]
) -> None:
    document = PAGES["document"]()
    opened(page(document))
    assert printed(browser, "size") == "64 MB"
    press(browser, "size", Keys.HOME, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert printed(browser, "size") == "256 B"
    (expected,) = predict(document, [Situation(comp_node=0, comm_node=0, n=18)], size=256)
    assert [row[:3] for row in table(browser)] == cells(expected)


def test_what_a_model_does_not_know_stands_still_and_says_why(
    browser: Browser, opened: Callable[[Page], Page]
) -> None:
    opened(page(of_published("henri")))
    for name, reason in (("size", "calibrated with this size only"), ("n-other", "one socket only")):
        found = slider(browser, name)
        assert not found.is_enabled()
        assert reason in found.find_element(By.XPATH, "..").text
    assert printed(browser, "size") == "64 MB"


def test_choosing_another_model_asks_that_one(browser: Browser, opened: Callable[[Page], Page]) -> None:
    document, other = PAGES["document"](), of_published("billy")
    opened(page(document, other))
    options = slider(browser, "model").find_elements(By.TAG_NAME, "option")
    assert [option.text for option in options] == [
        "0.json: FLOW",
        "0.json: threshold, the thesis' calibration",
        "1.json: threshold, the thesis' calibration",
    ]
    options[2].click()
    assert printed(browser, "n") == "18 cores of 32"
    (expected,) = predict(other, [Situation(comp_node=0, comm_node=0, n=18)])
    assert [row[:3] for row in table(browser)] == cells(expected)


def test_virtual_machines_and_extrapolation_are_marked(
    browser: Browser, opened: Callable[[Page], Page]
) -> None:
    opened(page(PAGES["document"](virtual=True)))
    flags = browser.find_element(By.CSS_SELECTOR, "#what-if .flags")
    assert "virtual" in flags.text
    assert "extrapolated" not in flags.text
    press(browser, "n-other", Keys.END)
    assert "extrapolated: outside the measured range" in flags.text


def test_a_side_that_was_not_calibrated_is_not_predicted(
    browser: Browser, opened: Callable[[Page], Page]
) -> None:
    document = of_published("henri")
    assert document.models.threshold is not None
    part = msgspec.structs.replace(document.models.threshold, remote=None)
    lame = msgspec.structs.replace(document, models=msgspec.structs.replace(document.models, threshold=part))
    made = page(document)
    shown = msgspec.structs.replace(made.models[0], document=lame)
    opened(msgspec.structs.replace(made, models=(shown,)))
    press(browser, "comp-node", Keys.END)
    assert "without remote data" in browser.find_element(By.CSS_SELECTOR, "#what-if .failed").text
    assert not browser.find_element(By.CSS_SELECTOR, "#what-if .answer").is_displayed()
    press(browser, "comp-node", Keys.HOME)
    assert browser.find_element(By.CSS_SELECTOR, "#what-if .answer").is_displayed()


def test_a_click_on_the_figure_chooses_that_number_of_cores(
    browser: Browser, opened: Callable[[Page], Page]
) -> None:
    opened(page(PAGES["document"]()))
    figure = browser.find_element(By.ID, "what-if-figure")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", figure)
    ActionChains(browser).move_to_element(figure).click().perform()
    assert printed(browser, "n") == "9 cores of 18"
    places = browser.execute_script(
        "return [...document.querySelectorAll('#what-if-figure circle')].map(c => c.cx.baseVal.value)"
    )
    assert places == pytest.approx([300.0] * 4, abs=1)


@pytest.mark.parametrize("width", [320, 768])
def test_the_models_are_not_wider_than_the_window(
    browser: Browser, opened: Callable[[Page], Page], width: int
) -> None:
    opened(page(PAGES["document"]()))
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    needed, given = browser.execute_script(
        "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert needed == given


def test_asking_the_model_asks_nothing_of_the_network_and_logs_nothing(
    browser: Browser, opened: Callable[[Page], Page]
) -> None:
    opened(page(PAGES["document"]()))
    press(browser, "n", Keys.HOME)
    assert browser.get_log("browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = {m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"}
    assert {url.partition(":")[0] for url in asked} <= {"file", "data"}
