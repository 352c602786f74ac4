"""Options of `diagnose` that measure changed launch lines, or look at the line without running it."""

from __future__ import annotations

from elbowroom.verbs.declaration import Options, option


class TrialOptions(Options):
    """What `diagnose` tries by itself. `try_lines`: None for programs shorter than 10 s."""

    try_lines: bool | None = option(
        "Measure changed launch lines and library settings; default: if a run takes less than 10 s.",
        spelled="--try/--no-try",
        type=bool,
        is_flag=True,
    )
    copy_dir: bool = option("Run each trial in a copy of the working directory.")
    lint: bool = option("Run nothing: say what is wrong with the launch line on this machine.")
