"""The truth G3: nodes simulated line by line, scaled from what machines reach alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from elbowroom.errors import ElbowroomError, MachineError, UsageError
from elbowroom.launch import build, executables
from elbowroom.launch.virtual import load
from elbowroom.models import published
from elbowroom.models.curves import Situation
from elbowroom.models.load import Computing, Copy, Load, Messages, load_of
from elbowroom.virtual.answers import VirtualMachine
from elbowroom.virtual.loads import load_streams
from elbowroom.virtual.machines import of_name, truth_of
from elbowroom.virtual.request_calibration import scaled
from elbowroom.virtual.request_node import BY_NAME, PARAMETERS, SimulatedNode, changed
from elbowroom.virtual.requests import LONGEST, Moment, Requests, experiment, machine, request_load_streams
from elbowroom.virtual.simulated import Observation
from elbowroom.virtual.truth import LoadStreams

CORES = Computing(socket=0, node=0, count=18)


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    try:
        build.simulator()
    except ElbowroomError as error:
        pytest.skip(f"the simulator cannot be built here: {error}")


class Counting:
    """Runs the simulator and counts how often, and how many experiments."""

    def __init__(self) -> None:
        self.runs = self.experiments = 0

    def __call__(
        self, node: Mapping[str, Any], experiments: Sequence[Mapping[str, Any]]
    ) -> list[Observation]:
        self.runs += 1
        self.experiments += len(experiments)
        return executables.simulate(node, experiments)


@pytest.fixture(scope="module")
def node() -> SimulatedNode:
    return scaled(of_name("henri"), executables.simulate)


@pytest.fixture(scope="module")
def henri(node: SimulatedNode) -> Requests:
    return Requests(node, executables.simulate)


def of(truth: Requests, *computing: Computing, copies: tuple[Copy, ...] = (), **messages: Any) -> LoadStreams:
    sent = Messages(**messages) if messages else None
    return request_load_streams(truth, Load(computing=computing, messages=sent, copies=copies))


def kept(found: LoadStreams) -> tuple[float, float]:
    return found.comp_together / found.comp_alone, found.comm_together / found.comm_alone


@pytest.mark.parametrize("name", ["henri", "henrisubnuma", "billy", "occigen"])
def test_a_node_reaches_alone_what_was_published(name: str) -> None:
    found = published.load(name)
    truth = Requests(scaled(of_name(name), executables.simulate), executables.simulate)
    for side, data in (("local", 0), ("remote", found.numa_per_socket)):
        p = found.used(side)  # type: ignore[arg-type]
        every = Computing(socket=0, node=data, count=found.cores_first_socket)
        one = msgspec.structs.replace(every, count=1)
        assert of(truth, one).comp_alone == pytest.approx(p.b_comp_seq, rel=0.01)
        assert of(truth, every).comp_alone == pytest.approx(p.t_seq_max, rel=0.025)
        assert of(truth, node=data).comm_alone == pytest.approx(p.b_comm_seq, rel=0.01)


def test_scaling_asks_for_nothing_but_computation_alone() -> None:
    asked: list[Mapping[str, Any]] = []

    def watched(told: Mapping[str, Any], experiments: Sequence[Mapping[str, Any]]) -> list[Observation]:
        asked.extend(experiments)
        return executables.simulate(told, experiments)

    definition = of_name("henri")
    other = msgspec.structs.replace(
        definition,
        local=msgspec.structs.replace(definition.local, alpha=0.5, t_par_max=60_000.0, n_par_max=3),
        remote=None if definition.remote is None else msgspec.structs.replace(definition.remote, alpha=0.3),
    )
    assert scaled(other, watched) == scaled(definition, executables.simulate)
    assert asked
    assert not any(source["device"] for one in asked for source in one["sources"])


def test_a_situation_said_as_a_load_is_answered_alike(henri: Requests) -> None:
    for situation in (
        Situation(comp_node=0, comm_node=1, n=0),
        Situation(comp_node=1, comm_node=1, n=7),
        Situation(comp_node=0, comm_node=0, n=3, n_other=9),
    ):
        found = request_load_streams(henri, load_of(situation))
        said = found.comp_alone, found.comm_alone, found.comp_together, found.comm_together
        assert henri.streams(situation) == said
        assert load_streams(henri, load_of(situation)) == found


def test_a_placement_is_simulated_once_for_all_its_cores(node: SimulatedNode) -> None:
    counting = Counting()
    truth = Requests(node, counting)
    first = truth.streams(Situation(comp_node=0, comm_node=0, n=4))
    for n in range(19):
        truth.streams(Situation(comp_node=0, comm_node=0, n=n))
    assert (counting.runs, counting.experiments) == (1, 18 + 1 + 18)
    assert truth.streams(Situation(comp_node=0, comm_node=0, n=4)) == first


def test_the_seed_decides_the_answer(node: SimulatedNode) -> None:
    at = Situation(comp_node=0, comm_node=0, n=17)
    first, again, other = (Requests(node, executables.simulate, seed=seed).streams(at) for seed in (1, 1, 2))
    assert first == again != other
    assert other == pytest.approx(first, rel=0.02)


def test_with_too_few_credits_communications_lose_and_with_many_computations_do(node: SimulatedNode) -> None:
    results = {}
    for credits in (57, 300):
        truth = Requests(changed(node, [("nic_write_credits", str(credits))]), executables.simulate)
        results[credits] = kept(of(truth, CORES, node=0))
    assert results[300][1] > 0.99 > results[57][1]
    assert results[300][0] < results[57][0] - 0.01


def test_communications_lose_first_where_cores_have_line_fill_buffers_to_spare(node: SimulatedNode) -> None:
    truth = Requests(changed(node, [("line_fill_buffers", "20")]), executables.simulate)
    comp, comm = kept(of(truth, CORES, node=0))
    assert comm < 0.85 < comp


def test_entries_that_take_turns_leave_communications_a_minimum(node: SimulatedNode) -> None:
    few = changed(node, [("line_fill_buffers", "20"), ("arbitration", "round_robin")])
    assert kept(of(Requests(few, executables.simulate), CORES, node=0))[1] > 0.97


def test_high_intensity_frees_communications(henri: Requests) -> None:
    busy = msgspec.structs.replace(CORES, node=1, intensity=40.0)
    assert kept(of(henri, msgspec.structs.replace(CORES, node=1), node=1))[1] < 0.6
    assert min(kept(of(henri, busy, node=1))) > 0.97


def test_a_core_that_moves_a_line_now_and_then_moves_as_many_as_it_computes(henri: Requests) -> None:
    rare = of(henri, Computing(socket=0, node=0, count=4, intensity=5e4), node=0)
    assert rare.comp_alone == pytest.approx(4 * 9.2e3 / 5e4, rel=0.1)
    assert rare.comp_together == pytest.approx(rare.comp_alone, rel=0.1)


def test_smaller_messages_take_less_from_computations(henri: Requests) -> None:
    far = msgspec.structs.replace(CORES, node=1)
    shares = [kept(of(henri, far, node=1, size=size))[0] for size in (64, 4096, LONGEST, 10 * LONGEST, None)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.99


def test_bandwidths_grow_with_the_size_of_messages_and_with_threads(henri: Requests) -> None:
    sizes = [4, 64, 4096, LONGEST, 64 * LONGEST, None]
    rates = [of(henri, node=0, size=size).comm_alone for size in sizes]
    assert rates == sorted(rates)
    assert rates[0] == pytest.approx(4 / 1.39, rel=0.05)
    assert rates[4] == pytest.approx(rates[5], rel=0.01)
    assert of(henri, node=0, size=4096, threads=3).comm_alone > 2 * rates[2]


def test_both_directions_move_more_than_one_and_a_copy_takes_its_part(henri: Requests) -> None:
    one, both = (of(henri, node=0, direction=way).comm_alone for way in ("send", "both"))
    assert both == pytest.approx(2 * one, rel=0.02)
    beside = of(henri, CORES, copies=(Copy(node=0, demand=12_000.0),), node=0)
    assert 8_000 < beside.copies[0] < 12_100
    assert beside.comp_together < of(henri, CORES, node=0).comp_together


def test_groups_on_different_nodes_do_not_disturb_each_other(henri: Requests) -> None:
    first, second = CORES, Computing(socket=1, node=1, count=18)
    found = of(henri, first, second)
    assert found.groups == pytest.approx((of(henri, first).comp_alone,) * 2, rel=0.01)


def test_kernels_count_what_their_program_moves(henri: Requests) -> None:
    load = Load(computing=(msgspec.structs.replace(CORES, count=2),))
    stores = request_load_streams(henri, load, pattern="write").comp_alone
    loads = request_load_streams(henri, load, pattern="read").comp_alone
    assert 0.3 * loads < stores < 0.75 * loads


def test_a_virtual_machine_of_requests_answers_plans() -> None:
    definition = msgspec.structs.replace(of_name("henri"), truth="requests")
    found = VirtualMachine(definition, noise=0, simulate=executables.simulate)
    from elbowroom.virtual.laws import Exchange as Sent
    from elbowroom.virtual.laws import Work

    sent = Sent(size=64_000_000, comm_node=1, pattern="receive")
    work = Work(kernel="memset_nt", cursor=1, cores=(17, 0), comp_node=1)
    answer = found.exact(work, sent)
    truth = truth_of(definition, executables.simulate)
    exact = truth.streams(Situation(comp_node=1, comm_node=1, n=17))
    assert answer.comp_alone == exact[0]
    assert answer.comm_together == pytest.approx(exact[3], rel=0.01)
    triad = found.exact(msgspec.structs.replace(work, kernel="triad", cores=(2, 0)), sent)
    assert triad.comp_alone is not None
    assert 0 < triad.comp_alone < 2 * 12_000
    prime = found.exact(msgspec.structs.replace(work, kernel="prime"), sent)
    assert prime.comp_alone == prime.comp_together


def test_a_machine_is_named_with_its_truth_behind_it() -> None:
    assert load("henri:requests").definition == msgspec.structs.replace(of_name("henri"), truth="requests")


def test_without_somebody_to_run_the_simulator_it_is_refused() -> None:
    definition = msgspec.structs.replace(of_name("henri"), truth="requests")
    with pytest.raises(UsageError, match="single requests are simulated by a program"):
        truth_of(definition)


def test_every_number_of_a_node_is_described_and_in_its_range(node: SimulatedNode) -> None:
    names = [field.name for field in msgspec.structs.fields(SimulatedNode) if field.name != "shape"]
    assert names == [item.name for item in PARAMETERS]
    for item in PARAMETERS:
        value = getattr(node, item.name)
        if item.name != "arbitration":
            assert item.low <= value <= item.high
            assert changed(node, [(item.name, repr(value))]) == node


@pytest.mark.parametrize(
    ("setting", "field", "message"),
    [
        (("nic_credits", "5"), "set", "no such parameter of a node; did you mean 'nic_"),
        (("line_fill_buffers", "0"), "line_fill_buffers", "is not a whole number in range; 1 to 1000 lines"),
        (("banks", "2.5"), "banks", "is not a whole number in range"),
        (("root", "nan"), "root", "is not a number in range; 1 to 1e+07 MB/s"),
        (("jitter", "x"), "jitter", "is not a number in range"),
        (("arbitration", "lottery"), "arbitration", "is not an arbitration; one of: fifo, round_robin"),
        (("write_batch", "49"), "write_batch", "is more than the write queue holds (48)"),
    ],
)
def test_parameters_that_a_node_cannot_have_are_refused(
    node: SimulatedNode, setting: tuple[str, str], field: str, message: str
) -> None:
    with pytest.raises(UsageError) as refused:
        changed(node, [setting])
    assert refused.value.field == field
    assert message in refused.value.sentence()


def test_a_machine_of_one_side_has_no_remote_accesses() -> None:
    definition = msgspec.structs.replace(of_name("henri"), remote=None)
    truth = Requests(scaled(definition, executables.simulate), executables.simulate)
    assert of(truth, CORES, node=0).comm_alone > 0
    with pytest.raises(UsageError, match="has no parameters of remote accesses"):
        of(truth, CORES, node=1)


def test_what_the_simulator_refuses_is_told(node: SimulatedNode) -> None:
    asked = experiment(node, Moment(computing=(CORES,)), 1)
    with pytest.raises(MachineError, match=r"the simulator failed .*window 0: is not between 1"):
        executables.simulate(machine(node), [{**asked, "sources": [{**asked["sources"][0], "window": 0}]}])


def test_without_a_compiler_the_simulator_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ELBOWROOM_SIMULATOR", raising=False)
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(MachineError) as missed:
        build.simulator()
    assert "no C++ compiler (no-such-compiler) was found, and the simulator must be built" in str(
        missed.value
    )
    assert "nlohmann-json3-dev" in missed.value.hint


def test_a_number_is_kept_to_the_parameter_of_its_name() -> None:
    assert BY_NAME["nic_hop"].unit == "ns"
    assert all(item.text and item.source for item in PARAMETERS)


def test_the_documentation_lists_every_number_of_a_node_with_its_source() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "simulator.md").read_text(encoding="utf-8")
    for item in PARAMETERS:
        row = next(line for line in page.splitlines() if line.startswith(f"| `{item.name}` |"))
        assert row.endswith(f"| {item.text} | {item.source} |")
