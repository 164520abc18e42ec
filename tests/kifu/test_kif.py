"""KIF records against python-shogi's parser and the CSA of the same games."""

import re
import time
from pathlib import Path

import kifu_reference
import pytest
import shogi
import shogi.CSA
import shogi.KIF
from hypothesis import given, settings
from hypothesis import strategies as st

from pydlshogi.kifu.csa import parse_game
from pydlshogi.kifu.formats import details_of_kif
from pydlshogi.kifu.kif import parse_kif
from pydlshogi.kifu.parsed_game import RecordError
from pydlshogi.kifu.replay import Games, replay
from pydlshogi.positions import DRAW, EVEN_GAME, LOSS, UNKNOWN, WIN, placement_of

GAMES = sorted((Path(__file__).parents[2] / "kifu").rglob("*.csa"))[::8]
START = "手合割：平手　　\n先手：甲\n後手：乙\n手数----指手---------消費時間--\n"
MOVES = """\
   1 ７六歩(77)   ( 0:16/00:00:16)
*a comment
   2 ３四歩(33)   ( 0:00/00:00:00)+
   3 ２二角成(88)
   4 同　銀(31)
   5 ５五角打
"""
EXPECTED = [(56, 47, 1), (56, 47, 1), (64, 16, 13), (74, 64, 4), (86, 40, 6)]
BOARD = """\
後手の持駒：角　歩十二
  ９ ８ ７ ６ ５ ４ ３ ２ １
+---------------------------+
| ・ ・ ・ ・v玉 ・ ・ ・ ・|一
| ・ ・ ・ ・ ・ ・ ・ ・ ・|二
| ・ ・ ・ ・v歩 ・ ・ ・ ・|三
| ・ ・ ・ ・ ・ ・ ・ ・ ・|四
| ・ ・ ・ ・ ・ ・ ・ ・ ・|五
| ・ ・ ・ ・ ・ ・ ・ ・ ・|六
| ・ ・ ・ ・ 全 ・ ・ ・ ・|七
| ・ ・ ・v龍 ・ ・ ・ ・ ・|八
| ・ ・ ・ ・ 玉 ・ ・ ・ ・|九
+---------------------------+
先手の持駒：なし
後手番
"""


def kif(text, encoding="utf-8"):
    return parse_kif(text.encode(encoding))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp932", "euc_jp"])
def test_games_written_as_kif_are_those_written_as_csa(encoding):
    read = 0
    for path in GAMES:
        record = shogi.CSA.Parser.parse_file(str(path))[0]
        try:
            text = shogi.KIF.Exporter.kif(record)
        except shogi.KIF.ExporterException:
            continue
        judge = shogi.KIF.Parser.parse_str(text)[0]
        assert judge["moves"] == record["moves"]
        expected, found = parse_game(path.read_bytes()), kif(text, encoding)
        assert [move[:3] for move in found.moves] == [move[:3] for move in expected.moves]
        lines = text.splitlines()
        for number, move in enumerate(found.moves, 1):
            assert lines[move.line - 1].split()[0] == str(number)
        assert (found.start, found.turn, found.result) == (EVEN_GAME, 0, expected.result)
        assert found.summary == found.result
        read += 1
    assert read > 10


def test_a_plain_record():
    game = kif(START + MOVES + "   6 投了\nまで5手で先手の勝ち\n\n変化：4手\n   4 同　飛(82)\n")
    assert [move[:3] for move in game.moves] == EXPECTED
    assert [move.claimed for move in game.moves] == [1, 1, 6, 4, 0]
    assert game.names == ["甲", "乙"]
    assert (game.end_mark, game.result, game.summary) == ("%TORYO", WIN, WIN)


#: The format has them, but python-shogi does not.
SEVEN_PIECES = {
    "左七枚落ち": "2sgkg3/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "右七枚落ち": "3gkgs2/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
}


@pytest.mark.parametrize(
    ("name", "sfen"), [*shogi.KIF.Parser.HANDYCAP_SFENS.items(), *SEVEN_PIECES.items()]
)
def test_handicaps(name, sfen):
    if sfen is None:
        with pytest.raises(RecordError, match="without a board"):
            kif(f"手合割：{name}\n   1 ７六歩(77)\n")
        return
    board = shogi.Board(sfen)
    game = kif(f"手合割：{name}　\n   1 ７六歩(77)\n")
    assert (game.start, game.turn) == (placement_of(board), board.turn)


