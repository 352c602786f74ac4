"""The size of a report of 10,000 points and how long chromium takes to open it: median of five.

    python benchmarks/report.py [POINTS]

Needs chromium and chromedriver (Debian: chromium, chromium-driver) and `selenium`. The time is the
browser's own, from the start of the navigation to the end of the load event, in a fresh tab each time.
"""

from __future__ import annotations

import runpy
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from command import Command

from elbowroom.report.page import render

OPENINGS = 5


def open_times(file: Path, profile: Path) -> list[float]:
    """Milliseconds until loaded, once per opening."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    flags = (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--no-first-run",
    )
    for flag in (*flags, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    try:
        times = []
        for _ in range(OPENINGS):
            driver.switch_to.new_window("tab")
            driver.get(file.as_uri())
            loaded = "return performance.getEntriesByType('navigation')[0].loadEventEnd"
            times.append(float(driver.execute_script(loaded)))
        return times
    finally:
        driver.quit()


def main() -> None:
    parser = Command(__doc__, smoke="100")
    parser.add_argument("points", type=int, nargs="?", default=10_000)
    count = parser.parse_args().points
    page = runpy.run_path(str(Path(__file__).parents[1] / "tests" / "report_pages.py"))["page"](count)
    start = time.perf_counter()
    html = render(page)
    rendered = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "report.html"
        file.write_text(html, encoding="utf-8")
        times = open_times(file, Path(directory) / "profile")
    print(
        f"{count} points, {len(page.figures)} figures: {len(html.encode()) / 1e6:.2f} MB, rendered in "
        f"{rendered:.2f} s"
    )
    print(
        f"opened in {statistics.median(times):.0f} ms (median of {OPENINGS}: "
        f"{', '.join(f'{t:.0f}' for t in times)})"
    )


if __name__ == "__main__":
    main()
