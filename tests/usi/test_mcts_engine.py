"""The faults of real engines, tried on the engine that searches, as a program of its own."""

import json
import os
import re
import sys
import time
from pathlib import Path

import cshogi
import numpy
import pytest
from network_helpers import narrow

from pydlshogi.player.engine_options import mcts_options

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = REPOSITORY / "mcts_player_usi.py"

MATED = "position sfen 4k4/4G4/4P4/9/9/9/9/9/4K4 w - 1"
STALEMATE = "position sfen 8k/6G2/9/7N1/9/9/9/9/K8 w - 1"
MATE = "position sfen 4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
MOST_MOVES = "position sfen R8/2K1S1SSk/4B4/9/9/9/9/9/1L1L1L3 b RBGSNLP3g3n17p 1"
#: All other pieces are in hand: a mate search of this position takes very long.
LONG_MATE_SEARCH = "position sfen 9/9/9/4k4/9/9/9/9/4K4 b RB2G2S2N2L9Prb2g2s2n2l9p 1"
#: The fourth occurrence of the usual start, without any check.
REPETITION = "position startpos moves " + " ".join(["2h3h 8b7b 3h2h 7b8b"] * 3)

SCORE = r" score (cp -?\d+|mate -?\d+)"
USI_LINE = re.compile(
    r"id (name|author) \S.*|option name \S+ type (check|spin|combo|button|filename)\b.*"
    r"|usiok|readyok|info string .*"
    r"|info depth \d+ seldepth \d+ time \d+ nodes \d+ nps \d+ hashfull \d+ multipv \d+"
    rf"({SCORE})? pv \S+( \S+)*"
    r"|info depth 0 time 0 nodes 0 score mate (1|-0)"
    r"|info (depth \d+ )?time \d+ nodes \d+ nps \d+ hashfull \d+( score mate \d+ pv \S+( \S+)*)?"
    r"|bestmove (resign|win|\S+( ponder \S+)?)|checkmate (nomate|timeout|\S+( \S+)*)",
    re.ASCII,
)


@pytest.fixture(scope="module")
def two_heads(tmp_path_factory):
    """A small network with two heads and random weights."""
    return save(tmp_path_factory, "policy_value_small")


@pytest.fixture(scope="module")
def no_value(tmp_path_factory):
    """A network without a value head."""
    return save(tmp_path_factory, "policy")


def save(tmp_path_factory, network):
    from pydlshogi.model_files.model_file import save_model
    from pydlshogi.network.registry import make_network

    numpy.random.seed(20261123)
    path = tmp_path_factory.mktemp("a folder") / f"{network} model"
    save_model(path, make_network(network, **narrow(network)))
    return path


@pytest.fixture
def engine(start, two_heads):
    """The engine, ready. It loads in half the time without OpenVINO."""
    program = start([sys.executable, PROGRAM])
    program.send(f"setoption name modelfile value {two_heads}")
    program.send("setoption name backend value own", "isready")
    program.until("readyok")
    return program


@pytest.fixture
def shared_engine(start_once, two_heads):
    """The engine, ready, and used by other tests too."""
    lines = [f"setoption name modelfile value {two_heads}", "setoption name backend value own"]
    return start_once(*lines, "isready", command=[sys.executable, PROGRAM])


@pytest.fixture
def engine_by_default(start, two_heads):
    """The engine, ready, with the threads and the backend that it chooses itself."""
    environment = {k: v for k, v in os.environ.items() if k != "PYDLSHOGI_THREADS"}
    program = start([sys.executable, PROGRAM], env=environment)
    program.send(f"setoption name modelfile value {two_heads}", "isready")
    program.until("readyok")
    return program


def bestmoves(answers):
    return [answer.split()[1] for answer in answers if answer.startswith("bestmove ")]


def seconds(program, line, start):
    """Sends a line and returns how long the answer took."""
    begin = time.perf_counter()
    program.ask(line, start)
    return time.perf_counter() - begin


