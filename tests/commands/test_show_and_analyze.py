"""show_position, analyze_kifu and export_onnx as whole programs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import shogi
from analysis_helpers import GAME, ROOT, game_of, save_small

from pydlshogi.analysis.record import read_record
from pydlshogi.commands import analyze_kifu, export_onnx, show_position

pytest.importorskip("matplotlib_fontja")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(save_small(tmp_path_factory.mktemp("model") / "small"))


def fails(main, *arguments, capsys):
    """Runs a program that must fail, and returns its only line."""
    assert main([str(argument) for argument in arguments]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize(
    "position",
    [
        [str(GAME), "--ply", "30"],
        ["startpos"],
        ["startpos", "moves", "7g7f", "3c3d"],
        [shogi.STARTING_SFEN],
        ["sfen", *shogi.STARTING_SFEN.split(), "moves", "7g7f"],
    ],
)
def test_a_position_becomes_a_picture(position, model, tmp_path):
    output = tmp_path / "new" / "a.svg"
    status = show_position.main([*position, "--model", model, "-o", str(output), "-g", "-1"])
    assert status == 0
    assert "<svg" in output.read_text(encoding="utf-8")


@pytest.mark.long
def test_without_model_the_shipped_one_with_a_value_is_asked(tmp_path):
    output = tmp_path / "a.svg"
    assert show_position.main(["startpos", "-o", str(output), "-g", "-1"]) == 0
    default = output.read_bytes()
    for name, is_default in (("model_policy_value", True), ("model_policy", False)):
        model = str(ROOT / "model" / name)
        assert show_position.main(["startpos", "-m", model, "-o", str(output), "-g", "-1"]) == 0
        assert (output.read_bytes() == default) == is_default


@pytest.mark.long
def test_the_options_change_the_picture(model, tmp_path):
    pictures = set()
    of_model = ["-m", model]
    for options in (
        of_model,
        ["--board"],
        ["--planes"],
        [*of_model, "--arrows", "0"],
        [*of_model, "--language", "ja"],
    ):
        arguments = [str(GAME), "--ply", "30", "-o", str(tmp_path / "a.png")]
        assert show_position.main([*arguments, *options]) == 0
        pictures.add((tmp_path / "a.png").read_bytes())
    assert len(pictures) == 5


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["no.csa"], "record no.csa cannot be read"),
        (["startpos", "moves", "7g7e"], "move 1, '7g7e', cannot be played"),
        (["no game.KIF"], "record no game.KIF cannot be read"),
        ([str(GAME), "--ply", "110"], "has 109 moves"),
        (["startpos", "moves", "7g7f", "--ply", "5"], "has 1 move, so there is no position"),
        (["startpos", "--ply", "1"], "after move 1. Give no number."),
        ([str(GAME), "--game", "2"], "no game number 2"),
        (["startpos", "--game", "2"], "--game is for a file with several games"),
        (["startpos", "-m", "no_model"], "no_model"),
    ],
)
def test_a_mistake_is_one_sentence(arguments, message, tmp_path, capsys):
    line = fails(show_position.main, *arguments, "-o", tmp_path / "a.png", capsys=capsys)
    assert line.startswith("show_position: error: ")
    assert message in line
    assert not (tmp_path / "a.png").exists()


PROBLEM = """後手の持駒：なし
  ９ ８ ７ ６ ５ ４ ３ ２ １
