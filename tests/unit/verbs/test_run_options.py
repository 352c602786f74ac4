"""What the options that change a plan become."""

from __future__ import annotations

import msgspec
import pytest

from elbowroom.errors import UsageError
from elbowroom.experiments.plans import Overrides
from elbowroom.verbs.predict import Predict
from elbowroom.verbs.run_options import PlanChanges


def test_core_and_node_0_are_values() -> None:
    overrides = PlanChanges(comm_core=0, comp_node=0, comm_node=0, budget=0.0).as_overrides()
    assert (overrides.comm_core, overrides.comp_node, overrides.comm_node, overrides.budget) == (0, 0, 0, 0.0)


def test_what_is_not_given_leaves_the_plan_alone() -> None:
    assert PlanChanges().as_overrides() == Overrides()
    base = Overrides(comm_core=3, kernels=("triad",))
    assert PlanChanges(overrides=base, comp_node=0).as_overrides() == msgspec.structs.replace(
        base, comp_node=0
    )


def test_node_0_is_refused_beside_cases_of_an_accelerator() -> None:
    request = Predict(source="gpu.json", comp_node=0)
    with pytest.raises(UsageError, match="comp_node"):
        request._check_alone({"source"})
