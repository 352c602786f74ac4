"""Ranks of tests that wait let others run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from traced import PATIENT

POLLING = ("test_guard_progress",)
"""Files whose tests look at what a library does when nobody asks."""


@pytest.fixture(scope="module", autouse=True)
def _patient_ranks(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in PATIENT.items() if request.path.stem not in POLLING else ():
            patch.setenv(name, value)
        yield
