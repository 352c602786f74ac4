"""Advice checked: by a virtual machine's points, and by a program of the user's."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from elbowroom import api, cli
from elbowroom.advise.advice import Advice
from elbowroom.advise.advisor import advise
from elbowroom.advise.job import of_data
from elbowroom.advise.verification import RepeatedValues, compare, steps_of_times
from elbowroom.errors import MachineError, UsageError
from elbowroom.measure.source import Where, choose
from elbowroom.measure.timed_commands import interleaved
from elbowroom.measure.verify import placed
from elbowroom.models.published import of_published
from elbowroom.verbs.model_file import Model

HENRI = Model(of_published("henri"))


def advice(**tables: Any) -> Advice:
    result = {
        "step": {"comp_bytes": "3GB", "comm_bytes": "1GB"},
        "now": {"cores": 18, "comp_node": 0, "comm_node": 0, "overlap": True},
        "may": {"cores": [9]},
    }
    return advise(HENRI.document, of_data({**result, **tables}), model="henri")


def job_file(path: Path, **tables: Any) -> Path:
    result = {
        "step": {"comp_bytes": "3GB", "comm_bytes": "1GB"},
        "now": {"cores": 18, "comp_node": 0, "comm_node": 0, "overlap": True},
        "may": {"cores": [9]},
    }
    lines = []
    for name, table in {**result, **tables}.items():
        lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_virtual_machine_confirms_what_its_own_model_advises(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    job, run = job_file(tmp_path / "job.toml"), tmp_path / "run"
    words = ["advise", "henri", "--job", str(job), "--verify", "--machine", "henri", "--run-out", str(run)]
    code = cli.run([*words, "--noise", "0.001", "--repeat", "5", "--json"])
    result = json.loads(capfd.readouterr().out)
    assert code == 0
    verified = result["verified"]
    assert verified["trusted"]
    assert verified["sentence"].startswith("Confirmed: ")
    assert verified["measured"]["value"] == pytest.approx(result["gain"]["value"], abs=0.01)
    assert verified["now_measured"]["value"] == pytest.approx(result["now"]["total"]["value"], rel=0.02)
    assert api.open(run).points()
    assert api.load_advice(run / "advice.json").sentence == result["sentence"]


def test_a_check_that_was_done_is_resumed_without_measuring_again(tmp_path: Path) -> None:
    messages: list[str] = []
    given = advice()
    first = api.verify_advice(
        given, HENRI, repetitions=5, run=tmp_path / "r", machine="henri", tell=messages.append
    )
    messages.clear()
    again = api.verify_advice(given, HENRI, resume=tmp_path / "r", tell=messages.append)
    assert again == first
    assert messages == []


def test_a_run_of_something_else_is_not_resumed(tmp_path: Path) -> None:
    api.verify_advice(
        advice(), HENRI, repetitions=1, run=tmp_path / "r", machine="henri", tell=lambda _: None
    )
    other = advice(now={"cores": 17, "comp_node": 0, "comm_node": 0, "overlap": True})
    with pytest.raises(UsageError, match="measures other points"):
        api.verify_advice(other, HENRI, resume=tmp_path / "r", tell=lambda _: None)


def test_what_does_not_overlap_is_measured_alone_on_all_cores() -> None:
    given = advice(
        now={"cores": 18, "comp_node": 0, "comm_node": 0, "overlap": True},
        may={"cores": [18], "overlap": [False], "comm_node": [1]},
        step={"comp_bytes": "3GB", "comm_bytes": "1MB"},
    )
    machine = choose(Where(machine="henri")).machine()
    result = placed(given, HENRI.document, machine)
    assert result.now.sequence == ("A", "B", "AB", "AB", "B", "A")
    assert len({point.id for point in result.points}) == len(result.points)
    assert result.control.kernel == "prime"


def test_one_after_the_other_is_measured_with_the_communicating_core_computing(tmp_path: Path) -> None:
    flow = api.load_model(Path(__file__).parents[2] / "data" / "model-1.json")
    given = flow.advise(
        {
            "step": {"comp_bytes": "3GB", "comm_bytes": "10MB"},
            "now": {"cores": 18, "cores_other": 17, "comp_node": 0, "comm_node": 0, "overlap": False},
            "may": {"cores_other": [18]},
        }
    )
    result = placed(given, flow.document, choose(Where(machine="henri")).machine())
    assert set(result.other.comm_cores) <= set(result.other.comp_cores)
    assert result.other.scheduling
    assert result.other.sequence == ("A", "B", "B", "A")
    assert not result.now.scheduling
    messages = api.verify_advice(
        given, flow, repetitions=5, run=tmp_path / "r", machine="henri", tell=lambda _: None
    )
    assert messages.repetitions == 5


def test_a_measured_time_is_checked_by_measuring_where_it_was_measured(tmp_path: Path) -> None:
    given = advice(step={"comm_bytes": "1GB", "t_comp": {"seconds": 0.2, "cores": 4, "comp_node": 0}})
    result = api.verify_advice(
        given, HENRI, repetitions=5, run=tmp_path / "r", machine="henri", noise=0.001, tell=lambda _: None
    )
    assert result.now_measured.value == pytest.approx(given.now.total.value, rel=0.02)
    assert result.measured.value == pytest.approx(result.predicted.value, abs=0.02)


def test_another_kernel_counts_as_what_it_moves_of_the_models_bytes(tmp_path: Path) -> None:
    given = advice(verify={"kernel": "triad"})
    result = api.verify_advice(
        given, HENRI, repetitions=5, run=tmp_path / "r", machine="henri", noise=0.001, tell=lambda _: None
    )
    assert result.now_measured.value == pytest.approx(given.now.total.value, rel=0.02)


def test_the_probe_computes_at_the_jobs_intensity() -> None:
    given = advice()
    step = msgspec.structs.replace(given.job.step, intensity=2.0)
    at_two = msgspec.structs.replace(given, job=msgspec.structs.replace(given.job, step=step))
    result = placed(at_two, HENRI.document, choose(Where(machine="henri")).machine())
    # Of the bus memset_nt moves 1 byte for each of its own, TRIAD 4/3: 2 flop/B there are 2.67 of TRIAD.
    assert result.now.kernel == "triad_cursor"
    assert result.now.cursor == 32
    assert result.scale == pytest.approx(0.75)


def test_an_advice_is_not_checked_on_another_machine() -> None:
    machine = choose(Where(machine="billy")).machine()
    with pytest.raises(UsageError, match="is from another machine"):
        placed(advice(), HENRI.document, machine)


def test_an_advice_is_not_checked_on_a_machine_of_the_same_shape_and_another_name() -> None:
    machine = msgspec.structs.replace(choose(Where(machine="henri")).machine(), name="bora")
    with pytest.raises(UsageError, match="is from another machine: name is 'henri' in the model and 'bora'"):
        placed(advice(), HENRI.document, machine)


@pytest.mark.parametrize(("name", "is_same"), [("node12", True), ("login12", False)])
def test_nodes_of_a_cluster_that_differ_in_their_number_are_one_machine(name: str, is_same: bool) -> None:
    real = msgspec.structs.replace(choose(Where(machine="henri")).machine(), name=name, virtual=False)
    given = advice()
    shape = msgspec.structs.replace(given.machine, name="node3", virtual=False)
    of_node = msgspec.structs.replace(given, machine=shape)
    if is_same:
        assert placed(of_node, HENRI.document, real).points
    else:
        with pytest.raises(UsageError, match="is from another machine"):
            placed(of_node, HENRI.document, real)


def timed(now: list[float], other: list[float], given: Advice) -> str:
    columns = [RepeatedValues(now, range(len(now))), RepeatedValues(other, range(len(other)))]
    return compare(given, steps_of_times(columns, seed=1), len(now)).sentence


STEADY = [1.0, 1.01, 0.99, 1.0, 1.005, 0.995]


def test_an_advice_whose_measured_gain_may_be_none_is_undecided() -> None:
    other = [0.98, 1.03, 0.97, 1.02, 0.98, 1.01]
    assert timed(STEADY, other, advice()).startswith("Undecided, because the measured interval includes 0")


def test_an_advice_that_was_measured_too_noisily_is_undecided() -> None:
    noisy = [1.0, 1.5, 0.5, 1.25, 0.75, 1.5]
    sentence = timed(noisy, [0.5 * time for time in noisy], advice())
    assert sentence.startswith("Undecided, because the measurements are too uncertain")


@pytest.mark.parametrize(
    ("other", "start"),
    [
        ([1.0, 1.012, 0.99, 1.001, 1.005, 0.996], "Nothing to gain, as predicted"),
        ([0.97, 1.03, 0.98, 1.02, 1.0, 0.96], "Undecided, because the measured interval includes a gain"),
        ([0.5, 0.51, 0.49, 0.5, 0.5, 0.5], "The advice missed a gain"),
    ],
)
def test_nothing_to_gain_is_confirmed_only_where_a_gain_is_excluded(other: list[float], start: str) -> None:
    calm = {"comp_bytes": "3GB", "comm_bytes": "1MB"}
    given = advice(step=calm, may={"comm_node": [1]}, now={"cores": 6, "comp_node": 0, "comm_node": 0})
    assert not given.changes
    assert timed(STEADY, other, given).startswith(start)


def test_pairs_are_run_in_both_orders_by_turns() -> None:
    result = list(interleaved((1, 0), 6, seed=3, mirrored=True))
    assert sorted(result) == [(r, which) for r in range(6) for which in (0, 1)]
    firsts = [which for _, which in result[::2]]
    assert [firsts[i] + firsts[i + 1] for i in (0, 2, 4)] == [1, 1, 1]
    assert list(interleaved((1, 0), 6, seed=3, mirrored=True)) == result


PROGRAM = """
import sys
cores = int(sys.argv[1])
print(f"step {0.02 if cores < 18 else 0.04} s")
"""


def program(tmp_path: Path, text: str = PROGRAM, **more: str) -> dict[str, str]:
    path = tmp_path / "program.py"
    path.write_text(text)
    return {"command": f"{sys.executable} -S -E {path} {{cores}}", **more}


def test_the_users_own_program_is_timed_by_the_number_that_it_prints(tmp_path: Path) -> None:
    given = advice(verify=program(tmp_path, number=r"step (\S+) s"))
    result = api.verify_advice(given, HENRI, repetitions=5, run=tmp_path / "t", tell=lambda _: None)
    assert result.measured.value == pytest.approx(0.5)
    assert result.sentence.startswith("Confirmed, and the gain is larger than predicted")
    assert result.trusted
    assert len((tmp_path / "t" / "times.jsonl").read_text().splitlines()) == 10


def test_a_wrong_advice_is_told_as_such(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = PROGRAM.replace("<", ">=")
    verify = program(tmp_path, text, number=r"step (\S+) s")
    job = job_file(tmp_path / "job.toml", verify=verify)
    words = ["advise", "henri", "--job", str(job), "--verify", "--repeat", "5"]
    code = cli.run([*words, "--run-out", str(tmp_path / "t")])
    out = " ".join(capfd.readouterr().out.split())
    assert code == 0
    assert "The advice was wrong: the advised setup costs 100.0 %" in out


def test_a_timing_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    given = advice(verify=program(tmp_path, number=r"step (\S+) s"))
    out = tmp_path / "t"
    api.verify_advice(given, HENRI, repetitions=2, run=out, tell=lambda _: None)
    journal = out / "times.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:2]) + lines[2][:20])
    api.verify_advice(given, HENRI, repetitions=2, resume=out, tell=lambda _: None)
    assert len(journal.read_bytes().splitlines()) == 4
    other = advice(may={"cores": [8]}, verify=program(tmp_path))
    with pytest.raises(UsageError, match="was started for another job"):
        api.verify_advice(other, HENRI, resume=out, tell=lambda _: None)


BAD_PROGRAMS = {
    "fails": (
        "import sys; sys.exit('no mesh')",
        r"step (\S+) s",
        MachineError,
        "ended with exit code 1: no mesh",
    ),
    "says no number": ("print('done')", r"step (\S+) s", MachineError, "finds no number"),
    "says a time of 0": ("print('step 0 s')", r"step (\S+) s", MachineError, "is not a time of a step"),
}


@pytest.mark.parametrize(("text", "number", "kind", "said"), BAD_PROGRAMS.values(), ids=BAD_PROGRAMS)
def test_a_program_that_gives_no_time_is_a_failure_with_its_words(
    tmp_path: Path, text: str, number: str, kind: type[Exception], said: str
) -> None:
    given = advice(verify=program(tmp_path, text, number=number))
    with pytest.raises(kind, match=said):
        api.verify_advice(given, HENRI, repetitions=1, run=tmp_path / "t", tell=lambda _: None)


def test_a_program_that_hangs_is_ended(tmp_path: Path) -> None:
    given = advice(verify=program(tmp_path, "import time; time.sleep(60)"))
    with pytest.raises(MachineError, match=r"did not end within 0\.3 s"):
        api.verify_advice(given, HENRI, repetitions=1, run=tmp_path / "t", patience=0.3, tell=lambda _: None)


BAD_COMMANDS = {
    "./app {core}": "names {core}, which is not a choice",
    "./app 4": r"does not say {cores}, which the advice changes",
    "./app {cores": "has braces that do not close",
    "/nowhere/app {cores}": "cannot be started",
}


@pytest.mark.parametrize(("command", "said"), BAD_COMMANDS.items(), ids=BAD_COMMANDS)
def test_a_command_that_cannot_be_run_is_refused(tmp_path: Path, command: str, said: str) -> None:
    given = advice(verify={"command": command})
    with pytest.raises(UsageError, match=said):
        api.verify_advice(given, HENRI, repetitions=1, run=tmp_path / "t", tell=lambda _: None)


@pytest.mark.parametrize("option", ["--machine=henri", "--repeat=3", "--run-out=r", "--resume=r"])
def test_options_of_the_check_go_with_verify_only(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], option: str
) -> None:
    job = job_file(tmp_path / "job.toml")
    assert cli.run(["advise", "henri", "--job", str(job), option]) == 2
    assert "is only valid with --verify; add --verify" in capfd.readouterr().err


@pytest.mark.parametrize(("spread", "trusted"), [(0.01, True), (0.5, False)])
def test_times_that_scatter_are_too_noisy_to_trust(spread: float, trusted: bool) -> None:
    given = advice()
    times = [1.0, 1.0 + spread, 1.0 - spread, 1.0 + spread / 2, 1.0 - spread / 2, 1.0 + spread]
    columns = [RepeatedValues(times, range(6)), RepeatedValues([0.5 * time for time in times], range(6))]
    result = compare(given, steps_of_times(columns, seed=1), 6)
    assert result.trusted is trusted
    assert bool(result.reasons) is not trusted
    # Both columns scatter alike, repetition by repetition: their ratio does not.
    assert result.measured.value == pytest.approx(0.5)
    assert result.measured.high - result.measured.low < 1e-9


def test_two_repetitions_are_too_few_to_trust() -> None:
    columns = [RepeatedValues([1.0, 1.0], [0, 1]), RepeatedValues([0.9, 0.9], [0, 1])]
    assert not compare(advice(), steps_of_times(columns, seed=1), 2).trusted


def test_where_nothing_is_advised_the_best_other_setup_is_measured(tmp_path: Path) -> None:
    calm = {"comp_bytes": "3GB", "comm_bytes": "1MB"}
    given = advice(step=calm, may={"comm_node": [1]}, now={"cores": 6, "comp_node": 0, "comm_node": 0})
    assert not given.changes
    result = api.verify_advice(
        given, HENRI, repetitions=5, run=tmp_path / "r", machine="henri", noise=0.001, tell=lambda _: None
    )
    assert result.other.setup.comm_node == 1
    assert result.sentence.startswith("Nothing to gain, as predicted")
