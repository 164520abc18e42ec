"""The words of USI: tests of single functions."""

import contextlib
import io
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pydlshogi.usi import protocol
from pydlshogi.usi.output import DialogueLog, Output
from pydlshogi.usi.protocol import Clock, CommandError, Go

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp932"])
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_text_survives_encodings_and_line_ends(encoding, end):
    text = "setoption name modelfile value C:\\将棋 モデル\\表.npz"
    assert protocol.decode((text + end).encode(encoding)) == text


@given(st.binary())
def test_every_line_becomes_text(line):
    assert isinstance(protocol.decode(line), str)


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("name modelfile value /a b/c  d.npz", "modelfile", "/a b/c  d.npz"),
        ("name modelfile value value name x", "modelfile", "value name x"),
        ("name modelfile value", "modelfile", ""),
        ("name reload_model", "reload_model", ""),
        ("name  MultiPV  value  3", "MultiPV", "3"),
        ("name Two Words value 3", "Two Words", "3"),
        ("name Two Words valued 3", "Two Words valued 3", ""),
        ("name value value 3", "value", "3"),
        ("name value 3", "value 3", ""),
    ],
)
def test_setoption(text, name, value):
    assert protocol.parse_setoption(text) == (name, value)


def test_setoption_with_a_million_blanks_is_read():
    # In a process with a time limit, because quadratic work would take an hour.
    code = (
        "from pydlshogi.usi.protocol import parse_setoption\n"
        "print(len(parse_setoption('name a' + ' ' * 10**6 + 'b value c')[0]))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, timeout=60, check=True
    )
    assert int(result.stdout) == 10**6 + 2


@pytest.mark.parametrize("text", ["", "name", "value 3", "MultiPV value 3"])
def test_setoption_without_a_name_is_refused(text):
    with pytest.raises(CommandError, match="has no name"):
        protocol.parse_setoption(text)


@pytest.mark.parametrize(
    ("text", "sfen", "moves"),
    [
        ("startpos", None, []),
        ("startpos moves", None, []),
        ("startpos moves 7g7f 3c3d", None, ["7g7f", "3c3d"]),
        ("sfen 9/9 b - 1", "9/9 b - 1", []),
        ("sfen  9/9  w 2P 1 moves 7g7f", "9/9 w 2P 1", ["7g7f"]),
    ],
)
def test_position(text, sfen, moves):
    assert protocol.parse_position(text) == (sfen, moves)


@pytest.mark.parametrize("text", ["", "sfen", "startpos 7g7f", "moves 7g7f", "9/9 b - 1"])
def test_position_of_another_form_is_refused(text):
    with pytest.raises(CommandError, match="position"):
        protocol.parse_position(text)


def test_go_reads_every_word():
    go, complaints = protocol.parse_go(
        "btime 1000 wtime 2000 binc 10 winc 20 movetime 5 nodes 6 depth 7 ponder "
        "searchmoves 7g7f P*5e 8h2b+ infinite"
    )
    assert not complaints
    assert go == Go(
        infinite=True,
        ponder=True,
        black=Clock(1000, 10, None),
        white=Clock(2000, 20, None),
        movetime=5,
        nodes=6,
        depth=7,
        searchmoves=("7g7f", "P*5e", "8h2b+"),
    )


def test_a_bare_go_has_no_limits():
    assert protocol.parse_go("") == (Go(), [])


def test_byoyomi_is_for_both():
    go, _ = protocol.parse_go("btime 0 wtime 0 byoyomi 3000")
    assert go.clock(0) == go.clock(1) == Clock(0, None, 3000)


@pytest.mark.parametrize("limit", ["", " 1000", " infinite"])
def test_a_mate_search_is_not_an_infinite_one(limit):
    go, complaints = protocol.parse_go(f"mate{limit}")
    expected = Go(mate=True, mate_ms=1000 if limit == " 1000" else None)
    assert (go, complaints) == (expected, [])


@pytest.mark.parametrize(
    ("limit", "number"),
    [("-5", -5), ("+7", 7), ("7.0", 7), ("x5", 0), ("none", 0), ("99999999999999999999", 10**18)],
)
def test_every_limit_of_a_mate_search_counts(limit, number):
    go, complaints = protocol.parse_go(f"mate {limit} nodes 7")
    assert (go.mate_ms, go.nodes) == (number, 7)
    assert len(complaints) == (number == 0)


@pytest.mark.parametrize(
    ("text", "named"),
    [("btime x wtime 5", "btime"), ("foo wtime 5", "foo"), ("wtime 5 nodes", "nodes")],
)
def test_go_passes_over_what_it_does_not_understand(text, named):
    go, complaints = protocol.parse_go(text)
    assert go.white.remaining == 5
    assert any(named in complaint for complaint in complaints)


