"""Clocks of a trace drawn and told: `trace.sync_figures`."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from elbowroom.trace.documents import Sync
from elbowroom.trace.sync_figures import advice, clocks, summary, sync_figures, sync_report


def rank(number: int, offsets: list[int], *, bad: int | None = None, **more: Any) -> dict[str, Any]:
    """A point every 10 s with bounds of +-100 ns; the one numbered `bad` is left out."""
    points = [
        {"local": i * 10**10, "offset": offset, "low": offset - 100, "high": offset + 100, "used": i != bad}
        for i, offset in enumerate(offsets)
    ]
    used = [point for point in points if point["used"]]
    segments = [
        {
            "from": a["local"], "to": b["local"], "offset_ns": a["offset"], "error_ns": 250,
            "drift_ppb": (b["offset"] - a["offset"]) / (b["local"] - a["local"]) * 1e9,
        }
        for a, b in pairwise(used)
    ]  # fmt: skip
    return {"rank": number, "host": "alpha", "points": points, "segments": segments, "flags": [], **more}


def reference() -> dict[str, Any]:
    result = rank(0, [0, 0, 0])
    for point in result["points"]:
        point |= {"low": 0, "high": 0}
    return result


def sync(*ranks: dict[str, Any]) -> Sync:
    return msgspec.convert({"ranks": list(ranks)}, type=Sync)


def test_ranks_with_the_same_points_share_a_clock_and_the_reference_is_none() -> None:
    offsets = [5_000_000, 5_010_000, 5_030_000]
    result = clocks(sync(reference(), rank(1, offsets), rank(2, offsets), rank(3, [7, 8, 9])))
    assert sorted(clock.ranks for clock in result) == [(1, 2), (3,)]


def test_offsets_are_drawn_without_their_constant_drift_and_left_out_points_apart() -> None:
    figures = {figure.name: figure for figure in sync_figures(sync(rank(1, [0, 1000, 99_000, 3000], bad=2)))}
    points, line, left_out = figures["offset-1"].series
    assert points.y == pytest.approx((0.0, 0.0, 0.0))
    assert line.x == (0.0, 10.0, 30.0)
    assert left_out.y == pytest.approx((97.0,))
    assert left_out.high == pytest.approx((97.1,))


def test_one_point_and_two_points_would_have_been_wrong_by_what_is_drawn() -> None:
    figures = {figure.name: figure for figure in sync_figures(sync(rank(1, [0, 9000, 10_000])))}
    one, two, bars = figures["fewer"].series
    assert one.y == pytest.approx((0.001, 9.0, 10.0))
    assert two.y == pytest.approx((0.001, 4.0, 0.001))
    assert bars.y == pytest.approx((0.25, 0.25, 0.25))


def test_a_trace_whose_clocks_were_compared_once_has_no_figure_and_says_so() -> None:
    result = sync(rank(1, [5], flags=["single"]))
    assert sync_figures(result) == []
    assert any("drift is unknown" in sentence for sentence in summary(result))
    assert any("at the end" in sentence for sentence in advice(result))


def test_words_tell_the_worst_error_the_largest_drift_and_what_was_left_out() -> None:
    answer = " ".join(summary(sync(reference(), rank(1, [0, 200_000, 99, 600_000], bad=2))))
    assert "at most 250 ns (rank 1)" in answer
    assert "20 ppm" in answer
    assert "1 of them left out" in answer


def test_drift_between_points_is_told_from_what_the_network_leaves_open() -> None:
    steady, bent = rank(1, [0, 1, 2]), rank(2, [0, 50, 2])
    for error, messages in ((150, steady), (5000, bent)):
        for segment in messages["segments"]:
            segment["error_ns"] = error
    assert any(
        "Ranks 2: most of the error (at most 5000 ns) comes from drift" in sentence
        for sentence in advice(sync(steady, bent))
    )
    assert advice(sync(steady)) == []


def test_an_error_below_what_a_message_takes_is_no_reason_to_compare_more_often() -> None:
    bent = rank(1, [0, 50, 2])
    for segment in bent["segments"]:
        segment["error_ns"] = 570
    assert advice(sync(bent)) == []


@pytest.mark.parametrize(
    "flag", ["unsynced", "single", "backwards", "stepped", "jumped", "unlocated", "rejected"]
)
def test_each_flag_is_explained(flag: str) -> None:
    assert any(
        sentence.startswith("Rank 4") and len(sentence) > 30
        for sentence in summary(sync(rank(4, [1, 2], flags=[flag])))
    )


def test_the_page_is_whole_and_needs_nothing_else() -> None:
    document = {"ranks": [reference(), rank(1, [0, 10, 30, 20], host="<alpha>")]}
    page = sync_report(document)
    assert page == sync_report(json.dumps(document).encode()) == sync_report(sync(*document["ranks"]))
    assert page.startswith("<!doctype html>")
    assert page.count("<svg") == 4
    assert "&lt;alpha&gt;" in page
    assert "<alpha>" not in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
