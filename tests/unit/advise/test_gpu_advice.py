"""Advice for steps of an accelerator."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from elbowroom.advise.gpu_advisor import HEADER, advise_gpu, nccl_tuner
from elbowroom.advise.gpu_job import GpuAdvice, GpuJob, GpuSetup, decode, overlapped
from elbowroom.errors import UsageError
from elbowroom.models.overlap.law import OverlappedStep
from elbowroom.models.published import of_published
from gpu_samples import document, published_part, two_node_part


def job(**changes: Any) -> GpuJob:
    plain: dict[str, Any] = {
        "victim": "gemm",
        "seconds": 0.01,
        "bytes": 2.5e8,
        "moves": "d2d",
        "pace_mb_s": 5e4,
    }
    return msgspec.convert(plain | changes, GpuJob)


def advice(**changes: Any) -> GpuAdvice:
    return advise_gpu(document(published_part()), job(**changes))


def answer(given: GpuAdvice, question: str) -> Any:
    return next(item for item in given.answers if item.question == question)


def test_a_copy_engine_is_advised_in_the_place_of_many_sms() -> None:
    given = advice(now={"way": "sm_copy", "sms": 20})
    assert given.advised.setup.way == "copy"
    assert given.gain is not None
    assert given.significant
    assert given.gain.low > 0.1


def test_a_setup_that_nothing_surely_beats_is_kept() -> None:
    given = advice(now={"way": "copy"})
    assert given.advised.setup == GpuSetup(way="copy")
    assert not given.significant
    assert "Keep the present setup" in given.sentence


def test_numbers_of_sms_that_were_measured_are_told_apart() -> None:
    few = answer(advice(ways=["sm_copy"], sms=[4, 20]), "sms")
    assert (few.advised, few.significant, few.alike) == (4, True, ())


def test_numbers_of_sms_that_the_model_cannot_tell_apart_make_no_difference() -> None:
    vague = answer(advice(ways=["sm_copy"], sms=[4, 12]), "sms")
    assert not vague.significant
    assert vague.alike == (12,)
    assert "no difference" in vague.reason


def test_stores_of_sms_to_the_host_lose_to_a_copy_engine() -> None:
    given = advice(moves="d2h", pace_mb_s=0, ways=["copy", "sm_copy"], sms=[4, 8])
    way = answer(given, "way")
    assert (way.advised, way.significant) == ("copy engine", True)
    assert way.gain.low > 0.2


def test_the_buffer_is_advised_where_copies_are_faster() -> None:
    given = advise_gpu(document(two_node_part()), job(moves="d2h", bytes=5e8, pace_mb_s=0, ways=["copy"]))
    node = answer(given, "node")
    assert (node.advised, node.significant) == (0, True)


@pytest.mark.parametrize(
    ("moves", "question"), [("d2d", "node"), ("d2h", "cores"), ("d2h", "node"), ("d2d", "cores")]
)
def test_what_the_model_cannot_tell_is_not_available_with_the_reason(moves: str, question: str) -> None:
    missing = answer(advice(moves=moves, pace_mb_s=0), question)
    assert missing.advised is None
    assert missing.reason.startswith("n/a: ")


def test_a_plan_with_copies_says_that_it_was_not_measured_as_a_whole() -> None:
    given = advice(ways=["planned"], sms=[8])
    assert any("measured apart" in flag for flag in given.advised.flags)


def test_steps_are_those_of_the_overlap_model() -> None:
    import numpy as np

    times = (0.9, 0.5, 1.4, 1.9)
    step = OverlappedStep(t_comp=0.9, t_comm=0.5, l_comp=1.4, l_comm=1.9)
    assert overlapped(*(np.array([value]) for value in times))[0] == pytest.approx(step.total)


def test_a_model_without_an_accelerator_is_refused() -> None:
    with pytest.raises(UsageError, match="has no accelerator"):
        advise_gpu(of_published("henri"), job())


def test_a_job_that_no_setup_answers_is_refused_with_the_reasons() -> None:
    with pytest.raises(UsageError, match="cannot answer any setup"):
        advise_gpu(document(published_part()), job(victim="chain"))


def test_sizes_of_a_job_may_have_units() -> None:
    text = '[gpu]\nvictim = "gemm"\nseconds = 1\nbytes = "1MiB"\nmoves = "d2h"\n'
    assert decode(text, "x").bytes == 1 << 20


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("seconds = 0", "gpu.seconds"),
        ('moves = "up"', "gpu.moves"),
        ("ways = []", "gpu.ways"),
        ("speed = 3", "gpu.speed"),
        ('now = {way = "copy", sm = 3}', "gpu.now"),
        ('nccl = {colltype = "scatter"}', "gpu.nccl.colltype"),
    ],
)
def test_a_wrong_job_names_its_key(line: str, field: str) -> None:
    keys = {"victim": '"gemm"', "seconds": "1", "bytes": "1", "moves": '"d2h"'}
    keys.pop(line.split(" ")[0], None)
    text = "\n".join(["[gpu]", *(f"{key} = {value}" for key, value in keys.items()), line])
    with pytest.raises(UsageError) as refused:
        decode(text, "x.toml")
    assert refused.value.field == field


NCCL = {"colltype": "allgather", "algorithm": "ring", "protocol": "simple", "maxbytes": 1 << 20}


def tuner_lines(**changes: Any) -> list[str]:
    given = advice(ways=["sm_copy"], sms=[4, 20], **changes)
    return nccl_tuner(given).splitlines()


def test_the_tuner_file_has_a_line_of_ten_fields_with_the_sms_as_channels() -> None:
    line = next(line for line in tuner_lines(nccl=NCCL) if not line.startswith("#"))
    assert line == "allgather,0,1048576,ring,simple,4,-1,-1,-1,-1"
    assert len(line.split(",")) == len(HEADER.split(","))


def test_the_tuner_file_says_what_is_not_available() -> None:
    without = [line for line in tuner_lines(nccl={"colltype": "reduce"}) if not line.startswith("#")]
    assert without == []
    assert any("n/a" in line for line in tuner_lines())


def test_lines_of_the_tuner_file_fit_the_buffer_of_the_plugin() -> None:
    given = advice(nccl=NCCL)
    assert max(len(line) for line in nccl_tuner(given).splitlines()) < 256


def test_a_copy_engine_leaves_the_channels_to_the_library() -> None:
    given = advice(ways=["copy"], nccl=NCCL)
    assert ",simple,-1," in nccl_tuner(given)
