"""Pictures of boards, planes and games."""

import re
from pathlib import Path

import numpy
import pytest
import shogi

pytest.importorskip("matplotlib")
pytest.importorskip("matplotlib_fontja")

from pydlshogi.drawing.board import Arrow, Diagram, draw_board, save_board
from pydlshogi.drawing.font import DrawingError, japanese_figure
from pydlshogi.drawing.graph import Course, save_graph
from pydlshogi.drawing.planes import cells, save_planes
from pydlshogi.features import PLANE_NUM, make_input_features_from_board

MIDDLE_GAME = "lR1g3+Bl/3k2g2/1pnp2ps1/p3pp2p/5n1p1/P1PPP1P1P/1P1S1P+r2/4G4/LN1K1G1NL b BS4Psp 81"


def drawn(diagram):
    """The shapes of a board picture: corners of the polygons of pieces and of arrows."""
    from matplotlib.patches import Polygon

    from pydlshogi.drawing.canvas import WOOD

    with japanese_figure(5, 5) as figure:
        axes = figure.add_axes((0, 0, 1, 1))
        draw_board(axes, diagram)
        polygons = [patch for patch in axes.patches if isinstance(patch, Polygon)]
        from matplotlib.colors import to_rgba

        pieces = [p for p in polygons if p.get_facecolor() == to_rgba(WOOD)]
        arrows = [p for p in polygons if p not in pieces]
        return [p.get_xy() for p in pieces], [p.get_xy() for p in arrows]


def centers(polygons):
    """The middles of pieces, as (column, row) of the board."""
    return {
        (int((xy[:-1, 0].min() + xy[:-1, 0].max()) / 2), int(9 - xy[:-1, 1].mean()))
        for xy in polygons
    }


@pytest.mark.long
@pytest.mark.parametrize("sfen", [shogi.STARTING_SFEN, MIDDLE_GAME])
def test_every_piece_stands_on_its_square_and_points_to_the_other_side(sfen):
    board = shogi.Board(sfen)
    pieces, _ = drawn(Diagram(board))
    on_board = [xy for xy in pieces if (xy[:, 0] > 0).all() and (xy[:, 0] < 9).all()]
    occupied = {divmod(square, 9)[::-1] for square in shogi.SQUARES if board.piece_at(square)}
    assert centers(on_board) == occupied
    kinds = sum(len([n for n in hand.values() if n]) for hand in board.pieces_in_hand)
    assert len(pieces) == len(occupied) + kinds
    for xy in on_board:
        # The point is the corner that stands alone at its height.
        heights = xy[:-1, 1]
        is_up = numpy.isclose(heights, heights.max()).sum() == 1
        ((column, row),) = centers([xy])
        assert is_up == (board.piece_at(9 * row + column).color == shogi.BLACK)


def test_an_arrow_leads_from_the_moved_piece_to_its_target():
    _, (arrow,) = drawn(Diagram(shogi.Board(), arrows=[Arrow(shogi.Move.from_usi("7g7f"), 0.5)]))
    # 7g is column 2, row 6 from the top; the tip is the fourth corner.
    assert arrow[[0, 6]].mean(axis=0) == pytest.approx((2.5, 2.5))
    assert arrow[3] == pytest.approx((2.5, 3.5))


def test_the_arrow_of_a_drop_comes_from_the_hand():
    board = shogi.Board(MIDDLE_GAME)
    _, (arrow,) = drawn(Diagram(board, arrows=[Arrow(shogi.Move.from_usi("B*5e"), 0.5)]))
    assert arrow[[0, 6]].mean(axis=0)[0] > 9
    assert arrow[3] == pytest.approx((4.5, 4.5))


@pytest.mark.long
def test_svg_has_outlines_in_place_of_text_and_is_the_same_each_time(tmp_path):
    diagram = Diagram(shogi.Board(), "題 $x$", black_win=0.5)
    for name in ("a.svg", "b.svg"):
        save_board(diagram, tmp_path / name, language="ja")
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert "<text" not in text
    assert "font-family" not in text
    assert text == (tmp_path / "b.svg").read_text(encoding="utf-8")


@pytest.mark.long
def test_the_last_move_the_heat_and_the_value_change_the_picture(tmp_path):
    board = shogi.Board()
    board.push_usi("7g7f")
    plain = Diagram(shogi.Board(board.sfen()))
    pictures = set()
    for diagram in (
        plain,
        Diagram(board),
        Diagram(plain.board, heat={40: 0.5}),
        Diagram(plain.board, black_win=0.2),
        Diagram(plain.board, title="x"),
    ):
        save_board(diagram, tmp_path / "a.png")
        pictures.add((tmp_path / "a.png").read_bytes())
    assert len(pictures) == 5


