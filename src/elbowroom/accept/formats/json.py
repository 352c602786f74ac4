"""The document itself, which `--baseline` reads."""

import msgspec

from elbowroom.accept.document import AcceptanceDocument
from elbowroom.accept.formats import AcceptanceFormat
from elbowroom.documents import encode


def _text(document: AcceptanceDocument) -> bytes:
    return encode(msgspec.to_builtins(document))


ACCEPTANCEFORMAT = AcceptanceFormat(name="json", endings=(".json",), text=_text)
