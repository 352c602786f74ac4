"""Files and folders that commands are given by name: of the wrong kind, and outputs of no format."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from elbowroom import cli
from elbowroom.cli.commands import group
from elbowroom.cli.options import Output
from elbowroom.files import wrong_kind

QUICK = Path(__file__).resolve().parents[2] / "data" / "quick"
DECIDE_THEMSELVES = {"accept site", "advise", "trace merge"}
"""Commands whose format of the output also depends on other options, or on installed packages."""


def commands(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for word, below in command.commands.items():
            yield from commands(below, f"{name} {word}".strip())
    else:
        yield name, command


OUTPUTS = [
    pytest.param(parameter, id=f"{name} {parameter.name}")
    for name, command in commands(group)
    for parameter in command.params
    if isinstance(parameter.type, Output) and name not in DECIDE_THEMSELVES
]


@pytest.mark.parametrize("parameter", OUTPUTS)
def test_every_output_refuses_a_file_of_a_format_that_the_command_does_not_write(
    parameter: click.Parameter, tmp_path: Path
) -> None:
    with pytest.raises(Exception, match=r"end the name in \.") as caught:
        parameter.type.convert(str(tmp_path / "x.xlsx"), parameter, None)
    assert getattr(caught.value, "exit_code", 0) == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["-o", "x.xlsx"],
            "out 'x.xlsx': is not a file name of the format parquet; end the name in .parquet",
        ),
        (["-o", "x.csv"], "is not a file name of the format parquet"),
        (
            ["--format", "csv", "-o", "x.parquet"],
            "is not a file name of the format csv; end the name in .csv",
        ),
        (
            ["--format", "junit", "-o", "x.json"],
            "is not a file name of the format junit; end the name in .xml",
        ),
    ],
)
def test_export_refuses_the_ending_of_another_format(
    words: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.run(["export", str(QUICK), *words]) == 2
    assert sentence in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []


FOLDERS = {
    "show": ["show"],
    "run --resume": ["run", "--resume"],
    "study --resume": ["study", "--resume"],
    "list": ["list"],
    "explain": ["explain"],
    "trace check": ["trace", "check"],
    "profile show": ["profile", "show"],
    "diagnose": ["diagnose", "--profile"],
}


@pytest.mark.parametrize("words", FOLDERS.values(), ids=FOLDERS)
def test_a_file_in_place_of_a_folder_is_called_a_file(words: list[str], tmp_path: Path, capfd: Any) -> None:
    file = tmp_path / "file"
    file.write_text("")
    assert cli.run([*words, str(file)]) == 2
    assert "is a file, not a folder" in capfd.readouterr().err
    assert cli.run([*words, str(tmp_path / "nowhere")]) == 2
    assert "does not exist" in capfd.readouterr().err


FILES = {
    "run": ["run"],
    "run --machine": ["run", "model", "--dry-run", "--machine"],
    "predict": ["predict"],
    "import": ["import", "-o", "runs/x"],
}


@pytest.mark.parametrize("words", FILES.values(), ids=FILES)
def test_a_folder_in_place_of_a_file_is_called_a_folder(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.toml").mkdir()
    assert cli.run([*words, "./folder.toml"]) == 2
    err = capfd.readouterr().err
    assert "is a folder" in err or "folder" in err.partition("folder.toml")[2], err


def test_kinds_of_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nothing")
    (tmp_path / "file").write_text("")
    assert wrong_kind(tmp_path, "folder") == wrong_kind(tmp_path / "file", "file") == ""
    assert wrong_kind(tmp_path, "file") == "is a folder, not a file"
    assert wrong_kind(Path("/dev/null"), "file") == "is a device, not a file"
    assert wrong_kind(tmp_path / "link", "file") == "is a symbolic link that leads nowhere"
    assert wrong_kind(tmp_path / "file" / "below", "folder") == "does not exist"
