"""The fast parser gives the same games as the careful one and as python-shogi."""

import random
import re
import tarfile
from pathlib import Path

import kifu_reference
import numpy
import pytest
import shogi
import shogi.CSA
from hypothesis import given, settings
from hypothesis import strategies as st

from pydlshogi.kifu.csa import parse_game
from pydlshogi.kifu.csa_scan import scan
from pydlshogi.kifu.parsed_game import END_MARKS, END_MARKS_FOR_BLACK, FOULS, RecordError
from pydlshogi.kifu.replay import GAME_COLUMNS, MOVE_COLUMNS, Games, replay
from pydlshogi.positions import DRAW, EVALUATION_MAX, LOSS, NO_EVALUATION, UNKNOWN, WIN

KIFU = Path(__file__).parents[2] / "kifu"
EVALS = KIFU.parents[1] / "shared" / "kifu" / "floodgate2016-evals.tar.xz"
#: The games, without their evaluations.
TEXTS = [
    re.sub(rb"'\*\* .*\n", b"", path.read_bytes()) for path in sorted(KIFU.rglob("*.csa"))[::5]
]


_FORMS = (
    "'** {}",
    "'** {} -3334FU +2726FU",
    "'** {} ",
    "T12\n'** {}",
    "'** {}\nT1.5",
    "'**  {}\t+7776FU",
    "'** 5\n'** {}\n'** +7776FU",
    "'** +0{} ",
)


def with_evaluations(text, source):
    """Adds evaluations after most of the moves, in the forms that engines and servers write."""
    lines = []
    for line in text.decode("latin-1").split("\n"):
        lines.append(line)
        if line[:1] in ("+", "-") and len(line) > 1 and source.random() < 0.9:
            size = source.choice((0, 30, 300, 3000, 32000, 10**6, 10**7, 10**20))
            value = source.randint(-size, size)
            form = source.choice(_FORMS[:2] * 3 + _FORMS)
            lines.append(form.format(abs(value) if "+0" in form else value))
    return "\n".join(lines).encode("latin-1")


_SOURCE = random.Random(23)
EVALUATED = [with_evaluations(path.read_bytes(), _SOURCE) for path in sorted(KIFU.rglob("*.csa"))]


def one_by_one(text):
    """Reads one record with the careful parser; None if it is refused."""
    try:
        game = parse_game(text)
    except RecordError:
        return None
    return game, Games.of([game])


def assert_scan_agrees(texts):
    """Compares the fast parser with the careful one; returns which records were plain."""
    scanned = scan(texts)
    rows = 0
    number = 0
    for text, plain in zip(texts, scanned.plain):
        if not plain:
            continue
        game, games = one_by_one(text)
        size = len(game.moves)
        for name in MOVE_COLUMNS:
            found = getattr(scanned.games, name)[rows : rows + size]
            assert found.tolist() == getattr(games, name).tolist()
        for name in GAME_COLUMNS:
            found = getattr(scanned.games, name)[number]
            assert numpy.array_equal(found, getattr(games, name)[0])
        summary = UNKNOWN if game.summary is None else game.summary
        assert scanned.summaries[number] == summary
        rows += size
        number += 1
    assert number == (0 if scanned.games is None else len(scanned.games.lengths))
    assert rows == (0 if scanned.games is None else len(scanned.games.origin))
    return scanned.plain


def test_records_of_a_server_are_read_together():
    assert assert_scan_agrees(TEXTS).all()


@pytest.mark.long
def test_evaluations_are_read_alike_in_hundreds_of_games():
    assert len(EVALUATED) == 230
    assert assert_scan_agrees(EVALUATED).all()
    expected = [value for text in EVALUATED for value in kifu_reference.evaluations(text)]
    assert scan(EVALUATED).games.evaluation.tolist() == expected
    assert {-EVALUATION_MAX, EVALUATION_MAX, NO_EVALUATION} < set(expected)


