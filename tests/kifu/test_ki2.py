"""KI2 records that cshogi wrote against the CSA of the same games."""

import time
from pathlib import Path

import numpy
import pytest
import shogi
import shogi.CSA
from hypothesis import given, settings
from hypothesis import strategies as st

from pydlshogi.kifu.csa import parse_game
from pydlshogi.kifu.formats import format_of
from pydlshogi.kifu.kif import parse_kif
from pydlshogi.kifu.legality import board_of
from pydlshogi.kifu.movement import origins, placement_after
from pydlshogi.kifu.parsed_game import RecordError
from pydlshogi.kifu.replay import Games, replay
from pydlshogi.positions import DRAW, LOSS, PLACEMENT_SIZE, UNKNOWN, WIN, placement_of
from pydlshogi.read_kifu import read_kifu

GAMES = sorted((Path(__file__).parents[2] / "kifu").rglob("*.csa"))
HEAD = "手合割：平手\n先手：甲\n後手：乙\n"
MOVES = "▲７六歩    △３四歩    ▲２二角成  △同　銀    ▲５五角\n"
EXPECTED = [(56, 47, 1), (56, 47, 1), (64, 16, 13), (74, 64, 4), (86, 40, 6)]


def ki2(text, encoding="utf-8"):
    return parse_kif(text.encode(encoding))


def written_by_cshogi(path):
    """Writes the moves of a game, six on each line."""
    cshogi = pytest.importorskip("cshogi")
    pytest.importorskip("cshogi.KI2")
    pytest.importorskip("cshogi.CSA")
    record = cshogi.CSA.Parser.parse_file(str(path))[0]
    board = cshogi.Board(record.sfen)
    moves = []
    for move in record.moves:
        moves.append(cshogi.KI2.move_to_ki2(move, board))
        board.push(move)
    lines = ["    ".join(moves[at : at + 6]) for at in range(0, len(moves), 6)]
    return HEAD + "\n".join(lines) + "\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp932", "euc_jp"])
def test_games_written_as_ki2_are_those_written_as_csa(encoding):
    for path in GAMES[:: 4 if encoding == "cp932" else 40]:
        expected = parse_game(path.read_bytes())
        found = ki2(written_by_cshogi(path), encoding)
        assert [move[:3] for move in found.moves] == [move[:3] for move in expected.moves]
        _, faults = replay(Games.of([found]))
        assert not faults


def test_a_plain_record():
    game = ki2("# comment\n" + HEAD + "\n*注\n" + MOVES + "*注\nまで5手で先手の勝ち\n")
    assert [move[:3] for move in game.moves] == EXPECTED
    assert [move.claimed for move in game.moves] == [1, 1, 6, 4, 0]
    assert {move.line for move in game.moves} == {7}
    assert (game.names, game.result, game.summary) == (["甲", "乙"], WIN, WIN)


@pytest.mark.parametrize(
    "moves",
    [
        MOVES.replace(" ", ""),
        MOVES.replace("    ", "\n"),
        "　" + MOVES.replace("    ", "　"),
        MOVES.replace("▲", "☗").replace("△", "☖"),
        MOVES.replace("▲", "▼").replace("△", "▽"),
        MOVES.replace("同　", "同"),
        MOVES.replace("５五", "55").replace("５五", "５五").replace("55", "5五"),
        MOVES.replace("５五角", "５五角打"),
    ],
)
def test_moves_as_other_programs_write_them(moves):
    assert [move[:3] for move in ki2(HEAD + moves).moves] == EXPECTED


@pytest.mark.parametrize("suffix", [".ki2", ".ki2u", ".kif", ".txt"])
def test_a_list_may_name_it(tmp_path, suffix):
    (tmp_path / f"game{suffix}").write_text(HEAD + MOVES, encoding="cp932")
    (tmp_path / "list.txt").write_text(f"game{suffix}\n")
    assert len(read_kifu(str(tmp_path / "list.txt"))) == 5


def test_a_header_that_begins_with_a_number_says_nothing():
    assert len(ki2(HEAD + "1 手目から\n" + MOVES).moves) == 5
    kif = HEAD + "1\t７六歩(77)\n2\t投了\n▲７六歩が良い\n"
    assert [move[:3] for move in ki2(kif).moves] == EXPECTED[:1]


def test_a_handicap():
    game = ki2("手合割：二枚落ち\n下手：甲\n上手：乙\n△６二銀 ▲７六歩\n")
    assert (game.turn, game.names) == (shogi.WHITE, ["甲", "乙"])
    assert not replay(Games.of([game]))[1]


