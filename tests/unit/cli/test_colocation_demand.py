"""`colocate predict` with the demand of each job, and what `diagnose` says of a demand."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from elbowroom import cli
from elbowroom.measure.demand import ProgramRun, measure_demand
from elbowroom.models.demand import (
    DEMAND,
    FILE,
    Axis,
    Demand,
    LoadBesideLoad,
    LoadFacts,
    LoadLevel,
    demand_of_profile,
)
from elbowroom.verbs.colocate_demand import demand_sentence
from made_profiles import MS, MadeJob

FULL = 10e9


class Bench:
    """A program that takes 1 + 0.5 x share beside the load, and costs it half of what a full load does."""

    facts = LoadFacts(
        command=("./app",), ranks=2, host="h", cores=(0,), load_cores=(1,), cache=1 << 25, full_rate=FULL
    )

    def run(self, level: LoadLevel | None) -> ProgramRun:
        if level is None:
            return ProgramRun(1.0)
        return ProgramRun(1 + 0.5 * level.share, FULL / 1.4, FULL)

    def load_beside_load(self, axis: Axis, share: float) -> LoadBesideLoad:
        return LoadBesideLoad(axis=axis, share=share, rate=FULL / (1 + 0.8 * share), rate_alone=FULL)


def profiled(folder: Path, demand: Demand | None) -> Path:
    """A job of one node that only computes, with a demand."""
    job = MadeJob(2)
    for _ in range(20):
        job.compute(2 * MS)
    job.mark()
    job.write(folder)
    if demand is not None:
        DEMAND.write(folder / FILE, demand)
    return folder


def slowdown(capfd: pytest.CaptureFixture[str], *profiles: Path) -> tuple[float, str]:
    """Of the first job beside the second one, and the notes."""
    assert cli.run(["colocate", "predict", *map(str, profiles), "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    pair = next(one for one in document["pairs"] if (one["a"], one["b"]) == ("a", "b"))
    return pair["slowdown_a"]["value"], " ".join(document["notes"])


def test_a_job_loses_what_it_lost_beside_a_load_of_the_others_pressure(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    demand = measure_demand(Bench(), repetitions=2)
    value, notes = slowdown(capfd, profiled(tmp_path / "a", demand), profiled(tmp_path / "b", demand))
    assert value == pytest.approx(1.25, abs=0.01)
    assert "by its demand beside a known load" in notes


def test_without_the_demand_of_one_job_memory_is_left_out(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    demand = measure_demand(Bench(), repetitions=2)
    value, notes = slowdown(capfd, profiled(tmp_path / "a", demand), profiled(tmp_path / "b", None))
    assert value == pytest.approx(1.0, abs=0.01)
    assert "left out" in notes


def test_demands_of_different_cores_are_labelled(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    demand = measure_demand(Bench(), repetitions=2)
    other = msgspec.structs.replace(demand, load_cores=(2, 3))
    _, notes = slowdown(capfd, profiled(tmp_path / "a", demand), profiled(tmp_path / "b", other))
    assert "different hosts or cores" in notes


def test_a_demand_that_is_not_trusted_says_why(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    demand = measure_demand(Bench(), repetitions=2)
    doubtful = msgspec.structs.replace(demand, trusted=False, notes=("the machine was busy",))
    _, notes = slowdown(capfd, profiled(tmp_path / "a", doubtful), profiled(tmp_path / "b", demand))
    assert "the demand of a is not to be trusted: the machine was busy" in notes
    assert demand_sentence(doubtful) == "The demand is not known: the machine was busy."


def test_a_damaged_demand_names_its_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    a = profiled(tmp_path / "a", None)
    (a / FILE).write_text('{"schema": "elbowroom/demand", "version": 1')
    assert cli.run(["colocate", "predict", str(a), str(profiled(tmp_path / "b", None))]) == 2
    assert FILE in capfd.readouterr().err


def test_the_sentence_names_the_largest_loss_and_the_traffic() -> None:
    sentence = demand_sentence(measure_demand(Bench(), repetitions=2))
    assert "takes 50" in sentence
    assert "5 GB/s to and from memory" in sentence


def test_a_profile_without_the_file_has_no_demand(tmp_path: Path) -> None:
    assert demand_of_profile(tmp_path) is None
