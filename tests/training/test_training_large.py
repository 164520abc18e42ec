"""Training on shards: the same model as from records; little memory and a fast start."""

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest
from training_helpers import CPU, assert_same_files, make_network, make_optimizer, make_positions

from pydlshogi.kifu.mapped_positions import MappedPositions
from pydlshogi.kifu.reading import read_positions
from pydlshogi.kifu.shards import Shard, ShardError, write_shard
from pydlshogi.training import order
from pydlshogi.training.checkpoint import load_pair
from pydlshogi.training.parallel import ALONE, Ranks
from pydlshogi.training.recipe import Recipe
from pydlshogi.training.trainer import Settings, Task, make_trainer, train

REPOSITORY = Path(__file__).resolve().parents[2]


def train_on(folder, positions, *, resume=False, **settings):
    folder.mkdir(exist_ok=True)
    network = make_network()
    optimizer = make_optimizer(network)
    paths = folder / "model", folder / "state"
    resumed = load_pair(*paths, network, optimizer) if resume else None
    options = Settings(*paths, **{"seed": 3, "batchsize": 8, "epoch": 2, **settings})
    train(Task(network, optimizer, positions, make_positions(9, 2), options, CPU, resumed=resumed))


def shards_of(folder, positions, size):
    folder.mkdir()
    paths = [folder / f"{start}.shard" for start in range(0, len(positions), size)]
    for path in paths:
        write_shard(path, positions[int(path.stem) : int(path.stem) + size])
    return MappedPositions(positions[:0], [Shard(path) for path in paths])


def test_shards_train_the_model_of_the_positions(tmp_path):
    positions = make_positions(100, 1)
    train_on(tmp_path / "array", positions)
    train_on(tmp_path / "mapped", shards_of(tmp_path / "shards", positions, 40))
    assert_same_files(tmp_path / "array/model", tmp_path / "mapped/model")


def a_rank(rank, size):
    own = {"rank": rank, "size": size, "intra_rank": rank, "intra_size": size}
    return Ranks(SimpleNamespace(mpi_comm=None, **own))


@pytest.mark.parametrize("target", ["played", "visits"])
def test_each_rank_reads_its_part_of_the_next_batch_ahead(tmp_path, monkeypatch, target):
    positions = shards_of(tmp_path / "shards", make_positions(100, 1), 40)
    announced = []
    monkeypatch.setattr(
        MappedPositions, "prefetch", lambda self, *arguments: announced.append(arguments)
    )
    options = Settings("model", "state", batchsize=7, recipe=Recipe(policy_target=target))
    for ranks in (ALONE, *(a_rank(rank, 3) for rank in range(3))):
        network = make_network()
        optimizer = make_optimizer(network)
        task = Task(network, optimizer, positions, make_positions(9, 2), options, CPU, ranks=ranks)
        iterator = make_trainer(task).updater.get_iterator("main")
        next(iterator)
        batch = next(iterator)
        assert announced[-2][0].tolist() == ranks.share(batch).tolist()
        assert announced[-2][1] == (target == "visits")
    parts = [rows for rows, _ in announced[2::2]]
    assert numpy.concatenate(parts).tolist() == announced[0][0].tolist()


@pytest.mark.parametrize("count", range(5))
def test_the_parts_of_a_batch_are_known_without_a_share_of_it(count):
    for rank in range(3):
        ranks = a_rank(rank, 3)
        ranks.idle = None
        part = ranks.part(numpy.arange(count))
        assert ranks.idle is None
        if count:
            share = ranks.share(numpy.arange(count))
            assert ranks.idle == (not len(part))
            assert share.tolist() == ([0] if ranks.idle else part.tolist())


def test_a_large_run_resumes_exactly(tmp_path, monkeypatch):
    monkeypatch.setattr(order, "LARGE", 50)
    positions = shards_of(tmp_path / "shards", make_positions(100, 1), 40)
    train_on(tmp_path / "whole", positions, iterations=20)
    train_on(tmp_path / "parts", positions, iterations=7)
    # The order of a run does not depend on the limit of a later version.
    monkeypatch.setattr(order, "LARGE", 1000)
    train_on(tmp_path / "parts", positions, resume=True, iterations=13)
    assert_same_files(tmp_path / "whole/model", tmp_path / "parts/model")


def test_a_damaged_position_ends_the_training_and_keeps_the_last_save(tmp_path):
    shards = tmp_path / "shards"
    positions = shards_of(shards, make_positions(100, 1), 40)
    run = tmp_path / "run"
    train_on(tmp_path / "whole", positions, iterations=8)
    train_on(run, positions, iterations=3)
    saved = {name: (run / name).read_bytes() for name in ("model", "state")}
    path = shards / "40.shard"
    sound = path.read_bytes()
    damaged = bytearray(sound)
    damaged[-200] ^= 1
    path.write_bytes(damaged)

    def opened():
        paths = [shards / f"{start}.shard" for start in (0, 40, 80)]
        return MappedPositions(make_positions(0, 1), [Shard(path) for path in paths])

    with pytest.raises(ShardError, match=r"40\.shard"):
        train_on(run, opened(), resume=True)
    assert {name: (run / name).read_bytes() for name in saved} == saved
    path.write_bytes(sound)
    train_on(run, opened(), resume=True, iterations=5)
    assert_same_files(run / "model", tmp_path / "whole/model")


def make_large(folder, count, size=1 << 20):
    """Shards of ``count`` positions: the games of the repository with changed results."""
    games = read_positions(REPOSITORY / "kifu/kifulist_train.txt")[0]
    random = numpy.random.RandomState(1)
    positions = numpy.tile(games, -(-size // len(games)))[:size]
    names = []
    for start in range(0, count, size):
        positions["result"] = random.randint(0, 3, size)
        names.append(f"{start}.shard")
        write_shard(folder / names[-1], positions[: count - start])
    (folder / "large.txt").write_text("".join(f"{name}\n" for name in names))


def private_memory(process):
    """Private memory of a process in bytes, as Linux tells."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="Linux tells the memory")
@pytest.mark.parametrize(
    ("count", "seconds"), [(200_000, 30), pytest.param(50_000_000, 5, marks=pytest.mark.slow)]
)
def test_training_on_many_positions_starts_at_once_in_little_memory(tmp_path, count, seconds):
    make_large(tmp_path, count)
    test_list = REPOSITORY / "kifu/kifulist_test.txt"
    command = [sys.executable, REPOSITORY / "train_policy.py", "large.txt", test_list]
    options = "--gpu -1 -b 16 --iterations 1000 --model m --state s --log log --threads 1"
    begin = time.monotonic()
    process = subprocess.Popen([*command, *options.split()], cwd=tmp_path, env=dict(os.environ))
    try:
        log = tmp_path / "log"
        while not log.exists() or "start training" not in log.read_text():
            assert process.poll() is None
            assert time.monotonic() < begin + seconds
            time.sleep(0.05)
        print(f"{count} positions: training starts after {time.monotonic() - begin:.1f} s")
        time.sleep(5)
        memory = private_memory(process.pid)
        print(f"private memory {memory / 1e6:.0f} MB")
        assert memory < 1e9
    finally:
        process.terminate()
        process.wait(60)
        for shard in tmp_path.glob("*.shard"):  # pytest keeps the folder
            shard.unlink()
