"""Options: declarations, values, refusals."""

import pytest

from pydlshogi.player.engine_options import default_threads, policy_options, search1_options
from pydlshogi.usi.options import Button, Check, Combo, Filename, Options, Spin
from pydlshogi.usi.protocol import CommandError


@pytest.fixture
def options():
    return Options(
        Check("flag", True),
        Spin("Number", 5, low=-1, high=10),
        Combo("word", "one", ("one", "two")),
        Filename("file", "here"),
        Filename("nothing"),
        Button("press"),
    )


def test_declarations(options):
    assert options.declarations() == [
        "option name flag type check default true",
        "option name Number type spin default 5 min -1 max 10",
        "option name word type combo default one var one var two",
        "option name file type filename default here",
        "option name nothing type filename default <empty>",
        "option name press type button",
    ]


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("flag", "false", False),
        ("flag", "TRUE", True),
        ("Number", "-1", -1),
        ("Number", "10", 10),
        ("word", "Two", "two"),
        ("file", "/a b/c", "/a b/c"),
        ("file", "", ""),
        ("file", "<empty>", ""),
        ("file", '"C:\\a b\\m.npz"', "C:\\a b\\m.npz"),
        ("file", "'/a b/c'", "/a b/c"),
        ("file", '"', '"'),
        ("file", '""', ""),
        ("file", "\"a'", "\"a'"),
        ("Number", "7.0", 7),
        ("Number", "-1.", -1),
        ("press", "", 1),
    ],
)
def test_values(options, name, text, value):
    options.set(name.upper(), text)
    assert options[name] == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("flag", "yes"),
        ("flag", ""),
        ("Number", "11"),
        ("Number", "-2"),
        ("Number", "٣"),
        ("Number", "9" * 5000),
        ("Number", "1.5"),
        ("Number", ""),
        ("word", "three"),
        ("word", ""),
    ],
)
def test_a_refused_value_leaves_the_old_one(options, name, text):
    before = options[name]
    with pytest.raises(CommandError, match=f"option {name} cannot be"):
        options.set(name, text)
    assert options[name] == before


@pytest.mark.parametrize(
    "name, text, kept", [("flag", "TRUE", "true"), ("word", "Two", "two"), ("Number", "+7", "7")]
)
def test_a_refusal_says_what_stays_as_usi_writes_it(options, name, text, kept):
    options.set(name, text)
    with pytest.raises(CommandError, match=f"it stays '{kept}'$"):
        options.set(name, "maybe")


def test_an_unknown_option_is_named(options):
    with pytest.raises(CommandError, match="'nosuch'"):
        options.set("nosuch", "1")


@pytest.mark.parametrize("name", ["USI_Hash", "USI_Ponder", "usi_hash"])
def test_undeclared_options_of_every_gui_pass_in_silence(options, name):
    options.set(name, "256")


def test_an_alias_sets_an_option_and_is_not_declared():
    options = Options(Spin("Draw_Ply", 0, low=0, high=1000, aliases=("MaxMovesToDraw",)))
    options.set("maxmovestodraw", "320")
    assert options["Draw_Ply"] == 320
    assert options.declarations() == ["option name Draw_Ply type spin default 0 min 0 max 1000"]
    with pytest.raises(CommandError, match="option Draw_Ply cannot be '-1'"):
        options.set("MaxMovesToDraw", "-1")


@pytest.mark.parametrize("declared", [policy_options, search1_options])
@pytest.mark.parametrize("name", ["Draw_Ply", "MaxMovesToDraw", "Threads", "random_plies"])
def test_the_players_know_the_options_that_programs_send(declared, name):
    declared().set(name, "320")


@pytest.mark.parametrize(
    ("variable", "default"),
    [(None, 1), ("", 1), ("3", 3), ("many", 1), ("0", 1), ("9999", 1), ("512", 512)],
)
def test_the_default_of_threads_is_that_of_the_environment(monkeypatch, variable, default):
    monkeypatch.delenv("PYDLSHOGI_THREADS", raising=False)
    if variable is not None:
        monkeypatch.setenv("PYDLSHOGI_THREADS", variable)
    assert policy_options()["Threads"] == default


def test_the_default_of_threads_is_at_most_the_largest_value(monkeypatch):
    monkeypatch.delenv("PYDLSHOGI_THREADS", raising=False)
    assert default_threads(640) == 512


def test_every_default_of_the_player_is_one_of_its_values():
    options = policy_options()
    for line in options.declarations():
        words = line.split()
        name, default = words[2], words[words.index("default") + 1 :] if "default" in words else []
        if default:
            before = options[name]
            options.set(name, default[0])
            assert options[name] == before
