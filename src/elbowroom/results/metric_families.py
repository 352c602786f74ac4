"""Samples by family as OpenMetrics 1.0 text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

Sample = tuple[str, Mapping[str, object], float]


class MetricFamilies:
    """Samples by family, in the order of their first sample; the format wants each family in one piece."""

    def __init__(self) -> None:
        self._heads: dict[str, tuple[str, str, str]] = {}
        self._samples: dict[str, list[Sample]] = {}

    def add(
        self,
        family: str,
        kind: str,
        unit: str,
        text: str,
        labels: Mapping[str, object],
        value: float,
        end: str = "",
    ) -> None:
        """Adds a sample of a family; `end`: what its name ends with beyond the family's."""
        self._heads.setdefault(family, (kind, unit, text))
        self._samples.setdefault(family, []).append((family + end, labels, value))

    def lines(self) -> Iterator[str]:
        """The text, line by line, with the mark of its end."""
        for family, (kind, unit, text) in self._heads.items():
            yield f"# TYPE {family} {kind}"
            if unit:
                yield f"# UNIT {family} {unit}"
            yield f"# HELP {family} {_escaped(text)}"
            for name, labels, value in self._samples[family]:
                inside = ",".join(f'{key}="{_escaped(str(label))}"' for key, label in labels.items())
                yield f"{name}{{{inside}}} {value:.10g}" if inside else f"{name} {value:.10g}"
        yield "# EOF"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
