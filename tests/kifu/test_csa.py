"""CSA text as files really are."""

import codecs

import pytest
import shogi
from hypothesis import given, settings
from hypothesis import strategies as st

from pydlshogi.kifu.csa import parse_game, split_records
from pydlshogi.kifu.csa_board import SQUARE_NAMES
from pydlshogi.kifu.kif import parse_kif
from pydlshogi.kifu.parsed_game import END_MARKS, OTHER_RESULT, RecordError
from pydlshogi.kifu.replay import Games, replay
from pydlshogi.positions import (
    DRAW,
    EVEN_GAME,
    LOSS,
    NO_EVALUATION,
    PLACEMENT_SIZE,
    UNKNOWN,
    WIN,
    placement_of,
)

HEADER = "V2.2\nN+先手太郎\nN-後手花子\nPI\n+\n"
MOVES = "+7776FU\n-3334FU\n+8822UM\n-3122GI\n+0055KA\n"
ROWS = """\
P1-KY-KE-GI-KI-OU-KI-GI-KE-KY
P2 * -HI *  *  *  *  * -KA *
P3-FU-FU-FU-FU-FU-FU-FU-FU-FU
P4 *  *  *  *  *  *  *  *  *
P5 *  *  *  *  *  *  *  *  * \nP6 *  *  *  *  *  *  *  *  *
P7+FU+FU+FU+FU+FU+FU+FU+FU+FU
P8 * +KA *  *  *  *  * +HI *
P9+KY+KE+GI+KI+OU+KI+GI+KE+KY
"""


def game(text):
    return parse_game(text.encode())


def moves(text):
    return [move[:3] for move in game(text).moves]


def error(text):
    with pytest.raises(RecordError) as caught:
        game(text)
    return caught.value


def start_of(sfen):
    return placement_of(shogi.Board(sfen))


EXPECTED_MOVES = [(56, 47, 1), (56, 47, 1), (64, 16, 13), (74, 64, 4), (86, 40, 6)]


def test_squares_of_the_table():
    assert [SQUARE_NAMES[s] for s in (0, 8, 40, 72, 80)] == ["91", "11", "55", "99", "19"]


def test_a_plain_record():
    read = game(HEADER + MOVES + "%TORYO\n")
    assert read.names == ["先手太郎", "後手花子"]
    assert [move[:3] for move in read.moves] == EXPECTED_MOVES
    assert [move.line for move in read.moves] == [6, 7, 8, 9, 10]
    assert (read.turn, read.start) == (shogi.BLACK, EVEN_GAME)
    assert (read.end_mark, read.result, read.winner) == ("%TORYO", WIN, shogi.BLACK)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp932", "euc_jp"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_encodings_and_line_ends(encoding, line_end):
    text = (HEADER + MOVES + "%TORYO\n").replace("\n", line_end)
    ((before, record),) = split_records(text.encode(encoding))
    read = parse_game(record)
    assert before == 0
    assert read.names == ["先手太郎", "後手花子"]
    assert [move[:3] for move in read.moves] == EXPECTED_MOVES


def test_a_declared_encoding_counts():
    text = "'CSA encoding=SHIFT_JIS\nV3.0\nN+ｱｲ\nPI\n+\n+7776FU\n"
    assert parse_game(text.encode("cp932")).names[0] == "ｱｲ"


@pytest.mark.parametrize("encoding", ["undefined", "idna", "rot13", "hex", "utf-16", "utf-7", "-"])
def test_a_declared_encoding_that_no_record_has_is_passed_over(encoding):
    text = f"'CSA encoding={encoding}\nN+先手\nPI\n+\n+7776FU\n"
    assert parse_game(text.encode()).names[0] == "先手"


@pytest.mark.parametrize("bom", [codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE])
def test_utf_16_is_refused_with_a_hint(bom):
    encoding = "utf-16-le" if bom == codecs.BOM_UTF16_LE else "utf-16-be"
    data = bom + (HEADER + MOVES).encode(encoding)
    for text in (b"".join(record for _, record in split_records(data)), bom):
        with pytest.raises(RecordError, match="UTF-16.*save it as UTF-8"):
            parse_game(text)
        with pytest.raises(RecordError, match="UTF-16.*save it as UTF-8"):
            parse_kif(text)


