"""The library: what ``import pydlshogi`` offers."""

import ast
import inspect
import re
import subprocess
import sys
import threading
import urllib.request

import pytest
import shogi
from analysis_helpers import GAME, MATE, ROOT, save_small

import pydlshogi
from pydlshogi.errors import UserError

KIF = """開始日時：2026/11/28 10:00
棋戦：練習将棋
手合割：二枚落ち
下手：甲
上手：乙
手数----指手---------消費時間--
*the start
   1 ６二銀(71)   ( 0:12/00:00:12)
   2 ７六歩(77)   ( 1:05/00:01:05)
*a comment
*of two lines
   3 投了
まで2手で下手の勝ち
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return pydlshogi.load(save_small(tmp_path_factory.mktemp("model") / "small"), gpu=-1)


@pytest.fixture
def handicap_game(tmp_path):
    (tmp_path / "game.kif").write_text(KIF, encoding="utf-8")
    return pydlshogi.read(tmp_path / "game.kif")


def test_the_import_is_light():
    code = (
        "import pydlshogi, sys; "
        "print([name for name in ('numpy', 'chainer', 'shogi', 'typing') if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, cwd=ROOT
    )
    assert result.stdout.strip() == "[]", result.stderr


def test_every_old_python_can_read_the_package():
    """No syntax is newer than Python 2.7: no annotations, keyword-only arguments or f-strings."""
    text = (ROOT / "pydlshogi/__init__.py").read_text(encoding="utf-8")
    assert text.isascii()  # else, Python 2 would ask for the encoding
    tree = ast.parse(text)
    for node in ast.walk(tree):
        assert not isinstance(node, (ast.AnnAssign, ast.JoinedStr, ast.AsyncFunctionDef))
        if isinstance(node, ast.arguments):
            assert not (node.kwonlyargs or node.posonlyargs)
            assert not any(argument.annotation for argument in node.args)


@pytest.mark.parametrize("name", pydlshogi.__all__)
def test_every_function_is_described(name):
    function = getattr(pydlshogi, name)
    assert inspect.getdoc(function)
    assert f"pydlshogi.{name}(" in (ROOT / "docs/library.md").read_text(encoding="utf-8")


def test_without_a_name_the_engines_model_is_loaded():
    model = pydlshogi.load(gpu=-1)
    assert model.name == "model_policy_value"
    assert model.has_policy
    assert model.has_value


def test_the_same_position_in_every_form_gets_the_same_opinion(model):
    board = shogi.Board()
    board.push_usi("7g7f")
    asked = ["startpos moves 7g7f", board.sfen(), f"sfen {board.sfen()}", board]
    opinions = [model.evaluate(position) for position in asked]
    opinions.append(model.evaluate(opinions[0].position))
    opinions.append(model.evaluate(opinions[0]))
    for opinion in opinions:
        assert opinion.moves == opinions[0].moves
        assert opinion.value == opinions[0].value
        assert 0 < opinion.value < 1
        assert opinion.visits == 0
    move, probability = opinions[0].moves[0]
    assert probability == max(row.probability for row in opinions[0].moves)
    assert shogi.Move.from_usi(move) in board.legal_moves
    assert [move.usi() for move in board.move_stack] == ["7g7f"]  # the board is as before


def test_many_positions_get_the_opinions_of_each(model):
    game = pydlshogi.read(GAME)
    opinions = model.evaluate_all(game)
    assert len(opinions) == len(game.moves) + 1
    alone = model.evaluate(game.position(50))
    assert alone.moves[0].move == opinions[50].moves[0].move
    assert alone.value == pytest.approx(opinions[50].value, abs=1e-5)


def test_a_search_gives_visits_values_and_lines(model):
    found = model.search("startpos", nodes=50)
    best = found.moves[0]
    assert found.visits >= 50
    assert (best.move, best.value) == (best.line[0], found.value)
    assert best.visits == max(row.visits for row in found.moves)
    assert {row.move for row in found.moves} == {m.usi() for m in shogi.Board().legal_moves}
    assert model.search(f"sfen {MATE}", seconds=5).value == 1


def test_a_search_of_a_side_that_may_declare_has_rows_of_a_search(model):
    found = model.search("sfen 4K4/GGGGSSSSR/+R8/9/9/9/9/9/4k4 b 2B 1", seconds=5)
    assert found.value == 1
    assert {(row.visits, row.value, row.share) for row in found.moves} == {(0, None, 0.0)}


@pytest.mark.parametrize("limits", [{"nodes": 0}, {"seconds": 0}, {"seconds": -1, "nodes": 5}])
def test_a_search_needs_a_limit_above_0(limits, model):
    with pytest.raises(UserError, match="above 0"):
        model.search("startpos", **limits)


def test_a_model_without_a_value_has_moves_alone(tmp_path):
    model = pydlshogi.load(save_small(tmp_path / "policy", "policy"), gpu=-1)
    opinion = model.evaluate("startpos")
    assert opinion.value is None
    assert len(opinion.moves) == 30
    assert "<svg" in opinion._repr_svg_()
    with pytest.raises(UserError, match="policy and a value"):
        model.search("startpos")


def test_a_game_tells_what_its_record_says(handicap_game):
    game = handicap_game
    assert game.players == ("甲", "乙")
    assert (game.result, game.end, game.handicap) == ("black", "%TORYO", "二枚落ち")
    assert (game.event, game.date) == ("練習将棋", "2026/11/28 10:00")
    assert (game.moves, game.times) == (["7a6b", "7g7f"], [12.0, 65.0])
    assert game.comments == {0: "the start", 2: "a comment\nof two lines"}
    assert game.start.split()[1] == "w"
    positions = list(game)
    assert [position.moves for position in positions] == [[], ["7a6b"], ["7a6b", "7g7f"]]
    assert positions[2].sfen == game.position().sfen
    assert [move.usi() for move in positions[1].board().move_stack] == ["7a6b"]


def test_a_csa_record_has_times_and_comments_too(tmp_path):
    (tmp_path / "game.csa").write_text(
        "V2.2\nN+a\nN-b\n$EVENT:名人戦\n$START_TIME:2026/11/28 10:00:00\nPI\n+\n'*the start\n"
        "+7776FU\nT12\n'*a comment\n'** 30 -3334FU\n-3334FU,T3\n%CHUDAN\n",
        encoding="utf-8",
    )
    game = pydlshogi.read(tmp_path / "game.csa")
    assert (game.event, game.date) == ("名人戦", "2026/11/28 10:00:00")
    assert game.times == [12.0, 3.0]
    assert game.comments == {0: "the start", 1: "a comment"}
    assert game.result is None


def test_a_game_is_a_page_in_a_frame(handicap_game):
    text = handicap_game._repr_html_()
    assert text.startswith('<iframe srcdoc="')
    assert "<script" not in text  # only within the attribute, escaped
    assert "上手" in text


def test_pictures_show_the_arrows_of_the_opinion(model, tmp_path):
    opinion = model.evaluate("startpos moves 7g7f")
    plain = pydlshogi.show("startpos moves 7g7f")._repr_svg_()
    with_arrows = pydlshogi.show("startpos moves 7g7f", opinion, arrows=2)._repr_svg_()
    assert with_arrows.count("<polygon") == plain.count("<polygon") + 2
    assert plain.count("歩</text>") == 18
    assert opinion.position._repr_svg_() == plain
    assert "手番" not in plain
    assert "先手番" not in pydlshogi.show("startpos")._repr_svg_()
    assert "先手番" in pydlshogi.show("startpos", language="ja")._repr_svg_()


def test_the_picture_of_a_handicap_game_names_its_sides(handicap_game):
    for ply, sides in ((0, "上手番"), (1, "下手番")):
        picture = pydlshogi.show(handicap_game.position(ply), language="ja")._repr_svg_()
        assert sides in picture and picture.count("下手") + picture.count("上手") == 3
        assert "先手" not in picture and "後手" not in picture


def test_a_picture_is_saved(model, tmp_path):
    pytest.importorskip("matplotlib_fontja")
    opinion = model.search("startpos", nodes=20)
    pydlshogi.show("startpos", opinion).save(tmp_path / "new" / "board.png")
    assert (tmp_path / "new" / "board.png").read_bytes().startswith(b"\x89PNG")


def test_pictures_need_neither_matplotlib_nor_the_font(model, monkeypatch):
    for name in ("matplotlib", "matplotlib_fontja"):
        monkeypatch.setitem(sys.modules, name, None)
    assert "<svg" in model.evaluate("startpos")._repr_svg_()


@pytest.mark.parametrize(
    "ask, message",
    [
        (lambda model: model.evaluate("startpos moves 7g7e"), "cannot be played"),
        (lambda model: model.evaluate("nonsense"), "sfen"),
        (lambda model: model.evaluate(34), "int is no position"),
        (lambda model: pydlshogi.show("startpos", language="fr"), "Choose en or ja"),
        (
            lambda model: pydlshogi.show("startpos", model.evaluate("startpos moves 7g7f")),
            "another position",
        ),
        (lambda model: pydlshogi.read("no.kif"), "no.kif"),
        (lambda model: pydlshogi.read(GAME, 2), "no game number 2"),
        (lambda model: pydlshogi.read(GAME, 0), "no game number 0"),
        (lambda model: pydlshogi.read(GAME, -1), "no game number -1"),
        (lambda model: pydlshogi.read(GAME).position(200), "109 moves"),
        (lambda model: pydlshogi.load("no_model"), "no_model"),
        (lambda model: pydlshogi.load(__file__), "test_library.py"),
        (lambda model: pydlshogi.load(gpu=99), "GPU 99"),
        (lambda model: pydlshogi.load(network="nothing"), "nothing"),
        (lambda model: pydlshogi.show("startpos").save("a.txt"), "suffix"),
    ],
)
def test_an_error_is_a_sentence_without_options_of_a_command_line(ask, message, model):
    with pytest.raises(UserError) as found:
        ask(model)
    assert message in str(found.value)
    assert not re.search(r"--[a-z]", str(found.value))


def test_the_board_is_served_and_a_second_one_replaces_it(tmp_path, monkeypatch):
    monkeypatch.setattr("pydlshogi.files.games_folder", lambda: tmp_path)
    monkeypatch.setattr("webbrowser.open", lambda address: True)
    model = save_small(tmp_path / "small")
    first = pydlshogi.play(str(model))
    assert urllib.request.urlopen(first.address).status == 200
    second = pydlshogi.play([str(model)])
    assert urllib.request.urlopen(second.address).status == 200
    with pytest.raises(OSError):
        urllib.request.urlopen(first.address)
    second.close()


def test_a_browser_that_does_not_return_delays_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("pydlshogi.files.games_folder", lambda: tmp_path)
    ended, asked = threading.Event(), []
    monkeypatch.setattr("webbrowser.open", lambda address: asked.append(ended.wait(60)))
    pydlshogi.play(str(save_small(tmp_path / "small"))).close()
    assert asked == []
    ended.set()


def test_a_notebook_shows_the_board_in_a_frame(tmp_path, monkeypatch):
    pytest.importorskip("IPython")
    shown = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    monkeypatch.setattr("pydlshogi.files.games_folder", lambda: tmp_path)
    monkeypatch.setattr("webbrowser.open", lambda address: True)
    board = pydlshogi.play(str(save_small(tmp_path / "small")), height=500)
    board._ipython_display_()
    board.close()
    assert (shown[0].src, shown[0].height) == (board.address, 500)