def test_a_board_of_its_own():
    game = kif(BOARD + "   1 ５九龍(68)\n")
    judge = shogi.KIF.Parser.parse_str(BOARD.replace("+---", "+----"))[0]
    board = shogi.Board(judge["sfen"])
    assert board.sfen() == "4k4/9/4p4/9/9/9/4+S4/3+r5/4K4 w b12p 1"
    assert (game.start, game.turn) == (placement_of(board), shogi.WHITE)
    assert game.moves[0][:4] == (14, 4, 14, 14)


@pytest.mark.parametrize(
    ("end", "result"),
    [
        ("投了", WIN),
        ("詰み", WIN),
        ("切れ負け", WIN),
        ("反則負け", WIN),
        ("反則勝ち", LOSS),
        ("時間切れ", WIN),
        ("詰", WIN),
        ("入玉勝ち", LOSS),
        ("入玉宣言", LOSS),
        ("入玉宣言勝ち", LOSS),
        ("打ち切り", UNKNOWN),
        ("宣言勝ち", LOSS),
        ("勝ち宣言", LOSS),
        ("引き分け", DRAW),
        ("最大手数超過", DRAW),
        ("千日手", DRAW),
        ("持将棋", DRAW),
        ("中断", UNKNOWN),
        ("トライ", UNKNOWN),
        ("トライ成立", UNKNOWN),
        ("王手連続千日手", UNKNOWN),
    ],
)
def test_ends_with_white_to_move(end, result):
    assert kif(f"{START}{MOVES}   6 {end}   ( 0:01/00:00:10)\n").result == result


def test_an_end_by_a_word_that_is_not_known():
    for closing, result in (("まで5手で先手の勝ち", WIN), ("まで5手で後手の勝ち", LOSS)):
        game = kif(f"{START}{MOVES}   6 トライ   ( 0:01/00:00:10)\n{closing}\n")
        assert (game.end_mark, game.result, len(game.moves)) == (None, result, 5)


@pytest.mark.parametrize(
    ("closing", "result"),
    [
        ("まで5手で先手の勝ち", WIN),
        ("まで5手で下手の勝ち", WIN),
        ("まで5手で後手の反則負け", WIN),
        ("まで5手で時間切れにより上手の勝ち", LOSS),
        ("まで5手で先手の入玉勝ち", WIN),
        ("まで5手で後手の切れ負け", WIN),
        ("まで5手で先手の反則により後手の勝ち", LOSS),
        ("まで5手で王手連続千日手により先手の勝ち", WIN),
        ("まで、５手で先手の勝ち", WIN),
        (" まで 5手で先手勝ち", WIN),
        ("まで5手で引き分け", DRAW),
        ("まで5手で中断（先手の勝勢）", UNKNOWN),
        ("まで5手で中断 先手勝率60%", UNKNOWN),
        ("まで5手で後手の勝", LOSS),
        ("まで5手で王手連続千日手", UNKNOWN),
        ("まで5手で千日手", DRAW),
        ("まで5手で中断", UNKNOWN),
        ("", UNKNOWN),
    ],
)
def test_the_closing_line_counts_where_there_is_no_end(closing, result):
    assert kif(START + MOVES + closing + "\n").result == result
    assert kif(START + MOVES + "   6 入玉勝ち\n" + closing + "\n").result == LOSS


def test_the_board_as_other_programs_write_it():
    expected = kif(BOARD + "   1 ５九龍(68)\n")
    for old, new in [
        *[("v", "V"), ("v", "ｖ"), ("・", "･"), (" 全", "^全"), ("手の持駒：", "手の持駒:")],
        *[("の持駒", "の持ち駒"), ("　歩十二", "　歩六　歩六"), ("　歩十二", "歩十二")],
        *[("手の持駒", "手持駒"), ("手の持駒", "手の手駒"), ("後手の", "△"), ("後手の", "☖")],
        ("９ ８ ７ ６ ５ ４ ３ ２ １", "9 8 7 6 5 4 3 2 1"),
        *[("|", "｜"), ("|", "│"), ("\n|", "\n |"), ("\n|", "\n\t|"), ("後手番", "手番：後手")],
    ]:
        assert old in BOARD
        found = kif(BOARD.replace(old, new) + "   1 ５九龍(68)\n")
        assert found.start == expected.start
    found = kif("手合割：詰将棋\n" + BOARD + "   1 ５九龍(68)\n")
    assert (found.start, found.turn) == (expected.start, expected.turn)


def test_moves_as_other_programs_write_them():
    expected = kif(START + MOVES)
    for old, new in [("５五角打", "５五角打(00)"), (" ７六", " ▲７六"), (" 同", " △同")]:
        assert old in MOVES
        assert kif(START + MOVES.replace(old, new)) == expected