@pytest.mark.slow
@pytest.mark.skipif(not EVALS.exists(), reason="the floodgate games with evaluations are not here")
def test_evaluations_are_read_alike_in_all_floodgate_games(tmp_path):
    with tarfile.open(EVALS) as archive:
        archive.extractall(tmp_path)
    texts = [path.read_bytes() for path in sorted((tmp_path / "floodgate2016").glob("*.csa"))]
    moves = known = 0
    for start in range(0, len(texts), 1000):
        part = texts[start : start + 1000]
        assert assert_scan_agrees(part).all()
        evaluation = scan(part).games.evaluation
        expected = [value for text in part for value in kifu_reference.evaluations(text)]
        assert evaluation.tolist() == expected
        moves += len(evaluation)
        known += int((evaluation != NO_EVALUATION).sum())
    assert (len(texts), moves, known) == (29757, 4125780, 3940773)


HANDICAPS = [
    kifu_reference.to_csa(sfen, kifu_reference.random_moves(sfen, 40, seed)).encode()
    for seed, sfen in enumerate(
        [
            "lnsgkgsnl/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
            "4k4/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
            "ln2k2nl/1r1s1g1b1/p1ppppppp/9/9/1p7/P1PPPPPPP/1B1S3R1/LN1GKGSNL b GPsp 1",
        ]
    )
]

EVEN_ROWS = kifu_reference.to_csa(shogi.STARTING_SFEN, []).split("\n")[3:12]
ROWS = "\n".join(EVEN_ROWS).encode()
TRIMMED_ROWS = "\n".join(row.rstrip() for row in EVEN_ROWS).encode()

# %TORYO is what they replace. A foul needs care: the last move may be illegal.
MARKS = [mark for mark in END_MARKS if mark not in ("%TORYO", *FOULS)]
DRESSES = [
    lambda text: text.replace(b"PI", ROWS),
    lambda text: text[text.index(b"PI") :].replace(b"PI", ROWS),
    lambda text: text.replace(b"PI", TRIMMED_ROWS).replace(b"\n", b"\r\n"),
    lambda text: text.replace(b"\n", b"\r\n"),
    lambda text: text.replace(b"FU\n", b"FU\nT12\n"),
    lambda text: text.replace(b"FU\n", b"FU,T1.25\n"),
    lambda text: text.replace(b"FU\n", b"FU,'v=0.5,+7776FU\n"),
    lambda text: text.replace(b"FU\n", b"FU,T12,'v=0.5,T\n").replace(b"YO\n", b"YO,'v=0.1\n"),
    lambda text: text.replace(b"%TORYO", b"%TORYO,T3,'resigned"),
    lambda text: text.replace(b"%TORYO\n", b"'summary:time up:a win:b lose\n"),
    lambda text: text.replace(b"%TORYO\n", b"%KACHI\n'summary:kachi:a win:b lose\n"),
    lambda text: text.replace(b"KI\n", b"KI\n'** 12 +7776FU,\n\n"),
    lambda text: text.replace(b"%TORYO", b"%TORYO,T9"),
    lambda text: text.replace(b"%TORYO", b"'** 1000\n%TORYO\n'** -2000"),
    lambda text: text.replace(b"\n+\n", b"\n'** 5\n+\n'** 6 +7776FU\n"),
    lambda text: text.replace(b"FU\n", b"FU\r\n'** -7\r\n"),
    lambda text: text.rstrip(b"\n"),
    lambda text: text.replace(b"N+", "N+先手".encode("cp932")),
    lambda text: text.replace(b"%TORYO\n", b""),
    *(lambda text, mark=mark: text.replace(b"%TORYO", mark.encode()) for mark in MARKS),
    lambda text: text.replace(b"%TORYO", b"%OUTE_SENNICHITE"),
]


@pytest.mark.parametrize("dress", DRESSES)
def test_usual_variations_are_read_together(dress):
    texts = [dress(text) for text in TEXTS[:6]]
    assert texts != TEXTS[:6]
    assert assert_scan_agrees(texts).all()


