"""The order of commands: each go gets one bestmove, whatever a GUI sends."""

import errno
import gc
import io
import re
import threading
import time
from pathlib import Path

import pytest
import shogi
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pydlshogi.player.engine_options import policy_options
from pydlshogi.usi import dialogue as dialogue_module
from pydlshogi.usi.dialogue import _Signals
from pydlshogi.usi.engine import Engine
from pydlshogi.usi.output import Output

COMMANDS = [
    "usi",
    "isready",
    "usinewgame",
    "position startpos",
    "position startpos moves 7g7f",
    "position startpos moves 7g7c",
    "go btime 0 wtime 0 byoyomi 1000",
    "go",
    "go infinite",
    "go ponder btime 1 wtime 1",
    "go ponder",
    "go mate infinite",
    "stop",
    "ponderhit",
    "ponderhit btime 1000 wtime 1000",
    "gameover win",
    "gameover",
    "setoption name MultiPV value 3",
    "nonsense",
    "",
]


def count(answers, start):
    return sum(answer.startswith(start) for answer in answers)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.sampled_from(COMMANDS), max_size=30))
def test_every_order_of_commands_gives_one_answer_each(dialogue, commands):
    answers = dialogue(*commands, "quit")
    mates = count(commands, "go mate")
    assert count(answers, "bestmove ") == count(commands, "go") - mates
    # timeout after a position that was refused
    mate_answers = {answer for answer in answers if answer.startswith("checkmate")}
    assert mate_answers <= {"checkmate notimplemented", "checkmate timeout"}
    assert count(answers, "checkmate ") == mates
    assert answers.count("readyok") == commands.count("isready")
    assert answers.count("usiok") == commands.count("usi")


def test_every_order_ends_the_same_way_without_quit(dialogue):
    assert dialogue("go infinite") == dialogue("go infinite", "quit")


@pytest.mark.parametrize("go", ["go infinite", "go ponder", "go ponder infinite"])
@pytest.mark.parametrize(
    "release", ["stop", "gameover lose", "isready", "usinewgame", "go", "position startpos"]
)
def test_a_held_move_waits_for_what_releases_it(dialogue, go, release):
    answers = dialogue(go, "nonsense", release, "quit")
    fence = next(i for i, answer in enumerate(answers) if "'nonsense'" in answer)
    assert fence < next(i for i, answer in enumerate(answers) if answer.startswith("bestmove"))


def test_ponderhit_releases_a_ponder_and_nothing_else(dialogue):
    pondering = dialogue("go ponder", "ponderhit", "nonsense")
    infinite = dialogue("go infinite", "ponderhit", "nonsense", "stop")
    assert "'nonsense'" in pondering[-1]
    assert "'nonsense'" in infinite[-2]
    assert infinite[-1].startswith("bestmove")


@pytest.mark.parametrize("next_command", ["go", "position startpos"])
def test_a_ponderhit_that_no_ponder_waits_for_changes_nothing(dialogue, toy_player, next_command):
    thinking, stopped, heard = threading.Event(), threading.Event(), []

    class Thinker(toy_player):
        def choose(self, go):
            if go.infinite:
                thinking.set()
                go.stop.wait(60)
                stopped.set()
            return "resign"

    begin = ["go infinite", lambda: thinking.wait(60), "ponderhit"]
    end = [next_command, lambda: heard.append(stopped.wait(5))]
    answers = dialogue(*begin, *end, player=Thinker)
    assert heard == [True]
    assert count(answers, "bestmove resign") == 1 + (next_command == "go")


@pytest.mark.long
def test_searches_that_have_ended_are_forgotten(dialogue):
    alive = []

    def count_searches():
        time.sleep(0.2)  # the other thread obeys what was sent
        gc.collect()
        alive.append(sum(isinstance(item, _Signals) for item in gc.get_objects()))

    for number in (1, 200):
        answers = dialogue(*["go"] * number, count_searches, "go", count_searches)
        assert count(answers, "bestmove") == number + 1
    assert max(alive[1], alive[3]) <= 3


def test_go_is_about_the_last_position(dialogue):
    answers = dialogue("position startpos", "position startpos moves 7g7f", "go")
    mover_of_white = shogi.Board(
        "lnsgkgsnl/1r5b1/ppppppppp/9/9/2P6/PP1PPPPPP/1B5R1/LNSGKGSNL w - 2"
    )
    assert shogi.Move.from_usi(answers[-1].split()[1]) in mover_of_white.legal_moves


