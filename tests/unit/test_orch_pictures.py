"""Pictures of runs: nothing overlaps, everything is inside, no text breaks out of its format."""

import re
import xml.etree.ElementTree as ElementTree
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inbox_orch.orch.pictures import layout, notations, svg, text, timeline
from inbox_orch.orch.pictures.drawing import COLOURS, Drawing, Edge, Node
from inbox_orch.orch.pictures.page import page
from inbox_orch.orch.pictures.widths import cells, fitted
from inbox_orch.orch.runs import readiness
from inbox_orch.orch.runs.model import Run, Task
from inbox_orch.orch.runs.states import ATTEMPT_STATES
from inbox_orch.orch.schemas.things import StandingState
from inbox_orch.orch.views.report import Report

STATES = StandingState.__args__
SVG = "{http://www.w3.org/2000/svg}"
TITLES = st.one_of(
    st.sampled_from([
        '"];', "</text><script>", "%%{init: {}}%%", "&amp;", "#quot;", "\\", '\\"', "a\\n",
        "日本語" * 20, "\u202egnp.exe", "\x1b[31m", "]]>", "\ufffe", "<!--", "end", "e\u0301" * 50,
    ]),
    st.text(max_size=60),
)  # fmt: skip


@st.composite
def drawings(draw) -> Drawing:
    size = draw(st.integers(0, 14))
    nodes = tuple(
        Node(
            n, f"k{n}" + "x" * draw(st.integers(0, 37)), draw(TITLES), draw(st.sampled_from(STATES))
        )
        for n in range(size)
    )
    pairs = st.tuples(st.integers(0, max(0, size - 1)), st.integers(0, max(0, size - 1)))
    conditions = st.sampled_from(["success", "finished", "failed"])
    edges = draw(st.dictionaries(pairs, conditions, max_size=30))
    found = sorted(Edge(a, b, condition) for (a, b), condition in edges.items() if a < b)
    return Drawing(draw(TITLES), nodes, tuple(found))


@settings(max_examples=40, deadline=None)
@given(drawing=drawings())
def test_every_task_stands_in_the_text_once_and_nothing_is_wider_than_80(drawing):
    lines = ["".join(piece for piece, _ in line) for line in text.graph_lines(drawing)]

    assert len(lines) == 1 + len(drawing.nodes)
    assert max(map(cells, lines)) <= 80
    assert "\x1b" not in "".join(lines)
    assert {node.key[:6] for node in drawing.nodes} <= {
        re.sub(r"^[│├└─ ]*[^ ] ", "", line)[:6].rstrip("… ") for line in lines[1:]
    }


@settings(max_examples=40, deadline=None)
@given(drawing=drawings())
def test_no_two_boxes_overlap_and_every_edge_goes_from_left_to_right(drawing):
    made = layout.laid_out(drawing)

    for a, b in combinations(made.boxes, 2):
        apart = a.x + a.width < b.x or b.x + b.width < a.x
        assert apart or a.y + a.height < b.y or b.y + b.height < a.y
    for box in made.boxes:
        assert box.x >= 0
        assert box.x + box.width <= made.width + 0.01
        assert box.y >= 0
        assert box.y + box.height <= made.height + 0.01
    for edge, way in zip(drawing.edges, made.ways, strict=True):
        source, target = made.boxes[edge.source], made.boxes[edge.target]
        assert way[0] == (source.x + source.width, source.y + layout.BOX_HEIGHT / 2)
        assert way[-1] == (target.x, target.y + layout.BOX_HEIGHT / 2)
        assert all(here[0] < there[0] for here, there in pairwise(way))


@settings(max_examples=40, deadline=None)
@given(drawing=drawings())
def test_no_edge_crosses_a_box_of_a_column_that_it_passes(drawing):
    made = layout.laid_out(drawing)

    for way in made.ways:
        for (x, y), (end, following) in pairwise(way):
            if y != following or end - x <= layout.COLUMN_GAP:
                continue
            for box in made.boxes:
                if x <= box.x and box.x + box.width <= end:
                    assert not box.y <= y <= box.y + box.height


