"""JSON lines: one object for each suspect."""

import msgspec

from elbowroom.accept.document import AcceptanceDocument
from elbowroom.accept.formats import AcceptanceFormat


def _text(document: AcceptanceDocument) -> bytes:
    return b"".join(msgspec.json.encode(one) + b"\n" for one in document.suspects)


ACCEPTANCEFORMAT = AcceptanceFormat(name="jsonl", endings=(".jsonl",), text=_text)
