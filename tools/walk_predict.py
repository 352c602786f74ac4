"""How far a prediction or a command walks: `python tools/walk_predict.py [M.json]`, or
`python tools/walk_predict.py --command run quick --machine henri --out NEW`.

Counts what the second call of `Model.predict` visits in the package, for one situation of each kind of
placement: files, and returns of functions (comprehensions and generators are not counted). Prints the most of
these, and the median time of that call, for each model of the document.

Of a command it prints the files whose functions it calls, in the order of the first call, each with the
number of its functions that are called from another file: so often a reader of the command comes there.
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
from elbowroom.cli import run
from elbowroom.models.registry import fitted_models

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


def entries(call: Callable[[], object]) -> dict[str, set[str]]:
    """By file of the package, in the order of the first call, the functions called from another file."""
    found: dict[str, set[str]] = {}

    def note(frame: FrameType, event: str, _argument: object) -> None:
        code, caller = frame.f_code, frame.f_back
        if event != "call" or not code.co_filename.startswith(PACKAGE) or code.co_name.startswith("<"):
            return
        while caller is not None and not caller.f_code.co_filename.startswith(PACKAGE):
            caller = caller.f_back
        if caller is not None and caller.f_code.co_filename != code.co_filename:
            name = str(Path(code.co_filename).relative_to(PACKAGE))
            found.setdefault(name, set()).add(code.co_qualname)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


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
    parser.add_argument("--command", nargs=argparse.REMAINDER, help="words of a command of elbowroom")
    options = parser.parse_args()
    if options.command:
        walk = entries(lambda: run(options.command))
        for name, functions in walk.items():
            print(f"{name:40} {len(functions):3}  {', '.join(sorted(functions)[:4])}")
        often = sum(len(functions) > 3 for functions in walk.values())
        print(f"{len(walk)} files, {often} of them more than 3 times")
        return
    model = load_model(options.model)
    for name in fitted_models(model.document):
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
