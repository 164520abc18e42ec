"""A strict stand-in for the module ``cudnn`` of nvidia-cudnn-frontend, beside that for CuPy.

It computes in numpy on the memory behind the addresses, by the strides that a graph declares. So a
wrong layout gives wrong numbers. It refuses

- calls in another order than the frontend's, and arguments that are not named;
- addresses of unknown memory, of another dtype than declared or too small, or not aligned;
- a handle of another stream than CuPy's current one;
- graphs that cuDNN 9 does not have: a gradient of 16 bits with a float32 result needs an operation
  behind it, and even numbers of channels.

``graphs`` has all graphs that were made.
"""

import ctypes
import enum
import itertools

import cuda_on_cpu
import cupy_stand_in
import numpy

data_type = enum.Enum("data_type", "FLOAT HALF BFLOAT16")
heur_mode = enum.Enum("heur_mode", "A FALLBACK")
numerical_note = enum.Enum(
    "numerical_note",
    "TENSOR_CORE DOWN_CONVERT_INPUTS REDUCED_PRECISION_REDUCTION NONDETERMINISTIC WINOGRAD",
)

_DTYPES = {
    data_type.FLOAT: numpy.float32,
    data_type.HALF: numpy.float16,
    data_type.BFLOAT16: numpy.uint16,
}

#: Bytes of a workspace. A graph overwrites it.
_WORKSPACE = 1000

#: All graphs that were made.
graphs = []

_streams = {}


class cudnnGraphNotSupportedError(Exception):
    """As in the frontend, this is no RuntimeError."""


def create_handle():
    handle = len(_streams) + 1
    _streams[handle] = None
    return handle


def set_stream(handle, stream):
    assert handle in _streams
    _streams[handle] = stream


class _Tensor:
    def __init__(self, dim=None, stride=None, data_type=None):
        self.dim, self.stride, self.data_type = dim, stride, data_type
        self.uid = self.compute = None
        self.is_output = False

    def _set(self, name, value):
        setattr(self, name, value)
        return self

    def set_dim(self, dim):
        return self._set("dim", list(dim))

    def set_stride(self, stride):
        return self._set("stride", list(stride))

    def set_data_type(self, kind):
        assert isinstance(kind, data_type)
        return self._set("data_type", kind)

    def set_uid(self, uid):
        return self._set("uid", uid)

    def set_output(self, value):
        return self._set("is_output", value)

    def memory(self, addresses):
        """Views the memory of the tensor; refuses memory that cannot be its own."""
        address = addresses[self.uid]
        size, dtype = cupy_stand_in.POINTERS[address]
        kind = numpy.dtype(_DTYPES[self.data_type])
        last = sum((d - 1) * s for d, s in zip(self.dim, self.stride))
        assert dtype == kind.name and size >= (last + 1) * kind.itemsize and address % 16 == 0
        strides = [s * kind.itemsize for s in self.stride]
        return numpy.lib.stride_tricks.as_strided(_at(address, last + 1, kind), self.dim, strides)

    def numbers(self, addresses):
        """Returns what the tensor contains, as float32."""
        if self.compute is not None:
            found = self.compute(addresses)
            assert list(found.shape) == self.dim
            return found
        memory = self.memory(addresses)
        if self.data_type is data_type.BFLOAT16:
            return (memory.astype(numpy.uint32) << 16).view(numpy.float32)
        return memory.astype(numpy.float32)


