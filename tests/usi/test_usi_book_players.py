"""Players of readers of the book: files of their own, run as a reader runs them.

The players are written anew from the table of names in the project's specification. They
use star imports and print their answers.
"""

import io
import os
import re
import shutil
import sys
import textwrap
from pathlib import Path

import cshogi
import numpy
import pytest

from pydlshogi.player.base_player import BasePlayer
from pydlshogi.usi.usi import usi

REPOSITORY = Path(__file__).resolve().parents[2]

#: A script of a reader begins like this.
IMPORTS = """
import numpy as np
import chainer
from chainer import serializers
from chainer import Variable
import chainer.functions as F

import shogi

from pydlshogi.common import *
from pydlshogi.features import *
from pydlshogi.player.base_player import *
from pydlshogi.usi.usi import *
"""

MODEL_OPTION = """
    def __init__(self):
        super().__init__()
        self.modelfile = '/no/such/folder/model'
        self.model = None

    def usi(self):
        print('id name ' + NAME)
        print('option name modelfile type string default ' + self.modelfile)
        print('usiok')

    def setoption(self, option):
        if option[1] == 'modelfile':
            self.modelfile = option[3]

    def isready(self):
        if self.model is None:
            self.model = NETWORK()
        serializers.load_npz(self.modelfile, self.model)
        print('readyok')
"""

POLICY = """
from pydlshogi.network.policy import *
from pydlshogi.player.policy_player import boltzmann, greedy

NAME, NETWORK = 'article', PolicyNetwork

class Player(BasePlayer):
{common}
    def go(self):
        if self.board.is_game_over():
            print('bestmove resign')
            return
        x = np.array([make_input_features_from_board(self.board)], dtype=np.float32)
        with chainer.no_backprop_mode():
            y = self.model(Variable(x))
        logits, probabilities = y.data[0], F.softmax(y).data[0]
        moves = list(self.board.legal_moves)
        chosen = []
        for move in moves:
            label = make_output_label(move, self.board.turn)
            chosen.append(logits[label])
            print('info string {{:5}} : {{:.5f}}'.format(move.usi(), probabilities[label]))
        {choose}
        print('bestmove', moves[index].usi())
"""

SEARCH1 = """
from pydlshogi.network.value import *

NAME, NETWORK = 'search1', ValueNetwork

class Player(BasePlayer):
{common}
    def go(self):
        if self.board.is_game_over():
            print('bestmove resign')
            return
        moves, features = [], []
        for move in self.board.legal_moves:
            self.board.push(move)
            moves.append(move)
            features.append(make_input_features_from_board(self.board))
            self.board.pop()
        with chainer.no_backprop_mode():
            wins = F.sigmoid(-self.model(np.array(features, dtype=np.float32))).data.reshape(-1)
        for move, win in zip(moves, wins):
            print('info string {{:5}} : {{:.5f}}'.format(move.usi(), win))
        print('bestmove', moves[int(np.argmax(wins))].usi())
"""

TREE = """
class Node:
    def __init__(self, board):
        self.moves = list(board.legal_moves)
        self.children = {{}}
        self.visits = np.zeros(len(self.moves), dtype=np.int32)
        self.wins = np.zeros(len(self.moves), dtype=np.float32)

class Tree(BasePlayer):
{common}
    def evaluate(self, board):
        node = Node(board)
        if not node.moves:
            node.win = 0.0
            return node
        x = np.array([make_input_features_from_board(board)], dtype=np.float32)
        with chainer.no_backprop_mode():
            y1, y2 = self.model(x)
        labels = [make_output_label(move, board.turn) for move in node.moves]
        node.policy = F.softmax(y1[:, labels]).data[0]
        node.win = float(F.sigmoid(y2).data[0, 0])
        return node

    def select(self, node):
        q = np.where(node.visits > 0, node.wins / np.maximum(node.visits, 1), 0.5)
        u = node.policy * np.sqrt(node.visits.sum() + 1) / (1 + node.visits)
        return int(np.argmax(q + u))

    def playout(self, board, node):
        if not node.moves:
            return 1.0
        index = self.select(node)
        board.push(node.moves[index])
        if index not in node.children:
            node.children[index] = self.evaluate(board)
            result = 1 - node.children[index].win
        else:
            result = self.playout(board, node.children[index])
        board.pop()
        node.visits[index] += 1
        node.wins[index] += result
        return 1 - result

    def answer(self, root):
        for i, move in enumerate(root.moves):
            print('{{:3}}:{{:5}} move_count:{{:4}}'.format(i, move.usi(), root.visits[i]))
        best = int(np.argmax(root.visits))
        win = root.wins[best] / root.visits[best]
        cp = int(-600 * np.log(1 / win - 1))
        print('info nodes {{}} score cp {{}} pv {{}}'.format(
            root.visits.sum(), cp, root.moves[best].usi()))
        print('bestmove', root.moves[best].usi())
"""

