"""What USI engines commonly get wrong: one test each, with the real program.

The order is that of the project's checklist for USI engines.
"""

import json
import os
import re
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

import cshogi
import pytest
import shogi

from pydlshogi import rules
from pydlshogi.player.engine_options import policy_options

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = REPOSITORY / "policy_player_usi.py"

MATED = "position sfen 4k4/4G4/4P4/9/9/9/9/9/4K4 w - 1"
STALEMATE = "position sfen 8k/6G2/9/7N1/9/9/9/9/K8 w - 1"
MOST_MOVES = "position sfen R8/2K1S1SSk/4B4/9/9/9/9/9/1L1L1L3 b RBGSNLP3g3n17p 1"
#: The fourth occurrence of the start position, without any check.
REPETITION = "position startpos moves " + " ".join(["2h3h 8b7b 3h2h 7b8b"] * 3)

#: Seconds to wait for the end of a process. This only ends a test that hangs.
PATIENCE = 60

#: Matches every line that the engine may send.
USI_LINE = re.compile(
    r"id (name|author) \S.*|option name \S+ type (check|spin|combo|button|filename|string)\b.*"
    r"|usiok|readyok|info string .*"
    r"|info depth 0 time 0 nodes 0 score mate (1|-0)"
    r"|info depth 1 time \d+ nodes \d+ multipv \d+ (score (cp -?\d+|mate -?\d+) )?pv \S+"
    r"|bestmove (\S+( ponder \S+)?)|checkmate notimplemented",
    re.ASCII,
)


def bestmoves(answers):
    return [answer.split()[1] for answer in answers if answer.startswith("bestmove ")]


def patched(*lines, program="policy_player_usi"):
    """Makes a command that runs an engine after some lines of Python."""
    code = [
        f"import sys; sys.path.insert(0, {str(REPOSITORY)!r})",
        *lines,
        f"from pydlshogi.commands.{program} import main",
        "sys.exit(main([]))",
    ]
    return [sys.executable, "-c", "\n".join(code)]


# Launch


def test_launch_default_paths_start_at_the_program_wherever_it_is_started(
    start, environment, model_file, tmp_path
):
    folder = tmp_path / "a clone with spaces"
    shutil.copytree(
        REPOSITORY / "pydlshogi",
        folder / "pydlshogi",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    program = folder / "policy_player_usi.py"
    shutil.copy(PROGRAM, program)
    (folder / "model").mkdir()
    shutil.copy(model_file, folder / "model" / "model_policy")
    shutil.copy(model_file, folder / "model" / "other model")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    # The system starts it by its first line, as GUIs on Linux and Mac do.
    engine = start([program], cwd=elsewhere, env=environment)
    engine.ask("isready", "readyok")
    engine.send("setoption name modelfile value model/other model", "isready")
    assert engine.until("readyok") == ["readyok"]
    assert engine.leave("quit") == 0
    assert not list(elsewhere.iterdir())


def test_launch_imports_nothing_heavy_before_usiok(start):
    engine = start([sys.executable, "-X", "importtime", PROGRAM])
    engine.ask("usi", "usiok")
    engine.send("setoption name MultiPV value 3", "setoption name USI_Hash value 256")
    assert engine.leave("quit") == 0
    imported = {line.split("|")[-1].strip() for line in engine.stderr.decode().splitlines()}
    assert "pydlshogi.usi.engine" in imported
    assert not imported & {"numpy", "shogi", "chainer", "cupy", "pydlshogi.features"}


def test_launch_nothing_but_usi_on_stdout(start, model_file):
    engine = start(
        patched(
            "import os, warnings",
            "from pydlshogi.inference import evaluator",
            "def noisy(*args, **kwargs):",
            "    print('printed')",
            "    os.write(1, b'written by a library in C\\n')",
            "    os.system('echo said by a child')",
            "    warnings.warn('warned')",
            "    return load(*args, **kwargs)",
            "load, evaluator.load_network = evaluator.load_network, noisy",
        )
    )
    engine.send("usi", f"setoption name modelfile value {model_file}", "isready")
    engine.send("position startpos", "go", "nonsense", "go mate")
    answers = engine.until("checkmate")
    assert engine.leave("quit") == 0
    answers += engine.until(None)
    assert "readyok" in answers
    assert [answer for answer in answers if not USI_LINE.fullmatch(answer)] == []
    for noise in (b"printed", b"written by", b"said by", b"warned"):
        assert noise in engine.stderr


def test_launch_libraries_find_standard_input_empty(start, model_file):
    engine = start(
        patched(
            "import os, subprocess",
            "from pydlshogi.inference import evaluator",
            "def curious(*args, **kwargs):",
            "    child = subprocess.run(['cat'], stdout=subprocess.PIPE, check=True)",
            "    print('read:', os.read(0, 9), sys.stdin.read(), child.stdout)",
            "    return load(*args, **kwargs)",
            "load, evaluator.load_network = evaluator.load_network, curious",
        )
    )
    engine.send(f"setoption name modelfile value {model_file}", "isready", "position startpos")
    assert bestmoves(engine.ask("go", "bestmove"))
    assert engine.leave("quit") == 0
    assert b"read: b''  b''" in engine.stderr


def test_launch_without_standard_input(model_file):
    command = patched("import os; os.close(0)")
    assert subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=60).stdout == b""


