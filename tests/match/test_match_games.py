"""Whole matches: random movers, fairy-stockfish, engines that misbehave, interruptions."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import shogi

from pydlshogi.commands.match import main
from pydlshogi.kifu.csa import parse_game
from pydlshogi.lock import lock_outputs
from pydlshogi.match import series
from pydlshogi.match.engine_spec import Limit, parse_engine
from pydlshogi.match.openings import draw_openings
from pydlshogi.match.play import Workers
from pydlshogi.match.record import read_outcome
from pydlshogi.match.series import Row, Tournament
from pydlshogi.match.usi_client import UsiClient
from pydlshogi.model_files.model_file import save_model
from pydlshogi.network.policy import PolicyNetwork

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = [sys.executable, "-m", "pydlshogi", "match"]
FAIRY = shutil.which("fairy-stockfish") or shutil.which("/usr/games/fairy-stockfish")

# A random mover whose every game is the same from the same opening.
SEEDED = f"{{}}='{sys.executable}' -m pydlshogi.match.random_player;random_seed={{}}"

# Answers each go with its argument, unless that says otherwise. Writes CP932, and more to
# standard error than a pipe holds.
FAKE = r"""
import os, sys, time
behaviour = sys.argv[1]
def say(text): sys.stdout.buffer.write(text.encode("cp932") + b"\n"); sys.stdout.flush()
for line in map(bytes.decode, sys.stdin.buffer):
    word = line.split()[0]
    if behaviour == "silent at " + word: time.sleep(60)
    if behaviour == "dies at " + word:
        print("out of luck", file=sys.stderr); sys.exit(3)
    if behaviour == "fades at " + word: time.sleep(0.3); sys.exit(3)
    if behaviour == "reports at " + word:
        sys.stderr.write("loading 10%\rloading 20%\r+7776FU is gone\x1b"); sys.exit(3)
    if behaviour == "thinks at " + word: open(f"{__file__}.{os.getpid()}", "w"); time.sleep(60)
    while behaviour == "floods at " + word: say("info depth 1")
    while behaviour == "never ends its line at " + word:
        sys.stdout.buffer.write(b"x" * 100000)
    if behaviour == "writes a long line at " + word: say("info " + "x" * 300000)
    if behaviour == "writes much at " + word:
        for number in range(5000): say("info depth 1 score cp %d" % number)
    if behaviour == "vanishes at " + word: os.remove(__file__); sys.exit(4)
    if behaviour == "complains at " + word: say("info string no model. Train one."); sys.exit(1)
    if behaviour == "says it twice at " + word:
        say("info string no model"); print("error: no model", file=sys.stderr); sys.exit(1)
    if behaviour == "mutters at " + word:
        print("warning", file=sys.stderr); say("info string no model. Train one."); sys.exit(1)
    if behaviour == "grumbles at " + word:
        sys.stderr.buffer.write("失敗\n".encode("cp932")); sys.exit(1)
    if behaviour == "waits at " + word: say("info string no model. Train one."); time.sleep(60)
    if word == "usi":
        say("id name 偽")
        say("option name Level type spin default 0 min -5 max 5")
        say("option name Style type combo default calm var calm var very wild")
        say("option name Book type check default true")
        say("option name Title type string default -")
        say("option name Motto type string default -")
        say("usiok")
    elif word == "isready": sys.stderr.write("x" * 100000 + "\n"); say("readyok")
    elif word == "go": say("info string 考え中"); say("bestmove " + behaviour)
    elif word == "setoption" and " Title " in line: assert line.split()[-1] == "偽", line
    elif word == "setoption" and " Level " in line: assert "!" not in line, line
    elif word == "setoption" and " Style " in line: assert line.endswith("very wild\n"), line
    elif word == "setoption" and " Motto " in line: assert line.split()[-1] == "win!", line
    elif word == "quit": break
"""


@pytest.fixture
def fake(tmp_path):
    script = tmp_path / "fake engine.py"
    script.write_text(FAKE, encoding="utf-8")
    return lambda behaviour, name="fake": f"{name}='{sys.executable}' '{script}' '{behaviour}'"


def run(output, *arguments):
    return main(["--output", str(output), *map(str, arguments)])


def records(output):
    """Gives the records by their path, without the end time and the seconds of each move."""
    return {
        path.relative_to(output): [
            line
            for line in path.read_text(encoding="utf-8").splitlines()
            if not re.match(r"\$END_TIME:|T\d", line)
        ]
        for path in output.rglob("*.csa")
    }


def row(output, line=1):
    """Gives a line of the table by its columns."""
    head, *lines = (output / "table.tsv").read_text(encoding="utf-8").splitlines()
    return dict(zip(head.split("\t"), lines[line - 1].split("\t")))


def two_random_movers(output, games=4):
    return run(
        output,
        *("--engine", SEEDED.format("a", 1), "--opponent", SEEDED.format("b", 2)),
        *("--games", games, "--max_plies", 60, "--plies", 6, "--concurrency", 2),
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A match of four games between random movers."""
    output = tmp_path_factory.mktemp("finished")
    assert two_random_movers(output) == 0
    return output


