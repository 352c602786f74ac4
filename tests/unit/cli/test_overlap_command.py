"""`elbowroom predict-step` with numbers and with tables of steps: results, figures, refusals."""

from __future__ import annotations

import csv
import json
import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from elbowroom import api, cli
from elbowroom.errors import UsageError
from elbowroom.models.curves import Situation
from elbowroom.models.load import Prediction
from elbowroom.models.overlap.figures import over_time, plane
from elbowroom.models.overlap.fluid import halo_steps, predicted_rates, predicted_step, simulate
from elbowroom.models.overlap.law import OverlappedStep, Trial, deviations
from elbowroom.stats.interval import Interval
from elbowroom.store.steps import read_steps

DOCS = Path(__file__).parents[3] / "docs"
PAGE = DOCS / "guide" / "overlap.md"
LIBRARY = DOCS / "reference" / "fluid.md"
PRINTED = Path(__file__).parents[2] / "data" / "overlap_predictions.csv"
CARTESIUS = ("--t-comm", "0.5", "--l-comp", "1.72", "--l-comm", "2.2")
NODE = ("--work", "60", "--p-comp", "10", "--p-acc", "50")
TABLE_II = (124.765, 63.892, 32.490, 16.302, 7.641, 3.532, 1.753)


def asked(capfd: pytest.CaptureFixture[str], *words: str, code: int = 0) -> dict[str, Any]:
    assert cli.run(["predict-step", *words, "--json"]) == code
    found: dict[str, Any] = json.loads(capfd.readouterr().out)
    return found


def refused(capfd: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    error: dict[str, Any] = asked(capfd, *words, code=2)["error"]
    assert error["hint"]
    return error


def test_a_step_is_told_with_its_naive_baselines(capfd: pytest.CaptureFixture[str]) -> None:
    found = asked(capfd, "--t-comp", "1", *CARTESIUS)
    assert found["total"] == pytest.approx(1.460465, abs=1e-6)
    assert (found["comp_contended"], found["comm_contended"]) == pytest.approx((1.72, 1.1))
    assert (found["naive_max"], found["naive_sum"]) == (1.0, 1.5)
    assert "hardly worth it" in found["sentence"]


def test_with_work_the_best_split_is_told_beside_the_step(capfd: pytest.CaptureFixture[str]) -> None:
    found = asked(capfd, "--t-comp", "1", *CARTESIUS, *NODE)
    assert (found["w"], found["total"]) == pytest.approx((0.8974973, 1.0769968), abs=1e-7)
    assert found["without_accelerators"] == pytest.approx(1.460465, abs=1e-6)
    assert found["comp_contended"] == pytest.approx(1.72)


def test_without_a_time_the_step_is_that_of_the_best_split(capfd: pytest.CaptureFixture[str]) -> None:
    found = asked(capfd, *CARTESIUS, *NODE, "--w", "0.5")
    assert (found["w"], found["total"]) == pytest.approx((0.8974973, 1.0769968), abs=1e-7)
    assert found["naive_sum"] == pytest.approx(0.5 + 6 * (1 - found["w"]))
    assert found["given_split"]["total"] > found["total"]


def test_a_published_table_has_the_errors_of_both_definitions(capfd: pytest.CaptureFixture[str]) -> None:
    found = asked(capfd, "--table", "langguth2018")
    assert [step["total"] for step in found["steps"]] == pytest.approx(TABLE_II, abs=5e-4)
    errors = found["errors"]
    assert errors["total"]["of_measured"] == pytest.approx(0.0570, abs=1e-4)
    assert errors["total"]["of_predicted"] == pytest.approx(0.0614, abs=1e-4)
    assert errors["naive_sum"]["of_measured"] == pytest.approx(0.0372, abs=1e-4)
    assert (
        errors["naive_sum"]["of_measured"]
        < errors["total"]["of_measured"]
        < errors["naive_max"]["of_measured"]
    )


def test_table_ii_is_reproduced_to_the_digits_printed() -> None:
    """Its errors divide by the prediction. At 128 nodes it prints 3.54, 0.2 % above the formula's 3.532."""
    with PRINTED.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row, trial in zip(rows, read_steps("langguth2018"), strict=True):
        assert (trial.step.t_comp, trial.step.t_comm) == (float(row["t_m"]), float(row["t_n"]))
        assert trial.measured == float(row["t_tot_measured"])
        assert trial.step.total == pytest.approx(float(row["t_tot_predicted"]), abs=0.01)
        assert trial.step.comp_contended == pytest.approx(float(row["t_m_c"]), rel=0.005)
        assert trial.step.comm_contended == pytest.approx(float(row["t_n_c"]), rel=0.015)
        of_predicted = abs(trial.step.total - trial.measured) / trial.step.total
        assert 100 * of_predicted == pytest.approx(float(row["error_percent"]), abs=0.4)


@pytest.mark.parametrize("kind", ["plane", "time"])
@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_figures_are_written(tmp_path: Path, kind: str, suffix: str) -> None:
    file = tmp_path / f"step.{suffix}"
    words = ["predict-step", "--t-comp", "1", *CARTESIUS, "-o", str(file), "--figure", kind]
    assert cli.run(words) == 0
    content = file.read_bytes()
    assert content.startswith(b"\x89PNG" if suffix == "png" else b"<?xml")
    assert len(content) > 5000


def test_the_curves_of_the_plane_meet_at_the_point_that_is_named() -> None:
    step = OverlappedStep(t_comp=1.0, t_comm=0.9, l_comp=1.72, l_comm=2.2)
    figure = plane([("", step)])
    (label,) = figure.labels
    assert max(label.x, label.y) == pytest.approx(step.total)
    comm, comp = (
        next(s for s in figure.series if s.side == side and s.style == "together")
        for side in ("communication", "computation")
    )
    # Both are piecewise straight; the point lies on the slope of the one and on the flat end of the other.
    slope = (comm.x[1] - comm.x[0]) / (comm.y[1] - comm.y[0])
    assert label.x == pytest.approx(comm.x[0] + slope * label.y)
    assert label.y == comp.y[2]


def test_the_areas_over_time_are_the_work() -> None:
    step = OverlappedStep(t_comp=1.0, t_comm=0.9, l_comp=1.72, l_comm=2.2)
    for series in over_time(step).series:
        corners = list(zip(series.x, series.y, strict=True))
        area = sum((b[0] - a[0]) * a[1] for a, b in pairwise(corners))
        assert area == pytest.approx(step.t_comp if series.side == "computation" else step.t_comm)


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("--t-comp", "-1", *CARTESIUS), "t_comp"),
        (("--t-comp", "nan", *CARTESIUS), "t_comp"),
        (("--t-comp", "1", "--t-comm", "1", "--l-comp", "0.9", "--l-comm", "2"), "l_comp"),
        (CARTESIUS, "t_comp"),
        (("--t-comp", "1"), "t_comm"),
        (("--t-comp", "1", *CARTESIUS, "--w", "1.5", *NODE), "w"),
        (("--t-comp", "1", *CARTESIUS, "--w-limit", "1.5", *NODE), "w_limit"),
        (("--t-comp", "1", *CARTESIUS, "--w-limit", "0.5", "--w", "0.6", *NODE), "w"),
        (("--t-comp", "1", *CARTESIUS, "--w-limit", "0.5"), "work"),
        (("--t-comp", "1", *CARTESIUS, "--work", "60"), "p_comp"),
        (("--t-comp", "1", *CARTESIUS, "--work", "60", "--p-comp", "0", "--p-acc", "1"), "p_comp"),
        (("--table", "langguth2018", "--t-comp", "1"), "t_comp"),
        (("--t-comp", "1", *CARTESIUS, "--figure", "time"), "figure"),
        (("--t-comp", "1", *CARTESIUS, "-o", "step.pdf"), "out"),
        (("--table", "nowhere.csv"), "table"),
    ],
)
def test_what_cannot_be_answered_is_refused_by_field(
    capfd: pytest.CaptureFixture[str], words: tuple[str, ...], field: str
) -> None:
    assert refused(capfd, *words)["field"] == field


