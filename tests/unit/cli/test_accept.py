"""`elbowroom accept`: the contract that scripts rely on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import elbowroom
from elbowroom import cli
from elbowroom.launch.launchers import names as launchers


def test_planted_faults_are_in_the_document_and_in_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    words = "accept --virtual 1000 --plant memory-channel:37 --plant link:12 --seed 1 --json"
    assert cli.run(words.split()) == 4
    document = json.loads(capsys.readouterr().out)
    assert document["nodes"] == 1000
    assert document["exit_code"] == 4
    assert {(one["node"], one["cause"]) for one in document["suspects"]} == {
        (37, "memory-channel"),
        (12, "link"),
    }
    assert all(one["score"] > 2 and one["quantity"] for one in document["suspects"])


def test_the_screen_ends_with_the_answer_and_the_command_to_drain(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["accept", "--virtual", "64", "--plant", "governor:7"]) == 4
    text = capsys.readouterr().out
    assert 'scontrol update NodeName=n7 State=DRAIN Reason="elbowroom: governor"' in text
    assert "1 of 64 nodes is a suspect: n7." in text
    assert "next: elbowroom accept site --virtual 64" in text


def test_a_healthy_site_ends_with_0_and_can_be_a_baseline(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    base = str(tmp_path / "site.json")
    assert cli.run(["accept", "--virtual", "64", "-o", base]) == 0
    assert cli.run(["accept", "--virtual", "64", "--seed", "2", "--baseline", base]) == 0
    assert cli.run(["accept", "--virtual", "64", "--plant", "site:0:6%", "--baseline", base]) == 4
    assert "The whole site loses" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "hosts: there is no allocation here"),
        ("--hosts a", "hosts 'a': 1 node, and a node is judged by others"),
        ("--hosts a,b,a", "hosts 'a': names two nodes"),
        ("--hosts a,b,c --by-feature rome", "by_feature 'rome': no node has this feature"),
        ("--hosts a,b,c --resume nothing", "journal 'nothing/journal.jsonl'"),
        ("--virtual 10 --node", "virtual 10: give only one of --virtual, --from and --node"),
        ("--virtual 2", "holds 2 nodes, and a node is judged by others"),
        ("--virtual 0", "virtual 0: is not a number of nodes"),
        ("--virtual 10 --plant link:10", "plant 'link:10': there is no node 10"),
        ("--virtual 10 --plant lonk:1", "plant 'lonk:1': unknown fault; did you mean 'link'?"),
        ("--virtual 10 --plant link", "plant 'link': names no node"),
        ("--virtual 10 --plant link:1:99%", "plant 'link:1:99%': has an impossible size"),
        ("--virtual 10 -o x.docx", "its ending names no format"),
        ("--plant link:1 --from x", "is only valid with --virtual"),
    ],
)
def test_a_request_that_cannot_be_met_is_a_sentence(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["accept", "site", *words.split()]) == 2
    assert message in capsys.readouterr().err


def test_the_help_names_each_launcher_that_takes_hosts(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["accept", "site", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"Hosts for {', '.join(name for name in launchers() if name != 'local')}." in text


def test_the_function_returns_the_document() -> None:
    document = elbowroom.accept(virtual=20, plant=["link:4"])
    assert [one.node for one in document.suspects] == [4]
