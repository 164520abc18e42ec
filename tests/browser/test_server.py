"""The server of the board, asked without a browser: safety, games, clocks, engines."""

import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest
import shogi
from browser_helpers import ENGINE, HUMANS, RANDOM, Client, EngineSpec, serving

from pydlshogi.analysis.record import parse_record
from pydlshogi.browser.engines import Pool
from pydlshogi.browser.game import BoardGame, Clock
from pydlshogi.browser.hall import HANDICAPS
from pydlshogi.browser.server import BoardServer, PortError

# Safety


def test_another_token_finds_nothing(client):
    for token in ("", "x", client.token[:-1], client.token + "a"):
        for path in ("", "offer", "games", "play.js"):
            assert client.send("GET", path, token=token)[0] == 404
        assert client.send("POST", "new", "{}", token=token)[0] == 404


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "evil.example:{port}", "", "[x"])
def test_another_host_is_refused(client, server, host):
    headers = {"Host": host.format(port=server.server_port)}
    assert client.send("GET", "offer", headers=headers)[0] == 403


def test_localhost_is_this_host(client, server):
    headers = {"Host": f"localhost:{server.server_port}"}
    assert client.send("GET", "offer", headers=headers)[0] == 200


def test_a_machine_with_a_japanese_name_knows_it(server, monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "山田のPC")
    with BoardServer(server.hall, "0.0.0.0") as other:
        assert "山田のPC" in other.address
        assert other.local_address.startswith("http://localhost:")
        for name in ("山田のpc", "山田のpc".encode("idna").decode(), "localhost"):
            assert other.knows(f"{name}:{other.server_port}")
        assert not other.knows(f"xn--other:{other.server_port}")


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:{port}"])
def test_a_request_of_another_site_is_refused(client, server, origin):
    headers = {"Origin": origin.format(port=server.server_port)}
    assert client.send("POST", "new", "{}", headers)[0] == 403
    assert client.get("games") == []


def test_a_request_of_the_page_is_answered(client, server):
    headers = {"Origin": f"http://127.0.0.1:{server.server_port}"}
    body = json.dumps({"players": HUMANS})
    assert client.send("POST", "new", body, headers)[0] == 200


def test_the_page_may_load_nothing_from_elsewhere(client, server):
    with socket.create_connection(("127.0.0.1", server.server_port)) as connection:
        host = f"127.0.0.1:{server.server_port}"
        request = f"GET /{client.token}/ HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        connection.sendall(request.encode())
        head = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
    assert "default-src 'none'" in head and "frame-ancestors 'none'" in head
    assert "Referrer-Policy: no-referrer" in head and "unsafe" not in head


def test_bodies_are_bounded_and_must_be_json_objects(client):
    assert client.send("POST", "new", "{}", {"Content-Length": str((1 << 20) + 1)})[0] == 413
    assert client.send("POST", "new", "{}", {"Content-Type": "text/plain"})[0] == 415
    assert client.send("POST", "new", "{}", {"Content-Length": "x"})[0] == 411
    for body in ("[]", "{", "1", "[" * 100000, b"\xff"):
        assert client.send("POST", "new", body)[0] == 400


def test_an_address_that_is_none_is_refused(client, server):
    with socket.create_connection(("127.0.0.1", server.server_port)) as connection:
        host = f"127.0.0.1:{server.server_port}"
        connection.sendall(f"GET http://[x HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 404")


def test_a_huge_record_is_refused_at_once(client):
    text = "PI\n+\n" + "+2838HI\n-8272HI\n+3828HI\n-7282HI\n" * 6500
    record = base64.b64encode(text.encode()).decode()
    assert "too large" in client.refused("new", start={"record": record, "file": "a.csa"})


@pytest.mark.long
@pytest.mark.parametrize("name", ["../x", "..%2Fgames", "20260101-000000-00000000", "a" * 5000])
def test_a_game_that_is_not_there_is_refused_with_a_sentence(client, name):
    status, answer = client.send("GET", f"game/{name}/kif")
    assert status in (400, 404) and answer["error"].endswith(".")