@pytest.mark.long
def test_pairs_share_their_opening_and_change_sides(finished):
    games = [parse_game((finished / f"a_b/000{n}.csa").read_bytes()) for n in (1, 2, 3, 4)]
    assert [game.names for game in games] == [["a", "b"], ["b", "a"]] * 2
    openings = [[move[:4] for move in game.moves[:6]] for game in games]
    assert openings[0] == openings[1] != openings[2] == openings[3]
    assert games[0].moves[6:] != games[1].moves[6:]


@pytest.mark.long
def test_games_may_begin_with_the_first_moves_of_other_games(tmp_path, capsys):
    movers = ("--engine", SEEDED.format("a", 1), "--opponent", SEEDED.format("b", 2))
    kifu_list = Path(__file__).resolve().parents[2] / "kifu" / "kifulist_test.txt"
    options = (*movers, "--max_plies", 30, "--openings", kifu_list)
    assert run(tmp_path, *options, "--games", 4) == 0
    first = records(tmp_path)
    games = [parse_game((tmp_path / f"a_b/000{n}.csa").read_bytes()) for n in (1, 2, 3, 4)]
    openings = [[move[:4] for move in game.moves[:24]] for game in games]
    assert openings[0] == openings[1] != openings[2] == openings[3]
    assert games[0].moves[24:] != games[1].moves[24:]
    assert re.search(r"^'opening: 24 moves of .*csa, game 1, pair 1$", lines(first, 3), re.M)

    assert run(tmp_path, *options, "--games", 6) == 0
    assert first.items() <= records(tmp_path).items()
    assert len(records(tmp_path)) == 6
    assert "4 of 6 games were played before" in capsys.readouterr().err
    assert run(tmp_path, *movers, "--max_plies", 30, "--plies", 24, "--games", 6) == 1
    assert "games of other engines, options or conditions" in capsys.readouterr().err
    assert run(tmp_path / "new", *options, "--games", 62) == 1
    assert "30 different openings of 24 moves, but the match needs 31" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def lines(files, number):
    """Gives the text of the record of a game."""
    return "\n".join(files[Path(f"a_b/000{number}.csa")])


@pytest.mark.long
def test_cshogi_reads_the_same_from_the_records(finished):
    cshogi = pytest.importorskip("cshogi")
    pytest.importorskip("cshogi.CSA")
    for path in sorted(finished.rglob("*.csa")):
        game = parse_game(path.read_bytes())
        (theirs,) = cshogi.CSA.Parser.parse_file(str(path))
        assert theirs.version == "V2.2"
        assert theirs.names == game.names
        assert theirs.endgame == game.end_mark
        winner = {cshogi.BLACK_WIN: shogi.BLACK, cshogi.WHITE_WIN: shogi.WHITE}.get(theirs.win)
        assert winner == game.winner == read_outcome(path).winner
        assert len(theirs.moves) == len(game.moves)
        assert len(theirs.times) == len(game.moves) + 1
        board = cshogi.Board()
        for move in theirs.moves:
            assert board.is_legal(move)
            board.push(move)


def test_the_tables_count_the_records(finished, capsys):
    outcomes = [read_outcome(finished / f"a_b/000{n}.csa") for n in (1, 2, 3, 4)]
    found = row(finished)
    points = [outcome.points(n % 2) for n, outcome in enumerate(outcomes)]
    assert [int(found[key]) for key in ("won", "drawn", "lost")] == [
        points.count(1),
        points.count(0.5),
        points.count(0),
    ]
    assert float(found["score"]) == sum(points) / 4
    assert float(found["mean_plies"]) == sum(outcome.plies for outcome in outcomes) / 4
    assert two_random_movers(finished) == 0
    printed = capsys.readouterr().out
    table, written = printed[: -1 - len(printed.splitlines()[-1])], printed.splitlines()[-1]
    assert table == (finished / "table.md").read_text(encoding="utf-8")
    assert written.startswith(f"{finished}: table.md, table.tsv")
    assert "| a | b | 4 |" in printed


