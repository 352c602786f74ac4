"""hwloc's XML as elements: parsed without trust in its author, and written again for hwloc 2. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from elbowroom.errors import UsageError
from elbowroom.files import read_document

LARGEST = 64 << 20
"""Bytes of the largest topology that is read; one of 10,000 processing units has about 10 MiB."""

DEEPEST = 200
"""Elements inside one another: the deepest topologies have some 30 levels."""

HIGHEST = 1_000_000
"""The largest number of a processing unit or node."""

NUMBERED = ("PU", "Core", "Package", "Socket", "NUMANode", "Node")
"""Types of which the numbers matter, by their names of all versions."""

LONGEST_SET = HIGHEST // 32 * 11
"""Characters of a set of as many bits."""

SET = re.compile(r"(0xf\.\.\.f|0x[0-9a-fA-F]{1,8})?(,(0x[0-9a-fA-F]{1,8})?)*")
"""hwloc's bitmap: words of 32 bits, the highest first; empty ones are zero."""

HINT = "write it again: lstopo --of xml FILE.xml"
V2_HINT = "export it for hwloc 2: lstopo -i OLD.xml --of xml --export-xml-flags v2 NEW.xml"

_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n'
_DEVICES_OF_3 = ((0x3, "0"), (0x20, "3"), (0x10, "2"), (0x40, "4"), (0x8, "5"), (0x4, "1"))
"""Bits of hwloc 3's osdev_type (storage or memory, OpenFabrics, network, DMA, coprocessor, GPU) and hwloc 2's
number, in the order of hwloc 3's own export for hwloc 2.
"""
_OF_2 = ("object", "distances2", "distances2hetero", "support", "memattr", "cpukind")
"""What hwloc 2 knows beside each other in a topology."""

_HOPS, _LATENCY = 1 << 5, 1 << 2
"""Kinds of distances: hwloc 3 tells numbers of hops from latencies, hwloc 2 does not."""


class Element:
    """An XML element that knows its line and its parent."""

    def __init__(self, tag: str, attributes: dict[str, str], line: int, parent: Element | None) -> None:
        self.tag = tag
        self.attributes = attributes
        self.line = line
        self.parent = parent
        self.children: list[Element] = []
        self.text = ""

    @property
    def type(self) -> str:
        """Of an object: Package, Core, NUMANode and so on."""
        return self.attributes.get("type", "")

    def info(self, name: str) -> str | None:
        """The value of hwloc's `<info>` of that name."""
        for child in self.children:
            if child.tag == "info" and child.attributes.get("name") == name:
                return child.attributes.get("value")
        return None

    def walk(self) -> Iterator[Element]:
        """This object and all below it, in hwloc's logical order."""
        yield self
        for child in self.children:
            if child.tag == "object":
                yield from child.walk()

    def ancestors(self) -> Iterator[Element]:
        """From the parent up."""
        above = self.parent
        while above is not None:
            yield above
            above = above.parent

    def inside(self, kind: str) -> Element | None:
        """The nearest object of a type around this one."""
        return next((above for above in self.ancestors() if above.type == kind), None)


class HwlocDocument(NamedTuple):
    """A parsed topology, what errors call it, and the hint that they give. `from_file`: its lines are those
    of the file that errors name.
    """

    name: str
    root: Element
    hint: str = HINT
    from_file: bool = True

    @property
    def version(self) -> str:
        """Of the format; hwloc 1 does not always write it."""
        return self.root.attributes.get("version", "1")

    def error(self, message: str, element: Element | None = None) -> UsageError:
        """One that names the file, the line and the hint."""
        where = f"line {element.line}: " if element is not None and self.from_file else ""
        return UsageError(f"{where}{message}", field="topology", value=self.name, hint=self.hint)


def parse_topology(source: Path | str) -> HwlocDocument:
    """The elements of a topology of any version; a file, or the text itself when it starts with `<`.

    UsageError where it cannot be read, is not XML, or is other XML.
    """
    if isinstance(source, str) and source.lstrip().startswith("<"):
        return parse_xml("(text)", source.encode())
    data = read_document(Path(source), field="topology", hint=HINT, limit=LARGEST)
    return parse_xml(str(source), data)