MCTS = (
    """
from pydlshogi.network.policy_value import *

NAME, NETWORK = 'mcts', PolicyValueNetwork
"""
    + TREE
    + """
class Player(Tree):
    def go(self):
        root = self.evaluate(self.board)
        if not root.moves:
            print('bestmove resign')
            return
        for _ in range(12):
            self.playout(self.board, root)
        self.answer(root)
"""
)

PARALLEL = (
    """
import copy
from threading import Lock, Thread
from pydlshogi.network.policy_value_resnet import *

NAME, NETWORK = 'parallel', PolicyValueResnet
"""
    + TREE
    + """
class Player(Tree):
    def search(self, root, lock):
        board = copy.deepcopy(self.board)
        for _ in range(4):
            with lock:
                self.playout(board, root)
            print('info string a playout')

    def go(self):
        root = self.evaluate(self.board)
        if not root.moves:
            print('bestmove resign')
            return
        lock = Lock()
        threads = [Thread(target=self.search, args=(root, lock)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.answer(root)
"""
)

RUN = """
chainer.config.train = False
player = Player()
usi(player)
print('after usi')
"""

#: For each player its text and the network of its model file.
PLAYERS = {
    "greedy": (POLICY.replace("{choose}", "index = greedy(chosen)"), "policy"),
    "boltzmann": (
        POLICY.replace("{choose}", "index = boltzmann(np.array(chosen, dtype=np.float32), 0.5)"),
        "policy",
    ),
    "search1": (SEARCH1, "value"),
    "mcts": (MCTS, "policy_value"),
    "parallel": (PARALLEL, "policy_value_resnet"),
}

#: A player of few lines; tests add methods to it.
SHORT = """
import os
import threading
import time
from pydlshogi.player.base_player import *
from pydlshogi.usi.usi import usi

class Player(BasePlayer):
{body}

usi(Player())
"""


@pytest.fixture
def reader(start, tmp_path):
    """Starts a reader's script, which lies in a folder of its own.

    The package is installed as far as these scripts can tell: Python runs pydlshogi.pth.
    """
    installation = tmp_path / "installation"
    installation.mkdir()
    shutil.copy(REPOSITORY / "pydlshogi.pth", installation / "sitecustomize.py")
    path = os.pathsep.join([str(REPOSITORY), str(installation), os.environ.get("PYTHONPATH", "")])
    variables = {**os.environ, "PYTHONPATH": path}

    def run(text):
        script = tmp_path / "my_player.py"
        script.write_text(text)
        return start([sys.executable, script], cwd=tmp_path, env=variables)

    return run


@pytest.fixture
def short(reader):
    """Starts a short player with some methods."""
    return lambda body: reader(SHORT.format(body=textwrap.indent(textwrap.dedent(body), "    ")))


@pytest.fixture(scope="module")
def model_of(tmp_path_factory):
    """Makes the model file of a network of random weights."""
    from pydlshogi.model_files.model_file import save_model
    from pydlshogi.network.registry import make_network

    folder = tmp_path_factory.mktemp("models of a reader")

    def model(name):
        numpy.random.seed(7)
        path = folder / name
        if not path.exists():
            save_model(path, make_network(name))
        return path

    return model