def test_usi_is_answered_at_once_and_without_heavy_imports(start):
    program = start([sys.executable, "-X", "importtime", PROGRAM])
    answers = program.ask("usi", "usiok")
    program.send("setoption name USI_Hash value 256", "setoption name MultiPV value 2")
    assert program.leave("quit") == 0
    imported = {line.split("|")[-1].strip() for line in program.stderr.decode().splitlines()}
    assert "pydlshogi.player.engine_options" in imported
    assert not imported & {"numpy", "shogi", "cshogi", "chainer", "cupy"}
    assert all(USI_LINE.fullmatch(answer) for answer in answers)
    names = {line.split()[2] for line in answers if line.startswith("option")}
    assert {"USI_Ponder", "USI_Hash", "MultiPV", "Book_File", "Draw_Ply"} <= names
    for line in mcts_options().declarations():
        assert re.fullmatch(
            r"option name \S+ type (check default \S+|spin default \S+ min \S+ max \S+"
            r"|combo default \S+( var \S+)+|button|filename default \S+)",
            line,
        )


@pytest.mark.parametrize("module", ["usi_mcts_player", "usi_parallel_mcts_player"])
def test_it_starts_as_the_book_does(start, module):
    program = start([sys.executable, "-m", f"pydlshogi.usi.{module}"], cwd=REPOSITORY)
    assert program.ask("usi", "usiok")[0] == "id name mcts_player"
    assert program.leave("quit") == 0


@pytest.mark.long
def test_the_players_run_through_the_books_loop(start, two_heads):
    code = (
        "from pydlshogi.player.parallel_mcts_player import *; from pydlshogi.usi.usi import *;"
        "usi(ParallelMCTSPlayer())"
    )
    program = start([sys.executable, "-c", code], cwd=REPOSITORY)
    assert program.ask("usi", "usiok")[0] == "id name parallel_mcts_player"
    program.send(f"setoption name modelfile value {two_heads}", "isready", "position startpos")
    program.until("readyok")
    assert bestmoves(program.ask("go nodes 50", "bestmove"))
    assert bestmoves([program.ask("go infinite", "info depth") and program.ask("stop", "best")[-1]])
    assert program.leave("quit") == 0


@pytest.mark.long
def test_openvino_computes_the_network_if_the_option_says_so(start, two_heads):
    pytest.importorskip("openvino")
    program = start([sys.executable, PROGRAM])
    program.send(f"setoption name modelfile value {two_heads}")
    told = "info string the network is computed by openvino_float32"
    for backend in ("own", "openvino_float32"):
        program.send(f"setoption name backend value {backend}", "isready", "position startpos")
        assert (told in program.until("readyok")) == (backend != "own")
        answers = program.ask("go nodes 100", "bestmove")
        assert [line for line in answers if not USI_LINE.fullmatch(line)] == []
        assert re.fullmatch(r"[1-9][a-i][1-9][a-i]\+?", bestmoves(answers)[0])
        assert " nodes 100 " in answers[-2]
    assert program.leave("quit") == 0
    assert program.stderr == b""


@pytest.mark.long
def test_openvino_that_is_not_installed_is_named(start, two_heads):
    code = (
        "import sys; sys.modules['openvino'] = None;"
        "from pydlshogi.commands.mcts_player_usi import main; sys.exit(main([]))"
    )
    program = start([sys.executable, "-c", code], cwd=REPOSITORY)
    program.send(f"setoption name modelfile value {two_heads}")
    program.ask("isready", "readyok")  # auto does not need it
    program.send("setoption name backend value openvino_float32", "isready")
    answers = program.until(None)
    assert program.process.wait(60) == 1
    assert answers[-1] == (
        "info string backend openvino_float32 cannot be used: the package openvino is not "
        "installed. Install it: python -m pip install openvino onnx. "
        "Choose the backend auto or own."
    )
    assert b"Traceback" not in program.stderr