@pytest.mark.parametrize(
    "text",
    [
        HEADER + MOVES.replace("\n", "\nT5\n"),
        HEADER + MOVES.replace("\n", ",T12\n"),
        HEADER + MOVES.replace("\n", "\nT0.125\n"),
        HEADER + MOVES.replace("\n", ",", 4),
        HEADER + MOVES.replace("\n", "\n'a comment +1111OU\n\n"),
        HEADER + MOVES.replace("\n", "  \n"),
        "PI,+," + MOVES.replace("\n", ",T1,").rstrip(",") + "\n%CHUDAN",
        "+\n" + MOVES,
        MOVES,
        ROWS + "+\n" + MOVES,
        ROWS.replace(" \n", "\n") + "+\n" + MOVES,
        ROWS.replace("\n", " \n") + "+\n" + MOVES,
        ROWS.replace("  ", " ").replace("  ", " ") + "+\n" + MOVES,
        ROWS.replace(" ", "") + "+\n" + MOVES,
        "PI\n" + MOVES,
    ],
)
def test_the_same_game_in_other_words(text):
    assert moves(text) == EXPECTED_MOVES
    assert game(text).start == EVEN_GAME


def test_pieces_removed():
    read = game("PI82HI22KA\n-\n-3334FU\n")
    assert read.turn == shogi.WHITE
    assert read.start == start_of("lnsgkgsnl/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1")
    assert read.moves[0][:3] == (56, 47, 1)


def test_a_handicap_without_a_side_to_move_begins_with_the_first_mover():
    assert game("PI82HI22KA\n-3334FU\n").turn == shogi.WHITE


def test_pieces_placed_one_by_one():
    read = game("P+59OU00FU00FU28HI\nP-51OU\nP-00GI00GI00GI\n+\n+0055FU\n")
    assert read.start == start_of("4k4/9/9/9/9/9/9/7R1/4K4 b 2P3s 1")


def test_all_the_other_pieces_to_a_hand():
    read = game("P+59OU28HI\nP-51OU\nP+22RY\nP-00AL\n-\n-0055FU\n")
    assert read.start == start_of("4k4/7+R1/9/9/9/9/9/7R1/4K4 w 2b4g4s4n4l18p 1")


def test_rows_with_hands():
    read = game(ROWS.replace("+FU+FU", " *  * ") + "P+00FU\nP+00FU\n+\n+0055FU\n")
    assert read.start == start_of("lnsgkgsnl/1r5b1/ppppppppp/9/9/9/8P/1B5R1/LNSGKGSNL b 2P 1")


@pytest.mark.parametrize("mark", END_MARKS)
@pytest.mark.parametrize("white_to_move", [False, True])
def test_end_marks_of_the_side_to_move(mark, white_to_move):
    text = HEADER + MOVES + ("" if white_to_move else "-2255KA\n")
    expected = OTHER_RESULT[END_MARKS[mark]] if white_to_move else END_MARKS[mark]
    for ending in (mark, mark + ",T5", mark + "\nT5\n'comment\n"):
        read = game(text + ending)
        assert (read.end_mark, read.result) == (mark, expected)


@pytest.mark.parametrize(
    ("mark", "white_wins"), [("%TORYO", False), ("%TIME_UP", False), ("%KACHI", True)]
)
def test_who_wins_when_white_is_to_move(mark, white_wins):
    assert game(HEADER + MOVES + mark).result == (LOSS if white_wins else WIN)


@pytest.mark.parametrize("moves", [MOVES, MOVES + "-2255KA\n"])
def test_end_marks_that_name_a_side(moves):
    assert game(HEADER + moves + "%+ILLEGAL_ACTION").result == LOSS
    assert game(HEADER + moves + "%-ILLEGAL_ACTION").result == WIN


