"""Builds the documentation as a site that needs no network, neither to be built nor to be read.

    python tools/docs_site.py [FOLDER]        default: build/docs; prints the path of its first page

The pages of docs/ are copied, notebooks are executed, and the references of the command line, of Python
and of C are generated beside them from the code. Sphinx (extra `docs` of pyproject.toml) turns them into
HTML with navigation and search; a link that leads nowhere fails the build.
"""

from __future__ import annotations

import inspect
import os
import re
import shutil
import sys
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import msgspec
import notebook
from check_links import LINK, ROOT

import elbowroom
from elbowroom.api import PUBLIC, TASKS
from elbowroom.cli.commands import group

HEADERS = (
    "broadcast.h", "broadcast_mpi.h", "clock.h", "clock_mpi.h", "predict.h", "starpu_mpi.h", "taskflow.h",
    "taskflow_starpu.h", "trace.h", "trace.hpp",
)  # fmt: skip

BOILERPLATE = re.compile(
    r"^#ifdef __cplusplus\n.*?^#endif\n|^#ifndef ELBOW_API\n.*?^#endif\n"
    r"|^namespace [^\n]*\n|^}  // namespace[^\n]*\n|^#(ifndef|include|endif|define ELBOWROOM_)[^\n]*\n",
    re.MULTILINE | re.DOTALL,
)
"""Lines of a header that declare nothing."""

CONF = """
project = "elbowroom"
release = version = {version!r}
extensions = ["myst_parser"]
myst_heading_anchors = 6
html_theme = "furo"
html_title = "elbowroom {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {{"light_css_variables": {fonts!r}, "dark_css_variables": {fonts!r}}}
pygments_style, pygments_dark_style = "a11y-light", "a11y-dark"
smartquotes = False
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
suppress_warnings = ["misc.highlighting_failure", "myst.header"]
"""

FONTS = {
    "font-stack": "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif",
    "font-stack--monospace": "ui-monospace, 'SF Mono', Consolas, 'DejaVu Sans Mono', monospace",
}
"""Fonts of the reader's system: the site needs no network."""

CSS = """
/* Tables and code scroll by themselves where they are wider than a narrow screen. */
.table-wrapper { overflow-x: auto; }
article section > table, article table.dataframe { display: block; overflow-x: auto; }
@media (max-width: 46em) { article h1 { font-size: 1.8em; } article h2 { font-size: 1.5em; } }
/* An option is not broken at its hyphens, but on a narrow screen. */
@media (min-width: 46em) { code.literal .pre { white-space: nowrap; } }
/* Figures are drawn on white. */
body[data-theme="dark"] article img { background: white; padding: 0.5rem; }
@media (prefers-color-scheme: dark) {
  body:not([data-theme="light"]) article img { background: white; padding: 0.5rem; }
}
"""


def command_page(root: click.Group = group) -> str:
    """The reference of the command line, from the commands themselves."""
    lines = ["# Command line", "", "Generated from the code. `elbowroom COMMAND --help` prints the same.", ""]
    for path, command in _commands(root, ("elbowroom",)):
        context = click.Context(command, info_name=" ".join(path), **command.context_settings)
        usage = " ".join([*path, *command.collect_usage_pieces(context)])
        lines += [
            f"## {' '.join(path)}",
            "",
            "```text",
            usage,
            "```",
            "",
            inspect.cleandoc(command.help or ""),
        ]
        records = [
            record
            for parameter in command.get_params(context)
            if isinstance(parameter, click.Option)
            and parameter.name != "help"
            and (record := parameter.get_help_record(context))
        ]
        lines += ["", "| Option | |", "|---|---|"]
        lines += [f"| {_code(option)} | {_cell(words)} |" for option, words in records]
        lines.append("")
    return "\n".join(lines).replace("\b\n", "")


def python_page() -> str:
    """The reference of `import elbowroom`: public functions, and the classes they take and return."""
    public = {name: getattr(elbowroom, name) for name in PUBLIC}
    functions = {name: value for name, value in public.items() if inspect.isfunction(value)}
    classes = {value.__name__: value for value in public.values() if inspect.isclass(value)}
    for function in functions.values():
        classes |= {found.__name__: found for found in _returned(function)}
    lines = [
        "# Python",
        "",
        "Generated from the code. [From Python](../guide/python.md) shows how to use it.",
        "",
    ]
    for task, names in TASKS.items():
        lines += [f"## {task}", ""]
        for name in names:
            if name in functions:
                function = functions[name]
                lines += [f"### elbowroom.{name}", "", *_signature(name, function), _docstring(function), ""]
    lines += ["## Classes", ""]
    for name, cls in sorted(classes.items()):
        lines += [f"### {name}", "", _docstring(cls), "", *_members(cls)]
    return "\n".join(lines)