@pytest.mark.parametrize("go", ["go", "go infinite", "go ponder"])
@pytest.mark.parametrize("end", ["stop", "gameover lose", "isready", "usinewgame", "quit", None])
def test_a_player_that_thinks_is_told_of_what_ends_it(dialogue, toy_player, go, end):
    thinking = threading.Event()

    class Thinker(toy_player):
        def choose(self, go):
            thinking.set()
            assert go.stop.wait(60)
            return "resign"

    lines = [] if end is None else [end]
    answers = dialogue(go, lambda: thinking.wait(60), "usi", *lines, player=Thinker)
    assert count(answers, "bestmove resign") == 1
    assert count(answers, "info string internal error") == 0


def test_a_player_that_ponders_is_told_of_ponderhit_which_is_no_stop(dialogue, toy_player):
    thinking, heard = threading.Event(), []

    class Thinker(toy_player):
        def choose(self, go):
            thinking.set()
            while not go.ponderhit.is_set():
                time.sleep(0.01)
            heard.append((go.ponderhit.text, go.stop.is_set()))
            return "resign"

    lines = ["go ponder", lambda: thinking.wait(60), "ponderhit btime 5", lambda: time.sleep(0.1)]
    assert count(dialogue(*lines, player=Thinker), "bestmove resign") == 1
    assert heard == [("btime 5", False)]


def test_each_go_is_stopped_by_what_comes_behind_it(dialogue, toy_player):
    stops, asked = [], threading.Semaphore(0)

    class Asked(toy_player):
        def choose(self, go):
            stops.append((go.stop, go.stop.is_set()))
            asked.release()
            return "resign"

    def wait():
        assert asked.acquire(timeout=60)

    lines = ["stop", "go", wait, "stop", "go", wait, "usi", "position startpos", "go", wait]
    dialogue(*lines, player=Asked)
    assert [was_set for _, was_set in stops] == [False] * 3
    assert len({id(stop) for stop, _ in stops}) == 3


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("position startpos moves 7g7f 7g7f", "7g7f"),
        ("position startpos moves 7g7f xyz", "xyz"),
        ("position startpos moves P*5e", "P*5e"),
        ("position sfen 9/9/9 b - 1", "9/9/9"),
        ("position elsewhere", "elsewhere"),
        ("setoption name nosuch value 1", "nosuch"),
        ("setoption name MultiPV value 0", "MultiPV"),
        ("setoption name strategy value best", "best"),
        ("setoption", "setoption"),
        ("fly me to the moon", "fly"),
        ("go away", "away"),
    ],
)
def test_bad_input_is_named_and_the_dialogue_goes_on(dialogue, line, named):
    good = ["position startpos moves 2g2f", "go"]
    answers = dialogue(good[0], line, "go", "isready")
    assert any(answer.startswith("info string") and named in answer for answer in answers)
    # After a refused position there is none; otherwise the last one is kept.
    refused = line.startswith("position")
    assert ("bestmove resign" if refused else dialogue(*good)[-1]) in answers
    assert answers[-1] == "readyok"


def test_go_after_a_refused_position_resigns_and_says_why_until_there_is_one(dialogue):
    answers = dialogue("position startpos moves 7g7c", "go", "go infinite", "stop", "usinewgame")
    assert "'7g7c'" in answers[0]
    why = "info string resigns because the last position was refused: position: move 1, '7g7c'"
    assert answers[1].startswith(why)
    assert answers[2] == "bestmove resign"
    assert answers[3].startswith(why)
    assert answers[4:] == ["bestmove resign"]
    answers = dialogue("position nowhere", "position startpos", "go")
    assert answers[-1] != "bestmove resign"


def test_go_mate_after_a_refused_position_is_not_about_the_position_before(dialogue, toy_player):
    class Mating(toy_player):
        def find_mate(self, go):
            return "G*5b"

    answers = dialogue(
        "go mate", "position sfen x", "go mate", "position startpos", "go mate", player=Mating
    )
    mates = [answer for answer in answers if answer.startswith("checkmate")]
    assert mates == ["checkmate G*5b", "checkmate timeout", "checkmate G*5b"]
    assert any("no mate is searched" in answer for answer in answers)


def test_a_go_full_of_unknown_words_is_answered_in_a_few_lines(dialogue):
    answers = dialogue("go " + "foo " * 10000)
    assert answers[-2] == "info string go does not know 9995 more words"
    assert answers[-1].startswith("bestmove ")
    assert len(answers) == 7


