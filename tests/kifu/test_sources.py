"""Which files a list names."""

import os
from pathlib import Path

import pytest

from pydlshogi.kifu.shards import MAGIC
from pydlshogi.kifu.sources import KifuError, is_archive, read_list


@pytest.fixture
def folder(tmp_path):
    for name in ("b.csa", "a.KIF", "sub/c.kifu", "sub/d.txt", "e.zip"):
        path = tmp_path / "games" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    return tmp_path


def sources(folder, text):
    kifu_list = folder / "list.txt"
    kifu_list.write_bytes(text.encode())
    return read_list(kifu_list)


def test_size_and_time_are_the_files(folder):
    (source,) = sources(folder, "games/b.csa")
    status = os.stat(folder / "games" / "b.csa")
    assert source == ("games/b.csa", source.path, status.st_size, status.st_mtime_ns, "")
    assert os.path.samefile(source.path, folder / "games" / "b.csa")


@pytest.mark.skipif(os.sep == "\\", reason="there, the system itself takes both")
def test_a_path_may_have_the_backslashes_of_windows(folder):
    (source,) = sources(folder, "games\\sub\\c.kifu")
    assert not source.problem
    assert os.path.samefile(source.path, folder / "games" / "sub" / "c.kifu")
    (folder / "games\\b.csa").write_bytes(b"another file, whose name has a backslash")
    (source,) = sources(folder, "games\\b.csa")
    assert os.path.samefile(source.path, folder / "games\\b.csa")


def test_a_folder_gives_its_records_in_order(folder):
    for name in ("games", "games/", str(folder / "games")):
        found = sources(folder, name)
        shown = name.rstrip("/")
        assert [source.name for source in found] == [
            f"{shown}/{inside}" for inside in ("a.KIF", "b.csa", "e.zip", "sub/c.kifu")
        ]
        assert [bool(source.problem) for source in found] == [False, False, True, False]


def test_a_folder_tells_what_it_holds_and_does_not_open(folder):
    (folder / "games" / "sub" / "f.csa.gz").write_bytes(b"x")
    (folder / "games" / "g.csa").symlink_to("nowhere")
    found = {source.name: source.problem for source in sources(folder, "games")}
    assert "write its path into the list" in found["games/e.zip"]
    assert "unpack it first" in found["games/sub/f.csa.gz"]
    assert "its size cannot be read (No such file" in found["games/g.csa"]
    assert not found["games/b.csa"]


