"""Records of other programs that were once read wrong or refused, each with its right reading.

The files are in ``tests/data/faults``.
"""

import re
import shutil
from pathlib import Path

import pytest
import shogi

from pydlshogi.analysis.pictures import end_text
from pydlshogi.analysis.record import read_record
from pydlshogi.commands import make_kifu_list
from pydlshogi.kifu.formats import format_of, records_of
from pydlshogi.kifu.kif import parse_kif
from pydlshogi.kifu.parsed_game import RecordError
from pydlshogi.kifu.reading import read_positions
from pydlshogi.kifu.sources import KifuError, read_list
from pydlshogi.positions import DRAW, LOSS, UNKNOWN, WIN

FAULTS = Path(__file__).parents[1] / "data" / "faults"
HEAD = "手合割：平手\n先手：甲\n後手：乙\n"
TITLE = "手数----指手---------消費時間--\n"
KIF = HEAD + TITLE + "   1 ７六歩(77)\n   2 ３四歩(33)\n"
KI2 = HEAD + "▲７六歩 △３四歩\n"
#: White drops a second pawn on a file.
SECOND_PAWN = "▲７六歩 △３四歩 ▲７五歩 △３五歩 ▲７四歩 △同歩 ▲２六歩 △３三歩\n"


def read(tmp_path, text, name="game.kif", **options):
    """Reads a record by a list: the results of its games for Black, and their lengths."""
    (tmp_path / name).write_bytes(text.encode("cp932") if isinstance(text, str) else text)
    (tmp_path / "list").write_text(name)
    positions, report = read_positions(tmp_path / "list", **options)
    assert not report.excluded, report.excluded
    starts = [row for row in range(len(positions)) if positions["ply"][row] == 1]
    lengths = [end - start for start, end in zip(starts, [*starts[1:], len(positions)])]
    return positions["result"][starts].tolist(), lengths


#: The results of the games for Black, and their numbers of moves.
EXPECTED = {
    "01-ki2-foul-in-closing-line.ki2": ([WIN], [3]),
    "03-kif-foul-in-closing-line.kif": ([WIN], [3]),
    "04-ki2-halfwidth-digits.ki2": ([WIN], [4]),
    "06-kif-81dojo-time-up.kif": ([LOSS], [2]),
    "07-kif-resign-then-interrupted.kif": ([LOSS], [2]),
    "09-kif-blank-behind-piece-name.kif": ([LOSS], [4]),
    "10-ki2-mate-in-closing-line.ki2": ([LOSS], [2]),
    "12-kif-draw-word.kif": ([DRAW], [2]),
    "14-kif-blank-before-comment.kif": ([LOSS], [2]),
    "15-ki2-in-txt.txt": ([WIN], [4]),
    "17-kif-numbers-go-on-from-the-diagram.kif": ([LOSS], [2]),
    "18-kif-two-games-in-one-file.kif": ([LOSS, LOSS], [2, 2]),
}


@pytest.mark.parametrize("name", sorted(path.name for path in FAULTS.iterdir()))
@pytest.mark.parametrize("strict", [False, True])
def test_each_file_has_its_right_reading(name, strict, tmp_path):
    assert read(tmp_path, (FAULTS / name).read_bytes(), name, strict=strict) == EXPECTED[name]


def test_the_names_of_two_games_in_a_file_are_their_own(tmp_path):
    path = FAULTS / "18-kif-two-games-in-one-file.kif"
    assert [move.usi() for move in read_record(path, 2).moves] == ["2g2f", "8c8d"]
    notes = [record.note(4, "x") for record in records_of(path.name, path.read_bytes())]
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [lines[note.line - 1][:2] for note in notes] == ["手数", "手数"]


def test_a_header_below_a_game_is_a_note_unless_moves_follow():
    for note in ("手合割：平手", "先手：甲\n後手：乙", "手合割：平手\n変化：1手\n   1 ２六歩(27)"):
        data = (KIF + "   3 投了\n" + note + "\n").encode()
        (record,) = records_of("a.kif", data)
        assert len(record.parse().moves) == 2