@pytest.mark.parametrize("name", PLAYERS)
def test_a_player_of_the_book_plays_on(reader, model_of, name):
    text, network = PLAYERS[name]
    engine = reader(IMPORTS + text.format(common=MODEL_OPTION) + RUN)
    answers = engine.ask(b"usi\r\n", "usiok")
    assert answers[0].startswith("id name")
    assert answers[-1] == "usiok"
    engine.send(f"setoption name  modelfile  value {model_of(network)}", "setoption name USI_Hash")
    assert engine.ask("isready", "readyok") == ["readyok"]
    engine.send("usinewgame", "fly me to the moon")
    assert "unknown command" in engine.until("info string")[-1]
    sfen = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1"
    for root in ("startpos", f"sfen {sfen}"):
        board, moves = cshogi.Board(), []
        for _ in range(3):
            engine.send(f"position {root}  moves {' '.join(moves)}\r")
            answers = engine.ask("go btime 0 wtime 0 byoyomi 1000", "bestmove")
            moves.append(answers[-1].split()[1])
            assert board.is_legal(board.move_from_usi(moves[-1]))
            board.push_usi(moves[-1])
            assert all(answer.startswith("info ") for answer in answers[:-1])
            assert len(answers) > 1
    engine.send("position sfen 4k4/4G4/4P4/9/9/9/9/9/4K4 w - 1")
    engine.send("go infinite")
    assert not any(answer.startswith("bestmove") for answer in engine.ask("usi", "usiok"))
    engine.send("stop")
    assert engine.until("bestmove")[-1] == "bestmove resign"
    assert engine.leave("quit") == 0
    assert engine.until(None) == ["after usi"]
    assert b"Traceback" not in engine.stderr


GO = """
def go(self):
    print('bestmove', next(iter(self.board.legal_moves)).usi())
"""


def test_a_player_that_raises_is_named_with_the_line_and_resigns(short):
    engine = short("def go(self):\n    raise ValueError('no idea\\nat all')")
    for _ in range(2):
        engine.send("position startpos", "go")
        answers = engine.until("bestmove")
        assert answers == [
            "info string Player.go raised ValueError: no idea at all (line 10 of my_player.py). "
            "It resigns.",
            "bestmove resign",
        ]
    assert engine.leave("quit") == 0
    assert b"Traceback" not in engine.stderr


def test_a_player_that_raises_after_its_answer_keeps_it(short):
    engine = short("def go(self):\n    print('bestmove 7g7f')\n    1 / 0")
    answers = engine.ask("go", "bestmove")
    assert answers[0].startswith("info string Player.go raised ZeroDivisionError")
    assert answers[1:] == ["bestmove 7g7f"]


def test_a_player_that_forgets_its_answers_gets_them(short):
    engine = short(
        """
        def usi(self):
            print('id name forgetful')
        def isready(self):
            pass
        def go(self):
            print('bestmove')
        """
    )
    assert engine.ask("usi", "usiok") == ["id name forgetful", "usiok"]
    assert engine.ask("isready", "readyok") == ["readyok"]
    assert engine.ask("go", "bestmove") == ["bestmove resign"]


def test_a_player_whose_usi_fails_is_still_an_engine(short):
    engine = short("def usi(self):\n    print('id name x')\n    self.nothing" + GO)
    answers = engine.ask("usi", "info string")
    assert answers[:2] == ["id name x", "usiok"]
    assert answers[2].startswith("info string Player.usi raised AttributeError: ")
    engine.send("position startpos", "go")
    assert engine.until("bestmove")[-1] != "bestmove resign"


def test_a_player_that_says_nothing_resigns(short):
    engine = short("def go(self):\n    pass")
    assert engine.ask("go", "bestmove") == [
        "info string the player printed no bestmove. It resigns.",
        "bestmove resign",
    ]


def test_a_player_that_says_too_much_is_understood(short):
    engine = short(
        """
        def isready(self):
            super().isready()
            print('loaded')
            os.write(1, b'noise of a library')
            os.system('echo noise of a program')
            print('readyok')
        def go(self):
            print(self.board.sfen())
            print('info', 'score', 'cp', 5)
            print('bestmove', '7g7f', end='\\n')
            print('bestmove 2g2f')
            print('no newline', end='')
        """
    )
    answers = engine.ask("isready", "readyok")
    assert answers == ["info string loaded", "readyok"]
    answers = engine.ask("go", "bestmove")
    assert answers[0].startswith("info string lnsgkgsnl/")
    assert answers[1:] == ["info score cp 5", "info string no newline", "bestmove 7g7f"]
    engine.send("stop", "isready")
    assert engine.until("readyok") == ["info string loaded", "readyok"]


