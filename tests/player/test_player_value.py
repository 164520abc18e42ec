"""Play with a network that has a value head: scores, resignation, one move of lookahead."""

import re
import threading
from types import SimpleNamespace

import numpy
import pytest
import shogi

from pydlshogi import rules
from pydlshogi.compat import chainer
from pydlshogi.features import LABEL_NUM, make_input_features_from_board, make_output_label
from pydlshogi.inference.evaluator import Evaluation, Evaluator
from pydlshogi.model_files.model_file import load_network, save_model
from pydlshogi.network.registry import make_network
from pydlshogi.player import shallow_player
from pydlshogi.player.policy_player import PolicyPlayer
from pydlshogi.player.search1_player import CHUNK, Search1Player
from pydlshogi.usi.protocol import Clock, FatalError, Go

#: Black's rook checks White's king for ever; both sides move a rook back and forth.
CHECKING = "5k3/9/9/9/9/9/9/9/K3R4 b - 1"
CHECKS = ["5i4i", "4a5a", "4i5i", "5a4a"]
QUIET = ["2h3h", "8b7b", "3h2h", "7b8b"]

#: The most legal moves that a position can have.
MOST_MOVES = "R8/2K1S1SSk/4B4/9/9/9/9/9/1L1L1L3 b RBGSNLP3g3n17p 1"
MATE = "4k4/9/4P4/9/9/9/9/9/4K4 b GP 1"


#: The players, each with options; the last one looks one move ahead.
PLAYERS = pytest.mark.parametrize(
    ("player_class", "options"),
    [
        (PolicyPlayer, {"strategy": "greedy"}),
        (PolicyPlayer, {"strategy": "boltzmann"}),
        (Search1Player, {"strategy": "greedy"}),
    ],
    ids=["greedy", "boltzmann", "search1"],
)


class CountingEvaluator:
    """Thinks that White wins if the pawn of 7g has not moved."""

    has_policy = True
    has_value = True

    def __init__(self):
        self.asked = 0

    def planes(self, board):
        return make_input_features_from_board(board)

    def evaluate(self, planes):
        self.asked += len(planes)
        logits = numpy.zeros((len(planes), LABEL_NUM), numpy.float32)
        # After 7g7f White is to move, and sees a pawn of the opponent on 3d.
        return Evaluation(logits, numpy.array([0.9 - 0.5 * x[52, 3, 6] for x in planes]))


def player_with(evaluator, player_class=PolicyPlayer, **options):
    said = []
    player = player_class(send=said.append)
    for name, value in options.items():
        player.options.set(name, value)
    player._evaluator, player._loaded = evaluator, ("chosen by the test",)
    return player, said


def lines_with_score(said):
    return [line for line in said if " score " in line]


def test_the_score_is_that_of_the_position_with_the_constant_600():
    player, said = player_with(CountingEvaluator(), strategy="greedy", MultiPV="4")
    move = player.choose(Go())
    expected = round(600 * numpy.log(0.9 / 0.1))
    (line,) = lines_with_score(said)
    assert re.fullmatch(
        rf"info depth 1 time \d+ nodes 1 multipv 1 score cp {expected} pv {re.escape(move)}", line
    )
    # The other candidates are shown too, without a score.
    assert sum(line.startswith("info string") for line in said) == 4
    assert [re.search(r"multipv (\d)", line)[1] for line in said[4:]] == ["4", "3", "2", "1"]


def test_search1_plays_the_move_after_which_the_opponents_value_is_lowest():
    evaluator = CountingEvaluator()
    player, said = player_with(evaluator, Search1Player, MultiPV="2")
    assert player.choose(Go()) == "7g7f"
    assert evaluator.asked == 1 + 30
    best = lines_with_score(said)[-1]
    score = round(600 * numpy.log(0.6 / 0.4))
    assert re.fullmatch(rf"info depth 1 time \d+ nodes 31 multipv 1 score cp {score} pv 7g7f", best)
    second = lines_with_score(said)[-2]
    assert f"multipv 2 score cp {round(600 * numpy.log(0.1 / 0.9))} pv" in second
    assert player.board.sfen() == shogi.Board().sfen()


def test_search1_looks_only_at_what_is_asked_for_and_at_mates_first():
    player, said = player_with(CountingEvaluator(), Search1Player)
    assert player.choose(Go(searchmoves=("2g2f", "5g5f"))) in ("2g2f", "5g5f")
    assert " nodes 3 " in said[-1]
    player.set_position(MATE, [])
    assert player.choose(Go()) == "G*5b"


class Preferring(CountingEvaluator):
    """Prefers moves in the order of their labels, and calls a function at each evaluation."""

    def __init__(self, when_asked=lambda asked: None):
        super().__init__()
        self.when_asked = when_asked

    def evaluate(self, planes):
        logits, wins = super().evaluate(planes)
        self.when_asked(self.asked)
        return Evaluation(logits - numpy.arange(LABEL_NUM, dtype=numpy.float32), wins)