def test_every_line_is_one_of_usi(engine):
    engine.send("usi", "setoption name MultiPV value 3", "position startpos", "go byoyomi 1300")
    engine.until("bestmove")
    engine.send("nonsense", MATE, "go nodes 20")
    engine.until("bestmove")
    engine.ask("go mate 1000", "checkmate")
    assert [line for line in engine.said if not USI_LINE.fullmatch(line)] == []
    assert engine.leave("quit") == 0
    assert engine.stderr == b""


@pytest.mark.long
@pytest.mark.parametrize("position", ["position startpos", MATED, STALEMATE, MATE, MOST_MOVES])
@pytest.mark.parametrize("go", ["go infinite", "go ponder byoyomi 100", "go ponder"])
def test_a_held_move_waits_also_when_the_search_is_done(shared_engine, position, go):
    engine = shared_engine
    engine.send(position, go)
    time.sleep(0.4)
    assert not bestmoves(engine.heard())
    answers = engine.ask("stop" if go == "go infinite" else "ponderhit", "bestmove")
    assert len(bestmoves(answers)) == 1
    engine.send("isready")
    assert not bestmoves(engine.until("readyok"))


@pytest.mark.long
def test_ponderhit_is_no_stop(engine_by_default):
    engine = engine_by_default
    engine.send("position startpos", "go ponder btime 0 wtime 0 byoyomi 900")
    time.sleep(0.5)
    assert 0.5 < seconds(engine, "ponderhit", "bestmove") < 0.9
    engine.send("go ponder")
    assert 0.2 < seconds(engine, "ponderhit btime 0 wtime 0 byoyomi 600", "bestmove") < 0.9


@pytest.mark.parametrize("batch_size", [1, 16, 256])
def test_stop_is_answered_at_once(engine_by_default, batch_size):
    engine = engine_by_default
    engine.send(f"setoption name batch_size value {batch_size}", "position startpos")
    for go in ("go infinite", "go", "go ponder", "go btime 600000"):
        for pause in (0.0, 0.05, 0.7):
            engine.send(go)
            time.sleep(pause)
            assert seconds(engine, "stop", "bestmove") < 0.6
    engine.send("stop", "isready")
    assert engine.until("readyok") == ["readyok"]


def test_each_go_has_one_answer_whatever_follows_it(engine):
    for go in ("go infinite", "go ponder", "go", "go byoyomi 400"):
        engine.send(go, "stop", "gameover win", "isready", "usinewgame", "position startpos")
        engine.send("go nodes 10")
        before, after = engine.until("readyok"), engine.until("bestmove")
        assert len(bestmoves(before)) == len(bestmoves(after)) == 1
    engine.send("isready")
    assert engine.until("readyok") == ["readyok"]


def test_go_mate(shared_engine):
    engine = shared_engine
    engine.send(MATE)
    shown, answer = engine.ask("go mate infinite", "checkmate")
    assert shown.endswith(" score mate 1 pv G*5b") and answer == "checkmate G*5b"
    engine.send("position startpos")
    assert engine.ask("go mate 5000", "checkmate")[1:] == ["checkmate nomate"]
    engine.send(MATED)
    assert engine.ask("go mate 100", "checkmate")[1:] == ["checkmate nomate"]


@pytest.mark.long
def test_an_isready_that_ends_a_mate_search_says_why(engine):
    engine.send(LONG_MATE_SEARCH, "go mate infinite")
    engine.until("info time")
    engine.send("setoption name MultiPV value 2", "isready")
    answers = engine.until("readyok")
    reason = "info string isready ended the search, because an option was set before it"
    assert answers[-3:] == [reason, "checkmate timeout", "readyok"]
    engine.send(MATED, "go infinite")
    engine.until("info string the side to move")
    engine.send("setoption name MultiPV value 3", "isready")
    assert engine.until("readyok") == [reason, "bestmove resign", "readyok"]
    engine.send("setoption name MultiPV value 4", "isready")
    assert engine.until("readyok") == ["readyok"]