@pytest.mark.parametrize(
    ("closing", "result", "left"),
    [
        ("先手の反則勝ち", WIN, 3),
        ("後手の反則負け", WIN, 3),
        ("反則により先手の勝ち", WIN, 3),
        ("後手の反則により先手の勝ち", WIN, 3),
        ("後手の反則行為により、先手の勝ち", WIN, 3),
        ("△の反則負け", WIN, 3),
        ("反則勝ち", WIN, 3),
        ("反則勝", WIN, 3),
        ("後手の反則", WIN, 3),
        ("後手の王手放置により先手の勝ち", WIN, 3),
        ("上手の反則負け", WIN, 3),
        # The side to move broke a rule, and its move was not written.
        ("先手の反則負け", LOSS, 4),
        ("反則負け", LOSS, 4),
        ("先手の反則により後手の勝ち", LOSS, 4),
    ],
)
@pytest.mark.parametrize("kind", ["kif", "ki2"])
def test_a_foul_in_the_closing_line_leaves_no_move_to_learn(closing, result, left, kind, tmp_path):
    (path,) = FAULTS.glob(f"0?-{kind}-foul-in-closing-line.{kind}")
    text = path.read_text(encoding="utf-8").replace("先手の反則勝ち", closing)
    if left == 4:  # the last move is no foul
        text = text.replace("△９四歩", "△同桂").replace("９四歩(93)", "同　桂(21)")
    assert read(tmp_path, text, f"game.{kind}") == ([result], [left])


@pytest.mark.parametrize(
    "closing",
    ["先手の反則勝ち", "後手の反則負け", "反則負け", "二歩", "後手の二歩", "二歩により先手の勝ち"],
)
def test_a_second_pawn_on_a_file_is_no_move_to_learn(closing, tmp_path):
    text = HEAD + SECOND_PAWN.replace("△３三歩", "△３四歩打") + f"まで8手で{closing}\n"
    assert read(tmp_path, text, "game.ki2") == ([WIN], [7])
    record = read_record(tmp_path / "game.ki2")
    assert (len(record.moves), record.winner, record.end_mark) == (7, shogi.BLACK, "%ILLEGAL_MOVE")


@pytest.mark.parametrize("end", ["%ILLEGAL_MOVE", "%-ILLEGAL_ACTION"])
def test_a_foul_that_csa_marks_is_no_move_to_learn(end, tmp_path):
    moves = "+7776FU -3334FU +8833UM -9394FU"
    text = "\n".join(["PI", "+", *moves.split(), end, ""])
    assert read(tmp_path, text, "game.csa") == ([WIN], [3])
    legal = text.replace("-9394FU", "-2133KE")
    # The side to move is blamed, or else the side that moved last.
    expected = ([LOSS], [4]) if end == "%ILLEGAL_MOVE" else ([WIN], [3])
    assert read(tmp_path, legal, "game.csa") == expected


DIGITS = [
    "７六 ３四 ２二",
    "76 34 22",
    "７６ ３４ ２２",
    "7六 3四 2二",
    "七六 三四 二二",
    "７6 3４ 2２",
]


@pytest.mark.parametrize("digits", DIGITS)
@pytest.mark.parametrize("origin", ["({}{})", "（{}{}）", " ({}{})", "　({}{})"])
def test_all_forms_of_digits_are_read(digits, origin, tmp_path):
    one, two, three = digits.split()
    text = HEAD + f"▲{one}歩 △{two}歩 ▲{three}角成 △同銀\nまで4手で先手の勝ち\n"
    assert read(tmp_path, text, "game.ki2") == ([WIN], [4])
    lines = [f"{one}歩7,7", f"{two}歩3,3", f"{three}角成8,8", "同銀3,1"]
    for marks in ("    ", "▲△▲△"):
        moves = "".join(
            f"{number:4} {mark.strip()}"
            + re.sub("(.),(.)", lambda found: origin.format(*found.groups()), line)
            + "\n"
            for number, (mark, line) in enumerate(zip(marks, lines), 1)
        )
        assert read(tmp_path, HEAD + TITLE + moves + "   5 投了\n") == ([LOSS], [4])


