"""Jobs: read from TOML or plain data, and refused with field, value and hint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from elbowroom.advise.job import decode, of_data
from elbowroom.advise.setups import load_of, setups
from elbowroom.errors import UsageError
from elbowroom.models.curves import Shape
from elbowroom.models.load import Computing, Messages

HENRI = Shape(name="henri", cores_first_socket=18, numa_per_socket=1, sockets=2)
SMALL = Shape(name="small", cores_first_socket=2, numa_per_socket=1, sockets=1)


def data(**tables: dict[str, Any]) -> dict[str, Any]:
    """A sound job; a table given here is merged, one that is None left out."""
    found: dict[str, Any] = {
        "step": {"comp_bytes": "2GB", "comm_bytes": "640MB"},
        "now": {"cores": 17, "comp_node": 0, "comm_node": 0},
        "may": {"cores": "every"},
    }
    for name, table in tables.items():
        found[name] = {**found.get(name, {}), **table}
    return found


def test_the_job_of_the_page_can_be_read() -> None:
    docs = Path(__file__).parents[3] / "docs" / "guide"
    text = (docs / "job.toml").read_text(encoding="utf-8")
    assert text.partition("\n")[2] in (docs / "advise.md").read_text(encoding="utf-8")
    assert decode(text, "job.toml").name == "stencil"


def test_a_job_is_read_from_toml() -> None:
    text = """
    name = "stencil"
    [step]
    comp_flops = 4e9
    intensity = 0.5
    comm_bytes = "64MiB"
    direction = "both"
    separator = 0.1
    [now]
    cores = 4
    comp_node = 0
    comm_node = 1
    size = "1MiB"
    overlap = true
    [may]
    cores = ["1-3", 8]
    size = ["64KiB", 4096]
    overlap = [true, false]
    """
    job = decode(text, "stencil.toml")
    assert job.name == "stencil"
    assert job.step.moved == 8e9
    assert job.step.comm_bytes == 64 * 2**20
    assert job.now.size == 2**20
    assert job.may.cores == (1, 2, 3, 8)
    assert job.may.size == (65536, 4096)


def test_a_setup_is_the_load_of_its_cores_and_messages() -> None:
    now = {"cores": 4, "cores_other": 2, "comp_node_other": 1, "size": 4096, "comm_threads": 2}
    job = of_data(data(now=now, step={"intensity": 0.5, "direction": "send"}))
    load = load_of(job.now, job.step)
    assert load.computing == (
        Computing(socket=0, node=0, count=4, intensity=0.5),
        Computing(socket=1, node=1, count=2, intensity=0.5),
    )
    assert load.messages == Messages(node=0, direction="send", size=4096, threads=2)


def test_each_process_of_a_node_has_its_communication_threads() -> None:
    job = of_data(data(now={"cores": 4, "comm_threads": 2, "processes": 3}))
    messages = load_of(job.now, job.step).messages
    assert messages is not None
    assert messages.threads == 6


def test_all_fitting_setups_are_compared_the_present_one_first() -> None:
    may = {"cores": "every", "overlap": [False], "comm_node": "every"}
    found = setups(of_data(data(now={"overlap": True}, may=may)), HENRI)
    assert found[0].cores == 17
    assert len(found) == len(set(found)) == 18 * 2 * 2


def test_cores_that_communicate_do_not_compute_while_they_overlap() -> None:
    job = of_data(data(now={"cores": 1, "overlap": True}, may={"overlap": False}))
    found = {(setup.cores, setup.overlap) for setup in setups(job, SMALL)}
    assert found == {(1, True), (1, False), (2, False)}


def test_the_socket_of_the_communication_thread_has_a_core_less() -> None:
    now = {"cores": 17, "cores_other": 18, "comm_socket": 0}
    job = of_data(data(now=now, may={"cores": "every", "comm_socket": [1]}))
    assert {setup.comm_socket for setup in setups(job, HENRI)} == {0}


REFUSED = {
    "unknown table": ({"steps": {"a": 1}}, "steps", "did you mean 'step'?"),
    "unknown key": ({"now": {"core": 3}}, "now.core", "did you mean 'cores'?"),
    "no number": ({"now": {"cores": "many"}}, "now.cores", "give int"),
    "bytes and time": (
        {"step": {"t_comp": {"seconds": 1.0, "cores": 1, "comp_node": 0}}},
        "step",
        "give one of comp_bytes",
    ),
    "neither bytes nor time": ({"step": {"comp_bytes": None}}, "step", "give one of comp_bytes"),
    "flops without intensity": (
        {"step": {"comp_bytes": None, "comp_flops": 1e9}},
        "step.intensity",
        "give flop/B",
    ),
    "no computation": ({"step": {"comp_bytes": "0"}}, "step.comp_bytes", "positive amount"),
    "no communication": ({"step": {"comm_bytes": 0}}, "step.comm_bytes", "positive amount"),
    "infinite work": ({"step": {"comp_bytes": float("inf")}}, "step.comp_bytes", "positive amount"),
    "separator of all": ({"step": {"separator": 1.0}}, "step.separator", "< 1"),
    "no freedom": ({"may": {"cores": [17]}}, "may", 'cores = "every"'),
    "an empty axis": ({"may": {"cores": []}}, "may.cores", "remove the key"),
    "overlap in may only": ({"may": {"overlap": [False]}}, "now.overlap", "give its present value"),
    "w without accelerator": ({"now": {"w": 0.5}}, "now.w", "add [accelerator]"),
    "an accelerator known twice": (
        {"now": {"w": 0.5}, "accelerator": {"seconds": 1.0, "bandwidth": 1e4}},
        "accelerator",
        "give one of the two",
    ),
    "an accelerator that is idle": ({"accelerator": {"seconds": 1.0}}, "accelerator", "give now.w"),
    "nothing computes": ({"now": {"cores": 0}}, "now.cores", "give at least one"),
    "a size that is none": ({"now": {"size": "5 apples"}}, "now.size", "64KiB"),
    "a number without a command": ({"verify": {"number": "(x)"}}, "verify.number", "remove one of them"),
    "a kernel beside a command": (
        {"verify": {"kernel": "triad", "command": "a"}},
        "verify.kernel",
        "remove one of them",
    ),
    "no regular expression": ({"verify": {"number": "(", "command": "a"}}, "verify.number", "correct it"),
    "no group": ({"verify": {"number": "x", "command": "a"}}, "verify.number", "parentheses"),
}


@pytest.mark.parametrize(("change", "field", "hint"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_job_is_refused_with_field_and_mend(change: dict[str, Any], field: str, hint: str) -> None:
    given = data(**change)
    given = {name: {k: v for k, v in table.items() if v is not None} for name, table in given.items()}
    with pytest.raises(UsageError) as caught:
        of_data(given)
    assert caught.value.field == field
    assert hint in caught.value.hint
    assert caught.value.exit_code == 2


UNFIT = {
    "too many cores": ({"now": {"cores": 19}}, "now.cores", "at most 18"),
    "cores of a second socket beside its thread": (
        {"now": {"cores_other": 18}},
        "now.cores_other",
        "at most 17",
    ),
    "a node that is not there": ({"now": {"comm_node": 2}}, "now.comm_node", "0 to 1"),
    "a choice that is not there": (
        {"now": {"comm_node": 0}, "may": {"comm_node": [0, 5]}},
        "may.comm_node",
        "0 to 1",
    ),
    "a message larger than all": ({"now": {"size": "1GB"}}, "now.size", "at most 640 MB"),
    "more processes than computing cores": (
        {"now": {"cores": 2, "processes": 3}},
        "now.processes",
        "or fewer",
    ),
    "processes whose threads no core is left for": (
        {"now": {"cores": 18, "cores_other": 16, "processes": 3}},
        "now.cores_other",
        "at most 15",
    ),
    "more threads than cores": (
        {"now": {"comm_threads": 19, "overlap": False}},
        "now.comm_threads",
        "at most 18",
    ),
}


@pytest.mark.parametrize(("change", "field", "hint"), UNFIT.values(), ids=UNFIT)
def test_a_job_that_does_not_fit_the_machine_is_refused(
    change: dict[str, Any], field: str, hint: str
) -> None:
    with pytest.raises(UsageError) as caught:
        setups(of_data(data(**change)), HENRI)
    assert caught.value.field == field
    assert hint in caught.value.hint


def test_a_job_of_which_nothing_else_fits_is_refused() -> None:
    job = of_data(data(now={"cores": 1, "comm_node": 0}, may={"cores": [2], "comm_node": "every"}))
    with pytest.raises(UsageError, match="only the present setup fits small"):
        setups(job, SMALL)


def test_more_setups_than_can_be_compared_are_refused() -> None:
    now = {"cores_other": 0, "comm_threads": 1, "size": 4096}
    may = {"cores_other": "every", "comm_threads": "1-18", "size": list(range(1, 41))}
    with pytest.raises(UsageError, match="more than 200000"):
        setups(of_data(data(now=now, may=may)), HENRI)