def test_a_folder_that_cannot_be_searched_is_told(folder, monkeypatch):
    scandir = os.scandir

    def closed(path):
        if str(path).endswith("sub"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", closed)
    found = {source.name: source.problem for source in sources(folder, "games\ngames/sub")}
    assert "cannot be searched (Permission denied)" in found["games/sub"]
    assert not found["games/b.csa"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("two.csa", b"PI\n+\n+7776FU\n/\nPI\n+\n+7776FU\n"),
        ("two.txt", b"V2.2\r\nPI\r\n+\r\n+7776FU\r\n/\r\nPI\r\n+\r\n+7776FU\r\n"),
        ("a.kif", "手合割：平手".encode()),
        ("kif.txt", "手合割：平手\n手数----指手\n/\n".encode("cp932")),
        ("wdoor2016.7z", b"?\n/\n"),
        ("wdoor2016", b"7z\xbc\xaf\x27\x1c\n/\n"),
        ("games.zip", b""),
        ("games.tar.gz", b"\x1f\x8b\n/\n"),
        ("train.pickle", b"\x80\x03(\0\n/\n"),
        ("00000-00000.shard", MAGIC + b"\n/\n"),
    ],
)
def test_what_is_no_list_is_not_searched_for(folder, monkeypatch, name, content):
    # Each line would be a path, and / would be the whole disk.
    monkeypatch.setattr(os, "scandir", lambda path: pytest.fail(f"{path} is searched"))
    (folder / name).write_bytes(content)
    with pytest.raises(KifuError, match=r"not a kifu list; .* one path a line, and give that file"):
        read_list(folder / name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_told_and_not_waited_for(folder):
    os.mkfifo(folder / "pipe.csa")
    (source,) = sources(folder, "pipe.csa")
    assert "it is a device or a pipe" in source.problem


def test_names_in_deep_folders_are_shown_from_the_list_on(folder):
    (folder / "games" / "sub" / "deeper").mkdir()
    (folder / "games" / "sub" / "deeper" / "h.csa").touch()
    for name, shown in (("games/", "games"), (".", "."), ("games/../games", "games/../games")):
        found = {source.name: source for source in sources(folder, name)}
        inside = "games/sub/deeper/h.csa" if name == "." else "sub/deeper/h.csa"
        path = found[f"{shown}/{inside}"].path
        assert os.path.samefile(path, folder / "games" / "sub" / "deeper" / "h.csa")


def test_a_list_behind_a_link_names_files_beside_itself(folder):
    (folder / "list.txt").write_bytes(b"games/b.csa\n")
    (folder / "elsewhere").mkdir()
    try:
        (folder / "elsewhere" / "link.txt").symlink_to(folder / "list.txt")
    except OSError:
        pytest.skip("this system makes no links")
    (source,) = read_list(folder / "elsewhere" / "link.txt")
    assert os.path.samefile(source.path, folder / "games" / "b.csa")
    # The folder of the link comes first.
    (folder / "elsewhere" / "games").mkdir()
    (folder / "elsewhere" / "games" / "b.csa").write_bytes(b"x")
    (source,) = read_list(folder / "elsewhere" / "link.txt")
    assert os.path.samefile(source.path, folder / "elsewhere" / "games" / "b.csa")


def test_any_file_named_itself_is_taken(folder):
    found = sources(folder, "games/sub/d.txt\ngames/e.zip\n")
    assert [is_archive(source) for source in found] == [False, True]
    assert not any(source.problem for source in found)


def test_what_is_not_there_keeps_its_place(folder):
    found = sources(folder, "none.csa\n\n  games/b.csa  \nnone\n")
    assert [bool(source.problem) for source in found] == [True, False, True]
    assert "line 4 of the list" in found[2].problem


# File names of other systems: undecodable, CP932 and EUC-JP.
STRANGE_NAMES = [b"\x81\xff.csa", "棋譜.csa".encode("cp932"), "棋譜.csa".encode("euc_jp")]


@pytest.mark.parametrize("strange", STRANGE_NAMES)
def test_names_that_are_not_utf_8_are_found_beside_those_that_are(folder, strange):
    names = [strange, "飛車.csa".encode(), b"a.csa"]
    try:
        for name in names:
            (folder / os.fsdecode(name)).write_bytes(name)
    except (OSError, UnicodeError):
        pytest.skip("this file system takes text only")
    (folder / "list.txt").write_bytes(b"\n".join(names))
    found = read_list(folder / "list.txt")
    assert not any(source.problem for source in found)
    assert [Path(source.path).read_bytes() for source in found] == names


def test_windows_reads_on_past_names_that_are_no_text(folder, monkeypatch):
    # On Windows an undecodable file name raises.
    monkeypatch.setattr(os, "fsdecode", lambda name: name.decode("utf-8", "surrogatepass"))
    (folder / "list.txt").write_bytes(b"\x81\xff.csa\ngames/b.csa\n")
    found = read_list(folder / "list.txt")
    assert [bool(source.problem) for source in found] == [True, False]


def test_a_path_may_have_quotation_marks_around_it(folder):
    found = sources(folder, '"games/b.csa"\n"none.csa"\n"\n')
    assert [bool(source.problem) for source in found] == [False, True, True]
    assert found[0].path.endswith("b.csa")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_list_of_powershell(folder, encoding):
    (folder / "棋譜.csa").write_bytes(b"x")
    text = "\ufeff棋譜.csa\r\ngames/b.csa\r\n"
    for cut in (0, 1):  # half a letter at the end is no reason to stop
        (folder / "list.txt").write_bytes(text.encode(encoding) + b"x" * cut)
        found = read_list(folder / "list.txt")
        assert [source.name for source in found[:2]] == ["棋譜.csa", "games/b.csa"]
        assert not any(source.problem for source in found[:2])


def test_a_list_that_is_a_folder(folder):
    with pytest.raises(KifuError, match="cannot be read"):
        read_list(folder / "games")
