"""One node beside the baseline of its site."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from elbowroom.accept.acceptance import examine
from elbowroom.accept.document import AcceptanceDocument
from elbowroom.accept.journal import PARTS
from elbowroom.accept.one_node import ROUNDS, judge_node
from elbowroom.accept.virtual_site import VirtualSite
from elbowroom.errors import UsageError
from measured_nodes import USUAL


@pytest.fixture(scope="module")
def baseline() -> AcceptanceDocument:
    return examine(VirtualSite(64, seed=3), name="site")


def rows(seed: int = 1, **factors: float) -> list[list[float | None]]:
    random = np.random.default_rng(seed)
    return [
        [
            USUAL[name] * factors.get(name.replace("-", "_"), 1.0) * float(np.exp(random.normal(0.0, 0.005)))
            for name in PARTS["alone"]
        ]
        for _ in range(ROUNDS)
    ]


def test_a_node_without_a_memory_channel_is_a_suspect(baseline: AcceptanceDocument) -> None:
    document = judge_node("n7", rows(memory=0.75), baseline, "site.json")
    assert [(one.name, one.quantity, one.cause) for one in document.suspects] == [
        ("n7", "memory", "memory-channel")
    ]
    assert document.exit_code == 4
    assert document.suspects[0].loss == pytest.approx(0.25, abs=0.02)


def test_a_node_as_its_site_was_is_none(baseline: AcceptanceDocument) -> None:
    for seed in range(50):
        assert judge_node("n7", rows(seed), baseline, "site.json").exit_code == 0


def test_without_a_baseline_values_are_shown_and_nothing_is_judged() -> None:
    document = judge_node("n7", rows(memory=0.5), None, "")
    assert document.exit_code == 0
    assert "--baseline" in document.why
    assert {one.quantity for one in document.levels} == set(PARTS["alone"])


def test_a_baseline_of_another_site_is_refused(baseline: AcceptanceDocument) -> None:
    with pytest.raises(UsageError, match="is of another site: m1 is not among its nodes"):
        judge_node("m1", rows(), baseline, "site.json")


def test_a_baseline_without_values_of_nodes_alone_is_refused(baseline: AcceptanceDocument) -> None:
    pairs = tuple(one for one in baseline.levels if one.quantity == "bandwidth")
    with pytest.raises(UsageError, match="has no value of a node alone"):
        judge_node("n7", rows(), msgspec.structs.replace(baseline, levels=pairs), "site.json")


def test_what_could_not_be_measured_is_said(baseline: AcceptanceDocument) -> None:
    without = [[None, *row[1:]] for row in rows()]
    document = judge_node("n7", without, baseline, "site.json")
    assert document.notes == ("n/a: memory",)
    assert document.exit_code == 0


def test_a_node_whose_cores_other_programs_use_is_not_judged_and_not_drained(
    baseline: AcceptanceDocument,
) -> None:
    document = judge_node("n7", rows(memory=0.5, core=0.5, waiting=300.0), baseline, "site.json")
    assert (document.suspects, document.drain, document.exit_code) == ((), "", 3)
    assert document.verdict == "n7 cannot be judged: other programs use its cores."
