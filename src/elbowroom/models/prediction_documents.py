"""What `predict --json` prints: one situation at the top of the document, several in a list, or a load."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from elbowroom.models.document import Document, Origin
from elbowroom.models.load import LoadPrediction, PredictedBandwidths, Prediction
from elbowroom.schemas import WRITTEN


class PredictionDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What each of these documents begins with: the model that answers, the unit, and the intervals."""

    schema: str = "elbowroom/prediction"
    version: int = 1
    machine: str
    model: str
    unit: Annotated[Literal["MB/s"], WRITTEN] = "MB/s"
    interval: Annotated[Literal["90 %"], WRITTEN] = "90 %"
    origin: Origin


class _Answered(PredictionDocument, frozen=True, kw_only=True):
    """The question about situations: the equations as printed or not, bytes of a message, figures written."""

    faithful: bool
    size: int
    files: tuple[str, ...]


class _SituationKeys(msgspec.Struct, frozen=True, kw_only=True):
    """A situation, of which every key is written."""

    comp_node: int
    comm_node: int
    n: int
    n_other: int


def _with_fields(name: str, base: type[msgspec.Struct], *answers: type[msgspec.Struct]) -> type[Any]:
    """A type with the fields of several: structs have one base only."""
    fields: list[Any] = [
        (field.name, field.type)
        if field.default is msgspec.NODEFAULT
        else (field.name, field.type, field.default)
        for answer in answers
        for field in msgspec.structs.fields(answer)
    ]
    return msgspec.defstruct(
        name, fields, bases=(base,), namespace={"__doc__": answers[-1].__doc__}, frozen=True, kw_only=True
    )


PredictedSituation = _with_fields("PredictedSituation", _SituationKeys, PredictedBandwidths)
SituationDocument = _with_fields("SituationDocument", _Answered, _SituationKeys, PredictedBandwidths)
LoadDocument = _with_fields("LoadDocument", PredictionDocument, LoadPrediction)


class SituationsDocument(_Answered, frozen=True, kw_only=True):
    """Several situations."""

    predictions: tuple[PredictedSituation, ...]  # type: ignore[valid-type]


def situation_document(
    document: Document,
    name: str,
    predictions: Sequence[Prediction],
    *,
    faithful: bool,
    size: int | None,
    files: Sequence[Path],
    single: bool,
) -> msgspec.Struct:
    """Predictions by the model `name` as a document; `single`: of one situation, at the top.

    `size`: bytes of a message, None for those that the model was calibrated with.
    """
    head: dict[str, Any] = {
        **_head(document, name),
        "faithful": faithful,
        "size": size or document.calibration.size,
        "files": tuple(str(file) for file in files),
    }
    answers = [
        msgspec.structs.asdict(item.situation)
        | {key: value for key, value in msgspec.structs.asdict(item).items() if key != "situation"}
        for item in predictions
    ]
    answer: msgspec.Struct = (
        SituationDocument(**head, **answers[0])
        if single
        else SituationsDocument(**head, predictions=tuple(PredictedSituation(**item) for item in answers))
    )
    return answer


def load_document(document: Document, name: str, prediction: LoadPrediction) -> msgspec.Struct:
    """A prediction of a load by the model `name` as a document."""
    answer: msgspec.Struct = LoadDocument(**_head(document, name), **msgspec.structs.asdict(prediction))
    return answer


def _head(document: Document, name: str) -> dict[str, Any]:
    return {"machine": document.machine.name, "model": name, "origin": document.calibration.origin}
