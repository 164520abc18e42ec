"""numba compiles the search; without it, the search is the same, only slower."""

import os
import subprocess
import sys

import pytest

from pydlshogi.uct.compiler import IS_COMPILED

SEARCH = """
import sys
{first}
sys.path.insert(0, {tests!r})
from uct_helpers import endgames, make_search, run, searched, shape
from pydlshogi.uct import compiler
from pydlshogi.uct.move import from_usi
from pydlshogi.uct.search import compile_search

compile_search()
before = [len(function.signatures) for function in compiler._compiled]
print(shape(searched(200, batch_size=4, root_mate=False, line_mate=False).root))
for sfen in endgames(4, plies=4):
    print(shape(searched(80, sfen).root))
run(make_search(), 30, only=frozenset([from_usi("7g7f")]))
assert before == [len(function.signatures) for function in compiler._compiled]
"""


def searching(first="", **variables):
    """Searches in a process of its own, and returns what it prints."""
    script = SEARCH.format(first=first, tests=os.path.dirname(os.path.dirname(__file__)))
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def expected():
    """What a search with all that is installed prints. It compiles nothing after the start."""
    return searching()


def test_without_numba_the_tree_is_the_same(expected):
    assert searching("sys.modules['numba'] = None") == expected


@pytest.mark.slow
@pytest.mark.skipif(not IS_COMPILED, reason="numba is not installed")
@pytest.mark.parametrize("kind", ["damaged", "read-only", "missing"])
def test_a_cache_that_cannot_be_used_is_passed_over(kind, expected, tmp_path):
    folder = tmp_path / "cache"
    if kind == "damaged":
        searching(NUMBA_CACHE_DIR=str(folder))
        indices = list(folder.rglob("*.nbi"))
        assert indices
        for path in [*indices, *folder.rglob("*.nbc")]:
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    elif kind == "read-only":
        folder.touch()  # a file in the place of the folder: also root cannot write there
    assert searching(NUMBA_CACHE_DIR=str(folder)) == expected