def parse_xml(name: str, text: bytes) -> HwlocDocument:
    """The same of bytes; `name` is what errors call them."""
    # Of a file that breaks off, the version is known all the same.
    hint = V2_HINT if re.search(rb"<topology\s[^<>]*version=[\"']3", text[:4096]) else HINT
    parser = expat.ParserCreate()
    root: list[Element] = []
    open_elements: list[Element] = []

    def refuse(message: str) -> UsageError:
        where = f"line {parser.CurrentLineNumber}: "
        return UsageError(where + message, field="topology", value=name, hint=hint)

    def start(tag: str, attributes: dict[str, str]) -> None:
        if len(open_elements) >= DEEPEST:
            raise refuse(f"more than {DEEPEST} nested elements are not a valid topology")
        parent = open_elements[-1] if open_elements else None
        element = Element(tag, attributes, parser.CurrentLineNumber, parent)
        (parent.children if parent else root).append(element)
        open_elements.append(element)

    def end(_tag: str) -> None:
        open_elements.pop()

    def characters(content: str) -> None:
        open_elements[-1].text += content

    def entity(*_: object) -> None:
        # Entities can stand for gigabytes, and hwloc writes none.
        raise refuse("declares entities, which a topology never has")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    parser.EntityDeclHandler = entity
    parser.buffer_text = True
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        packed = text.startswith(b"\x1f\x8b")
        what = "compressed; unpack it with gunzip" if packed else expat.ErrorString(error.code)
        raise UsageError(
            f"line {error.lineno}: not XML ({what})", field="topology", value=name, hint=hint
        ) from error
    except (LookupError, ValueError) as error:  # of the encoding
        raise refuse(f"not XML ({error})") from error
    document = HwlocDocument(name, root[0], hint)
    if root[0].tag not in ("topology", "root"):
        raise document.error(f"this is <{root[0].tag}>, not hwloc's <topology>", root[0])
    return document


def check_numbers(document: HwlocDocument) -> None:
    """UsageError for numbers and sets of bits that no machine has: on some, libhwloc loops."""
    elements = [document.root]
    while elements:
        element = elements.pop()
        elements += element.children
        for name, text in element.attributes.items():
            if (
                name == "os_index"
                and element.type in NUMBERED
                and not (text.isascii() and text.isdecimal() and int(text) <= HIGHEST)
            ):
                message = f"{element.type} has {name} {text!r}, not a number up to {HIGHEST}"
                raise document.error(message, element)
            if name.endswith(("cpuset", "nodeset")) and not (
                len(text) <= LONGEST_SET and SET.fullmatch(text)
            ):
                shown = text if len(text) < 40 else f"{text[:40]}..."
                raise document.error(f"{element.type} has {name} {shown!r}, not a set of bits", element)


def text_for_hwloc2(document: HwlocDocument) -> str:
    """The topology as XML that hwloc 2 reads: of version 3, what differs is rewritten."""
    if document.version.split(".")[0] == "3":
        _rewrite_version_3(document.root)
    lines = [_HEAD]
    _write(document.root, lines)
    return "".join(lines)


def _rewrite_version_3(root: Element) -> None:
    """hwloc 3 keeps facts of the whole machine beside it, numbers devices by bits, and knows hops."""
    root.attributes["version"] = "2.0"
    top = next((child for child in root.children if child.tag == "object"), None)
    if top is not None:
        top.children[:0] = [child for child in root.children if child.tag == "info"]
        root.children = [child for child in root.children if child.tag in _OF_2]
    elements = [root]
    while elements:
        element = elements.pop()
        elements += element.children
        element.attributes.pop("id", None)
        bits = element.attributes.get("osdev_type", "")
        if bits.isdecimal():
            kinds = (number for mask, number in _DEVICES_OF_3 if int(bits) & mask)
            element.attributes["osdev_type"] = next(kinds, "0")
        kind = element.attributes.get("kind", "")
        if element.tag.startswith("distances2") and kind.isdecimal() and int(kind) & _HOPS:
            element.attributes["kind"] = str(int(kind) & ~_HOPS | _LATENCY)


def _write(element: Element, lines: list[str]) -> None:
    """An element a line and double quotes, which hwloc's own parser needs where it has no libxml2."""
    values = "".join(f" {name}={_quoted(value)}" for name, value in element.attributes.items())
    content = escape(element.text) if element.text.strip() else ""
    if not content and not element.children:
        lines.append(f"<{element.tag}{values}/>\n")
        return
    lines.append(f"<{element.tag}{values}>{content}" + ("" if content else "\n"))
    for child in element.children:
        _write(child, lines)
    lines.append(f"</{element.tag}>\n")


def _quoted(value: str) -> str:
    return quoteattr(value.replace('"', "\0")).replace("\0", "&quot;")
