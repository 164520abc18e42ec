"""The program play, as a user starts it."""

import os
import subprocess
import sys
import urllib.request

import pytest

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="the browser is a script"),
    pytest.mark.long,
]


def first_lines(folder, environment, number):
    """Starts the program, asks for the page, and returns the first lines that it prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pydlshogi", "play", "--games", str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "DISPLAY": "", "WAYLAND_DISPLAY": "", **environment},
    )
    try:
        lines = [process.stdout.readline().strip() for _ in range(number)]
        assert urllib.request.urlopen(lines[1], timeout=20).status == 200
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()
    return lines


def test_a_browser_that_does_not_return_delays_nothing(tmp_path):
    browser = tmp_path / "browser"
    browser.write_text("#!/bin/sh\nexec sleep 40\n")
    browser.chmod(0o755)
    first_lines(tmp_path, {"DISPLAY": ":99", "BROWSER": str(browser)}, 2)


def test_a_machine_without_a_display_is_told_to_open_the_address(tmp_path):
    assert "Open this address yourself" in first_lines(tmp_path, {}, 3)[2]
