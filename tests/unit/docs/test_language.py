"""The words of the glossary that user-facing text does without stand in no page, message or help text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from elbowroom.cli.commands import group

ROOT = Path(__file__).resolve().parents[3]
GLOSSARY = ROOT / "docs" / "glossary.md"

VALUES = {"not told apart"}
"""Strings that are values in documents: they stay what older releases wrote."""


def words() -> list[str]:
    """The first column of the glossary's table of words that are not used."""
    table = GLOSSARY.read_text(encoding="utf-8").partition("## Words not used")[2]
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")]
    return [word for row in rows[1:] for word in row.split(", ")]


PHRASES = re.compile(
    r"^(?:is|are) no (?!more\b|longer\b)|\bfrom 0 on\b|there is none\b|\b(?:is|are) of (?:a|an|no) |"
    r"\bstands in\b|\bnobody\b|\bbegun\b|\bis there twice\b|\bnothing of it\b|has not that many|"
    r"no such \w+ here|is not there\b"
)
"""Turns of phrase that messages do without: `is no order` is `unknown rank order`, `is of a fat tree only` is
`is only valid with --platform fat-tree`.
"""

FORBIDDEN = re.compile(rf"\b({'|'.join(map(re.escape, words()))})\b", re.IGNORECASE)


def prose(page: str) -> str:
    """A page without code."""
    return re.sub(r"^```.*?^```|`[^`\n]+`", "", page, flags=re.M | re.S)


def messages(source: str) -> Iterator[str]:
    """The strings of a module that may be shown: none of its docstrings but those of commands."""
    tree = ast.parse(source)
    silent = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and "command" not in "".join(
            map(ast.dump, getattr(node, "decorator_list", ()))
        ):
            silent |= {id(statement.value) for statement in body if isinstance(statement, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            yield node.value


LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`|\'(?:[^\'\\\n]|\\.)*\'')
COMMENT = re.compile(r"^\s*(?://|\*|/\*).*$|\s//[^\"\n]*$|/\*[\s\S]*?\*/", re.M)


def literals(source: str) -> list[str]:
    """The string literals of C, C++ or JavaScript that have a blank, so that they may be sentences."""
    return [text for text in LITERAL.findall(COMMENT.sub("", source)) if " " in text]


def shown(path: Path) -> list[str]:
    """What a native source, a script or a template of a page may show."""
    source = path.read_text(encoding="utf-8")
    return [re.sub(r"{[%#{].*?[%#}]}", "", source, flags=re.S)] if path.suffix == ".j2" else literals(source)


def native_and_page_sources() -> list[Path]:
    """Sources other than Python that print or show text."""
    native = [path for folder in ("core", "lib", "apps", "include") for path in (ROOT / folder).rglob("*")]
    return [
        path
        for path in sorted({*native, *(ROOT / "src").rglob("*")})
        if path.suffix in {".c", ".cpp", ".h", ".hpp", ".js", ".j2"} and "test" not in path.name
    ]


def pages() -> list[Path]:
    """All pages but the glossary, which names the words."""
    return sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")} - {GLOSSARY})


def help_texts(command: click.Command, path: str) -> Iterator[tuple[str, str]]:
    """What --help prints for a command and all below it."""
    yield path, command.get_help(click.Context(command, info_name=path, **command.context_settings))
    if isinstance(command, click.Group):
        for name, part in command.commands.items():
            yield from help_texts(part, f"{path} {name}")


def test_the_glossary_names_words_that_are_not_used() -> None:
    assert {"mend", "told", "surely"} <= set(words())


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_a_page_has_none_of_these_words(page: Path) -> None:
    assert FORBIDDEN.findall(prose(page.read_text(encoding="utf-8"))) == []


def test_messages_have_none_of_these_words() -> None:
    result = {
        f"{path.relative_to(ROOT)}: {text}"
        for path in (ROOT / "src").rglob("*.py")
        for text in messages(path.read_text(encoding="utf-8"))
        if " " in text and text not in VALUES and FORBIDDEN.search(text)
    }
    assert result == set()


def test_messages_and_help_are_plain_english() -> None:
    shown = [
        (str(path.relative_to(ROOT)), text)
        for path in (ROOT / "src").rglob("*.py")
        for text in messages(path.read_text(encoding="utf-8"))
    ]
    texts = [(where, text) for where, text in (*shown, *help_texts(group, "elbowroom")) if " " in text]
    assert {f"{where}: {text[:200]}" for where, text in texts if PHRASES.search(text)} == set()


def test_native_programs_and_pages_have_none_of_these_words() -> None:
    wrong = {
        f"{path.relative_to(ROOT)}: {text[:200]}"
        for path in native_and_page_sources()
        for text in shown(path)
        if FORBIDDEN.search(text)
    }
    assert wrong == set()


def test_help_has_none_of_these_words() -> None:
    assert {path for path, text in help_texts(group, "elbowroom") if FORBIDDEN.search(text)} == set()


def test_plans_have_none_of_these_words() -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "plans").glob("*.toml")}
    assert {name for name, text in texts.items() if FORBIDDEN.search(text)} == set()


def test_a_word_that_is_not_used_would_be_found() -> None:
    assert FORBIDDEN.findall(prose("It is told so, with a `mend`.\n```\nmend\n```\n")) == ["told"]
    assert literals('// "is told"\nf("is told %d");  // told\n`told ${x}`') == ['"is told %d"', "`told ${x}`"]
    assert list(messages('"""told"""\nx = f"is told {1}"\n')) == ["is told "]
