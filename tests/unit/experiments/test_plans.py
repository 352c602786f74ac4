"""Plans are read from TOML, checked key by key, and changed by the command line."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from elbowroom.errors import UsageError
from elbowroom.experiments.plans import Overrides, apply, decode, load, names, plans
from elbowroom.experiments.ring import RingKeys


def raw(**more: object) -> dict[str, object]:
    return {"name": "mine", "experiment": "quick", **more}


def refused(**more: object) -> UsageError:
    with pytest.raises(UsageError) as error:
        decode(raw(**more))
    return error.value


def test_every_plan_of_the_issue_is_there_and_loads() -> None:
    wanted = {"quick", "cores", "placement", "sizes", "intensity", "frequency", "model", "ring"}
    assert wanted <= set(names())
    for name in names():
        assert load(name).name == name


def test_a_plan_is_read_from_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('experiment = "cores"\nsizes = ["64MiB", 4]\nkernels = "copy"\n')
    plan = load(path)
    assert (plan.name, plan.sizes, plan.kernels) == ("mine", (64 * 2**20, 4), ("copy",))


def test_an_unknown_plan_is_named_with_what_is_close() -> None:
    with pytest.raises(UsageError, match="did you mean 'quick'"):
        load("quik")


def test_a_missing_file_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        load(tmp_path / "absent.toml")


def test_a_file_that_is_no_toml_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    path.write_text("experiment = [")
    with pytest.raises(UsageError, match="not a TOML file"):
        load(path)


def test_an_unknown_key_is_named_with_what_is_close() -> None:
    error = refused(kernals=["triad"])
    assert (error.field, error.value) == ("kernals", ["triad"])
    assert "did you mean 'kernels'" in error.hint


def test_unknown_keys_inside_tables_are_refused_too() -> None:
    assert refused(steady={"widow": 3}).field == "steady.widow"
    assert refused(sweeps=[{"size": [4]}]).field == "sweeps.size"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("repetitions", "many"),
        ("repetitions", 0),
        ("window", -1.0),
        ("window", "long"),
        ("n", ["evry"]),
        ("n", [0]),
        ("comp_nodes", ["nearby"]),
        ("comp_nodes", [-1]),
        ("comm_cores", ["first"]),
        ("metric", "speed"),
        ("pattern", "alltoall"),
        ("sequence", ["Q"]),
        ("cursors", [0]),
        ("seed", -1),
        ("steady", 4),
        ("sweeps", [4]),
        ("sizes", ["0"]),
        ("sizes", ["big"]),
        ("sizes", []),
        ("kernels", ["traid"]),
        ("kernels", []),
        ("observe", ["weather"]),
        ("control", "yes"),
    ],
)
def test_a_wrong_value_names_its_field_and_a_mend(key: str, value: object) -> None:
    error = refused(**{key: value})
    assert error.field.split(".")[0] == key
    assert error.hint
    assert error.exit_code == 2


def test_a_plan_without_an_experiment_says_so() -> None:
    with pytest.raises(UsageError) as error:
        decode({"name": "mine"})
    assert error.value.field == "experiment"


def test_overrides_replace_axes_in_every_sweep() -> None:
    plan = apply(load("quick"), Overrides(kernels=("copy",), sizes=(4, 8), repeat=3))
    assert (plan.kernels, plan.sizes, plan.repetitions) == (("copy",), (4, 8), 3)
    assert all(sweep.kernels is None and sweep.sizes is None for sweep in plan.sweeps)


def test_no_override_changes_nothing() -> None:
    assert apply(load("sizes"), Overrides()) == load("sizes")


def test_overrides_place_cores_and_nodes() -> None:
    plan = apply(load("cores"), Overrides(comp_cores=(1, 2), comm_core=0, comp_node=1, comm_node=0))
    assert (plan.comp_cores, plan.comm_cores, plan.comp_nodes, plan.comm_nodes) == ((1, 2), (0,), (1,), (0,))


def test_settings_are_typed_by_the_plan() -> None:
    settings = {"window": "0.5", "n": "1,every", "control": "false", "steady.limit": "3", "comp_cores": "1-3"}
    plan = apply(load("cores"), Overrides(settings=settings))
    assert (plan.window, plan.n, plan.control, plan.steady.limit) == (0.5, (1, "every"), False, 3.0)
    assert plan.comp_cores == (1, 2, 3)


@pytest.mark.parametrize(
    ("key", "text"), [("windw", "1"), ("window", "long"), ("steady.cvo", "1"), ("n", "some")]
)
def test_a_wrong_setting_is_refused(key: str, text: str) -> None:
    with pytest.raises(UsageError):
        apply(load("cores"), Overrides(settings={key: text}))


def test_sizes_given_on_the_command_line_are_measured_alone() -> None:
    assert apply(load("sizes"), Overrides(sizes=(4096,))).around == 0


def test_keys_of_the_experiment_are_decoded_as_its_type() -> None:
    plan = decode(raw(experiment="ring", keys={"processes": "socket"}))
    assert plan.keys == RingKeys(processes=("socket",))


def test_a_key_of_the_experiment_outside_its_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('experiment = "ring"\nprocesses = "node"\n')
    with pytest.raises(UsageError, match=r"processes 'node': is a key of the experiment ring.*\[keys\]"):
        load(path)


def test_stored_keys_of_the_experiment_stand_beside_the_others() -> None:
    stored = load("ring").plain()
    assert (stored["processes"], "keys" in stored) == (("node", "socket"), False)


@pytest.mark.parametrize("name", names())
def test_a_stored_plan_is_read_back(name: str) -> None:
    assert decode(load(name).plain()) == msgspec.structs.replace(load(name), quick={})


def test_defaults_of_other_experiments_keys_are_left_out() -> None:
    stored = {
        "cells": 0,
        "who": ["sender", "receiver", "both", "bystanders"],
        "access_step": 400,
        "core_khz": [],
    }
    assert decode(raw(**stored)) == decode(raw())


@pytest.mark.parametrize(
    ("key", "owner"), [("cells", "diffusion"), ("core_khz", "frequency"), ("tasks", "kernels")]
)
def test_another_value_of_another_experiments_key_is_refused(key: str, owner: str) -> None:
    error = refused(**{key: 7})
    assert (error.field, error.hint) == (key, f"remove it, or: elbowroom run {owner}")
    assert f"is only valid for experiment {owner}, and this plan runs quick" in str(error)


def test_the_table_of_an_experiment_without_keys_is_refused() -> None:
    assert "quick has no keys of its own" in refused(keys={"access_step": 800}).hint


@pytest.mark.parametrize("key", ["who", "keys.who"])
def test_a_setting_changes_a_key_of_the_experiment(key: str) -> None:
    assert apply(load("ema"), Overrides(settings={key: "both,sender"})).keys.who == ("both", "sender")


def test_a_wrong_word_of_the_experiments_is_answered_with_the_right_ones() -> None:
    assert refused(experiment="ema", keys={"access": "touch"}).hint == "give one of: read, write"


@pytest.mark.parametrize("key", ["who", "access", "accesses", "data", "barrier"])
def test_an_axis_of_extraneous_accesses_needs_a_value(key: str) -> None:
    assert refused(experiment="ema", keys={key: []}).field == key


@pytest.mark.parametrize("name", [plan.name for plan in plans() if plan.quick])
def test_the_quick_form_of_a_plan_has_fewer_of_the_same_values(name: str) -> None:
    whole, quick = load(name), apply(load(name), Overrides(quick=True))
    changed = {
        key
        for key in msgspec.structs.asdict(quick.keys)
        if getattr(quick.keys, key) != getattr(whole.keys, key)
    }
    assert changed
    assert all(set(getattr(quick.keys, key)) < set(getattr(whole.keys, key)) for key in changed)


def test_what_is_set_wins_over_the_quick_form() -> None:
    assert apply(load("gpu"), Overrides(quick=True, settings={"window": "0.3"})).window == 0.3


def test_a_plan_without_a_quick_form_refuses_it_and_names_those_that_have_one() -> None:
    with pytest.raises(
        UsageError, match=r"quick: is not a form of the plan cores; plans with one: gpu, gpu-overlap"
    ):
        apply(load("cores"), Overrides(quick=True))
