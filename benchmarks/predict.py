"""How long the C library takes a call and to load a model, in CPU time of its thread.

    python benchmarks/predict.py [--machines henri,diablo] [--json]

For each published machine two models: the thesis' parameters, and all models fitted to its curves with 3 %
noise, of which FLOW answers. A call is to be at most 200 ns.
"""

from __future__ import annotations

import argparse
import json
import runpy
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from elbowroom import api
from elbowroom.model import published

TESTS = Path(__file__).parents[1] / "tests"
LIMIT_NS = 200.0


def measured(program: Path, file: Path) -> dict[str, Any]:
    """What lib/predict/benchmark.cpp prints."""
    done = subprocess.run([str(program), str(file)], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--machines", default=",".join(published.names()))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    build = runpy.run_path(str(TESTS / "predict_library.py"))["built"]
    fitted = runpy.run_path(str(TESTS / "unit" / "test_predict_library.py"))["fitted"]
    program = build("predict_benchmark")
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "M.json"
        for name in options.machines.split(","):
            api.load_model(name).save(file)
            rows.append(measured(program, file))
            api.Model(fitted(name)).save(file)
            rows.append(measured(program, file))
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    print("machine       model      load (ms)  call (ns)  least  both sockets (ns)  least")
    for row in rows:
        print(
            f"{row['machine']:<13} {row['model']:<10} {row['load_ms']:>9.1f} {row['call_ns']:>10.1f} "
            f"{row['call_ns_least']:>6.1f} {row['both_sockets_call_ns']:>18.1f} "
            f"{row['both_sockets_call_ns_least']:>6.1f}"
        )
    worst = max(max(row["call_ns"], row["both_sockets_call_ns"]) for row in rows)
    kept = "yes" if worst <= LIMIT_NS else "NO"
    print(f"slowest median: {worst:.1f} ns a call (at most {LIMIT_NS:g}: {kept})")


if __name__ == "__main__":
    main()
