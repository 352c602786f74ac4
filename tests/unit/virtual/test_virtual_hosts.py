"""What the processes of one host get in the network of credits: kernels, sizes, patterns, threads."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import pytest

from elbowroom.models.curves import Situation
from elbowroom.plan.kernels import KERNELS
from elbowroom.virtual.answers import VirtualMachine
from elbowroom.virtual.credits import Credits
from elbowroom.virtual.hosts import Process, answers
from elbowroom.virtual.laws import Exchange, ProcessRates, Work
from elbowroom.virtual.machines import of_name, truth_of

LARGE = 64_000_000
HENRI = msgspec.structs.replace(of_name("henri"), truth="credits")
TRUTH = truth_of(HENRI)
assert isinstance(TRUTH, Credits)
WORK = Work(kernel="memset_nt", cursor=1, cores=(17, 0), comp_node=0)
MESSAGES = Exchange(size=LARGE, comm_node=0, pattern="receive")


def process(**changes: Any) -> Process:
    of_work = {key: value for key, value in changes.items() if key in Work.__struct_fields__}
    of_messages = {key: value for key, value in changes.items() if key in Exchange.__struct_fields__}
    return msgspec.structs.replace(WORK, **of_work), msgspec.structs.replace(MESSAGES, **of_messages)


def of(**changes: Any) -> ProcessRates:
    return answers(TRUTH, HENRI, (process(**changes),))[0]


def test_memset_beside_large_receptions_is_the_truth_itself() -> None:
    found = of()
    said = found.comp_alone, found.comm_alone, found.comp_together, found.comm_together
    assert said == pytest.approx(TRUTH.streams(Situation(comp_node=0, comm_node=0, n=17)), rel=1e-3)


@pytest.mark.parametrize(
    "kernel", [name for name, facts in KERNELS.items() if not (facts.moves_memory or facts.pool)]
)
def test_a_kernel_without_memory_traffic_loses_nothing_and_takes_nothing(kernel: str) -> None:
    found = of(kernel=kernel)
    assert found.comp_together == found.comp_alone
    assert found.comm_together == found.comm_alone


def test_a_kernel_moves_its_bus_bytes_and_loses_what_its_flops_take() -> None:
    copy, memset = of(kernel="copy"), of()
    assert copy.comp_alone == pytest.approx(memset.comp_alone * 16 / 24, rel=1e-12)  # type: ignore[operator]
    triad = of(kernel="triad")
    ratio = triad.comp_alone / memset.comp_alone  # type: ignore[operator]
    assert 0.99 * 24 / 32 < ratio < 24 / 32


def test_more_repetitions_give_messages_back_what_they_lost() -> None:
    found = [of(kernel="triad_cursor", cursor=cursor) for cursor in (1, 16, 64, 256, 1024)]
    kept = [item.comm_together / item.comm_alone for item in found]
    assert all(more > less for less, more in pairwise(kept))
    peak = 17 * 24 * 2.3e3 * 4 / (2 * 1024)  # TRIAD counts 24 B and two flops an item and repetition
    assert found[-1].comp_alone == pytest.approx(peak, rel=0.02)


def test_a_ping_pong_receives_and_sends_in_turns() -> None:
    found = of(pattern="pingpong", comp_node=1, comm_node=1)
    receive = of(pattern="receive", comp_node=1, comm_node=1)
    ring = of(pattern="ring", comp_node=1, comm_node=1)
    assert receive.comm_together < found.comm_together < found.comm_alone
    assert receive.comp_together < found.comp_together  # type: ignore[operator]
    assert ring.comp_together < receive.comp_together  # type: ignore[operator]
    assert ring.comm_alone == pytest.approx(receive.comm_alone, rel=0.01)


def test_the_smallest_message_takes_the_latency_of_its_thread_and_longer_beside_computation() -> None:
    near, far = (of(size=4, pattern="pingpong", far=far) for far in (False, True))
    assert near.latency_alone == pytest.approx(HENRI.near_latency_us, rel=1e-3)
    assert far.latency_alone == pytest.approx(HENRI.far_latency_us, rel=1e-3)
    assert near.latency_together > 1.02 * near.latency_alone


def test_reception_keeps_two_messages_in_flight() -> None:
    one, two = (of(size=8192, pattern=pattern).comm_alone for pattern in ("pingpong", "receive"))
    assert 1.5 * one < two < 2 * one


def test_processes_of_a_host_share_its_nic_and_its_links() -> None:
    here = process(pattern="ring", share=0.5, n=17)
    there = process(pattern="ring", share=0.5, n=0, n_other=17, comp_node=1, comm_node=1)
    found = answers(TRUTH, HENRI, (here, there))
    whole = answers(TRUTH, HENRI, (process(pattern="ring", n=17),))[0]
    assert [item.comm_alone for item in found] == pytest.approx([whole.comm_alone / 2] * 2, rel=0.01)
    assert found[0].comp_together > whole.comp_together  # type: ignore[operator]
    crossed = answers(TRUTH, HENRI, (here, process(pattern="ring", share=0.5, n=0, n_other=17)))
    assert crossed[0].comp_together < found[0].comp_together  # type: ignore[operator]


def test_a_virtual_machine_of_credits_answers_by_its_network() -> None:
    machine = VirtualMachine(HENRI, noise=0)
    assert machine.exact(*process(size=4096, pattern="pingpong")) == of(size=4096, pattern="pingpong")