def test_a_file_that_the_server_did_not_write_is_no_game(client, server):
    path = server.hall.folder / "20260101-000000-00000000.csa"
    for text in ("PI\n+\n", "'pydlshogi []\n", "'pydlshogi {\n", '\'pydlshogi {"start": 1}\n'):
        path.write_text(text)
        assert client.send("GET", f"game/{path.stem}/kif")[0] == 400
        assert client.get("games") == []


# Games


def test_a_move_is_played_and_saved_at_once(client, server):
    name = client.new()
    client.post(f"game/{name}/move", move="7g7f", ply=0)
    state = client.state(name)
    assert state["moves"] == ["7g7f"] and state["turn"] == shogi.WHITE
    for suffix in ("kifu", "csa"):
        path = server.hall.folder / f"{name}.{suffix}"
        assert [m.usi() for m in parse_record(path.name, path.read_bytes()).moves] == ["7g7f"]


@pytest.mark.parametrize(
    "move", ["7g7e", "", "8h2b", "P*5e", "resign", "7g7f+", "x" * 1000, "7G7F"]
)
def test_an_illegal_move_is_refused_and_the_game_stays(client, move):
    name = client.new()
    assert "legal" in client.refused(f"game/{name}/move", move=move, ply=0)
    assert client.state(name)["moves"] == []


def test_a_move_for_another_position_is_refused(client):
    name = client.new()
    client.post(f"game/{name}/move", move="7g7f", ply=0)
    client.refused(f"game/{name}/move", move="2g2f", ply=0)
    client.refused(f"game/{name}/move", move="2g2f")
    assert client.state(name)["moves"] == ["7g7f"]


def test_take_back_resign_and_take_back_again(client):
    name = client.new()
    for ply, move in enumerate(("7g7f", "3c3d", "8h2b+")):
        client.post(f"game/{name}/move", move=move, ply=ply)
    client.post(f"game/{name}/back", ply=1)
    assert client.state(name)["moves"] == ["7g7f"]
    client.post(f"game/{name}/resign", ply=1)
    assert client.state(name)["result"]["winner"] == shogi.BLACK
    client.refused(f"game/{name}/move", move="3c3d", ply=1)
    client.post(f"game/{name}/back", ply=0)
    assert client.state(name)["result"] is None
    assert "take back" in client.refused(f"game/{name}/back", ply=5)
    assert "declaration" in client.refused(f"game/{name}/win", ply=0)


def test_a_mate_ends_the_game(client):
    name = client.new(start={"sfen": "sfen k8/2G6/1P7/9/9/9/9/9/8K b G 1"})
    client.post(f"game/{name}/move", move="G*8b", ply=0)
    result = client.state(name)["result"]
    assert result["winner"] == shogi.BLACK and client.state(name)["legal"] == []


@pytest.mark.parametrize("handicap", HANDICAPS)
def test_a_handicap_game_is_read_again_from_both_files(client, handicap):
    name = client.new(start={"handicap": handicap})
    move = client.state(name)["legal"][0]
    client.post(f"game/{name}/move", move=move, ply=0)
    state = client.state(name)
    assert state["handicap"] == handicap
    for kind in ("kif", "csa"):
        text = client.get(f"game/{name}/{kind}")
        record = base64.b64encode(text.encode()).decode()
        again = client.state(
            client.post("new", start={"record": record, "file": f"a.{kind}"})["name"]
        )
        assert (again["start"], again["moves"]) == (state["start"], [move])
        assert again["handicap"] == handicap


def test_a_game_goes_on_from_any_move_of_a_record(client):
    first = client.new()
    for ply, move in enumerate(("7g7f", "3c3d", "8h2b+")):
        client.post(f"game/{first}/move", move=move, ply=ply)
    second = client.new(start={"game": first, "ply": 2})
    assert client.state(second)["moves"] == ["7g7f", "3c3d"]
    assert len(client.state(first)["moves"]) == 3


