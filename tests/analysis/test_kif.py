"""Analyzed games as KIF."""

import re

import pytest
import shogi
import shogi.KIF
from analysis_helpers import GAME, ROOT, game_of, small_network

from pydlshogi.analysis.analyzed import analyze
from pydlshogi.analysis.kif import kif_lines, write_kif
from pydlshogi.analysis.opinion import Candidate, Opinion
from pydlshogi.analysis.pictures import summary_text
from pydlshogi.analysis.record import GameRecord, read_record
from pydlshogi.kifu.kif import parse_kif
from pydlshogi.kifu.parsed_game import DRAW

HANDICAP = "lnsgkgsnl/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1"
WITH_HANDS = "4k4/9/4P4/9/9/9/9/9/4K4 w G16Pr2b 1"


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    return small_network(tmp_path_factory.mktemp("model"))


def without_opinion(record):
    return analyze(record, [Opinion([], None)] * (len(record.moves) + 1))


@pytest.mark.parametrize("suffix, encoding", [(".kif", "cp932"), (".kifu", "utf-8")])
def test_the_file_reads_back_as_the_same_game(suffix, encoding, network, tmp_path):
    record = read_record(GAME)
    path = tmp_path / f"new/a{suffix}"
    write_kif(analyze(record, network.opinions(record.boards())), path, "model")
    again = read_record(path)
    assert (again.names, again.moves, again.end_mark, again.winner) == (
        record.names,
        record.moves,
        record.end_mark,
        record.winner,
    )
    assert "第1候補" in path.read_bytes().decode(encoding)


def test_python_shogi_reads_the_same_moves(network, tmp_path):
    record = read_record(GAME)
    write_kif(analyze(record, network.opinions(record.boards())), tmp_path / "a.kif", "model")
    (game,) = shogi.KIF.Parser.parse_file(str(tmp_path / "a.kif"))
    assert game["moves"] == [move.usi() for move in record.moves]


@pytest.mark.parametrize(
    "path", sorted((ROOT / "kifu/test").glob("*.csa"))[:10], ids=lambda p: p.name
)
def test_games_keep_their_moves_and_results(path):
    record = read_record(path)
    text = "\n".join(kif_lines(without_opinion(record), "m")).encode()
    game = parse_kif(text)
    assert len(game.moves) == len(record.moves)
    assert game.winner == record.winner


@pytest.mark.parametrize("sfen, move", [(HANDICAP, "7a6b"), (WITH_HANDS, "R*5b")])
def test_other_start_positions_are_kept(sfen, move, tmp_path):
    write_kif(without_opinion(game_of(move, sfen=sfen)), tmp_path / "a.kif", "m")
    again = read_record(tmp_path / "a.kif")
    assert again.start.sfen() == shogi.Board(sfen).sfen()
    assert [m.usi() for m in again.moves] == [move]


@pytest.mark.parametrize(
    "mark, winner",
    [
        ("%TORYO", 1),
        ("%KACHI", 0),
        ("%KACHI", 1),  # a declaration that was refused
        ("%SENNICHITE", None),
        ("%JISHOGI", None),
        ("%CHUDAN", None),
        ("%ILLEGAL_MOVE", 1),
        ("%-ILLEGAL_ACTION", 0),
        ("%+ILLEGAL_ACTION", 1),
        (None, None),
        (None, 0),  # known from a summary
        (None, 1),
    ],
)
def test_ends_keep_their_winner(mark, winner):
    base = game_of("7g7f", "3c3d")
    record = GameRecord(base.names, base.start, base.moves, mark, winner)
    text = "\n".join(kif_lines(without_opinion(record), "m")).encode()
    assert parse_kif(text).winner == winner


