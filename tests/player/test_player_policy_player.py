"""The policy player, with a network whose logits the test chooses."""

import os
import re
from pathlib import Path

import numpy
import pytest
import shogi
import threadpoolctl

from pydlshogi import files, rules
from pydlshogi.features import LABEL_NUM, make_output_label
from pydlshogi.inference import evaluator
from pydlshogi.layers.cpu import threads
from pydlshogi.network.registry import make_network
from pydlshogi.player import network_player
from pydlshogi.player.base_player import BasePlayer
from pydlshogi.player.engine_options import policy_options
from pydlshogi.player.mcts_player import MCTSPlayer
from pydlshogi.player.policy_player import PolicyPlayer
from pydlshogi.usi.protocol import FatalError, Go

#: Black's rook can check White's king for ever.
CHECKING = "5k3/9/9/9/9/9/9/9/K3R4 b - 1"
CHECKS = ["5i4i", "4a5a", "4i5i", "5a4a"]
QUIET = ["2h3h", "8b7b", "3h2h", "7b8b"]
MATE = "4k4/9/4P4/9/9/9/9/9/4K4 b GP 1"


class Played(PolicyPlayer):
    """A policy player that prefers the given moves, in their order."""

    def __init__(self, *preferred, **options):
        self.said = []
        self.evaluated = 0
        super().__init__(policy_options(), self.said.append)
        for name, value in options.items():
            self.options.set(name, value)
        self._preferred = preferred
        self._loaded = ("chosen by the test",)

    def evaluate(self, board):
        self.evaluated += 1
        logits = numpy.random.RandomState(0).standard_normal(LABEL_NUM).astype(numpy.float32)
        for rank, move in enumerate(self._preferred):
            logits[make_output_label(shogi.Move.from_usi(move), board.turn)] = 20 - rank
        return logits, None


def test_it_is_a_base_player():
    assert issubclass(PolicyPlayer, BasePlayer)


def test_it_plays_the_highest_logit():
    assert Played("5g5f", "7g7f").choose(Go()) == "5g5f"


def test_it_passes_over_illegal_moves_however_high():
    player = Played("P*9b")
    player.set_position("kbR6/6+R2/9/9/9/9/9/9/2K6 b P2p 1", [])
    move = shogi.Move.from_usi(player.choose(Go()))
    assert move.usi() != "P*9b"
    assert rules.is_legal(player.board, move)


def test_searchmoves_are_the_only_ones():
    player = Played("5g5f", "7g7f", "2g2f")
    assert player.choose(Go(searchmoves=("2g2f", "7g7f"))) == "7g7f"
    assert player.choose(Go(searchmoves=("3c3d", "7g7c"))) == "5g5f"
    assert any("searchmoves" in line for line in player.said)


def test_a_mate_in_one_is_played_without_asking_the_network():
    player = Played("P*9e")
    player.set_position(MATE, [])
    assert player.choose(Go()) == "G*5b"
    assert player.evaluated == 0
    assert re.fullmatch(r"info depth 1 .* score mate 1 pv G\*5b", player.said[-1])
    assert Played("P*9e", mate_in_one="false").choose(Go()) != "G*5b"


def test_a_mate_outside_searchmoves_is_not_played():
    player = Played()
    player.set_position(MATE, [])
    assert player.choose(Go(searchmoves=("P*9e",))) == "P*9e"


def test_perpetual_check_is_not_walked_into():
    player = Played("5i4i", mate_in_one="false")
    player.set_position(CHECKING, CHECKS * 2)
    assert player.choose(Go()) == "5i4i"
    player.set_position(CHECKING, CHECKS * 3)
    assert player.choose(Go()) != "5i4i"
    # go allows no other move.
    assert player.choose(Go(searchmoves=("5i4i",))) == "5i4i"


def test_a_win_by_the_opponents_perpetual_check_is_taken():
    player = Played("4a3a")
    player.set_position(CHECKING, (CHECKS * 3)[:-1])
    assert player.choose(Go()) == "5a4a"


@pytest.mark.parametrize(("repetition", "plays"), [("allow", True), ("avoid", False)])
def test_a_draw_by_repetition_is_for_the_option_to_decide(repetition, plays):
    player = Played("7b8b", repetition=repetition)
    player.set_position(None, (QUIET * 2)[:-1])
    assert player.choose(Go()) == "7b8b"
    player.set_position(None, (QUIET * 3)[:-1])
    assert (player.choose(Go()) == "7b8b") == plays


def test_probabilities_are_over_all_labels_and_the_best_candidate_comes_first():
    player = Played("5g5f", "7g7f", "2g2f", MultiPV="3")
    player.choose(Go())
    logits = player.evaluate(player.board)[0].astype(numpy.float64)
    everything = numpy.exp(logits).sum()
    best = ["5g5f", "7g7f", "2g2f"]
    labels = [make_output_label(shogi.Move.from_usi(move), shogi.BLACK) for move in best]
    probabilities = numpy.exp(logits[labels]) / everything
    assert [line for line in player.said if line.startswith("info string")] == [
        f"info string {move:5} : {p:.5f}" for move, p in zip(best, probabilities)
    ]