@pytest.mark.long
@pytest.mark.parametrize(
    "start",
    [
        {"sfen": "nonsense"},
        {"sfen": "9/9/9/9/9/9/9/9/9 x - 1"},
        {"sfen": "startpos moves 7g7e"},
        {"sfen": ["x"]},
        {"record": "!!!"},
        {"record": base64.b64encode(b"\xff\xfe\x00").decode(), "file": "x.kif"},
        {"record": base64.b64encode(b"PI\n+\n+7776KI\n").decode(), "file": "../../x.csa"},
        {"record": ""},
        {"handicap": "百枚落ち"},
        {"handicap": {}},
        {"game": "x"},
        {"game": None},
        [1],
        "x",
        1,
    ],
)
def test_a_wrong_start_is_one_sentence_and_nothing_starts(client, start):
    client.refused("new", start=start, players=HUMANS)
    assert client.get("games") == []


@pytest.mark.long
@pytest.mark.parametrize(
    "wish",
    [
        {"players": [{"kind": "human"}]},
        {"players": "xy"},
        {"players": [{"kind": "engine", "number": 99}, {"kind": "human"}]},
        {"players": [{"kind": "engine", "number": "0"}, {"kind": "human"}]},
        {"players": [{"kind": "mcts_player", "number": -1}, {"kind": "human"}]},
        {"players": [{"kind": "/bin/sh"}, {"kind": "human"}]},
        {"players": [{"kind": ["x"]}, {"kind": "human"}]},
        {"players": HUMANS, "clock": {"main": "x"}},
        {"players": HUMANS, "clock": {"main": -1}},
        {"players": HUMANS, "clock": {"main": float("nan")}},
        {"players": HUMANS, "clock": 5},
        {"players": [{"kind": "search1_player", "number": 1}, {"kind": "human"}]},
    ],
)
def test_a_wrong_wish_is_one_sentence_and_nothing_starts(client, wish):
    client.refused("new", **wish)
    assert client.get("games") == []


def test_the_names_of_a_record_are_kept_as_text(client):
    record = "V2.2\nN+<b>&amp;\nN-</script>\nPI\n+\n+7776FU\n%TORYO\n"
    data = base64.b64encode(record.encode()).decode()
    state = client.state(client.post("new", start={"record": data, "file": "a.csa"})["name"])
    assert state["names"] == ["<b>&amp;", "</script>"]
    assert state["result"]["winner"] == shogi.BLACK


def opened(client, text, name="a.csa", **wish):
    """Opens a record; returns its name."""
    record = base64.b64encode(text.encode()).decode()
    return client.post("new", start={"record": record, "file": name}, **wish)["name"]


def saved(client, name):
    """Reads what a game is saved as."""
    files = {f"a.{kind}": client.get(f"game/{name}/{kind}").encode() for kind in ("csa", "kif")}
    return [parse_record(*file, needs_moves=False) for file in files.items()]


MOVES = "PI\n+\n+7776FU\n-3334FU\n"
KIF = "   1 ７六歩(77)   ( 0:12/00:00:12)\n   2 ３四歩(33)\n"


@pytest.mark.parametrize("mark", ["FUZUMI", "MATTA", "ERROR", "OUTE_SENNICHITE", "CHUDAN"])
def test_an_unknown_result_of_a_record_is_saved_as_unknown(mark, client):
    name = opened(client, f"{MOVES}%{mark}\n")
    assert client.state(name)["result"]["end_mark"] == f"%{mark}"
    for record in saved(client, name):
        assert (record.winner, record.is_drawn) == (None, False)


@pytest.mark.parametrize(
    ("end", "winner"),
    [("引き分け", None), ("先手の勝ち", shogi.BLACK), ("後手の勝ち", shogi.WHITE)],
)
def test_a_result_without_an_end_mark_is_saved_in_both_files(end, winner, client):
    name = opened(client, f"手合割：平手\n{KIF}まで2手で{end}\n", "a.kif")
    assert client.state(name)["result"]["winner"] == winner
    for record in saved(client, name):
        assert (record.winner, record.is_drawn) == (winner, winner is None)


