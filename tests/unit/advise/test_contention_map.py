"""A job on the contention map: what the map holds is what predictions say, and where the job stands."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import msgspec
import pytest

from elbowroom.advise.advice import Advice
from elbowroom.advise.advisor import advise
from elbowroom.advise.contention_map import (
    ContentionMap,
    check_shown,
    contention_maps,
    who_loses,
)
from elbowroom.advise.job import of_data
from elbowroom.advise.map_figures import figures
from elbowroom.advise.steps import Predictor, gain
from elbowroom.draw.svg import describe
from elbowroom.errors import UsageError
from elbowroom.models.document import Document
from elbowroom.models.load import Computing, Load, Messages
from elbowroom.models.predict import FittedModel
from elbowroom.models.published import of_published

PAGES = runpy.run_path(str(Path(__file__).parents[2] / "report_pages.py"))
MIB = 2**20


def document(**options: Any) -> Document:
    created: Document = PAGES["document"](seed=4, **options)
    return created


def job(now: dict[str, Any], may: dict[str, Any], **step: Any) -> Any:
    return of_data(
        {
            "name": "stencil",
            "step": {"comp_bytes": "2GB", "comm_bytes": "64MB", **step},
            "now": {"cores": 17, "comp_node": 0, "comm_node": 0, "size": "64KiB", **now},
            "may": may,
        }
    )


def changed(found: Advice, **axes: Any) -> Advice:
    """As if another setup had been advised."""
    setup = msgspec.structs.replace(found.now.setup, **axes)
    return msgspec.structs.replace(
        found, advised=msgspec.structs.replace(found.advised, setup=setup), significant=True
    )


@pytest.fixture(scope="module")
def known() -> Document:
    return document()


@pytest.fixture(scope="module")
def advice(known: Document) -> Advice:
    return advise(known, job({}, {"cores": "every", "size": ["64KiB", "1MiB"], "comm_node": "every"}))


def only(known: Document, advice: Advice) -> ContentionMap:
    (found,) = contention_maps(known, advice)
    return found


def test_the_map_holds_what_predictions_say(known: Document, advice: Advice) -> None:
    found = only(known, changed(advice, cores=9))
    row, column = found.sizes.index(65536), found.counts.index(5)
    (answer,) = FittedModel(known).predict_loads(
        [Load(computing=(Computing(socket=0, node=0, count=5),), messages=Messages(node=0, size=65536))]
    )
    assert found.kept_comm[row, column] == pytest.approx(answer.comm_together.value / answer.comm_alone.value)
    assert found.kept_comp[row, column] == pytest.approx(answer.comp_together.value / answer.comp_alone.value)
    assert found.size_rates[row] == pytest.approx(answer.comm_alone.value)


def test_the_map_has_the_steps_of_the_advice(known: Document, advice: Advice) -> None:
    found = only(known, changed(advice, cores=9))
    (now,) = [spot for spot in found.spots if spot.name == "now"]
    total = found.total[found.sizes.index(now.size), found.counts.index(now.count)]
    assert total == pytest.approx(advice.now.total.value)
    assert now.total == advice.now.total


def test_one_core_asks_for_what_it_gets_alone(known: Document, advice: Advice) -> None:
    (answer,) = FittedModel(known).predict_loads([Load(computing=(Computing(socket=0, node=0, count=1),))])
    assert only(known, changed(advice, cores=9)).one_core == pytest.approx(answer.comp_alone.value)


def test_whiskers_end_where_the_time_surely_differs(known: Document, advice: Advice) -> None:
    found = only(known, changed(advice, cores=9))
    ask = Predictor(known, advice.job, advice.name)
    for spot in found.spots:
        for count in found.counts:
            other = msgspec.structs.replace(spot.setup, cores=count)
            saved = gain(ask(spot.setup), ask(other))
            inside = spot.counts[0] <= count <= spot.counts[1]
            if inside or count in (spot.counts[0] - 1, spot.counts[1] + 1):
                assert (saved.low <= 0 <= saved.high) == inside


def test_what_is_kept_has_an_interval_around_it(known: Document, advice: Advice) -> None:
    for spot in only(known, changed(advice, cores=9)).spots:
        for kept in (spot.kept_comp, spot.kept_comm):
            assert kept.low < kept.value < kept.high


def test_sizes_go_no_further_than_the_model_and_the_job(known: Document, advice: Advice) -> None:
    sizes = only(known, changed(advice, cores=9)).sizes
    assert min(sizes) >= 65536 // 256
    assert max(sizes) <= 64_000_000
    assert 65536 in sizes
    small = advise(known, job({}, {"cores": "every"}, comm_bytes="1MiB"))
    assert max(contention_maps(known, small)[0].sizes) == MIB


def test_data_that_move_have_a_map_of_their_own(known: Document, advice: Advice) -> None:
    now, moved = contention_maps(known, changed(advice, comm_node=1, cores=9))
    assert [spot.name for spot in now.spots] == ["now"]
    assert [spot.name for spot in moved.spots] == ["moved", "advised"]
    assert (now.setup.comm_node, moved.setup.comm_node) == (0, 1)
    ask = Predictor(known, advice.job, advice.name)
    expected = ask(msgspec.structs.replace(advice.now.setup, comm_node=1)).interval
    assert moved.spots[0].total == expected


def test_an_advice_to_move_nothing_but_data_has_one_point_there(known: Document, advice: Advice) -> None:
    _, moved = contention_maps(known, changed(advice, comm_node=1))
    assert [spot.name for spot in moved.spots] == ["advised"]


def test_no_advice_is_one_point(known: Document, advice: Advice) -> None:
    assert [spot.name for spot in only(known, changed(advice)).spots] == ["now"]


def test_cores_of_the_second_socket_go_across_where_only_they_change(known: Document, advice: Advice) -> None:
    found = only(known, changed(advice, cores_other=4))
    assert found.axis == "cores_other"
    assert [spot.count for spot in found.spots] == [0, 4]
    assert found.counts[0] == 0


def test_there_are_no_more_cores_than_leave_one_to_communicate(known: Document, advice: Advice) -> None:
    requested = msgspec.structs.replace(
        advice, now=msgspec.structs.replace(advice.now, setup=changed(advice, comm_socket=0).advised.setup)
    )
    assert only(known, changed(requested, comm_socket=0)).counts[-1] == 17
    assert only(known, changed(advice, cores=9)).counts[-1] == 18


def test_a_model_of_one_size_gives_one_row_and_curves() -> None:
    known = of_published("henri")
    requested = of_data(
        {
            "step": {"comp_bytes": "2GB", "comm_bytes": "640MB"},
            "now": {"cores": 17, "comp_node": 0, "comm_node": 0},
            "may": {"cores": "every"},
        }
    )
    maps = contention_maps(known, advise(known, requested))
    assert maps[0].sizes == (64_000_000,)
    drawn = figures(maps, known.machine)
    assert [len(figure.series) for figure in drawn] == [2, 1]
    assert not any(figure.fields for figure in drawn)
    assert "the only size in the model" in drawn[0].caption
    assert drawn[1].series[0].y[-1] == pytest.approx(1e3 * maps[0].total[0, -1])


@pytest.mark.parametrize(
    ("comp", "comm", "words"),
    [
        (0.95, 1.0, "neither side loses"),
        (0.94, 1.0, "only computation loses"),
        (1.0, 0.5, "only communication loses"),
        (0.9, 0.9, "both lose"),
    ],
)
def test_who_loses_is_said_in_words(comp: float, comm: float, words: str) -> None:
    assert who_loses(comp, comm) == words


def test_what_takes_turns_loses_nothing(known: Document, advice: Advice) -> None:
    _, turns = contention_maps(known, changed(advice, overlap=False, cores=9))
    assert turns.spots[-1].loses == "no overlap: neither side loses"
    (losses, *_) = figures([turns], known.machine)
    assert "Without overlap neither side loses" in losses.caption


def test_the_figures_name_places_points_and_regions(known: Document, advice: Advice) -> None:
    maps = contention_maps(known, changed(advice, comm_node=1, cores=9))
    drawn = figures(maps, known.machine)
    assert [figure.title for figure in drawn] == [
        "Losses: computations on node 0, messages on node 0",
        "Time of a step: computations on node 0, messages on node 0",
        "Losses: computations on node 0, messages on node 1",
        "Time of a step: computations on node 0, messages on node 1",
    ]
    assert [len(figure.arrows) for figure in drawn] == [0, 0, 1, 1]
    names = [label.text.split(":")[0] for label in drawn[2].labels]
    assert names == ["present cores and size", "advised"]
    words = {region.name for region in drawn[0].regions}
    assert maps[0].spots[0].loses in words
    assert "Arrow" not in drawn[0].caption
    assert "kept by communication" in describe(drawn[0])


def test_each_node_of_the_map_tells_what_both_keep(known: Document, advice: Advice) -> None:
    found = only(known, changed(advice, cores=9))
    field = figures([found], known.machine)[0].fields[0]
    row, column = 1 + found.sizes.index(65536), 1 + found.counts.index(17)
    comm, comp = (grid[row - 1, column - 1] for grid in (found.kept_comm, found.kept_comp))
    assert field.readings[row][column] == f"communication {comm:.2f}, computation {comp:.2f}"
    assert field.rows[row] == "messages of 64 KiB"
    assert set(field.readings[0]) == {""}


def test_advice_for_another_machine_is_refused(advice: Advice) -> None:
    with pytest.raises(UsageError, match="is advice for henri, but the model is for billy"):
        check_shown(advice, of_published("billy"))
