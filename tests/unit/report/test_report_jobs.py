"""The page's section of a job, without a browser; and what `report --job` refuses."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import msgspec
import pytest

from elbowroom import api, cli
from elbowroom.errors import UsageError
from elbowroom.report import sections
from elbowroom.report.page import Page, render
from elbowroom.report.sections import JobSection
from elbowroom.store.models import write_model
from elbowroom.verbs.model_file import curves_of

PAGES = runpy.run_path(str(Path(__file__).parents[2] / "report_pages.py"))
JOB: dict[str, Any] = {
    "name": "stencil",
    "step": {"comp_bytes": "2GB", "comm_bytes": "64MB"},
    "now": {"cores": 6, "comp_node": 0, "comm_node": 0, "size": "64KiB", "overlap": True},
    "may": {"cores": "every", "size": ["64KiB", "1MiB"], "overlap": [True, False]},
}
TOML = """
name = "stencil"
step = {comp_bytes = "2GB", comm_bytes = "64MB"}
now = {cores = 6, comp_node = 0, comm_node = 0, size = "64KiB"}
may = {cores = "every"}
"""
CURVES = """# name: toy
# cores_first_socket: 18
# numa_per_socket: 1
comp_node,comm_node,n,comp_alone,comm_alone,comp_together,comm_together
0,0,1,6000,10000,6000,10000
0,0,2,12000,10000,11000,9000
"""


def page(part: JobSection) -> Page:
    made: Page = msgspec.structs.replace(PAGES["page"](24, PAGES["small"]()), job=part)
    return made


@pytest.fixture(scope="module")
def part() -> JobSection:
    made: JobSection = PAGES["jobbed"](JOB)
    return made


@pytest.fixture
def run(tmp_path: Path) -> api.Run:
    (tmp_path / "curves.csv").write_text(CURVES)
    return api.import_curves(tmp_path / "curves.csv", tmp_path / "run")


def put_model(run: api.Run, name: str) -> None:
    """A made-up model of the run's machine."""
    made = PAGES["document"]()
    shape = curves_of(run).curves.shape
    (run.path / "models").mkdir(exist_ok=True)
    write_model(run.path / "models" / name, msgspec.structs.replace(made, machine=shape))


def test_the_section_says_where_the_job_stands_and_what_is_advised(part: JobSection) -> None:
    html = render(page(part))
    advice = part.advice
    assert 'id="job"' in html
    assert '<a href="#job">this job</a>' in html
    assert advice.sentence.replace(" %", "\u00a0%") in html
    assert "now: 6 computing cores beside messages of 64 KiB:" in html
    assert html.count('data-figure="map-') == len(part.figures)
    for choice in advice.choices:
        assert sections.AXES[choice.axis] in html


def test_the_table_has_now_beside_advised(part: JobSection) -> None:
    view = sections.job_view(part)
    assert part.advice.changes
    assert view["heads"] == ["now", "advised"]
    rows = {row["name"]: row for row in (*view["setup"], *view["step"])}
    cores = [str(item.setup.cores) for item in (part.advice.now, part.advice.advised)]
    assert [cell[0] for cell in rows["computing cores"]["cells"]] == cores
    assert rows["computing cores"]["changed"] == (cores[0] != cores[1])
    value, interval = rows["time of a step"]["cells"][0]
    assert value.endswith("ms")
    assert re.fullmatch(r"\(.* to .*\)", interval)
    assert view["gain"][0].endswith("%")


def test_no_advice_is_said_as_plainly_with_one_column(part: JobSection) -> None:
    advice = part.advice
    still = msgspec.structs.replace(
        advice,
        advised=advice.now,
        choices=tuple(
            msgspec.structs.replace(choice, advised=choice.now, reason="no advice: the intervals overlap")
            for choice in advice.choices
        ),
        sentence="No advice: no change gains significantly over 3 ms per step.",
    )
    view = sections.job_view(msgspec.structs.replace(part, advice=still))
    assert (view["word"], view["heads"], view["gain"]) == ("No advice", ["now"], None)
    html = render(page(msgspec.structs.replace(part, advice=still)))
    assert "No advice: no change gains significantly" in html
    assert "No advice: the intervals overlap." in html
    assert "gain: share" not in html


def test_a_choice_says_what_changing_it_back_would_cost(part: JobSection) -> None:
    (first, *_) = part.advice.changes
    view = next(
        item for item in sections.job_view(part)["choices"] if item["name"] == sections.AXES[first.axis]
    )
    assert "→" in view["value"]
    assert "undoing it" in view["worth"]


def test_markup_in_a_job_stays_text() -> None:
    made = PAGES["jobbed"]({**JOB, "name": "</script><img src=x onerror=alert(1)>"})
    assert "<img" not in render(page(made))


def test_the_report_shows_a_job_by_the_models_of_the_run_folder(run: api.Run, tmp_path: Path) -> None:
    put_model(run, "a.json")
    put_model(run, "b.json")
    html = run.report(job=api.load_job(JOB)).read_text()
    assert "This job: stencil" in html
    assert "These are predictions of a.json, not of the 1 other model of this page." in html


def test_a_report_without_a_job_has_no_section_of_one(run: api.Run) -> None:
    assert 'id="job"' not in run.report().read_text()


def test_a_job_without_a_model_is_refused_with_what_fits_one(run: api.Run) -> None:
    with pytest.raises(UsageError, match=r"has no model to ask; fit it first: elbowroom fit .*run") as caught:
        run.report(job=api.load_job(JOB))
    assert caught.value.field == "job"
    assert (
        not (run.path / "report.html").exists()
        or "This job" not in run.path.joinpath("report.html").read_text()
    )


def test_a_job_that_does_not_fit_the_machine_is_refused(run: api.Run) -> None:
    put_model(run, "a.json")
    with pytest.raises(UsageError, match="toy has 18 cores"):
        run.report(job=api.load_job({**JOB, "now": {**JOB["now"], "cores": 40}}))


def test_advise_draws_the_map_where_the_name_ends_so(tmp_path: Path) -> None:
    write_model(tmp_path / "M.json", PAGES["document"]())
    (tmp_path / "job.toml").write_text(TOML)
    out = str(tmp_path / "a.SVG")
    words = ["advise", str(tmp_path / "M.json"), "--job", str(tmp_path / "job.toml"), "-o", out]
    assert cli.run(words) == 0
    text = Path(out).read_text()
    assert "kept by communication" in text
    assert "stencil on henri" in text


def test_advise_refuses_a_picture_of_another_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job.toml").write_text(TOML)
    with pytest.raises(UsageError, match=r"is neither advice \(.json\) nor a picture"):
        cli.group.main(["advise", "henri", "--job", "job.toml", "-o", "m.pdf"], standalone_mode=False)
    assert not Path("m.pdf").exists()
