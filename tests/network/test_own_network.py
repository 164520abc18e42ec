"""Networks of users, in files outside of the package."""

import sys

import numpy
import pytest
from network_helpers import outputs, some_planes

from pydlshogi.compat import chainer
from pydlshogi.layers.dirac import add_identity
from pydlshogi.model_files.model_file import MARK, ModelFileError, load_network, save_model
from pydlshogi.model_files.npz import read_npz
from pydlshogi.network import own
from pydlshogi.network.network import Network, OutputsError, split_output
from pydlshogi.network.registry import (
    UnknownNetwork,
    UnknownSize,
    make_network,
    name_of,
    network_class,
)
from pydlshogi.network.value_kind import WinLogit

CODE = """
import chainer.functions as F
import chainer.links as L
from pydlshogi.network.network import Network

class Tiny(Network):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l1 = L.Convolution2D(104, 27, ksize=3, pad=1)

    def forward(self, x):
        return F.reshape(self.l1(x), (-1, 2187))

open({trace!r}, "a").write("x")
"""


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch):
    monkeypatch.setattr(own, "_known", {})
    monkeypatch.setattr(own, "_modules", {})
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "tiny.py"
    path.write_text(CODE.format(trace=str(tmp_path / "trace")))
    return path


def runs(file):
    """How often the file was run."""
    trace = file.parent / "trace"
    return len(trace.read_text()) if trace.exists() else 0


@pytest.mark.parametrize("suffix", ["", ":Tiny"])
def test_a_network_in_a_file_is_made_by_its_name(file, suffix):
    name = own.use(f"{file}{suffix}")
    network = make_network(name)
    assert name == name_of(network) == "tiny:Tiny"
    assert outputs(network, some_planes(2))[0].shape == (2, 2187)


def test_a_model_file_holds_the_name_and_no_path(file, tmp_path):
    network = make_network(own.use(file))
    save_model(tmp_path / "model", network)
    arrays = read_npz(tmp_path / "model")
    assert str(arrays[MARK]) == "tiny:Tiny"
    assert str(tmp_path).encode() not in (tmp_path / "model").read_bytes()
    loaded = load_network(tmp_path / "model")
    planes = some_planes(2)
    numpy.testing.assert_array_equal(outputs(loaded, planes)[0], outputs(network, planes)[0])


SIZED = """
import chainer.functions as F
import chainer.links as L
from pydlshogi.network.network import Network

class Sized(Network):
    def __init__(self, channels=4):
        super().__init__()
        with self.init_scope():
            self.l1 = L.Convolution2D(104, channels, ksize=3, pad=1)
            self.l2 = L.Convolution2D(channels, 27, ksize=1)

    def forward(self, x):
        return F.reshape(self.l2(self.l1(x)), (-1, 2187))
"""
SIZES_IN = """
    @classmethod
    def sizes_in(cls, arrays):
        return {"channels": len(arrays["l1/b"])}
"""


def test_a_network_of_another_size_is_saved_and_loaded(tmp_path):
    (tmp_path / "sized.py").write_text(SIZED + SIZES_IN)
    network = make_network(own.use(tmp_path / "sized.py"), channels=6)
    save_model(tmp_path / "model", network)
    planes = some_planes(2)
    loaded = load_network(tmp_path / "model")
    numpy.testing.assert_array_equal(outputs(loaded, planes)[0], outputs(network, planes)[0])


@pytest.mark.parametrize("code", [SIZED, SIZED + SIZES_IN.replace("l1/b", "l9/b")])
def test_a_size_that_a_model_file_would_not_tell_is_refused(tmp_path, code):
    (tmp_path / "sized.py").write_text(code)
    name = own.use(tmp_path / "sized.py")
    with pytest.raises(UnknownSize, match="class sized:Sized cannot store its size.*channels=6"):
        make_network(name, channels=6)
    assert make_network(name, channels=4).l1.b.shape == (4,)  # the default


def test_a_size_that_the_class_no_longer_takes_is_named(tmp_path, monkeypatch):
    (tmp_path / "sized.py").write_text(SIZED + SIZES_IN)
    save_model(tmp_path / "model", make_network(own.use(tmp_path / "sized.py")))
    monkeypatch.setattr(own, "_known", {})
    (tmp_path / "other").mkdir()
    code = (SIZED + SIZES_IN).replace("self, channels=4", "self").replace("channels,", "4,")
    (tmp_path / "other" / "sized.py").write_text(code)
    own.use(tmp_path / "other" / "sized.py")
    with pytest.raises(ModelFileError, match="model .*no longer takes channels, which its sizes_"):
        load_network(tmp_path / "model")


def test_an_own_network_does_not_load_the_model_of_another_class_of_its_name(tmp_path):
    (tmp_path / "sized.py").write_text(SIZED + SIZES_IN)
    own.use(tmp_path / "sized.py")
    content = {"conv/b": numpy.zeros(27, "f"), MARK: numpy.array("sized:Sized")}
    with open(tmp_path / "model", "wb") as model:
        chainer.serializers.save_npz(model, content)
    with pytest.raises(ModelFileError, match="it lacks l1/W"):
        load_network(tmp_path / "model")


def test_a_model_alone_does_not_run_the_file(file, tmp_path, monkeypatch):
    save_model(tmp_path / "model", make_network(own.use(file)))
    monkeypatch.setattr(own, "_known", {})
    monkeypatch.chdir(tmp_path)  # where the file lies
    before = runs(file)
    with pytest.raises(ModelFileError, match=r"class Tiny in a file tiny\.py .*network_file"):
        load_network(tmp_path / "model")
    assert runs(file) == before


