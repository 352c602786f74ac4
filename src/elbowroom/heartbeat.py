"""Nothing is silent for long: what takes time says so on stderr.

On a terminal that is one live line, rewritten every second. Elsewhere (a file, a pipe, TERM=dumb) whole lines
are written, PERIOD seconds apart at first and a sixtieth of the time that has passed later on.

One thread writes. It sleeps in between, so that what is measured meanwhile loses some ten microseconds of one
core each second. It is ended while a process is forked (`paused`), and says nothing while another program has
the terminal (`silent`).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator

BEAT = 1.0
"""Seconds between two states of the live line."""
PERIOD = 2.0
"""Seconds between two lines elsewhere, at first."""
GROWTH = 1 / 60
"""Later lines are this share of the time that has passed apart."""
_WIDEST_BAR, _NARROWEST_BAR = 20, 6
_DUMB = ("", "dumb", "unknown")
_CLEAR = "\r\033[K"


class Wait:
    """What somebody waits for, in a `with` block. The innermost one is shown, and all that count."""

    def __init__(self, text: str | Callable[[], str], *, fallback: bool = False) -> None:
        """`text` may be a function, called at each beat. A `fallback` is shown where nothing else is, and
        only on a terminal.
        """
        self._text = text
        self.fallback = fallback
        self.start = time.monotonic()

    def __enter__(self) -> Wait:
        self.start = time.monotonic()
        _LINE.begin(self)
        return self

    def __exit__(self, *_error: object) -> None:
        _LINE.end(self)

    def text(self) -> str:
        """What is said of it now."""
        text = self._text if isinstance(self._text, str) else self._text()
        return f"{text}, {time.monotonic() - self.start:.0f} s"

    def share(self) -> float | None:
        """How much of it is done, 0 to 1; None where that is unknown."""
        return None


def say(sentence: str) -> None:
    """Writes a line on stderr, above the live line."""
    with _LINE.above():
        print(sentence, file=sys.stderr, flush=True)


def clear(*, at_margin: bool = True) -> None:
    """Removes the live line from the terminal, before something else is written there. `at_margin`: whether
    what is written ends its line; otherwise no line is drawn behind it.
    """
    _LINE.clear(at_margin=at_margin)


def draw() -> None:
    """Draws the live line anew, if there is one."""
    _LINE.draw()


def is_due() -> bool:
    """Whether it is time for another line, where lines are written; `spoken` says that there was one."""
    return _LINE.is_due()


def spoken() -> None:
    """A line about what takes long was written by somebody else."""
    _LINE.spoken()


def is_live() -> bool:
    """Whether stderr is a terminal on which a line can be rewritten."""
    return sys.stderr.isatty() and os.environ.get("TERM", "") not in _DUMB


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """No thread runs in the block: a fork copies one thread, but the locks of all."""
    _LINE.stop()
    try:
        yield
    finally:
        _LINE.go_on()


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Nothing is said in the block: the terminal is another program's."""
    _LINE.be_silent(1)
    try:
        yield
    finally:
        _LINE.be_silent(-1)