def test_blanks_and_tabs_between_words_do_not_matter(dialogue):
    neat = dialogue("position startpos moves 7g7f", "go btime 0 wtime 0 byoyomi 1000")
    odd = dialogue(
        "  position   startpos  moves 7g7f ", b"\tgo\tbtime 0  wtime 0\tbyoyomi 1000\r\n"
    )
    assert odd == neat


def test_an_error_of_ours_does_not_end_the_dialogue(dialogue, toy_player, capsys):
    class Clumsy(toy_player):
        def new_game(self):
            raise RuntimeError("a fault\nof two lines")

    answers = dialogue("usinewgame", "isready", player=Clumsy)
    assert answers[0].startswith("info string internal error at 'usinewgame'")
    assert "a fault\\nof two lines" in answers[0]
    assert answers[1:] == ["readyok"]
    assert "RuntimeError" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "what", "remedy"),
    [
        (
            ModuleNotFoundError("No module named 'shogi.KIF'", name="shogi.KIF"),
            "the Python package shogi is not installed in",
            "Install it: python -m pip install python-shogi",
        ),
        (
            ImportError("DLL load failed\nwhile importing it", name="numpy"),
            "cannot import the Python package numpy (DLL load failed while importing it).",
            "docs/install.md says, or use the .venv of the clone.",
        ),
    ],
)
def test_a_package_that_is_missing_or_broken_ends_the_engine_with_one_sentence(
    tmp_path, monkeypatch, capsys, error, what, remedy
):
    def make_player(send):
        raise error

    ended = []
    monkeypatch.setattr(Engine, "_die", lambda engine: ended.append(1))
    stream = io.BytesIO()
    Engine("toy", policy_options(), make_player, Output(stream), tmp_path).run([b"isready\n"])
    said = stream.getvalue().decode().splitlines()[0]
    assert what in said and said.endswith(remedy)
    printed = capsys.readouterr().err
    assert printed.startswith("error: ") and printed.count("\n") == 1 and what in printed
    assert ended


def test_long_loading_gives_signs_of_life(dialogue, toy_player, monkeypatch):
    told = threading.Event()
    info_string = Output.info_string

    def info_string_and_tell(output, text):
        info_string(output, text)
        told.set()

    class Slow(toy_player):
        def prepare(self):
            assert told.wait(60)

    monkeypatch.setattr(dialogue_module, "SIGN_OF_LIFE", 0.01)
    monkeypatch.setattr(Output, "info_string", info_string_and_tell)
    answers = dialogue("isready", player=Slow)
    assert answers[0] == "info string loading"
    assert answers[-1] == "readyok"


def test_a_quit_before_the_model_is_loaded_is_told(toy_player, tmp_path, monkeypatch):
    monkeypatch.setattr(dialogue_module, "QUIT_GRACE", 0.1)
    done = threading.Event()

    class Slow(toy_player):
        def prepare(self):
            done.wait(10)

    stream = io.BytesIO()
    engine = Engine(
        "toy",
        policy_options(),
        lambda send: Slow(policy_options(), send),
        Output(stream),
        tmp_path,
    )
    assert not engine.run([b"isready\n", b"quit\n"])
    assert stream.getvalue() == b"info string quit came before the last command was done\n"
    done.set()


def test_the_clock_of_a_piped_go_starts_after_the_loading(dialogue, toy_player):
    """A pipe gives all commands at once, without waiting for readyok."""
    loaded, begun = [], []

    class Slow(toy_player):
        def prepare(self):
            time.sleep(0.2)
            loaded.append(time.perf_counter())

        def choose(self, go):
            begun.append(go.time)
            return super().choose(go)

    dialogue("isready", "position startpos", "go byoyomi 100", player=Slow)
    assert begun[0] >= loaded[0]


def test_the_clock_of_a_piped_go_starts_after_the_search_before_it(dialogue, toy_player):
    ended, begun, all_done = [], [], threading.Event()

    class Slow(toy_player):
        def choose(self, go):
            begun.append(go.time)
            time.sleep(0.2)
            ended.append(time.perf_counter())
            if len(ended) == 3:
                all_done.set()
            return super().choose(go)

    lines = ["isready", "position startpos", *["go byoyomi 100"] * 3]
    dialogue(*lines, lambda: all_done.wait(10), player=Slow)  # the end of the input is a stop
    assert len(begun) == 3
    assert begun[1] >= ended[0] and begun[2] >= ended[1]