ODDITIES = [
    lambda text: text.replace(b"PI", ROWS.replace(b"-OU", b" * ")),
    lambda text: text.replace(b"PI", b"'" + ROWS),
    lambda text: text.replace(b"PI", b"PI\n" + ROWS),
    lambda text: text.replace(b"PI", b"PI\n$X:" + ROWS),
    lambda text: text.replace(b"PI", ROWS + b"+00FU"),
    lambda text: text.replace(b"PI\n", b""),
    lambda text: text.replace(b"PI\n", b"PI82HI\n"),
    lambda text: text.replace(b"FU\n", b"FU \n", 1),
    lambda text: text.replace(b"FU\n", b"FU,", 1),
    lambda text: text.replace(b"FU\n", b"FU,X1\n", 1),
    lambda text: text.replace(b"FU\n", b"FU\nTx\n", 1),
    lambda text: text.replace(b"FU\n", b"FU\r", 1),
    lambda text: text.replace(b"N+", b"N*"),
    lambda text: text.replace(b"%TORYO", b"%TORYO2"),
    lambda text: text.replace(b"%TORYO", b"%TORYO\n%TORYO"),
    lambda text: text.replace(b"%TORYO", b"%KACHI\nT3\n%KACHI"),
    lambda text: text.replace(b"%TORYO", b"%KACHI\n'summary:illegal kachi:a win:b lose"),
    lambda text: text.replace(b"FU\n", b"FU,T12 ,'c\n", 1),
    lambda text: text.replace(b"FU\n", b"FU,T12'c\n", 1),
    lambda text: text.replace(b"\n+\n", b"\n-\n"),
    lambda text: b"\xef\xbb\xbf" + text,
    lambda text: text.replace(b"PI\n+\n", b"+\nPI\n"),
    lambda text: text.replace(b"PI\n+\n", b"%CHUDAN\nPI\n+\n"),
    lambda text: b"",
    lambda text: b"\n\n",
    lambda text: b"+",
    # The last move may be illegal.
    lambda text: text.replace(b"%TORYO", b"%+ILLEGAL_ACTION"),
    lambda text: text.replace(b"%TORYO", b"%-ILLEGAL_ACTION"),
    lambda text: text.replace(b"%TORYO", b"%ILLEGAL_MOVE"),
    lambda text: text.replace(b"%TORYO", b"%TORYO,T" + 300 * b"1"),
    lambda text: text.replace(b"FU\n", b"FU\nT" + 50 * b"1" + b"\n"),
]


@pytest.mark.parametrize("oddity", ODDITIES)
def test_everything_else_is_left_to_care(oddity):
    texts = [TEXTS[0], oddity(TEXTS[1]), TEXTS[2]]
    assert assert_scan_agrees(texts).tolist() == [True, False, True]


def test_nothing_but_oddities():
    scanned = scan([b"", b"+"])
    assert scanned.games is None
    assert not scanned.plain.any()


LINES = [
    b"V2.2", b"N+a", b"N-b", b"N", b"PI", b"+", b"-", b"+7776FU", b"-3334FU", b"+2726FU",
    b"-8384FU", b"+0055FU", b"T5", b"Tx", b"'c", b"'summary:t:a win:b lose", b"%TORYO",
    b"%KACHI,T3", b"%X", b"", b"+7776FU,T5", b"-3334FU,T", b"+7776FUx", b"$X:1", ROWS, b"P1", b" ",
    b"+00", b"+7776FU,-3334FU", b"+7776FU,'c", b"-3334FU,T1,'", b"+2726FU,T1,", b"%TORYO,'c",
    b"'summary:illegal kachi:a win:b lose", b"'** 12", b"'** -12 +7776FU", b"'**  +7\t", b"'** 7x",
    b"'**", b"'** ", b"'** -", b"'**12", b"'** 1234567", b"'** 00000000012", b"'* 3", b"'** 1.5",
    b"'** --5", b"'** " + b"9" * 5000, b"'** \xb2",
]  # fmt: skip


