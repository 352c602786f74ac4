"""JUnit XML: a test for each node, which fails if it is a suspect, and one for each pair that is; for CI
servers.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from elbowroom.accept.document import AcceptanceDocument, Suspect
from elbowroom.accept.formats import AcceptanceFormat
from elbowroom.quantities import percent

_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to write."""


def _text(document: AcceptanceDocument) -> bytes:
    by_name = {one.name: one for one in document.suspects}
    names = [*document.names, *(one.name for one in document.suspects if one.node is None)]
    suite = ElementTree.Element(
        "testsuite",
        name="elbowroom.accept",
        tests=str(len(names) + 1),
        failures=str(len(by_name) + bool(document.changes)),
        errors="0",
        skipped="0",
    )
    _case(suite, "site", "; ".join(_changed(document)))
    for name in names:
        one = by_name.get(name)
        _case(suite, name, "" if one is None else _sentence(one))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    whole: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return whole + b"\n"


def _case(suite: ElementTree.Element, name: str, fault: str) -> None:
    case = ElementTree.SubElement(
        suite, "testcase", classname="elbowroom.accept", name=_NO_XML.sub("?", name)
    )
    if fault:
        ElementTree.SubElement(case, "failure", message=_NO_XML.sub("?", fault), type="suspect")


def _sentence(one: Suspect) -> str:
    return f"{one.cause}: loses {percent(one.loss)} of {one.quantity}; {one.evidence}"


def _changed(document: AcceptanceDocument) -> list[str]:
    return [
        f"the site loses {percent(one.loss)} of {one.quantity} against its baseline"
        for one in document.changes
    ]


ACCEPTANCEFORMAT = AcceptanceFormat(name="junit", endings=(".xml",), text=_text)