@pytest.mark.long
def test_a_match_goes_on_where_its_records_stop(finished, tmp_path, capsys):
    output = tmp_path / "match"
    assert two_random_movers(output, games=2) == 0
    before = {path: path.stat().st_mtime_ns for path in output.rglob("*.csa")}
    assert "played before" not in capsys.readouterr().err
    assert two_random_movers(output) == 0
    assert "a - b: 2 of 4 games were played before" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in before} == before
    (output / "a_b" / "0002.csa").unlink()
    assert two_random_movers(output) == 0
    assert records(output) == records(finished)


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
@pytest.mark.long
def test_an_interrupted_match_goes_on(finished, tmp_path):
    output = tmp_path / "match"
    command = [*PROGRAM]
    command += ["--engine", SEEDED.format("a", 1), "--opponent", SEEDED.format("b", 2)]
    command += ["--games", "200", "--max_plies", "60", "--plies", "6", "--output", str(output)]
    pipes = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, **pipes) as process:
        while not (output / "a_b" / "0002.csa").exists():
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"the current games are played to their end" in stderr
    assert b"The same command continues the match." in stderr
    assert b"Traceback" not in stderr
    played = len(records(output))
    assert 2 <= played < 200
    assert row(output)["games"] == str(played)
    assert two_random_movers(output) == 0
    expected = records(finished)
    assert {path: records(output)[path] for path in expected} == expected


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_a_second_interrupt_gives_up_the_games_under_way(fake, tmp_path):
    output = tmp_path / "match"
    command = [*PROGRAM, "--games", "4", "--concurrency", "2"]
    command += ["--engine", fake("thinks at go"), "--opponent", fake("thinks at go", "other")]
    command += ["--output", str(output)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE) as process:
        while len(list(tmp_path.glob("fake engine.py.*"))) < 2:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        first = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=30)  # the engines think for 60
    assert process.returncode == 130
    assert b"Ctrl-C again stops them" in first
    assert b"Traceback" not in stderr
    assert not records(output)


@pytest.mark.long
def test_settings_of_other_programs_are_left_alone(fake, tmp_path):
    output = tmp_path / "match"
    (output / ".vscode").mkdir(parents=True)
    (output / ".vscode" / "settings.json").write_text("{}", encoding="utf-8")
    arguments = ("--engine", "random", "--opponent", fake("resign"), "--games", 2)
    assert run(output, *arguments) == 0


@pytest.mark.skipif(not FAIRY, reason="fairy-stockfish is not installed")
@pytest.mark.parametrize("limit", [("--nodes", 50), ("--depth", 1), ("--byoyomi", 20)])
@pytest.mark.long
def test_fairy_stockfish_beats_a_random_mover(tmp_path, limit):
    arguments = ("--engine", "random", "--opponent", "fairy:20", "--games", 2, *limit)
    assert run(tmp_path / "match", *arguments) == 0
    found = row(tmp_path / "match")
    assert (found["lost"], found["faults"], found["opponent_faults"]) == ("2", "0", "0")
    assert (found["elo"], found["elo_low"]) == ("", "")
    assert "| at most +" in (tmp_path / "match" / "table.md").read_text(encoding="utf-8")


def test_the_policy_player_plays_a_match(tmp_path):
    model = tmp_path / "model"
    save_model(model, PolicyNetwork())
    script = ROOT / "policy_player_usi.py"
    engine = f"policy='{sys.executable}' '{script}';modelfile={model}"
    arguments = ("--engine", engine, "--opponent", "random", "--games", 2, "--max_plies", 30)
    assert run(tmp_path / "match", *arguments) == 0
    found = row(tmp_path / "match")
    assert (found["games"], found["faults"], found["opponent_faults"]) == ("2", "0", "0")
    # Mates are possible so early, but not without play.
    assert float(found["mean_plies"]) > 5


def test_limits_give_no_clock_that_could_be_taken_for_the_other_sides():
    assert Limit("nodes", 10).command == "go nodes 10"
    assert Limit("depth", 3).command == "go depth 3"
    assert Limit("byoyomi", 500).command == "go btime 0 wtime 0 byoyomi 500"


@pytest.mark.long
@pytest.mark.parametrize(
    "behaviour, mark, words",
    [
        ("resign", "%TORYO", ""),
        ("win", "%ILLEGAL_MOVE", "declared victory without the right to"),
        ("5e5d", "%ILLEGAL_MOVE", "answered with the illegal move '5e5d'"),
        ("dies at go", "%TIME_UP", "ended at 'go nodes 1000' with status 3 (out of luck)"),
        ("reports at go", "%TIME_UP", "at 'go nodes 1000' with status 3 (+7776FU is gone"),
        ("silent at go", "%TIME_UP", "did not answer 'go nodes 1000' within 2 s"),
        ("floods at go", "%TIME_UP", "did not answer 'go nodes 1000' within 2 s"),
        ("never ends its line at go", "%TIME_UP", "did not answer 'go nodes 1000' within 2 s"),
        ("writes a long line at go", "%ILLEGAL_MOVE", "the illegal move 'writes'"),
        ("writes much at go", "%ILLEGAL_MOVE", "the illegal move 'writes'"),
    ],
)
def test_an_engine_that_fails_loses_and_the_match_goes_on(
    fake, tmp_path, capsys, behaviour, mark, words
):
    output = tmp_path / "match"
    arguments = ("--engine", fake("3c3d", "sane"), "--opponent", fake(behaviour), "--games", 2)
    timeout = 2 if behaviour.startswith(("silent", "floods", "never")) else 120
    # After one move of Black's, White's 3c3d is legal.
    assert run(output, *arguments, "--plies", 1, "--timeout", timeout) == 0
    found = row(output)
    faults = 0 if behaviour == "resign" else 2
    assert (found["won"], found["faults"]) == ("2", "0")
    assert int(found["opponent_faults"]) == faults
    for path in output.rglob("*.csa"):
        assert parse_game(path.read_bytes()).end_mark == mark
    assert capsys.readouterr().err.count(words or "sane - fake, game") == faults


