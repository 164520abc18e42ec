"""The page of a game: complete, safe, and working in a browser."""

import base64
import dataclasses
import html
import io
import json
import random
import re
import shutil
import subprocess

import pytest
import shogi

from pydlshogi.drawing.page import GamePage, PageCandidate, PageMove, PagePosition, write_page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def make_page(title="☗ a - ☖ b", win=0.75):
    board = shogi.Board()
    line = "2g2f 8c8d", "▲２六歩(27) △８四歩(83)"
    start = PagePosition(
        board.sfen(), win, [PageCandidate("2g2f", "▲２六歩(27)", 0.6, 0.55, 12, *line)]
    )
    board.push_usi("7g7f")
    end = PagePosition(board.sfen(), win)
    move = PageMove("7g7f", "▲７六歩(77)", 2, 0.25, 0.75, 0.5)
    return GamePage(title, ["note 1"], [start, end], [move], "%TORYO")


def written(page, tmp_path, language="ja"):
    write_page(page, tmp_path / "new" / "page.html", language=language)
    return (tmp_path / "new" / "page.html").read_text(encoding="utf-8")


def data_of(text):
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])


def test_the_page_loads_nothing(tmp_path):
    text = written(make_page(), tmp_path)
    assert "default-src 'none'" in text
    assert not re.search(r"https?:|//[a-z]+\.|<link|<img|src=", text)


def test_the_data_survive_names_that_look_like_html_or_marks(tmp_path):
    name = "</script><b>@data@ & '\"\u2028"
    text = written(make_page(name), tmp_path)
    assert data_of(text)["positions"][0]["moves"] == [
        {
            **{"usi": "2g2f", "text": "▲２六歩(27)", "p": 0.6, "value": 0.55, "visits": 12},
            **{"line": "2g2f 8c8d", "texts": "▲２六歩(27) △８四歩(83)"},
        }
    ]
    assert html.unescape(re.search("<title>(.*?)</title>", text, re.DOTALL)[1]) == name
    assert text.count("</script>") == 2


@pytest.mark.parametrize("has_font", [True, False])
def test_a_file_name_that_is_no_text_is_written_with_question_marks(
    has_font, tmp_path, monkeypatch
):
    if not has_font:
        monkeypatch.setattr("pydlshogi.drawing.page.font_subset", lambda text: None)
    page = dataclasses.replace(make_page("\udcff"), notes=["model m\udcff"])
    text = written(page, tmp_path)
    assert data_of(text)["notes"] == ["model m?"]
    assert "<title>?</title>" in text


def test_the_font_in_the_page_has_all_characters_of_the_page(tmp_path):
    pytest.importorskip("matplotlib_fontja")
    from fontTools.ttLib import TTFont

    text = written(make_page("☗ 羽生 - ☖ 藤井"), tmp_path)
    source = re.search(r"base64,([^)]+)\)", text)[1]
    font = TTFont(io.BytesIO(base64.b64decode(source)))
    visible = re.sub(r"@font-face.*?\}", "", text, flags=re.DOTALL)
    needed = {c for c in visible if c.isprintable() and ord(c) > 127} | set(
        "歩香桂銀金角飛玉王と杏圭全馬龍成"
    )
    assert needed <= set(map(chr, font.getBestCmap()))
    assert len(source) < 100_000


def test_without_the_font_the_page_is_written_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr("pydlshogi.drawing.font._PACKAGE", "no_such_package")
    text = written(make_page(), tmp_path)
    assert "@font-face" not in text
    assert data_of(text)["end"] == "%TORYO"


