"""Standard output and standard error: JSON, text and tables of 80 columns, on any terminal."""

from __future__ import annotations

import codecs
import io
import os
import sys
import textwrap
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from elbowroom import heartbeat
from elbowroom.errors import MachineError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_PLAIN = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212\u2500\u2501", "-"),
        **dict.fromkeys("\u2018\u2019", "'"),
        **dict.fromkeys("\u201c\u201d", '"'),
        "\u00b1": "+-",
        "\u00b5": "u",
        "\u03bc": "u",
        "\u00b7": ".",
        "\u00d7": "x",
        "\u2022": "*",
        "\u2190": "<-",
        "\u2192": "->",
        "\u2264": "<=",
        "\u2265": ">=",
        "\u2502": "|",
        "\u251c": "|",
        "\u2514": "`",
    }
)
"""What stands for characters that an encoding lacks and that Unicode does not decompose to ASCII."""

_HANDLER = "elbowroom.plain"
_ASCII = "elbowroom_ascii"
"""ASCII by another name: click takes a stream of that encoding for a mistake, and writes UTF-8 to it."""


def print_json(value: Any) -> None:
    """One object, indented, on stdout."""
    import msgspec  # slow to load, and nothing that --help needs

    plain = msgspec.to_builtins(value)
    if "schema" in plain:
        plain = {"schema": plain["schema"], "version": plain["version"]} | plain
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(plain), indent=1) + b"\n")
    sys.stdout.buffer.flush()


def chatter(sentence: str) -> None:
    """Tells the person who waits, on stderr."""
    heartbeat.say(sentence)


def prepare() -> None:
    """Makes text that a terminal cannot show plainer instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_HANDLER)


def open_streams() -> None:
    """For a process of its own: opens file descriptors 0 to 2 where they are closed, so that no result file
    becomes one of them. A stderr that fails (closed, full, reader gone) costs messages only, never a run.

    Raises MachineError where stdout is closed: there is nowhere to write the answer.
    """
    closed = [number for number in (0, 1, 2) if not _is_open(number)]
    for number in closed:
        handle = os.open(os.devnull, os.O_RDWR)
        if handle != number:
            os.dup2(handle, number)
            os.close(handle)
    before = sys.stdout, sys.stderr
    raw = io.BufferedWriter(_Stdout(1, "wb", closefd=False))
    sys.stdout = _text(raw, before[0], line_buffering=os.isatty(1))
    sys.stderr = _text(_Stderr(2, "wb", closefd=False), before[1], write_through=True)
    if 1 in closed:
        raise MachineError("is closed", field="stdout", hint="redirect it to a file or to /dev/null")


def discard_stdout() -> None:
    """What stdout still holds goes nowhere: the interpreter must not complain at its end."""
    with suppress(OSError, ValueError):
        handle = os.open(os.devnull, os.O_WRONLY)
        os.dup2(handle, sys.stdout.fileno())
        os.close(handle)


class StdoutError(OSError):
    """Standard output took no more."""


class _Stdout(io.FileIO):
    """Standard output, whose failures are told apart from those of files."""

    def write(self, data: Any, /) -> int:
        """io.FileIO's."""
        if self.isatty():
            heartbeat.clear(at_margin=bytes(data[-1:]) == b"\n")
        try:
            return super().write(data) or 0
        except BrokenPipeError:
            raise
        except OSError as error:
            raise StdoutError(error.errno, error.strerror) from error


class _Stderr(io.FileIO):
    """Standard error, whose failures are ignored."""

    def write(self, data: Any, /) -> int:
        """io.FileIO's; data that cannot be written is dropped."""
        heartbeat.clear(at_margin=bytes(data[-1:]) == b"\n")
        try:
            return super().write(data) or 0
        except OSError:
            return len(data)


def _text(raw: Any, before: Any, **options: Any) -> io.TextIOWrapper:
    encoding = getattr(before, "encoding", None) or "utf-8"
    if codecs.lookup(encoding).name == "ascii":
        encoding = _ASCII
    return io.TextIOWrapper(raw, encoding=encoding, errors=_HANDLER, **options)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _plainer(error: UnicodeError) -> tuple[str, int]:
    """An error handler of codecs: characters in ASCII that mean the same."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_plain(letter) for letter in error.object[error.start : error.end]), error.end


def _plain(letter: str) -> str:
    plain = unicodedata.normalize("NFKD", letter.translate(_PLAIN)).encode("ascii", "ignore").decode()
    return plain or "?"


def _ascii(name: str) -> codecs.CodecInfo | None:
    if name != _ASCII:
        return None
    known = codecs.lookup("ascii")
    encoder, decoder = known.incrementalencoder, known.incrementaldecoder
    return codecs.CodecInfo(*known, incrementalencoder=encoder, incrementaldecoder=decoder, name=_ASCII)


codecs.register(_ascii)
codecs.register_error(_HANDLER, _plainer)

WIDTH = 80
"""Columns of text, but on a narrower terminal."""
NARROWEST = 20


def screen_width() -> int:
    """Columns of what stdout is: those of a narrow terminal, 80 of anything else."""
    try:
        columns = os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        return WIDTH
    return max(NARROWEST, min(WIDTH, columns)) if columns else WIDTH


def console() -> Console:
    """Writes to stdout, as wide as the terminal but at most 80 columns."""
    from rich.console import Console  # slow to load, and nothing that --json or --help needs

    return Console(file=sys.stdout, width=screen_width(), highlight=False, soft_wrap=False)


def print_wrapped(text: str, indent: str = "", style: str = "") -> None:
    """Prints text on stdout, wrapped to the width of the console."""
    lines = textwrap.wrap(text, screen_width() - len(indent), break_long_words=False, break_on_hyphens=False)
    for line in lines or [""]:
        console().print(styled(indent + line, style), soft_wrap=True)


def print_all(sentences: Iterable[str], indent: str = "", style: str = "") -> None:
    """Prints sentences as print_wrapped does, each on lines of its own."""
    for sentence in sentences:
        print_wrapped(sentence, indent, style)


def print_list(items: Iterable[str], indent: str = "") -> None:
    """Prints items with a dash before each."""
    print_all((f"- {item}" for item in items), indent)


def styled(text: str, style: str = "") -> Text:
    """Text in a style: `bold`, `red`."""
    from rich.text import Text  # slow to load, as above

    return Text(text, style=style)
