"""One probe kept up between the rounds of a run that decides what to measure next."""

from __future__ import annotations

from typing import Any

from elbowroom.launch.session import Conversation, SessionLost
from elbowroom.measure.source import Source
from elbowroom.plan.point import Unit


class _Lent:
    """A conversation that stays open when its user closes it, unless the probe was lost."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self.hello = conversation.hello
        self.lost = False

    def ask(self, unit: Unit, request: dict[str, Any], patience: float) -> dict[str, Any]:
        """The probe's answer."""
        try:
            return self._conversation.ask(unit, request, patience)
        except SessionLost:
            self.lost = True
            raise

    def close(self) -> None:
        """Only a lost probe ends."""
        if self.lost:
            self.end()

    def end(self) -> None:
        """Ends the probe."""
        self._conversation.close()


class Keeper:
    """Keeps one probe up from choice to choice: starting MPI takes longer than measuring a repetition."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._kind: tuple[int, bool, bool] | None = None
        self._lent: _Lent | None = None

    def open(self, ranks: int, share_core: bool, several_threads: bool) -> Conversation:
        """The probe that is up where it is of that kind; a second, idle one would poll beside it."""
        kind = (ranks, share_core, several_threads)
        if self._lent is None or self._lent.lost or self._kind != kind:
            self.close()
            self._lent, self._kind = _Lent(self._source.open(*kind)), kind
        return self._lent

    def close(self) -> None:
        """Ends the probe."""
        if self._lent is not None and not self._lent.lost:
            self._lent.end()
        self._lent = None