@pytest.mark.parametrize("blank", [" ", "　", "\t", "\xa0", "\u2003", "\u200b", " 　\t\xa0"])
def test_all_blanks_are_blanks(blank, tmp_path):
    text = (FAULTS / "09-kif-blank-behind-piece-name.kif").read_text(encoding="utf-8")
    text = (
        text.replace("同銀　(", f"同{blank}銀{blank}(").replace("   ", blank).replace("１　", "１")
    )
    assert read(tmp_path, text.encode()) == ([LOSS], [4])
    text = (FAULTS / "14-kif-blank-before-comment.kif").read_text(encoding="utf-8")
    assert read(tmp_path, text.replace("  *", blank + "*").encode()) == ([LOSS], [2])
    text = (
        KI2.replace(" ", blank) + f"{blank}*注\n▲２二角成{blank}△同{blank}銀{blank}▲{blank}投了\n"
    )
    assert read(tmp_path, text.encode(), "game.ki2") == ([LOSS], [4])


@pytest.mark.parametrize(
    "number", ["{}", "{:>4}", "{:03}", "{}.", "{}．", "{}:", "{})", "{}、", "{}手目"]
)
def test_numbers_as_other_programs_write_them(number, tmp_path):
    for wide in (str.maketrans({}), str.maketrans("123", "１２３")):
        text = HEAD
        for ply, move in enumerate(["７六歩(77)", "３四歩(33)", "投了"], 1):
            text += f"{number.format(ply).translate(wide)} {move}\n"
        assert read(tmp_path, text) == ([LOSS], [2])


@pytest.mark.parametrize(
    ("word", "result"),
    [
        *[(word, LOSS) for word in ("Resign", "resigns", "Time-up", "Time up", "TIMEOUT")],
        *[(word, LOSS) for word in ("Checkmate", "Illegal move", "投了", "投了しました")],
        *[
            (word, LOSS)
            for word in ("負けました", "%TORYO", "投了（先手）", "先手投了", "先手の投了")
        ],
        *[(word, UNKNOWN) for word in ("トライ", "千日手（連続王手）", "王手連続千日手")],
        *[
            (word, LOSS)
            for word in ("詰", "詰み", "切れ負け", "切負け", "時間切れ", "時間切れ負け")
        ],
        *[(word, LOSS) for word in ("持ち時間切れ", "反則負け", "反則負", "反則", "不戦敗")],
        *[(word, WIN) for word in ("不戦勝", "不戦勝ち", "入玉勝ち", "入玉勝", "入玉宣言勝ち")],
        *[(word, WIN) for word in ("入玉宣言", "宣言勝ち", "勝ち宣言", "反則勝ち", "切れ勝ち")],
        *[
            (word, DRAW)
            for word in ("引分け", "引分", "引き分け", "引き分", "千日手", "千日手成立")
        ],
        *[(word, DRAW) for word in ("持将棋", "最大手数", "最大手数超過", "Draw", "Repetition")],
        *[
            (word, UNKNOWN)
            for word in ("中断", "打ち切り", "打切り", "指し掛け", "指掛け", "封じ手")
        ],
        *[(word, UNKNOWN) for word in ("不詰", "不詰み", "待った", "中止", "Suspended")],
        *[("先手の勝ち", WIN), ("後手の勝ち", LOSS), ("後手の時間切れ負け", WIN)],
    ],
)
def test_words_for_the_end(word, result, tmp_path):
    game = parse_kif(f"{KIF}   3 {word}   ( 0:00/00:00:01)\n".encode())
    assert (game.result, len(game.moves)) == (result, 2)
    if any(part in word for part in ("手の", "手投", "（", "トライ", "王手")):
        return
    # On a line of their own, without a number or a mark.
    assert parse_kif(f"{KIF}{word}\n".encode()).result == result
    assert parse_kif(f"{KI2}{word}\n".encode()).result == result
    if " " not in word:
        assert parse_kif(f"{KI2}▲{word}\n".encode()).result == result


