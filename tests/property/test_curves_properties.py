"""curves.csv: whatever is written is read back, and whatever is read is refused in words or sound."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from elbowroom.errors import UsageError
from elbowroom.measure.curves import import_curves
from elbowroom.measure.results import evaluate
from elbowroom.models.curves import Curves, Row, Shape, Situation
from elbowroom.models.run_data import collect
from elbowroom.store.curves import COLUMNS, HEADERS, format_curves, parse_curves, same

names = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=12)
bandwidths = st.none() | st.floats(1e3, 2e5)


@st.composite
def curves(draw: st.DrawFn) -> Curves:
    shape = Shape(
        name=draw(names),
        cores_first_socket=draw(st.integers(1, 40)),
        numa_per_socket=draw(st.integers(1, 4)),
        sockets=draw(st.integers(1, 4)),
        nic_node=draw(st.none() | st.just(0)),
        virtual=draw(st.booleans()),
    )
    node, cores = st.integers(0, shape.nodes - 1), st.integers(0, shape.cores_first_socket)
    other = cores if shape.sockets > 1 else st.just(0)
    places = st.builds(Situation, comp_node=node, comm_node=node, n=cores, n_other=other)
    at = draw(st.sets(places.filter(lambda s: s.n + s.n_other > 0), min_size=1, max_size=8))
    rows = []
    for situation in sorted(at):
        values = draw(st.tuples(*[bandwidths] * 4).filter(any))
        rows.append(
            Row(
                situation=situation,
                comp_alone=values[0],
                comm_alone=values[1],
                comp_together=values[2],
                comm_together=values[3],
            )
        )
    kernel, size = draw(st.sampled_from([("memset_nt", 64_000_000), ("triad", 4096)]))
    return Curves(shape=shape, rows=tuple(rows), kernel=kernel, size=size)


@given(curves())
def test_what_is_written_is_read_back(found: Curves) -> None:
    assert same(parse_curves(format_curves(found).encode(), "c.csv"), found)


@settings(max_examples=12)
@given(curves())
def test_an_imported_run_says_the_same_as_the_curves(found: Curves) -> None:
    with tempfile.TemporaryDirectory() as parent:
        folder, _ = import_curves(found, Path(parent) / "run")
        points = {point.id: point.comp_cores for point in folder.manifest.points}
        again = collect(evaluate(folder).points, points, folder.manifest.machine)
    assert same(again.curves, found)
    assert again.left_out == {}


lines = st.one_of(
    st.sampled_from([f"# {key}: 4" for key in HEADERS]),
    st.sampled_from([",".join(COLUMNS), "# elbowroom/sockets: 2", "# elbowroom/unit: MB/s", "", "#"]),
    st.lists(
        st.one_of(
            st.sampled_from(["0", "1", "4", "", "nan", "-1", "1e4", "11e3", "1e400", '"', "x"]),
            st.text(max_size=3),
        ),
        min_size=5,
        max_size=8,
    ).map(",".join),
    st.text(max_size=20),
)


def judged(data: bytes) -> None:
    """Either sound curves or a sentence with a hint."""
    try:
        found = parse_curves(data, "c.csv")
    except UsageError as error:
        refusal = error
    else:
        refusal = None
    if refusal is not None:
        assert refusal.field
        assert refusal.message
        assert refusal.hint
        return
    values = [value for row in found.rows for value in row.streams if value is not None]
    assert values
    assert all(math.isfinite(value) and value > 0 for value in values)
    assert len({row.situation for row in found.rows}) == len(found.rows)
    for row in found.rows:
        at = row.situation
        assert max(at.comp_node, at.comm_node) < found.shape.nodes
        assert at.n + at.n_other > 0
        assert max(at.n, at.n_other) <= found.shape.cores_first_socket


@given(st.lists(lines, max_size=12))
def test_any_text_is_read_soundly_or_refused_in_words(found: list[str]) -> None:
    judged("\n".join(found).encode())


@given(st.lists(lines, max_size=8))
def test_any_rows_below_a_sound_head_are_read_soundly_or_refused(found: list[str]) -> None:
    head = ["# name: m", "# cores_first_socket: 4", "# numa_per_socket: 1", ",".join(COLUMNS)]
    judged("\n".join([*head, "0,0,1,1e4,1e4,1e4,1e4", *found]).encode())


@given(st.binary(max_size=60))
def test_any_bytes_are_refused_in_words(data: bytes) -> None:
    judged(data)
