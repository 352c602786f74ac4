"""Scales, numbers, palette, SVG and files of figures."""

from __future__ import annotations

import itertools
import math
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from elbowroom.draw import maps, palette, scales
from elbowroom.draw.figure import Axis, Figure, Mark, Series
from elbowroom.draw.files import TITLE_LETTERS, save, save_all
from elbowroom.draw.marks import unit_of
from elbowroom.draw.svg import Rows, svg
from elbowroom.errors import UsageError
from elbowroom.quantities import NARROW_SPACE, interval, number, rate

SVG = "{http://www.w3.org/2000/svg}"
LINEAR, LOG2, LOG10 = (
    Axis(label="x"),
    Axis(label="size", scale="log2", bytes=True),
    Axis(label="y", scale="log10"),
)
positive = st.floats(min_value=1e-3, max_value=1e12)
finite = st.floats(min_value=-1e12, max_value=1e12).map(lambda v: 0.0 if abs(v) < 1e-6 else v)


def curve(name: str = "bandwidth alone", style: str = "alone", **changes: object) -> Series:
    given_ = {
        "name": name,
        "side": "communication",
        "style": style,
        "x": (1.0, 2.0, 3.0),
        "y": (10.0, 20.0, 30.0),
        "low": (9.0, 19.0, 29.0),
        "high": (11.0, 21.0, 31.0),
        **changes,
    }
    return Series(**given_)  # type: ignore[arg-type]


def figure(*series: Series, **changes: object) -> Figure:
    given_ = {
        "name": "f",
        "title": "title",
        "x": Axis(label="cores"),
        "left": Axis(label="bandwidth (MB/s)"),
        "series": series,
        **changes,
    }
    return Figure(**given_)  # type: ignore[arg-type]


def curves(drawing: str) -> list[ET.Element]:
    return [g for g in ET.fromstring(drawing).iter(f"{SVG}g") if "series" in g.get("class", "").split()]


@given(st.lists(finite, min_size=1), st.booleans())
def test_a_linear_axis_shows_every_value_inside_its_ends(values: list[float], from_zero: bool) -> None:
    scale = scales.axis_scale(LINEAR, values, from_zero=from_zero)
    assert all(-1e-9 <= scale.place(value) <= 1 + 1e-9 for value in values)
    assert 2 <= len([tick for tick in scale.ticks if tick.label]) <= scales.MOST_TICKS


@given(st.lists(positive, min_size=1), st.sampled_from([LOG2, LOG10]))
def test_a_log_axis_shows_every_positive_value_with_rising_ticks_inside(
    values: list[float], axis: Axis
) -> None:
    scale = scales.axis_scale(axis, values, from_zero=False)
    assert all(-1e-9 <= scale.place(value) <= 1 + 1e-9 for value in values)
    places = [scale.place(tick.value) for tick in scale.ticks]
    assert places == sorted(places)
    assert all(-1e-9 <= place <= 1 + 1e-9 for place in places)


def test_a_value_axis_begins_at_zero_and_goes_below_it_only_for_negative_values() -> None:
    assert scales.axis_scale(LINEAR, [5.0, 9.0], from_zero=True).low == 0
    assert scales.axis_scale(LINEAR, [-5.0, 9.0], from_zero=True).low < -5


def test_a_byte_axis_labels_powers_of_two_by_their_unit() -> None:
    scale = scales.axis_scale(LOG2, [4, 64 * 2**20], from_zero=False)
    assert [tick.label for tick in scale.ticks if tick.label] == [
        "16 B",
        "256 B",
        "4 KiB",
        "64 KiB",
        "1 MiB",
        "16 MiB",
    ]


def test_what_a_logarithm_cannot_show_cuts_the_curve() -> None:
    x = scales.axis_scale(LINEAR, [1, 5], from_zero=False)
    y = scales.axis_scale(LOG10, [1, 100], from_zero=True)
    assert scales.runs([1, 2, 3, 4, 5], [1, 10, 0, math.nan, 100], x, y) == [[0, 1], [4]]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.64123, "0.6412"),
        (1.5, "1.5"),
        (9999.4, "9999"),
        (13000.1, "13\u202f000"),
        (-2.5, "\u22122.5"),
        (1e-7, "1.000e-07"),
        (math.nan, "n/a"),
    ],
)
def test_a_number_is_printed_with_sensible_digits(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (29168.0, "MB/s", "29.2 GB/s"),
        (9999.0, "MB/s", "9999 MB/s"),
        (808248439.0, "Mflop/s", "808 Tflop/s"),
        (1.4, "us", "1.4 us"),
        (0.0, "M/s", "0 M/s"),
    ],
)
def test_a_rate_is_printed_in_the_unit_of_its_size(value: float, unit: str, text: str) -> None:
    assert rate(value, unit) == text


