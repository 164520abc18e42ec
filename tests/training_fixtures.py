"""Fixtures for the tests that train: BLAS on one thread, and lists of a few games."""

import shutil
from pathlib import Path

import pytest
import threadpoolctl

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="package", autouse=True)
def one_blas_thread():
    """On products as tiny as those of these tests, BLAS's threads mostly wait for each other."""
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with two lists of a few games."""
    monkeypatch.chdir(tmp_path)
    for name, count in (("train", 3), ("test", 2)):
        games = sorted((REPOSITORY / "kifu" / name).glob("*.csa"))[:count]
        for game in games:
            shutil.copy(game, tmp_path)
        text = "".join(f"{game.name}\n" for game in games)
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    return tmp_path