def c_page(include: Path = ROOT / "include" / "elbowroom") -> str:
    """The reference of the C and C++ headers, from their comments and declarations."""
    convention = (include / "README.md").read_text(encoding="utf-8").partition("\n")[2].strip()
    lines = ["# C and C++", "", "Generated from the headers.", "", convention, ""]
    for header in HEADERS:
        summary, entries = read_header((include / header).read_text(encoding="utf-8"))
        lines += [f"## elbowroom/{header}", "", _prose(summary), ""]
        for comment, declaration in entries:
            language = "cpp" if header.endswith("pp") else "c"
            lines += [f"```{language}", declaration, "```", "", _prose(comment), ""]
    return "\n".join(lines)


def read_header(text: str) -> tuple[str, list[tuple[str, str]]]:
    """A header's first comment, and its declarations, each with the comment before it."""
    summary, lines = _take_comment(BOILERPLATE.sub("", text).split("\n"))
    entries: list[tuple[str, str]] = []
    while lines:
        comment = ""
        if _is_comment(lines[0]):
            comment, lines = _take_comment(lines)
        declaration, lines = _take_declarations(lines)
        if declaration:
            entries.append((comment, declaration))
    return summary, entries


def write_sources(folder: Path) -> None:
    """Fills `folder` with all that Sphinx reads: the pages, the generated ones, linked files, settings."""
    shutil.copytree(ROOT / "docs", folder)
    generated = {"command-line": command_page(), "python-api": python_page(), "c-api": c_page()}
    for name, text in generated.items():
        (folder / "reference" / f"{name}.md").write_text(text, encoding="utf-8")
    for file in folder.rglob("*.ipynb"):
        file.with_suffix(".md").write_text(
            notebook.page(notebook.executed(file), file.name), encoding="utf-8"
        )
    for page in folder.rglob("*.md"):
        text = page.read_text(encoding="utf-8").replace(".ipynb)", ".md)")
        page.write_text(LINK.sub(lambda link, page=page: _inside(link, page, folder), text), encoding="utf-8")
    index = folder / "index.md"
    index.write_text(with_navigation(index.read_text(encoding="utf-8"), list(generated)), encoding="utf-8")
    (folder / "static").mkdir()
    (folder / "static" / "site.css").write_text(CSS, encoding="utf-8")
    conf = CONF.format(version=elbowroom.__version__, fonts=FONTS)
    (folder / "conf.py").write_text(conf, encoding="utf-8")


def with_navigation(index: str, generated: list[str]) -> str:
    """The first page with links to the generated ones; its headings and links become the navigation."""
    head, mark, tail = index.partition("## Reference\n\n")
    names = {"command-line": "Command line", "python-api": "Python names", "c-api": "C and C++"}
    links = "".join(f"- [{names[name]}](reference/{name}.md)\n" for name in generated)
    index = f"{head}{mark}Generated from the code:\n\n{links}\n{tail}"
    trees = []
    for section in re.split(r"^## ", index, flags=re.MULTILINE)[1:]:
        title, _, body = section.partition("\n")
        entries = "\n".join(
            f"{text} <{page}>" for text, page in re.findall(r"\[([^\]]+)\]\(([^)#]+)\.md\)", body)
        )
        trees.append(f"```{{toctree}}\n:hidden:\n:caption: {title}\n\n{entries}\n```\n")
    return "\n".join([index, *trees])


def build(folder: Path) -> Path:
    """Builds the site in `folder`, which is replaced; returns its first page. Warnings are errors."""
    from sphinx.cmd.build import build_main  # of the extra `docs`, which tests and users do not need

    shutil.rmtree(folder, ignore_errors=True)
    source, site = folder / "source", folder / "html"
    folder.mkdir(parents=True)
    write_sources(source)
    if build_main(["-q", "-W", "--keep-going", "-b", "html", str(source), str(site)]) != 0:
        raise SystemExit("the documentation could not be built")
    return site / "index.html"


def _commands(
    command: click.Command, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if isinstance(command, click.Group):
        for name, part in sorted(command.commands.items()):
            yield from _commands(part, (*path, name))
    else:
        yield path, command


def _code(text: str) -> str:
    return f"`{text.replace('|', chr(92) + '|')}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|").replace("<", r"\<")


