"""Steps of traces that name none: as the sequence of computations repeats."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elbowroom import api
from elbowroom.trace.overlap.repetition import _anchors
from made_overlap import kineto, scheduled


@pytest.mark.parametrize("slowdown", [1.0, 1.2])
def test_a_trace_without_named_steps_is_answered_by_its_repetition(tmp_path: Path, slowdown: float) -> None:
    made = scheduled(share=0.5, slowdown=slowdown)
    begins = {begin for _, _, begin, _ in made.steps}
    made.spans = [
        replace(one, name="first") if one.name == "gemm" and one.start - 1 in begins else one
        for one in made.spans
    ]
    results = []
    for named in (True, False):
        path = tmp_path / "trace.json"
        path.write_bytes(kineto(made, named=named))
        results.append(api.trace_overlap(path))
    with_names, without = results
    assert without.steps == with_names.steps
    assert any("names no steps" in text for text in without.notes)
    assert without.cost is not None
    assert without.cost.low <= made.cost_s <= without.cost.high


@given(
    st.lists(st.integers(0, 8), min_size=6, max_size=40),
    st.integers(3, 30),
    st.integers(0, 5),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=150, deadline=None)
def test_a_repeated_sequence_is_cut_at_its_period_or_a_part_that_repeats(
    layer: list[int], steps: int, before: int, seed: int
) -> None:
    step = [99, *layer]
    sequence = np.array([100 + one for one in range(before)] + step * steps, dtype=np.int64)
    anchors = _anchors(sequence)
    assert len(anchors) >= steps - 1
    assert len({*np.diff(anchors).tolist()}) == 1 or len(anchors) > steps
    dice = np.random.default_rng(seed)
    noisy = sequence[dice.random(len(sequence)) > 0.002]
    assert len(_anchors(noisy)) in {0, *range(steps - 2, len(noisy))}


@given(st.integers(0, 2**32 - 1), st.integers(60, 400))
@settings(max_examples=60, deadline=None)
def test_a_random_sequence_has_no_steps(seed: int, length: int) -> None:
    sequence = np.random.default_rng(seed).integers(0, 12, length)
    assert not len(_anchors(sequence.astype(np.int64)))