def test_lines_of_several_threads_stay_whole(short):
    engine = short(
        """
        def speak(self):
            for n in range(200):
                print('info', 'string', threading.get_ident(), n, 'end')
        def go(self):
            threads = [threading.Thread(target=self.speak) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            print('bestmove 7g7f')
        """
    )
    lines = engine.ask("go", "bestmove")
    assert len(lines) == 801
    assert all(line.split()[0] == "info" and line.split()[-1] == "end" for line in lines[:-1])


def test_a_player_that_cannot_load_ends_with_a_sentence(short):
    engine = short("def isready(self):\n    open('/no/such/model')")
    engine.send("usi", "isready")
    answers = engine.until(None)
    assert engine.process.wait(60) == 1
    assert answers[:2] == ["id name Player", "usiok"]
    assert answers[2].startswith("info string Player.isready raised FileNotFoundError: ")
    assert "(line 10 of my_player.py)" in answers[2]
    assert len(answers) == 3
    assert b"Traceback" not in engine.stderr


def test_a_position_that_the_player_refuses_is_not_played(short):
    body = "def position(self, words):\n    self.board.push_usi(words[2])" + GO
    engine = short(body)
    engine.send("position startpos moves 7g7f")
    engine.send("position startpos", "go")
    answers = engine.until("bestmove")
    assert answers[0].startswith("info string Player.position raised IndexError")
    assert answers[1].startswith("info string resigns because the last position was refused")
    assert answers[2] == "bestmove resign"


@pytest.mark.parametrize("line", ["position startpos moves 7g7c", "position nowhere"])
def test_an_impossible_position_is_refused_by_the_inherited_method(short, line):
    engine = short(GO)
    engine.send(line, "go")
    answers = engine.until("bestmove")
    assert answers[-1] == "bestmove resign"
    assert "raised" not in answers[0]
    engine.send("position startpos moves 7g7f", "go")
    assert engine.until("bestmove")[-1] != "bestmove resign"


def test_setoption_gives_the_value_as_one_word(short):
    engine = short("def setoption(self, words):\n    print(words)")
    said = engine.ask("setoption  name modelfile  value C:/my dir/a  b.npz \r", "info string")
    assert said[-1] == "info string ['name', 'modelfile', 'value', 'C:/my dir/a  b.npz']"
    assert engine.ask("setoption name Press", "info")[-1].startswith("info string ['name', 'Press'")


def test_setoption_gives_the_empty_value_of_usi_as_an_empty_word(short):
    engine = short("def setoption(self, words):\n    print(words)")
    said = engine.ask("setoption name modelfile value <empty>", "info string")
    assert said[-1] == "info string ['name', 'modelfile', 'value', '']"


@pytest.mark.parametrize("end", [["quit"], []], ids=["quit", "end of input"])
def test_quit_and_the_end_of_input_end_the_player(short, end):
    engine = short("def quit(self):\n    print('info string goodbye')")
    assert engine.leave(*end) == 0
    assert engine.until(None) == ["info string goodbye"]


def test_a_player_whose_quit_fails_is_named(short):
    engine = short("def quit(self):\n    1 / 0")
    assert engine.leave("quit") == 0
    (said,) = engine.until(None)
    assert said.startswith("info string Player.quit raised ZeroDivisionError")
    assert b"Traceback" not in engine.stderr


@pytest.mark.long
def test_quit_ends_a_player_that_never_answers(short):
    engine = short("def go(self):\n    time.sleep(3600)")
    assert engine.leave("go", "quit") == 0


def test_a_player_that_exits_ends_the_engine(short):
    engine = short("def go(self):\n    raise SystemExit(3)")
    engine.send("go")
    assert engine.until(None) == []
    assert engine.process.wait(60) == 3


def test_a_player_that_exits_with_a_message_shows_it(short):
    engine = short("def go(self):\n    raise SystemExit('no model')")
    engine.send("go")
    assert engine.until(None) == ["info string no model"]
    assert engine.process.wait(60) == 1