def test_launch_without_standard_error(start, tmp_path):
    noisy = patched(
        "import os",
        "from pydlshogi.usi import engine",
        "def opened():",
        "    before()",
        # Not earlier: on new Linux systems, ctypes opens a file and would get the number 2.
        "    from pydlshogi.inference import evaluator",
        "    evaluator.load_network = lambda *args: os.write(2, b'noise') + print('noise') / 0",
        "before, engine._open_standard_files = engine._open_standard_files, opened",
    )
    engine = start(["sh", "-c", 'exec "$@" 2>&-', "sh", *noisy])
    engine.send("isready")
    answers = engine.until(None)
    assert engine.process.wait(60) == 1
    assert len(answers) == 1
    # Output to file 2 disappears. It neither fails nor comes back as input.
    assert answers[0].startswith("info string internal error at 'isready': TypeError")


@pytest.mark.parametrize("stderr", ["2>&-", "2>&7"], ids=["closed", "a broken pipe"])
def test_launch_quit_ends_with_status_0_without_a_reader_of_standard_error(start, stderr):
    reader, writer = os.pipe()
    os.close(reader)
    # The text stays in the buffer until the end.
    command = patched("import sys", "if sys.stderr: sys.stderr.write('no end of line')")
    shell = f'exec 7>&{writer}; exec "$@" {stderr}'
    buffered = {name: os.environ[name] for name in os.environ if name != "PYTHONUNBUFFERED"}
    engine = start(
        ["bash", "-c", shell, "bash", *command], pass_fds=[writer], stderr=None, env=buffered
    )
    assert engine.leave("usi", "quit") == 0
    os.close(writer)


def test_launch_a_gui_that_goes_away_in_a_search(model_file):
    lines = f"setoption name modelfile value {model_file}\nisready\ngo infinite\n".encode()
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, PROGRAM], stdin=pipe, stdout=pipe, stderr=pipe
    ) as engine:
        engine.stdin.write(lines)
        engine.stdin.flush()
        while engine.stdout.readline() != b"readyok\n":
            pass
        # At the end of the input the engine sends the move that it held back, to nobody.
        engine.stdout.close()
        engine.stdin.close()
        assert engine.stderr.read() == b""
    assert engine.returncode == 0


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="it asks the system how full a pipe is")
@pytest.mark.parametrize("end", ["quit", "end of input", "SIGTERM"])
def test_launch_a_gui_that_does_not_read_can_end_the_engine(model_file, end):
    import fcntl
    import termios

    def waiting():
        return struct.unpack("i", fcntl.ioctl(engine.stdout, termios.FIONREAD, bytes(4)))[0]

    pipe = subprocess.PIPE
    lines = [f"setoption name modelfile value {model_file}", "isready"]
    goes = ["setoption name MultiPV value 593", *(["position startpos", "go"] * 60)]
    with subprocess.Popen(
        [sys.executable, PROGRAM], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL
    ) as engine:
        engine.stdin.write("\n".join([*lines, *goes, ""]).encode())
        engine.stdin.flush()
        before = -1
        while waiting() < 60_000 or waiting() != before:  # until the engine waits for the reader
            assert engine.poll() is None
            before = waiting()
            time.sleep(0.5)
        engine.stdin.write(b"isready\nusi\n")
        engine.stdin.flush()
        start = time.monotonic()
        if end == "quit":
            engine.stdin.write(b"quit\n")
            engine.stdin.flush()
        elif end == "end of input":
            engine.stdin.close()
        else:
            engine.terminate()
        try:
            assert engine.wait(PATIENCE) == 0
        finally:
            engine.kill()
        assert time.monotonic() - start < 5


