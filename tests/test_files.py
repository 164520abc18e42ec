"""Files written atomically."""

import os
import stat
import time
from pathlib import Path

import pytest

from pydlshogi import files


def test_new_content_replaces_old(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with files.write_beside(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]


def test_an_error_leaves_the_old_content_and_no_rest(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), files.write_beside(path) as file:
        file.write(b"half of the new con")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


@pytest.fixture
def refusals(monkeypatch):
    """Lets a rename fail as often as the list says, as Windows does for an open file."""
    rename, left = os.replace, []

    def refusing(source, target):
        if left:
            raise left.pop()
        rename(source, target)

    monkeypatch.setattr(os, "replace", refusing)
    monkeypatch.setattr(files.time, "sleep", lambda seconds: None)
    return left


def test_a_file_that_is_open_elsewhere_for_a_moment_is_replaced(tmp_path, refusals):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    refusals += [PermissionError(13, "Access is denied")] * 3
    with files.write_beside(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_that_is_open_elsewhere_for_long_is_an_error(tmp_path, refusals):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    refusals += [PermissionError(13, "Access is denied")] * 99
    with pytest.raises(PermissionError), files.write_beside(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no permission bits")
def test_permissions_follow_the_umask(tmp_path):
    umask = os.umask(0o027)
    try:
        with files.write_beside(tmp_path / "file"):
            pass
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


@pytest.mark.skipif(os.name == "nt", reason="Windows has no permission bits")
@pytest.mark.parametrize("mode", [0o600, 0o664, 0o444])
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path, mode):
    path = tmp_path / "file"
    path.touch()
    path.chmod(mode)
    with files.write_beside(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError), files.write_beside(tmp_path / "missing" / "file"):
        pass


def test_shipped_model_is_in_the_clone_or_beside_the_package(tmp_path, monkeypatch):
    package = tmp_path / "pydlshogi"
    (package / "model").mkdir(parents=True)
    monkeypatch.setattr(files, "__file__", str(package / "files.py"))
    in_clone = tmp_path / "model" / "model_policy"
    in_wheel = package / "model" / "model_policy"
    assert files.shipped_model("model_policy") == in_clone
    in_wheel.touch()
    assert files.shipped_model("model_policy") == in_wheel
    in_clone.parent.mkdir()
    in_clone.touch()
    assert files.shipped_model("model_policy") == in_clone


def test_the_best_shipped_model_has_two_heads_if_it_is_there(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "shipped_file", lambda name: tmp_path / name)
    assert files.shipped_model() == tmp_path / "model_policy"
    (tmp_path / "model_policy_value").touch()
    assert files.shipped_model() == tmp_path / "model_policy_value"


def test_an_error_names_the_file_to_write(tmp_path, monkeypatch):
    path = tmp_path / "file"

    def full_disk(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    match = "No space left on device: .*file'$"
    with pytest.raises(OSError, match=match) as caught, files.write_beside(path):
        pass
    assert caught.value.filename == str(path)
    with pytest.raises(FileNotFoundError) as caught, files.write_beside(tmp_path / "no" / "file"):
        pass
    assert caught.value.filename == str(tmp_path / "no" / "file")


def test_an_error_about_another_file_still_names_that(tmp_path):
    other = str(tmp_path / "other")
    with pytest.raises(FileNotFoundError) as caught, files.write_beside(tmp_path / "file"):
        os.stat(other)
    assert caught.value.filename == other


def test_an_error_of_the_renaming_names_the_file_to_write(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError) as caught, files.write_beside(tmp_path / "folder"):
        pass
    assert (caught.value.filename, caught.value.filename2) == (str(tmp_path / "folder"), None)
    assert os.listdir(tmp_path) == ["folder"]


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_and_leads_to_the_new_content(tmp_path, exists):
    target = tmp_path / "drive" / "file"
    target.parent.mkdir()
    if exists:
        target.write_bytes(b"old")
    (tmp_path / "link").symlink_to(Path("drive") / "file")
    with files.write_beside(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert target.read_bytes() == b"new"
    assert os.listdir(target.parent) == ["file"]
    waiting = files.next_to(tmp_path / "link")
    assert waiting == target.resolve().with_name("file.next")
    waiting.write_bytes(b"newer")
    files.replace(waiting, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert target.read_bytes() == b"newer"


def test_old_leftovers_of_a_file_are_removed_and_nothing_else(tmp_path):
    names = [".file.abcd_123.tmp", ".file.young123.tmp", ".file.mine.tmp", ".files.abcd_123.tmp"]
    for name in names:
        (tmp_path / name).write_bytes(b"half")
        changed = time.time() - 3600 if "young" in name else 0
        os.utime(tmp_path / name, (changed, changed))
    files.remove_leftovers(tmp_path / "file")
    assert sorted(os.listdir(tmp_path)) == sorted(names[1:])
    files.remove_leftovers(tmp_path / "no folder" / "file")


def test_the_first_file_of_a_folder_removes_what_killed_programs_left(tmp_path):
    left = [".0006.html.0123abcd.tmp", ".m.old.89abcdef.tmp", ".kl_train.txt.00000000.tmp"]
    kept = [".0007.html.aaaaaaaa.tmp", ".my.settings.tmp", "m.01234567.tmp", ".01234567.tmp"]
    for name in [*left, *kept]:
        (tmp_path / name).write_bytes(b"half")
        if name != kept[0]:  # another program may still write it
            os.utime(tmp_path / name, (0, 0))
    with files.write_beside(tmp_path / "other") as file:
        file.write(b"new")
    assert sorted(os.listdir(tmp_path)) == sorted([*kept, "other"])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_device_or_a_pipe_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        with (
            pytest.raises(OSError, match="a device or a pipe") as caught,
            files.write_beside(tmp_path / name),
        ):
            pass
        assert caught.value.filename == str(tmp_path / name)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert {path.name for path in tmp_path.iterdir()} == {"pipe", "link"}