@pytest.mark.parametrize(
    ("closing", "result"),
    [
        *[
            (f"まで2手で{word}", LOSS)
            for word in ("詰み", "詰", "投了", "切れ負け", "時間切れ", "時間切れ負け")
        ],
        *[("まで2手詰", LOSS), ("まで2手で入玉勝ち", WIN), ("まで2手で詰み。", LOSS)],
        *[
            (f"まで2手で{word}", DRAW)
            for word in ("引き分け", "引分け", "引分", "持将棋（相入玉）")
        ],
        *[("まで2手で千日手により引き分け", DRAW), ("まで2手で最大手数により引き分け", DRAW)],
        *[("まで2手で不戦勝", WIN), ("まで2手で不戦敗", LOSS), ("まで2手で先手の不戦敗", LOSS)],
        *[
            (f"まで2手で後手の{word}", LOSS)
            for word in ("勝ち", "勝", "入玉宣言勝ち", "不戦勝", "勝利")
        ],
        *[
            (f"まで2手で先手の{word}", LOSS)
            for word in ("負け", "敗け", "時間切れ負け", "切れ負け")
        ],
        *[("まで2手で時間切れにより後手の勝ち", LOSS), ("まで2手で投了により後手の勝ち", LOSS)],
        *[(f"まで2手で先手{word}", LOSS) for word in ("投了", "の投了", "時間切れ", "が投了")],
        *[("まで2手で連続王手の千日手により先手の勝ち", WIN), ("まで2手で後手投了", WIN)],
        *[("まで2手で切断により後手の勝ち", LOSS), ("まで2手で先手が投了、後手の勝ち", LOSS)],
        *[
            ("まで、2手で後手の勝ち", LOSS),
            ("まで２手にて後手の勝ち", LOSS),
            ("まで二手で後手勝ち", LOSS),
        ],
        *[
            ("以上2手で後手の勝ち", LOSS),
            ("以上、2手にて後手の勝ち", LOSS),
            ("2手まで後手の勝ち", LOSS),
        ],
        *[
            ("まで後手の勝ち", LOSS),
            ("まで 2 手 で 後手 の 勝ち", LOSS),
            ("まで2手で△の勝ち", LOSS),
        ],
        *[("まで2手で上手の勝ち（投了）", LOSS), ("まで2手で後手の勝ちです。", LOSS)],
        *[("まで2手で中断", UNKNOWN), ("まで2手で中断（先手の勝勢）", UNKNOWN), ("まで", UNKNOWN)],
        *[("まで2手で先手の勝ち筋", UNKNOWN), ("まで2手で封じ手", UNKNOWN)],
    ],
)
def test_closing_lines(closing, result):
    for start in (KIF, KI2, KI2.rstrip("\n") + " "):
        game = parse_kif(f"{start}{closing}\n".encode())
        assert (game.result, len(game.moves)) == (result, 2)


def test_an_end_is_not_lost_by_a_second_one():
    for first, second in [("投了", "中断"), ("中断", "投了"), ("投了", "投了"), ("投了", "詰み")]:
        for number in (3, 4):
            text = f"{KIF}   3 {first}\n   {number} {second}\nまで3手で中断\n"
            assert parse_kif(text.encode()).result == LOSS
    with pytest.raises(RecordError, match="line 8: a second end"):
        parse_kif(f"{KIF}   3 投了\n   4 千日手\n".encode())


@pytest.mark.parametrize(
    "times",
    [
        "( 0:00/00:00:00) ( 0:00/00:00:00)",
        "( 0:00/00:00:00)( 0:00/00:00:00)+",
        "(0:01/)",
        "( 0:7/)  ( 0:1/)",
        "（ 0:00／00:00:00）　（0:01）",
    ],
)
def test_times_in_groups(times, tmp_path):
    text = KIF.replace("(77)", "(77) " + times) + "   3 投了  " + times.replace("+", "") + "\n"
    assert read(tmp_path, text) == ([LOSS], [2])


