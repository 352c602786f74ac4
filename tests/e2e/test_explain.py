"""A contrast run on a virtual machine, explained: the shares are those that its law has put in."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import elbowroom
from elbowroom import cli
from elbowroom.explain.explanation import ExplainedPoint, Explanation
from elbowroom.launch.virtual import load
from elbowroom.virtual.answers import VirtualMachine
from elbowroom.virtual.laws import Exchange, Work

LARGE = 64_000_000


def contrast(out: Path, machine: str = "henri", *, noise: float = 0.005, **settings: str) -> Path:
    """A contrast run there beside large messages, with all cores unless told otherwise."""
    elbowroom.run(
        "contrast",
        machine=machine,
        noise=noise,
        seed=1,
        out=str(out),
        overrides=elbowroom.Overrides(settings={"n": "all", "sizes": "64MB", "repetitions": "5", **settings}),
        report=False,
        tell=lambda _: None,
    )
    return out


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return contrast(tmp_path_factory.mktemp("contrast") / "r")


@pytest.fixture(scope="module")
def explanation(run: Path) -> Explanation:
    return elbowroom.explain(run)


def truth(node: int, side: str) -> float:
    """What a side keeps on henri beside all cores of a socket, by the law."""
    found = VirtualMachine(load("henri").definition).exact(
        Work(kernel="triad", cursor=1, cores=(17, 0), comp_node=node),
        Exchange(size=LARGE, comm_node=node, pattern="pingpong"),
    )
    if side == "comm":
        return found.comm_together / found.comm_alone
    assert found.comp_alone is not None
    assert found.comp_together is not None
    return found.comp_together / found.comp_alone


def factors(case: ExplainedPoint, side: Any) -> dict[str, float]:
    part = case.split(side)
    assert part is not None
    return {step.sources[0]: step.kept.value for step in part.steps if len(step.sources) == 1}


@pytest.mark.parametrize("side", ["comm", "comp"])
def test_the_memory_controller_and_the_link_take_what_the_law_says(
    explanation: Explanation, side: str
) -> None:
    local, far = explanation.shown
    assert (local.comp_node, far.comp_node, far.n) == (0, 1, 17)
    assert factors(local, side)["memory controller"] == pytest.approx(truth(0, side), abs=0.01)
    assert factors(far, side)["link"] == pytest.approx(truth(1, side) / truth(0, side), abs=0.01)
    shares = [step.share for step in (far.split(side).steps)]  # type: ignore[arg-type, union-attr]
    wanted = math.log(truth(1, side) / truth(0, side)) / math.log(truth(1, side))
    assert shares[-1] is not None
    assert shares[-1].low - 0.02 <= wanted <= shares[-1].high + 0.02


def test_registers_and_caches_take_nothing_there(explanation: Explanation) -> None:
    for source in ("everything but memory", "cache", "last-level cache"):
        for side in ("comm", "comp"):
            assert factors(explanation.shown[0], side)[source] == pytest.approx(1.0, abs=0.01)


def test_a_few_cores_lose_nothing_and_have_nothing_to_attribute(tmp_path: Path) -> None:
    found = elbowroom.explain(contrast(tmp_path / "few", noise=0.0, n="2", comp_nodes="near"))
    steps = [step for case in found.cases for part in case.splits for step in part.steps]
    assert {step.decided for step in steps} == {"undecided"}
    assert any("nothing to attribute" in sentence for sentence in found.summary)


def test_noise_leaves_nearly_everything_undecided(tmp_path: Path) -> None:
    found = elbowroom.explain(contrast(tmp_path / "noisy", noise=0.2, comp_nodes="near"))
    steps = [step for case in found.cases for part in case.splits for step in part.steps]
    undecided = sum(step.decided == "undecided" for step in steps)
    assert undecided >= 0.75 * len(steps)


def test_several_runs_of_one_machine_are_explained_together(run: Path, tmp_path: Path) -> None:
    target = contrast(tmp_path / "triad", kernels="triad", comp_nodes="near", control="false")
    alone = elbowroom.explain(target)
    assert len(alone.shown[0].splits[0].steps) == 1
    together = elbowroom.explain(target, run)
    case = next(case for case in together.cases if case.run == 0)
    assert [step.sources[0] for step in case.splits[0].steps] == [
        "everything but memory",
        "cache",
        "last-level cache",
        "memory controller",
    ]


def test_the_command_prints_draws_and_says_when_not_to_trust(
    run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "why.svg"
    assert cli.run(["explain", str(run), "-o", str(picture)]) == 0
    out = capfd.readouterr().out
    assert "Memory controller: " in out
    assert "Link, with data on node 1" in out
    assert str(picture) in out.replace("\n", "")
    assert "memory" in picture.read_text()
    assert (
        cli.run(["explain", str(run), "--json", "--kernel", "load", "--cores", "17", "--size", "64MB"]) == 0
    )
    told = json.loads(capfd.readouterr().out)
    assert {case["kernel"] for case in told["cases"]} == {"load"}
    few = contrast(tmp_path / "few", comp_nodes="near", repetitions="3")
    assert cli.run(["explain", str(few)]) == 3
    assert "No verdict" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["R", "--size", "4"], "size '4 B': was not measured alone and together; measured: 64 MB"),
        (["R", "--cores", "99"], "cores 99: was not measured alone and together; measured: 17"),
        (["R", "--kernel", "traid"], "kernel 'traid': was not measured alone and together; did you mean"),
        (["R", "-o", "a.pdf"], "out 'a.pdf': is not a picture; end the name in .svg or .png"),
        (["R", "R"], "is named twice; name each run once"),
        (["nowhere"], "run 'nowhere': does not exist"),
    ],
)
def test_what_cannot_be_explained_is_refused(
    run: Path, words: list[str], said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["explain", *(str(run) if word == "R" else word for word in words)]) == 2
    assert said in capfd.readouterr().err


def test_runs_of_two_machines_are_refused(
    run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    other = contrast(tmp_path / "bora", "bora", kernels="triad")
    assert cli.run(["explain", str(run), str(other)]) == 2
    assert "is from another machine than the first run: name is 'bora' here and 'henri' there" in (
        capfd.readouterr().err
    )


def test_a_run_of_one_repetition_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    once = contrast(tmp_path / "once", kernels="triad", repetitions="1")
    assert cli.run(["explain", str(once)]) == 2
    assert "the uncertainty of a contrast is unknown" in capfd.readouterr().err


def test_a_recorded_run_tells_why_frequencies_are_unknown(recorded: Path) -> None:
    found = elbowroom.explain(recorded)
    frequency = next(item for item in found.statements if "everything but memory" in item.sources)
    assert "Frequencies cannot be read here: n/a, no cpufreq." in frequency.text
    assert found.estimate == "bootstrap over repetitions"


def test_what_a_side_keeps_is_what_show_says_of_the_same_run(run: Path, explanation: Explanation) -> None:
    shown = {item.id: item for item in elbowroom.open(run).points()}
    assert explanation.cases
    for case in explanation.cases:
        for split in case.splits:
            kept = getattr(shown[case.point], split.side).kept
            assert (split.kept.value, split.kept.low, split.kept.high) == (kept.value, kept.low, kept.high)
            product = math.prod(step.kept.value for step in split.steps)
            assert product == pytest.approx(kept.value, rel=1e-9)