@pytest.mark.parametrize(
    ("text", "field", "line"),
    [
        ("", "columns", 1),
        ("t_comp,t_comm\n", "rows", 1),
        ("t_comp,t_com\n1,2\n", "columns", 1),
        ("t_comp,t_comp,t_comm\n1,2,3\n", "columns", 1),
        ("t_comp\n1\n", "columns", 1),
        ("# a comment\nt_comp,t_comm\n1,2,3\n", "row", 3),
        ("t_comp,t_comm\n1,x\n", "t_comm", 2),
        ("t_comp,t_comm\n1,-2\n", "t_comm", 2),
        ("t_comp,t_comm,measured\n1,2,0\n", "measured", 2),
        ("t_comp,t_comm,l_comp\n1,2,0.5\n", "l_comp", 2),
        ('t_comp,t_comm\n"1,2\n', "line", 2),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_with_the_line(
    tmp_path: Path, text: str, field: str, line: int
) -> None:
    file = tmp_path / "steps.csv"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_steps(str(file), 1.5, 2.0)
    assert caught.value.field == field
    assert f"line {line}:" in caught.value.message


def test_ratios_that_a_table_leaves_out_must_be_given(tmp_path: Path) -> None:
    file = tmp_path / "steps.csv"
    file.write_text("t_comp,t_comm,l_comp\n1,2,\n")
    with pytest.raises(UsageError, match="--l-comm"):
        read_steps(str(file), 1.5)
    (trial,) = read_steps(str(file), 1.5, 2.0)
    assert trial == Trial(label="line 2", step=OverlappedStep(t_comp=1.0, t_comm=2.0, l_comp=1.5, l_comm=2.0))


def test_nothing_measured_has_no_errors() -> None:
    step = OverlappedStep(t_comp=1.0, t_comm=2.0, l_comp=1.5, l_comm=2.0)
    assert deviations([Trial(label="a", step=step)]) == {}


STEP = ("--comp-bytes", "2GB", "--comm-bytes", "256MB", "--comp-node", "1", "--comm-node", "1")


def test_a_model_gives_ratios_and_times(capfd: pytest.CaptureFixture[str]) -> None:
    found = asked(capfd, "henri", "--cores", "17", *STEP)
    said = found["prediction"]
    assert found["t_comp"] == pytest.approx(2e3 / said["comp_alone"]["value"])
    assert found["t_comm"] == pytest.approx(256 / said["comm_alone"]["value"])
    assert found["l_comp"] == pytest.approx(said["comp_alone"]["value"] / said["comp_together"]["value"])
    assert found["comm_contended"] == pytest.approx(256 / said["comm_together"]["value"])
    assert found["total_low"] < found["total"] < found["total_high"]


def test_a_model_gives_the_best_split_of_the_bytes(capfd: pytest.CaptureFixture[str]) -> None:
    found = asked(capfd, "henri", "--cores", "17", *STEP, "--p-acc", "50000", "--w", "0")
    assert found["total"] == pytest.approx(2e9 * found["w"] / 5e10, rel=1e-6)
    assert found["given_split"]["total"] == pytest.approx(found["without_accelerators"])


def test_halo_steps_at_predicted_rates_take_the_separators_and_the_predicted_steps() -> None:
    said = api.load_model("henri").predict(17, 1, 1)
    steps = halo_steps(10, separator=1e8, interior=2e9, exchange=2.56e8)
    exchanges = {item.name for item in steps if item.name.startswith("exchange")}
    rates = predicted_rates(said, {item.name for item in steps} - exchanges, exchanges)
    one = 1e8 / (said.comp_alone.value * 1e6) + predicted_step(said, 2e9, 2.56e8).step.total
    assert simulate(steps, rates).total == pytest.approx(10 * one)


def test_activities_of_one_side_share_its_bandwidth() -> None:
    said = api.load_model("henri").predict(17, 1, 1)
    active = frozenset({"a", "b", "m"})
    rates = predicted_rates(said, {"a", "b"}, {"m"})(active)
    assert rates["a"] == rates["b"] == pytest.approx(said.comp_together.value * 1e6 / 2)
    assert rates["m"] == pytest.approx(said.comm_together.value * 1e6)


def test_messages_that_stand_still_have_no_upper_bound() -> None:
    sure, unsure = (Interval(value=9.0, low=low, high=10.0) for low in (8.0, 0.0))
    place = Situation(comp_node=0, comm_node=0, n=1)
    said = Prediction(
        situation=place, comp_alone=sure, comm_alone=sure, comp_together=sure, comm_together=unsure
    )
    assert predicted_step(said, 1e6, 1e6).high is None
    assert predicted_step(said, 1e6, 0.0).high == pytest.approx(1 / 8.0)


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("henri", "--cores", "17", *STEP, "--t-comp", "1"), "t_comp"),
        (("henri", *STEP), "cores"),
        (("henri", "--cores", "17", *STEP[:4]), "comp_node"),
        (("henri", "--cores", "99", *STEP), "cores"),
        (("henri", "--cores", "0", *STEP), "cores"),
        (("henry", "--cores", "17", *STEP), "model"),
        (("henri", "--cores", "17", *STEP, "--w", "0.5"), "p_acc"),
        (("henri", "--cores", "17", *STEP, "--p-acc", "0"), "p_acc"),
        (("henri", "--cores", "17", *STEP[2:], "--comp-bytes", "2 apples"), "comp_bytes"),
        (("--cores", "3", "--t-comp", "1", *CARTESIUS), "cores"),
        (
            ("billy", "--cores", "31", "--faithful", *STEP[:4], "--comp-node", "0", "--comm-node", "0"),
            "comp_together",
        ),
    ],
)
def test_what_a_model_cannot_answer_is_refused_by_field(
    capfd: pytest.CaptureFixture[str], words: tuple[str, ...], field: str
) -> None:
    assert refused(capfd, *words)["field"] == field


def shown() -> list[tuple[str, str]]:
    """Command and what the page says it prints, where it says anything."""
    blocks = re.findall(
        r"^```console\n\$ elbowroom (.*?)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    return [(command, text) for command, text in blocks if text.strip() and not text.startswith("$")]


@pytest.mark.parametrize(("command", "text"), shown(), ids=lambda value: value[:50])
def test_the_page_shows_what_is_printed(capfd: pytest.CaptureFixture[str], command: str, text: str) -> None:
    assert cli.run(shlex.split(command)) == 0
    printed = "\n".join(line.rstrip() for line in capfd.readouterr().out.splitlines())
    for part in text.split("...\n"):
        assert part.strip() in printed


def test_the_page_shows_python_that_runs() -> None:
    names: dict[str, Any] = {}
    for block in re.findall(
        r"^```python\n(.*?)^```", LIBRARY.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    ):
        exec(block, names)
    sides = (set(names["names"]) - names["exchanges"], names["exchanges"])
    total = simulate(names["steps"], names["predicted_rates"](names["prediction"], *sides)).total
    assert f"# {total:.3f} s" in LIBRARY.read_text(encoding="utf-8")
