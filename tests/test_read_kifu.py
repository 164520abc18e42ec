"""``read_kifu`` as the book's scripts use it."""

import os
import pickle
import random
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
import shogi
from kifu_lists import EVEN, GAME, write_list

from pydlshogi.errors import UserError
from pydlshogi.features import make_features, make_input_features_from_board
from pydlshogi.kifu.loading import load_positions
from pydlshogi.kifu.reading import read_positions
from pydlshogi.read_kifu import read_kifu

ROOT = Path(__file__).parents[1]
KIFU = ROOT / "kifu"


def test_it_is_a_sequence_of_what_make_features_takes():
    positions = read_positions(KIFU / "kifulist_test.txt")[0]
    assert len(positions) > 1000
    planes, label, win = make_features(positions[0])
    assert numpy.array_equal(planes, make_input_features_from_board(shogi.Board()))
    assert 0 <= label < 2187
    assert win in (0, 1)


def run(script, folder):
    """Runs a script as a reader does, in a folder of its own; returns what it prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")  # no progress bar in a pipe
    return done.stdout


def test_a_script_without_a_main_guard(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from pydlshogi.read_kifu import read_kifu\n"
        f"positions = read_kifu({str(KIFU / 'kifulist_test.txt')!r})\n"
        "print(len(positions), positions[-1]['ply'])\n"
    )
    positions = read_kifu(KIFU / "kifulist_test.txt")
    assert run(script, tmp_path) == f"{len(positions)} {positions[-1]['ply']}\n"


def test_what_was_left_out_is_logged(tmp_path, caplog):
    read_kifu(write_list(tmp_path, a__csa=GAME, b__csa="bad"))
    assert "b.csa, line 1: unknown statement 'bad'" in caplog.text
    caplog.clear()
    read_kifu(write_list(tmp_path, a__csa=GAME))
    assert not caplog.records


# --- the book's way of using it -----------------------------------------------------

TRAINING_SCRIPT = """
import os
import pickle
import random

import numpy as np

from pydlshogi.common import *
from pydlshogi.features import *
from pydlshogi.read_kifu import *


def positions_of(kifu_list):
    pickle_file = os.path.splitext(kifu_list)[0] + '.pickle'
    if os.path.exists(pickle_file):
        with open(pickle_file, 'rb') as f:
            return pickle.load(f), 'loaded'
    positions = read_kifu(kifu_list)
    with open(pickle_file, 'wb') as f:
        pickle.dump(positions, f, PROTOCOL)
    return positions, 'read'


def mini_batch(positions, start, size):
    features = []
    moves = []
    wins = []
    for position in positions[start:start + size]:
        feature, move, win = make_features(position)
        features.append(feature)
        moves.append(move)
        wins.append(win)
    return (
        np.array(features, dtype=np.float32),
        np.array(moves, dtype=np.int32),
        np.array(wins, dtype=np.int32).reshape((-1, 1)),
    )


random.seed(5)
train, way = positions_of('train.txt')
shuffled = random.sample(train, len(train))
x, t, w = mini_batch(shuffled, 0, 32)
print(way, len(train), len(shuffled), x.shape, t.shape, w.shape, w.dtype)
print(x.sum(), t.sum(), w.sum(), MOVE_DIRECTION_LABEL_NUM)
x, t, w = mini_batch(random.sample(train, 8), 0, 8)
print(x.sum(), t.sum(), w.sum(), make_features(random.choice(train))[1])
"""


@pytest.mark.long
@pytest.mark.parametrize("protocol", ["pickle.DEFAULT_PROTOCOL", "pickle.HIGHEST_PROTOCOL", "2"])
def test_a_training_script_of_the_books_shape_reads_pickles_and_loads(tmp_path, protocol):
    lines = (KIFU / "kifulist_test.txt").read_text().split()[:4]
    (tmp_path / "train.txt").write_text("".join(f"{KIFU / line}\n" for line in lines))
    script = tmp_path / "train.py"
    script.write_text(TRAINING_SCRIPT.replace("PROTOCOL", protocol))
    first, second = run(script, tmp_path), run(script, tmp_path)
    count = len(read_kifu(tmp_path / "train.txt"))
    shapes = f"{count} {count} (32, 104, 9, 9) (32,) (32, 1) int32"
    assert first.startswith(f"read {shapes}\n")
    assert second == first.replace("read", "loaded", 1)


def test_a_training_script_of_the_books_shape_loads_the_cache_of_this_package(tmp_path):
    lines = (KIFU / "kifulist_test.txt").read_text().split()[:4]
    (tmp_path / "train.txt").write_text("".join(f"{KIFU / line}\n" for line in lines))
    script = tmp_path / "train.py"
    script.write_text(TRAINING_SCRIPT.replace("PROTOCOL", "4"))
    read = run(script, tmp_path)
    (tmp_path / "train.pickle").unlink()
    assert load_positions(tmp_path / "train.txt").saved
    assert run(script, tmp_path) == read.replace("read", "loaded", 1)


@pytest.fixture(scope="module")
def positions():
    return read_kifu(KIFU / "kifulist_test.txt")


def test_a_sample_of_all_positions_has_every_position_once(positions):
    part = positions[:500]
    sample = random.Random(1).sample(part, len(part))
    assert sorted(item.tobytes() for item in sample) == sorted(item.tobytes() for item in part)
    assert random.Random(1).choice(part).tobytes() in {item.tobytes() for item in part}


def test_slices_are_sequences_of_the_same_items(positions):
    array = positions.array
    for cut in (slice(3), slice(-5, None), slice(10, 2, -3), slice(None, None, 7)):
        assert type(positions[cut]) is type(positions)
        assert positions[cut].array.tobytes() == array[cut].tobytes()
    assert positions[-1].tobytes() == array[-1].tobytes()
    assert [item.tobytes() for item in positions[:3]] == [item.tobytes() for item in array[:3]]
    with pytest.raises(IndexError):
        positions[len(positions)]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_give_the_positions_back(positions, protocol):
    for part in (positions, positions[5:50:3], positions[:0]):
        loaded = pickle.loads(pickle.dumps(part, protocol))
        assert type(loaded) is type(positions)
        assert loaded.array.tobytes() == part.array.tobytes()
        assert loaded.array.flags.writeable


def test_no_numpy_object_is_pickled(positions):
    # numpy 1 cannot load what numpy 2 pickled.
    assert b"numpy" not in pickle.dumps(positions[:3])


def test_a_pickle_of_another_layout_is_refused_with_a_sentence(positions):
    rebuild, (itemsize, content) = positions[:3].__reduce__()
    assert rebuild(itemsize, content).array.tobytes() == positions.array[:3].tobytes()
    with pytest.raises(UserError, match="another version .* delete the pickle"):
        rebuild(itemsize - 4, content)


def test_options_reach_the_library(tmp_path):
    kifu_list = write_list(tmp_path, a__csa=GAME, b__csa=GAME, c__csa=EVEN + "+7776FU\n")
    assert len(read_kifu(kifu_list)) == 11
    assert len(read_kifu(kifu_list, drop_duplicates=True)) == 6
    in_check = EVEN + "+7776FU\n-3334FU\n+8833UM\n-9394FU\n+9796FU\n"
    kifu_list = write_list(tmp_path, a__csa=GAME, b__csa=in_check)
    assert len(read_kifu(kifu_list)) == 10
    assert len(read_kifu(kifu_list, strict=True)) == 5


def test_numpy_takes_the_sequence_as_an_array(positions):
    assert numpy.asarray(positions) is positions.array
    assert positions.array.tobytes() == read_positions(KIFU / "kifulist_test.txt")[0].tobytes()
