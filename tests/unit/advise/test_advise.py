"""Advice: what is changed, what stays, and why; what a model cannot answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from elbowroom import api
from elbowroom.advise.advice import ADVICE_FORMAT, Advice, Choice
from elbowroom.advise.advisor import advise
from elbowroom.advise.job import of_data
from elbowroom.advise.setups import setups
from elbowroom.advise.steps import SetupRates, rates, steps
from elbowroom.errors import UsageError
from elbowroom.models.curves import Situation
from elbowroom.models.document import Document
from elbowroom.models.message_size import MessageSize
from elbowroom.models.published import of_published
from elbowroom.store.models import read_model
from elbowroom.virtual.machines import of_name, truth_of

MODEL = Path(__file__).parents[2] / "data" / "model-1.json"


@pytest.fixture(scope="module")
def henri() -> Document:
    """FLOW of a machine that is henri's published curves."""
    return read_model(MODEL)


def data(**tables: dict[str, Any]) -> dict[str, Any]:
    """Much communication beside all cores: fewer cores are better, or data apart."""
    found: dict[str, Any] = {
        "step": {"comp_bytes": "3GB", "comm_bytes": "1GB"},
        "now": {"cores": 18, "comp_node": 0, "comm_node": 0, "overlap": True},
        "may": {"cores": "every"},
    }
    for name, table in tables.items():
        found[name] = {**found.get(name, {}), **table}
    return found


def asked(document: Document, name: Any = None, **tables: dict[str, Any]) -> Advice:
    return advise(document, of_data(data(**tables)), name=name)


def choice(found: Advice, axis: str) -> Choice:
    return next(item for item in found.choices if item.axis == axis)


def test_fewer_cores_are_advised_where_all_of_them_leave_communication_too_little(henri: Document) -> None:
    found = asked(henri)
    assert found.significant
    assert 6 <= found.advised.setup.cores < 18
    assert found.gain.low > 0.01
    assert found.now.l_comm > found.advised.l_comm + 0.05
    assert found.sentence.startswith("Change cores: ")
    assert "instead of 18 computing cores: " in choice(found, "cores").reason
    assert "communication loses" in choice(found, "cores").reason


def test_advice_with_the_keys_of_the_first_release_is_read(henri: Document, tmp_path: Path) -> None:
    given = asked(henri)
    path = tmp_path / "advice.json"
    ADVICE_FORMAT.write(path, given)
    path.write_text(path.read_text().replace('"significant"', '"sure"'))
    assert ADVICE_FORMAT.read(path) == given


def test_the_advised_setup_is_the_best_of_all_but_for_what_is_not_sure(henri: Document) -> None:
    job = of_data(data(may={"comp_node": "every", "comm_node": "every", "overlap": False}))
    found = advise(henri, job)
    every = setups(job, henri.machine)
    least = steps(job, every, rates(henri, job, every)).total[0].min()
    assert found.considered == len(every) == 18 * 2 * 2 * 2
    assert found.advised.total.value <= 1.01 * least


def test_every_change_surely_gains(henri: Document) -> None:
    found = asked(henri, may={"comp_node": "every", "comm_node": "every", "overlap": False})
    assert found.changes
    for item in found.changes:
        assert item.back is not None
        assert item.back.low > 0
        assert item.significant


def test_what_does_not_surely_gain_stays_and_says_by_how_much_it_might(henri: Document) -> None:
    calm = {"comp_bytes": "3GB", "comm_bytes": "1MB"}
    found = asked(henri, step=calm, now={"cores": 6}, may={"cores": [6], "comm_node": [0, 1]})
    assert not found.changes
    assert not found.significant
    assert found.advised == found.now
    assert found.sentence.startswith("No advice: no change gains significantly")
    stays = choice(found, "comm_node")
    assert stays.back is not None
    assert "could gain up to" in stays.reason or "stays: " in stays.reason


def test_one_after_the_other_is_advised_where_that_lets_the_communicating_core_compute() -> None:
    small = msgspec.structs.replace(of_published("henri"))
    one_socket = msgspec.structs.replace(small.machine, sockets=1, cores_first_socket=2, name="small")
    document = msgspec.structs.replace(small, machine=one_socket)
    found = asked(
        document,
        step={"comp_bytes": "3GB", "comm_bytes": "100MB"},
        now={"cores": 1},
        may={"overlap": False},
    )
    assert (found.advised.setup.cores, found.advised.setup.overlap) == (2, False)
    assert choice(found, "cores").alone is None
    assert choice(found, "overlap").goes_with == ("cores",)


def test_a_measured_time_counts_as_the_bytes_that_it_moves(henri: Document) -> None:
    by_bytes = asked(henri)
    seconds = by_bytes.now.t_comp
    timed = {"comm_bytes": "1GB", "t_comp": {"seconds": seconds, "cores": 18, "comp_node": 0}}
    by_time = advise(henri, of_data({**data(), "step": timed}))
    assert by_time.now.t_comp == pytest.approx(seconds, rel=1e-9)
    assert by_time.advised.setup == by_bytes.advised.setup
    assert by_time.advised.t_comp == pytest.approx(by_bytes.advised.t_comp, rel=1e-9)


def test_a_measured_time_is_surer_than_bytes_where_it_was_measured(henri: Document) -> None:
    timed = {"comm_bytes": "1MB", "t_comp": {"seconds": 0.05, "cores": 18, "comp_node": 0}}
    by_time = advise(henri, of_data({**data(), "step": timed}))
    by_bytes = asked(henri, step={"comm_bytes": "1MB"})
    widths = [(item.now.total.high / item.now.total.low) for item in (by_time, by_bytes)]
    assert widths[0] < widths[1]


