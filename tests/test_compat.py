"""Chainer imports and works on this Python and numpy, and leaves no trace."""

import ast
import subprocess
import sys
from pathlib import Path

import numpy

import pydlshogi
from pydlshogi.compat import chainer


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_chainer_trains_a_step():
    link = chainer.links.Linear(3, 2)
    optimizer = chainer.optimizers.SGD(lr=0.1).setup(link)
    before = link.W.array.copy()
    x = numpy.ones((4, 3), dtype=numpy.float32)
    t = numpy.zeros(4, dtype=numpy.int32)
    optimizer.update(lambda: chainer.functions.softmax_cross_entropy(link(x), t))
    assert not numpy.array_equal(before, link.W.array)


def test_numpy_gets_back_what_was_lent():
    result = run(
        "import numpy; before = set(vars(numpy)); import pydlshogi.compat;"
        "assert 'sctypes' in before or 'sctypes' not in vars(numpy)"
    )
    assert result.returncode == 0, result.stderr


def test_import_is_silent():
    result = run("import pydlshogi.compat")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_plain_import_works_after_ours():
    result = run("import pydlshogi.compat, chainer, chainer.functions as F; F.relu")
    assert result.returncode == 0, result.stderr


def test_importing_the_package_loads_nothing_heavy():
    result = run(
        "import sys, pydlshogi; heavy = {'numpy', 'chainer', 'cupy', 'shogi'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    assert result.returncode == 0, result.stderr


def test_nobody_else_imports_chainer():
    package = Path(pydlshogi.__file__).parent
    sources = [*package.rglob("*.py"), *package.parent.glob("*.py")]
    for folder in ("utils", "benchmarks"):
        sources += package.parent.joinpath(folder).glob("*.py")
    assert len(sources) > 5
    for source in sources:
        if source == package / "compat.py":
            continue
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            else:
                continue
            assert not any(name.split(".")[0] == "chainer" for name in names), source