def test_a_record_that_ends_in_mate_has_a_winner_without_a_mark(client):
    game = BoardGame("k8/2G6/1P7/9/9/9/9/9/8K b G 1")
    game.play("G*8b")
    state = client.state(opened(client, game.csa({}).replace("%TORYO\n", "")))
    assert state["result"]["winner"] == shogi.BLACK and state["result"]["reason"] == "no legal move"


def test_the_times_of_a_record_are_kept_and_unknown_ones_are_left_out(client):
    name = opened(client, f"手合割：平手\n{KIF}", "a.kif")
    assert client.state(name)["seconds"] == [12.0, None]
    for record in saved(client, name):
        assert record.seconds() == [12.0, None]
    restored = client.new(start={"game": name})
    assert [record.seconds() for record in saved(client, restored)] == [[None, None]] * 2


def test_a_game_that_cannot_be_saved_is_told_and_no_engine_is_blamed(client, server):
    name = client.new()
    shutil.rmtree(server.hall.folder)
    client.post(f"game/{name}/move", move="7g7f", ply=0)
    state = client.state(name)
    assert "cannot be saved" in state["error"] and not state["failed"]


# Clocks


def test_a_side_without_time_loses(client):
    name = client.new(clock={"main": 0.3, "byoyomi": 0})
    state = client.until(name, lambda state: state["result"])
    assert state["result"]["end_mark"] == "%TIME_UP" and state["result"]["winner"] == shogi.WHITE


def test_a_clock_of_increments_alone_begins_with_one(client):
    name = client.new(clock={"main": 0, "increment": 60})
    client.post(f"game/{name}/move", move="7g7f", ply=0)
    black, white = client.state(name)["left"]
    assert 60 < black <= 120 and 59 < white <= 60


def test_a_side_that_lost_on_time_has_time_after_taking_back():
    game = BoardGame(moves=("7g7f", "3c3d"), clock=Clock(100, 0, 0))
    game.charge(100)
    game.end_by_time()
    game.take_back(0)
    assert game.allowed() == 100 and not game.result


@pytest.mark.long
def test_a_pause_stops_the_clock_and_refuses_moves(client):
    name = client.new(clock={"main": 2})
    client.post(f"game/{name}/pause", paused=True)
    left = client.state(name)["left"]
    client.refused(f"game/{name}/move", move="7g7f", ply=0)
    time.sleep(2.2)
    state = client.state(name)
    assert state["left"] == left and not state["result"]
    client.post(f"game/{name}/pause", paused=False)
    client.until(name, lambda state: state["result"])


def test_an_increment_is_added_and_byoyomi_is_not_used_up(client):
    name = client.new(clock={"main": 100, "increment": 5})
    client.post(f"game/{name}/move", move="7g7f", ply=0)
    assert 104 < client.state(name)["left"][0] <= 105
    name = client.new(clock={"main": 0, "byoyomi": 60})
    client.post(f"game/{name}/move", move="7g7f", ply=0)
    assert client.state(name)["left"][0] == 0 and not client.state(name)["result"]


def test_no_side_gains_time_by_an_interruption(client):
    name = client.new(clock={"main": 100})
    for what in ("players", "pause"):  # to go on without a pause is one, too
        time.sleep(0.6)
        client.post(f"game/{name}/{what}", players=HUMANS)
    assert client.state(name)["left"][0] < 98.9
    client.post(f"game/{name}/move", move="7g7f", ply=0)
    assert client.state(name)["seconds"][0] > 1.1
    time.sleep(1.5)
    client.post(f"game/{name}/back", ply=0)
    assert client.state(name)["left"][1] < 98.6
    client.post(f"game/{name}/move", move="7g7f", ply=0)
    assert client.state(name)["seconds"][0] < 1.5  # none of White's


# Engines


