"""What a timeline's page is made of; how it looks and works: tests/e2e/test_timeline_browser.py."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import made_columns as made
from elbowroom.errors import MachineError, UsageError
from elbowroom.trace import timeline
from elbowroom.trace.columns import CLIPPED, FLAGS, KINDS, TraceColumns
from elbowroom.trace.timeline import collect, of_types, rounded_up, timeline_page


def data(count: int = 20) -> bytes:
    ends, message = made.message(1, 55, 0, 95, 1)
    tasks = [row for index in range(count) for row in made.task(index, 10 * index, 10 * index + 5)]
    return made.stream(made.job(warnings=["a <warning>"]), [*tasks, *ends], [message], [(60, 90, 3, 1)])


def part() -> bytes:
    """As trace-reader writes a trace of 400 ns from 50 to 100: a task goes on before and after, another is
    inside.
    """
    ends, message = made.message(1, 55, 0, 95, 1)
    cut = made.task(7, 50, 100)
    cut = [(*row[:-2], CLIPPED, b"") for row in cut]
    return made.stream(
        made.job(duration=400), [*cut, *made.task(8, 60, 70), *ends], [message], [(60, 90, 3, 1)]
    )


def facts_of(found: str) -> dict[str, Any]:
    match = re.search(r'<script[^>]*id="facts"[^>]*>(.*?)</script>', found, re.DOTALL)
    assert match is not None
    facts: dict[str, Any] = json.loads(match[1])
    return facts


def page(**choice: object) -> str:
    return timeline_page(io.BytesIO(data()), "t", **choice)  # type: ignore[arg-type]


def test_the_page_is_one_file_that_asks_for_nothing() -> None:
    found = page()
    assert "default-src 'none'" in found
    assert not re.search(r"(src|href)=\"(?!data:)", found)
    assert "import(" not in found
    assert "fetch(" not in found


def test_without_a_script_it_says_how_much_there_is_and_what_is_wrong() -> None:
    found = page()
    assert "2 ranks on 2 hosts · 2 threads · 42 events · 1 message" in found
    assert "a &lt;warning&gt;" in found
    assert re.search(r"<noscript>.*<td>solve</td><td>task</td><td class=\"number\">40</td>", found, re.DOTALL)


def test_a_part_of_the_time_and_some_categories_say_what_is_left_out() -> None:
    cut = part()
    shown = collect(io.BytesIO(cut), 50, 100, ["task"])
    assert shown.recorded == 2
    assert len(shown.events) == 4
    assert shown.left_out == {"time": 16, "categories": 2, "messages": 1}
    found = timeline_page(io.BytesIO(cut), "t", begin_ns=50, end_ns=100, categories=["task"])
    assert "from 5e-08 s to 1e-07 s: 16 events outside" in found
    for said in ("2 events of other categories", "1 message without", "2 events · 0 messages"):
        assert said in found


def test_the_axis_of_a_part_spans_what_was_asked_for_and_ends_with_the_trace() -> None:
    facts = facts_of(timeline_page(io.BytesIO(part()), "t", begin_ns=50, end_ns=100))
    assert (facts["from"], facts["until"]) == (50, 100)
    late = collect(io.BytesIO(part()), 50, 10_000, [])
    assert (late.first, late.last) == (50, 400)
    assert (collect(io.BytesIO(data()), None, None, []).first, facts_of(page())["until"]) == (None, None)


def test_a_part_behind_the_trace_s_end_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"from 1e-06: is after the end of the trace, 4e-07 s; give an earlier time"
    ):
        collect(io.BytesIO(part()), 1000, None, [])


def test_a_category_that_is_not_there_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"'mpii'.*is not a category of this trace; choose among: trace, task"
    ):
        page(categories=["mpii"])


def test_more_events_than_a_browser_shows_are_refused_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "MOST_EVENTS", 30)
    with pytest.raises(UsageError, match=r"more events than a browser can show; select a part \(--from"):
        page()


def test_a_stream_that_ends_early_makes_no_page() -> None:
    with pytest.raises(MachineError, match="ends early"):
        timeline_page(io.BytesIO(data()[:-3]), "t")


def test_a_trace_of_more_than_its_page_counts_is_refused() -> None:
    late = made.stream(made.job(), [made.event(2**53, 0, 0, 0)])
    with pytest.raises(UsageError, match="104 days"):
        timeline_page(io.BytesIO(late), "t")


def test_a_tachyon_s_ends_are_told_apart() -> None:
    ends, message = made.message(4, 90, 0, 40, 1)
    shown = collect(io.BytesIO(made.stream(made.job(), ends, [message])), None, None, [])
    assert shown.events["time"][shown.sends].tolist() == [90]
    assert shown.events["time"][shown.receives].tolist() == [40]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-1, 2**60), max_size=20))
def test_errors_are_never_rounded_to_less(errors: list[int]) -> None:
    given_ = np.array(errors, dtype=np.int64)
    found = rounded_up(given_).astype(np.float64)
    assert (found >= given_.astype(np.float64)).all()
    assert (found <= np.maximum(given_ * 1.11, given_)).all()


def test_types_of_a_category_have_colours_of_their_own() -> None:
    names = [{"name": f"t{i}", "category": 1 + i % 2, "fields": ["", "", ""]} for i in range(16)]
    pairs = of_types(TraceColumns(io.BytesIO(made.job(types=names))).job, [0, 1] * 8, list(range(16)))
    assert len(set(pairs)) == 16
    assert all(re.fullmatch("#[0-9A-F]{6}", colour) for pair in pairs for colour in pair)


def test_set_up_of_mpi_has_not_the_colours_of_communication() -> None:
    def colours(name: str) -> list[tuple[str, str]]:
        types = [{"name": one, "category": 1, "fields": ["", "", ""]} for one in (name, "MPI_Send")]
        job = TraceColumns(io.BytesIO(made.job(categories=["trace", "mpi"], types=types))).job
        return of_types(job, [1, 1], [1, 2])

    assert colours("MPI_Recv")[1] == colours("MPI_Init")[1]
    assert len({*colours("MPI_Recv"), *colours("MPI_Init"), *colours("MPI_Comm_dup")}) == 3


def test_the_page_s_scripts_know_the_kinds_and_flags_of_events() -> None:
    found = page()
    listed = re.search(r"const KINDS = (\[.*?\]);", found)
    assert listed
    assert tuple(json.loads(listed[1])) == KINDS
    messages = re.search(r"const FLAGS = \[(.*?)\];", found, re.DOTALL)
    assert messages
    assert tuple(re.findall(r'"(\w+):', messages[1])) == FLAGS


def test_only_a_timeline_shows_a_part(tmp_path: Path) -> None:
    from elbowroom import api

    (tmp_path / "rank-00000.jsonl").write_text("{}\n")
    with pytest.raises(UsageError, match=r"format 'pftrace': is merged as a whole; leave --from, --until"):
        api.merge_trace(tmp_path, tmp_path / "t.pftrace", begin_s=1.0)


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({"begin_s": float("nan")}, "from nan: is not a time in a trace; seconds since its start"),
        ({"end_s": float("inf")}, "until inf: is not a time"),
        ({"begin_s": -1.0}, "from -1.0: is not a time"),
        ({"begin_s": 2.0, "end_s": 1.0}, "from 2.0: is not before 1 s; give an earlier time"),
    ],
)
def test_a_part_that_is_no_time_is_refused(tmp_path: Path, choice: dict[str, float], said: str) -> None:
    from elbowroom import api

    (tmp_path / "rank-00000.jsonl").write_text("{}\n")
    with pytest.raises(UsageError) as refused:
        api.merge_trace(tmp_path, tmp_path / "t.html", **choice)  # type: ignore[arg-type]
    assert said in refused.value.sentence()
    assert not (tmp_path / "t.html").exists()
