"""The four questions: answers in words, and with figures."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import benchmark_modules
from elbowroom.errors import ElbowroomError
from elbowroom.launch import build
from simulated_curves import curve

questions = benchmark_modules.load("simulated_questions")


def test_answers_say_in_words_what_was_found() -> None:
    response = questions.answers([curve((6, 1.0, 0.9), (9, 0.9, 0.8), (12, 0.85, 0.79))])
    texts = [answer.sentences[0] for answer in response]
    place = "computations on node 0, communications on node 0"
    assert texts[0] == f"{place}: communication, from 6 cores on; computation from 9 on."
    assert "loss of more than 5%: computation from 9 cores, communication from 6 cores (of 12)" in texts[1]
    assert "a minimum is kept: with 12 cores they keep 0.79" in texts[2]
    assert "with all cores saturated: controller of node 0" in texts[3]


def test_the_questions_are_answered_with_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        build.simulator()
    except ElbowroomError as error:
        pytest.skip(f"the simulator cannot be built here: {error}")
    few = tuple(sweep._replace(factors=(1.0,)) for sweep in questions.SWEEPS[:3])
    monkeypatch.setattr(questions, "SWEEPS", few)
    words = ["--machine", "occigen", "-o", str(tmp_path / "f"), "--json"]
    monkeypatch.setattr(sys, "argv", ["simulated_questions.py", *words])
    questions.main()
    messages = json.loads(capsys.readouterr().out)
    assert [answer["question"] for answer in messages["answers"]] == [
        "Who loses first?",
        "From how many cores on?",
        "Do communications keep a minimum?",
        "Controller or link?",
    ]
    assert all(len(answer["sentences"]) == 4 for answer in messages["answers"])
    assert {Path(file).stem for file in messages["files"]} == {
        "who-loses-first", "from-which-n", "minimum-kept", "controller-or-link", "what-decides",
    }  # fmt: skip
    assert all(Path(file).stat().st_size > 10_000 for file in messages["files"])
    swept = messages["swept"][2]
    assert (swept["parameter"], swept["far"]) == ("nic_write_credits", True)
    # The value of the node itself: the curve of that placement shows it at its last row.
    assert swept["value"] == messages["node"]["nic_write_credits"]
