"""Runs of different numbers of nodes as one: Table II of Langguth et al. (2018), planted and found again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from elbowroom import api
from elbowroom.cli import run as command
from elbowroom.errors import UsageError
from elbowroom.experiments.plans import Overrides

VILJE = str(Path(__file__).resolve().parents[2] / "data" / "vilje.toml")
TABLE_II = {
    4: (124.58, 137.54, 0.86, 1.96, 124.76, 131.38, 5.3),
    8: (63.72, 70.35, 0.80, 1.83, 63.89, 65.34, 2.3),
    16: (32.37, 35.74, 0.56, 1.28, 32.49, 31.16, 4.1),
    32: (16.21, 17.90, 0.43, 0.98, 16.30, 16.10, 1.2),
    64: (7.57, 8.36, 0.33, 0.75, 7.64, 8.13, 6.4),
    128: (3.48, 3.85, 0.24, 0.55, 3.54, 3.89, 10.2),
    256: (1.71, 1.88, 0.20, 0.45, 1.75, 1.99, 13.9),
}
"""Nodes: T_M, T_M^C, T_N, T_N^C, T_tot, measured (ms), error (%), as printed."""

Measure = Callable[..., Path]


@pytest.fixture(scope="module")
def measure(tmp_path_factory: pytest.TempPathFactory) -> Measure:
    """A run of the planted machine on one number of nodes."""
    folder = tmp_path_factory.mktemp("joined")

    def run(name: str, nodes: int, machine: str = VILJE, plan: str = "diffusion", **settings: str) -> Path:
        out = folder / name
        if not out.exists():
            keys = {"nodes": str(nodes), "comm_threads": "1", **settings} if plan == "diffusion" else settings
            api.run(
                plan, overrides=Overrides(repeat=5, settings=keys), machine=machine, noise=0.0, out=str(out),
                report=False, tell=lambda _: None,
            )  # fmt: skip
        return out

    return run


@pytest.fixture(scope="module")
def vilje(measure: Measure) -> api.JoinedRuns:
    """The runs of all rows, joined out of order."""
    return api.join_runs(*(measure(f"n{nodes}", nodes) for nodes in reversed(TABLE_II)))


def test_every_cell_of_the_papers_table_comes_out_as_planted(vilje: api.JoinedRuns) -> None:
    rows = vilje.data["steps"].rows
    assert [row.nodes for row in rows] == list(TABLE_II)
    for row in rows:
        t_comp, comp_contended, t_comm, comm_contended, total, real, error = TABLE_II[row.nodes]
        assert row.step.t_comp / 1e3 == pytest.approx(t_comp, rel=1e-9)
        assert row.step.t_comm / 1e3 == pytest.approx(t_comm, rel=1e-9)
        assert row.measured.median / 1e3 == pytest.approx(real, rel=1e-9)
        # The paper computed with more digits of T_M and T_N than it prints.
        assert row.comp_contended / 1e3 == pytest.approx(comp_contended, abs=0.011 + 2e-4 * t_comp)
        assert row.comm_contended / 1e3 == pytest.approx(comm_contended, abs=0.0055 * 2.28 + 0.005)
        assert row.predicted / 1e3 == pytest.approx(total, abs=0.011)
        assert 100 * row.errors_of_predicted["predicted"] == pytest.approx(error, abs=0.5)


def test_the_joined_table_prints_the_papers_cells(vilje: api.JoinedRuns) -> None:
    table = next(table for table in vilje.tables if "Table II" in table.title)
    printed = {row[0]: row for row in table.rows}
    assert printed["4"][2:9] == ("125", "138", "0.86", "1.96", "0", "124.8", "131.4")
    assert printed["256"][2:9] == ("1.71", "1.89", "0.2", "0.456", "0", "1.753", "1.99")


def test_gflops_are_of_all_cells_of_a_node(vilje: api.JoinedRuns) -> None:
    row = vilje.data["steps"].rows[0]
    assert row.gflops == pytest.approx(12 * 115e6 / 4 / 131.38e-3 / 1e9)
    figure = next(figure for figure in vilje.figures if figure.name == "diffusion-performance")
    assert "Gflop/s" in figure.left.label
    assert {"diffusion-volumes", "diffusion-sides"} <= {figure.name for figure in vilje.figures}


def test_the_number_of_nodes_from_which_communication_limits_is_fewer_with_contention(
    vilje: api.JoinedRuns,
) -> None:
    reached = vilje.data["steps"].limit
    assert reached.contended.beyond
    assert reached.contended.low < reached.contended.nodes < reached.contended.high
    assert reached.contended.nodes < reached.alone.nodes
    assert any("T_M^C = T_N^C" in finding.text for finding in vilje.findings)


def test_a_joined_report_is_written_and_printed(
    measure: Measure, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "joined.html"
    assert command(["report", str(measure("n4", 4)), str(measure("n256", 256)), "-o", str(out)]) == 0
    text = out.read_text(encoding="utf-8")
    assert "Performance of a node (Gflop/s)" in text
    assert "2 runs joined" in text
    assert "Table II" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"name": "henri", "nodes": 8, "machine": "henri"}, "is from another machine: name is 'henri'"),
        ({"name": "again", "nodes": 4}, "has steps on 4 nodes, as .* has"),
        ({"name": "small", "nodes": 8, "cells": "1000000"}, "has 1000000 cells, and .* 115000000"),
        ({"name": "cores", "nodes": 2, "plan": "cores", "n": "1"}, "is a run of cores"),
    ],
)
def test_runs_that_do_not_fit_together_are_refused_in_one_sentence(
    measure: Measure, other: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        api.join_runs(measure("n4", 4), measure(**other))
    assert caught.value.field == "run"
    assert "\n" not in caught.value.sentence()


def test_a_run_named_twice_is_refused(measure: Measure) -> None:
    with pytest.raises(UsageError, match="named twice"):
        api.join_runs(measure("n4", 4), measure("n4", 4))


def test_runs_of_an_experiment_that_cannot_join_are_refused(measure: Measure) -> None:
    runs = [measure(name, 2, plan="cores", n="1") for name in ("c1", "c2")]
    with pytest.raises(UsageError, match=r"runs of cores cannot be joined; .*diffusion"):
        api.join_runs(*runs)


@pytest.mark.parametrize("words", [[], ["--job", "j.toml", "-o", "x.html"], ["--model", "m", "-o", "x.html"]])
def test_options_of_a_single_run_are_refused_with_several(measure: Measure, words: list[str]) -> None:
    assert command(["report", str(measure("n4", 4)), str(measure("n256", 256)), *words]) == 2


def test_a_number_of_nodes_without_a_published_step_is_not_answered(tmp_path: Path) -> None:
    plan = Overrides(repeat=5, settings={"nodes": "12"})
    with pytest.raises(UsageError, match="published steps of other numbers"):
        api.run("diffusion", overrides=plan, machine=VILJE, out=str(tmp_path / "r"), tell=lambda _: None)