def test_without_a_value_head_no_line_has_a_score_and_the_move_played_comes_last():
    player = Played("5g5f", "7g7f", "2g2f", MultiPV="3")
    player.choose(Go())
    candidates = [line for line in player.said if " pv " in line]
    assert len(candidates) == 3
    for line, rank, move in zip(candidates, (3, 2, 1), ["2g2f", "7g7f", "5g5f"]):
        assert re.fullmatch(rf"info depth 1 time \d+ nodes 1 multipv {rank} pv {move}", line)


def test_the_book_prints_probabilities_so():
    player = Played("5g5f", MultiPV="1")
    player.choose(Go())
    assert re.fullmatch(r"info string 5g5f  : [01]\.\d{5}", player.said[0])


def test_the_move_played_is_always_shown():
    player = Played("5g5f", strategy="boltzmann", temperature="1000", MultiPV="2")
    unlikely = 0
    for _ in range(20):
        move = player.choose(Go())
        shown = [line.split()[-1] for line in player.said if " pv " in line]
        assert move == shown[-1]
        assert "multipv 1 " in player.said[-1]
        unlikely += move not in ("5g5f",)
    assert unlikely


def test_boltzmann_draws_from_the_legal_moves_and_repeats_with_a_seed():
    def moves(seed):
        player = Played(strategy="boltzmann", temperature="100", random_seed=seed)
        return [player.choose(Go()) for _ in range(30)]

    assert moves("7") == moves("7")
    assert moves("7") != moves("8")
    assert moves("-1") != moves("-1")
    legal = {move.usi() for move in shogi.Board().legal_moves}
    assert len(set(moves("7"))) > 5
    assert set(moves("7")) <= legal


def test_the_seed_starts_anew_only_when_it_changes():
    player = Played(strategy="boltzmann", temperature="100", random_seed="7")
    first = [player.choose(Go()) for _ in range(10)]
    player.options.set("random_seed", "7")
    assert [player.choose(Go()) for _ in range(10)] != first
    player.options.set("random_seed", "8")
    player.choose(Go())
    player.options.set("random_seed", "7")
    assert [player.choose(Go()) for _ in range(10)] == first


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("", "shipped/model_policy_value"),
        ("<empty>", "shipped/model_policy_value"),
        ("model/model_policy_value", "shipped/model_policy_value"),
        ("model/model_policy", "shipped/model_policy"),
        ("other.npz", "/program/other.npz"),
        ("a b/c d", "/program/a b/c d"),
        ("/else where/m.npz", "/else where/m.npz"),
    ],
)
def test_where_a_model_is_looked_for(monkeypatch, tmp_path, value, path):
    asked = []

    def load_network(path):
        asked.append(str(path))
        return make_network("policy", channels=8)

    monkeypatch.setattr(evaluator, "load_network", load_network)
    shipped = tmp_path / "shipped"
    shipped.mkdir()
    (shipped / "model_policy_value").touch()
    monkeypatch.setattr(files, "shipped_file", lambda name: shipped / name)
    options = policy_options()
    options.set("modelfile", value)
    PolicyPlayer(options, folder=Path("/program")).prepare()
    assert asked == [str(tmp_path / path)]  # an absolute path stays


def test_a_model_beside_the_program_comes_before_the_shipped_one(monkeypatch, tmp_path):
    monkeypatch.setattr(files, "shipped_file", lambda name: Path("no"))
    (tmp_path / "model").mkdir()
    own = tmp_path / "model" / "model_policy"
    own.touch()
    options = policy_options()
    options.set("modelfile", "model/model_policy")
    assert PolicyPlayer(options, folder=tmp_path).model_path() == own


def test_without_a_model_of_two_heads_the_shipped_policy_plays(monkeypatch, tmp_path):
    monkeypatch.setattr(files, "shipped_file", lambda name: tmp_path / name)
    assert PolicyPlayer(folder=tmp_path).model_path() == tmp_path / "model_policy"


def test_the_shipped_model_gives_the_move_a_score():
    said = []
    player = PolicyPlayer(policy_options(), said.append)
    player.prepare()
    move = player.choose(Go())
    (line,) = [line for line in said if " score " in line]
    assert re.search(rf" multipv 1 score cp -?\d+ .*pv {move}$", line)


@pytest.mark.parametrize("strategy", ["greedy", "boltzmann"])
def test_random_plies_draws_the_first_moves_of_the_game_and_then_plays_the_best(strategy):
    player = Played(
        "8c8d", strategy=strategy, temperature="1000", random_seed="1", random_plies="2"
    )
    drawn = []
    for _ in range(20):
        player.set_position(None, ["7g7f"])
        drawn.append(player.choose(Go()))
    assert len(set(drawn)) > 5
    player.set_position(None, ["7g7f", "3c3d", "2g2f"])
    assert {player.choose(Go()) for _ in range(20)} == {"8c8d"}


