"""Records and positions that are analyzed."""

import pytest
import shogi
from analysis_helpers import GAME, ROOT

from pydlshogi.analysis.record import AnalysisError, read_position, read_record
from pydlshogi.kifu.csa import parse_game
from pydlshogi.kifu.replay import Games, replay
from pydlshogi.positions import placement_of

KIF = """手合割：二枚落ち
下手：a
上手：b
手数----指手---------消費時間--
   1 ６二銀(71)   ( 0:00/00:00:00)
   2 ７六歩(77)   ( 0:00/00:00:00)
   3 投了
"""


def test_the_positions_are_those_of_training():
    positions, faults = replay(Games.of([parse_game(GAME.read_bytes())]))
    boards = read_record(GAME).boards()
    assert not faults
    for row, board in zip(positions, boards):
        assert placement_of(board) == row["board"].tobytes() + row["hands"].tobytes()
    assert next(boards).move_number == len(positions) + 1  # one more position than moves


def test_a_ply_gives_the_same_position_as_the_way_there():
    record = read_record(GAME)
    for ply, board in enumerate(record.boards()):
        assert record.board(ply).sfen() == board.sfen()
    assert record.board().sfen() == board.sfen()


def test_names_and_the_end_are_read():
    record = read_record(GAME)
    assert record.names == ("ANSM", "sayapery_4c_4790K")
    assert (record.end_mark, record.winner) == ("%TORYO", shogi.BLACK)


def test_a_handicap_game_begins_with_white(tmp_path):
    (tmp_path / "a.kif").write_bytes(KIF.encode("cp932"))
    record = read_record(tmp_path / "a.kif")
    assert record.start.turn == shogi.WHITE
    assert [move.usi() for move in record.moves] == ["7a6b", "7g7f"]
    assert record.winner == shogi.BLACK


@pytest.mark.parametrize("ply", [-1, 110])
def test_a_ply_outside_the_game_is_refused(ply):
    with pytest.raises(AnalysisError, match="has 109 moves.* from 0 to 109"):
        read_record(GAME).board(ply)


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("missing.csa", None, "missing.csa cannot be read .* Check its path"),
        ("a.csa", "PI\n+\n+7776FU\n-3334FU\n+2826HI\n", "line 5: move 3 cannot be played"),
        ("a.csa", "PI\n+\n+7775FU\n", "line 3: move 1 cannot be played"),
        # The bishop becomes a horse; a promoted rook is no bishop's move.
        ("a.csa", "PI\n+\n+7776FU\n-3334FU\n+8822RY\n", "line 5: move 3 cannot be played"),
        # The record names the pawn, but a lance stands there.
        ("a.kif", "手合割：平手\n   1 ９八歩(99)\n", "line 2: move 1 cannot be played"),
        ("a.csa", "nonsense\n", "line 1: "),
        ("a.hcpe", "", "is a file of positions"),
        ("a.csa", "PI\n+\n%CHUDAN\n", "a.csa: it has no moves. Choose another record.$"),
    ],
)
def test_a_bad_record_is_one_sentence(name, content, message, tmp_path):
    if content is not None:
        (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(AnalysisError, match=message):
        read_record(tmp_path / name)


SECOND_PAWN = "+7776FU -3334FU +7675FU -3435FU +7574FU -7374FU +2726FU -0033FU"
KING_LEFT_IN_CHECK = "+7776FU -3334FU +8822UM -3122GI +2726FU -0095KA +2625FU"


@pytest.mark.parametrize(
    ("moves", "winner"), [(SECOND_PAWN, shogi.BLACK), (KING_LEFT_IN_CHECK, shogi.WHITE)]
)
@pytest.mark.parametrize("mark", ["%ILLEGAL_MOVE", "%+ILLEGAL_ACTION", "%-ILLEGAL_ACTION"])
def test_an_illegal_move_that_ends_a_game_is_left_out_and_loses(moves, winner, mark, tmp_path):
    path = tmp_path / "a.csa"
    path.write_text("\n".join(["PI", "+", *moves.split(), mark, ""]))
    record = read_record(path)
    assert len(record.moves) == len(moves.split()) - 1
    assert (record.end_mark, record.winner) == ("%ILLEGAL_MOVE", winner)


@pytest.mark.parametrize(
    "lines",
    [
        [*SECOND_PAWN.split(), "%TORYO"],
        [*SECOND_PAWN.split()],
        [*SECOND_PAWN.split(), "+2625FU", "%ILLEGAL_MOVE"],
    ],
)
def test_any_other_illegal_move_is_refused(lines, tmp_path):
    path = tmp_path / "a.csa"
    path.write_text("\n".join(["PI", "+", *lines, ""]))
    with pytest.raises(AnalysisError, match="line 10: move 8 cannot be played"):
        read_record(path)


def test_another_game_of_a_file_is_chosen_by_its_number(tmp_path):
    path = tmp_path / "two.csa"
    path.write_text("PI\n+\n+7776FU\n%TORYO\n/\nPI\n+\n+2726FU\n%TORYO\n")
    assert read_record(path, 2).moves[0].usi() == "2g2f"
    for number in (3, 10**30):
        with pytest.raises(AnalysisError, match=f"no game number {number}"):
            read_record(path, number)


@pytest.mark.parametrize("prefix", ["", "position "])
@pytest.mark.parametrize("start", ["startpos", "sfen " + shogi.STARTING_SFEN, shogi.STARTING_SFEN])
@pytest.mark.parametrize("moves", [[], ["7g7f"], ["7g7f", "3c3d", "8h2b+"]])
def test_positions_are_read_as_a_gui_sends_them(prefix, start, moves):
    text = prefix + start + (" moves " + " ".join(moves) if moves else "")
    expected = shogi.Board()
    for move in moves:
        expected.push_usi(move)
    record = read_position(text)
    assert record.board().sfen() == expected.sfen()
    assert [move.usi() for move in record.moves] == moves


@pytest.mark.parametrize(
    "text", ["", "moves", "startpos moves 7g7e", "startpos moves x", "lnsg b - 1", "foo bar baz"]
)
def test_a_bad_position_is_one_sentence(text):
    with pytest.raises(AnalysisError, match="Name a record file, or give a position such as"):
        read_position(text)


def test_every_embedded_game_of_the_test_list_is_read():
    games = sorted((ROOT / "kifu/test").glob("*.csa"))
    assert len(games) == 30
    for path in games[:8]:
        assert len(read_record(path).moves) == len(parse_game(path.read_bytes()).moves)