def in_browser(text, script, tmp_path):
    """Opens a page in Chromium, runs a script there, and returns the page afterwards."""
    path = tmp_path / "opened.html"
    path.write_text(text.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    options = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
        "--disable-background-networking --disable-component-update --disable-sync"
    )
    result = subprocess.run(
        [CHROMIUM, *options.split(), f"--user-data-dir={tmp_path}/user", "--dump-dom", str(path)],
        capture_output=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.decode("utf-8")


needs_chromium = pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed")


def board_of(dom):
    """The characters of the pieces on the shown board, and the number of arrows."""
    svg = re.search(r'<svg id="board".*?</svg>', dom, re.DOTALL)[0]
    return re.findall(r">([^<])</text>", svg), svg.count('fill="#174a8b" stroke="#fff"')


@pytest.mark.long
@needs_chromium
def test_the_start_position_has_forty_pieces_and_the_models_arrow(tmp_path):
    dom = in_browser(written(make_page(), tmp_path), "", tmp_path)
    characters, arrows = board_of(dom)
    assert characters.count("歩") == 18
    assert len([c for c in characters if c in "香桂銀金角飛玉王"]) == 22
    assert arrows == 1
    assert "☗ 75%" in dom
    assert "note 1" in dom


@needs_chromium
@pytest.mark.parametrize(
    "script",
    [
        "document.querySelector('[data-go=forward]').click()",
        "document.querySelector('tbody tr').click()",
        "document.onkeydown({key: 'End', preventDefault() {}})",
    ],
)
def test_a_click_or_a_key_shows_the_next_position(script, tmp_path):
    dom = in_browser(written(make_page(), tmp_path), script, tmp_path)
    assert board_of(dom)[1] == 0
    assert re.search(r'<tr class="now">.*７六歩', dom)
    assert dom.count('fill="#ffe680"') == 2


@pytest.mark.long
@needs_chromium
def test_the_turned_board_has_white_below(tmp_path):
    script = "document.querySelector('[data-go=flip]').click()"
    dom = in_browser(written(make_page(), tmp_path), script, tmp_path)
    king = re.search(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*rotate\((\d+)[^>]*>王', dom)
    assert (float(king[1]), king[3]) == (4.5, "0")
    assert float(king[2]) > 8


@pytest.mark.long
@needs_chromium
def test_a_page_without_values_has_neither_graph_nor_bar(tmp_path):
    board = shogi.Board()
    positions = [PagePosition(board.sfen())]
    board.push_usi("7g7f")
    positions.append(PagePosition(board.sfen()))
    page = GamePage("t", [], positions, [PageMove("7g7f", "▲７六歩(77)", seconds=1.25)], "")
    dom = in_browser(written(page, tmp_path, "en"), "", tmp_path)
    assert re.search(r'id="value" class="none"', dom)
    assert re.search(r'<svg id="graph"[^>]*class="none"', dom)
    assert "<th>time</th>" in dom
    assert "<th>rank</th>" not in dom


def make_game_page(mark):
    page = make_page()
    moves = [dataclasses.replace(page.moves[0], mark=mark)]
    return dataclasses.replace(page, moves=moves, kif="手合割：平手\n", about="順位戦 2026/01/01")


def board_in(dom):
    return re.search(r'<svg id="board".*?</svg>', dom, re.DOTALL)[0]


def graph_in(dom):
    return re.search(r'<svg id="graph".*?</svg>', dom, re.DOTALL)[0]


@needs_chromium
def test_the_page_opens_before_the_first_mistake_and_lists_it(tmp_path):
    dom = in_browser(written(make_game_page("bad"), tmp_path), "", tmp_path)
    assert re.search('id="verdict" class="bad">実際の指し手▲７六歩.*は悪手：勝率75%→50%', dom)
    assert re.search('id="mistakes"><li class=""><button class="bad">1 ▲７六歩.*悪手  -25.0%', dom)
    assert '<circle class="mistake"' in graph_in(dom)
    assert "順位戦" in dom
    without = in_browser(written(make_game_page(""), tmp_path), "", tmp_path)
    assert "<circle" not in graph_in(without)
    assert re.search('id="mistakes"><li class="">なし', without)


@pytest.mark.long
@needs_chromium
def test_the_graph_has_axes_with_percentages_and_move_numbers(tmp_path):
    dom = in_browser(written(make_game_page("bad"), tmp_path), "", tmp_path)
    assert re.findall(">([^<]+)</text>", graph_in(dom)) == [
        "先手の勝率",
        "0%",
        "50%",
        "100%",
        "0",
        "1",
    ]


@pytest.mark.long
@needs_chromium
@pytest.mark.parametrize(
    "script, shown",
    [
        ("document.querySelector('#candidates button').click()", "２六"),
        ("document.querySelectorAll('#line button')[1].click()", "８四"),
        (
            "document.querySelector('#candidates button').click();"
            "document.onkeydown({key: 'ArrowRight', preventDefault() {}})",
            "８四",
        ),
    ],
)
def test_a_candidate_plays_on_the_board(script, shown, tmp_path):
    dom = in_browser(written(make_page(), tmp_path), script, tmp_path)
    characters, arrows = board_of(dom)
    assert characters.count("歩") == 18
    assert arrows == 0
    (now,) = re.findall('<button class="now">([^<]+)<', dom)
    assert shown in now
    assert board_in(dom).count('fill="#ffe680"') == 2


@pytest.mark.long
@needs_chromium
def test_a_line_is_left_for_the_game(tmp_path):
    script = (
        "document.querySelector('#candidates button').click();"
        "document.onkeydown({key: 'ArrowLeft', preventDefault() {}})"
    )
    dom = in_browser(written(make_page(), tmp_path), script, tmp_path)
    assert board_of(dom)[1] == 1
    assert "本譜に戻る</button>" not in dom


@pytest.mark.long
@needs_chromium
def test_the_page_plays_moves_as_python_shogi_does(tmp_path):
    """Random games with captures, promotions and drops."""
    choice = random.Random(5).choice
    games = []
    for _ in range(6):
        board, moves, sfens = shogi.Board(), [], []
        for _ in range(120):
            legal = list(board.legal_moves)
            if not legal:
                break
            moves.append(choice(legal))
            board.push(moves[-1])
            sfens.append(board.sfen())
        games.append(([move.usi() for move in moves], sfens))
    script = (
        f"const games = {json.dumps(games)}; let wrong = 0;"
        f"for (const [moves, sfens] of games) {{ let sfen = '{shogi.STARTING_SFEN}';"
        "moves.forEach((move, n) => { sfen = played(sfen, move); wrong += sfen !== sfens[n]; }); }"
        "document.title = `wrong: ${wrong}`;"
    )
    dom = in_browser(written(make_page(), tmp_path), script, tmp_path)
    assert "<title>wrong: 0</title>" in dom


@needs_chromium
def test_position_and_game_are_copied(tmp_path):
    script = (
        "const copied = [];"
        "document.execCommand = () => { copied.push(document.activeElement.value); return true; };"
        "document.querySelector('[data-go=\"copy sfen\"]').click();"
        "document.querySelector('[data-go=\"copy kif\"]').click();"
        "document.title = JSON.stringify(copied);"
    )
    dom = in_browser(written(make_game_page(""), tmp_path), script, tmp_path)
    title = html.unescape(re.search("<title>(.*?)</title>", dom, re.DOTALL)[1])
    assert json.loads(title) == [shogi.STARTING_SFEN, "手合割：平手\n"]
