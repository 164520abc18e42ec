"""The choice of the device, with and without a GPU (a stand-in for CuPy here)."""

import contextlib
import sys
import types

import numpy
import pytest

from pydlshogi import device
from pydlshogi.compat import chainer


class CUDARuntimeError(RuntimeError):
    pass


def stand_in(monkeypatch, count, ones=lambda device: numpy.ones, check=lambda: None):
    """Puts a cupy in place that sees ``count`` GPUs, or has no driver (None)."""

    def get_device_count():
        if count is None:
            raise CUDARuntimeError("cudaErrorNoDevice")
        return count

    runtime = types.SimpleNamespace(
        getDeviceCount=get_device_count, CUDARuntimeError=CUDARuntimeError
    )
    cupy = types.ModuleType("cupy")
    current = []

    @contextlib.contextmanager
    def use(number):
        current.append(number)
        yield
        current.pop()

    cupy.cuda = types.SimpleNamespace(runtime=runtime, Device=use)
    cupy.ones = lambda *args, **kwargs: ones(current[-1])(*args, **kwargs)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(chainer.backends.cuda, "check_cuda_available", check)


@pytest.mark.parametrize("count", [0, None])
def test_without_a_gpu_the_cpu_is_the_default(monkeypatch, count):
    stand_in(monkeypatch, count)
    assert device.select_device().name == "@numpy"
    assert device.select_device(-1).name == "@numpy"


def test_without_cupy_the_cpu_is_the_default(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert device.select_device().name == "@numpy"
    with pytest.raises(device.DeviceError, match="CuPy is not installed"):
        device.select_device(0)


def test_a_gpu_that_is_not_there_is_refused_with_the_remedy(monkeypatch):
    stand_in(monkeypatch, None)
    with pytest.raises(device.DeviceError, match="GPU 0 .*cudaErrorNoDevice.*Choose GPU -1"):
        device.select_device(0)
    stand_in(monkeypatch, 2)
    with pytest.raises(device.DeviceError, match="there are 2, numbered from 0"):
        device.select_device(2)


def test_with_a_gpu_it_is_the_default(monkeypatch):
    stand_in(monkeypatch, 2)
    chosen = []
    monkeypatch.setattr(chainer, "get_device", chosen.append)
    device.select_device()
    device.select_device(1)
    device.select_device(-1)
    assert chosen == ["@cupy:0", "@cupy:1", "@numpy"]


def test_a_device_is_named_in_words():
    assert device.in_words(chainer.get_device("@numpy")) == "CPU"
    assert device.in_words(types.SimpleNamespace(name="@cupy:3")) == "GPU 3"


def no_library(*args):
    raise RuntimeError("libnvrtc.so.12:\ncannot open")


@pytest.mark.parametrize("broken", [{"check": no_library}, {"ones": no_library}])
def test_a_gpu_that_cupy_cannot_compute_on_is_not_used(monkeypatch, caplog, broken):
    stand_in(monkeypatch, 1, **broken)
    assert device.select_device().name == "@numpy"
    assert "the GPU is not used: CuPy cannot compute on it: libnvrtc" in caplog.text
    with pytest.raises(
        device.DeviceError, match="GPU 0 .*cannot compute on it: .*Choose GPU -1"
    ) as it:
        device.select_device(0)
    assert "\n" not in str(it.value)


def test_a_gpu_that_is_broken_leaves_the_others(monkeypatch):
    stand_in(monkeypatch, 2, ones=lambda number: numpy.ones if number else no_library)
    monkeypatch.setattr(chainer, "get_device", lambda name: name)
    assert device.select_device(1) == "@cupy:1"
    assert device.select_device() == "@numpy"


@pytest.mark.parametrize("on_windows", [True, False])
@pytest.mark.parametrize("odd", ["cupy", "temp", None])
def test_a_path_that_the_compiler_of_cuda_cannot_read_is_named(monkeypatch, on_windows, odd):
    stand_in(monkeypatch, 1, ones=no_library)
    folder = {odd: "/太郎"}
    sys.modules["cupy"].__file__ = f"{folder.get('cupy', '/pydlshogi')}/cupy/__init__.py"
    monkeypatch.setattr("tempfile.gettempdir", lambda: folder.get("temp", "/temp"))
    monkeypatch.setattr(device, "_ON_WINDOWS", on_windows)
    with pytest.raises(device.DeviceError, match="libnvrtc") as it:
        device.select_device(0)
    assert ("/太郎" in str(it.value) and "C:\\pydlshogi" in str(it.value)) == (
        on_windows and odd is not None
    )


def test_a_gpu_that_is_full_is_a_gpu(monkeypatch):
    class OutOfMemoryError(MemoryError):
        pass

    def full(*args, **kwargs):
        raise OutOfMemoryError("out of memory")

    stand_in(monkeypatch, 1, ones=lambda number: full)
    monkeypatch.setattr(chainer, "get_device", lambda name: name)
    assert device.select_device() == device.select_device(0) == "@cupy:0"


def test_a_cupy_that_breaks_at_import_is_no_gpu(monkeypatch, tmp_path):
    (tmp_path / "cupy.py").write_text("raise RuntimeError('driver mismatch')")
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    count, reason = device.gpu_count()
    assert count == 0 and "driver mismatch" in reason


def test_a_cupy_that_lacks_its_modules_is_no_gpu(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", types.ModuleType("cupy"))
    count, reason = device.gpu_count()
    assert count == 0 and "no attribute 'cuda'" in reason
