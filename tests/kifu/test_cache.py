"""The cache file: what is written is read back, and damage is noticed."""

import contextlib
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kifu_lists import random_positions

from pydlshogi.errors import UserError
from pydlshogi.kifu import cache
from pydlshogi.kifu.cache import CacheError, cache_path, fingerprint, load_cache, save_cache
from pydlshogi.positions import POSITION, Positions


@pytest.mark.parametrize(
    ("kifu_list", "cache"),
    [
        ("train.txt", "train.pickle"),
        ("./train.txt", "train.pickle"),
        ("../x/test.txt", "../x/test.pickle"),
        ("a.b/c.d.txt", "a.b/c.d.pickle"),
        ("a.b/list", "a.b/list.pickle"),
        ("LIST.TXT", "LIST.pickle"),
        ("games.train", "games.train.pickle"),
        ("games.test", "games.test.pickle"),
        ("list.pickle", "list.pickle.pickle"),
    ],
)
def test_the_name_of_the_cache(kifu_list, cache):
    assert cache_path(kifu_list).as_posix() == cache


def test_a_cache_is_read_back(tmp_path):
    path = tmp_path / "a.pickle"
    positions = random_positions(321)
    report = {"a": 1, "notes": [("file", 1, 2, "理由")]}
    save_cache(path, "mark", positions, report)
    assert path.stat().st_size < 321 * POSITION.itemsize + 1000
    cached = load_cache(path, "mark")
    assert cached.positions.dtype == POSITION
    assert cached.positions.tobytes() == positions.tobytes()
    assert cached.report == report
    cached.positions["ply"][0] = 7  # what is read belongs to the reader


def test_no_positions_are_read_back_too(tmp_path):
    save_cache(tmp_path / "a.pickle", "mark", random_positions(0), {})
    assert len(load_cache(tmp_path / "a.pickle", "mark").positions) == 0


def test_another_fingerprint_is_refused(tmp_path):
    save_cache(tmp_path / "a.pickle", "mark", random_positions(3), {})
    with pytest.raises(CacheError, match="changed") as caught:
        load_cache(tmp_path / "a.pickle", "other")
    assert caught.value.ours


def test_every_cut_is_noticed_as_damage_of_ours(tmp_path):
    path = tmp_path / "a.pickle"
    save_cache(path, "mark", random_positions(3), {"files": ["x"] * 3})
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(CacheError) as caught:
            load_cache(path, "mark")
        assert caught.value.ours
    path.write_bytes(whole + b"x")
    with pytest.raises(CacheError) as caught:
        load_cache(path, "mark")
    assert caught.value.ours


@given(st.integers(0, 200), st.integers(0, 255))
def test_a_damaged_head_never_raises_anything_else(tmp_path_factory, place, value):
    path = tmp_path_factory.mktemp("damage") / "a.pickle"
    positions = random_positions(2)
    save_cache(path, "mark", positions, {})
    damaged = bytearray(path.read_bytes())
    damaged[place % (len(damaged) - positions.nbytes - 3)] = value
    path.write_bytes(damaged)
    with contextlib.suppress(CacheError):
        assert load_cache(path, "mark").positions.tobytes() == positions.tobytes()


@given(st.integers(0, 2 * POSITION.itemsize + 2), st.integers(1, 255))
def test_a_damaged_byte_of_the_positions_is_noticed(tmp_path_factory, place, bits):
    path = tmp_path_factory.mktemp("damage") / "a.pickle"
    save_cache(path, "mark", random_positions(2), {})
    damaged = bytearray(path.read_bytes())
    damaged[-1 - place] ^= bits
    path.write_bytes(damaged)
    with pytest.raises(CacheError, match="damaged") as caught:
        load_cache(path, "mark")
    assert caught.value.ours


def test_a_script_loads_a_cache_as_a_pickle(tmp_path):
    path = tmp_path / "a.pickle"
    for count in (0, 321):
        positions = random_positions(count)
        save_cache(path, "mark", positions, {"notes": [("file", 1, 2, "理由")]})
        with open(path, "rb") as file:
            loaded = pickle.load(file)
            assert not file.read()
        assert isinstance(loaded, Positions)
        assert loaded.array.tobytes() == positions.tobytes()


def test_a_script_is_told_of_another_version_and_of_damage(tmp_path, monkeypatch):
    path = tmp_path / "a.pickle"
    save_cache(path, "mark", random_positions(3), {})
    damaged = bytearray(path.read_bytes())
    damaged[-50] ^= 1
    with pytest.raises(UserError, match="damaged; delete it"):
        pickle.loads(bytes(damaged))
    monkeypatch.setattr(cache, "CACHE_VERSION", 99)
    with pytest.raises(UserError, match="another version"):
        pickle.loads(path.read_bytes())


def test_a_cache_of_an_earlier_version_may_be_replaced(tmp_path):
    path = tmp_path / "a.pickle"
    header = ("pydlshogi positions", 6, "mark", 2, 12345, {})
    path.write_bytes(pickle.dumps(header, protocol=3) + bytes(200))
    with pytest.raises(CacheError, match="an earlier version") as caught:
        load_cache(path, "mark")
    assert caught.value.ours


class Bomb:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        import os

        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_runs_code_is_not_run_and_not_ours(tmp_path, protocol):
    harm = tmp_path / "harm"
    path = tmp_path / "a.pickle"
    for content in (Bomb(harm), [1, Bomb(harm)], Positions(random_positions(2))):
        path.write_bytes(pickle.dumps(content, protocol))
        with pytest.raises(CacheError) as caught:
            load_cache(path, "mark")
        assert not caught.value.ours
        assert not harm.exists()


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_code_in_the_header_of_a_cache_is_not_run(tmp_path, protocol):
    harm = tmp_path / "harm"
    path = tmp_path / "a.pickle"
    save_cache(path, "mark", random_positions(2), {})
    whole = path.read_bytes()
    start = whole.index(b"from_pickle\n") + len(b"from_pickle\n")
    header = pickle.dumps((cache.CACHE_VERSION, "mark", 2, 0, Bomb(harm)), protocol)
    changed = whole[:start] + b"B" + len(header).to_bytes(4, "little") + header
    path.write_bytes(changed + whole[whole.index(b"\x8e", start) :])
    with pytest.raises(CacheError):
        load_cache(path, "mark")
    with pytest.raises(CacheError):
        pickle.loads(path.read_bytes())
    assert not harm.exists()


def test_the_books_pickle_is_not_ours(tmp_path):
    path = tmp_path / "a.pickle"
    path.write_bytes(pickle.dumps([([0] * 15, (0, 0), ({}, {}), 5, 1)]))
    with pytest.raises(CacheError) as caught:
        load_cache(path, "mark")
    assert not caught.value.ours


def test_a_missing_cache_and_a_folder_of_its_name(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_cache(tmp_path / "a.pickle", "mark")
    (tmp_path / "a.pickle").mkdir()
    with pytest.raises(CacheError) as caught:
        load_cache(tmp_path / "a.pickle", "mark")
    assert not caught.value.ours


def test_fingerprints_tell_parts_apart():
    marks = [fingerprint(parts) for parts in ([b"ab"], [b"a", b"b"], [b"", b"ab"], [b"ab", b""])]
    assert len(set(marks)) == len(marks)
    assert fingerprint([b"a", b"b"]) == fingerprint(iter([b"a", b"b"]))
