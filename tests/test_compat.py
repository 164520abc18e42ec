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


def test_the_lack_of_nccl_is_not_mentioned_but_other_warnings_are(tmp_path):
    (tmp_path / "chainer").mkdir()
    (tmp_path / "chainer" / "__init__.py").write_text(
        "import warnings\nwarnings.warn('\\nnccl library could not be loaded.')\n"
        "warnings.warn('another')"
    )
    result = run(
        "from pydlshogi.chainer_import import install; install(); import sys;"
        f"sys.path.insert(0, {str(tmp_path)!r}); import chainer; import warnings;"
        "warnings.warn('nccl library could not be loaded, later')"
    )
    assert result.returncode == 0, result.stderr
    assert "UserWarning: another" in result.stderr
    assert "nccl library could not be loaded." not in result.stderr
    assert "nccl library could not be loaded, later" in result.stderr


def test_plain_import_works_after_ours():
    result = run("import pydlshogi.compat, chainer, chainer.functions as F; F.relu")
    assert result.returncode == 0, result.stderr


def test_a_plain_import_works_first_where_the_finder_is_installed():
    hook = "from pydlshogi.chainer_import import install; install(); import sys;"
    loaded = "assert not {'numpy', 'chainer', 'typing'} & set(sys.modules);"
    result = run("import sys;" + hook + loaded + "import chainer, chainer.links, pydlshogi.compat")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_the_finder_is_installed_once_and_finds_nothing_else():
    result = run(
        "import sys; from pydlshogi.chainer_import import install; install(); install();"
        "names = [type(finder).__name__ for finder in sys.meta_path];"
        "import json, wave; assert names.count('_ChainerFinder') == 1, names;"
        "assert 'Chainer' not in type(wave.__loader__).__name__"
    )
    assert result.returncode == 0, result.stderr


def test_inspection_of_chainer_finds_its_source():
    result = run("import pydlshogi.compat, chainer, inspect; inspect.getsource(chainer)")
    assert result.returncode == 0, result.stderr


def test_the_file_for_site_packages_survives_a_package_that_is_gone(tmp_path):
    pth = Path(pydlshogi.__file__).parents[1] / "pydlshogi.pth"
    (line,) = pth.read_text(encoding="utf-8").splitlines()
    environment = {"PYTHONPATH": str(tmp_path), "PATH": ""}
    result = subprocess.run([sys.executable, "-S", "-c", line], cwd=tmp_path, env=environment)
    assert result.returncode == 0


def test_the_file_for_site_packages_leaves_the_choice_of_the_package_to_the_script(tmp_path):
    root = Path(pydlshogi.__file__).parents[1]
    (line,) = (root / "pydlshogi.pth").read_text(encoding="utf-8").splitlines()
    package = tmp_path / "another clone" / "pydlshogi"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("print('another')")
    code = (
        f"import sys; sys.path.insert(0, {str(root)!r})\n{line}\n"
        f"sys.path.insert(0, {str(package.parent)!r})\nimport pydlshogi\n"
        "names = [type(finder).__name__ for finder in sys.meta_path]\n"
        "assert names.count('_ChainerFinder') == 1, names"
    )
    result = run(code)
    assert (result.returncode, result.stdout, result.stderr) == (0, "another\n", "")


def test_importing_the_package_loads_nothing_heavy():
    result = run(
        "import sys, pydlshogi; heavy = {'numpy', 'chainer', 'cupy', 'shogi'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    assert result.returncode == 0, result.stderr


def test_nobody_else_imports_chainer():
    package = Path(pydlshogi.__file__).parent
    # The scripts have one shape (test_scripts.py). Other files beside them are the user's.
    sources = [*package.rglob("*.py"), *package.parent.glob("benchmarks/*.py")]
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
