"""Two runs never write the same files."""

import errno
import os
import pathlib
import signal
import subprocess
import sys
import textwrap

import pytest

from pydlshogi.errors import UserError
from pydlshogi.lock import LockedError, lock_outputs

HOLDER = """
    import sys
    from pydlshogi.lock import lock_outputs
    with lock_outputs(*sys.argv[1:]):
        print("locked", flush=True)
        sys.stdin.read()
"""


@pytest.fixture
def holder():
    """Starts processes that hold locks until their input ends."""
    processes = []

    def start(*paths):
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(HOLDER), *map(str, paths)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        assert process.stdout.readline() == "locked\n", process.communicate()[1]
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture
def model(tmp_path):
    """The path of a model that no run has written yet."""
    return tmp_path / "model_policy"


def test_a_second_run_is_told_which_process_is_the_first(holder, model):
    first = holder(model)
    with pytest.raises(UserError) as error, lock_outputs(model):
        pass
    assert f"another run (process {first.pid} on " in str(error.value)
    assert f" is writing {model}." in str(error.value)
    assert "\n" not in str(error.value)


def test_a_refused_run_leaves_the_first_one_locked(holder, model):
    holder(model)
    for _ in range(3):
        with pytest.raises(LockedError, match="process "), lock_outputs(model):
            pass


def test_the_end_of_a_run_releases_its_lock_and_removes_its_files(holder, model, tmp_path):
    first = holder(model)
    assert len(list(tmp_path.iterdir())) == 2
    first.communicate()
    assert first.returncode == 0
    assert not list(tmp_path.iterdir())
    with lock_outputs(model):
        pass
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGINT"])
def test_a_killed_run_releases_its_lock(holder, model, name):
    if not hasattr(signal, name) or os.name == "nt":
        pytest.skip("Windows has no such signal")
    first = holder(model)
    first.send_signal(getattr(signal, name))
    # Its input ends, too: just before it begins to read, SIGINT would wait for the next line.
    first.communicate(timeout=60)
    with lock_outputs(model):
        second = os.getpid()
        assert f"process {second} on " in model.with_name(".model_policy.owner").read_text()


def test_runs_with_other_files_do_not_disturb_each_other(holder, tmp_path):
    holder(tmp_path / "a", tmp_path / "b")
    with lock_outputs(tmp_path / "c", ""):
        holder(tmp_path / "d")


def test_each_of_several_files_is_locked(holder, tmp_path):
    holder(tmp_path / "a", tmp_path / "b")
    refused = pytest.raises(LockedError, match=r"is writing .*b\.")
    with refused, lock_outputs(tmp_path / "c", tmp_path / "b"):
        pass
    with lock_outputs(tmp_path / "c"):  # the refused run holds nothing
        pass


def test_one_file_named_twice_is_locked_once(model):
    with lock_outputs(model, os.path.join(model.parent, ".", model.name)):
        pass


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
def test_a_link_has_the_lock_of_its_file(holder, model, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(model)
    holder(model)
    with pytest.raises(LockedError), lock_outputs(link):
        pass


def test_an_error_of_the_run_passes_through_and_releases_the_lock(model, tmp_path):
    with pytest.raises(ZeroDivisionError), lock_outputs(model):
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())


def test_a_full_disk_does_not_hide_behind_the_lock(model, monkeypatch):
    def full(self, *arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pathlib.Path, "write_text", full)
    with lock_outputs(model):
        pass


def test_a_lock_that_cannot_be_made_is_an_error_of_the_system(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError), lock_outputs(tmp_path / "file" / "model"):
        pass


@pytest.mark.parametrize(
    "error", [NotImplementedError(), OSError(errno.ENOLCK, "No locks available")], ids=repr
)
def test_a_file_system_without_locks_does_not_stop_a_run(model, monkeypatch, error):
    import filelock

    def acquire(self):
        raise error

    monkeypatch.setattr(filelock.FileLock, "acquire", acquire)
    with lock_outputs(model):
        pass


@pytest.mark.skipif(os.name == "nt", reason="Windows lets few users make links")
def test_no_file_of_a_lock_follows_a_link_of_another_user(holder, model, tmp_path):
    other = tmp_path / "other"
    other.write_text("another file")
    owner = model.with_name(f".{model.name}.owner")
    owner.symlink_to(other)
    with lock_outputs(model):
        assert owner.read_text().startswith("process ")
    first = holder(model)
    owner.unlink()
    owner.symlink_to(other)
    with pytest.raises(LockedError, match="^another run is writing"), lock_outputs(model):
        pass
    owner.unlink()
    os.mkfifo(owner)
    with pytest.raises(LockedError, match="^another run is writing"), lock_outputs(model):
        pass
    first.communicate()
    model.with_name(f".{model.name}.lock").symlink_to(other)
    with pytest.raises(OSError, match="it is a link; remove it"), lock_outputs(model):
        pass
    assert other.read_text() == "another file"