@pytest.mark.long
@pytest.mark.parametrize("behaviour", ["floods at isready", "never ends its line at isready"])
def test_what_an_engine_writes_is_not_kept_without_limit(fake, behaviour, monkeypatch):
    monkeypatch.setattr("pydlshogi.match.usi_client._QUIT_GRACE", 0.1)
    client = UsiClient(parse_engine(fake(behaviour)), timeout=60.0)
    try:
        client.greet()
        client._send("isready")
        time.sleep(1.0)
        waiting = client._lines._queue.qsize()
    finally:
        client.close()
    assert waiting <= 1000
    assert not client._lines._thread.is_alive()


# Starts the program that its arguments name, as a .bat file does on Windows: to kill it does not
# end that program.
STARTER = """
import subprocess, sys
sys.exit(subprocess.Popen(sys.argv[1:], start_new_session=True).wait())
"""

# Answers go after three seconds, with a move that is never legal.
LATE = """
import sys, threading
for line in sys.stdin:
    if line.strip() in ("usi", "isready"):
        print({"usi": "usiok", "isready": "readyok"}[line.strip()], flush=True)
    elif line.startswith("go"):
        threading.Timer(3, print, ["bestmove 1a1b"], {"flush": True}).start()
"""


def test_a_late_answer_of_a_killed_engine_is_not_that_to_the_next_game(fake, tmp_path, capsys):
    for name, code in (("starter.py", STARTER), ("late.py", LATE)):
        (tmp_path / name).write_text(code, encoding="utf-8")
    python, starter = sys.executable, tmp_path / "starter.py"
    late = f"late='{python}' '{starter}' '{python}' '{tmp_path / 'late.py'}'"
    arguments = ("--engine", fake("3c3d", "sane"), "--opponent", late, "--games", 2)
    assert run(tmp_path / "match", *arguments, "--plies", 1, "--timeout", 2) == 0
    said = capsys.readouterr().err
    assert said.count("did not answer 'go nodes 1000' within 2 s") == 2
    assert "illegal move" not in said