def test_launch_every_line_is_flushed(shared):
    # Each answer arrives while the engine waits for more input.
    for line, answer in [("usi", "usiok"), ("isready", "readyok"), ("go", "bestmove")]:
        shared.ask(line, answer)


# usi


def test_usi_no_spaces_in_names_choices_and_defaults():
    for line in policy_options().declarations():
        assert re.fullmatch(
            r"option name \S+ type "
            r"(check default \S+|spin default \S+ min \S+ max \S+|combo default \S+( var \S+)+"
            r"|button|filename default \S+)",
            line,
        )


# setoption


def test_setoption_a_value_may_hold_spaces(start, model_file):
    assert " " in str(model_file)
    engine = start()
    engine.send(f"setoption name modelfile value {model_file}", "isready")
    assert engine.until("readyok") == ["readyok"]


def test_setoption_a_value_may_be_empty(ready):
    ready.send("setoption name debug_log value ", "setoption name debug_log value", "isready")
    assert ready.until("readyok") == ["readyok"]
    ready.send("setoption name modelfile value ", "setoption name modelfile value <empty>")
    assert not any(answer.startswith("info") for answer in ready.ask("usi", "usiok"))


# isready


def test_isready_loads_only_what_changed(start, model_file):
    engine = start(
        patched(
            "from pydlshogi.inference import evaluator",
            "def counted(*args):",
            "    sys.stderr.write('loaded\\n')",
            "    return load(*args)",
            "load, evaluator.load_network = evaluator.load_network, counted",
        )
    )
    engine.send(f"setoption name modelfile value {model_file}")
    for _ in range(3):
        engine.send("setoption name strategy value boltzmann", "isready", "usinewgame")
    engine.send("setoption name reload_model", "isready")
    engine.send("setoption name device value cpu", "isready", "isready")
    for _ in range(6):
        engine.until("readyok")
    assert engine.leave() == 0
    assert "readyok" not in engine.until(None)
    assert engine.stderr.count(b"loaded") == 3


def test_isready_names_threads_that_are_no_number(start, environment):
    engine = start(env={**environment, "PYDLSHOGI_THREADS": "many"})
    answers = engine.ask("isready", "info string")
    assert "PYDLSHOGI_THREADS" in answers[-1]
    assert "'many'" in answers[-1]
    assert answers[-1].endswith("or unset it.")
    assert engine.process.wait(60) == 1
    assert b"Traceback" not in engine.stderr


def test_isready_names_a_network_file_that_ends_the_program(start, tmp_path):
    script = tmp_path / "my_training.py"
    script.write_text("import argparse\np = argparse.ArgumentParser()\np.add_argument('list')\n")
    with script.open("a") as file:
        file.write("p.parse_args([])\n")
    engine = start()
    engine.send(f"setoption name network_file value {script}", "isready")
    (said,) = engine.until(None)
    assert said.startswith(f"info string the file {script} ends the program when it is imported")
    assert engine.process.wait(60) == 1
    # The log file of a .bat file receives it, too.
    assert said.partition("string ")[2].encode() in engine.stderr


@pytest.mark.long
@pytest.mark.parametrize("stderr", ["2>&2", "2>&7"], ids=["open", "a broken pipe"])
@pytest.mark.parametrize("fault", ["sys.exit('no more')", "1 / 0"])
def test_go_an_internal_error_ends_the_engine_with_a_line(start, fault, stderr):
    reader, writer = os.pipe()
    os.close(reader)
    command = patched(
        "from pydlshogi.player import policy_player",
        f"policy_player.PolicyPlayer.choose = lambda self, go: {fault}",
    )
    shell = f'exec 7>&{writer}; exec "$@" {stderr}'
    engine = start(["bash", "-c", shell, "bash", *command], pass_fds=[writer])
    os.close(writer)
    engine.send("go")
    (said,) = engine.until(None)
    assert said.startswith("info string internal error at 'go': ")
    assert engine.process.wait(60) == 1


# position


def test_position_moves_behind_sfen(ready):
    sfen = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1"
    ready.send("setoption name MultiPV value 1")
    ready.send("position startpos moves 7g7f 3c3d 8h2b+")
    expected = ready.ask("go", "bestmove")
    ready.send(f"position sfen {sfen} moves 7g7f 3c3d 8h2b+")
    found = ready.ask("go", "bestmove")
    assert [line for line in found if "time" not in line] == [
        line for line in expected if "time" not in line
    ]