def test_the_accelerator_gets_the_share_that_lets_both_end_at_once(henri: Document) -> None:
    found = asked(
        henri,
        step={"comm_bytes": "100MB"},
        now={"w": 0.0},
        may={"w": "best", "cores": [18]},
        accelerator={"bandwidth": 20e3},
    )
    advised = found.advised
    assert 0 < advised.setup.w < 1
    assert advised.t_acc == pytest.approx(advised.total.value, rel=1e-9)
    node = api.best_split(
        work=3e9,
        p_comp=advised.comp_alone * 1e6,
        p_acc=20e9,
        t_comm=advised.t_comm,
        l_comp=advised.l_comp,
        l_comm=advised.l_comm,
    )
    assert advised.setup.w == pytest.approx(node.w, rel=1e-6)


def test_a_published_machine_advises_by_the_threshold_model() -> None:
    found = asked(of_published("henri"))
    assert found.name == "threshold"
    assert found.advised.setup.cores < 18


def test_a_choice_that_the_threshold_model_knows_nothing_of_is_refused() -> None:
    with pytest.raises(UsageError, match="knows computing cores of one socket only"):
        asked(of_published("henri"), now={"cores_other": 0}, may={"cores_other": [1], "cores": [9]})


def test_a_choice_that_asks_what_the_model_has_no_runs_for_is_refused(henri: Document) -> None:
    with pytest.raises(UsageError) as caught:
        asked(henri, now={"size": "64MB"}, may={"size": ["1MiB"]})
    assert "fit it with the plan `sizes`" in caught.value.hint
    with pytest.raises(UsageError) as caught:
        asked(henri, step={"intensity": 1.0})
    assert "plan `intensity`" in caught.value.hint
    with pytest.raises(UsageError) as caught:
        asked(henri, now={"comm_threads": 1}, may={"comm_threads": [2]})
    assert "plan `ring`" in caught.value.hint
    with pytest.raises(UsageError) as caught:
        asked(henri, now={"processes": 1}, may={"processes": [2]})
    assert caught.value.field == "may.processes"


@pytest.mark.parametrize(("exponent", "more"), [(2 / 3, 2 ** (1 / 3)), (1.0, 1.0), (0.0, 2.0)])
def test_more_processes_of_a_node_send_more_by_the_surface_of_their_pieces(
    henri: Document, exponent: float, more: float
) -> None:
    job = of_data(
        data(step={"comm_exponent": exponent}, now={"processes": 1, "cores": 4}, may={"cores": [5]})
    )
    both = [job.now, msgspec.structs.replace(job.now, processes=2)]
    given = rates(henri, job, [job.now] * 2)
    times = steps(job, both, given).t_comm[0]
    assert times[1] / times[0] == pytest.approx(more)


def test_larger_messages_are_advised_where_each_costs_a_latency(henri: Document) -> None:
    law = MessageSize(t0=2.0, low=1.8, high=2.2, sizes=(4096, 65536, 64_000_000), misfit=0.01)
    document = msgspec.structs.replace(henri, message_size=law)
    found = asked(
        document,
        step={"comp_bytes": "100MB"},
        now={"size": 4096, "cores": 6},
        may={"size": ["64KiB"], "cores": [6]},
    )
    assert found.advised.setup.size == 65536
    assert "messages of 64 KiB instead of 4 KiB" in choice(found, "size").reason


def test_an_advice_is_read_as_it_was_written(henri: Document, tmp_path: Path) -> None:
    found = asked(henri, now={"cores_other": 0}, may={"cores_other": [4], "overlap": False})
    path = api.save(found, tmp_path / "advice.json")
    assert api.load_advice(path) == found


def test_a_file_that_is_no_advice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"schema": "elbowroom/model"}')
    with pytest.raises(UsageError, match="does not have the schema"):
        api.load_advice(tmp_path / "a.json")


def test_a_job_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        api.load_job("nowhere/job.toml")
    assert caught.value.field == "job"


def test_advice_is_near_the_best_there_is_and_never_far_worse_than_nothing(henri: Document) -> None:
    """As benchmarks/advise.py, on one machine and few jobs; the model itself is off by up to 3 % there."""
    truth = truth_of(of_name("henri"))
    rng = np.random.default_rng(1)
    excess, beside = [], []
    for _ in range(20):
        cores, comp, comm = (int(rng.integers(low, high)) for low, high in ((1, 19), (0, 2), (0, 2)))
        job = of_data(
            {
                "step": {"comp_bytes": float(10 ** rng.uniform(8, 10)), "comm_bytes": 5e8},
                "now": {"cores": cores, "comp_node": comp, "comm_node": comm, "overlap": True},
                "may": {"cores": "every", "comp_node": "every", "comm_node": "every", "overlap": False},
            }
        )
        every = setups(job, henri.machine)
        at = [Situation(comp_node=item.comp_node, comm_node=item.comm_node, n=item.cores) for item in every]
        streams = np.array([truth.streams(one) for one in at]).T[:, None]
        given = SetupRates(
            streams=streams, moved=np.array([job.step.moved]), discrepancy=np.zeros((4, len(at)))
        )
        times = dict(zip(every, steps(job, every, given).total[0].tolist(), strict=True))
        advised = advise(henri, job).advised.setup
        excess.append(times[advised] / min(times.values()) - 1)
        beside.append(times[advised] / times[job.now] - 1)
    assert np.mean(np.array(excess) <= 0.02) >= 0.8
    assert max(excess) <= 0.05
    assert max(beside) <= 0.01