@settings(max_examples=150)
@given(
    st.lists(
        st.lists(st.sampled_from(LINES), max_size=12).map(b"\n".join)
        | st.binary(max_size=40)
        | st.lists(st.sampled_from([*LINES[7:10], b"'** 40", b"'** -31111"]), max_size=6).map(
            lambda moves: b"\n".join([b"PI", b"+", *moves, b"%TORYO"])
        ),
        min_size=1,
        max_size=6,
    )
)
def test_any_lines_are_read_alike(texts):
    assert_scan_agrees(texts)


def mutated(text, source):
    """Changes a record at one to three random places."""
    for _ in range(source.choice((1, 1, 2))):
        # Half of the changes are in the header or at the end, not among the moves.
        place = source.choice((source.randrange(len(text)), source.randrange(400), -30))
        place %= len(text)
        kind = source.randrange(5)
        if kind == 0:
            text = text[:place] + bytes([source.randrange(256)]) + text[place + 1 :]
        elif kind == 1:
            text = text[:place] + text[place + source.randint(1, 9) :]
        elif kind == 2:
            text = (
                text[:place]
                + source.choice(b"+-0123456789FUKYGIOUT,%'*\n\r\t/ P").to_bytes(1, "big")
                + text[place:]
            )
        else:
            lines = text.split(b"\n")
            one, other = source.randrange(len(lines)), source.randrange(len(lines))
            if kind == 3:
                lines[one], lines[other] = lines[other], lines[one]
            else:
                lines.insert(one, lines[other])
            text = b"\n".join(lines)
        text = text or b"\n"
    return text


def judged(text):
    """Reads a record with python-shogi alone; None if it cannot.

    The function first rewrites what python-shogi cannot read: times after a comma, line ends
    other than LF, rows without their last blank, and some end marks.
    """
    lines = []
    mark = None
    for line in text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").decode("latin-1").split("\n"):
        statements = [line]
        if line[:1] not in ("'", "N", "$", "V"):
            statements = [statement.strip(" \t") for statement in line.split(",")]
        for statement in statements:
            if statement.startswith("%"):
                mark = statement
            elif not statement.startswith("T") and statement:
                row = statement[:1] == "P" and statement[1:2].isdigit()
                lines.append(statement.ljust(29) if row else statement)
    try:
        record = shogi.CSA.Parser.parse_str("\n".join(lines))[0]
        board = shogi.Board(record["sfen"])
    except Exception:
        return None
    black_to_move = (board.turn == shogi.BLACK) == (len(record["moves"]) % 2 == 0)
    result = UNKNOWN
    if mark in END_MARKS_FOR_BLACK:
        result = END_MARKS_FOR_BLACK[mark]
    elif mark in END_MARKS:
        result = END_MARKS[mark]
        if not black_to_move:
            result = {WIN: LOSS, LOSS: WIN, DRAW: DRAW, UNKNOWN: UNKNOWN}[result]
    return kifu_reference.play(board, record["moves"], result)


def check_mutations(count, seed):
    """Reads mutated records and compares each with the careful parser and python-shogi."""
    source = random.Random(seed)
    sound = TEXTS + HANDICAPS + [text.replace(b"PI", ROWS) for text in TEXTS[:10]]
    sound += EVALUATED[::5]
    texts = [mutated(source.choice(sound), source) for _ in range(count)]
    plain = assert_scan_agrees(texts)
    assert plain.any() and not plain.all()
    accepted = 0
    for text in texts:
        read = one_by_one(text)
        if read is None:
            continue
        positions, faults = replay(read[1])
        if faults:
            continue
        accepted += 1
        # python-shogi reads no evaluations.
        positions["evaluation"] = NO_EVALUATION
        expected = judged(text)
        if expected is not None:
            assert positions.tobytes() == expected.tobytes()
        else:
            # python-shogi wants a start position and a side to move.
            lines = text.replace(b"\r", b"\n").split(b"\n")
            assert not {b"PI", b"P9"} & {line[:2] for line in lines} or b"+" not in lines
    assert count // 10 < accepted < count


@pytest.mark.long
def test_mutated_records_are_read_right_or_refused():
    check_mutations(800, 1)


@pytest.mark.slow
def test_five_thousand_mutated_records_are_read_right_or_refused():
    check_mutations(5000, 2)
