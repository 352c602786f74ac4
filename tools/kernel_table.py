"""Writes the table of kernels of a probe to src/elbowroom/plan/kernels.json: `kernel_table.py PROBE`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

TABLE = Path(__file__).parents[1] / "src" / "elbowroom" / "plan" / "kernels.json"


def text(probe: str) -> str:
    """The table that a probe prints, one kernel per line."""
    printed = subprocess.run([probe, "kernels"], capture_output=True, check=True).stdout
    lines = ",\n".join(json.dumps(kernel) for kernel in json.loads(printed))
    return f"[\n{lines}\n]\n"


if __name__ == "__main__":
    TABLE.write_text(text(sys.argv[1]), encoding="utf-8")