def test_an_interrupt_while_an_engine_is_to_end_kills_it(fake, monkeypatch):
    client = UsiClient(parse_engine(fake("silent at quit")), timeout=10.0)
    client.greet()
    wait = client._process.wait

    def interrupted(timeout=None):
        if timeout is not None:
            raise KeyboardInterrupt
        return wait()

    monkeypatch.setattr(client._process, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        client.close()
    assert client._process.returncode is not None


def test_an_exact_evaluation_is_better_than_a_bound(tmp_path):
    script = tmp_path / "engine.py"
    script.write_text(
        """
import sys
answers = iter([[(50, ""), (90, " lowerbound")], [(90, " lowerbound")], [(9, ""), (7, "")]])
for line in sys.stdin:
    if line == "usi\\n": print("usiok", flush=True)
    if line.startswith("go"):
        for value, bound in next(answers): print(f"info score cp {value}{bound} pv 7g7f")
        print("bestmove 7g7f", flush=True)
    if line == "quit\\n": break
"""
    )
    with UsiClient(parse_engine(f"x='{sys.executable}' '{script}'"), 10.0) as client:
        found = [client.best_move([], Limit("nodes", 1)).evaluation for _ in range(3)]
    assert found == [50, 90, 7]


def test_a_second_answer_does_not_count_for_the_next_move(tmp_path):
    script = tmp_path / "engine.py"
    script.write_text(
        """
import sys
answers = iter(["7g7f\\nbestmove 2g2f", "3g3f"])
for line in sys.stdin:
    if line == "usi\\n": print("usiok", flush=True)
    if line.startswith("go"): print(f"bestmove {next(answers)}", flush=True)
    if line == "quit\\n": break
"""
    )
    with UsiClient(parse_engine(f"x='{sys.executable}' '{script}'"), 10.0) as client:
        assert client.best_move([], Limit("nodes", 1)).move == "7g7f"
        while not client._lines._queue.qsize():
            time.sleep(0.01)
        assert client.best_move([], Limit("nodes", 1)).move == "3g3f"


@pytest.mark.long
def test_a_page_names_the_winner(fake, tmp_path):
    arguments = ("--engine", "random", "--opponent", fake("resign"), "--games", 2)
    assert run(tmp_path, *arguments) == 0
    for number in (1, 2):
        page = (tmp_path / f"random_fake/000{number}.html").read_text(encoding="utf-8")
        assert "resigned; random wins" in page


@pytest.mark.long
def test_an_engine_that_dies_between_two_games_is_started_again(fake, tmp_path, capsys):
    arguments = ("--engine", "random", "--opponent", fake("fades at gameover"), "--games", 4)
    assert run(tmp_path, *arguments) == 0
    assert row(tmp_path)["games"] == "4"
    assert "ended at" not in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize("concurrency", [1, 2])
def test_an_engine_that_cannot_be_restarted_stops_the_match(fake, tmp_path, capsys, concurrency):
    output = tmp_path / "match"
    arguments = ("--engine", "random", "--opponent", fake("vanishes at go"), "--games", 40)
    assert run(output, *arguments, "--concurrency", concurrency) == 1
    *faults, last = capsys.readouterr().err.splitlines()
    assert last.startswith("match: error: engine fake ended at 'usi' with status 2 (")
    assert all(" game " in line for line in faults)
    assert 1 <= len(faults) == len(records(output)) <= concurrency
    assert row(output)["games"] == str(len(faults))


@pytest.mark.long
@pytest.mark.parametrize(
    "engine, words",
    [
        ("x=/nowhere/engine", "engine x cannot be started: /nowhere/engine: No such file"),
        ("x={folder}", "engine x cannot be started"),
        ("dies at usi", "ended at 'usi' with status 3 (out of luck)"),
        ("silent at usi", "engine fake did not answer 'usi' within 2 s"),
        ("silent at isready", "engine fake did not answer 'isready' within 2 s"),
        ("dies at isready", "ended at 'isready' with status 3"),
        ("complains at isready", "with status 1 (no model. Train one)."),
        ("mutters at isready", "with status 1 (no model. Train one; warning)."),
        ("says it twice at isready", "with status 1 (no model)."),
        ("grumbles at usi", "ended at 'usi' with status 1 (失敗)."),
        ("waits at isready", "did not answer 'isready' within 2 s (no model. Train one)."),
        ("resign;Hash=16", "has no option 'Hash'. It has: Level, Style, Book, Title, Motto."),
        (
            "resign;level=7",
            "the option level must be a number from -5 to 5. To send 7 anyway, write 7!",
        ),
        ("resign;Level=high", "the option Level must be a number from -5 to 5."),
        ("resign;Level=\uff15", "the option Level must be a number from -5 to 5."),
        ("resign;Style=wild", "the option Style must be one of calm, very wild."),
        ("resign;Book=no", "the option Book must be true or false."),
    ],
)
def test_an_engine_that_cannot_play_stops_the_match_before_it_begins(
    fake, tmp_path, capsys, engine, words
):
    behaviour, semicolon, options = engine.format(folder=tmp_path).partition(";")
    spec = behaviour if "=" in behaviour else fake(behaviour) + semicolon + options
    output = tmp_path / "match"
    # The second opponent's fault is found before the games with the first are played.
    engines = ("--engine", fake("resign", "a"), "--opponent", fake("resign", "b"))
    timeout = 2 if behaviour.startswith(("silent", "waits")) else 120
    assert run(output, *engines, "--opponent", spec, "--timeout", timeout) == 1
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
    assert not output.exists()


@pytest.mark.long
def test_a_number_outside_the_declared_range_is_sent_if_the_user_insists(fake, tmp_path):
    engines = ("--engine", fake("resign") + ";Level=7!", "--opponent", fake("resign", "b"))
    assert run(tmp_path / "match", *engines, "--games", 2) == 0


def test_a_text_keeps_its_exclamation_mark(fake, tmp_path):
    engines = ("--engine", fake("resign") + ";Motto=win!", "--opponent", fake("resign", "b"))
    assert run(tmp_path / "match", *engines, "--games", 2) == 0


def test_an_engine_may_have_a_limit_of_its_own(fake, tmp_path, capsys):
    output, dying = tmp_path / "match", fake("dies at go")
    arguments = ("--engine", fake("3c3d", "sane"), "--games", 2, "--opponent")
    assert run(output, *arguments, f"{dying};go=depth 7") == 0
    assert "ended at 'go depth 7' with status 3" in capsys.readouterr().err
    record = (output / "sane_fake" / "0001.csa").read_text()
    assert "fake: go depth 7" in record and "'each move: go nodes 1000" in record
    assert run(output, *arguments, f"{dying};go=depth 7") == 0
    assert "2 of 2 games were played before" in capsys.readouterr().err
    assert run(output, *arguments, dying) == 1
    assert "holds games of other engines, options or conditions" in capsys.readouterr().err


def test_a_record_names_no_limit_that_neither_engine_has(fake, tmp_path):
    engines = fake("resign") + ";go=depth 2", fake("resign", "b") + ";go=depth 3"
    assert run(tmp_path, "--engine", engines[0], "--opponent", engines[1], "--games", 2) == 0
    records = [path.read_text() for path in tmp_path.glob("*/*.csa")]
    assert len(records) == 2
    assert not any("each move" in record for record in records)
    assert all("go depth 2" in record and "go depth 3" in record for record in records)


@pytest.mark.long
def test_options_reach_the_engine(fake, tmp_path):
    spec = fake("resign") + ";level=-5;style=Very wild;Book=false;USI_Hash=1"
    assert run(tmp_path / "match", "--engine", "random", "--opponent", spec, "--games", 2) == 0


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--games", "3"], "--games 3 is odd"),
        (["--games", "0"], "'0' is not a whole number of at least 1"),
        (["--plies", "-1"], "'-1' is not a whole number from 1 to 200"),
        (["--plies", "100000", "--max_plies", "200000"], "'100000' is not a whole number"),
        (["--nodes", "1", "--depth", "1"], "not allowed with"),
        (["--engine", "random"], "two engines of --engine have the same name"),
        (["--max_plies", "4"], "--max_plies 4 leaves no move"),
        (["--opponent", "nothing"], "'nothing' is not random"),
        (
            ["--opponent", "random=x"],
            "--engine and --opponent give the name 'random' to two engines",
        ),
        (["--byoyomi", "9" * 400], "is not a whole number from 1 to 1000000000000"),
        (["--timeout", "9" * 400], "is not a whole number from 1 to 1000000000000"),
        (["--opponent", "x=y;go=nodes " + "9" * 400], "with numbers of at most 1000000000000"),
    ],
)
def test_wrong_arguments(tmp_path, capsys, arguments, words):
    with pytest.raises(SystemExit) as exit:
        run(tmp_path / "match", "--engine", "random", *arguments)
    assert exit.value.code == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "match").exists()


