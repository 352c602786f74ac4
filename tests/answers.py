"""What a command answers with --json, for tests that have a fixture `run` (tests/e2e/conftest.py)."""

from __future__ import annotations

import json
from typing import Any


def told(run: Any, *words: str, code: int | None = None) -> dict[str, Any]:
    """The JSON of a command that ends with `code`; default: done, trusted or not."""
    found, out, err = run(*words, "--json")
    assert found in ((0, 3) if code is None else (code,)), err
    answer: dict[str, Any] = json.loads(out)
    return answer


def refused(run: Any, *words: str, code: int = 2) -> dict[str, Any]:
    """The error of a command that is refused."""
    error: dict[str, Any] = told(run, *words, code=code)["error"]
    return error
