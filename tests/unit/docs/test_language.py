"""The words of the glossary that user-facing text does without stand in no page, message or help text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
GLOSSARY = ROOT / "docs" / "glossary.md"

VALUES = {"not told apart"}
"""Strings that are values in documents: they stay what older releases wrote."""


def words() -> list[str]:
    """The first column of the glossary's table of words that are not used."""
    table = GLOSSARY.read_text(encoding="utf-8").partition("## Words not used")[2]
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")]
    return [word for row in rows[1:] for word in row.split(", ")]


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


def pages() -> list[Path]:
    """All pages but the glossary, which names the words."""
    return sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")} - {GLOSSARY})


def test_the_glossary_names_words_that_are_not_used() -> None:
    assert {"mend", "told", "surely"} <= set(words())


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_a_page_has_none_of_these_words(page: Path) -> None:
    assert FORBIDDEN.findall(prose(page.read_text(encoding="utf-8"))) == []


def test_messages_have_none_of_these_words() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {text}"
        for path in (ROOT / "src").rglob("*.py")
        for text in messages(path.read_text(encoding="utf-8"))
        if " " in text and text not in VALUES and FORBIDDEN.search(text)
    }
    assert found == set()


def test_plans_have_none_of_these_words() -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "plans").glob("*.toml")}
    assert {name for name, text in texts.items() if FORBIDDEN.search(text)} == set()


def test_a_word_that_is_not_used_would_be_found() -> None:
    assert FORBIDDEN.findall(prose("It is told so, with a `mend`.\n```\nmend\n```\n")) == ["told"]
    assert list(messages('"""told"""\nx = f"is told {1}"\n')) == ["is told "]
