"""Compares the output that pages quote with what the commands print today, and renews it.

    python tools/quotes.py [--update] [PAGE...]        default: all pages of docs/ but docs/measured

The `elbowroom` commands of console blocks with output are run, in the order of the page, in a folder of its
own that has docs/, machines/, plans/ and the finished run runs/RUN; then, in one session of Python, the
examples of pycon blocks. A line `…` stands for lines that are left out. A comment in the line before a block
or table says otherwise, or where its numbers come from:

    <!-- fitted -->                                        numbers of a fit: their last digits may differ
    <!-- after python tests/FILE.py ... -->                runs this first: it makes the commands' input
    <!-- file NAME -->                                     the block is a file that later commands read
    <!-- printed by elbowroom ... -->                      the block has no command of its own
    <!-- NAME written by elbowroom ... -->                 the block is a part of a file that a command writes
    <!-- measured on MACHINE, from docs/measured/PAGE -->  not run
    <!-- computed by COMMAND -->                           not run here: it takes minutes
    <!-- published in SOURCE -->                           values of others
    <!-- no output: WHAT -->                               a layout or a sketch
"""

from __future__ import annotations

import difflib
import doctest
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]

BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>.*?) -->\n)?^```(?P<kind>\w*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
TABLE = re.compile(r"(?:^<!-- (?P<mark>.*?) -->\n\n?)?(?P<rows>(?:^\|.*\n)+)", re.MULTILINE)
INDENTED = re.compile(r"(?<=^\n)    (.+)\n(?:    .*\n){2,}", re.MULTILINE)
"""Output that no fence marks: lines of code between the lines of a list are shorter."""

NUMBER = r"[-−+]?\d[\d\u202f]*(?:\.\d+)?(?:e[-+]\d+)?"

WIDTH = 120
"""Letters of a line of a page."""

CLOSE = 0.02
"""Relative difference of two numbers of a fit that count as equal; or one unit of the last digit."""

ORIGIN = re.compile(
    r"measured on .+, from (?P<page>docs/measured/\S+\.md)"
    r"|computed by (?:python (?P<script>\S+\.py)|elbowroom )\b.*|published in .+|no output: .+"
)
"""Marks of blocks and tables that are not run."""

SOURCE = re.compile(r"fitted|after python tests/\S+\.py .+|file \S+|(?:\S+ written|printed) by elbowroom .+")
"""Marks of blocks that are run, or that are files of commands."""


class Quote(NamedTuple):
    """Quoted output: its place in the page, the output, its command, and the file that has it (or stdout)."""

    start: int
    end: int
    output: str
    command: str
    file: str
    fitted: bool


def pages() -> list[Path]:
    """The pages whose output is compared."""
    every = sorted((ROOT / "docs").rglob("*.md"))
    return [page for page in every if page.parent.name != "measured"]


def quotes(text: str) -> Iterator[Quote]:
    """The commands of a page that are run, in order, and their output, empty where none is quoted."""
    for block in BLOCK.finditer(text):
        mark = block["mark"] or ""
        if ORIGIN.fullmatch(mark):
            continue
        if found := re.fullmatch(r"(?:(\S+) written|printed) by (elbowroom .+)", mark):
            yield Quote(*block.span("body"), block["body"], found[2], found[1] or "", fitted=False)
        elif block["kind"] == "console" and has_output(block["body"]):
            for part in re.finditer(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", block["body"], re.MULTILINE):
                start, end = (block.start("body") + place for place in part.span(2))
                yield Quote(start, end, part[2], part[1].replace("\\\n", " "), "", mark == "fitted")


def has_output(body: str) -> bool:
    """Whether a console block has lines that are not typed."""
    return any(not line.startswith(("$ ", "# ")) for line in body.replace("\\\n", " ").splitlines())


def unmarked(text: str) -> Iterator[str]:
    """First lines of blocks and tables with values of unknown origin, and marks that mean nothing."""
    for block in BLOCK.finditer(text):
        mark, first = block["mark"] or "", block["body"].partition("\n")[0]
        if mark and not ORIGIN.fullmatch(mark) and not SOURCE.fullmatch(mark):
            yield mark
        elif block["kind"] == "" or (block["kind"] in ("text", "json") and not mark):
            yield first
    yield from (found[1] for found in INDENTED.finditer(BLOCK.sub("", text)))
    for table in TABLE.finditer(BLOCK.sub("", text)):
        if is_of_numbers(table["rows"]) and not ORIGIN.fullmatch(table["mark"] or ""):
            yield table["rows"].partition("\n")[0]


def is_of_numbers(rows: str) -> bool:
    """Whether more than half of a table's cells, the first column apart, begin with a number."""
    if " code " in rows.partition("\n")[0].casefold():  # exit codes
        return False
    cells = [cell.strip() for row in rows.splitlines()[2:] for cell in row.strip("|").split("|")[1:]]
    return len([cell for cell in cells if re.match(r"[*~]*[-−+]?\d", cell)]) > len(cells) / 2


def run_quotes(text: str, folder: Path) -> Iterator[tuple[Quote, str]]:
    """Runs the commands of a page in `folder`; each with what it printed or wrote."""
    for name in ("docs", "machines", "plans"):
        (folder / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "tests" / "data" / "quick", folder / "runs" / "RUN")
    for block in BLOCK.finditer(text):
        if found := re.fullmatch(r"file (\S+)", block["mark"] or ""):
            (folder / found[1]).write_text(block["body"], encoding="utf-8")
        if found := re.fullmatch(r"after python (.+)", block["mark"] or ""):
            script, *arguments = shlex.split(found[1])
            subprocess.run([sys.executable, str(ROOT / script), *arguments], cwd=folder, check=True)
    for quote in quotes(text):
        printed = run(quote.command, folder)
        yield quote, (folder / quote.file).read_text(encoding="utf-8") if quote.file else printed
    examples = list(python_quotes(text))
    if examples:
        yield from zip(examples, run_python([quote.command for quote in examples], folder), strict=True)


def python_quotes(text: str) -> Iterator[Quote]:
    """The examples of the pycon blocks of a page, in order."""
    for block in BLOCK.finditer(text):
        if block["kind"] != "pycon":
            continue
        lines = block["body"].splitlines(keepends=True)
        for example in doctest.DocTestParser().get_examples(block["body"]):
            line = example.lineno + example.source.count("\n")
            start = block.start("body") + len("".join(lines[:line]))
            end = start + len("".join(lines[line : line + example.want.count("\n")]))
            yield Quote(start, end, example.want, example.source, "", block["mark"] == "fitted")


SESSION = """
import contextlib, io, json, sys

names = {"__name__": "__main__"}
for source in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        exec(compile(source, "example", "single"), names)
    print(json.dumps(shown.getvalue()))
"""


def run_python(sources: list[str], folder: Path) -> list[str]:
    """What each example of one session prints, in lines as wide as a page."""
    done = subprocess.run(
        [sys.executable, "-c", SESSION],
        cwd=folder,
        env=environment(),
        input=json.dumps(sources),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"quotes: an example fails:\n{done.stderr}")
    return [wrapped(json.loads(line)) for line in done.stdout.splitlines()]


def wrapped(printed: str) -> str:
    """Lines that are longer than those of a page, in several."""
    lines = (textwrap.wrap(line, WIDTH, break_long_words=False) or [""] for line in printed.splitlines())
    return "".join(f"{line}\n" for part in lines for line in part)


def environment() -> dict[str, str]:
    """Of a process that imports elbowroom from here and prints to a terminal of 80 columns."""
    return {"PYTHONPATH": str(ROOT / "src"), **os.environ, "COLUMNS": "80"}


def run(command: str, folder: Path) -> str:
    """What an `elbowroom` command prints on stdout, without a terminal."""
    words = shlex.split(command, comments=True)
    if words[0] != "elbowroom":
        raise SystemExit(f"quotes: only elbowroom is run, not: {command}")
    if words[1] == "run" and "diffusion" not in words:
        words.append("--no-report")  # it takes longer than the rest
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 3, 4):
        raise SystemExit(f"quotes: {command} ends with {done.returncode}:\n{done.stderr}")
    return done.stdout


def differences(output: str, printed: str, *, fitted: bool) -> list[str]:
    """The parts of quoted output, between lines `…` (or ellipses), that were not printed."""
    close, words = CLOSE if fitted else 0.0, words_of(printed)
    parts = re.split(r"^(?:…|\.\.\.)\n", output, flags=re.MULTILINE)
    return [
        part
        for part in parts
        if not contains(words, words_of(part), close)
        and not all(contains(words, words_of(piece), close) for piece in part.split("…"))
    ]


def words_of(text: str) -> list[str]:
    """Numbers, and the words between them, of a text."""
    return re.findall(rf"{NUMBER}|[^\s\d\u202f]+", text)


def contains(printed: list[str], quoted: list[str], close: float) -> bool:
    """Whether the quoted words follow each other somewhere in what was printed."""
    return any(
        all(same(*pair, close) for pair in zip(quoted, printed[start:], strict=False))
        for start in range(len(printed) - len(quoted) + 1)
    )


def same(quoted: str, printed: str, close: float) -> bool:
    """Whether two words are equal, or numbers that differ by a share `close` or a unit of the last digit."""
    if quoted == printed or not close:
        return quoted == printed
    a, b = value_of(quoted), value_of(printed)
    if a is None or b is None:
        return False
    return abs(a[0] - b[0]) <= max(close * abs(a[0]), 1.001 * a[1])


def value_of(word: str) -> tuple[float, float] | None:
    """A number and a unit of its last digit; None for another word."""
    if not re.fullmatch(NUMBER, word):
        return None
    plain = word.replace("\u202f", "").replace("−", "-")
    digits = plain.partition("e")[0].partition(".")[2]
    return float(plain), 10.0 ** -len(digits)


def renewed(output: str, printed: str) -> str:
    """Quoted output as printed now: each part from the line most like its first to that like its last."""
    lines, shown, begin = [line.rstrip() for line in printed.rstrip().splitlines()], [], 0
    quoted = re.split(r"^(?:…|\.\.\.)\n", output, flags=re.MULTILINE)
    for part in quoted:
        old = part.splitlines()
        if old:
            first = likest(old[0], lines, begin, 0.001)
            last = first if len(old) == 1 else likest(old[-1], lines, first + len(old) - 1, 0.05)
            shown.append("".join(f"{line}\n" for line in lines[first : last + 1]))
            begin = last + 1
        else:
            shown.append("")
    return "".join(f"{line}\n" for line in lines) if len(quoted) == 1 else "…\n".join(shown)


def likest(line: str, lines: list[str], expected: int, distance: float) -> int:
    """The line that resembles one most; `distance` is what each line away from the expected place costs."""
    plain, *candidates = (re.sub(NUMBER, "", text) for text in (line, *lines))
    like = [difflib.SequenceMatcher(None, plain, text).ratio() for text in candidates]
    return max(range(len(lines)), key=lambda place: like[place] - distance * abs(place - expected))


def main(arguments: Iterable[str]) -> int:
    """Prints the quotes that differ and returns 1, or writes the pages anew."""
    words = list(arguments)
    update = "--update" in words
    chosen = [Path(word).resolve() for word in words if word != "--update"] or pages()
    status = 0
    for page in chosen:
        text = page.read_text(encoding="utf-8")
        result = text
        with tempfile.TemporaryDirectory() as folder:
            found = sorted(run_quotes(text, Path(folder)), key=lambda pair: pair[0].start, reverse=True)
            for quote, printed in found:
                wrong = differences(quote.output, printed, fitted=quote.fitted)
                if wrong and update:
                    result = result[: quote.start] + renewed(quote.output, printed) + result[quote.end :]
                elif wrong:
                    status = 1
                    print(
                        f"{page.relative_to(ROOT)}: $ {quote.command}", *wrong, "is not in", printed, sep="\n"
                    )
        if result != text:
            page.write_text(result, encoding="utf-8")
            print(f"{page.relative_to(ROOT)}: renewed")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
