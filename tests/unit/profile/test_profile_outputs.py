"""Figures, page and Parquet files of a profile."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pyarrow.parquet
import pytest

from elbowroom.draw.svg import svg
from elbowroom.errors import UsageError
from elbowroom.profile.analysis import Analysis, analyse, interval_frame, summarise, window_frame
from elbowroom.profile.curve import NicCurve
from elbowroom.profile.figures import (
    RankTimes,
    profile_figures,
    profile_page,
    rank_times,
    sentences,
    times_figure,
    together_figures,
)
from elbowroom.profile.profile import read_profile
from elbowroom.profile.summary import EmulatedNic, ProfileManifest
from made_profiles import MS, START_WALL_NS, MadeJob, write_profile


@pytest.fixture
def analysis(tmp_path: Path) -> Analysis:
    job = MadeJob(4)
    for _ in range(10):
        job.compute(8 * MS)
        job.exchange(1_000_000)
    return analyse(read_profile(job.write(tmp_path / "profile")), NicCurve(total=(1e9,)))


def test_each_node_has_its_use_over_time_and_all_have_one_histogram(analysis: Analysis) -> None:
    figures = profile_figures(analysis, summarise(analysis))
    assert [figure.name for figure in figures] == ["ranks", "network-0", "network-1", "concurrency"]
    sent, received, _ = figures[1].series
    width = analysis.duration / len(sent.x)
    # 10 exchanges of 2 MB, in MB.
    assert sum(sent.y) * width == pytest.approx(20)
    assert sum(received.y) * width == pytest.approx(20)
    assert sum(figures[-1].series[0].y) == pytest.approx(100)
    assert all("<svg" in svg(figure) for figure in figures)


def test_a_node_with_nothing_on_its_network_has_no_empty_figure(tmp_path: Path) -> None:
    job = MadeJob(2, nodes=1)
    job.compute(8 * MS)
    alone = analyse(read_profile(job.write(tmp_path)))
    assert [figure.name for figure in profile_figures(alone, summarise(alone))] == ["ranks", "concurrency"]


def test_the_page_begins_with_where_the_time_of_each_rank_goes(analysis: Analysis) -> None:
    summary = summarise(analysis)
    times = rank_times(analysis, summary)
    assert times.parts == ("computing", "transferring in MPI")
    assert times.seconds.sum(axis=1) == pytest.approx(analysis.duration, rel=0.01)
    assert times.seconds[:, 0] == pytest.approx(0.08, rel=0.05)
    page = profile_page(analysis, summary)
    assert page.index("On average the ranks spend") < page.index("4 ranks on 2 nodes")
    assert page.index('data-figure="ranks"') < page.index('data-figure="network-0"')


def test_a_thousand_ranks_are_sorted_and_drawn_as_areas_of_few_places(analysis: Analysis) -> None:
    summary = summarise(analysis)
    random = np.random.default_rng(1)
    computing = random.uniform(0.2, 0.8, 1000)
    times = RankTimes(("computing", "in MPI"), np.column_stack([computing, 1 - computing]))
    first, second = times_figure(times, summary).series
    assert len(first.x) == 400
    assert (first.x[0], first.x[-1]) == (2.0, 999.5)
    assert list(first.y) == sorted(first.y, reverse=True)
    assert np.array(first.y) + np.array(second.y) == pytest.approx(1.0)


def test_the_page_has_figures_table_and_notes(analysis: Analysis) -> None:
    page = profile_page(analysis, summarise(analysis))
    for words in ("Network use over time, node1", "4 ranks on 2 nodes", "manifest is missing", "1000 MB/s"):
        assert words in page


def test_a_profile_without_communication_has_a_page(tmp_path: Path) -> None:
    job = MadeJob(4)
    job.compute(8 * MS)
    silent = analyse(read_profile(job.write(tmp_path)))
    assert "the program sent no data by MPI" in profile_page(silent, summarise(silent))


def test_a_job_on_one_node_has_no_network_and_no_bandwidth(tmp_path: Path) -> None:
    job = MadeJob(2, nodes=1)
    job.compute(8 * MS)
    alone = analyse(read_profile(job.write(tmp_path)))
    text = " ".join(sentence for sentence, _ in sentences(summarise(alone)))
    assert "2 ranks on one node" in text
    assert "Network: n/a (all ranks are on one node)." in text
    assert "MB/s" not in text


def test_intervals_are_rows_of_a_parquet_file(analysis: Analysis, tmp_path: Path) -> None:
    path = tmp_path / "intervals.parquet"
    assert len(interval_frame(analysis)) == 80
    interval_frame(analysis).write(path)
    table = pyarrow.parquet.read_table(path).to_pydict()
    assert sum(size for size, out in zip(table["bytes"], table["out"], strict=True) if out) == 40_000_000
    assert set(table["call"]) == {"MPI_Sendrecv"}
    assert all(b <= e for b, e in zip(table["begin_s"], table["end_s"], strict=True))


def test_windows_are_rows_of_a_parquet_file(analysis: Analysis, tmp_path: Path) -> None:
    path = tmp_path / "windows.parquet"
    table = pyarrow.parquet.read_table(window_frame(analysis).write(path))
    assert table.schema.metadata[b"schema"] == b"elbowroom/profile-windows"
    assert sum(table["sent"].to_pylist()) == pytest.approx(40_000_000)


def beside(folder: Path, after_ms: int) -> Analysis:
    """A job like that of `analysis`, started so much later on the same hosts."""
    job = MadeJob(4)
    for _ in range(10):
        job.compute(8 * MS)
        job.exchange(1_000_000)
    start = START_WALL_NS + after_ms * MS
    write_profile(folder, job.rows, job.nodes_of, end=job.now, start_wall_ns=start)
    return analyse(read_profile(folder), NicCurve(total=(1e9,)))


def test_two_jobs_on_the_same_nodes_are_drawn_on_one_clock(analysis: Analysis, tmp_path: Path) -> None:
    figures = together_figures({"a": analysis, "b": beside(tmp_path / "b", 50)})
    assert [figure.title.rpartition(" ")[2] for figure in figures] == list(analysis.profile.names)
    first, second, *ranks = figures[0].series
    width = first.x[1] - first.x[0]
    # 10 exchanges of 2 MB of each job, in MB.
    assert [sum(series.y) * width for series in (first, second)] == pytest.approx([20, 20])
    begins = [next(x for x, y in zip(series.x, series.y, strict=True) if y) for series in (first, second)]
    assert begins[1] - begins[0] == pytest.approx(0.05, abs=2 * width)
    assert [series.name for series in ranks] == ["a", "b"]
    assert "<svg" in svg(figures[0])


def test_jobs_one_after_the_other_are_not_drawn_together(analysis: Analysis, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did not run at the same time"):
        together_figures({"a": analysis, "b": beside(tmp_path / "b", 5000)})


def test_jobs_behind_emulated_nics_of_other_names_have_no_node_in_common(
    analysis: Analysis, tmp_path: Path
) -> None:
    def behind(one: Analysis, name: str, nodes: tuple[int, ...] = ()) -> Analysis:
        nic = EmulatedNic(name=name, bandwidth=1e9, ranks_per_node=2, nodes=nodes)
        manifest = ProfileManifest(command=("a",), nic=nic)
        profile = msgspec.structs.replace(one.profile, manifest=manifest)
        return msgspec.structs.replace(one, profile=profile)

    other = beside(tmp_path / "b", 0)
    with pytest.raises(UsageError, match="have no node in common"):
        together_figures({"a": behind(analysis, "x"), "b": behind(other, "y")})
    figures = together_figures({"a": behind(analysis, "x"), "b": behind(other, "x", (1, 2))})
    assert [figure.title.rpartition(" ")[2] for figure in figures] == [analysis.profile.names[1]]
