"""JUnit XML: a test for each node, which fails if it is a suspect and is an error if it was lost, and one for
each pair that is a suspect; for CI servers.
"""

from __future__ import annotations

from elbowroom.accept.document import AcceptanceDocument, Suspect
from elbowroom.accept.formats import AcceptanceFormat
from elbowroom.quantities import percent
from elbowroom.results.junit_suite import JunitSuite, set_outcome


def _text(document: AcceptanceDocument) -> bytes:
    missing = {one.name: one.why for one in document.missing}
    by_name = {one.name: one for one in document.suspects}
    names = [*document.names, *(one.name for one in document.suspects if one.node is None)]
    suite = JunitSuite("elbowroom.accept", properties={"site": document.site, "verdict": document.verdict})
    site = suite.add("site")
    if document.changes:
        set_outcome(site, "failure", "; ".join(_changed(document)), kind="suspect")
    for name in names:
        case = suite.add(name)
        if name in by_name:
            set_outcome(case, "failure", _sentence(by_name[name]), kind="suspect")
        elif name in missing:
            set_outcome(case, "error", missing[name], kind="lost")
    return suite.document()


def _sentence(one: Suspect) -> str:
    return f"{one.cause}: loses {percent(one.loss)} of {one.quantity}; {one.evidence}"


def _changed(document: AcceptanceDocument) -> list[str]:
    return [
        f"the site loses {percent(one.loss)} of {one.quantity} against its baseline"
        for one in document.changes
    ]


ACCEPTANCEFORMAT = AcceptanceFormat(name="junit", endings=(".xml",), text=_text)
