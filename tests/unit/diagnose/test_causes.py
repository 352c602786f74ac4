"""Causes of made accounts: the planted one is first with its share; without a fault, none is named."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from elbowroom.diagnose.account import MessageCosts, SiteAccount
from elbowroom.diagnose.causes import (
    CAUSES,
    FAMILY_ERROR,
    LEAST,
    SHORTEST,
    SURE,
    Cause,
    StepEvidence,
    _sure,
    disturbance,
    find_causes,
    why_not_judged,
)
from elbowroom.diagnose.processors import crowd_of, others_cores
from elbowroom.machine.host_use import HostUse
from elbowroom.profile import rank_file as f
from elbowroom.profile.profile import Profile, SchedulerSamples, read_profile
from elbowroom.profile.rank_file import CpuLimits, ThreadPlace
from elbowroom.profile.summary import ProfileManifest
from elbowroom.stats.interval import Interval
from made_accounts import STEP_S, made_account
from made_profiles import MS, Row, write_profile

STEPS = 40


def thread(number: int, *, cores: int = 1, first: int = 0, cpu_s: float = 0.4, **more: Any) -> ThreadPlace:
    place = ThreadPlace(
        thread=number, cpus=cores, first=first, last=first + cores - 1, mask=first, cpu_ns=round(cpu_s * 1e9)
    )
    return msgspec.structs.replace(place, **more)


def profile_of(
    folder: Path,
    rows: list[list[Row]] | None = None,
    *,
    threads: list[tuple[ThreadPlace, ...]] | None = None,
    use: HostUse | None = None,
    command: tuple[str, ...] = (),
    **changes: Any,
) -> Profile:
    """A job on one node, by default of two ranks with a core each."""
    rows = rows or [[(MS, 2 * MS, 8, 1 - rank, "MPI_Sendrecv", f.SENDRECV, f.CALL)] for rank in (0, 1)]
    read = read_profile(write_profile(folder, rows, (0,) * len(rows), end=400 * MS, host=b"here"))
    places = threads or [(thread(100 + rank, first=rank),) for rank in range(len(rows))]
    ranks = tuple(
        msgspec.structs.replace(rank, threads=own, **changes)
        for rank, own in zip(read.ranks, places, strict=True)
    )
    manifest = ProfileManifest(command=command, use=use)
    return msgspec.structs.replace(read, ranks=ranks, manifest=manifest)


def causes(profile: Profile, **account: Any) -> tuple[Cause, ...]:
    return find_causes(StepEvidence(profile=profile, account=made_account(ranks=profile.size, **account)))


PLANTED = {
    "no-progress": {"no_progress": 0.2},
    "late-rank": {"late_ranks": 0.2},
    "memory-contention": {"contention": 0.2},
}


@pytest.mark.parametrize("cause", PLANTED)
def test_what_is_planted_is_first_with_its_share(tmp_path: Path, cause: str) -> None:
    first = causes(profile_of(tmp_path), shares={**PLANTED[cause], "transfer": 0.1})[0]
    assert first.cause == cause
    assert first.share == pytest.approx(0.2, abs=0.01)
    assert first.low <= 0.2 <= first.high


def test_the_largest_is_first_and_all_are_listed(tmp_path: Path) -> None:
    shares = {"no_progress": 0.1, "contention": 0.3, "late_ranks": 0.2}
    found = [cause.cause for cause in causes(profile_of(tmp_path), shares=shares)]
    assert found == ["memory-contention", "late-rank", "no-progress"]


@pytest.mark.parametrize(
    "shares",
    [
        {},
        {"transfer": 0.1, "library": 0.05},
        {"late_ranks": 0.7 * LEAST, "no_progress": 0.7 * LEAST, "contention": 0.7 * LEAST},
        {"scheduler": 0.1, "io": 0.1},
    ],
)
def test_where_nothing_has_a_share_the_computation_is_alone(tmp_path: Path, shares: dict[str, float]) -> None:
    (only,) = causes(profile_of(tmp_path), shares=shares)
    assert only.cause == "computation"


def test_threads_with_too_few_cores_share_them(tmp_path: Path) -> None:
    crowded = [(thread(100, cores=2),), (thread(101, cores=2),), (thread(102, cores=2),)]
    rows: list[list[Row]] = [[(MS, 2 * MS, 0, -3, "MPI_Barrier", f.BARRIER, f.CALL)]] * 3
    profile = profile_of(tmp_path, rows, threads=crowded)
    crowd = crowd_of(profile)
    assert crowd is not None
    assert (crowd.threads, crowd.cores, crowd.helpers) == (3, 2, ())
    first = causes(profile, shares={"scheduler": 0.3})[0]
    assert (first.cause, first.ranks) == ("shared-core", (0, 1, 2))
    assert first.share == pytest.approx(0.3, abs=0.01)


def test_ranks_that_wait_for_one_without_a_core_are_not_said_to_wait_for_a_late_one(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, threads=[(thread(100),), (thread(101),)])
    of_ranks = {("scheduler", 1): 0.4, ("late_ranks", 0): 0.4}
    found = causes(profile, of_ranks=of_ranks, uneven=0.0)
    assert [cause.cause for cause in found] == ["shared-core"]
    assert found[0].share == pytest.approx(0.4, abs=0.01)


def test_where_much_is_not_explained_the_answer_says_so_and_names_the_call(tmp_path: Path) -> None:
    site = SiteAccount(call="MPI_Win_lock", seconds={"not_explained": 0.3 * STEP_S}, calls=2.0)
    account = made_account(shares={"not_explained": 0.3}, sites=(site,))
    (only,) = find_causes(StepEvidence(profile=profile_of(tmp_path), account=account))
    assert only.cause == "computation"
    assert re.search(
        r"(29|30)(\.\d)? % of a step is not explained, most of it in MPI_Win_lock", only.sentence
    )


def test_a_program_that_ran_too_short_has_no_cause(tmp_path: Path) -> None:
    account = msgspec.structs.replace(made_account(shares={"late_ranks": 0.5}), step_s=SHORTEST / 41)
    evidence = StepEvidence(profile=profile_of(tmp_path), account=account)
    assert find_causes(evidence) == ()
    assert "too short" in why_not_judged(evidence)


def test_a_long_program_of_which_only_the_last_steps_are_kept_has_causes(tmp_path: Path) -> None:
    account = msgspec.structs.replace(made_account(shares={"late_ranks": 0.5}), step_s=SHORTEST / 41)
    profile = profile_of(tmp_path)
    lost = tuple(msgspec.structs.replace(rank, lost=10) for rank in profile.ranks)
    assert profile.duration / 1e9 >= SHORTEST
    found = find_causes(StepEvidence(profile=msgspec.structs.replace(profile, ranks=lost), account=account))
    assert found[0].cause == "late-rank"


def test_ranks_that_lack_a_core_in_turn_are_not_late_and_one_that_computes_longer_is(tmp_path: Path) -> None:
    shares = {"scheduler": 0.2, "late_ranks": 0.2}
    found = causes(profile_of(tmp_path), shares=shares, uneven=0.0)
    assert [cause.cause for cause in found] == ["computation"]
    longer = {("late_ranks", 0): 0.3, ("late_ranks", 1): 0.0}
    found = causes(profile_of(tmp_path), shares={"scheduler": 0.2}, of_ranks=longer)
    assert (found[0].cause, found[0].share) == ("late-rank", pytest.approx(0.15, abs=0.01))


def test_beside_waits_for_cores_a_late_rank_has_wider_bounds_and_a_small_one_is_not_named(
    tmp_path: Path,
) -> None:
    small = causes(profile_of(tmp_path), shares={"scheduler": 0.5, "late_ranks": 0.06})
    assert small == ()
    (large,) = causes(profile_of(tmp_path), shares={"scheduler": 0.5, "late_ranks": 0.2})
    assert large.cause == "late-rank"
    assert large.low == pytest.approx(0.15, abs=0.01)
    assert large.high == pytest.approx(0.25, abs=0.01)


def test_on_a_busy_machine_a_rank_that_computes_longer_is_late_by_its_cpu_time(tmp_path: Path) -> None:
    """Ranks compute 2 % and 8 % of a step, which other processes make ten times as long."""
    of_ranks = {
        ("scheduler", 0): 0.5,
        ("scheduler", 1): 0.52,
        ("late_ranks", 0): 0.48,
        ("late_ranks", 1): 0.4,
    }
    first, *others = causes(profile_of(tmp_path), of_ranks=of_ranks, uneven=0.0, noise=0.001)
    assert (first.cause, first.ranks, others) == ("late-rank", (1,), [])
    assert first.share == pytest.approx(0.03, abs=0.005)
    assert re.search(r"and (5\d|6\d)(\.\d)? % without other processes", first.sentence)


def test_where_other_processes_take_most_of_a_step_causes_are_not_ruled_out(tmp_path: Path) -> None:
    account = made_account(shares={"scheduler": 0.5, "late_ranks": 0.35}, uneven=0.0)
    evidence = StepEvidence(profile=profile_of(tmp_path), account=account)
    assert find_causes(evidence) == ()
    assert re.match(r"Cannot say: other processes take 8\d(\.\d)? % of a step", why_not_judged(evidence))


def test_all_tests_together_name_a_cause_that_is_not_there_in_one_of_twenty_programs() -> None:
    generator, programs, steps, spread = np.random.default_rng(3), 4000, 200, 0.02
    error = spread / np.sqrt(steps)
    named = 0
    for _ in range(programs):
        shares = SURE + error * generator.standard_normal(len(CAUSES))
        ends = [Interval(value=one, low=one - 1.645 * error, high=one + 1.645 * error) for one in shares]
        named += any(_sure(one) >= SURE for one in ends)
    assert 0.03 <= named / programs <= FAMILY_ERROR + 0.01


def test_a_control_group_may_give_fewer_cores_than_there_are(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, limits=CpuLimits(cpus=1.0, cpuset=""))
    assert causes(profile, shares={"scheduler": 0.3})[0].cause == "shared-core"


def test_a_thread_that_never_calls_mpi_polls_unless_openmp_is_set(tmp_path: Path) -> None:
    threads = [(thread(100 + rank, first=rank), thread(200 + rank, first=rank)) for rank in (0, 1)]
    polling = profile_of(tmp_path / "a", threads=threads)
    shares = {"scheduler": 0.4}
    first, *others = causes(polling, shares=shares)
    assert (first.cause, first.ranks) == ("polling-thread", (0, 1))
    assert "shared-core" not in {cause.cause for cause in others}
    openmp = profile_of(tmp_path / "b", threads=threads, use=HostUse(settings={"OMP_NUM_THREADS": "2"}))
    assert causes(openmp, shares=shares)[0].cause == "shared-core"


def test_other_processes_are_no_cause_and_are_said(tmp_path: Path) -> None:
    use = HostUse(wall_s=1.0, busy_s=2.8, own_s=0.8)
    profile = profile_of(tmp_path / "a", use=use)
    assert others_cores(profile) == pytest.approx(2.0)
    (only,) = causes(profile, shares={"scheduler": 0.3})
    assert only.cause == "computation"
    assert "Other processes took 2.0 cores" in disturbance(profile)
    # Of a program that is crowded too, the share is that of its own threads.
    crowded = profile_of(tmp_path / "b", threads=[(thread(100),), (thread(101),)], use=use)
    first = causes(crowded, shares={"scheduler": 0.3})[0]
    assert (first.cause, round(first.share, 2)) == ("shared-core", 0.1)


def test_one_late_rank_is_named_and_a_changing_one_is_not(tmp_path: Path) -> None:
    profile = profile_of(tmp_path)
    one = causes(profile, of_ranks={("late_ranks", 0): 0.4}, late={(0, 1): 0.004})[0]
    assert (one.cause, one.ranks) == ("late-rank", (1,))
    assert "rank 1" in one.sentence
    assert "rank 1 10 ms" in one.evidence
    several = causes(profile, shares={"late_ranks": 0.2}, late={(0, 1): 0.002, (1, 0): 0.002})[0]
    assert (several.cause, several.ranks) == ("late-rank", ())


def small_messages(count: int, size: int) -> list[list[Row]]:
    """`count` messages in each step of 10 ms."""
    return [
        [
            (begin, begin + 5000, size, 1 - rank, "MPI_Sendrecv", f.SENDRECV, f.CALL)
            for step in range(STEPS)
            for begin in range(10 * step * MS, 10 * step * MS + 10_000 * count, 10_000)
        ]
        for rank in (0, 1)
    ]


def test_many_small_messages_to_one_neighbour_are_a_fault_and_a_few_are_none(tmp_path: Path) -> None:
    shares = {"transfer": 0.2, "library": 0.1}
    many = causes(profile_of(tmp_path / "a", small_messages(100, 64)), shares=shares)[0]
    assert many.cause == "protocol"
    assert "100 messages of 64 B" in many.evidence
    assert many.share == pytest.approx(0.3 * 0.99, abs=0.02)
    few = causes(profile_of(tmp_path / "b", small_messages(4, 64)), shares=shares)[0]
    assert few.cause == "computation"
    large = causes(profile_of(tmp_path / "c", small_messages(100, 65536)), shares=shares)[0]
    assert large.cause == "computation"


def test_messages_above_the_eager_limit_wait_for_a_handshake(tmp_path: Path) -> None:
    shares = {"transfer": 0.3}
    words = ("mpirun", "--mca", "btl_vader_eager_limit", "8192", "./a")
    above = causes(profile_of(tmp_path / "a", small_messages(100, 9000), command=words), shares=shares)[0]
    assert above.cause == "protocol"
    assert "the limit is 8 KiB" in above.evidence
    below = causes(profile_of(tmp_path / "b", small_messages(100, 8000), command=words), shares=shares)[0]
    assert below.cause == "computation"
    whole = made_account(shares=shares)
    # Each message is a step of its own: as many of them in the same time.
    steps = msgspec.structs.replace(
        whole, step_s=STEP_S / 100, count=100 * whole.count, seconds=whole.seconds / 100
    )
    profile = profile_of(tmp_path / "c", small_messages(100, 9000), command=words)
    (first, *_) = find_causes(StepEvidence(profile=profile, account=steps))
    assert first.cause == "protocol"
    assert "in 10" in first.evidence


def messages(size: int, alone: float, count: int = 400) -> MessageCosts:
    """That rank 1 receives from rank 0."""
    begin = np.arange(count) * STEP_S / 10
    full = np.full(count, alone)
    return MessageCosts(
        rank=np.ones(count, dtype=np.int64), peer=np.zeros(count, dtype=np.int64),
        out=np.zeros(count, dtype=bool), bytes=np.full(count, size), posted=begin, ready=begin, begin=begin,
        end=begin + alone, alone=full, transfer=full,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("size", "alone", "said"),
    [
        (64, 60e-6, "Receives search"),
        (1_000_000, 4e-3, "Messages are slow"),
        (1_000_000, 4e-4, None),
        (64, 3e-6, None),
    ],
)
def test_messages_that_take_far_longer_than_a_copy_are_a_fault(
    tmp_path: Path, size: int, alone: float, said: str | None
) -> None:
    found = causes(profile_of(tmp_path), shares={"transfer": 0.3}, messages=messages(size, alone))
    if said is None:
        assert [cause.cause for cause in found] == ["computation"]
    else:
        assert (found[0].cause, found[0].share) == ("protocol", pytest.approx(0.25, abs=0.04))
        assert said in found[0].sentence


@pytest.mark.parametrize(
    ("small_s", "large_s", "scheduler", "cause"),
    [
        (15e-6, 1.2e-3, 0.0, "transport"),
        (2e-6, 4e-3, 0.0, "protocol"),
        (2e-6, 2e-4, 0.0, "computation"),
        (15e-6, 1.2e-3, 0.2, "computation"),
    ],
    ids=["both slow", "a datatype", "fast", "beside waits for cores"],
)
def test_messages_of_all_sizes_that_are_slow_have_a_slow_transport(
    tmp_path: Path, small_s: float, large_s: float, scheduler: float, cause: str
) -> None:
    small, large = messages(64, small_s), messages(1_000_000, large_s)
    both = MessageCosts(
        **{
            name: np.concatenate([getattr(small, name), getattr(large, name)])
            for name in small.__struct_fields__
        }
    )
    found = causes(profile_of(tmp_path), shares={"transfer": 0.3, "scheduler": scheduler}, messages=both)
    assert found[0].cause == cause
    if cause == "transport":
        assert "a small one takes 15" in found[0].evidence


def test_a_setting_that_takes_messages_over_tcp_is_named(tmp_path: Path) -> None:
    words = ("mpirun", "--mca", "btl", "tcp,self", "-n", "2", "./a")
    first = causes(profile_of(tmp_path, command=words), shares={"transfer": 0.3})[0]
    assert first.cause == "transport"
    assert "btl=tcp,self" in first.evidence


def test_siblings_of_one_core_are_a_placement_while_other_cores_are_free(tmp_path: Path) -> None:
    threads = [(thread(100 + rank, first=rank, cpu=rank),) for rank in (0, 1)]
    cores = HostUse(siblings=((0, 1), (2, 3)))
    first = causes(profile_of(tmp_path / "a", threads=threads, use=cores))[0]
    assert (first.cause, first.ranks) == ("placement", (0, 1))
    apart = HostUse(siblings=((0, 2), (1, 3)))
    assert causes(profile_of(tmp_path / "b", threads=threads, use=apart))[0].cause == "computation"


@pytest.mark.parametrize(("away", "cause"), [(10, "placement"), (0, "computation")])
def test_a_rank_that_changes_its_numa_node_is_a_placement(away: int, cause: str, tmp_path: Path) -> None:
    """Of 40 samples of rank 1, `away` are on the cores of node 0; it is on node 1 for the others."""
    time = np.arange(STEPS, dtype=np.int64) * MS
    samples = SchedulerSamples(
        rank=np.ones(STEPS, dtype=np.int64),
        thread=np.zeros(STEPS, dtype=np.int64),
        begin=time,
        end=time + MS,
        cpu_ns=np.full(STEPS, MS),
        waited_ns=np.zeros(STEPS, dtype=np.int64),
        cpu=np.where(np.arange(STEPS) < away, 0, 2),
    )
    profile = profile_of(tmp_path, use=HostUse(nodes=((0, 1), (2, 3))))
    first = causes(msgspec.structs.replace(profile, scheduled=samples))[0]
    assert first.cause == cause
    assert first.ranks == ((1,) if away else ())


@pytest.mark.parametrize("steps_per_row", [1, 3])
def test_steps_in_which_a_rank_is_moved_and_computes_longer_are_a_placement(
    steps_per_row: int, tmp_path: Path
) -> None:
    account = made_account(shares={"late_ranks": 0.0})
    seconds = account.seconds.copy()
    moved = np.arange(0, STEPS, 3)
    seconds[moved, 0, 0] += STEP_S
    count = STEPS * steps_per_row
    account = msgspec.structs.replace(account, seconds=seconds, count=count, steps_per_row=steps_per_row)
    # The last sample, with another move, is behind the last step.
    samples = SchedulerSamples(
        rank=np.zeros(STEPS + 1, dtype=np.int64),
        thread=np.zeros(STEPS + 1, dtype=np.int64),
        begin=np.round(account.edges * 1e9).astype(np.int64),
        end=np.round(account.edges * 1e9).astype(np.int64) + MS,
        cpu_ns=np.full(STEPS + 1, MS),
        waited_ns=np.zeros(STEPS + 1, dtype=np.int64),
        cpu=np.cumsum(np.isin(np.arange(STEPS + 1), [*moved, STEPS])),
    )
    profile = msgspec.structs.replace(profile_of(tmp_path), scheduled=samples)
    first = find_causes(StepEvidence(profile=profile, account=account))[0]
    assert first.cause == "placement"


def test_every_cause_but_the_computation_has_a_row() -> None:
    assert {test.cause for test in CAUSES} | {"computation"} == {
        "shared-core", "placement", "no-progress", "late-rank", "memory-contention", "protocol", "transport",
        "polling-thread", "computation",
    }  # fmt: skip