+---------------------------+
| ・ ・ ・ ・v玉 ・ ・ ・ ・|一
| ・ ・ ・ ・ ・ ・ ・ ・ ・|二
| ・ ・ ・ ・ 歩 ・ ・ ・ ・|三
| ・ ・ ・ ・ ・ ・ ・ ・ ・|四
| ・ ・ ・ ・ ・ ・ ・ ・ ・|五
| ・ ・ ・ ・ ・ ・ ・ ・ ・|六
| ・ ・ ・ ・ ・ ・ ・ ・ ・|七
| ・ ・ ・ ・ ・ ・ ・ ・ ・|八
| ・ ・ ・ ・ 玉 ・ ・ ・ ・|九
+---------------------------+
先手の持駒：金二
"""
SFEN = "4k4/9/4P4/9/9/9/9/9/4K4 b 2G 1"
CSA_PROBLEM = "P-51OU\nP+53FU59OU\nP+00KI00KI\n+\n"


@pytest.mark.long
@pytest.mark.parametrize("name, text", [("a.kif", PROBLEM), ("a.csa", CSA_PROBLEM)])
def test_a_mating_problem_without_moves_is_shown(tmp_path, monkeypatch, capsys, name, text):
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text, encoding="utf-8")
    for number, position in enumerate(([name], SFEN.split())):
        assert show_position.main([*position, "--board", "-o", f"{number}.png"]) == 0
    assert Path("0.png").read_bytes() == Path("1.png").read_bytes()
    assert "it has no moves" in fails(analyze_kifu.main, name, capsys=capsys)


@pytest.mark.parametrize(
    "name, text, message",
    [
        ("a.kif", "先手：A\n", "it has no moves of KIF or KI2"),
        ("a.kif", PROBLEM.replace("| ・ ・ ・ ・ 玉 ・ ・ ・ ・|九\n", ""), "nine rows"),
        ("a.csa", "N+A\n", "it has no moves"),
    ],
)
def test_a_record_without_moves_and_position_is_refused(tmp_path, capsys, name, text, message):
    (tmp_path / name).write_text(text, encoding="utf-8")
    options = ["--board", "-o", tmp_path / "a.png"]
    assert message in fails(show_position.main, tmp_path / name, *options, capsys=capsys)


def test_a_folder_may_have_the_name_of_a_start(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "startpos").mkdir()
    assert show_position.main(["startpos", "--board", "-o", "a.png"]) == 0


@pytest.mark.parametrize("language", ["en", pytest.param("ja", marks=pytest.mark.long)])
def test_a_game_becomes_kif_graph_and_page(language, model, tmp_path, capsys):
    arguments = [str(GAME), "-m", model, "-o", str(tmp_path / "new"), "--language", language]
    assert analyze_kifu.main([*arguments, "--seconds", "0"]) == 0
    printed = capsys.readouterr().out.splitlines()
    names = [f"02027_analysis{suffix}" for suffix in (".kif", ".png", ".html")]
    assert printed == [str(tmp_path / "new" / name) for name in names]
    again = read_record(tmp_path / "new" / names[0])
    assert again.moves == read_record(GAME).moves
    page = (tmp_path / "new" / names[2]).read_text(encoding="utf-8")
    assert ("先手 Black: " in page) == (language == "en")
    assert "model_policy" not in page


@pytest.mark.long
def test_results_of_records_with_one_name_are_told_apart_and_earlier_ones_kept(
    model, tmp_path, capsys
):
    names = ["a.csa", "sub/a.csa"]
    (tmp_path / "sub").mkdir()
    arguments = ["-m", model, "-o", str(tmp_path / "out")]
    suffixes = [".kif", ".png", ".html"]
    for name in names:
        (tmp_path / name).write_bytes(GAME.read_bytes())
        assert analyze_kifu.main([str(tmp_path / name), *arguments]) == 0
        found = {path.name for path in (tmp_path / "out").iterdir()}
        assert {f"a_analysis{suffix}" for suffix in suffixes} <= found
    # The second record was another one of the same name.
    assert {f"a_analysis{suffix}.old" for suffix in suffixes} <= found
    assert capsys.readouterr().err.count("exists already; its content is kept as") == 3
    (tmp_path / "a.kif").write_bytes((tmp_path / "out" / "a_analysis.kif").read_bytes())
    assert analyze_kifu.main([str(tmp_path / "a.kif"), *arguments]) == 0
    assert all((tmp_path / "out" / f"a_kif_analysis{suffix}").exists() for suffix in suffixes)
    assert capsys.readouterr().err == ""


@pytest.mark.long
@pytest.mark.parametrize("options", [[], ["--seconds", "0.2"]])
def test_a_game_is_analyzed_by_a_search(options, model, tmp_path):
    game = game_of("7g7f", "3c3d")
    record = tmp_path / "short.csa"
    record.write_text("PI\n+\n+7776FU\n-3334FU\n%TORYO\n")
    arguments = [str(record), "-m", model, "-o", str(tmp_path)]
    assert analyze_kifu.main([*arguments, *options]) == 0
    assert read_record(tmp_path / "short_analysis.kif").moves == game.moves
    text = (tmp_path / "short_analysis.kif").read_bytes().decode("cp932")
    assert "読み筋 ▲" in text
    assert "ノード数 1 " not in text
    assert "回）" in text
    page = (tmp_path / "short_analysis.html").read_text(encoding="utf-8")
    assert "0.2 s of search a position" in page


def test_without_a_search_the_network_is_asked_alone(model, tmp_path):
    record = tmp_path / "short.csa"
    record.write_text("PI\n+\n+7776FU\n-3334FU\n%TORYO\n")
    assert analyze_kifu.main([str(record), "-m", model, "-o", str(tmp_path), "--seconds", "0"]) == 0
    text = (tmp_path / "short_analysis.kif").read_bytes().decode("cp932")
    assert "読み筋 ▲" in text  # the policy's first choice
    assert "深さ 1 ノード数 1 " in text
    assert "of search" not in (tmp_path / "short_analysis.html").read_text(encoding="utf-8")


HANDICAP = """棋戦：練習将棋
手合割：二枚落ち
下手：甲
上手：乙
手数----指手---------消費時間--
   1 ６二銀(71)   ( 0:12/00:00:12)
   2 ７六歩(77)   ( 1:05/00:01:05)
   3 投了
