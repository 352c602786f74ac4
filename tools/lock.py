"""Writes requirements.lock, the versions and hashes of all Python packages: `lock.py`, which needs `uv`.

One list for every platform and each Python from the oldest supported one on. It has no address of a registry:
`pip install --require-hashes -r requirements.lock` takes the packages from wherever pip is configured to.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"


def command(uv: str) -> list[str]:
    """The command that prints the list."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest = project["requires-python"].removeprefix(">= ")
    words = [uv, "pip", "compile", "pyproject.toml", "--all-extras", "--generate-hashes", "--universal"]
    return [
        *words,
        "--python-version",
        oldest,
        "--no-header",
        "--no-annotate",
        "--no-emit-index-url",
        "--quiet",
    ]


def main() -> int:
    """Writes the file; 1 where it cannot be made."""
    uv = shutil.which("uv")
    if uv is None:
        print("lock: uv is not installed; install it by its name with pip", file=sys.stderr)
        return 1
    done = subprocess.run(command(uv), cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        return 1
    LOCK.write_text(done.stdout, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
