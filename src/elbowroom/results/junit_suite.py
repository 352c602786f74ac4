"""A suite of tests as JUnit XML, for CI servers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree

_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to write."""


class JunitSuite:
    """Tests in the order in which they are added. `attributes` and `properties`: of the suite."""

    def __init__(self, name: str, *, properties: Mapping[str, str], **attributes: str) -> None:
        self._suite = ElementTree.Element("testsuite", name=_clean(name))
        for attribute, value in attributes.items():
            self._suite.set(attribute, _clean(value))
        inside = ElementTree.SubElement(self._suite, "properties")
        for key, value in properties.items():
            ElementTree.SubElement(inside, "property", name=key, value=_clean(value))

    def add(self, name: str, *, printed: str = "") -> ElementTree.Element:
        """A test that passed, until it gets an outcome; `printed`: its output."""
        case = ElementTree.SubElement(
            self._suite, "testcase", classname=self._suite.get("name", ""), name=_clean(name)
        )
        if printed:
            ElementTree.SubElement(case, "system-out").text = _clean(printed)
        return case

    def document(self) -> bytes:
        """The file, with the numbers of tests by outcome."""
        for attribute, tag in (
            ("tests", "testcase"),
            ("failures", "failure"),
            ("errors", "error"),
            ("skipped", "skipped"),
        ):
            self._suite.set(attribute, str(len(list(self._suite.iter(tag)))))
        root = ElementTree.Element("testsuites")
        root.append(self._suite)
        ElementTree.indent(root)
        whole: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
        return whole + b"\n"


def set_outcome(case: ElementTree.Element, tag: str, message: str, *, kind: str = "", text: str = "") -> None:
    """`failure`, `error` or `skipped`, first of what the test has; `kind`: its type."""
    outcome = ElementTree.Element(tag, message=_clean(message))
    if kind:
        outcome.set("type", kind)
    outcome.text = _clean(text) or None
    case.insert(0, outcome)


def _clean(text: str) -> str:
    return _NO_XML.sub("?", text)
