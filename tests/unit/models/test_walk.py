"""How much code a prediction runs through, by tools/walk_predict.py."""

from __future__ import annotations

import pytest
import walk_predict

from elbowroom.api import load_model


@pytest.mark.parametrize(("name", "files", "returns"), [("flow", 6, 40), ("threshold", 5, 20)])
@pytest.mark.parametrize("place", walk_predict.PLACEMENTS)
def test_a_second_prediction_visits_few_files(
    name: str, files: int, returns: int, place: tuple[int, int]
) -> None:
    model = load_model(walk_predict.EXAMPLE)
    walked = walk_predict.walked(lambda: model.predict(4, *place, model=name))  # type: ignore[arg-type]
    assert walked <= (files, returns)
    assert walked[1] <= returns