def test_every_plane_has_one_place():
    found = cells()
    assert sorted(cell.plane for cell in found) == list(range(PLANE_NUM))
    assert len({(cell.row, cell.column) for cell in found}) == PLANE_NUM


def test_the_labels_of_planes_name_what_is_in_them():
    board = shogi.Board(MIDDLE_GAME)  # Black to move: bishop, silver, 4 pawns; White: silver, pawn
    planes = make_input_features_from_board(board)
    filled = [cell for cell in cells() if planes[cell.plane].all()]
    own = ["歩 1", "歩 2", "歩 3", "歩 4", "銀 1", "角 1"]
    assert [cell.label for cell in filled] == [*own, "歩 1", "銀 1"]
    for cell in cells():
        if " " not in cell.label and cell.label in "玉馬龍":
            squares = numpy.flatnonzero(planes[cell.plane])
            kind = {"玉": shogi.KING, "馬": shogi.PROM_BISHOP, "龍": shogi.PROM_ROOK}[cell.label]
            color = shogi.BLACK if cell.plane < PLANE_NUM // 2 else shogi.WHITE
            expected = [s for s in shogi.SQUARES if board.piece_at(s) == shogi.Piece(kind, color)]
            assert squares.tolist() == expected


@pytest.mark.long
def test_pictures_of_planes_differ_with_the_planes(tmp_path):
    pictures = []
    for sfen in (shogi.STARTING_SFEN, MIDDLE_GAME):
        save_planes(make_input_features_from_board(shogi.Board(sfen)), tmp_path / "p.png")
        pictures.append((tmp_path / "p.png").read_bytes())
    assert pictures[0] != pictures[1]


@pytest.mark.parametrize(
    "wins, probabilities", [([None] * 3, [0.5, None]), ([0.5, 0.6, 1.0], [None] * 2)]
)
def test_a_graph_needs_only_what_is_known(wins, probabilities, tmp_path):
    course = Course("a $b$ _c", wins, probabilities, [1, 2])
    save_graph(course, tmp_path / "new" / "g.svg", language="ja")
    assert "<text" not in (tmp_path / "new" / "g.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "title", ["☗ A - ☖ B", "☗ " + "水匠" * 25 + " - ☖ " + "x" * 99, "あ" * 300]
)
def test_a_long_title_stays_in_the_picture(title, tmp_path, monkeypatch):
    titles = []

    def measured(figure, output):
        figure.savefig(tmp_path / "a.png", dpi=100)
        titles.append((figure._suptitle.get_text(), figure._suptitle.get_window_extent()))
        assert 0 < titles[0][1].x0 < titles[0][1].x1 < figure.bbox.x1

    monkeypatch.setattr("pydlshogi.drawing.graph.save_figure", measured)
    save_graph(Course(title, [0.5, 0.6], [0.5], [1]), tmp_path / "a.png")
    shown, extent = titles[0]
    assert shown[:9] == title[:9] and shown[-9:] == title[-9:]
    assert len(title) < 60 or extent.width > 450  # of 950


def test_numbers_of_marked_moves_do_not_overlap(tmp_path, monkeypatch):
    boxes = []

    def measured(figure, output):
        figure.savefig(tmp_path / "a.png", dpi=100)
        boxes.extend(text.get_window_extent() for text in figure.axes[0].texts)

    monkeypatch.setattr("pydlshogi.drawing.graph.save_figure", measured)
    wins = [0.5] * 100 + [0.5, 0.3] * 5 + [0.3] * 90
    save_graph(Course("t", wins, [None], [None], range(101, 110, 2)), tmp_path / "a.png")
    assert len(boxes) == 5
    assert not any(a.overlaps(b) for a, b in zip(boxes, boxes[1:]))


@pytest.mark.parametrize("name", ["a.xyz", "file/a.png"])
def test_a_picture_that_cannot_be_written_is_one_sentence(name, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DrawingError, match=r"cannot be written .* Name a \.png"):
        save_board(Diagram(shogi.Board()), tmp_path / name)
    assert not (tmp_path / "a.xyz").exists()


def test_a_missing_font_is_one_sentence(monkeypatch):
    monkeypatch.setattr("pydlshogi.drawing.font._PACKAGE", "no_such_package")
    with pytest.raises(DrawingError, match="font is not installed. Install it: python -m pip"):
        save_board(Diagram(shogi.Board()), "unused.png")
    assert not Path("unused.png").exists()


def test_drawing_leaves_matplotlibs_settings_alone(tmp_path):
    import matplotlib

    before = dict(matplotlib.rcParams)
    save_board(Diagram(shogi.Board()), tmp_path / "a.png")
    assert dict(matplotlib.rcParams) == before
    assert re.match(rb"\x89PNG", (tmp_path / "a.png").read_bytes())
