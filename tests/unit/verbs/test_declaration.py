"""A command is declared once: its options, its Python function and what is refused come from one class."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import click
import pytest
from click.testing import CliRunner

from elbowroom.errors import UsageError
from elbowroom.verbs.declaration import (
    VERBS,
    Options,
    Verb,
    argument,
    command_of,
    dry_run_option,
    function_of,
    included,
    option,
)

Task = Literal["qr", "cholesky"]


class Sum(NamedTuple):
    value: float
    trusted: bool


@pytest.fixture
def adding() -> Iterator[type[Verb]]:
    class Add(Verb):
        """Add numbers.

        All of them.
        """

        name = "test add"

        numbers: tuple[float, ...] = argument(nargs=-1, spread=True, type=float, metavar="N...")
        factor: float = option("Multiplies the sum.", default=1.0)
        scale: float | None = option(
            "In percent.", spelled="-s --scale", parse=lambda text, _field: float(text) / 100
        )
        rounded: bool = option("With --scale: round.", only_with="scale")
        tell: Any = None

        def do(self) -> Sum:
            total = sum(self.numbers) * self.factor * (1.0 if self.scale is None else self.scale)
            return Sum(round(total) if self.rounded else total, total >= 0)

        def document(self, result: Sum) -> dict[str, float]:
            return {"value": result.value}

        def print(self, result: Sum) -> None:
            click.echo(result.value)

    yield Add
    del VERBS[Add.name]


def invoked(verb: type[Verb], *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(command_of(verb), words, standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.return_value, done.stdout


def test_a_command_parses_its_options_as_declared(adding: type[Verb]) -> None:
    assert invoked(adding, "1", "2", "-s", "50") == (0, "1.5\n")


def test_a_function_takes_arguments_by_position_and_options_by_name(adding: type[Verb]) -> None:
    add = function_of(adding)
    assert add(1, 2, factor=3).value == 9
    assert (add.__name__, add.__doc__) == ("test_add", adding.__doc__)


def test_a_document_is_printed_with_json(adding: type[Verb]) -> None:
    assert invoked(adding, "4", "--json") == (0, '{\n "value": 4.0\n}\n')


def test_a_result_that_is_not_trusted_has_an_exit_code_of_its_own(adding: type[Verb]) -> None:
    assert invoked(adding, "4", "--factor", "-1")[0] == 3


def test_an_option_without_the_one_that_it_is_valid_with_is_refused(adding: type[Verb]) -> None:
    with pytest.raises(UsageError, match="rounded: is only valid with --scale; add --scale"):
        invoked(adding, "1", "--rounded")
    with pytest.raises(UsageError):
        function_of(adding)(1, rounded=True)


def test_a_field_for_python_alone_is_no_option(adding: type[Verb]) -> None:
    names = [parameter.name for parameter in command_of(adding).params]
    assert names == ["numbers", "factor", "scale", "rounded", "as_json"]


def test_a_default_is_printed_by_help(adding: type[Verb]) -> None:
    assert "[default: 1.0]" in CliRunner().invoke(command_of(adding), ["--help"]).stdout


class Place(Options):
    host: str | None = option("A host.", "NAME")
    port: int = option("A port.", default=1)
    extra: tuple[int, ...] = ()


@pytest.fixture
def sending() -> Iterator[type[Verb]]:
    class Send(Verb):
        """Send."""

        name = "test send"
        with_resume = ("port", "again")

        words: tuple[str, ...] = argument((), nargs=-1)
        first: str = option(default="7%", parse=lambda text, _field: int(text.rstrip("%")), positional=True)
        place: Place = included(Place, own={"host": {"help": "Where to."}})
        report: bool = option("No report.", spelled="--no-report", default=True)
        browse: bool = option(in_python=False)
        resume: str | None = option("", "RUN")
        again: bool = option(only_with="resume RUN")
        dry_run: bool = dry_run_option()

        def do(self) -> tuple[Any, ...]:
            return (*self.words, self.first, self.place.host, self.place.port, self.report)

        def planned(self) -> dict[str, int]:
            """What would be sent."""
            return {"sent": len(self.words)}

        def document(self, result: Any) -> Any:
            return {"result": list(result)}

        def print(self, result: Any) -> None:
            click.echo(repr(result))

    yield Send
    del VERBS[Send.name]


def test_included_options_are_those_of_the_command_in_their_place(sending: type[Verb]) -> None:
    names = [parameter.name for parameter in command_of(sending).params]
    assert names[:5] == ["words", "first", "host", "port", "report"]
    assert invoked(sending, "a", "--host", "h") == (0, "('a', 7, 'h', 1, True)\n")
    assert "Where to." in CliRunner().invoke(command_of(sending), ["--help"]).stdout


def test_a_flag_of_a_default_true_sets_false(sending: type[Verb]) -> None:
    assert invoked(sending, "--no-report")[1] == "(7, None, 1, False)\n"


def test_a_default_is_parsed_as_if_it_was_typed(sending: type[Verb]) -> None:
    assert invoked(sending, "--first", "8%")[1] == "(8, None, 1, True)\n"
    assert "[default: 7%]" in CliRunner().invoke(command_of(sending), ["--help"]).stdout


def test_options_that_are_fixed_at_the_start_are_refused_with_resume(sending: type[Verb]) -> None:
    with pytest.raises(UsageError, match="host: cannot be given with --resume: a resumed run keeps its set"):
        invoked(sending, "--resume", "run", "--host", "h")
    assert invoked(sending, "--resume", "run", "--port", "2", "--again")[0] == 0
    with pytest.raises(UsageError, match="first: cannot be given with --resume"):
        invoked(sending, "--resume", "run", "--first", "7%")  # its default
    with pytest.raises(UsageError, match="again: is only valid with --resume; add --resume RUN"):
        invoked(sending, "--again")


def test_a_dry_run_answers_with_the_plan(sending: type[Verb]) -> None:
    assert invoked(sending, "a", "b", "--dry-run", "--json") == (0, '{\n "sent": 2\n}\n')
    assert function_of(sending)(("a",), dry_run=True) == {"sent": 1}
    assert function_of(sending, "plan_sending", dry_run=True)(("a",)) == {"sent": 1}


def test_a_function_has_the_signature_of_its_declaration(sending: type[Verb]) -> None:
    signature = str(inspect.signature(function_of(sending)))
    assert signature == (
        "(words: 'tuple[str, ...]' = (), first: 'str' = 7, *, host: 'str | None' = None, port: 'int' = 1, "
        "extra: 'tuple[int, ...]' = (), report: 'bool' = True, "
        "resume: 'str | None' = None, again: 'bool' = False, dry_run: 'bool' = False) -> 'tuple[Any, ...]'"
    )
    with pytest.raises(TypeError):
        function_of(sending)(nothing=1)


def test_an_option_of_the_same_name_as_one_left_out_is_the_command_s_own() -> None:
    class Other(Verb):
        """Other."""

        name = "test other"

        port: int = option(default=5)
        place: Place = included(Place, only=("host",))

        def do(self) -> tuple[int, int]:
            return self.port, self.place.port

    try:
        assert function_of(Other)(port=7, host="h") == (7, 1)
    finally:
        del VERBS[Other.name]


def test_type_metavar_and_default_follow_from_the_annotation() -> None:
    class Drawn(Options):
        cores: int | None = option("Of a node.")
        share: float = option("Of the bandwidth; default 0.5.", default=0.5)
        file: Path | str | None = option()
        task: Task = option(default="qr")
        label: tuple[str, ...] = option()

    cores, share, file, task, label = (
        member.declared.parameter(member.name) for member in Drawn.members if member.declared
    )
    assert (cores.type, cores.metavar, cores.default) == (click.INT, "N", None)
    assert isinstance(share, click.Option)
    assert isinstance(label, click.Option)
    assert (share.type, share.default, share.show_default) == (click.FLOAT, 0.5, False)
    assert file.metavar == "FILE"
    assert isinstance(task.type, click.Choice)
    assert list(task.type.choices) == ["qr", "cholesky"]
    assert label.multiple
    assert Drawn().label == ()
