"""The parser that all programs use."""

import pytest

from pydlshogi.commands.arguments import ArgumentParser, positive_int


@pytest.fixture
def parser():
    made = ArgumentParser(prog="prog")
    made.add_argument("path")
    made.add_argument("--max_plies", type=positive_int, default=7)
    made.add_argument_group("more").add_argument("--drop_duplicates", action="store_true")
    return made


@pytest.mark.parametrize("words", ["--max_plies 3", "--max-plies 3", "--max-plies=3", "--max-pl 3"])
def test_hyphens_and_underscores_name_the_same_option(parser, words):
    assert parser.parse_args(["a-b", *words.split()]).max_plies == 3
    assert parser.parse_args(["--drop-duplicates", "a-b"]).drop_duplicates


def test_help_shows_one_spelling(parser):
    assert "--max_plies" in parser.format_help()
    assert "--max-plies" not in parser.format_help()


def test_paths_and_words_after_two_hyphens_are_kept(parser):
    assert parser.parse_args(["--", "--max-plies"]).path == "--max-plies"
    assert parser.parse_args(["max-plies"]).path == "max-plies"


@pytest.mark.parametrize(
    "words, named",
    [("", "path"), ("a --max-plies 0", "--max_plies"), ("a --un-known", "--un-known")],
)
def test_a_mistake_gets_one_sentence_without_the_usage(parser, capsys, words, named):
    with pytest.raises(SystemExit) as status:
        parser.parse_args(words.split())
    assert status.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("prog: error: ")
    assert named in line