class _LiveLine:
    """The line of this process, and the thread that writes it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._waits: list[Wait] = []
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()
        self._silent = 0
        self._drawn = self._writing = False
        self._at_margin = True
        self._last_line = self._since = self._last_beat = 0.0

    def begin(self, wait: Wait) -> None:
        with self._lock:
            if all(other.fallback for other in self._waits):
                self._last_line = self._since = time.monotonic()
            if not self._waits:
                self._last_beat = time.monotonic()
            self._waits.append(wait)
            if wait.share() is not None:
                self.draw()
        self.go_on()

    def end(self, wait: Wait) -> None:
        with self._lock:
            self._waits.remove(wait)
            if all(other.fallback for other in self._waits):
                self.clear(at_margin=self._at_margin)
            idle = not self._waits
        if idle:
            self.stop()

    def go_on(self) -> None:
        with self._lock:
            if self._thread is None and self._waits:
                self._ended = threading.Event()
                self._thread = threading.Thread(target=self._run, args=(self._ended,), daemon=True)
                with contextlib.suppress(RuntimeError):  # no thread can be started: nothing is said
                    self._thread.start()

    def stop(self) -> None:
        with self._lock:
            thread, self._thread = self._thread, None
            self._ended.set()
        if thread is not None and thread is not threading.current_thread() and thread.ident is not None:
            thread.join()

    def be_silent(self, more: int) -> None:
        with self._lock:
            self.clear()
            self._silent += more

    def _run(self, ended: threading.Event) -> None:
        # Signals interrupt what the main thread waits for.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        # A thread that was ended for a fork leaves the time of its last beat to the next one.
        while not ended.wait(max(0.0, min(BEAT, PERIOD / 2) - (time.monotonic() - self._last_beat))):
            with self._lock:
                if ended.is_set():
                    return
                self._last_beat = time.monotonic()
                if is_live():
                    self.draw()
                elif not self._silent and self.is_due() and (text := self._text()):
                    self.spoken()
                    self._write(f"{text}\n")

    def is_due(self) -> bool:
        now = time.monotonic()
        return now - self._last_line >= max(PERIOD, GROWTH * (now - self._since))

    def spoken(self) -> None:
        self._last_line = time.monotonic()

    def _text(self) -> str:
        """All that count, and the innermost other one; a fallback alone."""
        shown = [item for item in self._waits if not item.fallback] or [
            item for item in self._waits if sys.stderr.isatty()
        ]
        now = time.monotonic()
        counting = [item for item in shown if item.share() is not None]
        texts = [item.text() for item in counting]
        if shown and shown[-1] not in counting and not (counting and now - shown[-1].start < PERIOD):
            texts.append(shown[-1].text())
        return "; ".join(filter(None, texts))

    def draw(self) -> None:
        with self._lock:
            if self._silent or not self._at_margin or not is_live():
                return
            text = self._text()
            if text:
                shares = [share for item in self._waits if (share := item.share()) is not None]
                self._drawn = True
                self._write(_CLEAR + _fitted(text, shares[-1] if shares else None))

    def clear(self, *, at_margin: bool = True) -> None:
        with self._lock:
            if self._writing:
                return
            if self._drawn:
                self._drawn = False
                self._write(_CLEAR)
            self._at_margin = at_margin

    @contextlib.contextmanager
    def above(self) -> Iterator[None]:
        with self._lock:
            drawn = self._drawn
            self.clear()
            yield
            self.spoken()
            if drawn:
                self.draw()

    def _write(self, text: str) -> None:
        """A stream that calls `clear` before it writes does nothing for what is written here."""
        self._writing = True
        try:
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.write(text)
                sys.stderr.flush()
        finally:
            self._writing = False


def _columns() -> int:
    with contextlib.suppress(OSError, ValueError):
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    return shutil.get_terminal_size().columns


def _fitted(text: str, share: float | None) -> str:
    """A bar and the text, in one line of the terminal: a line that wraps cannot be rewritten."""
    encoding = getattr(sys.stderr, "encoding", None) or "ascii"
    room = _columns() - 1
    plain = text.encode(encoding, "replace").decode(encoding)
    taken = sum(map(_width, plain))
    bar = ""
    if share is not None and (size := min(_WIDEST_BAR, room - taken - 1)) >= _NARROWEST_BAR:
        done = round(size * min(max(share, 0.0), 1.0))
        full, empty = "━─" if _encodes(encoding, "━─") else "#-"
        bar = f"{full * done}{empty * (size - done)} "
    while plain and taken > room:
        taken -= _width(plain[-1])
        plain = plain[:-1]
    return bar + plain


def _encodes(encoding: str, text: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeError:
        return False
    return True


def _width(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


_LINE = _LiveLine()
