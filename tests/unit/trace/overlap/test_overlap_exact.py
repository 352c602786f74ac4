"""Hidden and exposed time against a sweep of its own: each moment is looked at between two changes."""

from __future__ import annotations

import os
import tempfile
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from confounded_traces import Truth, make_events
from elbowroom import api
from elbowroom.errors import UsageError
from elbowroom.trace.overlap.analysis import analyse
from elbowroom.trace.overlap.chrome import read_json
from elbowroom.trace.overlap.events import Events
from elbowroom.trace.overlap.formats import joined, traces_in
from elbowroom.trace.overlap.recognition import COMMUNICATION, COMPUTATION, WAITING, recognise

FOLDER = os.environ.get("ELBOWROOM_PUBLIC_FILES", "")


def swept(events: Events) -> dict[str, float]:
    """Seconds of a rank (mean) in which it computes, communicates, does both, or only communicates."""
    side = recognise(events).side
    device = np.array([lane.device for lane in events.lanes])
    total = dict.fromkeys(("comp_s", "comm_s", "hidden_s", "exposed_s"), 0.0)
    ranks = 0
    for rank in range(len(events.ranks)):
        active: dict[int, list[tuple[int, int]]] = {COMPUTATION: [], COMMUNICATION: [], WAITING: []}
        for number, lane in enumerate(events.lanes):
            if lane.rank == rank:
                mine = np.flatnonzero(events.lane == number)
                parts = _plain(events, mine) if device[number] else _innermost(events, mine)
                for event, start, end in parts:
                    if int(side[event]) in active and end > start:
                        active[int(side[event])].append((start, end))
        if not active[COMPUTATION] and not active[COMMUNICATION]:
            continue
        ranks += 1
        points = np.unique([time for spans in active.values() for span in spans for time in span])
        comp, comm, wait = (_on(points, active[one]) for one in (COMPUTATION, COMMUNICATION, WAITING))
        length = np.diff(points) / 1e9
        either = comm | wait
        total["comp_s"] += float(length[comp].sum())
        total["hidden_s"] += float(length[comp & comm].sum())
        total["exposed_s"] += float(length[either & ~comp].sum())
        total["comm_s"] += float(length[(comp & comm) | (either & ~comp)].sum())
    return {name: value / ranks for name, value in total.items()}


def _plain(events: Events, mine: np.ndarray) -> list[tuple[int, int, int]]:
    return [(int(one), int(events.start[one]), int(events.end[one])) for one in mine]


def _innermost(events: Events, mine: np.ndarray) -> list[tuple[int, int, int]]:
    """Parts of a thread's time, each of the event that began last and has not ended."""
    start, end = events.start.tolist(), events.end.tolist()
    order = sorted(mine.tolist(), key=lambda one: (start[one], -end[one], one))
    parts: list[tuple[int, int, int]] = []
    open_: list[int] = []
    now = 0
    for one in [*order, None]:
        begin = None if one is None else start[one]
        while open_ and (begin is None or end[open_[-1]] <= begin):
            parts.append((open_[-1], now, end[open_[-1]]))
            now = max(now, end[open_.pop()])
        if one is None or begin is None:
            break
        if open_:
            parts.append((open_[-1], now, begin))
        open_.append(one)
        now = max(now, begin)
    return parts


def _on(points: np.ndarray, spans: list[tuple[int, int]]) -> np.ndarray:
    """Whether a side is active from each point to the next."""
    change = np.zeros(len(points), dtype=np.int64)
    if spans:
        start, end = np.array(spans).T
        np.add.at(change, np.searchsorted(points, start), 1)
        np.add.at(change, np.searchsorted(points, end), -1)
    flags: np.ndarray = np.cumsum(change)[:-1] > 0
    return flags


@pytest.mark.parametrize("ranks", [1, 3])
def test_times_of_a_made_trace_are_those_of_a_sweep(ranks: int) -> None:
    events, _ = make_events(Truth(seed=3, ranks=ranks, slowdown=1.2))
    found = analyse(events, ["made"])
    for name, seconds in swept(events).items():
        assert getattr(found, name) == pytest.approx(seconds, rel=1e-9, abs=1e-12)


def _public() -> list[Path]:
    if not FOLDER:
        return []
    return sorted(
        one
        for folder in ("kineto", "nsight", "rocprof")
        for one in (Path(FOLDER) / folder).glob("*")
        if one.is_file()
    )


def _read(form: str, path: Path) -> Events:
    if form == "json":
        return read_json(path)
    with tempfile.TemporaryFile() as store:
        events: Events = import_module(form).read(path, store).whole()
    return events


@pytest.mark.skipif(not FOLDER, reason="ELBOWROOM_PUBLIC_FILES names no folder of public traces")
@pytest.mark.parametrize("path", _public(), ids=lambda path: path.name)
def test_times_of_public_traces_are_those_of_a_sweep(tmp_path: Path, path: Path) -> None:
    try:
        found = api.trace_overlap(path)
    except UsageError as error:
        pytest.skip(str(error))
    traces = traces_in(path, tmp_path)
    events = joined([_read(one.format, one.place) for one in traces], [one.name for one in traces])
    for name, seconds in swept(events).items():
        assert getattr(found, name) == pytest.approx(seconds, rel=1e-9, abs=1e-12)
    answer = found.estimate
    assert (answer.grade == "nothing hidden") == (found.hidden_s == 0)
    assert answer.slowdown is not None or 0 <= answer.at_most_s <= found.hidden_s * (1 + 1e-9)
