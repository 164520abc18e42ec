"""Files with several games of KIF or KI2: each game is read as in a file of its own."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pydlshogi.kifu.formats import records_of
from pydlshogi.kifu.kif import parse_kif
from pydlshogi.kifu.parsed_game import NoMovesError, RecordError

#: An even game without White's lance on 1一.
BOARD = """\
後手の持駒：なし
  ９ ８ ７ ６ ５ ４ ３ ２ １
+---------------------------+
|v香v桂v銀v金v玉v金v銀v桂 ・|一
| ・v飛 ・ ・ ・ ・ ・v角 ・|二
|v歩v歩v歩v歩v歩v歩v歩v歩v歩|三
| ・ ・ ・ ・ ・ ・ ・ ・ ・|四
| ・ ・ ・ ・ ・ ・ ・ ・ ・|五
| ・ ・ ・ ・ ・ ・ ・ ・ ・|六
| 歩 歩 歩 歩 歩 歩 歩 歩 歩|七
| ・ 角 ・ ・ ・ ・ ・ 飛 ・|八
| 香 桂 銀 金 玉 金 銀 桂 香|九
+---------------------------+
先手の持駒：なし
"""
TITLE = "手数----指手---------消費時間--\n"
MOVES = "   1 ７六歩(77)   ( 0:01/00:00:01)\n*a comment\n   2 ３四歩(33)\n"
HANDICAP = "   1 ３四歩(33)\n   2 ７六歩(77)\n"
STARTS = [
    "手合割：平手　　\n",
    "手合割：二枚落ち\n",
    "手合割：その他\n" + BOARD,
    BOARD,
    BOARD.replace("９ ８ ７ ６ ５ ４ ３ ２ １", "9 8 7 6 5 4 3 2 1"),
]


def part(text):
    """Says that a part of a record may be missing."""
    return st.sampled_from(["", text])


@st.composite
def records(draw):
    """Writes a record as several programs do."""
    start = draw(st.sampled_from(STARTS))
    text = draw(part("# ---- Kifu for Windows V7 ----\n")) + draw(part("棋戦：名人戦\n"))
    text += draw(part("開始日時：2020/01/01\n")) + start + draw(part("変化：1手\n"))
    text += draw(part("10 秒将棋\n"))
    name = draw(st.sampled_from("甲乙丙丁戊己"))
    black, white = "下上" if "二枚" in start else "先後"
    text += f"{black}手：{name}\n{white}手：x\n" + draw(part("*備考：なし\n"))
    title, empty, comment = draw(part(TITLE)), draw(part("\n")), draw(part("*注\n"))
    if draw(st.booleans()):
        moves = "△３四歩 ▲７六歩\n" if "二枚" in start else "▲７六歩 △３四歩\n"
        end = draw(st.sampled_from(["", "まで2手で先手の勝ち\n", "まで2手で中断\n"]))
        return text + empty + moves + end + comment + empty
    moves = draw(st.sampled_from([HANDICAP if "二枚" in start else MOVES, ""]))
    number = 3 if moves else 1
    closing = f"まで{number - 1}手で中断\n"
    ends = [f"   {number} 投了\n", f"   {number} 中断  ( 0:01/00:00:09)\n{closing}"]
    end = draw(st.sampled_from([*ends, *(["", "まで2手で先手の勝ち\n"] if moves else [])]))
    variation = draw(part("\n変化：2手\n   2 ８四歩(83)\n*注\n")) if moves else ""
    return text + title + empty + moves + end + comment + variation + empty


def reading(text):
    """Reads a record: the game without the numbers of its lines, or why there is none."""
    try:
        game = parse_kif(text)
    except RecordError as error:
        return error.reason
    moves = [move[:4] for move in game.moves]
    return moves, game.start, game.turn, game.names, game.result, game.end_mark


def games_of(text, encoding="utf-8"):
    return [reading(record.text) for record in records_of("a.kif", text.encode(encoding))]


DIAGRAM = BOARD + "先手：甲\n後手：乙\n" + TITLE + MOVES + "   3 投了\n"


@settings(max_examples=300)
@given(st.lists(records(), min_size=2, max_size=4), st.sampled_from(["utf-8", "cp932", "euc_jp"]))
@example([DIAGRAM, DIAGRAM], "utf-8")
@example(["手合割：平手\n" + MOVES, "棋戦：名人戦\n手合割：平手\n" + MOVES], "utf-8")
def test_games_of_a_file_are_read_as_in_files_of_their_own(texts, encoding):
    assert games_of("".join(texts), encoding) == [reading(text.encode()) for text in texts]


@pytest.mark.parametrize("end", ["   1 中断\n", "", "   1 投了   ( 0:01/00:00:01)\n"])
def test_a_game_without_moves_does_not_change_the_next_one(end):
    for empty in ("手合割：二枚落ち\n下手：甲\n" + TITLE, BOARD + "先手：甲\n" + TITLE):
        even = "先手：乙\n" + TITLE + MOVES + "   3 投了\n"
        expected = [reading((empty + end).encode()), reading(even.encode())]
        assert expected[0] == "it has no moves of KIF or KI2"
        assert games_of(empty + end + even) == expected
        assert games_of(even + empty + end + even) == [expected[1], *expected]
        with pytest.raises(NoMovesError):
            parse_kif((empty + end).encode())


def test_a_board_belongs_to_the_names_below_it_but_not_to_the_next_handicap():
    names = "先手：甲\n" + TITLE + MOVES + "   3 投了\n"
    even, odd = reading(names.encode()), reading((BOARD + names).encode())
    assert even != odd
    assert games_of(names + BOARD + names) == [even, odd]
    for between in ("", "\n", "手数＝2  △３四歩  まで\n", "開始日時：2020/01/01\n"):
        assert games_of(names + BOARD + between + "手合割：平手\n" + names) == [even, even]


def test_a_damaged_last_move_stays_in_its_game():
    game = "手合割：平手\n先手：甲\n" + MOVES
    good = reading(game.encode())
    assert games_of(game + "棋戦：名人戦\n" + game) == [good, good]
    for damaged in ("   3 ２六歩27)\n", "   3 ２六(27)\n", "   3 ??\n", "   3\n"):
        first, second = games_of(game + damaged + "棋戦：名人戦\n" + game)
        assert isinstance(first, str)  # why it is left out
        assert second == good