def test_two_engines_play_each_other_to_the_end(client):
    name = client.new([RANDOM, RANDOM], start={"sfen": "k8/9/1PP6/9/9/9/9/9/8K b 2R2G 1"})
    client.until(name, lambda state: state["result"] or len(state["moves"]) > 10)


def test_it_is_not_the_persons_turn_while_the_engine_thinks(client):
    name = client.new([{"kind": "human"}, {"kind": "engine", "number": 2}])
    client.post(f"game/{name}/move", move="7g7f", ply=0)
    assert "engine" in client.refused(f"game/{name}/move", move="3c3d", ply=1)


def test_a_dead_engine_is_told_and_a_new_one_plays_on(client):
    name = client.new([{"kind": "human"}, {"kind": "engine", "number": 1}])
    client.post(f"game/{name}/move", move="7g7f", ply=0)
    state = client.until(name, lambda state: state["error"])
    assert "dies ended" in state["error"] and state["failed"]
    assert state["paused"] and state["moves"] == ["7g7f"]
    client.post(f"game/{name}/pause", paused=False)
    state = client.until(name, lambda state: len(state["moves"]) == 2)
    assert state["moves"][1] == "3c3d" and not state["error"]


def test_an_engine_that_hangs_is_told_and_the_game_stays(client):
    name = client.new([{"kind": "human"}, {"kind": "engine", "number": 2}], think=0.1)
    client.post(f"game/{name}/move", move="7g7f", ply=0)
    state = client.until(name, lambda state: state["error"])
    assert "did not answer" in state["error"] and state["moves"] == ["7g7f"]
    client.post(f"game/{name}/players", players=HUMANS)
    client.post(f"game/{name}/pause", paused=False)
    client.post(f"game/{name}/move", move="3c3d", ply=1)
    assert len(client.state(name)["moves"]) == 2


def test_an_illegal_move_of_an_engine_loses(client):
    name = client.new([{"kind": "human"}, {"kind": "engine", "number": 3}])
    client.post(f"game/{name}/move", move="7g7f", ply=0)
    state = client.until(name, lambda state: state["result"])
    assert state["result"]["winner"] == shogi.BLACK


def test_an_engine_that_cannot_be_started_is_one_sentence(models, tmp_path):
    missing = EngineSpec("x", ("/nothing/here",))
    with serving(models, [missing], tmp_path, Pool()) as client:
        name = client.new([RANDOM, {"kind": "human"}])
        assert "cannot be started" in client.until(name, lambda s: s["error"])["error"]


@pytest.mark.long
def test_no_more_engines_run_than_allowed(models, engines, tmp_path):
    with serving(models, engines, tmp_path, Pool(1, delay=30.0)) as client:
        hanging = {"kind": "engine", "number": 2}
        client.until(client.new([hanging, HUMANS[0]]), lambda state: state["thinking"])
        time.sleep(2)
        second = client.new([hanging, HUMANS[0]])
        assert "engines" in client.until(second, lambda state: state["error"])["error"]


def test_an_idle_engine_makes_room_for_another(models, engines, tmp_path):
    with serving(models, engines, tmp_path, Pool(1)) as client:
        for _ in range(2):
            name = client.new([RANDOM, HUMANS[0]])
            client.until(name, lambda state: len(state["moves"]) == 1)


# What the network thinks


def test_values_are_black_s_chances(client):
    name = client.new()
    client.post(f"game/{name}/move", move="7g7f", ply=0)
    values = client.get(f"game/{name}/values?model=0")
    assert len(values) == 2 and all(0 < value < 1 for value in values)
    opinion = client.get(f"game/{name}/opinion?model=0&ply=1")
    assert opinion["win"] == values[1]
    chances = [move["p"] for move in opinion["moves"]]
    assert chances == sorted(chances, reverse=True) and len(chances) == 8


