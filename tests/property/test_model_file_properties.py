"""M.json with anything in the place of anything: read and answered, or refused in words."""

from __future__ import annotations

import copy
import json
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.errors import UsageError
from elbowroom.models.base import Provenance
from elbowroom.models.fit import fit
from elbowroom.models.predict import predict, situations
from elbowroom.store.models import read_model


@pytest.fixture(scope="module")
def sound(thesis_curves: Any) -> Any:
    """A fitted model as plain data, without FLOW's draws but one."""
    document = fit(thesis_curves("henri", ns=(1, 9, 18), noise=0.01), Provenance(), created="")
    raw = json.loads(msgspec.json.encode(document))
    raw["models"]["flow"]["draws"] = raw["models"]["flow"]["draws"][:1]
    return raw


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container and the key or index of everything in it."""
    if not isinstance(value, dict | list):
        return []
    keys = list(value) if isinstance(value, dict) else range(len(value))
    return [(value, key) for key in keys] + [place for key in keys for place in places(value[key])]


replacements = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 40),
    st.floats(-1e6, 1e6, allow_nan=False),
    st.text(max_size=4),
    st.just([]),
    st.just({}),
)


@given(st.integers(0, 10**6), replacements | st.just("delete"))
def test_a_changed_model_is_answered_or_refused_in_words(sound: Any, where: int, change: Any) -> None:
    raw = copy.deepcopy(sound)
    found = places(raw)
    container, key = found[where % len(found)]
    if change == "delete":
        del container[key]
    else:
        container[key] = change
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "M.json"
        path.write_text(json.dumps(raw))
        try:
            document = read_model(path)
            said = predict(document, situations(document.machine, n=1, comp_node=0, comm_node=0))
        except UsageError as error:
            refusal = error.sentence()
            assert error.field  # noqa: PT017 - either outcome is right
            assert refusal
            return
    assert len(said) == 1