def test_games_played_under_other_conditions_are_not_mixed(fake, tmp_path, capsys):
    output = tmp_path / "match"
    arguments = ("--engine", "random", "--opponent", fake("resign"), "--games", 2)
    assert run(output, *arguments) == 0
    assert run(output, *arguments, "--nodes", 50) == 1
    assert "holds games of other engines, options or conditions" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize("games", [2, 4])
def test_a_match_does_not_join_one_that_began_after_its_check(
    fake, tmp_path, capsys, monkeypatch, games
):
    check, output = Tournament.check, tmp_path / "match"
    arguments = ("--engine", "random", "--opponent", fake("resign"))

    def check_and_lose_the_race(tournament):
        check(tournament)
        monkeypatch.setattr(Tournament, "check", check)
        assert run(output, *arguments, "--games", 2, "--nodes", 50) == 0

    monkeypatch.setattr(Tournament, "check", check_and_lose_the_race)
    assert run(output, *arguments, "--games", games) == 1
    assert "holds games of other engines, options or conditions" in capsys.readouterr().err
    assert row(output)["games"] == "2"
    settings = json.loads((output / "random_fake" / "settings.json").read_text())
    assert settings["limit"] == {"kind": "nodes", "value": 50}


@pytest.mark.long
def test_a_folder_without_games_takes_other_conditions(fake, tmp_path):
    arguments = ("--engine", "random", "--opponent", fake("resign"), "--games", 2)
    assert run(tmp_path, *arguments) == 0
    for path in (tmp_path / "random_fake").glob("*.csa"):
        path.unlink()
    assert run(tmp_path, *arguments, "--nodes", 50) == 0
    assert "go nodes 50" in (tmp_path / "random_fake" / "0001.csa").read_text(encoding="utf-8")


def test_two_matches_do_not_share_a_folder(fake, tmp_path, capsys):
    engines = ["--engine", fake("resign", "a"), "--engine", fake("7g7f", "A_b")]
    opponents = ["--opponent", fake("resign", "b_c"), "--opponent", fake("resign", "C")]
    assert run(tmp_path / "match", *engines, *opponents, "--games", 2) == 1
    assert "A_b_C. Give one of the engines another name" in capsys.readouterr().err
    assert not (tmp_path / "match").exists()


def test_options_are_sent_in_utf_8_whatever_the_system_writes(fake, tmp_path, monkeypatch):
    monkeypatch.setattr("locale.getpreferredencoding", lambda *args: "ascii")
    engine = fake("heard") + ";Title=偽"
    assert run(tmp_path / "match", "--engine", "random", "--opponent", engine, "--games", 2) == 0


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="paths are texts there")
def test_a_value_with_other_bytes_than_utf_8_is_sent(tmp_path):
    log = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.log")
    engine = f"a='{sys.executable}' -m pydlshogi.match.random_player;debug_log={log}"
    engines = ["--engine", engine, "--opponent", "random", "--games", 2, "--max_plies", 20]
    assert run(tmp_path / "match", *engines) == 0
    assert list(tmp_path.glob("*.log"))