def by_label(board):
    return sorted(rules.legal_moves(board), key=lambda m: make_output_label(m, board.turn))


def test_search1_stops_when_told_to_and_has_looked_at_the_likeliest_moves():
    stopped = Go(infinite=True)
    evaluator = Preferring(lambda asked: asked > CHUNK and stopped.stop.set())
    player, said = player_with(evaluator, Search1Player, MultiPV="593", mate_in_one="false")
    player.set_position(MOST_MOVES, [])
    likeliest = by_label(player.board)
    assert len(likeliest) == 593
    assert player.choose(stopped) == likeliest[0].usi()
    assert evaluator.asked == 1 + CHUNK
    assert {line.split()[-1] for line in lines_with_score(said)} == {
        move.usi() for move in likeliest[:CHUNK]
    }
    assert sum(line.startswith("info string") for line in said) == CHUNK


@pytest.mark.parametrize(("seconds", "steps"), [(0.1, 5), (0.3, 2), (0.45, 1)])
def test_search1_begins_no_step_that_may_take_too_long(monkeypatch, seconds, steps):
    clock = SimpleNamespace(now=0.0, perf_counter=lambda: clock.now)
    monkeypatch.setattr("pydlshogi.player.shallow_player.time", clock)
    player, _ = player_with(
        Preferring(lambda asked: setattr(clock, "now", clock.now + seconds)), Search1Player
    )
    player.set_position(MOST_MOVES, [])
    player.options.set("mate_in_one", "false")
    clock.now = 0.0
    player.choose(Go(black=Clock(byoyomi=1000), time=0.0))
    assert clock.now == pytest.approx(steps * seconds)


@pytest.mark.parametrize("stop", ["stop", "clock"])
def test_search1_without_any_time_plays_the_likeliest_move(stop):
    go = Go(movetime=0) if stop == "clock" else Go()
    if stop == "stop":
        go.stop.set()
    player, said = player_with(Preferring(), Search1Player)
    assert player.choose(go) == by_label(player.board)[0].usi()
    (line,) = lines_with_score(said)
    assert f" nodes 1 multipv 1 score cp {round(600 * numpy.log(0.9 / 0.1))} " in line