@settings(max_examples=40, deadline=None)
@given(drawing=drawings())
def test_the_svg_is_xml_with_each_task_inside_the_picture(drawing):
    root = ElementTree.fromstring(svg.graph_svg(drawing).encode())
    _, _, width, height = map(float, root.attrib["viewBox"].split())

    boxes = [e for e in root.iter(f"{SVG}rect") if e.get("class") == "box"]
    assert len(boxes) == len(drawing.nodes)
    offset = svg.MARGIN, svg.MARGIN + svg.HEADING
    for box in boxes:
        assert offset[0] + float(box.attrib["x"]) + float(box.attrib["width"]) <= width
        assert offset[1] + float(box.attrib["y"]) + float(box.attrib["height"]) <= height
    tags = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert tags <= {"svg", "title", "rect", "text", "defs", "marker", "path", "g"}
    shown = [e.text or "" for e in root.iter(f"{SVG}text")]
    widest = max((float(b.attrib["width"]) for b in boxes), default=svg.LEAST_WIDTH)
    assert all(cells(each) * 7 <= max(widest, width) for each in shown)


@settings(max_examples=40, deadline=None)
@given(drawing=drawings())
def test_no_title_breaks_out_of_mermaid_or_dot(drawing):
    as_mermaid = notations.mermaid(drawing).splitlines()
    node = re.compile(r'  t\d+\["<b>[^"<>&\[\]{}`;%]*</b><br/>([^"<>&\[\]{}`;%]|#\d+;)*"\]:::\w+')
    assert sum(bool(node.fullmatch(line)) for line in as_mermaid) == len(drawing.nodes)
    assert len(as_mermaid) == 2 + len(drawing.nodes) + len(drawing.edges) + len(
        {n.state for n in drawing.nodes}
    )

    string = r'"(?:[^"\\]|\\.)*"'
    statement = re.compile(
        rf"  ({string}( -> {string})?( \[(\w+={string}|style=dashed|, )*\])?"
        rf"|label={string}|rankdir=LR|node \[.*\]);"
    )
    as_dot = notations.dot(drawing).splitlines()
    assert all(statement.fullmatch(line) for line in as_dot[1:-1]), as_dot


def test_a_chain_of_thousands_is_drawn_in_every_format():
    nodes = tuple(Node(n, f"t{n}", "x", "waiting") for n in range(3000))
    drawing = Drawing("long", nodes, tuple(Edge(n, n + 1, "success") for n in range(2999)))

    lines = ["".join(piece for piece, _ in line) for line in text.graph_lines(drawing)]
    assert max(map(len, lines)) <= 80
    assert svg.graph_svg(drawing).count('class="box"') == 3000
    assert notations.dot(drawing).count("->") == 2999


def test_every_state_has_a_colour():
    assert set(STATES) | set(ATTEMPT_STATES) <= set(COLOURS)


@pytest.mark.parametrize("whole, width, shown", [
    ("short", 10, "short"),
    ("exactly", 7, "exactly"),
    ("too long", 5, "too …"),
    ("日本語", 6, "日本語"),
    ("日本語", 5, "日本…"),
    ("a\x1b[1mb", 20, "a\\x1b[1mb"),
])  # fmt: skip
def test_text_is_cut_by_cells_and_made_harmless(whole, width, shown):
    assert fitted(whole, width) == shown


T = 1_800_000_000_000
BARS = st.lists(
    st.builds(
        lambda label, state, begin, length, live: timeline.Bar(
            label, state, T + begin, T + begin + length, live
        ),
        st.from_regex(r"[a-z]{1,40}/[0-9]{1,3}", fullmatch=True),
        st.sampled_from(ATTEMPT_STATES),
        st.integers(0, 10**9),
        st.one_of(st.just(0), st.integers(0, 10**9)),
        st.booleans(),
    ),
    max_size=12,
)


@settings(max_examples=40, deadline=None)
@given(bars=BARS, heading=TITLES)
def test_the_timeline_fits_80_columns_and_has_a_bar_for_each_attempt(bars, heading):
    lines = ["".join(piece for piece, _ in line) for line in timeline.timeline_lines(heading, bars)]

    assert max(map(cells, lines)) <= 80
    assert sum("█" in line or "▶" in line for line in lines[1:]) == len(bars)
    for bar, line in zip(bars, lines[2:], strict=False):
        assert ("▶" in line) == bar.live
        assert bar.state in line