def test_the_planes_are_turned_as_black_sees_the_board(client):
    name = client.new(start={"sfen": "4k4/9/9/9/9/9/9/9/P3K4 w - 1"})
    planes = client.get(f"game/{name}/planes?model=0&ply=0")
    assert len(planes) == 104
    pawns = [plane for plane in planes if plane["name"] == "歩" and any(plane["values"])]
    assert [(p["side"], p["values"].index(1.0)) for p in pawns] == [("opponent", 72)]


def test_the_strongest_filters_of_a_square_come_first(client):
    name = client.new()
    for query, strength in (("", max), ("&square=40", lambda values: values[40])):
        filters = client.get(f"game/{name}/filters?model=0&ply=0{query}")
        found = [strength(one["values"]) for one in filters]
        assert found == sorted(found, reverse=True) and all(len(f["values"]) == 81 for f in filters)


def test_a_model_without_a_value_offers_the_policy_and_no_search(client):
    model = client.get("offer")["models"][1]
    assert not model["value"] and "policy_player" in model["players"]
    assert "search1_player" not in model["players"]
    name = client.new()
    assert client.get(f"game/{name}/values?model=1") == [None]
    assert "value" in client.refused(f"game/{name}/analyze", ply=0, model=1)
    assert "value" in client.refused(f"game/{name}/search", ply=0, model=1)


@pytest.mark.parametrize("query", ["model=9", "model=x", "ply=1", "ply=-1", "square=81"])
def test_a_number_that_is_not_there_is_refused(client, query):
    name = client.new()
    status, answer = client.send("GET", f"game/{name}/filters?{query}")
    assert status == 400 and answer["error"].endswith(".")


@pytest.mark.parametrize(
    ("sfen", "move", "text", "win"),
    [
        ("k8/2G6/1P7/9/9/9/9/9/8K b G 1", "G*8b", "▲８二金打", 1.0),
        ("k8/9/9/9/9/9/7p1/6g2/8K w g 1", "G*2h", "△２八金打", 0.0),
    ],
)
def test_a_search_gives_the_best_line_with_black_s_chance(sfen, move, text, win, client):
    name = client.new(start={"sfen": sfen})
    line = client.post(f"game/{name}/search", ply=0, seconds=1)["line"]
    assert (line["win"], line["moves"], line["texts"]) == (win, [move], [text])
    assert line["nodes"] > 0


def test_a_search_where_a_side_may_declare_says_that_it_has_won(client):
    name = client.new(start={"sfen": "sfen 4K4/GGGGSSSSR/+R8/9/9/9/9/9/4k4 b 2B 1"})
    line = client.post(f"game/{name}/search", ply=0, seconds=1)["line"]
    assert (line["win"], line["moves"], line["texts"]) == (1, [], [])


def test_an_analysis_ends_with_the_last_tab(client, server):
    name = client.new()
    shown = server.hall.table(name).shown

    def wait_until(condition):
        end = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < end
            time.sleep(0.1)

    with client.watching(name):
        with client.watching(name):
            client.post(f"game/{name}/analyze", ply=0)
            wait_until(lambda: shown["lines"]["lines"])
        time.sleep(2)
        assert shown["lines"]["ply"] == 0
    wait_until(lambda: shown["lines"]["ply"] == -1)


def test_an_analysis_shows_better_and_better_lines_until_it_is_ended(client):
    name = client.new()
    with client.watching(name):
        is_analyzed(client, name)


def is_analyzed(client, name):
    ended = {"ply": -1, "model": 0, "lines": []}
    client.post(f"game/{name}/analyze", ply=0)
    first = client.until_shown(name, lambda shown: shown["lines"]["lines"])["lines"]
    more = client.until_shown(
        name,
        lambda shown: (
            shown["lines"]["lines"]
            and shown["lines"]["lines"][0]["nodes"] > first["lines"][0]["nodes"]
        ),
    )
    assert more["lines"]["ply"] == 0 and 1 < len(more["lines"]["lines"]) <= 5
    client.post(f"game/{name}/analyze")
    assert client.shown(name)["lines"] == ended
    time.sleep(1)
    assert client.shown(name)["lines"] == ended
    assert "position" in client.refused(f"game/{name}/analyze", ply=5)
    assert "position" in client.refused(f"game/{name}/search", ply=5)