# go


def test_go_own_clock_is_that_of_the_side_to_move(start, model_file):
    engine = start(
        patched(
            "from pydlshogi.player import policy_player",
            "def told(self, go):",
            "    clock = go.clock(self.board.turn)",
            "    self.send(f'info string clock {clock.remaining} {clock.increment}')",
            "    return 'resign'",
            "policy_player.PolicyPlayer.choose = told",
        )
    )
    engine.send("position startpos", "go btime 111 wtime 222 binc 1 winc 2")
    assert engine.until("bestmove")[0] == "info string clock 111 1"
    engine.send("position startpos moves 7g7f", "go btime 111 wtime 222 binc 1 winc 2")
    assert engine.until("bestmove")[0] == "info string clock 222 2"


@pytest.mark.parametrize(
    "position", ["position startpos", MATED, "position sfen 4k4/9/4P4/9/9/9/9/9/4K4 b G 1"]
)
def test_go_infinite_waits_for_stop(shared, position):
    shared.send(position, "go infinite")
    assert not bestmoves(shared.obey())
    assert len(bestmoves(shared.ask("stop", "bestmove"))) == 1


@pytest.mark.parametrize("position", ["position startpos", MATED])
@pytest.mark.parametrize("release", ["ponderhit", "ponderhit btime 1 wtime 1", "stop"])
def test_go_ponder_waits_even_when_mated(shared, position, release):
    shared.send(position, "go ponder btime 1000 wtime 1000")
    assert not bestmoves(shared.obey())
    assert len(bestmoves(shared.ask(release, "bestmove"))) == 1


@pytest.mark.parametrize(
    ("position", "score", "answer"),
    [
        (MATED, "mate -0", "resign"),
        (STALEMATE, "mate -0", "resign"),
        ("position sfen KGGGGSSSS/RRBB5/9/9/9/9/9/9/8k b - 1", "mate 1", "win"),
    ],
    ids=["mated", "stalemate", "declaration"],
)
def test_an_analysis_of_a_position_that_has_ended_has_a_score(shared, position, score, answer):
    shared.send(position, "go infinite")
    answers = shared.obey()
    assert answers[0] == f"info depth 0 time 0 nodes 0 score {score}"
    assert any(" pv " in line for line in answers) == (answer == "win")
    assert bestmoves(shared.ask("stop", "bestmove")) == [answer]


def test_go_mate_is_never_answered_by_bestmove(shared):
    for limit in ("", " 1000", " infinite"):
        shared.send(f"go mate{limit}", "stop", "usi")
        answers = shared.until("usiok")
        assert answers[0] == "checkmate notimplemented"
        assert not bestmoves(answers)


# stop, ponderhit, gameover, quit


def test_stop_gives_exactly_one_bestmove_for_each_go(shared):
    for go in ("go infinite", "go ponder", "go byoyomi 1000", "go"):
        shared.send("position startpos", go, "stop", "stop", "isready")
        assert len(bestmoves(shared.until("readyok"))) == 1
    shared.send("stop", "isready")
    assert shared.until("readyok") == ["readyok"]


def test_stop_ends_a_look_ahead_and_no_later_one(start, tmp_path):
    from pydlshogi.model_files.model_file import save_model
    from pydlshogi.network.registry import make_network

    save_model(tmp_path / "model", make_network("policy_value_small"))
    engine = start(
        patched(
            "import time",
            "from pydlshogi.inference.evaluator import Evaluator",
            "evaluate = Evaluator.evaluate",
            "Evaluator.evaluate = lambda *args: time.sleep(0.2) or evaluate(*args)",
            program="search1_player_usi",
        )
    )
    engine.send(f"setoption name modelfile value {tmp_path / 'model'}")
    engine.send("setoption name mate_in_one value false")
    engine.send("isready", MOST_MOVES)
    engine.until("readyok")
    engine.send("go infinite", "stop", "isready")
    answers = engine.until("readyok")
    assert len(bestmoves(answers)) == 1
    # Not all of the 593 moves, which would take 19 times 0.2 seconds.
    assert int(re.search(r" nodes (\d+) ", answers[-3])[1]) < 300
    engine.send("position startpos", "stop", "go")
    assert " nodes 31 " in engine.until("bestmove")[-2]