DECLARED = "position sfen KGGGGSSSS/RRBB5/9/9/9/9/9/9/8k b - 1"


def test_an_analysis_where_a_declaration_holds_shows_scores_and_the_lines(shared_engine):
    engine = shared_engine
    engine.send(DECLARED, "go infinite")
    assert engine.until("info string")[-2:] == [
        "info depth 0 time 0 nodes 0 score mate 1",
        "info string the 27-point declaration holds",
    ]
    assert re.search(SCORE + " pv ", engine.until("info depth")[-1])
    assert not bestmoves(engine.obey())
    assert bestmoves(engine.ask("stop", "bestmove")) == ["win"]
    assert bestmoves(engine.ask("go byoyomi 500", "bestmove")) == ["win"]


@pytest.mark.parametrize("go", ["go infinite", "go byoyomi 500"])
def test_a_mated_position_has_a_score(shared_engine, go):
    engine = shared_engine
    for position in (MATED, STALEMATE):
        engine.send(position, go)
        answers = engine.until("info string")
        assert answers[-2] == "info depth 0 time 0 nodes 0 score mate -0"
        assert bestmoves(engine.ask("stop", "bestmove")) == ["resign"]


def test_a_movetime_with_a_fraction_is_used(shared_engine):
    """Lishogi-Bot sends it."""
    shared_engine.send("position startpos")
    line = "go movetime 1000.0 btime 50000 wtime 50000"
    # A busy computer takes some of it.
    assert 0.2 < seconds(shared_engine, line, "bestmove") < 5
    assert int(re.search(r" nodes (\d+)", shared_engine.said[-2])[1]) > 1


def test_resign_when_mated_or_without_a_move_and_not_at_a_repetition(shared_engine):
    engine = shared_engine
    for position in (MATED, STALEMATE):
        engine.send(position)
        assert bestmoves(engine.ask("go byoyomi 500", "bestmove")) == ["resign"]
    engine.send(REPETITION)
    (move,) = bestmoves(engine.ask("go nodes 50", "bestmove"))
    board = cshogi.Board()
    assert board.is_legal(board.move_from_usi(move))


def test_win_is_declared_only_where_it_holds_and_is_allowed(engine):
    engine.send("position sfen KGGGGSSSS/RRBB5/9/9/9/9/9/9/8k b - 1")
    assert bestmoves(engine.ask("go byoyomi 500", "bestmove")) == ["win"]
    engine.send("setoption name declaration_win value false")
    assert bestmoves(engine.ask("go byoyomi 500", "bestmove")) != ["win"]


@pytest.mark.long
def test_positions_with_moves_behind_an_sfen_and_wrong_ones(engine):
    sfen = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b -"
    engine.send(f"position sfen {sfen} moves 7g7f 3c3d 8h2b+")
    (move,) = bestmoves(engine.ask("go nodes 20", "bestmove"))
    board = cshogi.Board()
    for word in ("7g7f", "3c3d", "8h2b+"):
        board.push_usi(word)
    assert board.is_legal(board.move_from_usi(move))
    assert "cannot be played" in engine.ask("position startpos moves 7g7c", "info")[-1]
    engine.send("position startpos")
    assert bestmoves(engine.ask("go nodes 20", "bestmove")) != ["resign"]


@pytest.mark.long
@pytest.mark.parametrize(
    "lines",
    [[], ["usi"], ["isready"], ["go infinite"], ["go ponder"], ["go"], ["go mate infinite"]],
)
@pytest.mark.parametrize("end", [["quit"], []], ids=["quit", "end of input"])
def test_quit_at_any_time(start, two_heads, lines, end):
    program = start([sys.executable, PROGRAM])
    program.send(f"setoption name modelfile value {two_heads}")
    assert program.leave(*lines, *end) == 0
    assert b"Traceback" not in program.stderr


