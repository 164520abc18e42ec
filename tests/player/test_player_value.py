"""Play with a network that has a value head: scores, resigning, looking one move ahead."""

import re
import threading

import numpy
import pytest
import shogi

from pydlshogi import rules
from pydlshogi.compat import chainer
from pydlshogi.features import LABEL_NUM, make_input_features_from_board, make_output_label
from pydlshogi.network.evaluator import Evaluation, Evaluator
from pydlshogi.network.model_file import load_network, save_model
from pydlshogi.network.registry import make_network
from pydlshogi.player import policy_player
from pydlshogi.player.policy_options import policy_options
from pydlshogi.player.policy_player import CHUNK, PolicyPlayer
from pydlshogi.usi.protocol import Clock, FatalError, Go

#: Black's rook checks White's king for ever; both sides move a rook to and fro.
CHECKING = "5k3/9/9/9/9/9/9/9/K3R4 b - 1"
CHECKS = ["5i4i", "4a5a", "4i5i", "5a4a"]
QUIET = ["2h3h", "8b7b", "3h2h", "7b8b"]

#: The most legal moves that a position can have.
MOST_MOVES = "R8/2K1S1SSk/4B4/9/9/9/9/9/1L1L1L3 b RBGSNLP3g3n17p 1"
MATE = "4k4/9/4P4/9/9/9/9/9/4K4 b GP 1"


class CountingEvaluator:
    """Holds that White wins the more, the more pawns have left their first places."""

    has_value = True

    def __init__(self):
        self.asked = 0

    def planes(self, board):
        return make_input_features_from_board(board)

    def evaluate(self, planes):
        self.asked += len(planes)
        logits = numpy.zeros((len(planes), LABEL_NUM), numpy.float32)
        # 7g7f seen by White, to move after it, is a pawn of the opponent on 3d.
        return Evaluation(logits, numpy.array([0.9 - 0.5 * x[52, 3, 6] for x in planes]))


def player_with(evaluator, **options):
    said = []
    player = PolicyPlayer(policy_options(), said.append)
    for name, value in options.items():
        player.options.set(name, value)
    player._evaluator, player._loaded = evaluator, ("chosen by the test",)
    return player, said


def lines_with_score(said):
    return [line for line in said if " score " in line]


def test_the_score_is_that_of_the_position_with_the_constant_600():
    player, said = player_with(CountingEvaluator(), strategy="greedy", MultiPV="4")
    move = player.go(Go())
    expected = round(600 * numpy.log(0.9 / 0.1))
    (line,) = lines_with_score(said)
    assert re.fullmatch(
        rf"info depth 1 time \d+ nodes 1 multipv 1 score cp {expected} pv {re.escape(move)}", line
    )
    # The candidates' probabilities are shown as ever.
    assert sum(line.startswith("info string") for line in said) == 4


def test_value1_plays_the_move_after_which_the_opponents_value_is_lowest():
    evaluator = CountingEvaluator()
    player, said = player_with(evaluator, strategy="value1", MultiPV="2")
    assert player.go(Go()) == "7g7f"
    assert evaluator.asked == 1 + 30
    best = lines_with_score(said)[-1]
    score = round(600 * numpy.log(0.6 / 0.4))
    assert re.fullmatch(rf"info depth 1 time \d+ nodes 31 multipv 1 score cp {score} pv 7g7f", best)
    second = lines_with_score(said)[-2]
    assert f"multipv 2 score cp {round(600 * numpy.log(0.1 / 0.9))} pv" in second
    assert player.board.sfen() == shogi.Board().sfen()


def test_value1_looks_only_at_what_is_asked_for_and_at_mates_first():
    player, said = player_with(CountingEvaluator(), strategy="value1")
    assert player.go(Go(searchmoves=("2g2f", "5g5f"))) in ("2g2f", "5g5f")
    assert " nodes 3 " in said[-1]
    player.position(MATE, [])
    assert player.go(Go()) == "G*5b"


class Preferring(CountingEvaluator):
    """Prefers moves in the order of their labels, and may do something when asked."""

    def __init__(self, when_asked=lambda asked: None):
        super().__init__()
        self.when_asked = when_asked

    def evaluate(self, planes):
        logits, wins = super().evaluate(planes)
        self.when_asked(self.asked)
        return Evaluation(logits - numpy.arange(LABEL_NUM, dtype=numpy.float32), wins)


def by_label(board):
    return sorted(rules.legal_moves(board), key=lambda m: make_output_label(m, board.turn))


