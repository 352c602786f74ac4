"""What a document answers for loads, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from elbowroom.errors import UsageError
from elbowroom.models import predict as answering
from elbowroom.models.curves import Shape
from elbowroom.models.document import Calibration, Document, Models
from elbowroom.models.flow.law import NAMES
from elbowroom.models.flow.part import FlowPart, LoadPart
from elbowroom.models.load import Computing, Copy, Load, Messages, decode, parse_copy, parse_group
from elbowroom.models.message_size import MessageSize
from elbowroom.models.predict import FittedModel
from elbowroom.models.published import of_published
from elbowroom.store.models import read_model, write_model

SHAPE = Shape(name="made", cores_first_socket=12, numa_per_socket=2)
VALUES = {
    **dict.fromkeys(NAMES, 0.0),
    "core_local": 5000.0, "core_remote": 4800.0, "comm_first": 11000.0, "comm_second": 10500.0,
    "uplink": 44000.0, "link": 25000.0, "controller": 48000.0, "port": 29000.0, "crossing": 60000.0,
    "root": 90000.0, "floor_first": 0.6, "floor_second": 0.5, "weight_first": 1.0, "weight_second": 0.5,
    "cost_first": 1.0, "cost_second": 1.0, "remote_weight": 0.8, "remote_cost": 1.5,
}  # fmt: skip
EXTRA = {"peak": 20000.0, "roofline": 3.0, "latency_0": 1.5, "latency_1": 4.0, "speed_0": 1.5}
SIZE = 64_000_000
EVERY = Computing(socket=0, node=0, count=12)


CALIBRATION = Calibration(
    run="r",
    plan="model",
    origin="measured",
    kernel="memset_nt",
    size=SIZE,
    runs=9,
    n_low=1,
    n_high=12,
    placements=((0, 0), (2, 2)),
)


def document(**load: Any) -> Document:
    flow = tuple(VALUES[name] for name in NAMES)
    part = None
    if load:
        extra = tuple(EXTRA.values())
        chatter = {"measured": ("intensity", "sizes"), "switches": (4096,), "intensity_high": 8.0, **load}
        part = LoadPart(
            names=tuple(EXTRA),
            values=extra,
            low=extra,
            high=extra,
            draws=(extra, extra),
            size_low=4,
            size_high=SIZE,
            **chatter,
        )
    more = tuple(value * 1.02 for value in flow)
    return Document(
        elbowroom="0",
        created="",
        machine=SHAPE,
        calibration=CALIBRATION,
        models=Models(
            flow=FlowPart(names=NAMES, values=flow, low=flow, high=flow, draws=(flow, more), load=part)
        ),
    )


FULL = document(runs=40)


def one(load: Load, of: Document = FULL) -> Any:
    return FittedModel(of).predict_loads([load])[0]


def test_a_load_that_is_a_situation_is_answered_as_one() -> None:
    answer = one(Load(computing=(EVERY,), messages=Messages(node=0)))
    (expected,) = answering.predict(FULL, answering.situations(SHAPE, n=12, comp_node=0, comm_node=0))
    assert answer.comp_together == expected.comp_together
    assert answer.comm_together == expected.comm_together
    assert answer.flags == expected.flags


def test_arithmetic_takes_from_what_a_core_asks_for_and_gives_it_to_messages() -> None:
    rates = [
        one(Load(computing=(msgspec.structs.replace(EVERY, intensity=i),), messages=Messages(node=0)))
        for i in (0.0, 5.0, 8.0)
    ]
    assert rates[0].comp_alone.value > rates[1].comp_alone.value > rates[2].comp_alone.value
    assert rates[2].comp_alone.value == pytest.approx(12 * 20000 / 8, rel=0.07)
    assert rates[0].comm_together.value < rates[1].comm_together.value <= rates[2].comm_together.value


def test_a_message_of_each_regime_takes_its_latency() -> None:
    small, larger = (one(Load(messages=Messages(node=0, size=size))) for size in (64, 4096))
    assert 64 / small.comm_alone.value == pytest.approx(1.5 + 64 / 16500, rel=1e-3)
    assert 4096 / larger.comm_alone.value == pytest.approx(4.0 + 4096 / 11000, rel=1e-3)


def test_small_messages_take_little_from_computations() -> None:
    small, large = (one(Load(computing=(EVERY,), messages=Messages(node=0, size=s))) for s in (64, None))
    assert small.comp_together.value > 0.999 * small.comp_alone.value
    assert large.comp_together.value < 0.99 * large.comp_alone.value


def test_threads_add_up_until_the_nic_is_full() -> None:
    alone = [one(Load(messages=Messages(node=0, size=4096, threads=k))).comm_alone.value for k in (1, 2, 64)]
    assert alone[1] == pytest.approx(2 * alone[0], rel=0.1)
    assert alone[2] == pytest.approx(11000, rel=0.02)


def test_groups_and_copies_have_rates_of_their_own() -> None:
    groups = (Computing(socket=0, node=0, count=5), Computing(socket=0, node=2, count=3))
    result = one(Load(computing=groups, copies=(Copy(node=0, demand=8000.0),)))
    assert [rate.value for rate in result.groups] == pytest.approx([25000.0, 14400.0])
    assert result.copies[0].value == pytest.approx(8000.0)
    assert "copies not measured: served as messages are" in result.flags
    assert any("several nodes" in flag for flag in result.flags)


def test_what_was_not_measured_is_said() -> None:
    flags = one(Load(computing=(EVERY,), messages=Messages(node=0, direction="send", threads=2))).flags
    assert flags[0].startswith("send not measured")
    assert flags[1].startswith("several communication threads not measured")


@pytest.mark.parametrize(
    "load",
    [
        Load(computing=(msgspec.structs.replace(EVERY, intensity=9.0),)),
        Load(messages=Messages(node=0, size=2)),
        Load(computing=(Computing(socket=1, node=2, count=3),)),
    ],
)
def test_beyond_what_was_measured_is_marked(load: Load) -> None:
    assert "extrapolated" in one(load).flags


@pytest.mark.parametrize(
    ("load", "field", "hint"),
    [
        (
            Load(computing=(Computing(socket=0, node=0, count=1, intensity=1.0),)),
            "computing.intensity",
            "plan `intensity`",
        ),
        (Load(messages=Messages(node=0, size=64)), "messages.size", "plan `sizes`"),
        (Load(computing=(Computing(socket=0, node=4, count=1),)), "computing.node", "0 to 3"),
        (Load(computing=(Computing(socket=0, node=0, count=13),)), "computing.count", "0 to 12"),
        (Load(messages=Messages(node=0, threads=0)), "messages.threads", "1 or more"),
        (Load(copies=(Copy(node=0, demand=0.0),)), "copies.demand", "positive"),
    ],
)
def test_what_the_machine_or_the_model_has_not_is_refused(load: Load, field: str, hint: str) -> None:
    with pytest.raises(UsageError, match=hint) as error:
        one(load, document())
    assert error.value.field == field


def test_a_document_that_knows_only_the_law_of_sizes_has_that_law() -> None:
    law = MessageSize(t0=2.0, low=1.9, high=2.1, sizes=(4, 65536, SIZE), misfit=0.01)
    known = msgspec.structs.replace(document(), message_size=law)
    result = one(Load(messages=Messages(node=0, size=1024)), known)
    assert result.comm_alone.value == pytest.approx(law.bandwidth(1024, known=11000.0, at=SIZE), rel=1e-6)
    assert result.comm_alone.low < result.comm_alone.value < result.comm_alone.high


def test_a_size_asked_of_situations_is_that_of_a_load() -> None:
    at = answering.situations(SHAPE, n=12, comp_node=0, comm_node=0)
    (result,) = answering.predict(FULL, at, size=64)
    assert (
        result.comm_together
        == one(Load(computing=(EVERY,), messages=Messages(node=0, size=64))).comm_together
    )


def test_draws_are_in_rows_after_the_best_fit() -> None:
    result = FittedModel(FULL).draws([Load(computing=(EVERY,), messages=Messages(node=0))] * 3)
    assert result.comp_alone.shape == (3, 3)
    assert result.discrepancy.shape == (4, 3)
    assert np.allclose(result.comm_alone[2], 1.02 * result.comm_alone[0])


def test_a_published_machine_answers_what_its_model_knows() -> None:
    henri = of_published("henri")
    load = Load(computing=(Computing(socket=0, node=0, count=17),), messages=Messages(node=0))
    (expected,) = answering.predict(
        henri, answering.situations(henri.machine, n=17, comp_node=0, comm_node=0)
    )
    result = one(load, henri)
    assert (result.comp_together, result.comm_together) == (expected.comp_together, expected.comm_together)
    assert FittedModel(henri).draws([load]).comm_together.shape == (1, 1)
    assert one(msgspec.structs.replace(load, messages=None), henri).comm_alone.value == 0
    with pytest.raises(UsageError, match="fit FLOW"):
        one(Load(messages=Messages(node=0, direction="send")), henri)


def test_a_load_is_read_from_its_file() -> None:
    text = (
        "[[computing]]\nsocket = 0\nnode = 1\ncount = 4\nintensity = 0.5\n"
        '[messages]\nnode = 0\nsize = "1MiB"\ndirection = "both"\n[[copies]]\nnode = 2\ndemand = 12000\n'
    )
    assert decode(text, "load.toml") == Load(
        computing=(Computing(socket=0, node=1, count=4, intensity=0.5),),
        messages=Messages(node=0, size=1 << 20, direction="both"),
        copies=(Copy(node=2, demand=12000.0),),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[computing]", "not a TOML file"),
        ("", "defines no load"),
        ("[message]\nnode = 0", "did you mean 'messages'"),
        ("[messages]\nnodes = 0", "did you mean 'node'"),
        ("[messages]\nsize = 4", "add it, see `elbowroom help predict`"),
        ('[messages]\nnode = 0\ndirection = "up"', "invalid enum value 'up'"),
        ('[[computing]]\nsocket = 0\nnode = 0\ncount = "all"', "give int"),
    ],
)
def test_a_wrong_file_is_refused_with_what_mends_it(text: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        decode(text, "load.toml")
    assert message in error.value.sentence()


def test_groups_and_copies_are_read_from_words() -> None:
    assert parse_group("1:4@0", 0.5) == Computing(socket=1, node=0, count=4, intensity=0.5)
    assert parse_group("0:2@3:1.5", 0.0) == Computing(socket=0, node=3, count=2, intensity=1.5)
    assert parse_copy("12000@1") == Copy(node=1, demand=12000.0)
    for parse in (
        lambda: parse_group("4@0", 0.0),
        lambda: parse_group("1:4@0:x", 0.0),
        lambda: parse_copy("fast@0"),
    ):
        with pytest.raises(UsageError, match="for instance"):
            parse()


def test_what_is_known_of_loads_is_kept_in_the_file(tmp_path: Path) -> None:
    write_model(tmp_path / "M.json", FULL)
    assert read_model(tmp_path / "M.json") == FULL


def test_every_parameter_has_a_meaning() -> None:
    assert FULL.models.flow is not None
    assert FULL.models.flow.load is not None
    answer = {item.name: (item.unit, item.text) for item in FULL.models.flow.load.parameters}
    assert answer["peak"][0] == "Mflop/s"
    assert answer["latency_1"] == ("us", "what a message takes besides its data, from 4096 B on")
    assert answer["speed_0"][1].endswith("from 0 B to 4095 B")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"names": ("peak", "roofline", "latency_0", "latency_1", "speed_7")}, "names"),
        ({"names": ("peak", "roofline", "latency_0", "send", "speed_0")}, "names"),
        ({"draws": ()}, "draws"),
        ({"values": (1.0, 2.0)}, "values"),
        ({"low": (-1.0, 1.0, 1.0, 1.0, 1.0)}, "low"),
        ({"switches": (0,)}, "switches"),
        ({"discrepancy": (0.0, 0.0, -1.0, 0.0)}, r"discrepancy\[2\]"),
    ],
)
def test_a_damaged_part_is_refused_by_its_field(changes: dict[str, Any], field: str, tmp_path: Path) -> None:
    data = msgspec.to_builtins(FULL)
    data["models"]["flow"]["load"].update(msgspec.to_builtins(changes))
    (tmp_path / "M.json").write_bytes(msgspec.json.encode(data))
    with pytest.raises(UsageError, match=f"^models.flow.load.{field}"):
        read_model(tmp_path / "M.json")
