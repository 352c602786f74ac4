"""Memory and last-level cache in forecasts: where demands come from, and which are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from elbowroom.advise.memory_use import parse_rate, parse_uses
from elbowroom.errors import UsageError
from elbowroom.profile.summary import MANIFEST, MANIFEST_FILE, MEMORY, MemoryTraffic, ProfileManifest
from elbowroom.verbs.colocate_predict import ForecastDocument, forecast_colocation
from elbowroom.verbs.model_file import Model
from made_node_model import node_model
from made_profiles import MS, START_NS, MadeJob

HOST = {"cpu": "made", "cores": 4, "sockets": 1, "cache": 32 << 20, "ways": 16, "caches": 1}
GIGA = 1e9


def computing(folder: Path, *, ranks: int = 2, nodes: int = 2, **manifest: Any) -> Path:
    """Like EP: it computes for 0.6 s."""
    job = MadeJob(ranks, nodes=nodes)
    for _ in range(60):
        job.compute(10 * MS)
        job.allreduce()
    job.write(folder)
    MANIFEST.write(folder / MANIFEST_FILE, ProfileManifest(**({"machine": HOST} | manifest)), own=True)
    return folder


def counted(folder: Path, gigabytes: float, host: str = "node0", **options: Any) -> Path:
    """With counters of a host that moved so many GB."""
    computing(folder, memory_bytes=gigabytes * GIGA, **options)
    traffic = MemoryTraffic(
        host=host,
        source="resctrl",
        scope="host",
        times_ns=(START_NS, START_NS + 600 * MS),
        bytes=(0.0, gigabytes * GIGA),
    )
    MEMORY.write(folder / "memory.json", traffic, own=True)
    return folder


def forecast(*profiles: Path, model: Model | None = None, **options: Any) -> ForecastDocument:
    used = Model(node_model()) if model is None else model
    return forecast_colocation(profiles, model=used, offsets=4, **options)


def of_pair(document: ForecastDocument) -> tuple[float, float]:
    pair = next(one for one in document.pairs if one.a != one.b)
    return pair.slowdown_a.value, pair.slowdown_b.value


def test_stated_traffic_slows_both_jobs_down(tmp_path: Path) -> None:
    jobs = computing(tmp_path / "a"), computing(tmp_path / "b")
    found = forecast(*jobs, memory=("a=10GB/s", "b=10GB/s"))
    assert of_pair(found) == (pytest.approx(20 / 15, abs=0.01), pytest.approx(20 / 15, abs=0.01))
    assert any(note.startswith("a: 10 GB/s") and "(stated)" in note for note in found.notes)


def test_counters_say_the_traffic_while_computing(tmp_path: Path) -> None:
    # 6 GB in 0.6 s of computation.
    jobs = counted(tmp_path / "a", 6.0), counted(tmp_path / "b", 6.0)
    found = forecast(*jobs)
    assert of_pair(found)[0] == pytest.approx(20 / 15, abs=0.01)
    assert any("counters: resctrl, everything on node0" in note for note in found.notes)


def test_stated_traffic_stands_in_place_of_counters(tmp_path: Path) -> None:
    jobs = counted(tmp_path / "a", 6.0), counted(tmp_path / "b", 6.0)
    found = forecast(*jobs, memory=("a=0", "b=0"))
    assert of_pair(found) == (pytest.approx(1, abs=0.001), pytest.approx(1, abs=0.001))


def test_a_job_of_unknown_traffic_is_left_out_and_named(tmp_path: Path) -> None:
    found = forecast(computing(tmp_path / "a"), computing(tmp_path / "b"), memory=("a=10GB/s",))
    assert of_pair(found) == (pytest.approx(1, abs=0.001), pytest.approx(1, abs=0.001))
    assert any("left out for b and beside it" in note for note in found.notes)
    assert not any("left out for a and beside" in note for note in found.notes)


def test_working_sets_that_do_not_fit_together_cost_time(tmp_path: Path) -> None:
    jobs = computing(tmp_path / "a"), computing(tmp_path / "b")
    stated: dict[str, Any] = {"memory": ("a=0", "b=0"), "cache": ("a=24MiB@20GB/s", "b=24MiB@20GB/s")}
    small = forecast(*jobs, **stated, llc="256MiB")
    large = forecast(*jobs, **stated)
    assert of_pair(small)[0] == pytest.approx(1, abs=0.01)
    assert of_pair(large)[0] > 1.3
    assert any("(32 MiB) serves" in note and "of what a reuses" in note for note in large.notes)


def test_without_a_working_set_the_cache_is_left_out_and_named(tmp_path: Path) -> None:
    found = forecast(computing(tmp_path / "a"), memory=("a=1GB/s",))
    assert any("last-level cache is left out for a and a: what a reuses" in note for note in found.notes)


def test_half_of_the_ranks_have_half_of_the_traffic(tmp_path: Path) -> None:
    jobs = computing(tmp_path / "a", ranks=8), computing(tmp_path / "b", ranks=8)
    with pytest.raises(UsageError, match="8 ranks on a node together") as error:
        forecast(*jobs, memory=("a=14GB/s", "b=14GB/s"))
    assert "--half" in error.value.hint
    found = forecast(*jobs, memory=("a=14GB/s", "b=14GB/s"), half=True)
    # Two ranks of each job ask for 7 GB/s: memory has room for both.
    assert of_pair(found)[0] == pytest.approx(1, abs=0.02)


def test_a_model_of_another_machine_is_refused(tmp_path: Path) -> None:
    job = computing(tmp_path / "a")
    with pytest.raises(UsageError, match="cores is 8 there and 4 in the profile of a"):
        forecast(job, model=Model(node_model(cores=8)))
    with pytest.raises(UsageError, match="sockets is 2 there and 1"):
        forecast(job, model=Model(node_model(cores=2, sockets=2)))


def test_an_older_profile_does_not_know_its_machine(tmp_path: Path) -> None:
    found = forecast(computing(tmp_path / "a", machine={}), memory=("a=1GB/s",))
    assert any("its size is not known (--llc SIZE)" in note for note in found.notes)


def test_more_ranks_than_cores_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="5 ranks on a node, and made has 4 cores"):
        forecast(computing(tmp_path / "a", ranks=5, nodes=1), memory=("a=1GB/s",))


def test_more_traffic_than_the_cores_reach_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="more than 1 core of made reach") as error:
        forecast(computing(tmp_path / "a"), memory=("a=100GB/s",))
    assert (error.value.field, error.value.value) == ("memory", "a=100GB/s")


@pytest.mark.parametrize("option", ["memory", "cache", "llc"])
def test_demands_without_a_model_are_refused(tmp_path: Path, option: str) -> None:
    value: Any = "32MiB" if option == "llc" else ("a=1GB/s",)
    with pytest.raises(UsageError, match="only used with a model") as error:
        forecast_colocation([computing(tmp_path / "a")], **{option: value})
    assert error.value.field == option


def test_a_model_without_flow_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no FLOW part") as error:
        forecast_colocation([computing(tmp_path / "a")], model="henri")
    assert "colocate fit" in error.value.hint


@pytest.mark.parametrize(
    ("text", "rate"), [("6.2GB/s", 6.2e9), ("1MiB/s", 2**20), ("0", 0.0), ("0GB/s", 0.0)]
)
def test_rates_are_sizes_per_second(text: str, rate: float) -> None:
    assert parse_rate(text, "memory", "") == rate


@pytest.mark.parametrize("text", ["6.2GB", "-1GB/s", "fast", "/s", "nan/s", "1GB/h"])
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a bandwidth"):
        parse_rate(text, "memory", "write it")


def test_a_job_is_stated_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="names the same job twice"):
        parse_uses(("a=1GB/s", "a=2GB/s"), (), ("a",))
    with pytest.raises(UsageError, match="is none of the jobs"):
        parse_uses((), ("b=1MiB@0",), ("a",))


def test_both_options_describe_one_job() -> None:
    use = parse_uses(("a=1GB/s",), ("a=20MiB@30GB/s",), ("a",))["a"]
    assert msgspec.structs.astuple(use) == (1e9, 20 * 2**20, 30e9)
