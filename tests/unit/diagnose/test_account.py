"""The account of made profiles: planted times come back, parts add up, and no part is negative."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from elbowroom.diagnose.account import PARTS, Account, account_of, iterations_of
from elbowroom.profile import rank_file as f
from elbowroom.profile.profile import Profile, read_profile
from elbowroom.profile.steps import StepEdges
from made_profiles import MS, Row, write_profile

US = 1000
STEPS = 40
ALONE = 2 * MS
"""What a large message takes alone."""
COMPUTED = 10 * MS
LARGE = 1 << 22


def steps_at(edges: Sequence[float], pattern: tuple[str, ...] = ()) -> StepEdges:
    return StepEdges("pattern", pattern, tuple(edges))


class MadeSteps:
    """Two ranks, or more, that compute and exchange in steps: what each of them does is planted by hand."""

    def __init__(self, ranks: int = 2) -> None:
        self.rows: list[list[Row]] = [[] for _ in range(ranks)]
        self.time = [MS] * ranks
        self.edges = [MS]

    def compute(self, rank: int, ns: int) -> None:
        self.time[rank] += ns

    def call(self, rank: int, end: int, size: int, peer: int, name: str, kind: int) -> None:
        """From now to `end`."""
        self.rows[rank].append((self.time[rank], end, size, peer, name, kind, f.CALL))
        self.time[rank] = end

    def pending(self, rank: int, since: int, size: int, peer: int, name: str, kind: int) -> None:
        """From a post to now."""
        self.rows[rank].append((since, self.time[rank], size, peer, name, kind, f.SPAN))

    def message(self, sender: int, receiver: int, ns: int, size: int = LARGE) -> None:
        """A blocking send, which waits for its receive, and the receive; the data takes `ns`."""
        end = max(self.time[sender], self.time[receiver]) + ns
        self.call(sender, end, size, receiver, "MPI_Send", f.SEND)
        self.call(receiver, end, size, sender, "MPI_Recv", f.RECEIVE)

    def allreduce(self, ns: int = 20 * US) -> None:
        end = max(self.time) + ns
        for rank in range(len(self.rows)):
            self.call(rank, end, 8, -len(self.rows) - 1, "MPI_Allreduce", f.COLLECTIVE)

    def message_of_tests(self, posted: int) -> None:
        """A message that rank 0 sends now, and rank 1, which posted it then, completes in a test."""
        self.call(0, self.time[0] + 10 * US, 1000, 1, "MPI_Send", f.SEND)
        self.time[1] = self.time[0] - US
        self.time[1] += US
        self.pending(1, posted, 1000, 0, "MPI_Irecv", f.POSTED_RECEIVE)
        self.time[1] -= US
        self.call(1, self.time[0], 0, -1, "MPI_Test", f.COMPLETION)

    def step(self) -> None:
        """A step ends where all ranks are."""
        assert len(set(self.time)) == 1
        self.edges.append(self.time[0])

    def profile(self, folder: Path, **options: Any) -> Profile:
        end = max(self.time) + MS
        write_profile(folder, self.rows, [0] * len(self.rows), end=end, **options)
        return read_profile(folder)

    def account(self, folder: Path, tests_ns: int = 0, tests: int = 100_000, **options: Any) -> Account:
        """`tests_ns`: that rank 1 was in `tests`, those that completed nothing included."""
        profile = self.profile(folder, **options)
        if tests_ns:
            kinds = [
                msgspec.structs.replace(kind, ns=tests_ns, count=tests) if kind.name == "MPI_Test" else kind
                for kind in profile.ranks[1].call_kinds
            ]
            tested = msgspec.structs.replace(profile.ranks[1], call_kinds=tuple(kinds))
            profile = msgspec.structs.replace(profile, ranks=(profile.ranks[0], tested))
        return account_of(profile, steps_at([edge / 1e9 for edge in self.edges]))


def late(made: MadeSteps, number: int) -> None:
    made.compute(0, COMPUTED + 5 * MS)
    made.compute(1, COMPUTED)
    made.message(0, 1, ALONE)


def late_receiver(made: MadeSteps, number: int) -> None:
    made.compute(0, COMPUTED)
    made.compute(1, COMPUTED + 5 * MS)
    made.message(0, 1, ALONE)


def uneven(made: MadeSteps, number: int) -> None:
    made.compute(0, COMPUTED)
    made.compute(1, COMPUTED + 3 * MS)
    made.allreduce()


def posted(made: MadeSteps, number: int) -> None:
    """The message moves in MPI_Wait only, although both computed for longer than it takes."""
    begin = list(made.time)
    for rank in (0, 1):
        made.compute(rank, COMPUTED)
        made.time[rank] += ALONE
        kind, name = ((f.POSTED_SEND, "MPI_Isend"), (f.POSTED_RECEIVE, "MPI_Irecv"))[rank]
        made.pending(rank, begin[rank], LARGE, 1 - rank, name, kind)
        made.time[rank] -= ALONE
        made.call(rank, made.time[rank] + ALONE, 0, -1, "MPI_Wait", f.COMPLETION)


def contended(made: MadeSteps, number: int) -> None:
    """In every second step, the message takes 2 ms more while rank 2 computes instead of waiting."""
    beside = number % 2 * 2 * MS
    for rank in range(3):
        made.compute(rank, COMPUTED)
    made.message(0, 1, ALONE + beside)
    made.compute(2, beside)
    made.allreduce()


def nothing(made: MadeSteps, number: int) -> None:
    for rank in range(len(made.rows)):
        made.compute(rank, COMPUTED)
    made.allreduce()


def probed(made: MadeSteps, number: int) -> None:
    """The receiver waits in a probe, as Python objects do."""
    made.compute(0, COMPUTED + 5 * MS)
    made.compute(1, COMPUTED)
    made.call(1, made.time[0], 0, -1, "MPI_Mprobe", f.OTHER)
    made.message(0, 1, ALONE)


PLANTED = {
    "late_ranks": (late, 2, 2.5 * MS),
    "late_ranks (receiver)": (late_receiver, 2, 2.5 * MS),
    "late_ranks (probe)": (probed, 2, 2.5 * MS),
    "collective_wait": (uneven, 2, 1.5 * MS),
    "no_progress": (posted, 2, ALONE),
    "contention": (contended, 3, MS * 2 / 3),
    "compute": (nothing, 2, COMPUTED),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_time_is_in_its_part(name: str, tmp_path: Path) -> None:
    plant, ranks, planted = PLANTED[name]
    made = MadeSteps(ranks)
    for number in range(STEPS):
        plant(made, number)
        made.step()
    account = made.account(tmp_path)
    assert_part(account, name.split()[0], planted)
    assert account.shares()["not_explained"].value < 0.02


def test_a_wait_for_a_window_is_not_explained(tmp_path: Path) -> None:
    made = MadeSteps(2)
    for _ in range(STEPS):
        made.compute(0, COMPUTED)
        made.compute(1, COMPUTED + 5 * MS)
        made.call(0, made.time[1], 1, -1, "MPI_Win_lock", f.OTHER)
        made.allreduce()
        made.step()
    assert_part(made.account(tmp_path), "not_explained", 2.5 * MS)


@pytest.mark.parametrize("first", ["late_ranks", "collective_wait", "no_progress"])
@pytest.mark.parametrize("second", ["late_ranks (receiver)", "collective_wait", "no_progress", "compute"])
def test_two_planted_times_are_in_their_parts(first: str, second: str, tmp_path: Path) -> None:
    made = MadeSteps(2)
    for number in range(STEPS):
        PLANTED[first][0](made, number)
        PLANTED[second][0](made, number)
        made.step()
    account = made.account(tmp_path)
    parts = {name.split()[0] for name in (first, second)} - {"compute"}
    for part in parts:
        planted = sum(PLANTED[name][2] for name in (first, second) if name.split()[0] == part)
        assert_part(account, part, planted)
    assert account.shares()["not_explained"].value < 0.02


def assert_part(account: Account, part: str, planted: float) -> None:
    """Within 5 % of the step."""
    share = account.shares()[part]
    assert share.value * account.step_s == pytest.approx(planted / 1e9, abs=0.05 * account.step_s)
    assert share.low <= share.value <= share.high


def test_a_rank_that_is_late_is_named(tmp_path: Path) -> None:
    made = MadeSteps(2)
    for number in range(STEPS):
        late(made, number)
        made.step()
    account = made.account(tmp_path)
    assert account.late == {(1, 0): pytest.approx(5e-3)}
    assert account.sites[0].call == "MPI_Recv"
    assert account.sites[0].seconds["late_ranks"] == pytest.approx(2.5e-3)
    assert account.sites[0].calls == pytest.approx(1.0)


def test_pop_factors_are_those_of_talp(tmp_path: Path) -> None:
    made = MadeSteps(2)
    for number in range(STEPS):
        uneven(made, number)
        made.step()
    pop = made.account(tmp_path).pop
    step = COMPUTED + 3 * MS + 20 * US
    assert pop.load_balance.value == pytest.approx(11.5 / 13)
    assert pop.communication_efficiency.value == pytest.approx(13 * MS / step)
    assert pop.parallel_efficiency.value == pytest.approx(
        pop.load_balance.value * pop.communication_efficiency.value
    )
    assert pop.communication_efficiency.value == pytest.approx(pop.serialisation.value * pop.transfer.value)


def test_a_late_rank_beside_even_work_is_serialisation(tmp_path: Path) -> None:
    """Ranks that compute in turns: the balance is perfect, and each waits for the other."""
    made = MadeSteps(2)
    for _ in range(STEPS):
        for rank in (0, 1):
            made.compute(rank, COMPUTED)
            made.message(rank, 1 - rank, 1000)
        made.step()
    pop = made.account(tmp_path).pop
    assert pop.load_balance.value == pytest.approx(1.0)
    assert pop.serialisation.value == pytest.approx(0.5, abs=0.01)
    assert pop.transfer.value == pytest.approx(1.0, abs=0.01)


def test_one_rank_without_calls_computes_all_the_time(tmp_path: Path) -> None:
    write_profile(tmp_path, [[]], [0], end=100 * MS)
    account = account_of(read_profile(tmp_path), None)
    assert account.count == 1
    assert account.iterations_per_step is None
    assert account.shares()["compute"].value == pytest.approx(1.0)
    assert any("one step" in note for note in account.notes)
    assert account.pop.parallel_efficiency.value == pytest.approx(1.0)


def test_a_file_without_samples_is_noted(tmp_path: Path) -> None:
    made = MadeSteps(2)
    nothing(made, 0)
    made.step()
    assert any("samples" in note for note in made.account(tmp_path).notes)


def test_a_step_of_several_iterations_is_counted() -> None:
    once = ("MPI_Sendrecv", "MPI_Sendrecv", "MPI_Allreduce")
    assert iterations_of(steps_at((), once * 5)) == 5
    assert iterations_of(steps_at((), once)) == 1
    assert iterations_of(steps_at((), (*(once * 10), "MPI_Barrier"))) == 10


KINDS = (
    (f.SEND, f.CALL), (f.RECEIVE, f.CALL), (f.SENDRECV, f.CALL), (f.COLLECTIVE, f.CALL), (f.BARRIER, f.CALL),
    (f.POSTED_SEND, f.SPAN), (f.POSTED_RECEIVE, f.SPAN), (f.POSTED_COLLECTIVE, f.SPAN),
    (f.COMPLETION, f.CALL), (f.OTHER, f.CALL), (f.ONE_SIDED, f.CALL), (f.POSTED_SEND, f.SPAN | f.OPEN),
)  # fmt: skip
rows = st.lists(
    st.tuples(
        st.integers(1, 90 * MS), st.integers(0, 10 * MS), st.sampled_from((0, 8, 1000, LARGE)),
        st.integers(-4, 2), st.sampled_from(KINDS),
    ),
    max_size=30,
)  # fmt: skip

three = st.lists(rows, min_size=3, max_size=3)


def row(begin: int, length: int, size: int, peer: int, kind: tuple[int, int]) -> Row:
    return (begin, begin + length, size, peer, f"MPI_F{kind[0]}", *kind)


@given(three, st.lists(st.integers(1, 99 * MS), min_size=2, max_size=6, unique=True))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_parts_add_up_and_are_not_negative_in_any_profile(
    tmp_path_factory: pytest.TempPathFactory, ranks: list[list[Any]], edges: list[int]
) -> None:
    made = [[row(*one) for one in own] for own in ranks]
    at = steps_at([edge / 1e9 for edge in sorted(edges)])
    account = of_rows(tmp_path_factory, made, at)
    lengths = np.diff(account.edges)[:, None]
    assert account.seconds.sum(axis=2) == pytest.approx(np.broadcast_to(lengths, (len(lengths), 3)), rel=1e-6)
    assert account.seconds.min() >= -1e-12
    assert sum(share.value for share in account.shares().values()) == pytest.approx(1.0, abs=1e-3)
    later = of_rows(tmp_path_factory, made, at, start_ns=9_000_000_000, shift=4_000_000_000)
    assert later.seconds == pytest.approx(account.seconds, abs=1e-12)


@given(three, st.permutations(range(3)))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_ranks_with_other_numbers_have_the_same_account(
    tmp_path_factory: pytest.TempPathFactory, ranks: list[list[Any]], order: list[int]
) -> None:
    made = [[row(*one) for one in own] for own in ranks]
    number = {old: new for new, old in enumerate(order)}
    renamed = [
        [(*one[:3], number.get(one[3], one[3]), *one[4:]) for one in made[old]] for old in order
    ]  # fmt: skip
    steps = steps_at([0.0, 0.03, 0.1])
    before = of_rows(tmp_path_factory, made, steps)
    after = of_rows(tmp_path_factory, renamed, steps)
    assert after.seconds == pytest.approx(before.seconds[:, order], abs=1e-9)


def of_rows(
    factory: pytest.TempPathFactory, made: list[list[Row]], steps: StepEdges, shift: int = 0, **header: Any
) -> Account:
    """`shift`: of all times on the clock of the ranks, ns, which a later start takes back."""
    folder = factory.mktemp("p")
    moved = [[(one[0] + shift, one[1] + shift, *one[2:]) for one in own] for own in made]
    write_profile(folder, moved, [0, 0, 0], end=100 * MS + shift, **header)
    return account_of(read_profile(folder), steps)


def with_samples(profile: Profile, samples: Sequence[Sequence[tuple[int, int, int, int]]]) -> Profile:
    """Samples of each rank: begin, end, on a core, in the run queue, ns since the start."""
    ranks = []
    for rank, own in zip(profile.ranks, samples, strict=True):
        table = np.zeros(2 * len(own), f.RECORD)
        for at, (begin, end, cpu, waited) in enumerate(own):
            times = rank.start_ns + begin, rank.start_ns + end
            table[2 * at] = (*times, cpu, 0, 0, f.RAN, 0)
            table[2 * at + 1] = (*times, waited, -1, 0, f.WAITED, 0)
        places = np.arange(len(rank.kept), len(rank.kept) + len(table))
        totals = msgspec.structs.replace(rank.totals, samples=places)
        ranks.append(msgspec.structs.replace(rank, kept=np.concatenate([rank.kept, table]), totals=totals))
    return msgspec.structs.replace(profile, ranks=tuple(ranks))


def test_a_shared_core_and_sleep_outside_mpi_are_parts_of_their_own(tmp_path: Path) -> None:
    """Of 10 ms outside MPI, 3 ms are in the run queue and 2 ms asleep."""
    made = MadeSteps(2)
    samples: list[list[tuple[int, int, int, int]]] = [[], []]
    for number in range(STEPS):
        begin = made.time[0]
        nothing(made, number)
        for own in samples:
            own.append((begin, begin + COMPUTED, 5 * MS, 3 * MS))
            own.append((begin + COMPUTED, made.time[0], made.time[0] - begin - COMPUTED, 0))
        made.step()
    profile = with_samples(made.profile(tmp_path), samples)
    account = account_of(profile, steps_at([edge / 1e9 for edge in made.edges]))
    assert_part(account, "scheduler", 3 * MS)
    assert_part(account, "io", 2 * MS)
    assert_part(account, "compute", 5 * MS)
    assert not any("samples" in note for note in account.notes)


def test_a_call_without_data_that_lacks_a_core_waits_for_it(tmp_path: Path) -> None:
    """Of 5 ms in a test for a message, 4 ms are in the run queue."""
    made = MadeSteps(2)
    samples: list[list[tuple[int, int, int, int]]] = [[], []]
    for _ in range(STEPS):
        begin = made.time[0]
        for rank, own in enumerate(samples):
            made.compute(rank, COMPUTED)
            own.append((begin, made.time[rank], COMPUTED, 0))
            made.call(rank, made.time[rank] + 5 * MS, 0, -1, "MPI_Iprobe", f.OTHER)
            own.append((made.time[rank] - 5 * MS, made.time[rank], MS, 4 * MS))
        made.allreduce()
        made.step()
    profile = with_samples(made.profile(tmp_path), samples)
    account = account_of(profile, steps_at([edge / 1e9 for edge in made.edges]))
    assert_part(account, "scheduler", 4 * MS)
    assert_part(account, "library", MS)


def test_calls_without_a_record_lack_the_core_as_often_as_what_lies_between_them(tmp_path: Path) -> None:
    """Of 10 ms outside recorded calls, 4 ms are in short calls, and 5 ms in the run queue: 2 ms are both."""
    made = MadeSteps(2)
    samples: list[list[tuple[int, int, int, int]]] = [[], []]
    for number in range(STEPS):
        begin = made.time[0]
        nothing(made, number)
        for own in samples:
            own.append((begin, begin + COMPUTED, 5 * MS, 5 * MS))
            own.append((begin + COMPUTED, made.time[0], made.time[0] - begin - COMPUTED, 0))
        made.step()
    profile = with_samples(made.profile(tmp_path), samples)
    windows = np.zeros(1, f.WINDOW)
    windows["mpi_ns"] = made.time[0] - STEPS * COMPUTED + STEPS * 4 * MS
    ranks = tuple(
        msgspec.structs.replace(rank, windows=windows, window_ns=made.time[0]) for rank in profile.ranks
    )
    profile = msgspec.structs.replace(profile, ranks=ranks)
    account = account_of(profile, steps_at([edge / 1e9 for edge in made.edges]))
    assert_part(account, "scheduler", 5 * MS)
    assert_part(account, "library", 2 * MS)
    assert_part(account, "compute", 3 * MS)


def test_a_transfer_that_varies_and_could_have_been_hidden_is_no_progress(tmp_path: Path) -> None:
    """Every second message that moves in MPI_Wait takes half as long again."""
    made = MadeSteps(2)
    for number in range(STEPS):
        begin = list(made.time)
        took = ALONE + number % 2 * ALONE // 2
        for rank in (0, 1):
            made.compute(rank, COMPUTED)
            kind, name = ((f.POSTED_SEND, "MPI_Isend"), (f.POSTED_RECEIVE, "MPI_Irecv"))[rank]
            made.time[rank] += took
            made.pending(rank, begin[rank], LARGE, 1 - rank, name, kind)
            made.time[rank] -= took
            made.call(rank, made.time[rank] + took, 0, -1, "MPI_Wait", f.COMPLETION)
        made.step()
    account = made.account(tmp_path)
    assert_part(account, "no_progress", 1.25 * ALONE)
    assert account.shares()["transfer"].value < 0.01


def test_a_transfer_whose_partner_has_no_core_waits_for_the_scheduler(tmp_path: Path) -> None:
    """In every second step, the message takes 4 ms more, in which its sender is in the run queue."""
    made = MadeSteps(2)
    samples: list[list[tuple[int, int, int, int]]] = [[], []]
    for number in range(STEPS):
        begin = made.time[0]
        for rank in (0, 1):
            made.compute(rank, COMPUTED)
        waited = number % 2 * 4 * MS
        made.message(0, 1, ALONE + waited)
        for rank, own in enumerate(samples):
            own.append((begin, begin + COMPUTED, COMPUTED, 0))
            queued = waited if rank == 0 else 0
            own.append((begin + COMPUTED, made.time[0], ALONE + waited - queued, queued))
        made.step()
    profile = with_samples(made.profile(tmp_path), samples)
    account = account_of(profile, steps_at([edge / 1e9 for edge in made.edges]))
    assert_part(account, "scheduler", 2 * MS)
    assert account.shares()["not_explained"].value < 0.01


def test_computation_that_messages_of_others_slow_down_is_contention(tmp_path: Path) -> None:
    """In every second step, ranks 1 and 2 exchange while rank 0 computes, which takes 1.3 times as long."""
    made = MadeSteps(3)
    noise = np.random.default_rng(0)
    for number in range(STEPS):
        beside = number % 2 == 1
        made.compute(0, round(COMPUTED * (1.3 if beside else 1.0) * noise.normal(1, 0.01)))
        if beside:
            made.message(1, 2, COMPUTED)
        made.allreduce()
        made.step()
    account = made.account(tmp_path)
    planted = 0.15 * COMPUTED
    assert account.of_ranks()[0, PARTS.index("contention")] * 1e9 == pytest.approx(planted, rel=0.2)


def test_computation_that_is_no_longer_beside_messages_has_no_contention(tmp_path: Path) -> None:
    made = MadeSteps(3)
    noise = np.random.default_rng(0)
    for number in range(STEPS):
        made.compute(0, round(COMPUTED * noise.normal(1, 0.05)))
        if number % 2:
            made.message(1, 2, COMPUTED)
        made.allreduce()
        made.step()
    assert made.account(tmp_path).of_ranks()[0, PARTS.index("contention")] == 0


def test_a_rank_that_tests_in_a_loop_waits(tmp_path: Path) -> None:
    """5 ms of tests before the one that completes; the rank is inside them for half of the time."""
    made = MadeSteps(2)
    for _ in range(STEPS):
        begin = made.time[1]
        made.compute(1, 5 * MS)
        made.compute(0, 5 * MS)
        made.message_of_tests(begin)
        made.step()
    half = STEPS * 5 * MS // 2
    assert_part(made.account(tmp_path, tests_ns=half), "late_ranks", 2.5 * MS)
    # Ten tests, which move the data, and a computation between each two of them.
    assert_part(made.account(tmp_path, tests_ns=half, tests=10 * STEPS), "late_ranks", 0)


def test_communicators_of_blocks_are_recognised(tmp_path: Path) -> None:
    """Ranks 0 and 1 reduce together, and 2 and 3; one of each is late."""
    made = MadeSteps(4)
    for _ in range(STEPS):
        for pair in ((0, 1), (2, 3)):
            made.compute(pair[0], COMPUTED)
            made.compute(pair[1], COMPUTED + 4 * MS)
            end = max(made.time[rank] for rank in pair) + 20 * US
            for rank in pair:
                made.call(rank, end, 8, -3, "MPI_Allreduce", f.COLLECTIVE)
        made.step()
    account = made.account(tmp_path)
    assert_part(account, "collective_wait", 2 * MS)
    assert set(account.late) == {(0, 1), (2, 3)}


def test_steps_of_which_records_were_overwritten_are_left_out(tmp_path: Path) -> None:
    made = MadeSteps(2)
    for number in range(STEPS):
        late(made, number)
        made.step()
    account = made.account(tmp_path, capacity=10)
    assert 5 <= account.count <= 10
    assert_part(account, "late_ranks", 2.5 * MS)


def test_a_message_that_was_copied_needs_no_progress_of_its_sender(tmp_path: Path) -> None:
    """The sender computes for long after its post; the receiver takes 50 us for the copy, the sum 20 us."""
    made = MadeSteps(2)
    for _ in range(STEPS):
        begin = made.time[0]
        made.compute(0, US)
        made.compute(1, COMPUTED)
        made.call(1, made.time[1] + 50 * US, 40_000, 0, "MPI_Recv", f.RECEIVE)
        made.compute(0, 2 * COMPUTED)
        made.pending(0, begin, 40_000, 1, "MPI_Isend", f.POSTED_SEND)
        made.call(0, made.time[0] + US, 0, -1, "MPI_Wait", f.COMPLETION)
        made.allreduce()
        made.step()
    seconds = made.account(tmp_path).of_ranks()[1]
    assert seconds[PARTS.index("transfer")] == pytest.approx(70e-6, rel=0.01)
    assert seconds[PARTS.index("no_progress")] == 0


@pytest.mark.parametrize("of_core", [True, False])
def test_a_rank_that_comes_late_for_want_of_a_core_is_not_uneven(of_core: bool, tmp_path: Path) -> None:
    """Rank 0 comes 5 ms later than rank 1: it waits for a core for so long, or computes."""
    made = MadeSteps(2)
    samples: list[list[tuple[int, int, int, int]]] = [[], []]
    for number in range(STEPS):
        begin = made.time[0]
        late(made, number)
        for rank, own in enumerate(samples):
            computed, queued = COMPUTED + (5 * MS if rank == 0 else 0), 5 * MS * (rank == 0 and of_core)
            own.append((begin, begin + computed, computed - queued, queued))
            own.append((begin + computed, made.time[0], made.time[0] - begin - computed, 0))
        made.step()
    profile = with_samples(made.profile(tmp_path), samples)
    account = account_of(profile, steps_at([edge / 1e9 for edge in made.edges]))
    assert_part(account, "late_ranks", 2.5 * MS)
    assert account.uneven.mean() == pytest.approx(0 if of_core else 2.5e-3, abs=1e-4)


def test_a_short_message_does_not_need_its_sender_in_the_call(tmp_path: Path) -> None:
    """The receiver lacks a core in its receive; its sender computes until after that, in most steps."""
    made = MadeSteps(2)
    samples: list[list[tuple[int, int, int, int]]] = [[], []]
    for number in range(STEPS):
        begin, queued = made.time[0], number % 2 * 2 * MS
        made.compute(1, MS)
        made.call(1, made.time[1] + 20 * US + queued, 64, 0, "MPI_Recv", f.RECEIVE)
        samples[1].append((begin, made.time[1], MS + 20 * US, queued))
        made.compute(0, MS + queued // 2 if queued else 2 * MS)
        made.pending(0, begin, 64, 1, "MPI_Isend", f.POSTED_SEND)
        made.call(0, made.time[0] + US, 0, -1, "MPI_Wait", f.COMPLETION)
        samples[0].append((begin, made.time[0], made.time[0] - begin, 0))
        made.compute(0, max(made.time) - made.time[0])
        made.compute(1, max(made.time) - made.time[1])
        made.step()
    profile = with_samples(made.profile(tmp_path), samples)
    account = account_of(profile, steps_at([edge / 1e9 for edge in made.edges]))
    assert_part(account, "no_progress", 0)
    assert_part(account, "scheduler", 0.5 * MS)
