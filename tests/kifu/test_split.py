"""Making kifu lists: complete, disjoint, repeatable, relative."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pydlshogi.commands import make_kifu_list
from pydlshogi.kifu import split as kifu_split
from pydlshogi.kifu.sources import read_list


@pytest.fixture
def games(tmp_path):
    folder = tmp_path / "games"
    (folder / "2016" / "a b").mkdir(parents=True)
    for n in range(19):
        name = f"{n}.csa" if n % 3 else f"{n}.KIF"
        (folder / "2016" / ("a b" if n % 2 else ".") / name).touch()
    (folder / "2016" / "notes.txt").touch()
    return folder


@given(st.integers(0, 60), st.floats(0, 1), st.integers(0, 5))
def test_split_loses_and_repeats_nothing(count, ratio, seed):
    records = [Path(str(n)) for n in range(count)]
    train, test = kifu_split.split(records, ratio, seed)
    assert sorted(train + test) == sorted(records)
    assert len(train) == pytest.approx(count * ratio, abs=1)
    assert (train, test) == kifu_split.split(records, ratio, seed)


@pytest.mark.parametrize("percent", range(0, 101))
def test_a_ratio_in_percent_is_exact(percent):
    train, _ = kifu_split.split([Path(str(n)) for n in range(100)], percent / 100, 0)
    assert len(train) == percent


def test_main_writes_lists_that_lead_to_the_games(games, tmp_path, capsys):
    name = tmp_path / "lists" / "floodgate"
    name.parent.mkdir()
    assert make_kifu_list.main([str(games), str(name), "--ratio", "0.7", "--seed", "3"]) == 0
    listed = []
    for part, count in (("train", 13), ("test", 6)):
        lines = (name.parent / f"floodgate_{part}.txt").read_text(encoding="utf-8").splitlines()
        assert len(lines) == count
        assert not any(Path(line).is_absolute() or "\\" in line for line in lines)
        listed += [(name.parent / line).resolve() for line in lines]
    assert sorted(listed) == sorted(kifu_split.find_records(games).records)
    assert len(listed) == 19
    assert "1 files that are not game records were left out" in capsys.readouterr().out


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_counted_as_no_record(games, tmp_path, capsys):
    os.mkfifo(games / "pipe.csa")
    assert make_kifu_list.main([str(games), str(tmp_path / "x"), "--ratio", "1"]) == 0
    assert len(read_list(tmp_path / "x_train.txt")) == 19
    assert "2 files that are not game records were left out" in capsys.readouterr().out


def test_names_that_are_not_utf_8_are_listed_and_found(games, tmp_path, capsys):
    strange = {b"\x81\xff.csa", "棋譜.csa".encode("cp932"), "棋譜.csa".encode()}
    try:
        for name in strange:
            (games / os.fsdecode(name)).touch()
    except (OSError, UnicodeError):
        pytest.skip("this file system takes text only")
    assert make_kifu_list.main([str(games), str(tmp_path / "x"), "--ratio", "1"]) == 0
    found = read_list(tmp_path / "x_train.txt")
    assert len(found) == 19 + len(strange)
    assert not any(source.problem for source in found)
    assert strange <= {os.path.basename(os.fsencode(source.path)) for source in found}


@pytest.mark.parametrize("name", [" games", "\u3000games", '"games"'])
def test_names_that_begin_like_no_path_are_found_again(games, tmp_path, name):
    folder = games.rename(tmp_path / name)
    assert make_kifu_list.main([str(folder), str(tmp_path / "list")]) == 0
    found = [*read_list(tmp_path / "list_train.txt"), *read_list(tmp_path / "list_test.txt")]
    assert len(found) == 19
    assert not any(source.problem for source in found)


def test_a_folder_whose_name_is_not_utf_8(games):
    program = "import sys; from pydlshogi.commands.make_kifu_list import main; sys.exit(main())"
    folder = os.fsencode(games.parent) + b"/\x81\xff"
    try:
        os.rename(games, folder)
    except (OSError, UnicodeError):
        pytest.skip("this file system takes text only")
    done = subprocess.run(
        [sys.executable, "-c", program, folder, folder + b"/x"],
        env={**os.environ, "PYTHONIOENCODING": "utf-8:strict"},
        capture_output=True,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(read_list(os.fsdecode(folder + b"/x_train.txt"))) == 17


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
@pytest.mark.parametrize("absolute", [True, False])
def test_a_record_that_is_a_link_is_listed_by_its_own_name(tmp_path, absolute):
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "0123abc").touch()
    (tmp_path / "games").mkdir()
    (tmp_path / "games" / "a.kif").symlink_to(tmp_path / "store" / "0123abc")
    kifu_split.write_lists({tmp_path / "list.txt": [tmp_path / "games" / "a.kif"]}, absolute)
    line = (tmp_path / "list.txt").read_text(encoding="utf-8").rstrip("\n")
    assert line == (str(tmp_path.resolve() / "games" / "a.kif") if absolute else "games/a.kif")


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_folder_that_is_a_link_is_listed_by_its_own_name_below_the_list(tmp_path):
    (tmp_path / "store" / "2016").mkdir(parents=True)
    (tmp_path / "store" / "2016" / "a.kif").touch()
    (tmp_path / "lists").mkdir()
    (tmp_path / "games").symlink_to(tmp_path / "store")
    (tmp_path / "link").symlink_to(tmp_path / "store" / "2016")
    records = [tmp_path / "games" / "2016" / "a.kif"]
    below, beside, linked = (tmp_path / name / "x.txt" for name in ("", "lists", "link"))
    kifu_split.write_lists({path: records for path in (below, beside, linked)})
    assert below.read_text(encoding="utf-8") == "games/2016/a.kif\n"
    assert beside.read_text(encoding="utf-8") == "../store/2016/a.kif\n"
    assert linked.read_text(encoding="utf-8") == "a.kif\n"
    for path in (below, beside, linked):
        assert [Path(record.path).is_file() for record in read_list(path)] == [True]


def test_absolute_paths(games, tmp_path):
    assert make_kifu_list.main([str(games), str(tmp_path / "x"), "--absolute"]) == 0
    lines = (tmp_path / "x_train.txt").read_text(encoding="utf-8").splitlines()
    assert lines and all(Path(line).is_file() and Path(line).is_absolute() for line in lines)


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["nowhere", "x"], "not a folder"),
        ([".", "x"], "holds no .csa"),
        (["games", "file/x"], "cannot be written"),
    ],
)
def test_bad_input_is_one_sentence(games, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(games.parent)
    Path("file").touch()
    if arguments[0] == ".":
        monkeypatch.chdir(games.parent.joinpath("games", "2016", "a b"))
        for file in Path().iterdir():
            file.unlink()
    assert make_kifu_list.main(arguments) == 1
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


@pytest.mark.parametrize("ratio, part", [("0", "train"), ("1", "test")])
def test_an_empty_part_is_told(games, tmp_path, capsys, ratio, part):
    assert make_kifu_list.main([str(games), str(tmp_path / "new" / "x"), "--ratio", ratio]) == 0
    error = capsys.readouterr().err
    assert f"no file is left for {part}" in error and error.count("\n") == 1
    assert (tmp_path / "new" / f"x_{part}.txt").read_bytes() == b""


@pytest.mark.parametrize("name", [".", "..", "new/", "/"])
def test_a_folder_is_no_name_for_lists(games, monkeypatch, capsys, name):
    monkeypatch.chdir(games.parent)
    with pytest.raises(SystemExit) as stop:
        make_kifu_list.main(["games", name])
    assert stop.value.code == 2
    assert f"{name} is a folder; add the NAME" in capsys.readouterr().err
    assert not list(games.parent.rglob("*_train.txt"))


def test_both_lists_are_written_or_none(games, monkeypatch, capsys):
    monkeypatch.chdir(games.parent)
    Path("x_train.txt").write_text("old", encoding="utf-8")
    Path("x_test.txt").mkdir()
    assert make_kifu_list.main(["games", "x"]) == 1
    assert "x_test.txt cannot be written" in capsys.readouterr().err
    assert Path("x_train.txt").read_text(encoding="utf-8") == "old"


@pytest.mark.parametrize("refused", ["k_train.txt", "k_test.txt"])
@pytest.mark.parametrize("old", ["old", None])
def test_if_one_list_cannot_be_replaced_both_stay(games, monkeypatch, capsys, refused, old):
    monkeypatch.chdir(games.parent)
    lists = [Path("k_train.txt"), Path("k_test.txt")]
    for path in lists:
        if old:
            path.write_text(old)
    replace = os.replace

    def locked(source, target):  # as on Windows, while a program holds the file open
        if Path(target).name == refused:
            raise OSError(5, "Access is denied")
        replace(source, target)

    monkeypatch.setattr(os, "replace", locked)
    assert make_kifu_list.main(["games", "k"]) == 1
    assert f"{refused} cannot be written" in capsys.readouterr().err
    assert [path.read_text() if path.exists() else None for path in lists] == [old, old]


def test_folders_that_cannot_be_searched_are_told(games, monkeypatch, capsys):
    scandir = os.scandir

    def closed(path):
        if str(path).endswith("2016"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", closed)
    make_kifu_list.main([str(games), str(games.parent / "x")])
    assert "2016 (Permission denied) is left out" in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="no file of Windows has such a name")
def test_a_name_that_no_list_can_hold_is_told(games, capsys):
    (games / "a\nb.csa").touch()
    assert make_kifu_list.main([str(games), str(games.parent / "x")]) == 1
    error = capsys.readouterr().err
    assert r"'games/a\nb.csa' contains a line break" in error and error.count("\n") == 1
    assert not list(games.parent.glob("x*"))


@pytest.mark.parametrize("ratio", ["-0.1", "1.1", "nan", "most"])
def test_ratio_out_of_range(games, tmp_path, ratio):
    with pytest.raises(SystemExit) as stop:
        make_kifu_list.main([str(games), str(tmp_path / "x"), "--ratio", ratio])
    assert stop.value.code == 2
    assert not list(tmp_path.glob("x*"))


def test_each_folder_of_a_long_list_is_resolved_once(tmp_path, monkeypatch):
    records = [tmp_path / "games" / f"{number}.csa" for number in range(50)]
    resolve, calls = Path.resolve, []

    def counted(path, *arguments, **options):
        calls.append(path)
        return resolve(path, *arguments, **options)

    monkeypatch.setattr(Path, "resolve", counted)
    content = kifu_split.content_of(tmp_path / "list.txt", records)
    assert content == "".join(f"games/{number}.csa\n" for number in range(50)).encode()
    assert len(calls) <= 2