@pytest.mark.parametrize(
    ("word", "number"),
    [
        ("+500", 500),
        ("-5", -5),
        ("007", 7),
        ("9" * 18, 10**18 - 1),
        ("9" * 19, 10**18),
        ("-" + "9" * 10000, -(10**18)),
        ("0" * 10000 + "3", 3),
        ("1000.5", 1000),
        ("1000.0", 1000),
        ("1000.", 1000),
        ("-1000.0", -1000),
        ("+5.0", 5),
        ("9" * 30 + ".0", 10**18),
        (".5", 0),
        ("x", 0),
        ("３", 0),
    ],
)
def test_every_number_is_a_limit_so_that_no_search_is_endless(word, number):
    go, complaints = protocol.parse_go(f"nodes {word} movetime {word}")
    assert (go.nodes, go.movetime) == (number, number)
    assert len(complaints) == (2 if number == 0 else 0)


@pytest.mark.parametrize(
    ("word", "number"), [("1e3", 1), ("5s", 5), ("1,000", 1), ("-7x", -7), ("1.0.0", 1)]
)
def test_what_follows_a_number_is_named_and_the_number_counts(word, number):
    go, complaints = protocol.parse_go(f"nodes {word}")
    assert go.nodes == number
    assert complaints == [f"go nodes needs a number, not '{word}': it counts as {number}"]


def test_each_number_of_go_may_have_a_fraction():
    """Lishogi-Bot sends ``movetime 1000.0``."""
    go, complaints = protocol.parse_go(
        "mate 1.0 btime 2.0 wtime 3.9 byoyomi 4.0 binc 5.0 winc 6.0 movestogo 7.0 movetime 8.0 "
        "nodes 9.0 depth 10.0"
    )
    assert complaints == []
    assert (go.mate_ms, go.black, go.white) == (1, Clock(2, 5, 4), Clock(3, 6, 4))
    assert (go.moves_to_go, go.movetime, go.nodes, go.depth) == (7, 8, 9, 10)


def test_a_number_that_is_missing_leaves_the_next_word_alone():
    go, complaints = protocol.parse_go("btime wtime 5 byoyomi searchmoves 7g7f")
    assert (go.white, go.searchmoves) == (Clock(5, None, 0), ("7g7f",))
    assert len(complaints) == 2


@given(st.text())
def test_go_reads_any_text(text):
    protocol.parse_go(text)


@given(st.text())
def test_output_is_one_line_of_ascii(text):
    stream = io.BytesIO()
    Output(stream).send(text)
    sent = stream.getvalue().decode("ascii")
    assert sent.count("\n") == 1
    assert sent.endswith("\n")
    assert "\r" not in sent


def test_output_outlives_its_reader():
    stream = io.BytesIO()
    output = Output(stream)
    stream.close()
    output.send("readyok")
    output.send("bestmove resign")


def test_the_log_holds_the_whole_dialogue(tmp_path):
    log = DialogueLog()
    log.write("<", "usi")
    log.open(tmp_path / "log.txt")
    log.write(">", "usiok 将棋")
    log.open(None)
    log.write("<", "quit")
    lines = (tmp_path / "log.txt").read_text(encoding="utf-8").splitlines()
    assert [line.split(maxsplit=2)[2] for line in lines] == ["< usi", "> usiok 将棋"]


def test_quotes_are_short():
    assert len(protocol.quote("x" * 10000)) < 70


@pytest.mark.parametrize(
    "text",
    [
        "name " + " value" * 100_000,
        "name a" + " \t" * 200_000 + "valu",
        "name" + " " * 300_000,
        "name x value " + "v " * 100_000,
        "sfen " + "1" * 300_000 + " b " + "1" * 300_000 + " 1",
        "sfen 9/9 b " + "1P" * 100_000,
        "startpos moves " + "7g7f" * 100_000,
        "startpos" + " moves" * 100_000,
        "nodes " + "0" * 300_000 + "x",
        "nodes +" + "1." * 100_000,
        "btime " * 100_000,
        "searchmoves " + "7g7f " * 100_000 + "+" * 100_000,
    ],
    ids=range(12),
)
def test_a_long_line_takes_time_in_proportion_to_its_length(text):
    from pydlshogi.player.position import make_board

    start = time.process_time()
    for parse in (protocol.parse_setoption, protocol.parse_go, protocol.parse_position):
        with contextlib.suppress(protocol.CommandError):
            parse(text)
    with contextlib.suppress(protocol.CommandError):
        make_board(*protocol.parse_position(text))
    # Quadratic work would take minutes.
    assert time.process_time() - start < 3
