"""How far a prediction walks: `python tools/walk_predict.py [M.json]`.

Counts what the second call of `Model.predict` visits in the package, for one situation of each kind of
placement: files, and returns of functions (comprehensions and generators are not counted). Prints the most of
these, and the median time of that call, for each model of the document.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import elbowroom
from elbowroom.api import load_model

PACKAGE = str(Path(elbowroom.__file__).parent)
EXAMPLE = Path(__file__).parents[1] / "tests" / "data" / "model-1.json"
PLACEMENTS = ((0, 0), (0, 1), (1, 1))
CALLS = 300


def walked(call: Callable[[], object]) -> tuple[int, int]:
    """Files of the package that a call visits, and returns of their functions."""
    files: set[str] = set()
    returns = 0

    def count(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal returns
        code = frame.f_code
        if event == "return" and code.co_filename.startswith(PACKAGE):
            files.add(code.co_filename)
            returns += not code.co_name.startswith("<")

    call()
    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len(files), returns


def microseconds(call: Callable[[], object]) -> float:
    """The median time of a call."""
    times = []
    for _ in range(CALLS):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return 1e6 * statistics.median(times)


def main() -> None:
    """Prints a line for each model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("model", nargs="?", default=str(EXAMPLE), help="a model file or a published machine")
    model = load_model(parser.parse_args().model)
    for name in model.document.names():
        calls = [
            lambda place=place, name=name: model.predict(4, *place, model=name)  # type: ignore[misc]
            for place in PLACEMENTS
            if max(place) < model.machine.nodes
        ]
        walks = [walked(call) for call in calls]
        files, returns = (max(numbers) for numbers in zip(*walks, strict=True))
        print(f"{name:10} {files:3} files {returns:4} returns {max(map(microseconds, calls)):9.0f} us")


if __name__ == "__main__":
    main()