def test_gameover_and_isready_without_waiting_leave_no_second_bestmove(shared):
    for go in ("go infinite", "go ponder", "go"):
        shared.send(go, "stop", "gameover win", "isready", "usinewgame", "position startpos", "go")
        before, after = shared.until("readyok"), shared.until("bestmove")
        assert len(bestmoves(before)) == len(bestmoves(after)) == 1
    shared.send("isready")
    assert shared.until("readyok") == ["readyok"]


NEVER_LOADED = patched(
    "import time",
    "from pydlshogi.inference import evaluator",
    "from pydlshogi.usi import dialogue",
    "dialogue.QUIT_GRACE = 0.2",
    "evaluator.load_network = lambda *args: time.sleep(3600)",
)


@pytest.mark.parametrize(
    "lines",
    [[], ["usi"], ["isready"], ["go infinite"], ["go ponder"], ["go"], ["position startpos"]],
    ids=lambda lines: " ".join(lines) or "nothing",
)
@pytest.mark.parametrize("end", [["quit"], []], ids=["quit", "end of input"])
def test_quit_at_any_time_ends_with_status_0(start, model_file, lines, end):
    engine = start()
    if lines and lines[0].startswith("go"):
        engine.send(f"setoption name modelfile value {model_file}")
    elif lines == ["isready"]:
        engine = start(NEVER_LOADED)
    assert engine.leave(*lines, *end) == 0
    assert b"Traceback" not in engine.stderr


# bestmove


def test_win_is_declared_only_when_it_holds_and_the_option_is_on(ready):
    declared = "position sfen KGGGGSSSS/RRBB5/9/9/9/9/9/9/8k b - 1"
    one_short = "position sfen KGGGGSSS1/RRBB5/9/9/9/9/9/9/8k b - 1"
    assert cshogi.Board(declared.split(maxsplit=2)[2]).is_nyugyoku()
    assert not cshogi.Board(one_short.split(maxsplit=2)[2]).is_nyugyoku()
    ready.send(one_short)
    assert bestmoves(ready.ask("go", "bestmove")) != ["win"]
    ready.send(declared)
    assert bestmoves(ready.ask("go", "bestmove")) == ["win"]
    ready.send("setoption name declaration_win value false")
    assert bestmoves(ready.ask("go", "bestmove")) != ["win"]


@pytest.mark.parametrize("position", [MATED, STALEMATE], ids=["mated", "stalemate"])
def test_resign_without_a_legal_move(shared, position):
    assert not list(cshogi.Board(position.split(maxsplit=2)[2]).legal_moves)
    shared.send(position)
    assert bestmoves(shared.ask("go", "bestmove")) == ["resign"]


@pytest.mark.parametrize("repetition", ["allow", "avoid"])
def test_no_resignation_because_of_repetition(ready, repetition):
    board = shogi.Board()
    for move in REPETITION.split()[3:]:
        board.push_usi(move)
    assert board.is_game_over()
    ready.send(f"setoption name repetition value {repetition}", REPETITION)
    (move,) = bestmoves(ready.ask("go", "bestmove"))
    assert rules.is_legal(board, shogi.Move.from_usi(move))


# info


def test_info_numbers_are_integers_and_the_line_is_whole(ready):
    ready.send("setoption name MultiPV value 4", "position startpos")
    lines = [line for line in ready.ask("go", "bestmove") if " pv " in line]
    assert sorted(int(re.search(r"multipv (\d+)", line)[1]) for line in lines) == [1, 2, 3, 4]
    assert all(USI_LINE.fullmatch(line) for line in lines)
    # The last line is that of the move played: cshogi and GUIs take that one.
    assert lines[-1].split()[-1] == bestmoves(ready.said)[-1]


# Beyond the checklist


@pytest.mark.long
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "does not exist"),
        (b"", "is not a Chainer npz"),
        (b"PK\x03\x04 not a zip", "cannot be read"),
        ("other network", "(16, 3, 3, 3)"),
        ("not finite", "not finite"),
    ],
    ids=["missing", "empty", "damaged", "another network", "diverged"],
)
def test_a_model_that_cannot_be_used_is_named(start, model_file, tmp_path, content, reason):
    path = tmp_path / "bad model.npz"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content:
        import numpy

        with numpy.load(model_file) as npz:
            arrays = dict(npz)
        if content == "other network":
            arrays["l1/W"] = arrays["l1/W"][:, :3]
        else:
            arrays["l12/b"] = arrays["l12/b"] + numpy.float32("nan")
        with path.open("wb") as file:
            numpy.savez(file, **arrays)
    engine = start()
    engine.send("usi", f"setoption name modelfile value {path}", "isready")
    answers = engine.until(None)
    assert engine.process.wait(60) == 1
    assert answers[-1].startswith("info string")
    assert str(path) in answers[-1]
    assert reason in answers[-1]
    assert "readyok" not in answers
    assert b"Traceback" not in engine.stderr


