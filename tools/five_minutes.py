"""Writes docs/guide/five-minutes.md: the steps of `elbowroom tour`, with what they print.

    python tools/five_minutes.py

Tests compare its words with the steps of the tour, and its output with what the commands print
(tools/quotes.py).
"""

from __future__ import annotations

import re
import tempfile
import textwrap
from collections.abc import Sequence
from pathlib import Path

from elbowroom.verbs.tour import INTRODUCTION, JOB, JOB_FILE, NEXT, STEPS, tour

PAGE = Path(__file__).resolve().parents[1] / "docs" / "guide" / "five-minutes.md"
WIDTH = 120

BEGINNING = f"""\
# Five minutes

{INTRODUCTION} `./elbowroom tour` runs them one after the other and prints this page.
All journeys: [README](../../README.md).

To type them yourself, put the checkout into the `PATH` and begin in an empty folder (`…`: output left out).

```console
$ export PATH="$PWD:$PATH"        # in the checkout
$ mkdir five-minutes && cd five-minutes
```
"""


def page(outputs: Sequence[str]) -> str:
    """The page, with these excerpts of what the steps print."""
    parts = [BEGINNING]
    for number, (step, output) in enumerate(zip(STEPS, outputs, strict=True), 1):
        parts.append(f"## {number}. {step.title}\n\n{step.text}\n")
        if step.needs_job and not STEPS[number - 2].needs_job:
            parts.append(f"Save this as `{JOB_FILE}`:\n\n<!-- file {JOB_FILE} -->\n```toml\n{JOB}```\n")
        shown = re.sub(r" +$", "", output, flags=re.MULTILINE)
        parts.append(f"<!-- fitted -->\n```console\n$ elbowroom {step.command}\n{shown}\n```\n")
    questions = "\n".join(f"- {purpose} `{command}`" for command, purpose in NEXT)
    parts.append(f"## What next?\n\n{questions}\n")
    return filled("\n".join(parts))


def filled(text: str) -> str:
    """The page with paragraphs as wide as those of other pages; blocks and lists stay as they are."""
    done: list[str] = []
    for number, part in enumerate(re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)):
        paragraphs = part.split("\n\n") if number % 2 == 0 else []
        kept = [one if re.match(r"\s*(-|#|<!--)", one) else fill(one) for one in paragraphs]
        done.append("\n\n".join(kept) if number % 2 == 0 else part)
    return "".join(done)


def fill(paragraph: str) -> str:
    """One paragraph, with the line breaks around it."""
    lines = textwrap.wrap(paragraph.strip(), WIDTH, break_long_words=False, break_on_hyphens=False)
    before, after = (re.search(pattern, paragraph) for pattern in (r"^\n*", r"\n*$"))
    assert before is not None
    assert after is not None
    return f"{before[0]}{chr(10).join(lines)}{after[0]}" if lines else paragraph


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        written = page([step.excerpt() for step in tour(out=Path(folder) / "tour").steps])
    PAGE.write_text(written, encoding="utf-8")
