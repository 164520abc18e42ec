"""The scale of evaluations: fitted to games whose scale is known, counted and drawn."""

import csv
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kifu_lists import EVEN, write_list

from pydlshogi.commands import fit_eval_scale
from pydlshogi.errors import UserError
from pydlshogi.positions import (
    DRAW,
    EVALUATION_MAX,
    LOSS,
    NO_EVALUATION,
    POSITION,
    UNKNOWN,
    WIN,
)
from pydlshogi.training import eval_scale

ROOT = Path(__file__).parents[2]


def positions_of(evaluation, result):
    positions = numpy.zeros(len(evaluation), dtype=POSITION)
    positions["evaluation"], positions["result"] = evaluation, result
    return positions


def games_of_scale(scale, count=200_000, seed=0):
    """Draws results whose probabilities follow a sigmoid of known scale."""
    source = numpy.random.RandomState(seed)
    evaluation = source.normal(0, 800, count).round()
    probability = 1 / (1 + numpy.exp(-evaluation / scale))
    return positions_of(evaluation, numpy.where(source.rand(count) < probability, WIN, LOSS))


@settings(max_examples=10)
@given(st.integers(100, 2000), st.integers(0, 1000))
def test_the_scale_of_the_results_is_found(scale, seed):
    counts = eval_scale.count_evaluations(games_of_scale(scale, seed=seed))
    assert eval_scale.fit_scale(counts) == pytest.approx(scale, rel=0.05)


def test_the_fit_is_the_minimum_of_the_squared_error():
    positions = games_of_scale(400, 5000)
    scale = eval_scale.fit_scale(eval_scale.count_evaluations(positions))
    evaluation = positions["evaluation"].astype(float)

    def error(candidate):
        predicted = 1 / (1 + numpy.exp(-evaluation / candidate))
        return ((predicted - (positions["result"] == WIN)) ** 2).sum()

    assert all(error(scale) < error(scale * factor) for factor in (0.9, 0.99, 1.01, 1.1))


def test_the_view_of_the_other_side_gives_the_same_scale():
    positions = games_of_scale(350, 20_000)
    turned = positions_of(-positions["evaluation"], 1 - positions["result"])
    one, other = (eval_scale.count_evaluations(side) for side in (positions, turned))
    assert eval_scale.fit_scale(one) == pytest.approx(eval_scale.fit_scale(other), rel=1e-6)
    for left, right in zip(
        eval_scale.tabulate(one, 350), reversed(eval_scale.tabulate(other, 350))
    ):
        assert (left.low, left.high, left.positions) == (-right.high, -right.low, right.positions)
        assert left.won == pytest.approx(1 - right.won)
        assert left.fitted == pytest.approx(1 - right.fitted)


def test_a_few_lost_games_with_a_mate_score_do_not_decide_the_scale():
    positions = games_of_scale(350)
    mates = positions_of(numpy.full(20_000, EVALUATION_MAX), numpy.full(20_000, WIN))
    mates["result"][::500] = LOSS
    counts = eval_scale.count_evaluations(numpy.concatenate([positions, mates]))
    assert eval_scale.fit_scale(counts) == pytest.approx(350, rel=0.05)


def test_positions_without_evaluation_or_result_are_not_counted():
    evaluation = [5, 5, 5, NO_EVALUATION, 5, -7, -EVALUATION_MAX]
    result = [WIN, LOSS, DRAW, WIN, UNKNOWN, DRAW, LOSS]
    positions = positions_of(evaluation, result)
    counts = eval_scale.count_evaluations(positions)
    assert counts.evaluation.tolist() == [-EVALUATION_MAX, -7, 5]
    assert counts.positions.tolist() == [1, 1, 3]
    assert counts.won.tolist() == [0, 0.5, 1.5]


def test_the_table_counts_wins_of_the_side_to_move():
    evaluation = [0, 120, -130, 150, 199, 20_000, -1]
    result = [WIN, WIN, LOSS, LOSS, DRAW, WIN, WIN]
    counts = eval_scale.count_evaluations(positions_of(evaluation, result))
    rows = eval_scale.tabulate(counts, 300)
    assert [row[:4] for row in rows] == [
        (-199, -100, 1, 0),
        (-99, -1, 1, 1),
        (0, 0, 1, 1),
        (100, 199, 3, 0.5),
        (10_000, EVALUATION_MAX, 1, 1),
    ]
    assert rows[2].fitted == 0.5
    mean = numpy.mean(1 / (1 + numpy.exp(-numpy.array([120, 150, 199]) / 300)))
    assert rows[3].fitted == pytest.approx(mean)


def test_every_evaluation_is_in_one_row():
    evaluation = numpy.arange(-EVALUATION_MAX, EVALUATION_MAX + 1)
    counts = eval_scale.count_evaluations(
        positions_of(evaluation, numpy.full(len(evaluation), WIN))
    )
    rows = eval_scale.tabulate(counts, 300)
    assert sum(row.positions for row in rows) == len(evaluation)
    assert all(row.positions == row.high - row.low + 1 for row in rows)


def test_evaluations_of_the_wrong_sign_are_refused():
    positions = games_of_scale(300, 20_000)
    positions["evaluation"] *= -1
    with pytest.raises(UserError, match="right sign"):
        eval_scale.fit_scale(eval_scale.count_evaluations(positions))