# The page of a game


@pytest.mark.parametrize("model", [0, 1])
def test_the_page_of_a_game_is_that_of_analyze_kifu(client, model):
    name = client.new(start={"sfen": "sfen k8/2G6/1P7/9/9/9/9/9/8K b G 1"})
    assert "not ready" in client.send("GET", f"game/{name}/page")[1]["error"]
    client.post(f"game/{name}/move", move="G*8b", ply=0)
    client.post(f"game/{name}/page", model=model)
    page = client.until_shown(name, lambda shown: shown["page"].get("ready"))["page"]
    assert (page["done"], page["of"]) == (2, 2)
    english, japanese = (client.get(f"game/{name}/page?language={one}") for one in ("en", "ja"))
    assert 'lang="en"' in english and 'lang="ja"' in japanese and "▲８二金打" in english
    assert ("0.2 s of search" in english) == (model == 0)


def test_the_page_of_a_game_ends_when_the_game_goes_on(client):
    name = client.new(start={"sfen": "startpos moves 7g7f 3c3d 2g2f 8c8d"})
    client.post(f"game/{name}/page")
    client.post(f"game/{name}/move", move="2f2e", ply=4)
    time.sleep(1)
    assert client.shown(name)["page"] == {}
    assert "not ready" in client.send("GET", f"game/{name}/page")[1]["error"]


def test_the_page_of_a_game_shows_names_as_text(client):
    record = "V2.2\nN+<img src=x>\nN-</script>\nPI\n+\n+7776FU\n%TORYO\n"
    data = base64.b64encode(record.encode()).decode()
    name = client.post("new", start={"record": data, "file": "a.csa"})["name"]
    client.post(f"game/{name}/page", model=1)
    client.until_shown(name, lambda shown: shown["page"].get("ready"))
    page = client.get(f"game/{name}/page")
    assert "<img" not in page and page.count("</script>") == 2


# The program


def start_program(folder, *more):
    """Starts the program; returns the process and a client."""
    words = ["play", "--no_browser", "--games", str(folder), *more]
    process = subprocess.Popen(
        [sys.executable, "-m", "pydlshogi", *words], stdout=subprocess.PIPE, text=True
    )
    address = next(line.strip() for line in process.stdout if line.startswith("http://"))
    return process, Client(address)


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as file:
        return file.read().split()[2] != "Z"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.long
def test_a_killed_server_leaves_no_engine_and_its_game_goes_on(number, models, tmp_path):
    told = tmp_path / "pid"
    engine = tmp_path / "engine.py"
    engine.write_text(
        f"import os; open({str(told)!r}, 'w').write(str(os.getpid()))\n"
        + ENGINE.format("time.sleep(9999)")
    )
    options = ("--model", str(models[0].path), "--engine", f"slow={sys.executable} {engine}")
    process, client = start_program(tmp_path / "games", *options)
    try:
        name = client.new([{"kind": "human"}, RANDOM])
        client.post(f"game/{name}/move", move="7g7f", ply=0)
        client.until(name, lambda state: told.exists() and told.read_text())
        time.sleep(1)
        os.kill(process.pid, number)
        process.wait(30)
    finally:
        process.kill()
    if number != signal.SIGKILL:  # after it, the engine ends when it reads its input again
        assert not is_running(int(told.read_text()))
    else:
        os.kill(int(told.read_text()), signal.SIGKILL)
    process, client = start_program(tmp_path / "games", *options)
    try:
        state = client.state(name)
        assert state["moves"] == ["7g7f"] and state["paused"]
        assert state["players"][1]["kind"] == "engine"
        assert [game["name"] for game in client.get("games")] == [name]
    finally:
        process.terminate()
        process.wait(30)


def test_a_port_in_use_is_one_sentence(server):
    with pytest.raises(PortError, match=f"{server.server_port}.*Choose another port"):
        BoardServer(server.hall, port=server.server_port)
