"""Whether two runs print the same."""

from __future__ import annotations

import pytest

from elbowroom.diagnose.program_output import differing_line, digest

UNCHANGED = [
    "rank 1 ready\nrank 0 ready\nsum 42\nvalue 1.25\ntime 2.0 s",
    "rank 0 ready\nrank 1 ready\nsum 42\nvalue 1.26\ntime 2.0 s",
]


@pytest.mark.parametrize(
    ("output", "same"),
    [
        ("rank 0 ready\nrank 1 ready\nsum 42\nvalue 1.31\ntime 1.0 s", True),
        ("rank 0 ready\nrank 1 ready\nsum 41\nvalue 1.31\ntime 1.0 s", False),
        ("rank 0 ready\nsum 42\nvalue 1.31\ntime 1.0 s", False),
        ("rank 0 ready\nrank 1 ready\nsum 42\nvalue 1.31\ntime 1.0 s\nwarning: no", False),
    ],
)
def test_lines_may_change_places_and_times_but_not_results(output: str, same: bool) -> None:
    why = differing_line(digest(output), [digest(one) for one in UNCHANGED])
    assert (why == "") is same