def test_tabs_times_and_notes_as_other_programs_write_them():
    expected = [move[:4] for move in kif(START + MOVES).moves]
    for old, new in [
        ("   2 ", "2\t"),
        ("   2 ", "\t2\t"),
        *[("( 0:16/00:00:16)", text) for text in ("(--:--/--:--:--)", "（0:16）", "[0:16]")],
        *[("( 0:16/00:00:16)", text) for text in ("(0分16秒)", "(16秒)", "(0:16／00:00:16)")],
        ("( 0:16/00:00:16)", "\t( 0:16/00:00:16)\t+"),
        ("( 0:16/00:00:16)", "( 0:16/00:00:16)*a comment"),
        ("   1 ", "   0 開始局面\n   1 "),
    ]:
        assert old in MOVES
        assert [move[:4] for move in kif(START + MOVES.replace(old, new)).moves] == expected
    for end in ("   6 投了\n", "まで5手で先手の勝ち\n", "   6 256手到達\n"):
        for note in ("以上", "https://example.com/", "備考：なし"):
            game = kif(START + MOVES + end + note + "\n")
            assert [move[:4] for move in game.moves] == expected


@pytest.mark.parametrize(
    ("written", "usual"),
    [
        *[
            ("二枚落", "二枚落ち"),
            ("２枚落ち", "二枚落ち"),
            ("2枚落ち", "二枚落ち"),
            ("10枚落", "十枚落ち"),
        ],
        *[("角落", "角落ち"), ("飛落ち", "飛車落ち"), ("飛車落", "飛車落ち")],
        *[("なし", "平手"), ("互先", "平手"), ("", "平手")],
    ],
)
def test_handicaps_as_other_programs_write_them(written, usual):
    moves = "   1 ３四歩(33)\n" if usual != "平手" else "   1 ７六歩(77)\n"
    expected = kif(f"手合割：{usual}\n{moves}")
    assert kif(f"手合割：{written}\n{moves}") == expected


def test_a_variation_in_the_head_is_no_end():
    expected = kif(START + MOVES)
    assert kif(START.replace("手合割：平手", "変化：1手") + MOVES) == expected
    assert kif(START + MOVES + " 変化：2手\n   2 ８四歩(83)\n") == expected


def test_a_header_that_begins_with_a_number_is_no_move():
    expected = kif(START + MOVES)
    for header in ("10 秒将棋", "2 人", "1 手目から"):
        text = START.replace("手数--", header + "\n手数--")
        assert [move[:4] for move in kif(text + MOVES).moves] == [m[:4] for m in expected.moves]
        details = details_of_kif((text + MOVES).encode())
        assert details == details_of_kif((START + MOVES).encode())
        assert details.comments == {1: "a comment"}
    for damaged in ("７六歩", "六歩(77)", "76歩"):
        with pytest.raises(RecordError, match="neither a move"):
            kif(START + MOVES.replace("７六歩(77)", damaged))


def test_damaged_letters_outside_the_moves_cost_nothing():
    expected = kif(START + MOVES)
    for encoding, damage in (("cp932", b"\x81"), ("utf-8", b"\xe5\x85"), ("euc_jp", b"\xa4")):
        data = f"{START}{MOVES}".encode(encoding)
        name = "乙\n".encode(encoding)
        found = parse_kif(data.replace(name, name[:-1] + damage + b"\n"))
        assert (found.moves, found.names[0]) == (expected.moves, "甲")
        cut = parse_kif(data + "*注".encode(encoding)[:-1])
        assert cut.moves == expected.moves
        for end in (b"\x1a", b"\x1a\r\n"):
            assert parse_kif(data + end) == expected