@pytest.mark.parametrize("mark", ["{file}:Tiny", "{file}", "os:system", "../tiny.py:Tiny"])
def test_no_name_in_a_model_file_makes_a_program_run_a_file(mark, file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = {"l1/b": numpy.zeros(27, "f"), MARK: numpy.array(mark.format(file=file))}
    with open(tmp_path / "model", "wb") as model:
        chainer.serializers.save_npz(model, content)
    with pytest.raises(ModelFileError):
        load_network(tmp_path / "model")
    with pytest.raises(UnknownNetwork):
        network_class(mark.format(file=file))
    assert runs(file) == 0


def test_a_file_is_run_once(file):
    assert own.use(file) == own.use(f"{file}:Tiny")
    assert runs(file) == 1


@pytest.mark.parametrize(
    "code, name, message",
    [
        (None, "", "there is no file"),
        ("1 / 0", "", "cannot be imported: ZeroDivisionError: division by zero"),
        ("def f(:", "", "cannot be imported: SyntaxError"),
        ("x = 1", "", "It has none"),
        ("from pydlshogi.network.policy import PolicyNetwork", "", "It has none"),
        (CODE.replace("class", "class A(Network): pass\nclass"), "", "Its networks: A, Tiny"),
        (
            CODE.replace("def __i", "plane_num = 105\n\n    def __i"),
            "",
            "plane_num is 105",
        ),
        (CODE, ":Other", "no network Other: .* Its networks: Tiny"),
        ("import sys\nsys.exit(3)", "", "ends the program when it is imported"),
        (
            CODE.replace("__init__(self)", "__init__(self, channels)", 1),
            "",
            "Tiny .* cannot be made without arguments: .*'channels'.* a default",
        ),
    ],
)
def test_a_file_without_the_network_is_one_sentence(code, name, message, tmp_path):
    path = tmp_path / "bad.py"
    if code is not None:
        path.write_text(code.replace("{trace!r}", repr(str(tmp_path / "trace"))))
    with pytest.raises(own.OwnNetworkError, match=message):
        own.use(f"{path}{name}")


def test_two_files_of_one_name_are_refused(file, tmp_path):
    own.use(file)
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "tiny.py"
    other.write_text(file.read_text())
    with pytest.raises(own.OwnNetworkError, match="two files named tiny.py"):
        own.use(other)


@pytest.mark.parametrize(
    "text, expected",
    [("a.py:B", 1), ("a.py", 1), (r"C:\x\a.py:B", 1), ("policy", 0), ("a.py:", 0), (":B", 0)],
)
def test_what_names_a_file(text, expected):
    assert own.is_spec(text) == expected


LAZY = """
import chainer.functions as F
import chainer.links as L
from pydlshogi.network.network import Network

class Lazy(Network):
    plane_num = 106

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l1 = L.Convolution2D(None, 3, ksize=3, pad=1)
            self.scale = L.Scale(axis=0, W_shape=())
            self.l2 = L.Linear(None, 2187)

    def forward(self, x):
        return self.l2(F.relu(self.scale(self.l1(x))))
"""


def test_a_network_that_learns_its_sizes_from_its_input_is_saved_and_loaded(tmp_path):
    (tmp_path / "lazy.py").write_text(LAZY)
    network = make_network(own.use(tmp_path / "lazy.py"))
    assert network.l1.W.shape == (3, 106, 3, 3)
    save_model(tmp_path / "model", network)
    planes = some_planes(2, plane_num=106)
    loaded = load_network(tmp_path / "model")
    numpy.testing.assert_array_equal(outputs(loaded, planes)[0], outputs(network, planes)[0])


def test_the_identity_passes_over_parameters_without_dimensions(tmp_path):
    (tmp_path / "lazy.py").write_text(LAZY)
    assert add_identity(make_network(own.use(tmp_path / "lazy.py"))) == 0


def test_a_file_may_have_dataclasses_and_import_its_neighbours(file, tmp_path):
    (tmp_path / "own_neighbour.py").write_text("SIZE = 3\n")
    code = "import own_neighbour\nfrom dataclasses import dataclass\n"
    code += "@dataclass\nclass Sizes:\n    size: int = own_neighbour.SIZE\n"
    file.write_text("from __future__ import annotations\n" + code + file.read_text())
    assert own.use(file) == "tiny:Tiny"


@pytest.mark.parametrize(
    "attributes, output, message",
    [
        ({}, (1, 2), r"class Mine returns 2 output\(s\).* say 1"),
        ({"value_kind": WinLogit}, 1, r"returns 1 output\(s\).* say 2"),
        ({"has_policy": False}, 1, r"say 0"),
        ({}, numpy.zeros((7, 27, 9, 9)), r"logits of the shape \(7, 27, 9, 9\) in place of"),
        ({"value_kind": WinLogit}, (numpy.zeros((7, 81)), 1), r"shape \(7, 81\) in place of"),
        (
            {"value_kind": WinLogit},
            (numpy.zeros((7, 2187)), numpy.zeros((7, 2))),
            r"values of the shape \(7, 2\) in place of",
        ),
    ],
)
def test_attributes_that_do_not_fit_the_outputs_are_one_sentence(attributes, output, message):
    network = type("Mine", (Network,), attributes)()
    with pytest.raises(OutputsError, match=message):
        split_output(network, output)