@pytest.mark.parametrize(
    ("end", "mark", "result"),
    [
        ("△投了", "%TORYO", WIN),
        ("　△投了\nまで5手で先手の勝ち", "%TORYO", WIN),
        ("△入玉勝ち", "%KACHI", LOSS),
        ("まで5手で千日手", None, DRAW),
        ("\b　まで5手で先手の勝ち", None, WIN),
        ("まで5手で中断", None, UNKNOWN),
        ("変化：1手\n▲２六歩", None, UNKNOWN),
        ("", None, UNKNOWN),
    ],
)
def test_the_end(end, mark, result):
    game = ki2((HEAD + MOVES + end + "\n").replace("\n\b", ""))  # on the line of the moves
    assert (game.end_mark, game.result, len(game.moves)) == (mark, result, 5)


#: Positions in which several pieces can go to a square, and the moves as books write them.
CHOICES = [
    ("4k4/9/9/9/9/9/9/3G1G3/4K4 b - 1", {"５八金左": "6h5h", "５八金右": "4h5h"}),
    ("4k4/9/9/9/9/9/3GGG3/9/4K4 b - 1", {"５六金直": "5g5f", "５六金右": "4g5f"}),
    ("8k/9/9/9/4G4/9/3GG4/9/4K4 b - 1", {"５六金直": "5g5f", "５六金引": "5e5f"}),
    ("4k4/9/9/9/4G4/9/3G1G3/9/4K4 b - 1", {"５六金引": "5e5f", "５六金左上": "6g5f"}),
    ("4k4/9/9/9/3S1S3/9/3S1S3/9/4K4 b - 1", {"５六銀右引": "4e5f", "５六銀左上": "6g5f"}),
    ("8k/9/9/9/1R6R/9/9/9/4K4 b - 1", {"５五飛左": "8e5e", "５五飛右": "1e5e"}),
    ("8k/4R4/9/9/1R7/9/9/9/4K4 b - 1", {"５五飛寄": "8e5e", "５五飛引": "5b5e"}),
    ("8k/9/9/+R+R7/9/9/9/9/4K4 b - 1", {"８三龍左": "9d8c", "８三龍右": "8d8c"}),
    ("8k/9/9/9/3N1N3/9/9/9/4K4 b - 1", {"５三桂左成": "6e5c+", "５三桂右不成": "4e5c"}),
    ("8k/9/9/9/9/9/9/3G5/4K4 b G 1", {"５八金": "6h5h", "５八金打": "G*5h", "６九金": "6h6i"}),
    ("8k/9/9/9/9/9/9/3G5/4K4 b G 1", {"５八金寄": "6h5h", "５八金右": "6h5h"}),
    ("8k/9/9/9/9/9/9/4K4/9 b G 1", {"５七金": "G*5g", "５七金打": "G*5g"}),
    # The gold on 5g protects its king, so both ways to write the move of the other are right.
    ("4r3k/9/9/9/9/9/4G4/5G3/4K4 b - 1", {"４七金": "4h4g", "４七金直": "4h4g"}),
    # Here it is the only gold that could go to 4g, so a drop does not need 打.
    ("4r3k/9/9/9/9/9/4G4/9/4K4 b G 1", {"４七金": "G*4g", "５六金": "5g5f"}),
]


@pytest.mark.parametrize(("sfen", "moves"), CHOICES)
@pytest.mark.parametrize("white", [False, True])
def test_the_piece_is_found(sfen, moves, white):
    board = shogi.Board(sfen)
    for text, usi in moves.items():
        if white:
            record = _with_board(board_of(placement_of(board), shogi.WHITE)) + "△" + _turned(text)
        else:
            record = _with_board(board) + "▲" + text
        (move,) = ki2(record).moves
        expected = shogi.Move.from_usi(usi)
        origin = expected.from_square
        assert move.target == expected.to_square
        assert move.origin == (80 + expected.drop_piece_type if origin is None else origin)
        assert (move.piece in range(9, 15) and move.claimed < 9) == expected.promotion


FILES, RANKS = "１２３４５６７８９", "一二三四五六七八九"


def _turned(text):
    """The same move, made by White."""
    return FILES[8 - FILES.index(text[0])] + RANKS[8 - RANKS.index(text[1])] + text[2:]