def test_draws_and_unknowns_are_no_losses():
    for mark in ("%SENNICHITE", "%JISHOGI", "%HIKIWAKE", "%MAX_MOVES"):
        assert game(HEADER + MOVES + mark).result == DRAW
    assert game(HEADER + MOVES + "%CHUDAN").result == UNKNOWN
    without = game(HEADER + MOVES)
    assert (without.result, without.end_mark, without.winner) == (UNKNOWN, None, None)


@pytest.mark.parametrize("mark", ["%OUTE_SENNICHITE", "%TORY"])
def test_an_end_mark_of_a_programs_own_costs_no_moves(mark):
    read = game(HEADER + MOVES + mark)
    assert (read.end_mark, read.result, read.winner) == (mark, UNKNOWN, None)
    assert read.moves == game(HEADER + MOVES + "%TORYO").moves


def test_a_game_that_white_begins_is_won_by_the_right_side():
    assert game("PI82HI22KA\n-\n-3334FU\n%TORYO\n").result == LOSS
    assert game("PI82HI22KA\n-\n-3334FU\n+7776FU\n%TORYO\n").result == WIN


@pytest.mark.parametrize(
    ("summary", "result"),
    [
        ("time up:A win:B lose", WIN),
        ("illegal move:A lose:B win", LOSS),
        ("sennichite:A draw:B draw", DRAW),
        ("odd:A win:B win", UNKNOWN),
    ],
)
def test_the_servers_summary_counts_where_there_is_no_end_mark(summary, result):
    read = game(f"{HEADER}{MOVES}'summary:{summary}\n")
    assert (read.result, read.summary, read.end_mark) == (result, result, None)


def test_the_server_writes_a_declaration_twice():
    for between in ("", "T5\n", "'a comment\n"):
        read = game(f"{HEADER}{MOVES}%KACHI\n{between}%KACHI\n'summary:kachi:A lose:B win\n")
        assert (read.end_mark, read.result, read.summary) == ("%KACHI", LOSS, LOSS)


def test_a_declaration_that_the_server_refused_is_lost():
    read = game(f"{HEADER}{MOVES}%KACHI\n'summary:illegal kachi:A win:B lose\n")
    assert (read.end_mark, read.result, read.summary) == ("%KACHI", WIN, WIN)
    # With any other end mark the mark decides.
    assert game(f"{HEADER}{MOVES}%TORYO\n'summary:illegal kachi:A lose:B win\n").result == WIN


def test_comments_behind_statements():
    plain = game(HEADER + MOVES + "%TORYO\n")
    moves = MOVES.replace("\n", ",'v=0.512,800,7776FU,%CHUDAN\n")
    assert game(f"{HEADER}{moves}%TORYO,'resign-th=0.1\n") == plain
    text = HEADER + MOVES.replace("\n", "  ,T12  ,'T0 ") + "\n%TORYO\n"
    assert len(game(text).moves) == 1  # a comment goes to the end of its line
    assert "unknown statement" in error(HEADER + "+7776FU,v=0.5\n").reason


def test_what_old_systems_put_behind_the_end():
    for end in ("\x1a", "\0\0", "\x1a\0", "\x1a\n", "\n\x1a\r\n"):
        ((_, record),) = split_records((HEADER + MOVES + "%TORYO\n" + end).encode())
        assert parse_game(record).end_mark == "%TORYO"


def test_joined_files_may_each_have_a_byte_order_mark():
    text = f"{HEADER}{MOVES}%TORYO\n"
    joined = b"/\r\n".join([text.encode("utf-8-sig")] * 2)
    games = [parse_game(record) for _, record in split_records(joined)]
    assert [game.end_mark for game in games] == ["%TORYO", "%TORYO"]


