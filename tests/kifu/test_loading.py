"""The cache beside a list: made once, used while nothing changes, replaced otherwise."""

import logging
import os
import pickle
import threading
from pathlib import Path

import pytest
from kifu_lists import EVEN, GAME, write_list

from pydlshogi.kifu import cache, loading
from pydlshogi.kifu.cache import save_cache
from pydlshogi.kifu.loading import load_positions
from pydlshogi.kifu.reading import read_positions
from pydlshogi.kifu.report import Note
from pydlshogi.kifu.sources import read_list
from pydlshogi.read_kifu import read_kifu


@pytest.fixture
def kifu_list(tmp_path):
    return write_list(
        tmp_path, a__csa=GAME, b__csa=GAME.replace("+0055KA", "+0056KA"), c__csa="bad"
    )


def warnings(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_the_cache_is_made_once_and_used(kifu_list, caplog):
    first = load_positions(kifu_list)
    assert (first.from_cache, first.saved, first.cache) == (
        False,
        True,
        kifu_list.with_suffix(".pickle"),
    )
    second = load_positions(kifu_list)
    assert (second.from_cache, second.saved) == (True, False)
    assert second.positions.tobytes() == first.positions.tobytes()
    assert second.report == first.report
    assert isinstance(second.report.excluded[0], Note)
    assert not warnings(caplog)


def test_train_and_test_lists_have_caches_of_their_own(tmp_path, monkeypatch):
    write_list(tmp_path, "train.txt", a__csa=GAME)
    write_list(tmp_path, "test.txt", b__csa=EVEN + "+7776FU\n")
    monkeypatch.chdir(tmp_path)
    assert len(load_positions("./train.txt").positions) == 5
    assert len(load_positions("./test.txt").positions) == 1
    assert len(load_positions("./train.txt").positions) == 5
    assert sorted(path.name for path in tmp_path.glob("*.pickle")) == [
        "test.pickle",
        "train.pickle",
    ]


def test_what_a_killed_run_left_beside_the_cache_is_removed(kifu_list):
    cut = kifu_list.parent / ".train.pickle.0123abcd.tmp"
    cut.write_bytes(b"half a cache")
    os.utime(cut, (0, 0))
    assert load_positions(kifu_list).saved
    assert not cut.exists()


def touch(path):
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 10**9))


CHANGES = {
    "list": lambda folder: (folder / "train.txt").write_text("a.csa\n"),
    "order": lambda folder: (folder / "train.txt").write_text("b.csa\na.csa\nc.csa\n"),
    "size": lambda folder: (folder / "c.csa").write_text("still bad"),
    "time": lambda folder: touch(folder / "a.csa"),
    "gone": lambda folder: (folder / "a.csa").unlink(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_stale_cache_is_replaced_with_one_warning(kifu_list, caplog, change):
    load_positions(kifu_list)
    CHANGES[change](kifu_list.parent)
    loaded = load_positions(kifu_list)
    assert (loaded.from_cache, loaded.saved) == (False, True)
    (warning,) = warnings(caplog)
    assert "train.pickle" in warning and "changed" in warning
    assert loaded.positions.tobytes() == read_positions(kifu_list)[0].tobytes()
    assert load_positions(kifu_list).from_cache


def test_options_and_version_are_part_of_the_fingerprint(kifu_list, monkeypatch):
    load_positions(kifu_list)
    assert not load_positions(kifu_list, strict=True).from_cache
    assert not load_positions(kifu_list, strict=True, drop_duplicates=True).from_cache
    assert load_positions(kifu_list, strict=True, drop_duplicates=True).from_cache
    monkeypatch.setattr(cache, "CACHE_VERSION", 99)
    assert not load_positions(kifu_list, strict=True, drop_duplicates=True).from_cache


def test_a_cache_of_an_earlier_version_is_made_again_with_one_sentence(kifu_list, caplog):
    cache_file = kifu_list.with_suffix(".pickle")
    header = ("pydlshogi positions", 6, "mark", 2, 12345, {})
    cache_file.write_bytes(pickle.dumps(header, protocol=3) + bytes(200))
    assert load_positions(kifu_list).saved
    (warning,) = warnings(caplog)
    assert "an earlier version of pydlshogi made it; it is made again" in warning
    assert load_positions(kifu_list).from_cache


def test_a_pickle_that_a_script_of_the_book_made_is_left_alone(kifu_list, caplog):
    with open(kifu_list.with_suffix(".pickle"), "wb") as file:
        pickle.dump(read_kifu(kifu_list), file)
    caplog.clear()
    loaded = load_positions(kifu_list)
    assert (loaded.from_cache, loaded.saved) == (False, False)
    (warning,) = warnings(caplog)
    assert "left alone" in warning
    with open(kifu_list.with_suffix(".pickle"), "rb") as file:
        assert pickle.load(file).array.tobytes() == loaded.positions.tobytes()


@pytest.mark.parametrize("size", [0, 10, 100, -1])
def test_a_truncated_cache_is_replaced_with_one_warning(kifu_list, caplog, size):
    first = load_positions(kifu_list)
    first.cache.write_bytes(first.cache.read_bytes()[:size])
    again = load_positions(kifu_list)
    assert (again.from_cache, again.saved) == (False, True)
    assert len(warnings(caplog)) == 1
    assert load_positions(kifu_list).from_cache


def test_a_report_that_suffered_is_damage(kifu_list, caplog):
    loaded = load_positions(kifu_list)
    mark = loading._fingerprint(read_list(kifu_list), False, False)
    save_cache(loaded.cache, mark, loaded.positions, {"other": 1})
    assert load_positions(kifu_list).saved
    assert len(warnings(caplog)) == 1


class Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("kind", ["book", "code", "text"])
def test_a_pickle_that_is_not_ours_is_left_alone(kifu_list, caplog, tmp_path, kind):
    content = {
        "book": pickle.dumps([([0], (0, 0), ({}, {}), 1, 1)]),
        "code": pickle.dumps(["pydlshogi positions", 1, "", 0, Bomb(tmp_path / "harm")], 3),
        "text": b"my notes",
    }[kind]
    cache = kifu_list.with_suffix(".pickle")
    cache.write_bytes(content)
    loaded = load_positions(kifu_list)
    assert (loaded.from_cache, loaded.saved, len(loaded.positions)) == (False, False, 10)
    assert cache.read_bytes() == content
    assert not (tmp_path / "harm").exists()
    (warning,) = warnings(caplog)
    assert "left alone" in warning


def test_a_folder_that_cannot_be_written_gives_one_warning(kifu_list, caplog, monkeypatch):
    open_path = Path.open

    def refuse(path, mode="r", *args, **kwargs):
        if "x" in mode:
            raise PermissionError(13, "Permission denied")
        return open_path(path, mode, *args, **kwargs)

    monkeypatch.setattr(Path, "open", refuse)
    loaded = load_positions(kifu_list)
    assert (len(loaded.positions), loaded.saved) == (10, False)
    (warning,) = warnings(caplog)
    assert "Permission denied" in warning
    assert not kifu_list.with_suffix(".pickle").exists()


def test_two_readers_at_once_do_not_harm_each_other(kifu_list):
    loaded = []
    threads = [
        threading.Thread(target=lambda: loaded.append(load_positions(kifu_list))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({item.positions.tobytes() for item in loaded}) == 1
    assert len(loaded) == 6
    assert load_positions(kifu_list).from_cache
    assert sorted(path.suffix for path in kifu_list.parent.iterdir()).count(".tmp") == 0
