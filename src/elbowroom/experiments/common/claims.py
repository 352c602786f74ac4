"""Claims of papers, and what the results say of them: one form for all experiments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from elbowroom.experiments.common.sentences import Values
from elbowroom.results.judgement import Judgement
from elbowroom.results.result import Finding

Level = Literal["quiet", "interference", "n/a", "note"]


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A claim of a paper. `statement` completes `that ...`; `why` is the reason of the judgement, if it needs
    one; `paper` is what the paper measured.
    """

    statement: str
    judgement: Judgement
    why: str = ""
    paper: str = ""

    @property
    def text(self) -> str:
        """`The claim that ... is confirmed here. The paper: ...`"""
        verb = "was" if self.judgement == "not tested" else "is"
        why = f": {self.why}" if self.why else ""
        paper = f" The paper: {self.paper}." if self.paper else ""
        return f"The claim that {self.statement} {verb} {self.judgement} here{why}.{paper}"

    def finding(
        self,
        key: str,
        *,
        before: str = "",
        after: str = "",
        values: Values | None = None,
        points: Iterable[str] = (),
        shows_interference: bool = False,
    ) -> Finding:
        """The claim as a finding, between the texts `before` and `after`; `verdict` is among its values. With
        `shows_interference`, a confirmed claim is interference and a refuted one quiet.
        """
        level: Level = "n/a" if self.judgement == "not tested" else "note"
        if shows_interference and self.judgement == "confirmed":
            level = "interference"
        elif shows_interference and self.judgement == "refuted":
            level = "quiet"
        text = self.text[:1].lower() + self.text[1:] if before.endswith(":") else self.text
        text = " ".join(part for part in (before, text, after) if part)
        verdict: Values = {"verdict": self.judgement}
        return Finding(key=key, level=level, text=text, values=verdict | (values or {}), points=tuple(points))
