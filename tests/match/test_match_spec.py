"""Engines as the command line names them."""

import pytest

from pydlshogi.match.engine_spec import USUAL_OPPONENTS, EngineSpec, Limit, parse_engine


def test_command_arguments_and_options():
    assert parse_engine("a.b+1='/my engines/e' --x \"1 2\";Skill Level=-5;File=/a b=c;Empty=") == (
        EngineSpec(
            "a.b+1",
            ("/my engines/e", "--x", "1 2"),
            (("Skill Level", "-5"), ("File", "/a b=c"), ("Empty", "")),
        )
    )


@pytest.mark.parametrize(
    "command, words",
    [
        (r'x.py --model="C:\My Models\m" b', ("x.py", r"--model=C:\My Models\m", "b")),
        (r'"C:\Program Files\e.exe" #1', (r"C:\Program Files\e.exe", "#1")),
        (r"C:\Users\O'Neil\e.exe", (r"C:\Users\O'Neil\e.exe",)),
    ],
)
def test_a_command_on_windows(monkeypatch, command, words):
    monkeypatch.setattr("pydlshogi.text._ON_WINDOWS", True)
    assert parse_engine(f"a={command}").command == words


@pytest.mark.parametrize(
    "text, limit",
    [
        ("nodes 100", Limit("nodes", 100)),
        ("byoyomi 1000", Limit("byoyomi", 1000)),
        (" depth  3 ", Limit("depth", 3)),
    ],
)
def test_an_engine_can_have_a_limit_of_its_own(text, limit):
    spec = parse_engine(f"a=engine;go={text};Hash=1")
    assert (spec.limit, spec.options) == (limit, (("Hash", "1"),))
    assert parse_engine("a=engine").limit is None


def test_fairy_stockfish_by_level():
    spec = parse_engine("fairy:-20")
    assert spec.name == "fairy-20"
    assert spec.options == (("Skill Level", "-20"),)
    assert spec.command == ("fairy-stockfish",)
    assert spec.arguments()[0].endswith("fairy-stockfish")


def test_settings_do_not_tell_where_python_and_engines_lie(monkeypatch):
    specs = [parse_engine("random"), parse_engine("fairy:0")]
    monkeypatch.setattr("sys.executable", "/another/python3")
    assert [parse_engine("random"), parse_engine("fairy:0")] == specs
    assert specs[0].arguments()[0] == "/another/python3"


def test_usual_opponents_have_names_of_their_own():
    names = [parse_engine(text).name for text in USUAL_OPPONENTS]
    assert names == ["random", "fairy-20", "fairy-10", "fairy-5", "fairy-3", "fairy0"]


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "NAME=COMMAND"),
        ("engine", "NAME=COMMAND"),
        ("=engine", "NAME=COMMAND"),
        ("a=", "NAME=COMMAND"),
        ("../a=engine", "NAME=COMMAND"),
        ("fairy:strong", "NAME=COMMAND"),
        ("fairy:21", "needs a level from -20 to 20"),
        ("fairy:-21", "needs a level from -20 to 20"),
        ("a=engine;Hash", "'Hash' in the engine a is not OPTION=VALUE"),
        ("a=engine;=3", "not OPTION=VALUE"),
        ("a='engine", "cannot be split"),
        ("a=engine;go=fast", "go of the engine a: 'fast' is not nodes N, depth N or byoyomi"),
        ("a=engine;go=nodes 0", "'nodes 0' is not nodes N"),
    ],
)
def test_what_is_no_engine(text, words):
    with pytest.raises(ValueError, match=words):
        parse_engine(text)
