"""Settings to try next: each with the number of the trace that it follows from, or none."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from elbowroom import api
from elbowroom.trace.overlap.document import NextSetting, TraceOverlap
from made_overlap import Recipe, kineto, make

RING = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*)"


def analysed(folder: Path, *, grid: list[int] | None, sms: int | None, name: str = RING) -> TraceOverlap:
    document = json.loads(kineto(make(Recipe(seed=4, instances=400, slowdown=1.2))))
    for event in document["traceEvents"]:
        if str(event.get("name", "")).startswith("nccl") and event.get("cat") == "kernel":
            event["name"] = name
            event["args"].pop("grid", None)
            event["args"] |= {} if grid is None else {"grid": grid}
    document["deviceProperties"] = [{"id": 0} | ({} if sms is None else {"numSms": sms})]
    path = folder / "trace.json"
    path.write_text(json.dumps(document))
    return api.trace_overlap(path)


def named(found: TraceOverlap) -> dict[str, NextSetting]:
    return {one.name.split(",")[0]: one for one in found.settings}


def test_half_of_the_channels_is_the_next_value_to_try(tmp_path: Path) -> None:
    settings = named(analysed(tmp_path, grid=[24, 1, 1], sms=108))
    assert {name: one.value for name, one in settings.items()} == {
        "NCCL_MAX_CTAS": 12,
        "NCCL_CTA_POLICY": 1,
        "allreduce": 12,
        "num_sms": 84,
    }
    assert "24 channels" in settings["NCCL_MAX_CTAS"].why
    assert "24 of 108 SMs" in settings["num_sms"].why


def test_a_trace_without_grids_says_that_it_does_not_say(tmp_path: Path) -> None:
    settings = named(analysed(tmp_path, grid=None, sms=108))
    assert {one.value for one in settings.values()} == {None}
    assert "does not say" in settings["NCCL_MAX_CTAS"].why


def test_a_trace_without_sms_leaves_their_number_open(tmp_path: Path) -> None:
    setting = named(analysed(tmp_path, grid=[8, 1, 1], sms=None))["num_sms"]
    assert setting.value is None
    assert "does not say how many SMs" in setting.why


@pytest.mark.parametrize(
    ("name", "row"),
    [
        (RING, "allreduce,0,9223372036854775807,ring,ll,4,-1,-1,-1,-1"),
        (
            "ncclDevKernel_ReduceScatter_Sum_f32_TREE_LL128(x)",
            "reducescatter,0,9223372036854775807,tree,ll128,",
        ),
        ("ncclDevKernel_AllGather_NVLS_SIMPLE(x)", "allgather,0,9223372036854775807,nvls,simple,4,"),
        ("ncclDevKernel_Generic_4(x)", None),
        ("ncclDevKernel_SendRecv(x)", None),
    ],
)
def test_a_line_of_the_tuner_has_what_the_name_says(tmp_path: Path, name: str, row: str | None) -> None:
    found = analysed(tmp_path, grid=[8, 1, 1], sms=108, name=name)
    out = tmp_path / "tuner.conf"
    api.save(found, out)
    lines = [line for line in out.read_text().splitlines() if not line.startswith("#")]
    assert len(lines) == (row is not None)
    assert row is None or lines[0].startswith(row)


def test_a_shell_reads_the_environment(tmp_path: Path) -> None:
    out = tmp_path / "next.env"
    api.save(analysed(tmp_path, grid=[24, 1, 1], sms=108), out)
    command = f"set -a; . {out}; echo $NCCL_MAX_CTAS $NCCL_CTA_POLICY"
    done = subprocess.run(["sh", "-euc", command], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["12", "1"]
