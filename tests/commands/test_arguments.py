"""The parser that all programs use."""

from pathlib import Path

import pytest

from pydlshogi.commands.arguments import ArgumentParser, named_path, positive_int
from pydlshogi.commands.model_options import add_computation


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


def test_an_empty_path_is_not_the_current_folder(capsys):
    parser = ArgumentParser(prog="prog")
    parser.add_argument("dir", type=named_path)
    assert parser.parse_args(["."]).dir == Path()
    with pytest.raises(SystemExit):
        parser.parse_args([""])
    assert "argument dir: the path is missing" in capsys.readouterr().err


def test_threads_that_would_use_all_memory_are_refused(capsys):
    parser = ArgumentParser(prog="prog")
    add_computation(parser)
    assert parser.parse_args(["--threads", "512"]).threads == 512
    with pytest.raises(SystemExit):
        parser.parse_args(["--threads", "1000000000"])
    assert "--threads: '1000000000' is not a whole number from 1 to 512" in capsys.readouterr().err