def test_evaluations_that_predict_every_result_are_refused():
    counts = eval_scale.Counts(*numpy.array([[-100, 100], [50, 50], [0, 50]], float))
    with pytest.raises(UserError, match="Give more games"):
        eval_scale.fit_scale(counts)


def test_evaluations_that_are_not_in_centipawns_are_refused():
    positions = games_of_scale(300, 20_000)
    positions["evaluation"] //= 100
    with pytest.raises(UserError, match="Check that the evaluations are in centipawns"):
        eval_scale.fit_scale(eval_scale.count_evaluations(positions))


def test_evaluations_of_0_only_are_refused():
    counts = eval_scale.count_evaluations(positions_of([0, 0], [WIN, LOSS]))
    with pytest.raises(UserError, match="evaluation 0.*Give games with the engines' evaluations"):
        eval_scale.fit_scale(counts)


def test_no_evaluations_are_refused():
    with pytest.raises(UserError, match="no position has an evaluation and a result"):
        eval_scale.count_evaluations(positions_of([NO_EVALUATION, 5], [WIN, UNKNOWN]))


@pytest.fixture
def kifu_list(tmp_path):
    """Games in which the side with the better evaluation wins more often."""
    moves = ["+7776FU", "-3334FU", "+2726FU", "-8384FU"]
    files = {}
    for number in range(20):
        value = 100 * (number % 5 - 2) + 7
        black_wins = (value > 0) != (number % 3 == 0)
        lines = [f"{move}\n'** {value}" for move in moves]
        end = "+2625FU\n%TORYO" if black_wins else "%TORYO"
        files[f"g{number}__csa"] = EVEN + "\n".join([*lines, end, ""])
    return write_list(tmp_path, **files)


def test_the_program_prints_and_draws(kifu_list, tmp_path, capsys):
    picture = tmp_path / "new" / "scale.png"
    assert fit_eval_scale.main([str(kifu_list), "--output", str(picture)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| evaluation | positions | won | sigmoid |"
    assert lines[-2] == "80 of 91 positions have an evaluation and a result"
    assert lines[-1].startswith("eval_scale = ")
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_evaluations_outside_of_the_picture_are_drawn_as_the_sigmoid_alone(tmp_path):
    counts = eval_scale.Counts(*numpy.array([[-30_000, 30_000], [100, 100], [20, 80]], float))
    scale = eval_scale.fit_scale(counts)
    eval_scale.save_picture(tmp_path / "scale.png", counts, scale)
    assert (tmp_path / "scale.png").read_bytes().startswith(b"\x89PNG")


def test_a_missing_matplotlib_is_told_before_the_games_are_read(
    kifu_list, tmp_path, capsys, monkeypatch
):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert fit_eval_scale.main([str(kifu_list), "-o", str(tmp_path / "scale.png")]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("fit_eval_scale: error: matplotlib is not installed")


def test_a_file_that_is_no_picture_is_refused_before_the_games_are_read(
    kifu_list, tmp_path, capsys
):
    (tmp_path / "model").write_bytes(b"weights")
    assert fit_eval_scale.main([str(kifu_list), "-o", str(tmp_path / "model")]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "model exists already and is no picture" in said.err.splitlines()[0]
    assert (tmp_path / "model").read_bytes() == b"weights"


def test_the_tsv_is_a_table_alone(kifu_list, capsys):
    assert fit_eval_scale.main([str(kifu_list), "--tsv"]) == 0
    said = capsys.readouterr()
    rows = list(csv.DictReader(io.StringIO(said.out), delimiter="\t"))
    assert sum(int(row["positions"]) for row in rows) == 80
    assert "eval_scale = " in said.err


def test_a_picture_does_not_replace_the_list(kifu_list, capsys):
    before = kifu_list.read_bytes()
    for _ in range(2):  # also with a cache
        assert fit_eval_scale.main([str(kifu_list), "-o", str(kifu_list)]) == 1
    assert "is a file to read" in capsys.readouterr().err
    assert kifu_list.read_bytes() == before


@pytest.mark.parametrize(
    "name, message",
    [
        ("scale.xyz", "the picture .* Choose another file"),
        (".", "--output .* is a folder. Choose a file in it"),
    ],
)
def test_a_picture_that_cannot_be_written_is_one_sentence(
    kifu_list, tmp_path, capsys, monkeypatch, name, message
):
    monkeypatch.setattr(fit_eval_scale, "load_games", None)  # it is found before they are read
    assert fit_eval_scale.main([str(kifu_list), "-o", str(tmp_path / name)]) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert re.match(f"fit_eval_scale: error: {message}", error)


def test_games_without_evaluations_are_one_sentence(tmp_path, capsys):
    kifu_list = write_list(tmp_path, a__csa=EVEN + "+7776FU\n%TORYO\n")
    assert fit_eval_scale.main([str(kifu_list)]) == 1
    assert "floodgate" in capsys.readouterr().err.splitlines()[-1]


def test_the_program_runs_from_any_folder(kifu_list, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "pydlshogi", "fit_eval_scale", kifu_list.name],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0
    assert "eval_scale = " in done.stdout
