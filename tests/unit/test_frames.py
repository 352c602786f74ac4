"""Frames: Arrow data that other libraries take without a copy, and what is said where they are missing."""

from __future__ import annotations

import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pandas
import pyarrow
import pytest

import elbowroom
from elbowroom.errors import UsageError
from elbowroom.frames import Frame, frame, of_columns

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(scope="module")
def run() -> elbowroom.Run:
    return elbowroom.open(DATA / "quick")


def made(rows: int) -> tuple[dict[str, np.ndarray], Frame]:
    columns = {"begin_s": np.linspace(0.0, 1.0, rows), "bytes": np.arange(rows)}
    return columns, of_columns(columns, "elbowroom/made")


def test_a_million_rows_are_not_copied() -> None:
    columns, table = made(1_000_000)
    tracemalloc.start()
    before, arrow = tracemalloc.get_traced_memory()[0], pyarrow.total_allocated_bytes()
    taken = pyarrow.table(table)
    values = table["begin_s"]
    used = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    assert used < 100_000
    assert pyarrow.total_allocated_bytes() - arrow < 100_000
    assert np.shares_memory(values, columns["begin_s"])
    assert np.shares_memory(taken["bytes"].chunk(0).to_numpy(), columns["bytes"])


def test_polars_takes_a_frame_without_copying_it() -> None:
    polars = pytest.importorskip("polars")
    columns, table = made(1_000_000)
    taken = table.to_polars()
    assert isinstance(taken, polars.DataFrame)
    assert np.shares_memory(taken["begin_s"].to_numpy(), columns["begin_s"])


def test_any_library_takes_a_frame_through_its_capsules(run: elbowroom.Run) -> None:
    samples = run.samples()
    assert pyarrow.schema(samples) == samples.to_arrow().schema
    assert pyarrow.table(samples) == samples.to_arrow()
    if hasattr(pandas.DataFrame, "from_arrow"):  # pandas 3
        assert len(pandas.DataFrame.from_arrow(samples)) == len(samples)


def test_a_run_has_a_row_for_each_point(run: elbowroom.Run) -> None:
    points = run.frame().to_pandas()
    first = run.points()[0]
    assert list(points["id"]) == [point.id for point in run.points()]
    assert points["comm_kept_low"][0] == pytest.approx(first.comm.kept.low if first.comm.kept else np.nan)
    assert list(run.frame()["kernel"]) == [point.kernel for point in run.points()]


def test_a_list_of_any_results_is_a_table() -> None:
    model = elbowroom.load_model("henri")
    predictions = model.curves(comp_node=0, comm_node=0)
    table = elbowroom.frame(predictions)
    assert list(table["situation_n"]) == [item.situation.n for item in predictions]
    assert list(table["comm_together_value"]) == [item.comm_together.value for item in predictions]
    assert len(model.frame()) == len(model.curves())
    assert len(frame([])) == 0


def test_values_of_several_types_are_text() -> None:
    assert list(frame([{"now": 3}, {"now": "near"}, {}])["now"]) == ["3", "near", None]


def test_what_is_no_list_of_results_is_refused() -> None:
    with pytest.raises(UsageError, match=r"give for instance run.points"):
        frame([3])
    with pytest.raises(UsageError, match="is not a list of results"):
        frame(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_missing_library_is_named_with_what_to_do(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(UsageError, match=rf"pip install {library}, or use \.to_arrow"):
        getattr(made(3)[1], f"to_{library}")()


def test_a_notebook_without_pandas_shows_a_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "polars", None)
    table = frame([{"name": "<script>", "kept": 0.123456789}] * 9)
    page = table._repr_html_()
    assert page.count("<tr>") == 6
    assert "&lt;script&gt;</td><td>0.1235" in page
    assert "9 rows of 2 columns" in page
    assert repr(table) == "Frame(rows=9, columns=2)"
    assert str(table).splitlines() == ["9 rows of 2 columns", "name: string", "kept: double"]