@pytest.mark.parametrize("go", ["go infinite", "go ponder", "go", "go searchmoves 7g7f 2g2f"])
@pytest.mark.parametrize("position", [["position startpos moves 7g7f"], []])
def test_the_next_go_ends_a_search_that_waits_for_stop(shared_engine, go, position):
    engine = shared_engine
    engine.send("position startpos", go)
    engine.until("info depth")
    engine.send(*position, "go nodes 20", "usi")
    assert len(bestmoves(engine.until("usiok"))) == 2


@pytest.mark.parametrize("go", ["go infinite", "go ponder", "go", "go mate infinite"])
@pytest.mark.parametrize("is_running", [True, False])
def test_usi_is_answered_during_a_search_that_waits_for_stop(shared_engine, go, is_running):
    engine = shared_engine
    engine.send(LONG_MATE_SEARCH, go)
    if is_running and go != "go mate infinite":
        engine.until("info depth")
    answers = engine.ask("usi", "usiok")
    assert not bestmoves(answers)
    assert sum(line.startswith("id name") for line in answers) == 1
    assert engine.ask("stop", "checkmate" if "mate" in go else "bestmove")
    engine.send("position startpos moves 7g7f", "go nodes 20", "usi")
    assert len(bestmoves(engine.until("usiok"))) == 1


@pytest.mark.parametrize("go", ["go infinite", "go ponder", "go", "go byoyomi 3000"])
def test_isready_during_a_search_does_not_stop_it(shared_engine, go):
    engine = shared_engine
    engine.send("position startpos", go)
    engine.until("info depth")
    assert seconds(engine, "isready", "readyok") < 1.5
    engine.until("info depth")
    assert not bestmoves(engine.heard())
    assert len(bestmoves(engine.ask("stop", "bestmove"))) == 1
    engine.send("isready")
    assert engine.until("readyok") == ["readyok"]


@pytest.mark.long
def test_isready_after_ponderhit_does_not_wait_for_the_search(shared_engine):
    engine = shared_engine
    engine.send("position startpos", "go ponder btime 0 wtime 0 byoyomi 3000")
    engine.until("info depth")
    engine.send("ponderhit")
    assert seconds(engine, "isready", "readyok") < 1.5
    assert not bestmoves(engine.heard())
    assert len(bestmoves(engine.until("bestmove"))) == 1


def test_isready_does_not_release_a_move_that_waits_for_stop(shared_engine):
    engine = shared_engine
    engine.send(MATED, "go infinite")
    assert engine.until("info string")[-1].endswith("the side to move has no legal move")
    assert engine.ask("isready", "readyok") == ["readyok"]
    assert engine.ask("stop", "bestmove") == ["bestmove resign"]


@pytest.mark.long
def test_isready_after_a_changed_option_ends_the_search_and_loads(engine):
    engine.send("position startpos", "go infinite")
    engine.until("info depth")
    engine.send("setoption name MultiPV value 2", "isready")
    assert len(bestmoves(engine.until("readyok"))) == 1
    engine.send("go infinite")
    engine.until("info depth")
    assert not bestmoves(engine.ask("isready", "readyok"))
    engine.ask("stop", "bestmove")


@pytest.mark.long
def test_after_ponderhit_an_infinite_search_still_waits_for_stop(engine):
    for position in ("position startpos", MATED):
        engine.send(position, "go ponder infinite", "ponderhit")
        time.sleep(0.4)
        assert not bestmoves(engine.heard())
        assert len(bestmoves(engine.ask("stop", "bestmove"))) == 1


@pytest.mark.long
@pytest.mark.parametrize("go", ["go infinite", "go"])
def test_a_ponderhit_without_ponder_changes_nothing(engine, go):
    engine.send("position startpos", go)
    engine.until("info depth")
    engine.send("ponderhit")
    assert not bestmoves(engine.ask("usi", "usiok"))
    assert engine.ask("stop", "bestmove")