def test_value1_stops_when_told_to_and_has_looked_at_the_likeliest_moves():
    stopped = Go(infinite=True)
    evaluator = Preferring(lambda asked: asked > CHUNK and stopped.stop.set())
    player, said = player_with(evaluator, strategy="value1", MultiPV="593", mate_in_one="false")
    player.position(MOST_MOVES, [])
    likeliest = by_label(player.board)
    assert len(likeliest) == 593
    assert player.go(stopped) == likeliest[0].usi()
    assert evaluator.asked == 1 + CHUNK
    assert {line.split()[-1] for line in lines_with_score(said)} == {
        move.usi() for move in likeliest[:CHUNK]
    }
    assert sum(line.startswith("info string") for line in said) == 593


@pytest.mark.parametrize("stop", ["stop", "clock"])
def test_value1_without_any_time_plays_the_likeliest_move(stop):
    go = Go(movetime=0) if stop == "clock" else Go()
    if stop == "stop":
        go.stop.set()
    player, said = player_with(Preferring(), strategy="value1")
    assert player.go(go) == by_label(player.board)[0].usi()
    (line,) = lines_with_score(said)
    assert f" nodes 1 multipv 1 score cp {round(600 * numpy.log(0.9 / 0.1))} " in line


def test_value1_keeps_to_the_clock_of_the_side_to_move(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(policy_player.time, "perf_counter", lambda: now[0])

    def pass_time(asked):
        now[0] += 0.125

    evaluator = Preferring(pass_time)
    player, _ = player_with(evaluator, strategy="value1", mate_in_one="false")
    player.position(MOST_MOVES, [])
    # The position takes an eighth of a second, each chunk as long; half may be used.
    player.go(Go(black=Clock(0, None, 1000), white=Clock(0, None, 9000)))
    assert evaluator.asked == 1 + 3 * CHUNK
    player.go(Go(white=Clock(0, None, 1000)))
    assert evaluator.asked == 1 + 3 * CHUNK + 1 + 593


@pytest.mark.parametrize("strategy", ["greedy", "boltzmann", "value1"])
def test_it_resigns_below_the_threshold_and_never_without_one(strategy):
    class Lost(CountingEvaluator):
        def evaluate(self, planes):
            win = 0.045 if len(planes) == 1 else 0.955  # after a move it is the opponent's
            logits, wins = super().evaluate(planes)
            return Evaluation(logits, numpy.full_like(wins, win))

    for threshold, resigns in (("0", False), ("4", False), ("5", True)):
        player, said = player_with(Lost(), strategy=strategy, resign_threshold=threshold)
        assert (player.go(Go()) == "resign") == resigns
        # The score that it resigns by is shown.
        assert f"score cp {round(600 * numpy.log(0.045 / 0.955))} " in said[-1]
    player, _ = player_with(Lost(), strategy=strategy, resign_threshold="50")
    player.position(MATE, [])
    assert player.go(Go()) == "G*5b"


class Losing(CountingEvaluator):
    """Holds that the side to move on the board, and then whoever has moved, loses."""

    def evaluate(self, planes):
        logits, wins = super().evaluate(planes)
        return Evaluation(logits, numpy.full_like(wins, 0.98 if self.asked > 1 else 0.02))


@pytest.mark.parametrize("strategy", ["greedy", "boltzmann", "value1"])
def test_a_game_that_repetition_wins_or_draws_is_not_resigned(strategy):
    options = {"strategy": strategy, "resign_threshold": "50", "mate_in_one": "false"}
    player, said = player_with(Losing(), **options)
    player.position(CHECKING, (CHECKS * 3)[:-1])
    assert player.go(Go()) == "5a4a"
    assert said[-1].endswith("score cp 9999 pv 5a4a")
    player, said = player_with(Losing(), **options)
    player.position(None, (QUIET * 3)[:-1])
    assert player.go(Go(searchmoves=("7b8b",))) == "7b8b"
    assert said[-1].endswith("score cp 0 pv 7b8b")
    # Without any time too.
    stop = threading.Event()
    stop.set()
    player, _ = player_with(Losing(), **options)
    player.position(CHECKING, (CHECKS * 3)[:-1])
    assert player.go(Go(stop=stop)) == "5a4a"


def test_value1_takes_a_draw_where_all_else_loses():
    player, said = player_with(Losing(), strategy="value1")
    player.position(None, (QUIET * 3)[:-1])
    assert player.go(Go()) == "7b8b"
    assert said[-1].endswith("score cp 0 pv 7b8b")
    player, _ = player_with(Losing(), strategy="value1", repetition="avoid")
    player.position(None, (QUIET * 3)[:-1])
    assert player.go(Go()) != "7b8b"


@pytest.mark.parametrize("strategy", ["greedy", "boltzmann", "value1"])
@pytest.mark.parametrize("part", ["logits", "wins"])
def test_numbers_that_are_not_finite_end_the_engine_with_a_sentence(strategy, part):
    class Diverged(CountingEvaluator):
        def evaluate(self, planes):
            evaluation = super().evaluate(planes)
            getattr(evaluation, part)[...] = numpy.nan
            return evaluation

    player, _ = player_with(Diverged(), strategy=strategy)
    with pytest.raises(FatalError, match="not finite: its training diverged"):
        player.go(Go())


@pytest.fixture(scope="module")
def model_of(tmp_path_factory):
    """Gives the model file of a network of random weights."""
    folder = tmp_path_factory.mktemp("models")

    def model(name):
        path = folder / name
        if not path.exists():
            numpy.random.seed(7)
            save_model(path, make_network(name))
        return path

    return model


@pytest.mark.parametrize(
    "name", ["policy_bn", "policy_hand1x1_ply", "policy_value_resnet", "policy_value_small"]
)
def test_every_network_plays_from_its_file_alone(model_of, name):
    said = []
    player = PolicyPlayer(policy_options(), said.append)
    player.options.set("modelfile", str(model_of(name)))
    player.isready()
    move = player.go(Go())
    assert shogi.Move.from_usi(move) in player.board.legal_moves
    assert len(lines_with_score(said)) == (1 if name.startswith("policy_value") else 5)


def test_looking_ahead_is_looking_at_each_position_after_a_move(model_of):
    player = PolicyPlayer(policy_options(), lambda line: None)
    player.options.set("modelfile", str(model_of("policy_value_small")))
    player.options.set("strategy", "value1")
    player.isready()
    player.position(None, ["7g7f", "3c3d"])
    moves = list(player.board.legal_moves)
    wins = []
    for move in moves:
        player.board.push(move)
        wins.append(1 - player.evaluate(player.board)[1])
        player.board.pop()
    numpy.testing.assert_allclose(player.look_ahead(moves), wins, atol=1e-5)
    assert player.go(Go()) == moves[int(numpy.argmax(wins))].usi()


@pytest.mark.parametrize("name", ["policy", "policy_bn", "policy_value", "policy_value_small"])
def test_an_evaluation_is_what_the_network_computes_in_play(device, model_of, name):
    evaluator = Evaluator(model_of(name), device)
    board = shogi.Board()
    planes = []
    for move in (None, "7g7f", "3c3d", "2g2f"):
        if move:
            board.push_usi(move)
        planes.append(evaluator.planes(board))
    network = load_network(model_of(name))
    with chainer.using_config("train", False):
        output = network(numpy.stack(planes))
    for count in (4, 1):  # one position, as at a move, is computed in another way
        found = evaluator.evaluate(planes[:count])
        assert isinstance(found.logits, numpy.ndarray)
        logits = output[0] if evaluator.has_value else output
        expected = logits.array[:count]
        numpy.testing.assert_allclose(found.logits, expected, rtol=1e-3, atol=1e-4)
        assert evaluator.has_value == (found.wins is not None) == name.startswith("policy_value")
        if evaluator.has_value:
            wins = network.value_kind.win_probabilities(output[1])[:count]
            assert isinstance(found.wins, numpy.ndarray)
            numpy.testing.assert_allclose(found.wins, wins, rtol=1e-3, atol=1e-4)


def test_the_move_number_of_the_board_reaches_the_network(model_of):
    evaluator = Evaluator(model_of("policy_hand1x1_ply"), chainer.get_device("@numpy"))
    board = shogi.Board()
    planes = evaluator.planes(board)
    assert planes.shape == (112, 9, 9)
    assert list(planes[104:, 0, 0]) == [1, 0, 0, 0, 0, 0, 0, 0]
    late = shogi.Board("lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 90")
    assert list(evaluator.planes(late)[104:, 4, 4]) == [0, 0, 0, 0, 1, 0, 0, 0]


def test_what_needs_a_value_head_is_named_where_there_is_none(model_of):
    said = []
    player = PolicyPlayer(policy_options(), said.append)
    player.options.set("modelfile", str(model_of("policy")))
    player.isready()
    assert said == []
    plain = player.go(Go())
    player.options.set("strategy", "value1")
    player.options.set("resign_threshold", "50")
    for act in (player.isready, lambda: player.go(Go())):
        said.clear()
        played = act()
        assert said[0].startswith("info string strategy value1 and resign_threshold cannot be")
        assert "--network policy_value" in said[0]
    assert played == plain