@pytest.mark.long
def test_a_time_longer_than_the_system_can_wait_is_no_error(fake, tmp_path):
    engines = ["--engine", "random", "--opponent", fake("resign"), "--games", 2]
    assert run(tmp_path / "match", *engines, "--timeout", 10**11) == 0


def test_ctrl_c_while_the_threads_start_stops_those_that_have_started(tmp_path, monkeypatch):
    start, started = threading.Thread.start, []

    def interrupted(thread):
        start(thread)
        started.append(thread)
        raise KeyboardInterrupt

    played = []
    workers = Workers((None, None), 1.0, None, lambda *game: played.append(game))
    monkeypatch.setattr(Workers, "_work", lambda self: self._stop.wait(60))
    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        workers.run(range(4), 2, lambda: None)
    assert len(started) == 1 and not started[0].is_alive()


def test_the_random_player_is_found_from_any_folder():
    spec = parse_engine("random")
    assert spec.variables()["PYTHONPATH"].split(os.pathsep)[0] == str(ROOT)
    assert parse_engine("fairy:0").variables() == {}


@pytest.mark.long
def test_the_tables_keep_what_other_commands_have_played(fake, tmp_path, capsys):
    output = tmp_path / "match"
    for name, games in (("b", 4), ("a", 2)):
        arguments = ("--engine", "random", "--opponent", fake("resign", name) + ";Level=3")
        assert run(output, *arguments, "--games", games) == 0
    rows = [row(output, line) for line in (1, 2)]
    assert [(row["opponent"], row["games"]) for row in rows] == [("b", "4"), ("a", "2")]
    assert (output / "table.md").read_text(encoding="utf-8").count("| random |") == 2
    for path in (output / "random_b").glob("*.csa"):
        path.unlink()
    assert run(output, *arguments, "--games", 2) == 0
    assert "| b |" not in (output / "table.md").read_text(encoding="utf-8")
    (output / "random_b" / "settings.json").write_text("{}", encoding="utf-8")
    (output / "random_b" / "0001.csa").touch()
    assert run(output, *arguments, "--games", 2) == 1
    assert "settings.json should describe the games beside it" in capsys.readouterr().err


@pytest.mark.long
def test_a_smaller_number_of_games_hides_none_in_the_table(fake, tmp_path, capsys):
    arguments = ("--engine", "random", "--opponent", fake("resign"))
    for games in (4, 2):
        assert run(tmp_path, *arguments, "--games", games) == 0
        assert row(tmp_path)["games"] == "4"


@pytest.mark.long
def test_a_game_does_not_begin_otherwise_than_the_stored_game_of_its_pair(fake, tmp_path, capsys):
    games = Path(__file__).resolve().parents[2] / "kifu" / "test"
    first, second = [sorted(games.glob("*.csa"))[:3], sorted(games.glob("*.csa"))[3:6]]
    kifu_list, output = tmp_path / "list.txt", tmp_path / "match"
    kifu_list.write_text("\n".join(map(str, first)), encoding="utf-8")
    arguments = ("--engine", "random", "--opponent", fake("resign"), "--openings", kifu_list)
    assert run(output, *arguments, "--games", 2) == 0
    lost = output / "random_fake" / "0002.csa"
    lost.unlink()
    kifu_list.write_text("\n".join(map(str, second)), encoding="utf-8")
    draw_openings.cache_clear()  # another process would read the list anew
    assert run(output, *arguments, "--games", 2) == 1
    assert "0001.csa begins with other moves than the opening" in capsys.readouterr().err
    kifu_list.write_text("\n".join(map(str, first)), encoding="utf-8")
    draw_openings.cache_clear()
    assert run(output, *arguments, "--games", 2) == 0
    assert lost.exists()


@pytest.mark.long
def test_games_that_another_match_has_played_meanwhile_are_kept(fake, tmp_path):
    arguments = ("--engine", "random", "--opponent", fake("resign"), "--games", 2)
    assert run(tmp_path, *arguments) == 0
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.csa")}
    assert len(before) == 2
    found = series.Series.read(tmp_path / "random_fake")
    found.play([1, 2], 10, 1, lambda number, verdict: None, lambda: None)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.csa")} == before


