"""The command line against a made-up site; a real browser for tests of pages: Debian's chromium, driven
through its own chromedriver, offline.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from elbowroom import cli
from elbowroom.report.page import Page, render

OFFLINE = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--force-prefers-reduced-motion",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--window-size=1300,900",
)
Browser = Any


@pytest.fixture
def run(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Any:
    """Runs the command line with the made-up MPI, probe and applications, without StarPU; returns (exit code,
    stdout, stderr).
    """
    monkeypatch.chdir(tmp_path)
    # A made-up machine is quiet by definition.
    monkeypatch.setattr("elbowroom.measure.manifest.sample", lambda: 0.0)
    monkeypatch.setattr("elbowroom.measure.campaign.others_busy", lambda before, after: 0.0)
    # The recorded machine has two cores; so have the plans' expansions, wherever the test runs.
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    monkeypatch.setenv("ELBOWROOM_STARPU", "none")

    def invoke(*words: str) -> tuple[int, str, str]:
        answered = "--machine" in words or any(word.startswith("replay:") for word in words)
        live = words[0] == "run" and not answered
        code = cli.run([*words, *(["--mpi", str(site)] if live else [])])
        out, err = capfd.readouterr()
        return code, out, err

    return invoke


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests; each opens its own page in it."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed (test extras)")
    chromium, driver_path = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver_path):
        pytest.skip("chromium and chromedriver are not installed (apt install chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*OFFLINE, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver_path))
    yield driver
    driver.quit()


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Callable[[Page], Page]:
    """Opens a page in the browser, at the default size; messages of earlier pages are gone."""

    def open_(page: Page) -> Page:
        file = tmp_path / "report.html"
        file.write_text(render(page), encoding="utf-8")
        for log in ("browser", "performance"):
            browser.get_log(log)
        browser.set_window_size(1300, 900)
        browser.get(file.as_uri())
        return page

    return open_