def test_floodgate_comments():
    read = game(
        "'black_rate:A+1:2791.0\n'white_rate:B:C:3234.5\n"
        + HEADER
        + MOVES
        + "%TORYO\n'summary:toryo:A+1 lose:B:C win\n"
    )
    assert read.ratings == [2791.0, 3234.5]
    assert (read.result, read.summary) == (WIN, LOSS)
    for word in ("nan", "inf", "1e999", "none", ""):
        assert game(f"'black_rate:A:{word}\n" + HEADER + MOVES).ratings == [None, None]
    assert game(HEADER + MOVES + "'summary:max_moves:A draw:B draw\n").summary == DRAW
    assert game(HEADER + MOVES + "'summary:odd:A win:B win\n").summary == UNKNOWN


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        (HEADER + "+7776FX\n", 6, "unknown statement '+7776FX'"),
        (HEADER + "+7776FU\n+2726FU\n", 7, "not by the side to move"),
        (HEADER + "+7776FU\n\n%TORYO\n-3334FU\n", 9, "after the end"),
        (HEADER + "+7776FU\n%TORYO\n%KACHI\n", 8, "second end"),
        (HEADER + "+7776FU\n%TORYO\n%TORYO\n", 8, "second end"),
        (HEADER + "+7776FU\n%7776FU\n", 7, "'%7776FU' is not an end mark"),
        (HEADER + "+7776FU\n%\n", 7, "'%' is not an end mark"),
        (HEADER + "+0076OU\n", 6, "cannot be in hand"),
        (HEADER + "PI\n", 6, "after the side to move"),
        (HEADER + "+\n", 6, "given twice"),
        (HEADER + "%TORYO\n", 0, "no moves"),
        ("", 0, "no moves"),
        ("\x00\x01\n", 1, "unknown statement"),
        ("N\n", 1, "unknown statement"),
        ("P\n", 1, "unknown statement 'P'"),
        ("PX\n", 1, "unknown statement 'PX'"),
        ("PI77GI\n", 1, "not there"),
        ("PI77\n", 1, "unknown piece"),
        ("PI00AL\n", 1, "not there"),
        (ROWS.replace("P4", "'P4") + "+\n", 10, "lacks its row P4"),
        (ROWS.replace("P4", "P3") + "+\n", 4, "given twice"),
        (ROWS.replace("-OU", "-QU") + "+\n", 1, "unknown square"),
        (ROWS.replace("-OU-KI", "-OU") + "+\n", 1, "does not have nine squares"),
        ("P+59OU59KI\n+\n", 1, "two pieces are placed on 59"),
        ("P+59OU58OU\n+\n", 2, "two kings"),
        ("P+59OU00TO\n+\n", 1, "cannot be in hand"),
        ("P+00HI00HI00HI\n+\n", 1, "more pieces than a shogi set"),
        ("P+00HI00HI\nP-00HI\n+\n", 3, "more pieces than a shogi set"),
        ("P+" + "00FU" * 300 + "\n+7776FU\n", 1, "more pieces than a shogi set"),
        ("P+59OU00AL00FU\n+\n", 1, "after 00AL"),
        ("P+59OU\nPI\n", 2, "PI after another"),
        ("-\n-3334FU\n", 1, "White moves first"),
        ("-3334FU\n", 1, "not by the side to move"),
        (HEADER + MOVES.replace("\n", "+1716FU\n", 1), 6, "unknown statement"),
    ],
)
def test_what_cannot_be_understood_is_named_with_its_line(text, line, reason):
    found = error(text)
    assert (found.line, reason in found.reason) == (line, True), found.reason


STATEMENTS = [
    *["PI", "PI82HI22KA", "P+00FU", "P-00FU00FU", "P+59OU", "P-51OU", "P-00AL", "+", "-"],
    *["+7776FU", "-3334FU", "+0055FU", "-0055FU", "+5958OU", "-5152OU", "T5", "%TORYO"],
    *["%KACHI", "V2.2", "N+A", "'", "$X"],
    *ROWS.splitlines(),
    ",",
    "",
]


