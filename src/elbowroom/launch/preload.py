"""LD_PRELOAD of ranks: paths that the dynamic linker can read, beside what the user preloads already."""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

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

    Such options are `-x` of Open MPI, `-env` and `-genv` of MPICH. The second value says for each program of
    the job (separated by `:`) whether it had such an option.
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
    return changed, had
