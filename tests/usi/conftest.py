"""Fixtures for dialogues with an engine: as a process, or in this process with a toy player."""

import contextlib
import io
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path

import numpy
import pytest

from pydlshogi.player.engine_options import policy_options
from pydlshogi.player.engine_player import EnginePlayer
from pydlshogi.usi.engine import Engine
from pydlshogi.usi.output import Output

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = REPOSITORY / "policy_player_usi.py"
#: Seconds to wait for an answer. This only ends a test that hangs.
PATIENCE = 120


class Program:
    """An engine in a process of its own; a thread reads its answers."""

    def __init__(self, command, **kwargs):
        kwargs.setdefault("stderr", subprocess.PIPE)
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **kwargs
        )
        self.said = []
        self._answers = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.stderr = b""
        if self.process.stderr:
            threading.Thread(target=self._drain, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self._answers.put(line.decode("ascii").rstrip("\r\n"))
        self._answers.put(None)

    def _drain(self):
        for line in self.process.stderr:
            self.stderr += line

    def send(self, *lines):
        """Writes lines, given as text or bytes."""
        for line in lines:
            self.process.stdin.write(line if isinstance(line, bytes) else f"{line}\n".encode())
        self.process.stdin.flush()

    def until(self, start):
        """Returns the answers up to the first one with this start; None waits for the end."""
        answers = []
        while True:
            try:
                answer = self._answers.get(timeout=PATIENCE)
            except queue.Empty:
                pytest.fail(f"no {start!r} after {answers[-20:]}")
            if answer is None:
                if start is None:
                    return answers
                pytest.fail(f"ended without {start!r} after {answers[-20:]}, {self.stderr[-2000:]}")
            self.said.append(answer)
            answers.append(answer)
            if start is not None and answer.startswith(start):
                return answers

    def ask(self, line, start):
        """Writes a line and returns the answers up to the first one with this start."""
        self.send(line)
        return self.until(start)

    def obey(self):
        """Waits until the engine has obeyed all lines, and returns its answers.

        ``usi`` does not serve for this: an engine may answer it during a search.
        """
        self.send("nonsense")
        return self.until("info string unknown command 'nonsense'")

    def heard(self):
        """Returns the answers that have come since the last call, without waiting."""
        answers = []
        with contextlib.suppress(queue.Empty):
            while True:
                answers.append(self._answers.get_nowait())
        self.said += answers
        return answers

    def leave(self, *lines):
        """Writes lines, closes the input and returns the exit status."""
        if lines:
            self.send(*lines)
        self.process.stdin.close()
        return self.process.wait(PATIENCE)


class ToyPlayer(EnginePlayer):
    """Plays the first legal move, or resigns."""

    def choose(self, go):
        return next((move.usi() for move in self.board.legal_moves), "resign")


@pytest.fixture(scope="session")
def model_file(tmp_path_factory):
    """A narrow network of random weights, in a file whose path has spaces."""
    from pydlshogi.model_files.model_file import save_model
    from pydlshogi.network.policy import PolicyNetwork

    numpy.random.seed(20180824)
    path = tmp_path_factory.mktemp("a folder") / "my model.npz"
    save_model(path, PolicyNetwork(channels=16))
    return path


@pytest.fixture
def environment():
    """Environment variables that make ``python3`` the Python of these tests."""
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    return {**os.environ, "PATH": path}


@pytest.fixture
def start():
    """Starts programs; kills them at the end of the test."""
    programs = []

    def start_program(command=(sys.executable, str(PROGRAM)), **kwargs):
        programs.append(Program([str(word) for word in command], **kwargs))
        return programs[-1]

    yield start_program
    for program in programs:
        program.process.kill()
        program.process.wait()


@pytest.fixture(scope="module")
def start_once():
    """Starts a program for the first test of a module that asks; the next ones get the same.

    Such tests set no options and do not end the program. It begins each test without a search.
    """
    programs = []

    def start_program(*lines, command=(sys.executable, str(PROGRAM))):
        if not programs:
            programs.append(Program([str(word) for word in command]))
            programs[-1].send(*lines)
        program = programs[-1]
        try:
            program.send("stop", "usinewgame", "position startpos")
            program.obey()
        except BaseException:  # the next test gets a new one
            programs.pop().process.kill()
            raise
        program.said.clear()
        return program

    yield start_program
    for program in programs:
        program.process.kill()
        program.process.wait()


@pytest.fixture
def shared(start_once, model_file):
    """An engine that has answered readyok, and that other tests use too."""
    return start_once(f"setoption name modelfile value {model_file}", "isready")


@pytest.fixture
def ready(start, model_file):
    """An engine that has answered readyok."""
    program = start()
    program.send(f"setoption name modelfile value {model_file}", "isready")
    program.until("readyok")
    return program


@pytest.fixture
def toy_player():
    """A player that needs no network."""
    return ToyPlayer


@pytest.fixture
def dialogue(tmp_path):
    """Runs an engine with a toy player on some lines and returns its answers.

    A function among the lines is called when the engine asks for the next line.
    """

    def run(*lines, player=ToyPlayer):
        stream = io.BytesIO()
        options = policy_options()
        output = Output(stream)
        engine = Engine("toy", options, lambda send: player(options, send), output, tmp_path)

        def written():
            for line in lines:
                if callable(line):
                    line()
                else:
                    yield line if isinstance(line, bytes) else f"{line}\n".encode()

        assert engine.run(written())
        return stream.getvalue().decode("ascii").splitlines()

    return run