@pytest.mark.parametrize(
    "comment",
    ["*好手", "＊好手", "# 好手", "（好手）", "(0:01)", "「好手」と評判", "角換わりへ", "(77) *注"],
)
def test_a_comment_behind_the_moves_of_a_ki2_line(comment, tmp_path):
    for text in (
        KI2.replace("△", comment + "\n△"),
        KI2.rstrip("\n") + "  " + comment.replace("(77) ", "") + "\n* ▲２六歩が有力",
    ):
        assert read(tmp_path, text + "\n▲投了\n", "game.ki2") == ([LOSS], [2])


def test_moves_of_ki2_may_name_their_origin(tmp_path):
    text = KI2.replace("歩 ", "歩(77)").replace("４歩", "４歩(33)") + "▲５八金(49)△５二金（６一）\n"
    assert read(tmp_path, text, "game.ki2") == ([UNKNOWN], [4])
    with pytest.raises(RecordError, match="by no piece"):
        parse_kif((KI2 + "▲５八金(59)\n").encode())


def test_text_files_are_known_by_their_moves(tmp_path):
    untitled = KIF.replace(TITLE, "").replace("手合割：平手\n", "") + "   3 投了\n"
    for text in (KI2, KI2.replace("手合割：平手\n", ""), untitled):
        for encoding in ("utf-8", "cp932", "euc_jp"):
            data = text.encode(encoding)
            assert format_of("a.txt", data).name == "KIF"
            (tmp_path / "game.txt").write_bytes(data)
            with pytest.raises(KifuError, match="is a record"):
                read_list(tmp_path / "game.txt")
    (tmp_path / "list.txt").write_text("▲７六歩の研究.csa\n", encoding="utf-8")
    assert [source.name for source in read_list(tmp_path / "list.txt")] == ["▲７六歩の研究.csa"]
    assert format_of("a.txt", b"V2.2\nN+a\nPI\n+\n+7776FU\n").name == "CSA"


@pytest.mark.parametrize("name", ["game.kif", "game.ki2", "game.csa", "game.txt"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_named_with_and_without_its_mark(name, encoding):
    text = "PI\n+\n+7776FU\n" if name.endswith("csa") else KIF
    for line_end in ("\n", "\r\n"):
        (record,) = records_of(name, text.replace("\n", line_end).encode(encoding))
        with pytest.raises(RecordError, match="UTF-16.*UTF-8"):
            record.parse()


def test_a_lost_first_move_below_a_diagram_is_found():
    path = FAULTS / "17-kif-numbers-go-on-from-the-diagram.kif"
    text = path.read_text(encoding="utf-8")
    from_one = text.replace("   3", "   1").replace("   4", "   2").replace("   5", "   3")
    assert parse_kif(from_one.encode()) == parse_kif(text.encode())
    for old, new in [("   3 ２六歩(27)\n", ""), ("手数＝2", "手数＝4"), ("手数＝2", "手数＝1")]:
        with pytest.raises(RecordError, match="move number"):
            parse_kif(text.replace(old, new).encode())
    without = re.sub("手数＝.*\n", "", text)
    assert len(parse_kif(without.encode()).moves) == 2
    with pytest.raises(RecordError, match="move number"):
        parse_kif(without.replace("   3 ２六歩(27)\n", "").encode())


def test_the_page_says_how_the_game_ended_in_words(tmp_path):
    shutil.copy(FAULTS / "09-kif-blank-behind-piece-name.kif", tmp_path / "a.kif")
    record = read_record(tmp_path / "a.kif")
    assert end_text(record, "ja") == "後手の勝ち（投了）"
    assert end_text(record, "en") == "後手 White wins (resignation)"
    for mark, words in [("%SENNICHITE", "引き分け（千日手）"), ("%CHUDAN", "中断"), ("%OWN", "")]:
        (tmp_path / "a.csa").write_text(f"PI\n+\n+7776FU\n{mark}\n")
        assert end_text(read_record(tmp_path / "a.csa"), "ja") == words


def test_the_lists_count_files(tmp_path, capsys):
    (tmp_path / "games").mkdir()
    for number in range(3):
        (tmp_path / "games" / f"{number}.csa").write_text("no record")
    assert (
        make_kifu_list.main([str(tmp_path / "games"), str(tmp_path / "l"), "--ratio", "0.7"]) == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[1] for line in lines] == ["2 files", "1 file"]