def test_the_default_model_is_the_argument_then_the_environment_then_the_shipped_one(monkeypatch):
    options = policy_options()
    shipped = PolicyPlayer(options).model_path()
    assert shipped.name == "model_policy_value"
    monkeypatch.setenv("PYDLSHOGI_MODEL", "of environment")
    folder = Path("/program")
    assert PolicyPlayer(options, folder=folder).model_path() == folder / "of environment"
    player = PolicyPlayer(options, folder=folder, model=Path("/argument"))
    assert player.model_path() == Path("/argument")
    options.set("modelfile", "option")
    assert player.model_path() == folder / "option"


def test_the_number_of_threads_is_an_option():
    player = Played()
    assert player.options["Threads"] == int(os.environ.get("PYDLSHOGI_THREADS") or 1)


def test_a_new_number_of_threads_takes_effect_at_isready(monkeypatch):
    monkeypatch.setattr(evaluator, "load_network", lambda path: make_network("policy", channels=8))
    monkeypatch.setattr(network_player, "processors", lambda: 2)
    player = PolicyPlayer(send=lambda line: None)
    saved = threads.get_threads()
    try:
        for number in (2, 1):
            player.options.set("Threads", str(number))
            player.prepare()
            assert threads.get_threads() == number
            assert {pool["num_threads"] for pool in threadpoolctl.threadpool_info()} <= {1, number}
    finally:
        threads.set_threads(saved)


@pytest.mark.parametrize(("wanted", "used"), [(512, 3), (4, 3), (3, 3), (1, 1)])
def test_no_more_threads_than_processors_compute(monkeypatch, wanted, used):
    monkeypatch.setattr(evaluator, "load_network", lambda path: make_network("policy", channels=8))
    monkeypatch.setattr(network_player, "processors", lambda: 3)
    said: list[str] = []
    player = PolicyPlayer(send=said.append)
    saved = threads.get_threads()
    try:
        player.options.set("Threads", str(wanted))
        player.prepare()
        assert threads.get_threads() == used
        assert any("processors" in line for line in said) == (wanted > used)
    finally:
        threads.set_threads(saved)


def test_the_book_methods_of_a_player_answer_by_print(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(evaluator, "load_network", lambda path: make_network("policy", channels=8))
    player = PolicyPlayer()
    player.usi()
    player.setoption(["name", "modelfile", "value", str(tmp_path / "model")])
    player.isready()
    player.usinewgame()
    player.position(["startpos", "moves", "7g7f"])
    player.go()
    player.quit()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "id name policy_player"
    assert lines.index("usiok") < lines.index("readyok")
    move = shogi.Move.from_usi(lines[-1].split()[1])
    assert rules.is_legal(player.board, move)
    assert player.board.turn == shogi.WHITE


def test_a_script_may_change_the_board():
    player = Played("8c8d", "2g2f")
    player.position(["position", "startpos", "moves", "7g7f"])
    player.board.push_usi("3c3d")
    player.position(["startpos", "moves", "7g7f", "3c3d", "6g6f"])
    assert player.choose(Go()) == "8c8d"
    player.board = shogi.Board(player.board.sfen())
    player.position(["startpos", "moves", "7g7f", "3c3d", "6g6f", "8c8d"])
    assert player.choose(Go()) == "2g2f"
    assert len(player.board.move_stack) == 4


def test_a_script_may_reach_the_position_by_other_moves():
    player = Played("8c8d")
    player.position(["startpos", "moves", "2g2f", "3c3d", "7g7f"])
    board = player.board = shogi.Board()
    for move in ("7g7f", "3c3d", "2g2f"):
        board.push_usi(move)
    player.position(["startpos", "moves", "2g2f", "3c3d", "1g1f"])
    assert player.board.sfen().startswith("lnsgkgsnl/1r5b1/pppppp1pp/6p2/9/7PP/PPPPPPP2/")


def test_a_go_before_isready_loads(monkeypatch):
    monkeypatch.setattr(evaluator, "load_network", lambda path: make_network("policy", channels=8))
    said = []
    player = PolicyPlayer(policy_options(), said.append)
    assert rules.is_legal(player.board, shogi.Move.from_usi(player.choose(Go())))


@pytest.mark.long
def test_after_a_model_was_refused_the_earlier_one_is_loaded_again(monkeypatch, tmp_path):
    monkeypatch.setattr(evaluator, "load_network", lambda path: make_network(path.name, channels=8))
    player = MCTSPlayer()
    for name in ("policy", "value", "policy"):
        player.setoption(["name", "modelfile", "value", str(tmp_path / name)])
        if name == "value":
            with pytest.raises(FatalError, match="has no policy"):
                player.prepare()
        else:
            player.prepare()
            assert rules.is_legal(player.board, shogi.Move.from_usi(player.choose(Go())))


def test_a_model_that_changed_on_disk_is_read_again(monkeypatch, tmp_path):
    loads = []

    def load_network(path):
        loads.append(path)
        return make_network("policy", channels=8)

    monkeypatch.setattr(evaluator, "load_network", load_network)
    model = tmp_path / "model"
    model.write_bytes(b"one")
    options = policy_options()
    options.set("modelfile", str(model))
    player = PolicyPlayer(options)
    player.prepare()
    player.prepare()
    assert len(loads) == 1
    model.write_bytes(b"another")
    player.prepare()
    assert len(loads) == 2
