"""A game in a real GUI: xboard, with uci2wb as the adapter to USI, on a virtual screen."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATH = os.pathsep.join([os.environ["PATH"], "/usr/games"])
PROGRAMS = {name: shutil.which(name, path=PATH) for name in ("xboard", "uci2wb", "xvfb-run")}


@pytest.mark.slow
@pytest.mark.skipif(not all(PROGRAMS.values()), reason="needs xboard, uci2wb and xvfb")
def test_xboard_plays_a_whole_game(tmp_path):
    # xboard starts the engine by its first line, and splits commands at spaces.
    program = tmp_path / "engine"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ROOT / "policy_player_usi.py"}"\n')
    program.chmod(0o755)
    engine = f"{PROGRAMS['uci2wb']} -s {program} {tmp_path}"
    command = [PROGRAMS["xvfb-run"], "-a", PROGRAMS["xboard"], "-variant", "shogi", "-noGUI"]
    command += ["-fcp", engine, "-scp", engine, "-matchGames", "1", "-timeIncrement", "1"]
    command += ["-debugMode", "true", "-nameOfDebugFile", "xboard.debug"]
    command += ["-saveGameFile", "game.pgn"]
    environment = {**os.environ, "HOME": str(tmp_path), "PATH": PATH}
    debug_file = tmp_path / "xboard.debug"
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        # xboard keeps its window after the game.
        end = time.monotonic() + 120
        while time.monotonic() < end and process.poll() is None:
            if debug_file.exists() and b">second: quit" in debug_file.read_bytes():
                break
            time.sleep(0.2)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
    record = (tmp_path / "game.pgn").read_text()
    debug = debug_file.read_text(errors="replace")
    assert record.count("[Event ") == 1
    assert '[White "policy_player (USI2WB)"]' in record
    assert record.count(". ") > 15
    assert "llegal move" not in debug + record
    assert "exited unexpectedly" not in debug
