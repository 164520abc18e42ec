"""The board in a real browser: chromium and its driver. Without them, these tests are left out."""

import ast
import base64
import random
import shutil
from pathlib import Path

import pytest
from browser_helpers import HUMANS, RANDOM, EngineSpec, engine

from pydlshogi import browser
from pydlshogi.browser.engines import Pool, Seat
from pydlshogi.errors import UserError

webdriver = pytest.importorskip("selenium.webdriver")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
if not (CHROMIUM and DRIVER):
    pytest.skip("chromium or chromedriver is missing", allow_module_level=True)

from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import Select, WebDriverWait  # noqa: E402

pytestmark = pytest.mark.long

#: No page of the internet is reached, and no profile of the user is read.
_OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--lang=en",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=1200,1000",
]

#: Where the middle of a square, or of a piece in hand, stands on the screen.
_PLACE = """
const board = document.getElementById("board"), [at] = arguments;
const [x, y] = at[1] === "*" ? board.places[game.turn][at[0]] : seen(...square(at));
const place = new DOMPoint(x, y).matrixTransform(board.getScreenCTM());
return [place.x, place.y];
"""


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    options = webdriver.ChromeOptions()
    for option in (*_OPTIONS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(option)
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_page_load_timeout(120)
    driver.set_script_timeout(120)
    yield driver
    driver.quit()


class Page:
    """A tab with the board."""

    def __init__(self, driver, client):
        self.driver, self.client = driver, client

    def open(self, name=""):
        self.driver.get(self.client.address + (f"?game={name}" if name else ""))
        self.wait("return offer !== null")
        if name:
            self.wait("return game !== null")
        return self

    def new(self, players=HUMANS, **wish):
        self.name = self.client.new(players, **wish)
        return self.open(self.name)

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def wait(self, text, *arguments, seconds=60):
        """Waits until a script returns something true."""
        try:
            waiting = WebDriverWait(self.driver, seconds, 0.1)
            return waiting.until(lambda driver: driver.execute_script(text, *arguments))
        except Exception as error:
            raise AssertionError(f"{text}: {self.text('status')} {self.text('message')}") from error

    def text(self, name):
        return self.driver.find_element(By.ID, name).text

    def press(self, name):
        self.driver.find_element(By.CSS_SELECTOR, f"[data-do={name}]").click()

    def click(self, at):
        """Clicks a square such as 7g, or a piece in hand such as P*, as the pointer does."""
        x, y = self.script(_PLACE, at)
        actions = ActionChains(self.driver, duration=0)
        actions.w3c_actions.pointer_action.move_to_location(round(x), round(y))
        actions.w3c_actions.pointer_action.click()
        actions.perform()

    def drag(self, start, end):
        """Drags a piece."""
        actions = ActionChains(self.driver, duration=20)
        pointer = actions.w3c_actions.pointer_action
        for at, then in ((start, pointer.pointer_down), (end, pointer.pointer_up)):
            x, y = self.script(_PLACE, at)
            pointer.move_to_location(round(x), round(y))
            then()
        actions.perform()

    def play(self, usi):
        """Plays a move by clicks, with the answer about promotion."""
        length = self.script("return game.moves.length")
        self.click(usi[:2])
        self.click(usi[2:4])
        if self.script("return promoting !== null"):
            sign = usi[4:]
            self.driver.find_element(By.CSS_SELECTOR, f"[data-promote='{sign}']").click()
        self.wait("return game.moves.length > arguments[0]", length)

    def moves(self):
        return self.script("return game.moves")

    def faults(self):
        """Returns what the browser complains about."""
        return [
            entry["message"]
            for entry in self.driver.get_log("browser")
            if "font" not in entry["message"]
        ]


@pytest.fixture
def page(chromium, client):
    page = Page(chromium, client)
    yield page
    assert page.faults() == []
    chromium.get("about:blank")


def test_a_new_game_begins_with_two_clicks(page):
    page.open()
    page.driver.find_element(By.ID, "begin").click()
    page.wait("return game !== null")
    page.play("7g7f")
    assert page.moves()[0] == "7g7f"


def test_a_whole_game_with_promotion_drop_and_mate(page):
    page.new()
    page.play("7g7f")
    page.play("3c3d")
    page.play("8h2b+")
    assert page.script("return game.texts[2]") == "▲２二角成(88)"
    page.play("3a2b")
    page.play("B*4e")
    page.play("5a5b")
    page.play("4e3d")
    page.play("B*1e")
    assert page.script("return game.check") or page.moves()[-1] == "B*1e"
    page.client.post(f"game/{page.name}/back", ply=0)
    page.wait("return game.moves.length === 0")


def test_a_mate_shows_the_winner(page):
    page.new(start={"sfen": "sfen k8/2G6/1P7/9/9/9/9/9/8K b G 1"})
    page.play("G*8b")
    page.wait("return game.result !== null")
    assert "Black wins: no legal move" in page.text("status")


@pytest.mark.parametrize("sign", ["+", ""])
def test_the_choice_whether_to_promote_is_asked(page, sign):
    page.new(start={"sfen": "startpos moves 7g7f 3c3d"})
    page.play("8h3c" + sign)
    assert page.moves()[-1] == "8h3c" + sign


def test_a_click_elsewhere_cancels_the_choice(page):
    page.new(start={"sfen": "startpos moves 7g7f 3c3d"})
    page.click("8h")
    page.click("3c")
    assert page.driver.find_element(By.ID, "promote").is_displayed()
    page.click("9i")
    assert not page.driver.find_element(By.ID, "promote").is_displayed()
    assert len(page.moves()) == 2


def test_a_piece_is_dragged_also_on_a_turned_board(page):
    page.new()
    page.drag("7g", "7f")
    page.wait("return game.moves.length === 1")
    page.press("flip")
    page.drag("3c", "3d")
    page.wait("return game.moves.length === 2")
    page.drag("2g", "2e")  # not legal: the piece goes back
    assert page.script("return dragged === null && !busy") and len(page.moves()) == 2
    assert page.script("flipped = false; draw(); return true")


def test_a_piece_in_hand_is_dropped_and_its_targets_are_shown(page):
    page.new(start={"sfen": "4k4/9/9/9/9/9/9/9/4K4 b P 1"})
    page.click("P*")
    shown = len(page.driver.find_elements(By.CSS_SELECTOR, "#board circle[fill='#1a7f37']"))
    assert shown == len({move[2:4] for move in page.script("return game.legal") if move[0] == "P"})
    page.click("3e")
    page.wait("return game.moves.length === 1")
    assert page.moves() == ["P*3e"]


def test_premature_clicks_do_nothing(page):
    page.new([HUMANS[0], {"kind": "engine", "number": 2}])
    page.play("7g7f")
    for at in ("3c", "3d", "2g", "2f", "7f", "7e"):
        page.click(at)
    assert page.moves() == ["7g7f"] and page.script("return selected === null")
    assert page.text("message") == ""


def test_keys_play_a_move_and_go_through_the_game(page):
    page.new()
    board = page.driver.find_element(By.ID, "board")
    page.script("document.getElementById('board').focus()")
    board.send_keys(Keys.ARROW_UP)  # the cursor appears on 5g
    board.send_keys(Keys.ENTER, Keys.ARROW_UP, Keys.ENTER)
    page.wait("return game.moves.length === 1")
    assert page.moves() == ["5g5f"]
    page.script("document.activeElement.blur()")
    body = page.driver.find_element(By.TAG_NAME, "body")
    body.send_keys(Keys.ARROW_LEFT)
    assert "after 0 moves" in page.text("status")
    body.send_keys(Keys.END)
    assert "to move" in page.text("status")


def test_take_back_gives_the_person_the_move_again(page):
    page.new([HUMANS[0], RANDOM], think=0.1)
    page.play("7g7f")
    page.wait("return game.moves.length === 2")
    page.press("undo")
    page.wait("return game.moves.length === 0")
    assert "Black to move" in page.text("status")


def test_resignation_is_asked_and_ends_the_game(page):
    page.new()
    page.press("resign")
    page.driver.switch_to.alert.dismiss()
    assert page.script("return game.result === null")
    page.press("resign")
    page.driver.switch_to.alert.accept()
    page.wait("return game.result !== null")
    assert "White wins" in page.text("status")


def test_a_handicap_game_begins_with_white_and_a_warning(page):
    page.open()
    Select(page.driver.find_element(By.ID, "start")).select_by_value("二枚落ち")
    assert "not trained on handicap" in page.text("about")
    page.driver.find_element(By.ID, "begin").click()
    page.wait("return game !== null && game.start.endsWith(' w - 1')")
    assert "not trained on handicap" in page.text("notes")
    page.wait("return game.moves.length === 1 || game.players[1].kind === 'human'")


def test_a_reload_and_a_second_tab_show_the_game_again(page):
    page.new()
    page.play("7g7f")
    page.driver.refresh()
    page.wait("return game !== null && game.moves.length === 1")
    page.play("3c3d")
    first = page.driver.current_window_handle
    page.driver.switch_to.new_window("tab")
    page.open(page.name)
    assert page.moves() == ["7g7f", "3c3d"]
    page.play("2g2f")
    page.driver.close()
    page.driver.switch_to.window(first)
    page.wait("return game.moves.length === 3")


def test_a_dead_engine_is_told_and_a_new_one_is_offered(page):
    page.new([HUMANS[0], {"kind": "engine", "number": 1}])
    page.play("7g7f")
    page.wait("return game.error")
    assert "dies ended" in page.text("message")
    assert "engine has failed" in page.text("message")
    page.press("pause")
    page.wait("return game.moves.length === 2")


def test_the_message_of_an_engine_that_failed_ends_with_the_failure(page):
    page.new([HUMANS[0], {"kind": "engine", "number": 1}])
    page.play("7g7f")
    page.wait("return game.error")
    page.press("undo")
    page.wait("return game.moves.length === 0")
    assert page.text("message") == ""


def test_a_game_that_cannot_be_saved_is_told_until_another_one_is_opened(page, server):
    page.new()
    other = page.client.new()
    shutil.rmtree(server.hall.folder)
    page.play("7g7f")
    page.wait("return document.getElementById('message').textContent.startsWith('The game cannot')")
    page.script("open(arguments[0])", other)
    page.wait("return game !== null")
    assert page.text("message") == ""


def test_an_answer_on_the_game_before_comes_too_late(page):
    page.new()
    told = """
        const stream = listen, answers = think();
        listen = () => {};  // the other game has no state yet
        open(arguments[0]);
        return answers.then(() => {
            listen = stream;
            listen();
            return document.getElementById("message").textContent;
        });
    """
    assert page.script(told, page.client.new()) == ""
    page.wait("return game !== null")


def test_a_record_without_a_result_is_no_draw(page):
    page.name = page.client.post("new", start=csa("PI\n+\n+7776FU\n-3334FU\n%FUZUMI\n"))["name"]
    page.open(page.name)
    assert page.text("status") == "The record ends here."


def test_a_record_is_opened_from_a_file_with_its_names_as_text(page, tmp_path):
    path = tmp_path / "a.csa"
    name = "<img src=x onerror=document.title='bad'>"
    path.write_text(f"V2.2\nN+{name}\nN-b\nPI\n+\n+7776FU\n-3334FU\n%TORYO\n")
    page.open()
    Select(page.driver.find_element(By.ID, "start")).select_by_value("record")
    page.driver.find_element(By.ID, "file").send_keys(str(path))
    page.driver.find_element(By.ID, "begin").click()
    page.wait("return game !== null")
    assert page.moves() == ["7g7f", "3c3d"] and name in page.text("near")
    assert page.driver.title == "pydlshogi"
    page.press("back")
    page.press("fork")
    assert page.driver.find_element(By.ID, "new").is_displayed()
    page.script("document.getElementById('cancel').click()")


def test_a_wrong_sfen_is_told_and_the_game_stays(page):
    page.new()
    page.play("7g7f")
    page.press("ask")
    Select(page.driver.find_element(By.ID, "start")).select_by_value("sfen")
    page.driver.find_element(By.ID, "sfen").send_keys("x/y z")
    page.driver.find_element(By.ID, "begin").click()
    page.wait("return document.getElementById('wrong').textContent")
    assert page.moves() == ["7g7f"]
    page.driver.find_element(By.ID, "cancel").click()
    page.driver.get_log("browser")  # the status 400


def test_the_views_of_the_network_are_shown(page):
    page.new()
    for view in ("arrows", "planes"):
        page.driver.find_element(By.CSS_SELECTOR, f"[data-show={view}]").click()
    page.wait("return document.querySelectorAll('#candidates li').length === 8")
    page.wait("return document.querySelectorAll('#maps button').length > 10")
    page.driver.find_element(By.CSS_SELECTOR, "[data-show=filters]").click()
    page.wait("return document.querySelectorAll('#maps button span')[0]?.textContent[0] === '#'")
    page.driver.find_element(By.CSS_SELECTOR, "#maps button").click()
    assert page.driver.find_elements(By.CSS_SELECTOR, "#board rect[fill='#d9480f']")
    assert page.driver.find_element(By.ID, "value").is_displayed()
    page.script("localStorage.clear()")


def practised(page):
    """Ends a game with a mistake of Black's."""
    # Both sides have a mate in one.
    page.new(start={"sfen": "sfen k8/2G6/1P7/9/9/9/7p1/6g2/8K b Gg 1"})
    page.play("7b7a")
    page.press("resign")
    page.driver.switch_to.alert.accept()
    page.wait("return game.result !== null && values.length === 2")
    # The network of the test is not trained, so it suspects nothing. The search finds the mate.
    page.script("values = [0.9, 0.1]; draw()")


def test_an_own_mistake_becomes_an_exercise_that_is_not_saved(page):
    practised(page)
    page.press("practise")
    page.wait(
        "return exercise && exercise.table === name && game && game.moves.length === 0", seconds=180
    )
    assert "Exercise" in page.text("status")
    page.play("G*8b")
    page.wait("return document.getElementById('status').textContent.startsWith('Right')")
    assert len(page.client.get("games")) == 1
    page.press("practise")
    page.wait("return exercise === null && name === arguments[0]", page.name)


def test_a_second_click_starts_no_second_exercise_and_a_failed_judgement_is_told(page):
    practised(page)
    page.script("actions.practise(); actions.practise()")
    assert page.text("message") == ""
    page.wait("return exercise && exercise.table === name && game", seconds=180)
    page.script(
        "const before = ask;"
        "ask = (path, wish) => path.endsWith('/search') ? {line: null} : before(path, wish)"
    )
    page.play("7b7a")
    page.wait("return document.getElementById('status').textContent.includes('could not judge')")


def test_an_exercise_ends_when_another_game_is_opened_meanwhile(page):
    practised(page)
    other = page.client.new()
    page.script("actions.practise(); open(arguments[0])", other)
    page.wait("return game !== null")
    # Both searches of the exercise would have ended.
    page.wait(
        "return performance.now() > arguments[0]", page.script("return performance.now()") + 7000
    )
    assert page.script("return [exercise, name]") == [None, other]
    assert page.text("message") == ""


def test_where_a_side_may_declare_the_hint_says_so(page):
    page.new(start={"sfen": "sfen 4K4/GGGGSSSSR/+R8/9/9/9/9/9/4k4 b 2B 1"})
    page.press("hint")
    page.wait("return document.getElementById('status').textContent.includes('Declare victory')")


def test_another_model_ends_the_search_of_the_one_before(page, server):
    page.new()
    page.script("document.querySelector('[data-show=lines]').click()")
    page.wait("return document.getElementById('lines').textContent.includes('positions')")
    Select(page.driver.find_element(By.ID, "model")).select_by_index(1)
    page.wait("return lines.ply === -1")
    assert server.hall.table(page.name).shown["lines"]["ply"] == -1
    page.wait(
        "return performance.now() > arguments[0]", page.script("return performance.now()") + 1000
    )
    assert page.text("lines") == ""
    page.script(
        "lines = {ply: 0, model: 0, lines: [{win: 1, texts: ['x'], nodes: 1}]}; drawLines()"
    )
    assert page.text("lines") == ""
    page.script("localStorage.clear()")


def test_a_game_that_is_left_is_not_searched_any_more(page, server):
    page.new()
    page.script("document.querySelector('[data-show=lines]').click()")
    page.wait("return document.getElementById('lines').textContent.includes('positions')")
    page.script("open(arguments[0])", page.client.new())
    page.wait("return document.getElementById('lines').textContent.includes('positions')")
    wait_for_end(server.hall.table(page.name))
    page.script("localStorage.clear()")


def test_the_search_ends_with_a_hidden_tab_and_begins_again_with_it(page, server):
    page.new()
    page.script("document.querySelector('[data-show=lines]').click()")
    page.wait("return document.getElementById('lines').textContent.includes('positions')")
    page.script("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    page.script("document.onvisibilitychange()")
    wait_for_end(server.hall.table(page.name))
    page.script("delete document.hidden; document.onvisibilitychange()")
    page.wait("return lines.ply === 0 && lines.lines.length")
    assert server.hall.table(page.name).shown["lines"]["ply"] == 0
    page.script("localStorage.clear()")


def wait_for_end(table):
    """Waits until the server searches nothing for a table."""
    WebDriverWait(None, 10, 0.1).until(lambda _: table.shown["lines"]["ply"] == -1)


def test_a_model_without_a_value_hides_the_value_and_says_so(page):
    page.new()
    Select(page.driver.find_element(By.ID, "model")).select_by_index(1)
    page.wait("return document.getElementById('notes').textContent.includes('no value')")
    assert not page.driver.find_element(By.ID, "value").is_displayed()
    assert not page.driver.find_element(By.ID, "graph").is_displayed()


def test_the_language_can_be_switched(page):
    page.new()
    page.press("language")
    assert "手番" in page.text("status")
    page.press("language")
    assert "to move" in page.text("status")


def test_another_language_does_not_turn_the_clock_back(page):
    page.new(clock={"main": 600})
    page.wait("return performance.now() - clockAt > 2500")
    left = page.script("const before = time(0); actions.language(); return [before, time(0)]")
    page.press("language")
    assert left[1] <= left[0]


def sentences():
    """Lists the sentences with which the modules of the room refuse something."""
    found = {"There is no such page."}  # that of a status alone
    for path in Path(browser.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = ("GameError", "EngineError", "Refusal")
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in names:
                text = node.args[-1]
                if isinstance(text, ast.Attribute):  # a status alone
                    continue
                parts = text.values if isinstance(text, ast.JoinedStr) else [text]
                found.add(
                    "".join(
                        getattr(part, "value", 0) if isinstance(part, ast.Constant) else "7"
                        for part in parts
                    )
                )
    return sorted(found)


def japanese(page, sentence):
    """Returns what the Japanese page makes of a sentence."""
    return page.script(
        "const before = language; language = 'ja';"
        "const found = translated(arguments[0]); language = before; return found;",
        sentence,
    )


def is_japanese(text):
    return any("ぁ" <= character <= "ん" for character in text)


def test_every_sentence_of_the_server_is_also_japanese(page):
    page.open()
    assert len(sentences()) > 25
    assert [text for text in sentences() if not is_japanese(japanese(page, text))] == []
    assert (
        page.script("return translated(arguments[0])", "The game is over.") == "The game is over."
    )


def csa(text):
    return {"record": base64.b64encode(text.encode()).decode(), "file": "a.csa"}


@pytest.mark.parametrize(
    ("start", "shown"),
    [
        ({"sfen": "x/y z"}, "局面を読めません"),
        ({"sfen": "startpos moves 7g7e"}, "1手目"),
        (csa("PI\n+\n+7776KI\n"), "3行目"),
        (csa(""), "棋譜"),
        ({"record": "", "file": "x.kif"}, "棋譜"),
        ({"record": "!"}, "壊れて"),
    ],
)
def test_a_wrong_start_is_told_in_japanese(start, shown, page):
    page.open()
    assert shown in japanese(page, page.client.refused("new", start=start, players=HUMANS))


@pytest.mark.parametrize(
    ("python", "shown"),
    [("time.sleep(99)", "応答しません"), ("sys.exit(3)", "終了コード 3"), (None, "起動できません")],
)
def test_a_fault_of_an_engine_is_told_in_japanese(python, shown, page, tmp_path):
    spec = engine("bad", python, tmp_path) if python else EngineSpec("bad", ("/no",))
    seat = Seat(spec, Pool(delay=1.0))
    with pytest.raises(UserError) as error:
        seat.ask("startpos", "go byoyomi 1", 0.001, lambda: True)
    page.open()
    assert shown in japanese(page, str(error.value))


def test_after_the_game_its_page_is_made_and_opened(page):
    page.new(start={"sfen": "sfen k8/2G6/1P7/9/9/9/9/9/8K b G 1"})
    assert not page.driver.find_element(By.CSS_SELECTOR, "[data-do=page]").is_displayed()
    page.play("G*8b")
    page.wait("return game.result !== null")
    page.press("page")
    page.wait("return page.ready")
    first = page.driver.current_window_handle
    page.driver.find_element(By.ID, "page").click()
    page.driver.switch_to.window(page.driver.window_handles[-1])
    try:
        page.wait("return document.querySelectorAll('#table tbody tr').length === 2")
        assert "８二金打" in page.driver.find_element(By.ID, "table").text
        page.driver.find_element(By.CSS_SELECTOR, "[data-go='copy sfen']").click()
        page.wait("return document.getElementById('copied').textContent === 'copied'")
        assert page.faults() == []
    finally:
        page.driver.close()
        page.driver.switch_to.window(first)
    page.press("undo")
    page.wait("return game.moves.length === 0")
    assert not page.driver.find_element(By.ID, "page").is_displayed()


@pytest.mark.parametrize("width", [360, 1600])
def test_the_page_fits_its_window(page, width):
    screen = {"width": width, "height": 740, "deviceScaleFactor": 1, "mobile": width < 600}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    try:
        page.new()
        assert page.script("return innerWidth") == width
        assert page.script("return document.documentElement.scrollWidth") <= width
        page.play("7g7f")
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def play_randomly(page, seed, most=60):
    """Plays random legal moves by clicks and drags against a random engine; returns the moves."""
    choose = random.Random(seed)
    colour = choose.randrange(2)
    page.new([HUMANS[0], RANDOM][:: 1 - 2 * colour], think=0.1)
    for _ in range(most):
        page.wait(f"return game.result || (game.turn === {colour} && game.legal.length && !busy)")
        if page.script("return game.result"):
            break
        usi = choose.choice(page.script("return game.legal"))
        page.play(usi)
    return page.moves()


@pytest.mark.parametrize("seed", range(3))
def test_a_game_of_random_legal_clicks_has_no_fault(page, seed):
    moves = play_randomly(page, seed)
    saved = page.client.get(f"game/{page.name}/csa")
    assert len(moves) >= 2 and saved.count("\nT") >= len(moves)
    data = base64.b64encode(saved.encode()).decode()
    again = page.client.post("new", start={"record": data, "file": "a.csa"})["name"]
    assert page.client.state(again)["moves"][: len(moves)] == moves