@settings(max_examples=300)
@given(st.lists(st.sampled_from(STATEMENTS) | st.text("PI+-0123456789FUKALO", max_size=9)))
def test_any_statements_are_read_or_refused(statements):
    for text in ("\n".join(statements), ",".join(statements)):
        try:
            read = game(text)
        except RecordError as refused:
            assert refused.reason
            continue
        assert read.moves
        assert len(read.start) == PLACEMENT_SIZE
        replay(Games.of([read]))


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_several_records(line_end):
    text = f"{HEADER}{MOVES}%TORYO\n/\n{MOVES}%CHUDAN\n/ \n\n/\nV2\n+2726FU\n-XXXXXX\n/\n"
    records = list(split_records(text.replace("\n", line_end).encode()))
    assert len(records) == 3
    assert [parse_game(record).end_mark for _, record in records[:2]] == ["%TORYO", "%CHUDAN"]
    with pytest.raises(RecordError) as caught:
        parse_game(records[2][1])
    bad_line = text.split("\n")[records[2][0] + caught.value.line - 1]
    assert bad_line == "-XXXXXX"


def test_a_slash_in_a_line_separates_nothing():
    text = b"'http://example.org/\n$EVENT:a/b\n/x\n"
    assert list(split_records(text)) == [(0, text)]


@pytest.mark.parametrize("text", [b"/", b"/\n\n/\n", b" \n"])
def test_a_file_without_a_record_is_one_that_is_refused(text):
    ((before, record),) = split_records(text)
    assert before == 0
    with pytest.raises(RecordError):
        parse_game(record)


# --- evaluations --------------------------------------------------------------------


def evaluations(text):
    return [move.evaluation for move in game(text).moves]


def test_an_evaluation_is_the_movers_and_belongs_to_the_move_before_it():
    lines = "+7776FU\n'** 120 -3334FU +2726FU\n-3334FU\nT3\n'** 95\n+2726FU\n-8384FU\n'** -7\n"
    # Seen from Black: 120, 95 and -7.
    assert evaluations(HEADER + lines) == [120, -95, NO_EVALUATION, 7]


def test_a_handicap_game_begins_with_white():
    lines = "P1-KY-KE-GI-KI-OU-KI-GI-KE-KY\n" + "".join(ROWS.splitlines(True)[1:])
    lines = lines.replace("-HI", " * ").replace("-KA", " * ") + "-\n"
    assert evaluations(lines + "-3334FU\n'** -900\n+7776FU\n'** -880\n") == [900, -880]


@pytest.mark.parametrize(
    ("comment", "value"),
    [
        ("'** 0", 0),
        ("'** -0", 0),
        ("'**\t +15 ", 15),
        ("'** 007", 7),
        ("'** 30000", 30000),
        ("'** 30001 +7776FU", 30000),
        ("'** -100000", -30000),
        ("'** " + "9" * 5000, 30000),
        ("'** 12x", NO_EVALUATION),
        ("'** 1.5", NO_EVALUATION),
        ("'** +7776FU -3334FU", NO_EVALUATION),
        ("'** - 5", NO_EVALUATION),
        ("'**5", NO_EVALUATION),
        ("'* 5", NO_EVALUATION),
        ("'***5", NO_EVALUATION),
        ("'**", NO_EVALUATION),
        ("'** ５", NO_EVALUATION),
    ],
)
def test_what_counts_as_an_evaluation(comment, value):
    assert evaluations(f"{HEADER}+7776FU\n{comment}\n") == [value]


def test_of_several_evaluations_the_last_one_counts():
    assert evaluations(HEADER + "+7776FU\n'** 1\n'** 2\n'** text\n") == [2]


def test_a_comment_behind_a_move_is_no_evaluation():
    assert evaluations(HEADER + "+7776FU,'** 5\n-3334FU,T3,'** 6\n") == 2 * [NO_EVALUATION]


def test_an_evaluation_without_a_move_is_a_comment():
    text = HEADER.replace("+\n", "+\n'** 5\n") + "+7776FU\n%TORYO\n'** 6\n"
    assert evaluations(text) == [NO_EVALUATION]
