"""OpenMetrics 1.0 text: the number of suspects, what each loses, and the median of each quantity."""

from __future__ import annotations

from elbowroom.accept.document import AcceptanceDocument
from elbowroom.accept.formats import AcceptanceFormat
from elbowroom.results.metric_families import MetricFamilies


def _text(document: AcceptanceDocument) -> bytes:
    families = MetricFamilies()
    site = {"site": document.site}
    families.add("elbowroom_site", "info", "", "The site that the samples are of.", site, 1, "_info")
    families.add("elbowroom_nodes", "gauge", "", "Nodes that were examined.", {}, document.nodes)
    count = len(document.suspects)
    families.add("elbowroom_suspects", "gauge", "", "Nodes and pairs that are suspected.", {}, count)
    lost = len(document.missing)
    families.add("elbowroom_lost", "gauge", "", "Nodes that could not be measured to the end.", {}, lost)
    for one in document.suspects:
        labels = {"node": one.name, "quantity": one.quantity, "cause": one.cause}
        families.add(
            "elbowroom_suspect_loss_ratio", "gauge", "ratio", "What a suspect loses.", labels, one.loss
        )
    for level in document.levels:
        labels = {"quantity": level.quantity, "unit": level.unit}
        families.add(
            "elbowroom_site_median", "gauge", "", "Median over the nodes of the site.", labels, level.median
        )
    return "\n".join([*families.lines(), ""]).encode()


ACCEPTANCEFORMAT = AcceptanceFormat(name="openmetrics", endings=(".prom", ".om", ".txt"), text=_text)
