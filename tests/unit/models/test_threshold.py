from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from elbowroom.errors import UsageError
from elbowroom.models import published
from elbowroom.models.curves import Shape, Situation
from elbowroom.models.threshold.law import Parameters, Threshold, bandwidths, curve, predict, repaired, total

VECTORS = json.loads((Path(__file__).parents[2] / "data" / "threshold_vectors.json").read_text())["machines"]
AGREES = 0.1  # MB/s


def all_counts(model: Threshold) -> range:
    return range(1, model.shape.cores_first_socket + 1)


@pytest.mark.parametrize("name", VECTORS)
def test_the_published_machines_carry_the_parameters_of_the_vectors(name: str) -> None:
    model = published.load(name).model
    expected: dict[str, Any] = VECTORS[name]["parameters"]
    assert msgspec.to_builtins(model.local) == expected["local"]
    assert msgspec.to_builtins(model.remote) == expected["remote"]


@pytest.mark.parametrize("name", VECTORS)
def test_faithful_is_the_thesis_at_every_count_and_placement(name: str) -> None:
    model = published.load(name).model
    placements = VECTORS[name]["placements"]
    assert len(placements) == model.shape.nodes**2
    for places, expected in placements.items():
        comp_node, comm_node = (int(node) for node in places.split(","))
        found = curve(model, comp_node, comm_node, all_counts(model), faithful=True)
        assert np.abs(found[:, 2] - expected["comp"]).max() < AGREES
        assert np.abs(found[:, 3] - expected["comm"]).max() < AGREES


@pytest.mark.parametrize("name", VECTORS)
def test_faithful_is_the_thesis_in_total_and_alone(name: str) -> None:
    model = published.load(name).model
    cores = model.shape.cores_first_socket
    for word, side in (("local", model.local), ("remote", model.remote)):
        assert side is not None
        expected = VECTORS[name]["predicted"][word]
        ns = np.arange(1, cores + 1)
        assert np.abs(total(side, ns, cores, faithful=True) - expected["total"]).max() < AGREES
        found = bandwidths(side, cores, faithful=True)
        for stream in ("comp_alone", "comp_together", "comm_together"):
            assert np.abs(getattr(found, stream)[1:] - expected[stream]).max() < AGREES


def test_pyxis_reaches_62_5_gb_s_at_20_cores_not_at_19() -> None:
    found = curve(published.load("pyxis").model, 0, 1, (19, 20), faithful=True)[:, 2]
    assert found == pytest.approx([61018.5, 62462.7], abs=AGREES)


def test_on_henri_local_communications_lose_from_14_cores() -> None:
    found = curve(published.load("henri").model, 0, 0, range(1, 19), faithful=True)
    lost = found[:, 3] < found[:, 1]
    assert list(lost).index(True) + 1 == 14


def test_on_billy_the_equations_give_computations_more_together_than_alone_with_31_cores() -> None:
    model = published.load("billy").model
    found = curve(model, 0, 0, (30, 31, 32), faithful=True)
    assert list(found[:, 2] > found[:, 0]) == [False, True, True]
    assert list(repaired(model, 0, 0, (29, 31, 32))) == [False, True, True]
    corrected = curve(model, 0, 0, (31, 32))
    assert (corrected[:, 2] <= corrected[:, 0]).all()


def test_the_threshold_of_both_together_does_not_bound_computations_alone() -> None:
    model = published.load("henrisubnuma").model
    published_there = curve(model, 0, 0, (11,), faithful=True)[0, 0]
    repaired = curve(model, 0, 0, (11,))[0, 0]
    assert published_there == pytest.approx(39718.9, abs=AGREES)
    assert repaired == pytest.approx(43655.6, abs=AGREES)
    assert 1 - published_there / repaired == pytest.approx(0.09, abs=0.001)


def test_off_the_diagonal_who_loses_nothing_takes_nothing() -> None:
    model = published.load("bora").model
    streams, flags = predict(model, Situation(comp_node=0, comm_node=1, n=18), faithful=True)
    assert streams[2] == streams[0]
    assert streams[3] < streams[1]
    assert flags == ()
    streams, flags = predict(model, Situation(comp_node=0, comm_node=1, n=18))
    assert streams[2:] == streams[:2]
    assert flags == ("repaired",)


def test_where_nothing_is_repaired_nothing_is_flagged() -> None:
    model = published.load("henri").model
    for n in range(1, 13):
        situation = Situation(comp_node=0, comm_node=0, n=n)
        assert predict(model, situation) == predict(model, situation, faithful=True)


def test_no_computing_core_takes_nothing() -> None:
    streams, _ = predict(published.load("henri").model, Situation(comp_node=1, comm_node=0, n=0))
    assert streams == (0.0, 11481.1, 0.0, 11481.1)


STEEP = Parameters(
    n_par_max=6,
    t_par_max=40000.0,
    n_seq_max=4,
    t_seq_max=30000.0,
    t_par_max2=39000.0,
    alpha=0.5,
    delta_l=0.0,
    delta_r=500.0,
    b_comp_seq=10000.0,
    b_comm_seq=10000.0,
)


def test_the_threshold_has_no_jump_when_the_peak_together_comes_later() -> None:
    ns = np.arange(1, 9)
    jumps = total(STEEP, ns, 8, faithful=True)
    falls = total(STEEP, ns, 8)
    assert jumps[6] - jumps[5] == -2500.0
    assert falls[7] == jumps[7] == 37000.0
    assert np.diff(falls)[5:] == pytest.approx([-1500.0, -1500.0])


def shape(**changes: Any) -> Shape:
    return Shape(name="toy", cores_first_socket=8, numa_per_socket=1, **changes)


def test_a_side_that_was_not_calibrated_is_not_predicted() -> None:
    model = Threshold(shape=shape(), local=STEEP, remote=None)
    assert curve(model, 0, 0, (1, 8)).shape == (2, 4)
    with pytest.raises(UsageError, match=r"comm_node 1: the model of toy was calibrated without remote data"):
        predict(model, Situation(comp_node=0, comm_node=1, n=1))
    only_remote = Threshold(shape=shape(), local=None, remote=STEEP)
    with pytest.raises(UsageError, match="without local data; measure with data of both on node 0"):
        predict(only_remote, Situation(comp_node=0, comm_node=0, n=1))


@pytest.mark.parametrize(
    ("situation", "sentence"),
    [
        (Situation(comp_node=0, comm_node=0, n=9), "n 9: is outside the model: toy has 8 cores"),
        (Situation(comp_node=0, comm_node=0, n=-1), "n -1: is outside the model"),
        (Situation(comp_node=2, comm_node=0, n=1), "comp_node 2: is outside the machine: toy has 2 NUMA"),
        (Situation(comp_node=0, comm_node=-1, n=1), "comm_node -1: is outside the machine"),
        (Situation(comp_node=0, comm_node=0, n=1, n_other=3), "n_other 3: .*one socket.*--model-kind flow"),
    ],
)
def test_what_is_outside_the_model_is_refused(situation: Situation, sentence: str) -> None:
    model = Threshold(shape=shape(), local=STEEP, remote=STEEP)
    with pytest.raises(UsageError, match=sentence):
        predict(model, situation)