class pygraph:
    """A graph of one convolution and what follows."""

    def __init__(self, *, io_data_type, intermediate_data_type, compute_data_type, handle):
        assert intermediate_data_type is compute_data_type is data_type.FLOAT
        assert handle in _streams
        self.notes = set()
        self.result = self._kind = None
        self._inputs, self._operations, self._steps = [], [], []
        graphs.append(self)

    def tensor(self, *, dim, stride, data_type):
        assert len(dim) == len(stride) == 4
        self._inputs.append(_Tensor(list(dim), list(stride), data_type))
        return self._inputs[-1]

    def conv_fprop(self, *, image, weight, **options):
        return self._convolution(_forward, image, weight, options)

    def conv_dgrad(self, *, loss, filter, **options):
        return self._convolution(_data_gradient, loss, filter, options)

    def conv_wgrad(self, *, image, loss, **options):
        return self._convolution(_filter_gradient, image, loss, options)

    def _convolution(self, function, first, second, options):
        assert set(options) == {"padding", "stride", "dilation"}
        assert options["stride"] == options["dilation"] == [1, 1]
        assert first.data_type is second.data_type
        self._kind = first.data_type
        self._channels = first.dim[1], second.dim[1]

        def compute(addresses):
            numbers = [tensor.numbers(addresses) for tensor in (first, second)]
            if self._kind is data_type.FLOAT and numerical_note.TENSOR_CORE not in self.notes:
                numbers = map(cuda_on_cpu.as_tf32, numbers)
            return function(*numbers, result.dim, options["padding"])

        result = self._operation(function, compute, None)
        return result

    def bias(self, *, input, bias):
        assert bias.dim == [1, input.dim[1], 1, 1]
        return self._pointwise("bias", numpy.add, input, bias)

    def mul(self, *, a, b):
        assert b.dim == [1, 1, 1, 1]
        return self._pointwise("mul", numpy.multiply, a, b)

    def relu(self, *, input):
        return self._pointwise("relu", lambda x: numpy.maximum(x, 0), input)

    def _pointwise(self, name, function, *inputs):
        def compute(addresses):
            return function(*(tensor.numbers(addresses) for tensor in inputs))

        return self._operation(name, compute, inputs[0])

    def _operation(self, name, compute, like):
        self._operations.append(name)
        self.result = _Tensor(like and like.dim, like and like.stride)
        self.result.compute = compute
        return self.result

    def _step(self, name, after):
        assert self._steps[-1:] == ([after] if after else []), f"{name} after {self._steps}"
        self._steps.append(name)

    def validate(self):
        self._step("validate", "")
        tensors = [*self._inputs, self.result]
        assert all(tensor.dim and tensor.stride and tensor.data_type for tensor in tensors)
        assert self.result.is_output and len({tensor.uid for tensor in tensors}) == len(tensors)
        assert None not in [tensor.uid for tensor in tensors]

    def build_operation_graph(self):
        self._step("build_operation_graph", "validate")

    def create_execution_plans(self, modes):
        assert all(isinstance(mode, heur_mode) for mode in modes)
        self._step("create_execution_plans", "build_operation_graph")

    def deselect_numeric_notes(self, notes):
        self._step("deselect_numeric_notes", "create_execution_plans")
        self.notes.update(notes)
        assert all(isinstance(note, numerical_note) for note in notes)

    def check_support(self):
        self._step("check_support", "deselect_numeric_notes")
        if self._kind is data_type.FLOAT:
            return
        is_forward = self._operations[0] is _forward
        is_right = self._operations[1:2] == ["bias" if is_forward else "mul"]
        if not is_right or (not is_forward and any(n % 2 for n in self._channels)):
            raise cudnnGraphNotSupportedError("No valid engine configs\nodd channels\nmore lines")

    def build_plans(self):
        self._step("build_plans", "check_support")

    def get_workspace_size(self):
        return _WORKSPACE

    def execute(self, addresses, workspace, handle):
        assert self._steps[-1] == "build_plans"
        assert _streams[handle] == cupy_stand_in._Stream.current().ptr
        assert set(addresses) == {tensor.uid for tensor in [*self._inputs, self.result]}
        assert cupy_stand_in.POINTERS[workspace] == (_WORKSPACE, "uint8")
        _at(workspace, _WORKSPACE, numpy.uint8)[...] = 255
        self.result.memory(addresses)[...] = self.result.compute(addresses)


def _at(address, count, dtype):
    """Views numbers at an address."""
    size = count * numpy.dtype(dtype).itemsize
    return numpy.frombuffer((ctypes.c_char * size).from_address(address), dtype)


def _taps(filters, boards, padding):
    """Yields row and column of each number of a filter, and the part of padded boards under it."""
    height, width = boards.shape[2:]
    padded = numpy.pad(boards, ((0, 0), (0, 0), *((pad, pad) for pad in padding)))
    for row, column in itertools.product(*map(range, filters)):
        yield row, column, padded[:, :, row : row + height, column : column + width]


def _forward(x, W, shape, padding):
    taps = _taps(W.shape[2:], x, padding)
    return sum(numpy.einsum("nchw,kc->nkhw", part, W[:, :, r, s]) for r, s, part in taps)


def _data_gradient(g, W, shape, padding):
    # That of a square is the sum over the squares whose filters reach it: the filters turned.
    taps = _taps(W.shape[2:], g, padding)
    return sum(numpy.einsum("nkhw,kc->nchw", part, W[:, :, -1 - r, -1 - s]) for r, s, part in taps)


def _filter_gradient(x, g, shape, padding):
    gW = numpy.empty(shape, numpy.float32)
    for r, s, part in _taps(shape[2:], x, padding):
        gW[:, :, r, s] = numpy.einsum("nchw,nkhw->kc", part, g)
    return gW
