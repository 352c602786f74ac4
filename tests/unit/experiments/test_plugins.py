"""Experiments and plans of installed packages: used where they can be, named in a sentence where not."""

from __future__ import annotations

import pytest

from elbowroom import experiments
from elbowroom.errors import UsageError
from elbowroom.experiments.plans import PLANS, Overrides, apply, load, names
from plugin_site import Install
from studies import SMALL

CODE = """
import msgspec
from elbowroom.experiments import get
from elbowroom.experiments.experiment import Experiment

class Keys(msgspec.Struct, frozen=True):
    depth: int = 1

sizes = get("sizes")
EXPERIMENT = Experiment(name="halo", question="Q?", expand=sizes.expand, findings=sizes.findings,
                        figures=sizes.figures, keys=Keys)
"""
PLAN = 'experiment = "halo"\nquestion = "Q?"\nsizes = [4, 64]\n\n[keys]\ndepth = 2\n'


FILES = {"__init__.py": CODE, "halo.toml": PLAN}
ENTRIES = {"experiments": {"halo": "plugin_one:EXPERIMENT"}, "plans": {"halo": "plugin_one"}}


def test_an_installed_package_adds_an_experiment_its_plan_and_its_keys(install_plugin: Install) -> None:
    install_plugin("plugin_one", FILES, ENTRIES)
    assert "halo" in experiments.names()
    assert "halo" in names()
    plan = load("halo")
    assert plan.keys.depth == 2
    assert apply(plan, Overrides(settings={"keys.depth": "3"})).keys.depth == 3
    assert {point.size for point in experiments.expand(plan, SMALL).points} >= {4, 64}
    assert (experiments.EXPERIMENTS.problems(), PLANS.problems()) == ((), ())


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [("keys.width", "3", "no such key of halo"), ("depth", "deep", "expected int, got str")],
)
def test_a_key_that_the_experiment_does_not_have_is_refused(
    install_plugin: Install, key: str, value: str, words: str
) -> None:
    install_plugin("plugin_one", FILES, ENTRIES)
    with pytest.raises(UsageError, match=words) as error:
        apply(load("halo"), Overrides(settings={key: value}))
    assert error.value.field == key


def test_a_key_of_every_plan_is_none_of_an_experiment(install_plugin: Install) -> None:
    install_plugin("plugin_one", {"__init__.py": CODE.replace("depth", "window")}, ENTRIES)
    assert "window is a key of every plan" in experiments.EXPERIMENTS.problems()[0]


def test_keys_of_an_experiment_without_any_are_refused() -> None:
    with pytest.raises(UsageError, match="has no keys of its own"):
        apply(load("cores"), Overrides(settings={"keys.depth": "3"}))


def test_what_is_no_experiment_is_named(install_plugin: Install) -> None:
    install_plugin("plugin_one", {"__init__.py": "EXPERIMENT = 1"}, ENTRIES)
    assert "is not of type Experiment with the name 'halo'" in experiments.EXPERIMENTS.problems()[0]
