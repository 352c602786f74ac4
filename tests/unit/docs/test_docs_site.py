"""The site of the documentation: generated pages are complete, and its navigation reaches every page."""

from __future__ import annotations

import re
from pathlib import Path

import click
import docs_site
import pytest
from check_links import ROOT, anchors, broken_links, pages

from elbowroom import api
from elbowroom.cli.commands import group


def test_no_link_of_a_page_is_broken() -> None:
    assert {page: broken for page in pages() if (broken := list(broken_links(page)))} == {}


def test_a_broken_link_is_named(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Title\n[a](page.md#title) [b](none.md) [c](page.md#none) [d](#none) [e](https://none)\n"
    )
    assert list(broken_links(page)) == ["none.md", "page.md#none", "#none"]


def test_anchors_are_those_of_headings_outside_of_code() -> None:
    text = "# How it `works`\n## With [a link](x.md)?\n## With a link\n```sh\n# no heading\n```\n"
    assert anchors(text) == {"how-it-works", "with-a-link", "with-a-link-1"}


def test_every_command_and_option_is_in_the_reference() -> None:
    page = docs_site.command_page()
    for name, command in group.commands.items():
        assert f"## elbowroom {name}" in page
        for option in command.params:
            if isinstance(option, click.Option):
                assert option.opts[0] in page


def test_every_public_name_is_in_the_reference() -> None:
    page = docs_site.python_page()
    assert [n for n in api.PUBLIC if not re.search(rf"^### (elbowroom\.)?{n}$", page, re.M)] == []
    headings = re.findall(r"^## (.+)$", page, re.M)
    assert headings == [*api.TASKS, "Classes"]
    assert " at 0x" not in page


def test_every_function_of_the_headers_is_in_the_reference() -> None:
    page = docs_site.c_page()
    for header in docs_site.HEADERS:
        text = (ROOT / "include" / "elbowroom" / header).read_text(encoding="utf-8")
        for name in re.findall(r"^ELBOW_API.*?\b(elbow_\w+)\(", text, re.MULTILINE):
            assert f"{name}(" in page
    assert "#ifndef ELBOWROOM" not in page


def test_the_first_page_leads_to_every_page() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    linked = {target for _, target in re.findall(r"\[([^\]]+)\]\(([^)]+)\)", index)}
    here = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert here - linked == {"index.md"}


def test_a_page_of_the_guide_has_at_most_150_lines() -> None:
    guide = ROOT / "docs" / "guide"
    lines = {page.name: len(page.read_text(encoding="utf-8").splitlines()) for page in guide.glob("*.md")}
    assert {name: count for name, count in lines.items() if count > 150} == {}


def test_the_navigation_has_the_groups_of_the_first_page_and_each_page_once() -> None:
    index = docs_site.with_navigation(
        (ROOT / "docs" / "index.md").read_text(encoding="utf-8"), ["command-line"]
    )
    groups = re.findall(r"^:caption: (.+)$", index, re.MULTILINE)
    assert groups == re.findall(r"^## (.+)$", index, re.MULTILINE)
    trees = "".join(re.findall(r"```{toctree}.*?```", index, re.DOTALL))
    entries = re.findall(r"<(.+)>$", trees, re.MULTILINE)
    assert len(entries) == len(set(entries))
    assert "reference/command-line" in entries


# myst-parser 5 uses what Sphinx 11 will remove. What Sphinx warns of in our pages is an error all the same.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="Sphinx (extra `docs`) is not installed")
    pytest.importorskip("myst_parser", reason="myst-parser (extra `docs`) is not installed")
    pytest.importorskip("furo", reason="furo (extra `docs`) is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel (extra `docs`) is not installed")
    pytest.importorskip("nbclient", reason="nbclient (extra `docs`) is not installed")
    first = docs_site.build(tmp_path / "site")
    text = first.read_text(encoding="utf-8")
    assert "reference/command-line.html" in text
    assert not re.search(r'(src|<link[^>]*href)="https?:', text)
    assert "theme-toggle" in text
    assert "<svg" in (first.parent / "guide" / "notebook.html").read_text(encoding="utf-8")
    assert re.search(r'caption-text">Clusters and node sharing<', text)