@settings(max_examples=40, deadline=None)
@given(bars=BARS, heading=TITLES)
def test_the_bars_of_a_timeline_lie_inside_the_picture_and_in_rows_of_their_own(bars, heading):
    root = ElementTree.fromstring(timeline.timeline_svg(heading, bars).encode())
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    rects = [e for e in root.iter(f"{SVG}rect") if e.get("class") == "bar"]

    assert len(rects) == len(bars)
    tops = [float(r.attrib["y"]) for r in rects]
    assert all(b - a >= timeline.ROW - 0.1 for a, b in pairwise(tops))
    for rect in rects:
        assert float(rect.attrib["x"]) + float(rect.attrib["width"]) <= width - svg.MARGIN
        assert float(rect.attrib["y"]) + float(rect.attrib["height"]) <= height
    ticks = list(root.iter(f"{SVG}line"))
    assert len(ticks) <= 9


@pytest.mark.parametrize("seconds, text", [
    (0, "0s"), (59.4, "59s"), (59.5, "1m00s"), (3599, "59m59s"), (3600, "1h00m"),
    (86399, "23h59m"), (90000, "1d01h"),
])  # fmt: skip
def test_durations_are_short(seconds, text):
    assert timeline.how_long(seconds) == text


@pytest.mark.parametrize("seconds, text", [
    (0, "under 1 s"), (0.999, "under 1 s"), (1, "1 s"), (59.4, "59 s"), (59.5, "1 min"),
    (125, "2 min 5 s"), (3600, "1 h"), (3659, "1 h"), (3661, "1 h 1 min"), (86400, "1 day"),
    (90000, "1 day 1 h"), (176_400, "2 days 1 h"),
])  # fmt: skip
def test_durations_are_said_as_people_say_them(seconds, text):
    assert timeline.spoken(seconds) == text


def test_a_bar_of_less_than_a_second_does_not_say_zero():
    bars = [timeline.Bar("a/1", "failed", 0, 300, False)]

    *_, last = timeline.timeline_lines("run", bars)
    assert "".join(piece for piece, _ in last).split() == ["a/1", "█" * 36, "<1s", "failed"]
    drawn = ElementTree.fromstring(timeline.timeline_svg("run", bars))
    assert [t.text for t in drawn.iter(f"{SVG}title")] == ["run", "a/1: failed, <1s"]


@pytest.mark.parametrize("number, is_folded", [(60, False), (61, True)])
def test_the_pictures_of_many_tasks_are_folded_away(number: int, is_folded: bool):
    run = Run(**dict.fromkeys(Run._fields))._replace(
        name="r", title="R", state="open", leader="l", created_at=0
    )
    empty = Task(**dict.fromkeys(Task._fields))
    tasks = [
        empty._replace(id=f"{n:03}", key=f"k{n}", title="T", number=n, state="pending")
        for n in range(number)
    ]
    standings = readiness.picture(run, tasks, (), {}, 0)

    text = page(Report(run, standings, (), (), 0, 0, False))

    folded = f"<details><summary>{number} tasks, 0 dependencies</summary><figure><svg"
    assert (folded in text) == is_folded
    assert text.count("<svg") == text.count("<figure>") == 1
    assert text.count('<a href="#task-') == number


def test_a_timeline_over_several_days_says_which_days():
    day_ms = 86_400_000
    bars = [timeline.Bar("a/1", "failed", 0, 3 * day_ms, False)]

    axis = "".join(piece for piece, _ in list(timeline.timeline_lines("run", bars))[1])

    assert "1970-01-01 00:00" in axis and "1970-01-04 00:00" in axis and len(axis) <= 80
    assert "1970-01-01 00:00 UTC" in timeline.timeline_svg("run", bars)


@pytest.mark.parametrize("seconds", [1, 7, 8, 59, 600, 7200, 86400, 200_000])
def test_the_times_of_an_axis_do_not_stand_on_each_other(seconds):
    bars = [timeline.Bar("a/1", "succeeded", 0, seconds * 1000, False)]
    root = ElementTree.fromstring(timeline.timeline_svg("h", bars))
    axis = [t for t in root.iter(f"{SVG}text") if t.get("font-size") == "11"]

    assert len(axis) >= 2
    ends = 0.0
    for each in axis:
        wide = 6.7 * len(str(each.text))
        begin = float(str(each.get("x"))) - (wide / 2 if each.get("text-anchor") == "middle" else 0)
        assert begin >= ends
        ends = begin + wide