@pytest.mark.long
def test_the_clock_of_a_go_after_stop_starts_when_it_was_sent(dialogue, toy_player):
    stopped, begun, ended = [], [], []

    class Slow(toy_player):
        def choose(self, go):
            begun.append(go.time)
            stopped.append(go.stop.wait(60))
            time.sleep(1)
            ended.append(time.perf_counter())
            return super().choose(go)

    dialogue("isready", "position startpos", "go infinite", "stop", "go btime 9", player=Slow)
    assert stopped[0] and begun[1] < ended[0]


def test_the_log_file_is_an_option_and_holds_what_came_before_it(dialogue, tmp_path):
    dialogue("foo", "setoption name debug_log value a log.txt", "isready", "quit")
    lines = (tmp_path / "a log.txt").read_text().splitlines()
    stamp = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} ")
    assert all(stamp.match(line) for line in lines)
    dialogue_lines = [stamp.sub("", line) for line in lines]
    assert [line for line in dialogue_lines if line.startswith("<")] == [
        "< foo",
        "< setoption name debug_log value a log.txt",
        "< isready",
        "< quit",
    ]
    assert [line for line in dialogue_lines if line.startswith(">")] == [
        "> info string unknown command 'foo'",
        "> readyok",
    ]


def test_a_log_goes_on_behind_an_old_one_and_in_an_empty_file(dialogue, tmp_path):
    (tmp_path / "empty").touch()
    for name in ("empty", "new"):
        for _ in range(2):
            assert dialogue(f"setoption name debug_log value {name}", "isready") == ["readyok"]
        text = (tmp_path / name).read_text()
        assert text.count("< isready") == text.count("> readyok") == 2


@pytest.mark.parametrize(
    "content", [b"PK\x03\x04 a model", b"import sys\n", b"2018-08-24 12:00:00 another log\n", b"x"]
)
@pytest.mark.parametrize("by_link", [False, True])
def test_a_file_that_is_no_log_is_never_written_to(dialogue, tmp_path, content, by_link):
    path = tmp_path / "precious"
    path.write_bytes(content)
    if by_link:
        path = tmp_path / "link"
        path.symlink_to("precious")
    answers = dialogue(f"setoption name debug_log value {path.name}", "isready", "quit")
    assert answers == [
        f"info string debug_log cannot be written: {path} exists and is not a log of this "
        "engine. Choose a new file.",
        "readyok",
    ]
    assert (tmp_path / "precious").read_bytes() == content


def test_a_log_that_cannot_be_written_is_named(dialogue):
    answers = dialogue("setoption name debug_log value no/such/folder/log", "isready")
    assert answers[0].startswith("info string debug_log cannot be written")
    assert answers[1] == "readyok"


def test_a_log_that_cannot_be_written_ends_the_one_before_and_can_be_tried_again(
    dialogue, toy_player, tmp_path
):
    obeyed = threading.Event()

    class Telling(toy_player):
        def prepare(self):
            obeyed.set()

    def make_folder():
        assert obeyed.wait(60)
        (tmp_path / "no").mkdir()

    option = "setoption name debug_log value"
    lost = f"{option} no/two.txt"
    answers = dialogue(
        f"{option} one.txt", lost, "isready", make_folder, "first", lost, player=Telling
    )
    assert len([answer for answer in answers if "debug_log cannot be written" in answer]) == 1
    assert "first" not in (tmp_path / "one.txt").read_text()
    assert "< first" in (tmp_path / "no" / "two.txt").read_text()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no file that is always full")
def test_a_log_on_a_full_disk_is_named(dialogue):
    answers = dialogue("setoption name debug_log value /dev/full", "isready", "go", "quit")
    assert answers[0].startswith("info string debug_log cannot be written: ")
    assert answers[1] == "readyok"
    assert answers[2].startswith("bestmove")
    assert len(answers) == 3


@pytest.mark.parametrize("direction", ["<", ">"])
def test_a_disk_that_fills_up_is_named_once_and_the_game_goes_on(
    dialogue, tmp_path, monkeypatch, direction
):
    opened = threading.Event()

    class Filling(io.FileIO):
        def write(self, data):
            if opened.is_set() and f" {direction} ".encode() in data:
                raise OSError(errno.ENOSPC, "No space left on device")
            opened.set()
            return super().write(data)

    monkeypatch.setattr(Path, "open", lambda path, mode, buffering: Filling(path, mode))
    option = "setoption name debug_log value log.txt"
    answers = dialogue(option, lambda: opened.wait(60), "usi", "go", "isready", "quit")
    complaint = "info string debug_log cannot be written any more: [Errno 28]"
    assert count(answers, complaint) == 1
    assert count(answers, "bestmove") == answers.count("usiok") == answers.count("readyok") == 1