def _docstring(thing: Any) -> str:
    return inspect.getdoc(thing) or ""


def _signature(name: str, function: Callable[..., Any]) -> list[str]:
    signature = inspect.signature(function)
    text = _readable(f"{name}{signature}")
    if len(text) > 90:
        parameters = "".join(f"    {parameter},\n" for parameter in _parameters(signature))
        result = signature.return_annotation
        text = f"{name}(\n{parameters})" + (
            "" if result is signature.empty else f" -> {_readable(str(result))}"
        )
    return ["```python", text, "```", ""]


def _parameters(signature: inspect.Signature) -> Iterator[str]:
    starred = False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            yield "*"
        starred = starred or parameter.kind in (parameter.VAR_POSITIONAL, parameter.KEYWORD_ONLY)
        yield _readable(str(parameter))


def _readable(signature: str) -> str:
    """Annotations without quotes, and functions as defaults without addresses."""
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", re.sub(r"<function (\w+) at \w+>", r"\1", signature))


def _returned(function: Callable[..., Any]) -> Iterator[type]:
    """The classes of elbowroom in what a function returns."""
    try:
        result = typing.get_type_hints(function).get("return")
    except NameError:  # a name that is imported for type checkers only
        return
    waiting = [result]
    while waiting:
        part = waiting.pop()
        waiting += typing.get_args(part)
        if inspect.isclass(part) and part.__module__.startswith("elbowroom"):
            yield part


def _members(cls: type) -> Iterator[str]:
    """Fields of a struct, then public methods and properties, each with its first docstring."""
    if issubclass(cls, msgspec.Struct):
        yield from ("```python", *(f"{name}: {kind}" for name, kind in _annotations(cls).items()), "```", "")
    for name, value in vars(cls).items():
        thing = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if name.startswith("_") or not inspect.isfunction(thing):
            continue
        signature = "" if isinstance(value, property) else _readable(str(inspect.signature(thing)))
        yield f"- `.{name}{re.sub(r'^.self(, )?', '(', signature)}`: {' '.join(_docstring(thing).split())}"
    yield ""


def _annotations(cls: type) -> dict[str, str]:
    return {
        name: str(kind)
        for base in reversed(cls.__mro__)
        for name, kind in vars(base).get("__annotations__", {}).items()
    }


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith(("/*", "//"))


def _take_comment(lines: list[str]) -> tuple[str, list[str]]:
    """The comment that begins at the first line, without its marks, and the lines after it."""
    end = 1
    if lines[0].lstrip().startswith("/*"):
        while "*/" not in lines[end - 1]:
            end += 1
    else:
        while end < len(lines) and lines[end].lstrip().startswith("//"):
            end += 1
    marks = re.compile(r"^\s*(/\*+ ?|\*/|\* ?|// ?)|\s*\*/\s*$")
    return "\n".join(marks.sub("", line) for line in lines[:end]), lines[end:]


def _take_declarations(lines: list[str]) -> tuple[str, list[str]]:
    """The lines up to the next comment or blank line outside of braces, and those after them."""
    depth = 0
    for end, line in enumerate(lines):
        if depth == 0 and (not line.strip() or (end and _is_comment(line))):
            return "\n".join(lines[:end]), lines[end + (not line.strip()) :]
        depth += line.count("{") - line.count("}")
    return "\n".join(lines), []


def _prose(comment: str) -> str:
    """A comment as Markdown: indented lines stay code, a list stays a list, `<` is no tag."""
    return re.sub(r"<(?=\w)", r"\\<", comment)


def title(page: Path) -> str:
    """A page's first heading, without marks."""
    return page.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ").strip()


def _inside(link: re.Match[str], page: Path, folder: Path) -> str:
    """A link out of docs/ leads to a copy inside the site; one that shows a file's name shows its title."""
    target = link[1]
    name, mark, anchor = target.partition("#")
    file = Path(os.path.normpath(page.parent / name))
    if "://" in target or not name:
        return link[0]
    if file.is_relative_to(folder):
        return link[0].replace(f"[{file.name}]", f"[{title(file)}]") if file.suffix == ".md" else link[0]
    original = ROOT / file.relative_to(folder.parent)
    if original.name == "README.md":
        copy = folder / "reference" / "c-api.md"
    else:
        copy = folder / "files" / original.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(original, copy)
    return link[0].replace(target, os.path.relpath(copy, page.parent) + mark + anchor)


if __name__ == "__main__":
    print(build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "docs"))