@given(st.floats(min_value=1e-3, max_value=1e14))
def test_a_printed_number_is_within_half_of_its_last_digit(value: float) -> None:
    shown = float(number(value).replace(NARROW_SPACE, ""))
    assert shown == pytest.approx(value, rel=5.1e-4)


@pytest.mark.parametrize(
    ("triple", "text"),
    [
        ((0.64, 0.62, 0.66), "0.64 (0.62 to 0.66)"),
        ((0.997, 0.994, 1.001), "0.997 (0.994 to 1.001)"),
        ((-0.001, -0.2, 0.3), "0.00 (\u22120.20 to 0.30)"),
    ],
)
def test_an_interval_gets_the_decimals_its_width_deserves(
    triple: tuple[float, float, float], text: str
) -> None:
    assert interval(*triple) == text


def test_alone_and_together_of_one_thing_share_colour_and_marker_and_differ_in_dashes() -> None:
    alone, together, other = palette.looks(
        figure(curve(), curve("bandwidth together", "together"), curve("latency alone"))
    )
    assert (alone.colour, alone.marker) == (together.colour, together.marker)
    assert (alone.dashed, together.dashed) == (False, True)
    assert other.colour != alone.colour


def test_a_legend_says_alone_or_together_when_the_name_does_not() -> None:
    assert palette.label(curve("bandwidth", "together")) == "bandwidth, together"
    assert palette.label(curve("bandwidth (alone)")) == "bandwidth (alone)"
    assert palette.label(curve("core 3", "line")) == "core 3"


@pytest.mark.parametrize(("colours", "paper"), [(palette.ON_LIGHT, 1.0), (palette.ON_DARK, 0.0095)])
def test_every_colour_has_three_times_the_contrast_of_its_paper(
    colours: dict[str, str], paper: float
) -> None:
    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for name, colour in colours.items():
        bright, dark = sorted((luminance(colour), paper), reverse=True)
        assert (bright + 0.05) / (dark + 0.05) >= 3, name


def test_svg_is_well_formed_and_keeps_markup_in_names_as_text() -> None:
    evil = "<script>&\"'</script>"
    drawing = svg(
        figure(curve(evil, "line"), title=evil, name=evil, marks=(Mark(x=2.0, text=evil),), caption=evil)
    )
    assert "<script" not in drawing
    root = ET.fromstring(drawing)
    assert root.find(f"{SVG}title").text == evil  # type: ignore[union-attr]


def test_a_curve_carries_median_deciles_and_abscissa_of_each_vertex() -> None:
    drawing = svg(figure(curve(y=(10.0, math.nan, 30.0))))
    (group,) = curves(drawing)
    assert (group.get("data-median"), group.get("data-d1"), group.get("data-d9")) == (
        "10|30",
        "9|29",
        "11|31",
    )
    assert ET.fromstring(drawing).get("data-x") == "1|3"
    assert group.get("data-unit") == "MB/s"


def test_a_curve_whose_values_the_table_holds_only_names_its_rows() -> None:
    drawing = svg(figure(curve()), lambda _: Rows(numbers=(7, 8, 9), same=True))
    (group,) = curves(drawing)
    assert group.get("data-rows") == "7-9"
    assert group.get("data-median") is None


@example([0.0, 5e-324])
@given(st.lists(st.floats(min_value=0, max_value=1e6), min_size=2, max_size=40))
def test_the_path_of_a_curve_ends_at_its_last_value(ys: list[float]) -> None:
    drawn = figure(curve(x=tuple(float(i) for i in range(len(ys))), y=tuple(ys), low=(), high=()))
    (group,) = curves(svg(drawn))
    path = group.find(f"{SVG}path").get("d")  # type: ignore[union-attr]
    assert path is not None
    places = [float(step) for step in re.findall(r"-?(?:\d+\.?\d*|\.\d+)", path)]
    scale = scales.vertical(drawn, "left")
    top = 26.0  # one row of legend
    assert sum(places[1::2]) == pytest.approx(top + (1 - scale.place(ys[-1])) * 250, abs=0.11)


