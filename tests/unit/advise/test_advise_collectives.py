"""Collectives in advice: form and progress policy from what was measured of them."""

from __future__ import annotations

from typing import Any

import pytest

from elbowroom.advise import job as jobs
from elbowroom.advise.advice import Advice
from elbowroom.advise.advisor import advise
from elbowroom.advise.setups import setups
from elbowroom.errors import UsageError
from elbowroom.measure.source import Where, choose
from elbowroom.measure.verify import placed
from elbowroom.models.curves import Shape
from elbowroom.models.published import of_published

HENRI = of_published("henri")
SMALL = Shape(name="small", cores_first_socket=2, numa_per_socket=1, sockets=1)


def way(form: str, progress: str, overlap: float | None, seconds: float = 0.01) -> dict[str, Any]:
    measured: dict[str, Any] = {"form": form, "progress": progress, "seconds": around(seconds, 0.02)}
    return measured if overlap is None else {**measured, "overlap": around(overlap, 0.02)}


def around(value: float, share: float) -> dict[str, float]:
    return {"value": value, "low": value - share * abs(value), "high": value + share * abs(value)}


MEASURED = [
    way("blocking", "none", None),
    way("nonblocking", "none", 0.03),
    way("nonblocking", "thread", 0.91),
]


def job(measured: list[dict[str, Any]] | None = None, **tables: dict[str, Any]) -> jobs.Job:
    data: dict[str, Any] = {
        "step": {"comp_bytes": "3GB", "comm_bytes": 0},
        "collective": {"operation": "allreduce", "size": "1MiB", "measured": measured or MEASURED},
        "now": {"cores": 16, "comp_node": 0, "comm_node": 0, "form": "blocking", "progress": "none"},
        "may": {"form": "every", "progress": "every"},
    }
    return jobs.of_data({**data, **{name: {**data[name], **table} for name, table in tables.items()}})


def advised(found: Advice) -> tuple[str, str]:
    return found.advised.setup.form, found.advised.setup.progress


def test_the_policy_that_hides_the_collective_is_advised() -> None:
    found = advise(HENRI, job())
    assert advised(found) == ("nonblocking", "thread")
    assert found.now.collective == pytest.approx(0.01)
    assert found.advised.collective == pytest.approx(0.01 * (1 - 0.91))
    assert found.significant
    saved = found.now.total.value - found.advised.total.value
    assert saved == pytest.approx(0.01 * 0.91, rel=1e-6)
    assert any("10 ms" in choice.reason for choice in found.changes)


def test_a_policy_without_a_significant_gain_is_not_advised() -> None:
    uncertain = way("nonblocking", "thread", 0.2)
    uncertain["overlap"] = {"value": 0.2, "low": -0.3, "high": 0.7}
    assert advised(advise(HENRI, job([MEASURED[0], uncertain]))) == ("blocking", "none")


def test_no_more_is_hidden_than_a_step_computes() -> None:
    found = advise(HENRI, job(step={"comp_bytes": "30MB"}))
    t_comp = found.advised.t_comp
    assert t_comp < 0.01
    assert found.advised.collective == pytest.approx(0.01 - 0.91 * t_comp)


def test_a_collective_that_occurs_often_has_less_computation_each() -> None:
    found = advise(HENRI, job(collective={"count": 20}))
    hidden = 0.91 * min(0.01, found.advised.t_comp / 20)
    assert found.advised.collective == pytest.approx(20 * (0.01 - hidden))


def test_a_progress_thread_takes_a_core() -> None:
    every = job(now={"cores": 2, "overlap": False}, may={"cores": [1, 2], "overlap": False})
    found = {(setup.cores, setup.progress) for setup in setups(every, SMALL)}
    assert found == {(1, "none"), (2, "none"), (1, "thread")}


def test_a_form_is_not_combined_with_a_policy_that_was_not_measured() -> None:
    ways = {(setup.form, setup.progress) for setup in setups(job(), HENRI.machine)}
    assert ways == {("blocking", "none"), ("nonblocking", "none"), ("nonblocking", "thread")}


def test_a_collective_beside_messages_adds_to_the_step() -> None:
    with_messages = job(step={"comm_bytes": "100MB"}, now={"form": "nonblocking"})
    without = jobs.of_data(
        {
            "step": {"comp_bytes": "3GB", "comm_bytes": "100MB"},
            "now": {"cores": 16, "comp_node": 0, "comm_node": 0},
            "may": {"cores": [15, 16]},
        }
    )
    more = advise(HENRI, with_messages).now.total.value - advise(HENRI, without).now.total.value
    assert more == pytest.approx(0.01 * (1 - 0.03))


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "a form that was not measured": ({"now": {"form": "persistent"}}, "now.form", "measured: blocking/none"),
    "a policy that was not measured": ({"may": {"progress": ["test"]}}, "may.progress", "measured:"),
    "an unknown form": ({"now": {"form": "lazy"}}, "now.form", "blocking or nonblocking"),
    "no measurements": ({"collective": {"measured": []}}, "collective", "run collectives"),
    "one twice": ({"collective": {"measured": [MEASURED[0]] * 2}}, "collective.measured", "keep one"),
    "no time": (
        {"collective": {"measured": [way("blocking", "none", None, 0.0)]}},
        "collective.measured",
        "alone, in s",
    ),
    "a key of something else": ({"collective": {"form": "blocking"}}, "collective.form", ""),
    "count 0": ({"collective": {"count": 0}}, "collective.count", ""),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_with_a_collective_is_said(name: str) -> None:
    tables, field, hint = REFUSED[name]
    with pytest.raises(UsageError) as caught:
        job(**tables)
    assert caught.value.field == field
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(("table", "key"), [("now", "form"), ("now", "progress")])
def test_a_form_or_policy_without_a_collective_is_refused(table: str, key: str) -> None:
    data: dict[str, Any] = {
        "step": {"comp_bytes": "3GB", "comm_bytes": "1GB"},
        "now": {"cores": 16, "comp_node": 0, "comm_node": 0},
        "may": {"cores": "every"},
    }
    data[table][key] = {"form": "nonblocking", "progress": "thread"}[key]
    with pytest.raises(UsageError, match="no collective") as caught:
        jobs.of_data(data)
    assert caught.value.field == f"{table}.{key}"


def test_bandwidths_do_not_verify_a_form_or_a_policy() -> None:
    with pytest.raises(UsageError, match="does not measure form and progress") as caught:
        placed(advise(HENRI, job(), model="henri"), HENRI, choose(Where(machine="henri")).machine())
    assert caught.value.hint is not None
    assert "verify.command" in caught.value.hint
