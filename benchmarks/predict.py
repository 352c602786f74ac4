"""How long the C library takes a call, a load and to load a model, in CPU time of its thread.

    python benchmarks/predict.py [--machines henri,diablo] [--json]

For each published machine two models: the thesis' parameters, and all models fitted to its curves with 3 %
noise, of which FLOW answers, with made-up parameters for loads (their values do not matter to time). A call
is to be at most 200 ns. Loads are those of lib/predict/benchmark.cpp, all draws included; - where the model
does not answer them.
"""

from __future__ import annotations

import json
import runpy
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from command import Command

from elbowroom import api
from elbowroom.models import published
from elbowroom.models.document import Document

TESTS = Path(__file__).parents[1] / "tests"
LIMIT_NS = 200.0
LOADS = ("one_group", "small_messages", "two_groups", "four_groups", "everything")


def measured(program: Path, file: Path) -> dict[str, Any]:
    """What lib/predict/benchmark.cpp prints."""
    done = subprocess.run([str(program), str(file)], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def with_loads(document: Document, made: dict[str, Any]) -> Document:
    """The document with parameters for loads, as many draws of them as it has of FLOW."""
    flow = document.models.flow
    assert flow is not None
    part = made["load_part"](np.random.default_rng(1), len(flow.draws))
    flow = msgspec.structs.replace(
        flow, load=msgspec.structs.replace(part, measured=made["QUESTIONS"], switches=(4096,))
    )
    return msgspec.structs.replace(document, models=msgspec.structs.replace(document.models, flow=flow))


def print_table(rows: list[dict[str, Any]]) -> None:
    print("machine       model      load (ms)  call (ns)  least  both sockets (ns)  least")
    for row in rows:
        print(
            f"{row['machine']:<13} {row['model']:<10} {row['load_ms']:>9.1f} {row['call_ns']:>10.1f} "
            f"{row['call_ns_least']:>6.1f} {row['both_sockets_call_ns']:>18.1f} "
            f"{row['both_sockets_call_ns_least']:>6.1f}"
        )
    print(f"\nloads (us)    {'model':<10}" + "".join(f"{name.replace('_', ' '):>16}" for name in LOADS))
    for row in rows:
        times = [row[f"{name}_us"] for name in LOADS]
        cells = "".join(f"{time:>16.1f}" if time >= 0 else f"{'-':>16}" for time in times)
        print(f"{row['machine']:<13} {row['model']:<10}" + cells)


def main() -> None:
    parser = Command(__doc__, smoke="--machines henri")
    parser.add_argument("--machines", default=",".join(published.names()))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    build = runpy.run_path(str(TESTS / "predict_library.py"))["built"]
    fitted = runpy.run_path(str(TESTS / "unit" / "lib" / "test_predict_library.py"))["fitted"]
    made = runpy.run_path(str(TESTS / "unit" / "lib" / "test_predict_library_loads.py"))
    program = build("predict_benchmark")
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "M.json"
        for name in options.machines.split(","):
            api.load_model(name).save(file)
            rows.append(measured(program, file))
            api.Model(with_loads(fitted(name), made)).save(file)
            rows.append(measured(program, file))
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    print_table(rows)
    worst = max(max(row["call_ns"], row["both_sockets_call_ns"]) for row in rows)
    kept = "yes" if worst <= LIMIT_NS else "NO"
    print(f"slowest median: {worst:.1f} ns a call (at most {LIMIT_NS:g}: {kept})")


if __name__ == "__main__":
    main()