@pytest.mark.long
def test_the_next_go_does_not_cut_a_search_that_ends_itself(engine):
    engine.send("position startpos", "go nodes 400", "position startpos", "go nodes 20", "usi")
    answers = engine.until("usiok")
    first = next(number for number, line in enumerate(answers) if line.startswith("bestmove"))
    assert " nodes 400 " in answers[first - 1]
    assert len(bestmoves(answers)) == 2


@pytest.mark.long
def test_the_next_go_does_not_cut_a_search_that_an_option_ends(engine):
    engine.send("setoption name nodes value 300", "position startpos", "go")
    engine.send("position startpos", "go", "setoption name nodes value 0", "usi")
    answers = engine.until("usiok")
    assert len([line for line in answers if " nodes 300 " in line]) >= 2
    assert len(bestmoves(answers)) == 2


@pytest.mark.long
def test_one_stop_ends_every_search_before_it(engine):
    engine.send("position startpos", "go", "position startpos moves 7g7f", "go infinite")
    engine.until("info depth")
    engine.send("stop", "usi")
    assert len(bestmoves(engine.until("usiok"))) == 2


@pytest.mark.long
def test_a_large_tree_delays_neither_a_new_game_nor_quit(engine):
    engine.send("position startpos", "go nodes 8000")
    engine.until("bestmove")
    begin = time.perf_counter()
    engine.send("usinewgame", "position startpos moves 7g7f", "usi")
    engine.until("usiok")
    assert time.perf_counter() - begin < 0.5
    begin = time.perf_counter()
    assert engine.leave("quit") == 0
    assert time.perf_counter() - begin < 2


@pytest.mark.long
def test_a_model_without_values_is_told_once_and_plays(start, no_value):
    program = start([sys.executable, PROGRAM])
    program.send(f"setoption name modelfile value {no_value}", "isready")
    answers = program.until("readyok")
    assert len([line for line in answers if "no value head" in line]) == 1
    answers = program.ask("go byoyomi 1000", "bestmove")
    assert bestmoves(answers)
    assert not re.search(SCORE, " ".join(answers))
    assert all(USI_LINE.fullmatch(line) for line in answers)


@pytest.mark.long
def test_a_diverged_model_is_refused(start, two_heads, tmp_path):
    with numpy.load(two_heads) as npz:
        arrays = {**npz, "l1/b": npz["l1/b"] + numpy.float32("nan")}
    path = tmp_path / "diverged"
    with path.open("wb") as file:
        numpy.savez(file, **arrays)
    program = start([sys.executable, PROGRAM])
    program.send(f"setoption name modelfile value {path}", "isready")
    answers = program.until(None)
    assert program.process.wait(60) == 1
    assert "not finite" in answers[-1]
    assert "readyok" not in answers


@pytest.mark.long
def test_a_book_that_is_none_is_named(start, two_heads, tmp_path):
    (tmp_path / "no book").write_text("hello\n")
    program = start([sys.executable, PROGRAM])
    program.send(f"setoption name modelfile value {two_heads}")
    program.send(f"setoption name Book_File value {tmp_path / 'no book'}", "isready")
    answers = program.until(None)
    assert program.process.wait(60) == 1
    assert "no book, line 1" in answers[-1]


def test_real_positions_are_answered_legally(engine):
    labels = json.loads((REPOSITORY / "tests" / "data" / "labels.json").read_text())
    for entry in labels[:30]:
        engine.send(f"position sfen {entry['sfen']}")
        (move,) = bestmoves(engine.ask("go nodes 12", "bestmove"))
        board = cshogi.Board(entry["sfen"])
        assert board.is_legal(board.move_from_usi(move))


def test_the_windows_launcher_is_that_of_the_other_engines():
    ours = (REPOSITORY / "bat" / "mcts_player.bat").read_bytes()
    other = (REPOSITORY / "bat" / "search1_player.bat").read_bytes()
    assert ours == other.replace(b"search1", b"mcts")