"""


def test_a_handicap_game_keeps_its_handicap_sides_and_times(model, tmp_path):
    (tmp_path / "game.kif").write_text(HANDICAP, encoding="utf-8")
    arguments = [str(tmp_path / "game.kif"), "-m", model, "-o", str(tmp_path), "--seconds", "0"]
    assert analyze_kifu.main([*arguments, "--language", "ja"]) == 0
    text = (tmp_path / "game_analysis.kif").read_bytes().decode("cp932")
    for line in (
        *("手合割：二枚落ち", "下手：甲", "上手：乙", "棋戦：練習将棋", "まで2手で下手の勝ち"),
        *("   1 ６二銀(71)   ( 0:12/00:00:12)", "   2 ７六歩(77)   ( 1:05/00:01:05)"),
    ):
        assert line in text.splitlines()
    assert "*上手の勝率" in text
    assert "先手" not in text
    page = (tmp_path / "game_analysis.html").read_text(encoding="utf-8")
    assert page.count("駒落ちの棋譜を学習していない") == 1
    assert '"sides":["下手","上手"]' in page
    again = read_record(tmp_path / "game_analysis.kif")
    assert (again.handicap, again.winner, again.names) == ("二枚落ち", shogi.BLACK, ("甲", "乙"))


@pytest.mark.long
def test_an_even_game_has_no_warning_about_handicaps(model, tmp_path):
    assert analyze_kifu.main([str(GAME), "-m", model, "-o", str(tmp_path), "--seconds", "0"]) == 0
    page = (tmp_path / "02027_analysis.html").read_text(encoding="utf-8")
    assert "not trained on handicap" not in page.partition("<script>")[0]


def test_a_policy_model_cannot_search(tmp_path, capsys):
    model = save_small(tmp_path / "policy", "policy")
    line = fails(analyze_kifu.main, GAME, "-m", model, "--seconds", 1, capsys=capsys)
    assert "cannot search: that needs a policy and a value" in line


@pytest.mark.long
def test_a_policy_model_analyzes_without_values(tmp_path, capsys):
    model = save_small(tmp_path / "policy", "policy")
    (tmp_path / "02027_analysis.kif").write_bytes(b"with comments of a person")
    assert analyze_kifu.main([str(GAME), "-m", str(model), "-o", str(tmp_path)]) == 0
    out = capsys.readouterr()
    assert out.out.count("policy has no value, so its network is asked without a search.") == 1
    assert "評価値" not in (tmp_path / "02027_analysis.kif").read_bytes().decode("cp932")
    assert "its content is kept as" in out.err
    assert (tmp_path / "02027_analysis.kif.old").read_bytes() == b"with comments of a person"


@pytest.mark.parametrize("output, kind", [("file", "folder .* cannot be made"), ("", "a folder")])
def test_an_output_that_cannot_be_written_is_found_before_the_analysis(
    output, kind, model, tmp_path, capsys, monkeypatch
):
    (tmp_path / "file").write_text("")
    (tmp_path / "02027_analysis.html").mkdir()
    monkeypatch.setattr(analyze_kifu, "load_model", None)
    line = fails(analyze_kifu.main, GAME, "-m", model, "-o", tmp_path / output, capsys=capsys)
    assert re.search(f"--output .*{kind}", line)


@pytest.mark.long
def test_openvino_analyzes_alike_and_is_named_if_it_is_missing(
    model, tmp_path, capsys, monkeypatch
):
    pytest.importorskip("openvino")
    for backend in ("own", "openvino_float32"):
        output = tmp_path / backend
        options = ["-m", model, "--backend", backend, "-o", str(output), "--seconds", "0"]
        assert analyze_kifu.main([str(GAME), *options]) == 0
    name = f"{GAME.stem}_analysis.kif"
    assert (tmp_path / "own" / name).read_bytes() == (output / name).read_bytes()
    monkeypatch.setitem(sys.modules, "openvino", None)
    line = fails(analyze_kifu.main, GAME, *options, capsys=capsys)
    assert "backend openvino_float32 cannot be used: the package openvino is not installed" in line


@pytest.mark.long
def test_auto_names_the_backend_that_it_chose(model, tmp_path, capsys):
    options = ["-m", model, "--backend", "auto", "-o", str(tmp_path), "--seconds", "0"]
    assert analyze_kifu.main([str(GAME), *options]) == 0
    assert re.match(r"backend: (own|openvino_bfloat16|openvino_int8)\n", capsys.readouterr().out)


def test_a_backend_without_effect_is_refused(model, capsys):
    options = ["-m", model, "--backend", "auto", "--convolution", "chainer"]
    with pytest.raises(SystemExit):
        analyze_kifu.main([str(GAME), *options])
    assert "--backend has no effect with --convolution chainer" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize("options", [[], ["--dlshogi"]])
def test_a_model_becomes_onnx(options, model, tmp_path, capsys):
    pytest.importorskip("onnxruntime")
    output = tmp_path / "new" / "a.onnx"
    assert export_onnx.main([model, str(output), *options]) == 0
    assert output.exists()
    assert capsys.readouterr().out.count("largest difference to the network") == 2


def test_a_file_that_a_conversion_replaces_is_kept(model, tmp_path, capsys):
    pytest.importorskip("onnxruntime")
    output = tmp_path / "other_model"
    output.write_bytes(b"days of training")
    assert export_onnx.main([model, str(output)]) == 0
    assert "other_model.old" in capsys.readouterr().err
    assert (tmp_path / "other_model.old").read_bytes() == b"days of training"


def test_a_model_is_not_overwritten_by_its_conversion(model, capsys):
    pytest.importorskip("onnxruntime")
    assert "is the same file as model" in fails(export_onnx.main, model, model, capsys=capsys)


@pytest.mark.parametrize("what", ["--board", "--planes"])
@pytest.mark.parametrize("option", [["--model", "a"], ["--arrows", "3"], ["--threads", "1"]])
def test_options_of_a_model_are_refused_where_there_is_none(what, option, tmp_path, capsys):
    with pytest.raises(SystemExit):
        show_position.main(["startpos", "-o", str(tmp_path / "a.png"), what, *option])
    assert f"{option[0]} has no effect with {what}" in capsys.readouterr().err


@pytest.mark.parametrize("main", [show_position.main, analyze_kifu.main])
def test_an_empty_name_is_not_the_current_folder(main, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["", "-o", str(tmp_path / "a.png")])
    assert "the name of the file is missing" in capsys.readouterr().err


def test_a_policy_model_is_refused_for_dlshogi(tmp_path, capsys):
    pytest.importorskip("onnxruntime")
    model = save_small(tmp_path / "policy", "policy")
    line = fails(export_onnx.main, model, tmp_path / "a.onnx", "--dlshogi", capsys=capsys)
    assert line.startswith(f"export_onnx: error: model file {model}: dlshogi needs")
    assert not (tmp_path / "a.onnx").exists()


@pytest.mark.parametrize("name", ["show_position", "analyze_kifu", "export_onnx"])
def test_help_imports_nothing_heavy(name):
    code = (
        f"import sys; from pydlshogi.commands.{name} import build_parser; build_parser(); "
        "heavy = 'numpy', 'chainer', 'matplotlib', 'onnx', 'shogi'; "
        "print([name for name in heavy if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert result.stdout.strip() == "[]"
