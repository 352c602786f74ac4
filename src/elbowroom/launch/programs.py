"""Sessions with the programs of apps/, which are started with their settings in a file."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable

import msgspec

from elbowroom.launch.launcher import Launch
from elbowroom.launch.mpi import Mpi
from elbowroom.launch.session import Session
from elbowroom.plan.workload import Startup


class ProgramSession(Session):
    """A live program. Its settings are in a temporary file while it runs."""

    def __init__(self, launch: Callable[[str], Launch], startup: Startup, mpi: Mpi) -> None:
        """`launch` returns the command line for the path of the settings."""
        self.what = startup.name
        handle, self._config = tempfile.mkstemp(prefix=f"{self.what}-", suffix=".json")
        try:
            with open(handle, "wb") as file:
                file.write(msgspec.json.encode(startup.settings))
            super().__init__(launch(self._config), ranks=startup.ranks, mpi=mpi, patience=startup.patience)
        except BaseException:
            self._remove_settings()
            raise

    def close(self) -> None:
        """Ends the program and removes its settings."""
        super().close()
        self._remove_settings()

    def _remove_settings(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._config)
