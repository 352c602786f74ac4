"""Programs of apps/ that answer as the probe does: started with their settings in a file."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from typing import Any

import msgspec

from elbowroom.launch.launchers import Launch
from elbowroom.launch.mpi import Mpi
from elbowroom.launch.session import Session
from elbowroom.plan.point import Point

START_UP = 120.0
"""Seconds that a program may take before it says hello: it makes and distributes matrices first."""


class ProgramSession(Session):
    """A live program; its settings are in a file of its own while it runs."""

    def __init__(self, launch: Callable[[str], Launch], point: Point, mpi: Mpi) -> None:
        """`launch` gives the command line for the path of the settings; `point` is one of its points."""
        assert point.program is not None
        self.what = point.program.name
        handle, self._config = tempfile.mkstemp(prefix=f"{self.what}-", suffix=".json")
        try:
            with open(handle, "wb") as file:
                file.write(msgspec.json.encode(settings(point)))
            super().__init__(launch(self._config), ranks=point.program.ranks, mpi=mpi, patience=START_UP)
        except BaseException:
            self._forget()
            raise

    def close(self) -> None:
        """Ends the program as any session, and removes its settings."""
        super().close()
        self._forget()

    def _forget(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._config)


def settings(point: Point) -> dict[str, Any]:
    """What a program is started with: itself, where its processes compute and communicate, and whether two
    threads on one core are wanted.
    """
    assert point.program is not None
    computing = [core for place in point.placements for core in place.comp_cores]
    return {
        "program": msgspec.to_builtins(point.program),
        "comp_cores": list(point.comp_cores),
        "comm_cores": list(point.comm_cores or (point.comm_core,)),
        "peer_cores": list(point.peer_cores),
        "comp_node": point.comp_node,
        "comm_node": point.comm_node,
        "placements": [msgspec.to_builtins(place) for place in point.placements],
        "scheduling": point.scheduling or len(set(computing)) < len(computing),
    }


def started_alike(point: Point) -> tuple[object, ...]:
    """Equal for points that one start of a program answers."""
    return (
        point.program,
        point.comp_cores,
        point.comm_cores,
        point.peer_cores,
        point.placements,
        point.comp_node,
        point.comm_node,
    )