def test_a_second_quantity_has_a_plot_of_its_own_below() -> None:
    drawing = svg(
        figure(
            curve(),
            curve("triad alone", side="computation", axis="below", y=(1e5, 2e5, 3e5), low=(), high=()),
            below=Axis(label="triad (MB/s)"),
        )
    )
    assert "300\u202f000" in drawing
    assert drawing.count('class="frame"') == 2
    labels = re.findall(r'class="axis-label" x="4" y="([\d.]+)"', drawing)
    assert len(labels) == 2
    assert float(labels[1]) - float(labels[0]) > 150


def test_a_figure_without_any_value_is_still_drawn() -> None:
    for empty in (figure(), figure(curve(x=(), y=(), low=(), high=()))):
        assert ET.fromstring(svg(empty)).tag.endswith("svg")


@pytest.mark.parametrize(
    ("label", "unit"), [("bandwidth (MB/s)", "MB/s"), ("latency [µs]", "µs"), ("cores", ""), ("a (b) c", "")]
)
def test_the_unit_is_what_ends_the_label_in_brackets(label: str, unit: str) -> None:
    assert unit_of(label) == unit


def test_files_are_written_in_both_kinds_under_names_that_do_not_clash(tmp_path: Path) -> None:
    marked = figure(curve(), curve("bandwidth together", "together"), marks=(Mark(x=2.0, text="here, $5"),))
    written = save_all([marked, marked], tmp_path / "new" / "dir")
    assert [path.name for path in written] == ["f.png", "f.svg", "f-2.png", "f-2.svg"]
    assert written[0].read_bytes().startswith(b"\x89PNG")
    assert "bandwidth together" in written[1].read_text()
    assert {path.name for path in (tmp_path / "new" / "dir").iterdir()} == {path.name for path in written}


def test_the_same_figure_gives_the_same_file(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        save(figure(curve()), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_another_suffix_is_refused_with_the_mend(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"end the name in \.png or \.svg"):
        save(figure(curve()), tmp_path / "f.pdf")


def test_a_directory_that_is_not_there_is_an_error_of_the_request(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        save(figure(curve()), tmp_path / "missing" / "f.png")
    assert not list(tmp_path.iterdir())


def test_badges_of_marks_at_one_place_stand_side_by_side() -> None:
    both = (Mark(x=2.0, text="communication"), Mark(x=2.0, text="computation"))
    drawing = ET.fromstring(svg(figure(curve(), marks=both)))
    above = [circle for circle in drawing.iter(f"{SVG}circle") if circle.get("class") == "badge"]
    highest = min(float(circle.attrib["cy"]) for circle in above)
    centres = sorted(float(circle.attrib["cx"]) for circle in above if float(circle.attrib["cy"]) == highest)
    radius = float(above[0].attrib["r"])
    assert len(centres) == 2
    assert centres[1] - centres[0] >= 2 * radius


@given(st.lists(st.floats(min_value=0, max_value=500), max_size=8))
def test_spread_keeps_the_order_and_the_least_distance(centres: list[float]) -> None:
    moved = maps.spread(centres, 17)
    assert sorted(range(len(moved)), key=lambda i: (moved[i], i)) == sorted(
        range(len(centres)), key=lambda i: (centres[i], i)
    )
    ordered = sorted(moved)
    assert all(b - a >= 17 - 1e-6 for a, b in itertools.pairwise(ordered))


def test_spread_moves_nothing_that_has_room() -> None:
    assert maps.spread([100.0, 0.0, 50.0], 17) == [100.0, 0.0, 50.0]


def test_an_axis_with_a_reference_shows_a_line_at_it() -> None:
    kept = figure(curve(y=(0.2, 0.3, 0.4), low=(), high=()), left=Axis(label="kept", reference=1.0))
    drawing = ET.fromstring(svg(kept))
    assert [path for path in drawing.iter(f"{SVG}path") if path.get("class") == "reference"]
    assert scales.vertical(kept, "left").high >= 1.0


def test_a_figure_says_why_it_should_not_be_trusted(tmp_path: Path) -> None:
    doubtful = figure(curve(), warning="This run is not trusted.")
    assert "This run is not trusted." in svg(doubtful)
    save(doubtful, tmp_path / "f.svg")
    assert "This run is not trusted." in (tmp_path / "f.svg").read_text()


def test_a_long_title_stays_inside_the_file(tmp_path: Path) -> None:
    title = "What each side keeps beside the other: TRIAD on 35 cores, one process per socket " * 2
    save(figure(curve(), title=title), tmp_path / "f.svg")
    text = (tmp_path / "f.svg").read_text()
    lines = [
        line.strip() for line in re.findall(r"<text[^>]*>([^<>]+)</text>", text) if line.strip() in title
    ]
    assert len(lines) > 1
    assert max(map(len, lines)) <= TITLE_LETTERS