@pytest.mark.long
def test_a_broken_record_is_named(fake, tmp_path, capsys):
    output = tmp_path / "match"
    arguments = ("--engine", "random", "--opponent", fake("resign"), "--games", 2)
    assert run(output, *arguments) == 0
    path = output / "random_fake" / "0001.csa"
    path.write_text("V2.2\nPI\n+\n+7776FU\n", encoding="utf-8")
    assert run(output, *arguments) == 1
    assert f"{path} is no record (the game has no end). Remove it" in capsys.readouterr().err


@pytest.mark.long
def test_records_that_no_settings_describe_are_refused_and_kept(fake, tmp_path, capsys):
    output = tmp_path / "match"
    arguments = ("--engine", "random", "--opponent", fake("resign"), "--games", 2)
    assert run(output, *arguments) == 0
    (output / "random_fake" / "settings.json").unlink()
    for name in ("table.md", "table.tsv"):
        (output / name).unlink()
    before = records(output)
    assert run(output, *arguments) == 1
    error = capsys.readouterr().err
    assert f"{output / 'random_fake'} holds game records, but no settings.json" in error
    assert records(output) == before
    assert not (output / "table.md").exists()
    # Records with names of another kind are not in the way.
    for path in (output / "random_fake").glob("*.csa"):
        path.rename(path.with_name(f"mine{path.name}"))
    assert run(output, *arguments) == 0


@pytest.mark.long
def test_a_game_whose_page_was_not_written_is_played_again(fake, tmp_path, monkeypatch):
    output = tmp_path / "match"
    arguments = ("--engine", fake("3c3d", "sane"), "--opponent", fake("resign"), "--games", 2)

    def killed(*arguments):
        raise OSError(5, "killed here")

    with monkeypatch.context() as patch:
        patch.setattr(series, "write_match_page", killed)
        assert run(output, *arguments, "--plies", 1) == 1
    assert run(output, *arguments, "--plies", 1) == 0
    names = sorted(path.name for path in (output / "sane_fake").glob("0*"))
    assert names == ["0001.csa", "0001.html", "0002.csa", "0002.html"]


@pytest.mark.long
def test_after_ctrl_c_the_tables_have_the_games_so_far(fake, tmp_path, monkeypatch):
    output, play = tmp_path / "match", series.Series.play
    arguments = ("--engine", "random", "--opponent", fake("resign"), "--games")
    assert run(output, *arguments, 2) == 0

    def interrupted(self, numbers, *others):
        play(self, numbers[:2], *others)
        raise KeyboardInterrupt

    monkeypatch.setattr(series.Series, "play", interrupted)
    assert run(output, *arguments, 20) == 130
    assert (len(records(output)), row(output)["games"]) == (4, "4")
    assert "| random | fake | 4 |" in (output / "table.md").read_text(encoding="utf-8")


def test_an_output_that_cannot_be_written(fake, tmp_path, capsys):
    (tmp_path / "file").touch()
    arguments = ("--engine", "random", "--opponent", fake("resign"), "--games", 2)
    assert run(tmp_path / "file", *arguments) == 1
    error = capsys.readouterr().err
    assert f"--output {tmp_path / 'file'} is a file. Name a folder" in error
    assert error.count("\n") == 1


@pytest.mark.long
def test_without_cshogi_the_same_games_are_played(tmp_path, monkeypatch):
    arguments = ("--engine", engine("first", 1), "--opponent", engine("second", 2))
    found = []
    for folder in ("with", "without"):
        assert run(tmp_path / folder, *arguments, "--games", 2, "--max_plies", 40) == 0
        output = tmp_path / folder
        found.append([parse_game((output / path).read_bytes()).moves for path in records(output)])
        monkeypatch.setitem(sys.modules, "cshogi", None)
    assert found[0] == found[1] and len(found[0]) == 2


def engine(name, seed):
    """The random player with a seed."""
    return f"{name}={sys.executable} -m pydlshogi.match.random_player;random_seed={seed}"


def test_a_row_without_games():
    empty = Row("a", "b", {})
    assert (empty.score, empty.mean_plies, empty.count(1)) == (0.5, 0, 0)


def test_the_hyphenated_spelling_works_and_is_hidden(tmp_path, capsys):
    for spelling in ("--max-plies", "--max_plies"):
        with pytest.raises(SystemExit):
            run(tmp_path, "--engine", "random", spelling, "4")
        assert "--max_plies 4 leaves no move" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run(tmp_path, "--help")
    assert "--max-plies" not in capsys.readouterr().out


@pytest.mark.long
def test_two_matches_do_not_play_the_same_games(tmp_path, fake, capsys):
    output = tmp_path / "out"
    series = output / "fake_random"
    series.mkdir(parents=True)
    with lock_outputs(series / "settings.json"):
        arguments = ("--engine", fake("resign"), "--opponent", "random", "--games", 2)
        assert run(output, *arguments) == 1
    assert "another run" in capsys.readouterr().err
    assert not records(output)
    assert run(output, *arguments) == 0
    assert len(records(output)) == 2
