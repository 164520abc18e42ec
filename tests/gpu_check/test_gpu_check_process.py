"""A command with a time limit: its output, its end, and the end of what it started."""

import os
import sys
import time

import pytest
from gpu_parts.process import run

WAITING = """
import sys, time
print("ready", flush=True)
try:
    time.sleep(60)
except KeyboardInterrupt:
    print("saved", flush=True)
    sys.exit(130)
"""

DEAF = """
import signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(child.pid, flush=True)
time.sleep(60)
"""

POSIX_ONLY = pytest.mark.skipif(os.name == "nt", reason="Windows has no Ctrl-C for a process")


@pytest.fixture
def call(tmp_path):
    def call(code, seconds=30.0):
        command = [sys.executable, "-c", code]
        log = tmp_path / "log.txt"
        return run(command, seconds, log, folder=tmp_path, environment=os.environ)

    return call


def test_the_output_is_returned_and_logged(call, tmp_path):
    ended = call("import sys; print('one'); print('two é', file=sys.stderr)")
    assert (ended.status, sorted(ended.lines)) == (0, ["one", "two é"])
    log = (tmp_path / "log.txt").read_text(encoding="utf-8")
    assert log.startswith(f"$ {sys.executable} -c ") and "two é" in log


def test_the_reason_of_a_failure_is_its_last_line(call):
    ended = call("print('start', flush=True); raise ValueError('broken')")
    assert ended.status == 1
    assert ended.reason == "exit status 1: ValueError: broken"


def test_a_command_without_output_has_a_reason_too(call):
    assert call("import sys; sys.exit(3)").reason == "exit status 3: no output"


@pytest.mark.long
@POSIX_ONLY
def test_at_the_limit_a_command_may_save_its_work(call):
    ended = call(WAITING, 8)
    assert (ended.status, ended.lines) == (None, ["ready", "saved"])
    assert ended.seconds < 8.5
    assert "time limit" in ended.reason


@pytest.mark.long
@POSIX_ONLY
def test_a_command_that_ignores_ctrl_c_is_killed_with_its_children(call):
    ended = call(DEAF, 6)
    assert ended.status is None
    pid = int(ended.lines[0])
    end = time.monotonic() + 20
    while is_running(pid) and time.monotonic() < end:
        time.sleep(0.05)
    assert not is_running(pid)


def is_running(pid):
    """Whether a process is there and is no zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_no_time_left_ends_a_command_at_once(call):
    assert call("import time; time.sleep(60)", 0).status is None
