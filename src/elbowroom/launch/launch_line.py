"""Command lines that start ranks: where the launcher is in them, and how it is told what its ranks get.

LD_PRELOAD of ranks holds paths that the dynamic linker can read, beside what the user preloads already.
"""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from elbowroom.errors import MachineError

NAME = "LD_PRELOAD"
_SEPARATORS = re.compile(r"[\s:]")


def plain_folder(folder: Path) -> Path:
    """`folder`, or a link to it if its path has blanks or colons, which separate libraries in LD_PRELOAD.

    The link is removed when this process ends.
    """
    if not _SEPARATORS.search(str(folder)):
        return folder
    places = (tempfile.gettempdir(), "/tmp", "/var/tmp")
    for place in places:
        if _SEPARATORS.search(place):
            continue
        try:
            temporary = Path(tempfile.mkdtemp(prefix="elbowroom-preload-", dir=place))
        except OSError:
            continue
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        (temporary / "libraries").symlink_to(folder.resolve(), target_is_directory=True)
        return temporary / "libraries"
    raise MachineError(
        "has a blank or a colon, and so has every folder for temporary files: LD_PRELOAD takes neither",
        field="libraries",
        value=str(folder),
        hint="set TMPDIR to a folder without them",
    )


def joined(*lists: str | None) -> str:
    """Values of LD_PRELOAD, one behind the other."""
    return ":".join(text for text in lists if text)


def with_theirs(words: Sequence[str], own: str) -> tuple[list[str], list[bool]]:
    """The words of a launcher's command with `own` added to the options that set LD_PRELOAD.

    Such options are `-x` of Open MPI, `-env` and `-genv` of MPICH; `env LD_PRELOAD=...` in front of the
    program sets it as well. The second value says for each program of the job (separated by `:`) whether it
    had such an option.
    """
    changed, had = list(words), [False]
    for place, word in enumerate(words):
        if word == ":":
            had.append(False)
        previous = words[place - 1] if place else ""
        if previous in ("-x", "--x") and re.match(rf"{NAME}(=|$)", word):
            changed[place] = f"{NAME}={joined(own, word.partition('=')[2])}"
            had[-1] = True
        elif place > 1 and previous == NAME and words[place - 2].lstrip("-") in ("env", "genv"):
            changed[place] = joined(own, word)
            had[-1] = True
    return changed_by_env(changed, own), had


def changed_by_env(words: Sequence[str], own: str) -> list[str]:
    """The words of a command with `own` in front of what `env` preloads."""
    changed, by_env = list(words), False
    for place, word in enumerate(words):
        if by_env and word.startswith(f"{NAME}="):
            changed[place] = f"{NAME}={joined(own, word.partition('=')[2])}"
        option = word.startswith("-") or _assigns(word) or words[place - 1] in WRAPPERS["env"].valued
        by_env = Path(word).name == "env" or (by_env and option)
    return changed


LAUNCHERS = ("mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "srun", "flux")
DIRECT = ("srun", "flux")
"""Launchers that give ranks their own environment, and belong to no MPI."""

SUFFIXES = ("", ".openmpi", ".mpich")

_HOSTS = ("H", "host", "hosts", "hostfile", "machinefile", "f", "default-hostfile")
"""Options by which a launcher of MPI takes hosts, without dashes."""


def names_hosts(words: Sequence[str]) -> bool:
    """Whether a command starts processes on the hosts that its own options name."""
    place = launcher_of(words)
    return place is not None and any(
        word.startswith("-") and word.lstrip("-").partition("=")[0] in _HOSTS for word in words[place + 1 :]
    )


class Wrapper(NamedTuple):
    """A program that runs another command (env, timeout).

    `valued`: options whose value is the next word; `words`: how many words stand between the options and the
    command.
    """

    valued: tuple[str, ...] = ()
    words: int = 0


WRAPPERS = {
    "env": Wrapper(("-u", "--unset", "-C", "--chdir")),
    "time": Wrapper(("-o", "-f", "--output", "--format")),
    "timeout": Wrapper(("-k", "-s", "--kill-after", "--signal"), 1),
    "numactl": Wrapper(("-i", "-N", "-m", "-C", "-p", "-P", "-w")),
    "taskset": Wrapper((), 1),
    "nice": Wrapper(("-n", "--adjustment")),
    "ionice": Wrapper(("-c", "-n", "--class", "--classdata")),
    "chrt": Wrapper(("-T", "-P", "-D"), 1),
    "stdbuf": Wrapper(("-i", "-o", "-e")),
    "nohup": Wrapper(),
    "setsid": Wrapper(),
    "sudo": Wrapper(("-u", "-g", "-D")),
    "strace": Wrapper(("-e", "-o", "-p", "-s")),
}


DEBUGGERS = frozenset(
    {
        "gdb",
        "cuda-gdb",
        "gdb-oneapi",
        "rocgdb",
        "lldb",
        "rr",
        "ddt",
        "totalview",
        "valgrind",
        "strace",
        "ltrace",
    }
)
"""Programs that stop or slow down the one that they run."""


def debugger_of(words: Sequence[str]) -> str | None:
    """The debugger in a command: around the launcher, or around each rank; None without one."""
    names = (Path(word).name for word in words if shutil.which(word) is not None)
    return next((name for name in names if name in DEBUGGERS), None)


def launcher_of(words: Sequence[str]) -> int | None:
    """The index of the MPI launcher in the words of a command; None if there is none.

    It is the command itself, or follows programs that run another one (env, timeout, numactl ...).
    """
    place = 0
    while place < len(words):
        name = Path(words[place]).name
        if any(name == known + suffix for known in LAUNCHERS for suffix in SUFFIXES):
            return place
        if name not in WRAPPERS:
            return None
        place = _behind(words, place + 1, WRAPPERS[name])
    return None


def _behind(words: Sequence[str], place: int, wrapper: Wrapper) -> int:
    """Where the command behind the options of a wrapper begins."""
    while place < len(words) and (words[place].startswith("-") or _assigns(words[place])):
        place += 2 if words[place] in wrapper.valued else 1
        if words[place - 1] == "--":
            break
    return place + wrapper.words


def _assigns(word: str) -> bool:
    """`NAME=VALUE`, as env takes."""
    name, equals, _ = word.partition("=")
    return bool(equals) and name.isidentifier()


def forwarded(
    words: Sequence[str], place: int, kind: str | None, variables: Mapping[str, str]
) -> tuple[str, ...]:
    """The command with the launcher's options that set these variables for its ranks, on every host.

    Open MPI takes them for each program of the job (separated by `:`), MPICH once for all. Libraries that the
    command preloads itself come after ours.
    """
    own = variables.get(NAME)
    behind, had = list(words[place + 1 :]), [False] * (1 + list(words[place + 1 :]).count(":"))
    if own is not None:
        behind, had = with_theirs(behind, own)
    if kind == "mpich":
        options = [part for name, value in variables.items() for part in ("-genv", name, value)]
        return (*words[: place + 1], *options, *behind)
    command = [*words[: place + 1], *_exports(variables, without_preload=had.pop(0))]
    for word in behind:
        command += [word, *_exports(variables, without_preload=had.pop(0))] if word == ":" else [word]
    return tuple(command)


def _exports(variables: Mapping[str, str], *, without_preload: bool) -> list[str]:
    kept = {name: value for name, value in variables.items() if name != NAME or not without_preload}
    return [part for name, value in kept.items() for part in ("-x", f"{name}={value}")]