def test_search1_keeps_to_the_clock_of_the_side_to_move(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(shallow_player.time, "perf_counter", lambda: now[0])

    def pass_time(asked):
        now[0] += 0.125

    evaluator = Preferring(pass_time)
    player, _ = player_with(evaluator, Search1Player, mate_in_one="false")
    player.set_position(MOST_MOVES, [])
    # The position and each chunk take an eighth of a second. Half of the time may be used.
    player.choose(Go(black=Clock(0, None, 1000), white=Clock(0, None, 9000)))
    assert evaluator.asked == 1 + 3 * CHUNK
    player.choose(Go(white=Clock(0, None, 1000)))
    assert evaluator.asked == 1 + 3 * CHUNK + 1 + 593


@PLAYERS
def test_it_resigns_below_the_threshold_and_never_without_one(player_class, options):
    class Lost(CountingEvaluator):
        def evaluate(self, planes):
            win = 0.045 if len(planes) == 1 else 0.955  # after a move it is the opponent's
            logits, wins = super().evaluate(planes)
            return Evaluation(logits, numpy.full_like(wins, win))

    for threshold, resigns in (("0", False), ("4", False), ("5", True)):
        player, said = player_with(Lost(), player_class, **options, resign_threshold=threshold)
        assert (player.choose(Go()) == "resign") == resigns
        # It shows the score by which it resigns.
        assert f"score cp {round(600 * numpy.log(0.045 / 0.955))} " in said[-1]
    player, _ = player_with(Lost(), player_class, **options, resign_threshold="50")
    player.set_position(MATE, [])
    assert player.choose(Go()) == "G*5b"


class Losing(CountingEvaluator):
    """Thinks that the side to move on the board loses, whatever it plays."""

    def evaluate(self, planes):
        logits, wins = super().evaluate(planes)
        return Evaluation(logits, numpy.full_like(wins, 0.98 if self.asked > 1 else 0.02))


@PLAYERS
def test_a_game_that_repetition_wins_or_draws_is_not_resigned(player_class, options):
    options = {**options, "resign_threshold": "50", "mate_in_one": "false"}
    player, said = player_with(Losing(), player_class, **options)
    player.set_position(CHECKING, (CHECKS * 3)[:-1])
    assert player.choose(Go()) == "5a4a"
    assert said[-1].endswith("score cp 9999 pv 5a4a")
    player, said = player_with(Losing(), player_class, **options)
    player.set_position(None, (QUIET * 3)[:-1])
    assert player.choose(Go(searchmoves=("7b8b",))) == "7b8b"
    assert said[-1].endswith("score cp 0 pv 7b8b")
    # Also without any time.
    stop = threading.Event()
    stop.set()
    player, _ = player_with(Losing(), player_class, **options)
    player.set_position(CHECKING, (CHECKS * 3)[:-1])
    assert player.choose(Go(stop=stop)) == "5a4a"


def test_search1_takes_a_draw_where_all_else_loses():
    player, said = player_with(Losing(), Search1Player)
    player.set_position(None, (QUIET * 3)[:-1])
    assert player.choose(Go()) == "7b8b"
    assert said[-1].endswith("score cp 0 pv 7b8b")
    player, _ = player_with(Losing(), Search1Player, repetition="avoid")
    player.set_position(None, (QUIET * 3)[:-1])
    assert player.choose(Go()) != "7b8b"


@PLAYERS
@pytest.mark.parametrize("part", ["logits", "wins"])
def test_numbers_that_are_not_finite_end_the_engine_with_a_sentence(player_class, options, part):
    class Diverged(CountingEvaluator):
        def evaluate(self, planes):
            evaluation = super().evaluate(planes)
            getattr(evaluation, part)[...] = numpy.nan
            return evaluation

    player, _ = player_with(Diverged(), player_class, **options)
    with pytest.raises(FatalError, match="not finite: its training diverged"):
        player.choose(Go())


@pytest.fixture(scope="module")
def model_of(tmp_path_factory):
    """Makes the model file of a network of random weights."""
    folder = tmp_path_factory.mktemp("models")

    def model(name):
        path = folder / name
        if not path.exists():
            numpy.random.seed(7)
            save_model(path, make_network(name))
        return path

    return model


@pytest.mark.parametrize(
    "name", ["policy_bn", "policy_hand1x1", "policy_value_resnet", "policy_value_small"]
)
def test_every_network_plays_from_its_file_alone(model_of, name):
    said = []
    player = PolicyPlayer(send=said.append)
    player.options.set("modelfile", str(model_of(name)))
    player.prepare()
    move = player.choose(Go())
    assert shogi.Move.from_usi(move) in player.board.legal_moves
    assert len(lines_with_score(said)) == (1 if name.startswith("policy_value") else 0)


def test_looking_ahead_is_looking_at_each_position_after_a_move(model_of):
    player = Search1Player(send=lambda line: None)
    player.options.set("modelfile", str(model_of("policy_value_small")))
    player.prepare()
    player.set_position(None, ["7g7f", "3c3d"])
    moves = list(player.board.legal_moves)
    wins = []
    for move in moves:
        player.board.push(move)
        wins.append(1 - player.evaluate(player.board)[1])
        player.board.pop()
    numpy.testing.assert_allclose(player.look_ahead(moves), wins, atol=1e-5)
    assert player.choose(Go()) == moves[int(numpy.argmax(wins))].usi()


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


def test_search1_plays_a_value_network_that_has_no_policy(model_of):
    said = []
    player = Search1Player(send=said.append)
    player.options.set("modelfile", str(model_of("value")))
    player.prepare()
    moves = rules.legal_moves(player.board)
    wins = dict(zip([move.usi() for move in moves], player.look_ahead(moves)))
    played = player.choose(Go())
    assert wins[played] == max(wins.values())
    best = sorted(wins, key=wins.get, reverse=True)[:5]
    assert said[:5] == [f"info string {move:5} : {wins[move]:.5f}" for move in best]


@pytest.mark.parametrize(
    ("player_class", "name", "lacks"),
    [
        (PolicyPlayer, "value", "is a value network and has no policy. Play it with search1"),
        (
            Search1Player,
            "policy",
            "has no value head. Choose a file trained with the network value",
        ),
    ],
)
def test_a_network_without_the_head_that_a_player_needs_is_refused(
    model_of, player_class, name, lacks
):
    player = player_class(send=lambda line: None)
    player.options.set("modelfile", str(model_of(name)))
    with pytest.raises(FatalError, match=lacks) as error:
        player.prepare()
    assert str(model_of(name)) in str(error.value)


def test_search1_player_names_a_shipped_model_if_its_default_is_missing(tmp_path, monkeypatch):
    monkeypatch.delenv("PYDLSHOGI_MODEL", raising=False)
    player = Search1Player(send=lambda line: None, folder=tmp_path)
    with pytest.raises(FatalError, match="modelfile chooses it, for example model/model_policy_v"):
        player.prepare()


def test_a_threshold_that_has_no_effect_is_named(model_of):
    said = []
    player = PolicyPlayer(send=said.append)
    player.options.set("modelfile", str(model_of("policy")))
    player.prepare()
    assert said == []
    player.options.set("resign_threshold", "50")
    player.prepare()
    assert said[0].startswith("info string resign_threshold has no effect")
    assert "the network policy_value" in said[0]
    assert player.choose(Go()) != "resign"
