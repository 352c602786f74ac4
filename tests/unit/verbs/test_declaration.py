"""A command is declared once: its options, its Python function and what is refused come from one class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import click
import pytest
from click.testing import CliRunner

from elbowroom.errors import UsageError
from elbowroom.verbs.declaration import VERBS, Verb, argument, command_of, function_of, option


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

        numbers: tuple[float, ...] = argument(nargs=-1, type=float, metavar="N...")
        factor: float = option(default=1.0, type=float, help="Multiplies the sum.")
        scale: float | None = option(
            "-s", "--scale", parse=lambda text: float(text) / 100, help="In percent."
        )
        rounded: bool = option(default=False, only_with="scale", help="With --scale: round.")
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
    with pytest.raises(UsageError, match="rounded True: is only valid with --scale; add --scale"):
        invoked(adding, "1", "--rounded")
    with pytest.raises(UsageError):
        function_of(adding)(1, rounded=True)


def test_a_field_for_python_alone_is_no_option(adding: type[Verb]) -> None:
    names = [parameter.name for parameter in command_of(adding).params]
    assert names == ["numbers", "factor", "scale", "rounded", "as_json"]


def test_a_default_is_printed_by_help(adding: type[Verb]) -> None:
    assert "[default: 1.0]" in CliRunner().invoke(command_of(adding), ["--help"]).stdout
