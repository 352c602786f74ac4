"""A job's collective from a run of `collectives`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from elbowroom import api
from elbowroom.errors import UsageError
from elbowroom.points.calls import OverlapPayload
from elbowroom.stats.overlap.measures import OverlapMeasures, measures
from elbowroom.verbs.run_folder import Run
from simulated_overlaps import Overlap, simulate

HIDES = measures(simulate(Overlap(comp=1.05e-3)))
HIDES_HALF = measures(simulate(Overlap(comp=1.05e-3, starting=0.5)))
WAITS = measures(simulate(Overlap(comp=1.05e-3, progresses=False)))
JOB: dict[str, Any] = {
    "step": {"comp_bytes": "3GB", "comm_bytes": 0},
    "collective": {"operation": "allreduce", "size": "1MiB"},
    "now": {"cores": 16, "comp_node": 0, "comm_node": 0, "form": "blocking", "progress": "none"},
    "may": {"form": "every", "progress": "every"},
}


def point(form: str, progress: str, found: OverlapMeasures | None, **values: Any) -> Any:
    call = {"operation": values.pop("operation", "allreduce"), "form": form, "progress": progress}
    usual = {"kernel": "triad", "n": 1, "size": 2**20}
    return SimpleNamespace(**usual | values, workload=call, payload=OverlapPayload(overlapped=found))


class Measured(Run):
    """A run with these points."""

    def __init__(self, *points: Any) -> None:
        self.found = list(points)

    def points(self) -> list[Any]:
        return self.found


POINTS = (
    point("blocking", "none", WAITS),
    point("nonblocking", "none", WAITS),
    point("nonblocking", "test", HIDES_HALF),
    point("nonblocking", "test", HIDES),
    point("nonblocking", "none", None),
    point("blocking", "none", WAITS, operation="bcast", size=4096),
)


def job(run: Run, **tables: dict[str, Any]) -> Any:
    return api.load_job(
        {**JOB, **{name: {**JOB.get(name, {}), **table} for name, table in tables.items()}}, collectives=run
    )


def test_every_form_and_policy_of_the_run_may_be_chosen() -> None:
    found = job(Measured(*POINTS)).collective.measured
    by_way = {one.way: one for one in found}
    assert set(by_way) == {("blocking", "none"), ("nonblocking", "test"), ("nonblocking", "none")}
    assert by_way["blocking", "none"].overlap is None
    assert by_way["blocking", "none"].seconds == WAITS.message


def test_of_several_periods_of_tests_the_one_that_hides_most_counts() -> None:
    found = job(Measured(*POINTS)).collective
    assert found.find(("nonblocking", "test")).overlap == HIDES.overlap


def test_points_with_the_cores_of_the_job_count() -> None:
    more = point("nonblocking", "test", WAITS, n=15)
    found = job(Measured(*POINTS, more)).collective
    assert found.find(("nonblocking", "test")).overlap == WAITS.overlap


def test_advice_comes_from_the_run() -> None:
    found = api.advise("henri", JOB, collectives=Measured(*POINTS))
    assert (found.advised.setup.form, found.advised.setup.progress) == ("nonblocking", "test")


@pytest.mark.parametrize(
    ("run", "tables", "field", "hint"),
    [
        (Measured(point("nonblocking", "none", None)), {}, "collectives", "run collectives"),
        (Measured(*POINTS), {"collective": {"operation": "gather"}}, "collective.operation", "allreduce"),
        (Measured(*POINTS), {"collective": {"size": "2MiB"}}, "collective.size", "1 MiB"),
        (
            Measured(*POINTS, point("blocking", "none", WAITS, kernel="prime")),
            {},
            "verify.kernel",
            "prime, triad",
        ),
        (Measured(*POINTS), {"verify": {"kernel": "prime"}}, "verify.kernel", "triad"),
    ],
)
def test_a_run_without_the_collective_is_refused(
    run: Run, tables: dict[str, Any], field: str, hint: str
) -> None:
    with pytest.raises(UsageError) as caught:
        job(run, **tables)
    assert caught.value.field == field
    assert hint in (caught.value.hint or "")


def test_a_run_for_a_job_without_collective_is_refused() -> None:
    without = {name: table for name, table in JOB.items() if name != "collective"}
    with pytest.raises(UsageError, match="the job has none"):
        api.load_job(without, collectives=Measured(*POINTS))
