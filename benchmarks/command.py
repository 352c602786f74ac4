"""The command line that all benchmarks share."""

from __future__ import annotations

import argparse
import atexit
import os
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

__all__ = ["Command", "run_in_real_time", "status"]


class Command(argparse.ArgumentParser):
    """A parser with `--smoke`: the arguments `smoke` make the benchmark run in seconds.

    They come before those of the command line, which win. `{folder}` in them is a new temporary folder.
    """

    def __init__(self, document: str | None, smoke: str, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(description=document, **options)
        self._smoke = smoke
        self.add_argument(
            "--smoke",
            action="store_true",
            help="tiny sizes, to show that the benchmark works; a missed goal is not a failure",
        )

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:
        """The options; those of `--smoke` included where it is given."""
        words = list(sys.argv[1:] if args is None else args)
        if "--smoke" in words:
            folder = _scratch() if "{folder}" in self._smoke else ""
            words.remove("--smoke")
            words = ["--smoke", *shlex.split(self._smoke.replace("{folder}", folder)), *words]
        # What a benchmark set up outside of its own process (hosts, control groups) goes when it is ended.
        signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
        return super().parse_args(words, namespace)


def _scratch() -> str:
    """A folder that goes when the benchmark ends."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def run_in_real_time() -> None:
    """Gives this program, and all that it starts, a real-time priority: other programs get 5 % of its cores,
    which is what the kernel leaves them. Needs root.
    """
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(10))


def status(options: argparse.Namespace, missed: object) -> int:
    """The exit code: 1 where a goal is missed, unless figures mean nothing (`--smoke`)."""
    return int(bool(missed) and not options.smoke)