@pytest.mark.parametrize("end", ["%SENNICHITE\n", "'summary:sennichite:a draw:b draw\n"])
def test_a_drawn_game_stays_drawn(end, tmp_path):
    (tmp_path / "a.csa").write_text(f"PI\n+\n+7776FU\n-3334FU\n{end}")
    lines = kif_lines(without_opinion(read_record(tmp_path / "a.csa")), "m")
    assert parse_kif("\n".join(lines).encode()).result == DRAW


def test_the_values_are_centipawns_for_black(network):
    record = read_record(GAME)
    game = analyze(record, network.opinions(record.boards()))
    lines = list(kif_lines(game, "m"))
    home = [int(line.partition("=")[2]) for line in lines if line.startswith("*#評価値=")]
    gui = [int(re.search("評価値 (-?[0-9]+)", line)[1]) for line in lines if "**解析" in line]
    assert home == gui
    assert len(home) == len(game.opinions)
    for value, win in zip(home, game.black_wins()):
        assert (value > 0) == (win > 0.5) or value == 0


def test_a_model_without_values_writes_none(network):
    lines = list(kif_lines(without_opinion(read_record(GAME)), "m"))
    assert not [line for line in lines if "評価値" in line or "勝率" in line]


def candidates(probabilities):
    return [Candidate(shogi.Move.from_usi(usi), p) for usi, p in probabilities.items()]


def test_the_comments_give_rank_candidates_and_values():
    opinions = [
        Opinion(candidates({"2g2f": 0.5, "7g7f": 0.25}), 0.5),
        Opinion(candidates({"8c8d": 0.6, "3c3d": 0.3}), 0.375),
        Opinion([], 0.75),
    ]
    game = analyze(game_of("7g7f", "3c3d"), opinions)
    comments = [line for line in kif_lines(game, "m") if re.match(r"\*[^*#]", line)]
    assert comments == [
        "*pydlshogi（m）による解析",
        "*先手：第1候補との一致 0/1（0%）",
        "*先手：勝率の低下 1手平均0.0%",
        "*後手：第1候補との一致 0/1（0%）",
        "*後手：勝率の低下 1手平均12.5%",
        "*第2候補 25.0%",
        "*候補手：▲２六歩(27) 50.0%、▲７六歩(77) 25.0%",
        "*先手の勝率 50.0% → 62.5%（+12.5）",
        "*第2候補 30.0%",
        "*候補手：△８四歩(83) 60.0%、△３四歩(33) 30.0%",
        "*後手の勝率 37.5% → 25.0%（-12.5）",
    ]
    text = summary_text(game.summary(shogi.WHITE), shogi.WHITE, "ja")
    assert text == "後手：1手中0手がモデルの第1候補と一致（0%）、勝率の低下は1手平均12.5%"
    assert "; mean loss" in summary_text(game.summary(shogi.WHITE), shogi.WHITE, "en")


def test_names_cannot_add_lines():
    record = GameRecord(("a\n   1 投了", "b"), shogi.Board(), game_of("7g7f").moves)
    lines = list(kif_lines(without_opinion(record), "m\r\nx"))
    assert all("\n" not in line and "\r" not in line for line in lines)


def test_a_name_keeps_its_wide_space(tmp_path):
    record = GameRecord(("羽生　善治", "b"), shogi.Board(), game_of("7g7f").moves)
    write_kif(without_opinion(record), tmp_path / "a.kif", "m")
    assert read_record(tmp_path / "a.kif").names[0] == "羽生　善治"


@pytest.mark.parametrize(
    "suffix, shown", [(".kif", ["～－―∥￠￡￢", "?"]), (".kifu", ["〜−—‖¢£¬", "🏆"])]
)
def test_names_keep_what_the_encoding_can_show(suffix, shown, tmp_path):
    record = GameRecord(("〜−—‖¢£¬", "🏆"), shogi.Board(), game_of("7g7f").moves)
    write_kif(without_opinion(record), tmp_path / f"a{suffix}", "m")
    assert list(read_record(tmp_path / f"a{suffix}").names) == shown