def _with_board(board):
    """The board as KIF and KI2 draw it."""
    names = dict(zip(range(1, 15), "歩香桂銀金角飛玉と杏圭全馬龍"))
    rows = []
    for y in range(9):
        cells = []
        for x in range(9):
            piece = board.piece_at(9 * y + x)
            side = "v" if piece and piece.color else " "
            cells.append(side + (names[piece.piece_type] if piece else "・"))
        rows.append("|" + "".join(cells) + "|\n")
    hands = [
        f"{side}手の持駒：" + ("　".join(names[kind] for kind in hand.elements()) or "なし") + "\n"
        for side, hand in zip("先後", board.pieces_in_hand)
    ]
    return "".join(rows) + "".join(hands) + ("後手番\n" if board.turn else "先手番\n")


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        (HEAD + MOVES.replace("△３四歩", ""), 4, "move 2 is not by the side to move"),
        (HEAD + "▲７五歩\n", 4, "move 1 can be made by no piece"),
        (HEAD + "▲７六と\n", 4, "move 1 can be made by no piece"),
        (HEAD + "▲５八金\n", 4, "move 1 can be made by several pieces"),
        (HEAD + "▲５八金直\n", 4, "move 1 can be made by no piece"),
        (HEAD + "▲７六歩打\n", 4, "move 1 can be made by no piece"),
        (HEAD + "▲７八金成\n", 4, "cannot promote"),
        (HEAD + "▲同歩\n", 4, "the first move says 同"),
        (HEAD + MOVES + "△０四歩\n", 5, "neither a move nor a known end"),
        (HEAD + MOVES + "△投了 ▲２六歩\n", 5, "after the end"),
        (HEAD + MOVES + "nonsense\n", 5, "not a move"),
        (HEAD + MOVES + "▲\n", 5, "neither a move nor a known end"),
        (HEAD.replace("平手", "その他") + MOVES, 4, "without a board"),
    ],
)
def test_what_cannot_be_understood_is_named_with_its_line(text, line, reason):
    with pytest.raises(RecordError) as caught:
        ki2(text)
    assert (caught.value.line, reason in caught.value.reason) == (line, True), caught.value


MUTATIONS = "▲△０一二七歩金同右左直上引寄打成不 \n投了：変化まで"


@settings(max_examples=300)
@given(st.data())
def test_mutated_records_are_read_right_or_refused(data):
    text = HEAD + MOVES + "△５二金右 ▲７七角成\nまで7手で先手の勝ち\n"
    for _ in range(data.draw(st.integers(1, 2))):
        place = data.draw(st.integers(0, len(text) - 1))
        cut = data.draw(st.integers(0, 3))
        text = text[:place] + data.draw(st.text(MUTATIONS, max_size=2)) + text[place + cut :]
    try:
        game = ki2(text)
    except RecordError:
        return
    assert 1 <= len(game.moves) <= 7 and set(game.start) <= set(range(29))


def test_the_placement_after_a_move_is_that_of_the_replay():
    for path in GAMES[::20]:
        game = parse_game(path.read_bytes())
        positions, faults = replay(Games.of([game]))
        assert not faults
        rows = positions.view(numpy.uint8).reshape(len(positions), -1)
        placement = game.start
        for row, move in zip(rows, game.moves):
            assert row[:PLACEMENT_SIZE].tobytes() == placement
            if move.origin < 81:
                piece = placement[move.origin]
                assert move.origin in origins(placement, piece, move.target)
            placement = placement_after(placement, move.origin, move.target, move.piece)


def test_the_pieces_that_can_go_to_a_square_are_those_of_python_shogi():
    for path in GAMES[::40]:
        board = shogi.Board()
        for usi in shogi.CSA.Parser.parse_file(str(path))[0]["moves"]:
            if board.move_number % 6 == 1:
                placement = placement_of(board)
                expected = {}
                for move in board.generate_pseudo_legal_moves():
                    if move.from_square is not None:
                        piece = board.piece_type_at(move.from_square)
                        expected.setdefault((piece, move.to_square), set()).add(move.from_square)
                found = {
                    (piece, target): set(squares)
                    for piece in range(1, 15)
                    for target in range(81)
                    if (squares := origins(placement, piece, target))
                }
                assert found == expected
            board.push_usi(usi)


def test_its_suffixes_are_those_of_kif():
    for name in ("a.ki2", "a.KI2U", "a.kif"):
        assert format_of(name, b"").name == "KIF"


def test_the_time_to_read_a_long_line_grows_with_its_length():
    seconds = []
    for count in (10_000, 80_000):
        text = HEAD + "▲７六歩 △３四歩 " + "(a)" * count
        tries = []
        for _ in range(3):
            begin = time.perf_counter()
            assert len(ki2(text).moves) == 2
            tries.append(time.perf_counter() - begin)
        seconds.append(min(tries))
    assert seconds[1] < 16 * seconds[0]  # 8 times; with a copy of each rest of the line, 30 times