def test_a_gpu_that_is_not_there_is_named(start, model_file):
    engine = start(
        patched(
            "from pydlshogi import device",
            "device.gpu_count = lambda: (1, '')",
        )
    )
    engine.send(f"setoption name modelfile value {model_file}")
    engine.send("setoption name device value gpu7", "isready")
    answers = engine.until(None)
    assert engine.process.wait(60) == 1
    assert answers == [
        "info string device gpu7 cannot be used: there are 1, numbered from 0. "
        "Set the option device to auto or cpu."
    ]


def test_a_python_without_chainer_is_named(start):
    engine = start(patched("sys.modules['chainer'] = None"))
    engine.send("usi", "isready")
    answers = engine.until(None)
    assert engine.process.wait(60) == 1
    assert answers[-2] == "usiok"
    assert "docs/install.md" in answers[-1]


@pytest.mark.long
@pytest.mark.parametrize("way", ["argument", "environment"])
def test_a_default_model_for_guis_without_file_options(start, environment, model_file, way):
    command, variables = [sys.executable, PROGRAM], dict(environment)
    if way == "argument":
        command += ["--model", model_file.name]
    else:
        variables["PYDLSHOGI_MODEL"] = str(model_file)
    engine = start(command, env=variables, cwd=model_file.parent)
    # A GUI sends the declared default back.
    engine.send("setoption name modelfile value model/model_policy_value", "isready")
    engine.until("readyok")
    moved = model_file.with_name("no such model")
    variables["PYDLSHOGI_MODEL"] = command[-1] = str(moved)
    engine = start(command if way == "argument" else command[:1] + [PROGRAM], env=variables)
    assert str(moved) in engine.ask("isready", "info string")[-1]


@pytest.mark.long
@pytest.mark.parametrize("encoding", ["utf-8", "cp932"])
def test_crlf_and_japanese_paths(start, model_file, tmp_path, encoding):
    path = tmp_path / "将棋 モデル" / "表.npz"
    path.parent.mkdir()
    shutil.copy(model_file, path)
    engine = start()
    for line in (f"setoption name modelfile value {path}", "isready"):
        engine.send(f"{line}\r\n".encode(encoding))
    assert engine.until("readyok") == ["readyok"]
    engine.send(b"position startpos moves 7g7f\r\n", b"go\r\n")
    assert bestmoves(engine.until("bestmove"))


@pytest.mark.long
def test_option_changes_take_effect_at_the_next_go(ready):
    ready.send("position startpos", "setoption name MultiPV value 593")
    assert len([line for line in ready.ask("go", "bestmove") if " pv " in line]) == 30
    ready.send("setoption name strategy value boltzmann", "setoption name temperature value 1000")
    ready.send("setoption name MultiPV value 1")
    moves = set()
    while len(moves) < 3:
        answers = ready.ask("go", "bestmove")
        moves.update(bestmoves(answers))
        assert answers[-2].endswith(f" pv {bestmoves(answers)[0]}")


@pytest.mark.parametrize("name", ["mcts_player", "policy_player", "search1_player"])
def test_the_windows_launcher_starts_what_is_there_and_keeps_errors(name):
    text = (REPOSITORY / "bat" / f"{name}.bat").read_bytes().decode("ascii")
    assert text.count("\r\n") == text.count("\n")
    lines = text.split("\r\n")
    assert 'cd /d "%~dp0" || exit /b 1' in lines
    assert (REPOSITORY / "bat" / ".." / f"{name}_usi.py").exists()
    assert lines[-2] == f'"%PYTHON%" ..\\{name}_usi.py %* 2>>"%LOG%"'
    assert "nul" not in text.lower().split()


def test_all_real_positions_are_answered_legally(shared):
    labels = json.loads((REPOSITORY / "tests" / "data" / "labels.json").read_text())
    sfens = [entry["sfen"] for entry in labels][:100]
    for sfen in sfens:
        shared.send(f"position sfen {sfen}")
        (move,) = bestmoves(shared.ask("go byoyomi 1000", "bestmove"))
        board = cshogi.Board(sfen)
        assert board.is_legal(board.move_from_usi(move))
