"""Nodes as an axis of advice: a node of more of them computes less, and communicates a surface."""

from __future__ import annotations

from typing import Any

import pytest

from elbowroom.advise import job as jobs
from elbowroom.advise.advisor import advise
from elbowroom.errors import UsageError
from elbowroom.models.overlap.law import OverlappedStep
from elbowroom.models.published import of_published

HENRI = of_published("henri")


def job(exponent: float = 0.35, **may: Any) -> jobs.Job:
    return jobs.of_data(
        {
            "step": {"comp_bytes": 3e9, "comm_bytes": 1e8, "comm_exponent": exponent},
            "now": {"cores": 17, "comp_node": 0, "comm_node": 0, "nodes": 4},
            "may": {"nodes": [4, 8, 16, 32], **may},
        }
    )


def test_a_step_on_more_nodes_is_predicted_from_its_parts() -> None:
    found = advise(HENRI, job())
    assert found.advised.setup.nodes == 32
    now, then = found.now, found.advised
    assert then.t_comp == pytest.approx(now.t_comp / 8)
    assert then.t_comm == pytest.approx(now.t_comm / 8**0.35)
    step = OverlappedStep(t_comp=then.t_comp, t_comm=then.t_comm, l_comp=then.l_comp, l_comm=then.l_comm)
    assert then.total.value == pytest.approx(step.total, rel=1e-6)
    (choice,) = found.choices
    assert "of the ideal speedup" in choice.reason


def test_the_advice_says_from_how_many_nodes_on_communication_limits() -> None:
    found = advise(HENRI, job())
    then = found.advised
    at = 32 * (then.l_comp * then.t_comp / (then.l_comm * then.t_comm)) ** (1 / 0.65)
    (note,) = [note for note in found.notes if "T_M^C = T_N^C" in note]
    assert f"from {at:,.3g} nodes on" in note


def test_more_nodes_gain_little_once_slices_of_a_mesh_are_limited_by_communication() -> None:
    found = advise(HENRI, job(exponent=0.0, nodes=[4, 64, 1024, 4096]))
    assert found.advised.total.value >= found.now.t_comm


@pytest.mark.parametrize("nodes", [[0], [-1], "every", []])
def test_nodes_that_are_no_numbers_are_refused(nodes: object) -> None:
    with pytest.raises(UsageError) as caught:
        job(nodes=nodes)
    assert caught.value.field.startswith("may")


def test_nodes_that_may_change_must_be_known_now() -> None:
    data = {
        "step": {"comp_bytes": 3e9, "comm_bytes": 1e8},
        "now": {"cores": 17, "comp_node": 0, "comm_node": 0},
        "may": {"nodes": [4, 8]},
    }
    with pytest.raises(UsageError, match="although"):
        jobs.of_data(data)