def test_a_long_run_of_blanks_costs_no_time():
    begin = time.perf_counter()
    with pytest.raises(RecordError, match="unknown text"):
        kif(START + "   1 ７六歩(77)" + 20_000 * " " + "x\n")
    with pytest.raises(RecordError, match="unknown text"):
        kif(START + "   1 ７六歩(77)(0:01)" + 200_000 * " " + "x\n")
    # 0.05 s; with a pattern that tries all divisions of the blanks, hours
    assert time.perf_counter() - begin < 20


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        (START + MOVES.replace("四歩(33)", "四歩"), 7, "neither a move"),
        (START + MOVES + "   6 同\n", 11, "neither a move"),
        (START + MOVES + "   6 \ufffd\ufffd\n", 11, "neither a move"),
        (START + MOVES + "   6 ロ(77)\n", 11, "neither a move"),
        (START + MOVES + "   6 同手(77)\n", 11, "neither a move"),
        (START.replace("平手", "歩落ち") + MOVES, 1, "unknown handicap"),
        (BOARD.replace("後手の持", "後\ufffd持") + "   1 ５九龍(68)\n", 1, "a damaged name"),
        (START + MOVES + "   6 トライ\n   7 ２六歩(27)\n", 12, "after the end"),
        ("", 0, "no moves"),
        (BOARD.replace("v歩", "?歩") + "   1 ５九龍(68)\n", 6, "nine known squares"),
        (START + MOVES.replace("３四歩(33)", "３四(33)"), 7, "neither a move"),
        (START + MOVES.replace("   3", "   4"), 8, "number '4' instead of 3"),
        (
            START + MOVES.replace("   3", "9" * 5000),
            8,
            "99999...' instead of 3",
        ),
        (START + MOVES + "   6 投了\n   7 ７七歩打\n", 12, "after the end"),
        (START + MOVES.replace("角打", "馬打"), 10, "cannot be in hand"),
        (START + MOVES.replace("７六歩(77)", "７八金成(69)"), 5, "cannot promote"),
        (START + MOVES.replace("７六歩(77)", "同　歩(77)"), 5, "the first move"),
        (START + MOVES.replace("( 0:16/00:00:16)", "??"), 5, "after the move"),
        (START + MOVES + "nonsense\n", 11, "not a move"),
        (START.replace("平手", "七枚") + MOVES, 1, "unknown handicap without a board"),
        (START, 0, "no moves"),
        ("hello", 0, "not KIF text"),
        (BOARD.replace("角", "金玉"), 1, "unknown pieces in hand"),
        (BOARD.replace("歩十二", "歩十二二"), 1, "unknown pieces in hand"),
        (BOARD.replace("歩十二", "と"), 1, "unknown pieces in hand"),
        (BOARD.replace("歩十二", "歩99歩99歩99"), 1, "more than 18 pieces of one kind"),
        (BOARD.replace("歩十二", "歩十歩九"), 1, "more than 18 pieces of one kind"),
        (BOARD.replace("| ・", "|", 1), 4, "nine known squares"),
        (BOARD.replace("|", "", 2) + "   1 ５九龍(68)\n", 16, "nine rows"),
        (BOARD.replace("|", " ") + "   1 ５九龍(68)\n", 16, "nine rows"),
        (BOARD.replace("後手の持", "持") + "   1 ５九龍(68)\n", 1, "of an unknown side"),
        (START + MOVES + "まで5手で先手の勝ち\n   6 ４二銀(31)\n", 12, "after the end"),
        (START + MOVES.replace("( 0:16/00:00:16)", "( 0:16x)"), 5, "after the move"),
        (BOARD.replace("v龍", "v玉") + "   1 ５九龍(68)\n", 16, "two kings"),
    ],
)
def test_what_cannot_be_understood_is_named_with_its_line(text, line, reason):
    with pytest.raises(RecordError) as caught:
        kif(text)
    assert (caught.value.line, reason in caught.value.reason) == (line, True), caught.value


MUTATIONS = "０一二七歩角成打同(77)1 \n投了＋：|手合割香落ち"


@settings(max_examples=200)
@given(st.data())
def test_mutated_records_are_read_right_or_refused(data):
    text = START + MOVES + "   6 投了\nまで5手で先手の勝ち\n"
    for _ in range(data.draw(st.integers(1, 2))):
        place = data.draw(st.integers(0, len(text) - 1))
        cut = data.draw(st.integers(0, 3))
        text = text[:place] + data.draw(st.text(MUTATIONS, max_size=2)) + text[place + cut :]
    try:
        game = kif(text)
    except RecordError:
        return
    positions, faults = replay(Games.of([game]))
    if faults:
        return
    # The judge knows neither the mark of a variation nor a blank after a value.
    known = re.sub(r"[ \u3000]+$", "", text.replace(")+", ")"), flags=re.MULTILINE)
    try:
        judge = shogi.KIF.Parser.parse_str(known)[0]
    except KeyError:  # a name of a handicap that it does not know
        assert "手合割：平手\n" not in known
        return
    assert len(judge["moves"]) <= len(game.moves)
    if len(judge["moves"]) == len(game.moves):
        expected = kifu_reference.play(shogi.Board(judge["sfen"]), judge["moves"], game.result)
        assert positions.tobytes() == expected.tobytes()