def test_settings_of_chainer_hold_in_the_player(reader):
    body = """
class Player(BasePlayer):
    def go(self):
        print('info string', chainer.config.train, chainer.config.enable_backprop)
chainer.config.train = False
usi(Player())
"""
    assert reader(IMPORTS + body).ask("go", "info")[-1] == "info string False True"


def test_a_player_that_is_no_base_player_needs_only_go(reader):
    engine = reader(
        "from pydlshogi.usi.usi import usi\n"
        "class Player:\n"
        "    def go(self):\n"
        "        print('bestmove win')\n"
        "usi(Player())\n"
    )
    engine.send("usi", "isready", "usinewgame", "position startpos", "go")
    assert engine.until("bestmove") == ["usiok", "readyok", "bestmove win"]
    assert engine.leave() == 0


OURS = {"policy": ("PolicyPlayer", "policy"), "search1": ("Search1Player", "value")}


@pytest.mark.long
@pytest.mark.parametrize("name", OURS)
def test_our_players_run_through_usi_as_through_their_programs(reader, start, model_of, name):
    player, network = OURS[name]
    script = reader(
        "from pydlshogi.usi.usi import *\n"
        f"from pydlshogi.player.{name}_player import *\n"
        f"usi({player}())\n"
    )
    module = start([sys.executable, "-m", f"pydlshogi.usi.usi_{name}_player"], cwd=REPOSITORY)
    script_file = start([sys.executable, REPOSITORY / f"{name}_player_usi.py"])
    answers = []
    for engine in (script, module, script_file):
        said = engine.ask("usi", "usiok")
        assert said[0] == f"id name {name}_player"
        engine.send(f"setoption name modelfile value {model_of(network)}", "isready")
        engine.send("position startpos moves 7g7f", "go infinite", "stop", "isready")
        said += engine.until("readyok") + engine.until("readyok")
        # On a busy machine an engine may say that it is loading.
        answers.append([line for line in said if not re.search(" time | loading$", line)])
        assert any(line.startswith("bestmove ") for line in said)
        assert engine.leave("quit") == 0
    assert answers[0] == answers[1] == answers[2]


def test_a_readers_subclass_of_our_player_keeps_its_own_go(reader, model_of, tmp_path):
    engine = reader(
        "from pydlshogi.usi.usi import *\n"
        "from pydlshogi.player.policy_player import *\n"
        "class Mine(PolicyPlayer):\n"
        "    def go(self):\n"
        "        print('info string mine')\n"
        "        super().go()\n"
        "usi(Mine())\n"
    )
    assert "option name modelfile type filename default model/model_policy_value" in engine.ask(
        "usi", "usiok"
    )
    engine.send(f"setoption name modelfile value {model_of('policy')}", "isready")
    engine.until("readyok")
    answers = engine.ask("go", "bestmove")
    assert answers[0] == "info string mine"
    log = tmp_path / "dialogue.log"
    engine.send(f"setoption name debug_log value {log}")
    engine.send("setoption name Debug_Log value <empty>")
    engine.ask("usi", "usiok")
    assert "> info string mine\n" in log.read_text()
    assert log.read_text().count("> usiok\n") == 1  # the one before the log was closed
    assert cshogi.Board().is_legal(cshogi.Board().move_from_usi(answers[-1].split()[1]))
    engine.send("position startpos moves 7g7c", "go")
    assert engine.until("bestmove")[-1] == "bestmove resign"


def test_usi_refuses_a_class():
    with pytest.raises(TypeError, match=r"write usi\(BasePlayer\(\)\)"):
        usi(BasePlayer)


def test_usi_talks_on_streams_that_a_script_has_put_in_place(monkeypatch):
    class Player(BasePlayer):
        def go(self):
            print("bestmove 7g7f")

    output = io.StringIO()
    monkeypatch.setattr(sys, "stdin", io.StringIO("usi\nisready\nposition startpos\ngo\nquit\n"))
    monkeypatch.setattr(sys, "stdout", output)
    usi(Player())
    lines = output.getvalue().splitlines()
    assert lines == ["id name Player", "usiok", "readyok", "bestmove 7g7f"]
