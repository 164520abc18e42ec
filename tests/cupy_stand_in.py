"""A strict stand-in for CuPy: arrays in the memory of the CPU that refuse to mix with numpy.

:func:`install` makes it the module ``cupy``. It must be called before Chainer is imported.
Chainer then takes its paths for a GPU (``forward_gpu``, ``@cupy:0``). As a pytest plugin,
``pytest -p cupy_stand_in``, it runs the tests marked ``gpu`` on a machine without a GPU.

Like CuPy, it refuses

- the implicit conversion of its arrays to numpy (``numpy.asarray(x)``);
- numpy arrays as operands, arguments and values (``x + numpy_array``, ``x[:] = numpy_array``);
- arguments of a kernel whose dtypes are not the declared ones;
- lists as values (``x[:] = [1, 2]``), and its arrays as indexes of lists and as limits of ranges;
- dtypes that a GPU does not have.

It also refuses numpy functions of its arrays, which CuPy allows, since such a call in our code
is a slip in most cases.

The kernels that Chainer writes in C++ are not compiled. ``_KERNELS`` has the same functions in
numpy; an unknown kernel raises ``NotImplementedError``. Our own kernels are compiled as C++.
"""

import contextlib
import sys
import types

import cuda_on_cpu
import numpy

#: Tells the stand-in from CuPy.
IS_STAND_IN = True

#: Address: bytes and dtype of the array that was last seen there.
POINTERS = {}


def _words(text):
    return text.split()


_SCALARS = (int, float, bool, complex, numpy.generic)


class ndarray:
    """An array of the "device". It is not a numpy array, and has no implicit conversion."""

    __hash__ = None
    # numpy operators with this array on the right side give up, as with CuPy.
    __array_priority__ = 100

    def __init__(self, shape, dtype=float, memptr=None, strides=None, order="C"):
        self._host = _checked(numpy.empty(shape, dtype, order=order))

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        # numpy_scalar * array calls numpy.multiply, as with CuPy.
        others = [value for value in inputs if not isinstance(value, ndarray)]
        operator = method == "__call__" and len(inputs) == 2 and not kwargs
        if operator and others and isinstance(others[0], numpy.generic):
            return _wrap(ufunc(*map(_unwrap, inputs)))
        raise TypeError(f"numpy.{ufunc.__name__} of an array of the GPU")

    def __array_function__(self, function, kinds, args, kwargs):
        raise TypeError(f"numpy.{function.__name__} of an array of the GPU")

    def get(self, stream=None, order="C", out=None, blocking=True):
        return self._host.copy()

    def set(self, array, stream=None):
        if type(array) is not numpy.ndarray or array.dtype != self.dtype:
            raise TypeError("set takes a numpy array of the same dtype")
        self._host[...] = array

    shape = property(lambda self: self._host.shape)
    dtype = property(lambda self: self._host.dtype)
    ndim = property(lambda self: self._host.ndim)
    size = property(lambda self: self._host.size)
    nbytes = property(lambda self: self._host.nbytes)
    itemsize = property(lambda self: self._host.itemsize)
    strides = property(lambda self: self._host.strides)
    flags = property(lambda self: self._host.flags)
    T = property(lambda self: _wrap(self._host.T))
    device = property(lambda self: Device(0))

    @property
    def data(self):
        address = self._host.ctypes.data
        POINTERS[address] = self._host.nbytes, self._host.dtype.name
        return types.SimpleNamespace(ptr=address)

    def __len__(self):
        return len(self._host)

    def __iter__(self):
        return (self[number] for number in range(len(self)))

    def __bool__(self):
        return bool(self._host)

    def __int__(self):
        return int(self._host)

    def __float__(self):
        return float(self._host)

    def __repr__(self):
        return f"stand-in {self._host!r}"

    def __getitem__(self, index):
        index = _index(index)
        # With "..." numpy returns a view of a single number, as CuPy always does.
        words = index if isinstance(index, tuple) else (index,)
        if all(isinstance(word, (int, numpy.integer)) for word in words):
            index = (*words, ...)
        return _wrap(self._host[index])

    def __setitem__(self, index, value):
        if isinstance(value, (list, tuple)):
            raise TypeError(f"Unsupported type {type(value)}")
        self._host[_index(index)] = _unwrap(value)

    def __copy__(self):
        return _wrap(self._host.copy())

    def __deepcopy__(self, memo):
        return _wrap(self._host.copy())

    def __reduce__(self):
        return (array, (self._host,))

    def item(self):
        return self._host.item()

    def reduced_view(self, dtype=None):
        return self

    def tolist(self):
        return self._host.tolist()

    def fill(self, value):
        self._host.fill(_unwrap(value))

    def astype(self, dtype, order="K", casting=None, subok=None, copy=True):
        return _wrap(self._host.astype(dtype, copy=copy, order=order))


def _method(name):
    def call(self, *args, **kwargs):
        return _wrap(getattr(self._host, name)(*map(_unwrap, args), **_unwrap(kwargs)))

    return call


for _name in _words(
    "all any argmax argmin argsort clip copy cumsum dot flatten max mean min prod ravel "
    "repeat reshape squeeze std sum swapaxes take transpose var view"
):
    setattr(ndarray, _name, _method(_name))


def _operator(name):
    def call(self, *args):
        other = [_unwrap(argument) for argument in args]
        result = getattr(self._host, name)(*other)
        return NotImplemented if result is NotImplemented else _wrap(result)

    return call


def _in_place(name):
    def call(self, other):
        getattr(self._host, name)(_unwrap(other))
        return self

    return call


for _name in _words("add sub mul truediv floordiv mod pow matmul and or xor lshift rshift"):
    setattr(ndarray, f"__{_name}__", _operator(f"__{_name}__"))
    setattr(ndarray, f"__r{_name}__", _operator(f"__r{_name}__"))
    setattr(ndarray, f"__i{_name}__", _in_place(f"__i{_name}__"))
for _name in _words("lt le eq ne gt ge neg pos abs invert"):
    setattr(ndarray, f"__{_name}__", _operator(f"__{_name}__"))


def _checked(host):
    if host.dtype.kind not in "biufc":
        raise ValueError(f"a GPU has no dtype {host.dtype}")
    return host


def _wrap(result):
    """Makes arrays of the device from numpy's; CuPy has 0-dimensional arrays, not scalars."""
    if isinstance(result, (tuple, list)):
        return type(result)(_wrap(part) for part in result)
    if not isinstance(result, (numpy.ndarray, numpy.generic)):
        return result
    wrapped = ndarray.__new__(ndarray)
    wrapped._host = _checked(numpy.asarray(result))
    return wrapped


def _unwrap(value):
    """Gives the memory of an array; numpy arrays are refused."""
    if isinstance(value, ndarray):
        return value._host
    if isinstance(value, (list, tuple)):
        return type(value)(map(_unwrap, value))
    if isinstance(value, dict):
        return {key: _unwrap(part) for key, part in value.items()}
    if isinstance(value, numpy.ndarray):
        raise TypeError(f"Unsupported type {type(value)}: a numpy array beside one of the GPU")
    return value


def _index(index):
    """Gives numpy's form of an index. CuPy copies numpy arrays of integers to the GPU."""
    if isinstance(index, tuple):
        return tuple(map(_index, index))
    if isinstance(index, numpy.ndarray) and index.dtype.kind in "iu":
        return index
    return _unwrap(index)


def array(obj, dtype=None, copy=True, order="K", subok=False, ndmin=0):
    """Copies numbers, numpy arrays and arrays of the device to the device."""
    host = obj._host if isinstance(obj, ndarray) else numpy.asarray(_unwrap_parts(obj))
    return _wrap(numpy.array(host, dtype=dtype, copy=True, ndmin=ndmin))


def asarray(a, dtype=None, order=None, *, blocking=False):
    """Returns an array of the device itself, and copies anything else."""
    if isinstance(a, ndarray) and dtype in (None, a.dtype):
        return a
    return array(a, dtype)


def _unwrap_parts(obj):
    return _unwrap(obj) if isinstance(obj, (list, tuple)) else obj


def asnumpy(a, stream=None, order="C", out=None, *, blocking=True):
    """Copies an array of the device to numpy."""
    return a.get() if isinstance(a, ndarray) else numpy.asarray(a)


def ascontiguousarray(a, dtype=None):
    """Returns an array in C order."""
    return _wrap(numpy.ascontiguousarray(_of_the_device(a), dtype))


def copyto(dst, src, casting="same_kind", where=None):
    """Copies within the device."""
    numpy.copyto(_of_the_device(dst), _unwrap(src))


def get_array_module(*args):
    """Returns this module if an argument is an array of the device, else numpy."""
    return sys.modules["cupy"] if any(isinstance(a, ndarray) for a in args) else numpy


def _of_the_device(a):
    if not isinstance(a, ndarray):
        raise TypeError(f"{type(a)} is not an array of the GPU")
    return a._host


#: numpy's functions that CuPy has under the same name.
_FUNCTIONS = _words(
    "abs absolute add all amax amin any arange argmax argmin argsort bincount bitwise_and "
    "broadcast_to ceil clip concatenate copysign cos cumsum divide dot einsum empty "
    "empty_like equal exp expand_dims eye floor full full_like greater greater_equal "
    "hstack identity isfinite isinf isnan less less_equal linspace log log10 log1p "
    "logical_and logical_not logical_or matmul max maximum mean min minimum moveaxis "
    "multiply negative nonzero not_equal ones ones_like pad power prod ravel reciprocal "
    "repeat reshape rollaxis sign sin split sqrt square squeeze stack std subtract sum "
    "swapaxes take tanh tensordot tile transpose tri tril triu true_divide var vstack "
    "where zeros zeros_like exp2 expm1 sort ptp array_equal allclose logaddexp"
)


def _function(name):
    host = getattr(numpy, name)
    creates = name in ("arange", "empty", "eye", "full", "identity", "linspace", "ones", "zeros")

    def call(*args, **kwargs):
        if not creates and not any(map(_has_array, [*args, *kwargs.values()])):
            raise TypeError(f"cupy.{name} of no array of the GPU")
        out = kwargs.get("out")
        result = host(*map(_unwrap, args), **_unwrap(kwargs))
        return _wrap(result) if out is None else out

    return call


def _has_array(value):
    if isinstance(value, (list, tuple)):
        return any(map(_has_array, value))
    return isinstance(value, ndarray)


# --- Kernels -------------------------------------------------------------------------------


def _elementwise(function):
    """Makes a kernel of a function of the inputs that returns the outputs."""

    def run(inputs, outputs):
        made = function(*inputs)
        for out, value in zip(outputs, made if isinstance(made, tuple) else (made,)):
            out[...] = value

    return run


def _updating(function):
    """Makes a kernel of a function of the inputs and the outputs; it changes the latter."""
    return lambda inputs, outputs: function(*inputs, *outputs)


def _im2col(img, h, w, out_h, out_w, kh, kw, sy, sx, ph, pw, dy, dx, col):
    from chainer.utils.conv import im2col_cpu

    img = img.reshape(*col.shape[:2], h, w)
    col[...] = im2col_cpu(img, kh, kw, sy, sx, ph, pw, dy=dy, dx=dx, out_h=out_h, out_w=out_w)


def _col2im(col, h, w, out_h, out_w, kh, kw, sy, sx, ph, pw, dx, dy, img):
    from chainer.utils.conv import col2im_cpu

    col = col.reshape(*img.shape[:2], kh, kw, out_h, out_w)
    img[...] = col2im_cpu(col, sy, sx, ph, pw, h, w, dy=dy, dx=dx)


def _update_statistics(mean, var, decay, adjust, r_mean, r_var):
    r_mean[...] = r_mean * decay + mean * (1 - decay)
    r_var[...] = r_var * decay + var * (1 - decay) * adjust


def _sgd(grad, lr, param):
    param -= lr * grad


def _momentum_sgd(grad, lr, momentum, param, v):
    v[...] = momentum * v - lr * grad
    param += v


def _nesterov_ag(grad, lr, momentum, param, v):
    v[...] = v * momentum - lr * grad
    param += momentum * momentum * v - (1 + momentum) * lr * grad


def _weight_decay(p, decay, g):
    g += decay * p


def _softmax_crossent_bwd(y, t, gloss, coeff, n_channel, n_unit, ignore):
    shape = (1, n_channel, *([1] * (y.ndim - 2)))
    own = numpy.arange(n_channel).reshape(shape) == t
    return numpy.where(t == ignore, 0, gloss * coeff * (y - own))


def _crossent_fwd(t, log_y, n_channel, coeff, ignore, axis, keepdims):
    terms = _own_labels(t.ravel(), log_y, n_channel, ignore)
    return numpy.asarray(-coeff * terms.sum(), coeff.dtype)


def _own_labels(t, log_y, n_channel, ignore):
    rows = numpy.arange(len(t)) * n_channel + numpy.where(t == ignore, 0, t)
    return numpy.where(t == ignore, 0, log_y.ravel()[rows])


#: The kernels of Chainer that our networks and recipes use, by name. A kernel takes the inputs
#: and the outputs, which it writes; a reduction takes the inputs, the axis and keepdims.
_KERNELS = {
    "im2col": _updating(_im2col),
    "col2im": _updating(_col2im),
    "relu_bwd": _elementwise(lambda y, gy: numpy.where(y > 0, gy, 0)),
    "sigmoid_fwd": _elementwise(lambda x: numpy.tanh(x * 0.5) * 0.5 + 0.5),
    "sigmoid_bwd": _elementwise(lambda y, gy: gy * y * (1 - y)),
    "tanh_bwd": _elementwise(lambda y, gy: gy * (1 - y * y)),
    "softplus_fwd": _elementwise(
        lambda x, beta, inverse: (
            (numpy.maximum(beta * x, 0) + numpy.log1p(numpy.exp(-abs(beta * x)))) * inverse
        )
    ),
    "softplus_bwd": _elementwise(lambda x, gy, beta: (1 - 1 / (1 + numpy.exp(beta * x))) * gy),
    "update_mean_var": _updating(_update_statistics),
    "bn_fwd": _elementwise(
        lambda x, mean, inv_std, gamma, beta: gamma * (x - mean) * inv_std + beta
    ),
    "bn_bwd": _elementwise(
        lambda gy, x_hat, gamma, inv_std, ggamma, gbeta, inv_m: (
            (gamma * inv_std) * (gy - (x_hat * ggamma + gbeta) * inv_m)
        )
    ),
    "sgd": _updating(_sgd),
    "momentum_sgd": _updating(_momentum_sgd),
    "nesterov_ag": _updating(_nesterov_ag),
    "weight_decay": _updating(_weight_decay),
    "softmax_crossent_bwd": _elementwise(_softmax_crossent_bwd),
    "crossent_fwd": _crossent_fwd,
    # Of Chainer's gradient check; it adds to its output.
    "numerical_grad_kernel_1": lambda y1, y2, gy, eps, axis, keepdims: (
        ((y1 - y2) * gy).sum() / (eps * 2)
    ),
    "softmax_crossent_no_reduce_fwd": _elementwise(
        lambda t, log_y, n_channel, ignore: -_own_labels(t, log_y, n_channel, ignore)
    ),
}


class ElementwiseKernel:
    """A kernel of Chainer: declared in C++, computed by ``_KERNELS``."""

    def __init__(self, in_params, out_params, operation, name="kernel", **kwargs):
        self.inputs = [part.split() for part in in_params.split(",") if part.strip()]
        self.outputs = [part.split() for part in out_params.split(",") if part.strip()]
        self.operation = operation
        self.name = name

    def __call__(self, *args, size=None, **kwargs):
        for argument in args:
            if not isinstance(argument, (ndarray, *_SCALARS)):
                raise TypeError(f"kernel {self.name}: {type(argument)} is no array of the GPU")
        if self.name not in _KERNELS:
            declared = f"{self.inputs} -> {self.outputs}: {self.operation}"
            raise NotImplementedError(f"kernel {self.name}: {declared}")
        inputs = [_unwrap(a) for a in args[: len(self.inputs)]]
        outputs = list(args[len(self.inputs) :])
        kinds = self._kinds(args)
        if not outputs:
            raw = [a for a, words in zip(inputs, self.inputs) if words[0] != "raw"]
            shape = numpy.broadcast_shapes(*map(numpy.shape, raw))
            outputs = [_wrap(numpy.empty(shape, kinds[words[-2]])) for words in self.outputs]
        _KERNELS[self.name](inputs, [out._host for out in outputs])
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _kinds(self, args):
        """Finds the dtype of each type name; one letter stands for the dtype of an argument."""
        declared = [*self.inputs, *self.outputs]
        names = [words[-2] for words in declared]
        kinds = {name: numpy.dtype(name) for name in names if len(name) > 1}
        for argument, name in zip(args, names):
            if isinstance(argument, ndarray):
                kind = kinds.setdefault(name, argument.dtype)
                if argument.dtype != kind:
                    raise TypeError(f"kernel {self.name}: {argument.dtype} where {name} is {kind}")
        return kinds


class RawKernel:
    """A kernel of ours, compiled as C++ for the CPU."""

    def __init__(self, code, name, **kwargs):
        self.code = code
        self.name = name

    def __call__(self, grid, block, args):
        for value in args:
            if not isinstance(value, (ndarray, numpy.int32, numpy.float32)):
                raise TypeError(f"kernel {self.name}: an argument of type {type(value)}")
        cuda_on_cpu.run(self.code, self.name, *grid, *block, list(map(_unwrap, args)))


class ReductionKernel(ElementwiseKernel):
    """A reduction of Chainer."""

    def __init__(
        self, in_params, out_params, map_expr, reduce_expr, post, identity, name, **kwargs
    ):
        super().__init__(in_params, out_params, map_expr, name)

    def __call__(self, *args, axis=None, keepdims=False, **kwargs):
        if self.name not in _KERNELS:
            raise NotImplementedError(f"reduction {self.name}: {self.operation}")
        self._kinds(args)
        inputs = [_unwrap(a) for a in args[: len(self.inputs)]]
        result = numpy.asarray(_KERNELS[self.name](*inputs, axis, keepdims))
        if len(args) == len(inputs):
            return _wrap(result)
        (out,) = args[len(inputs) :]
        out._host[...] += result
        return out


# --- The module ----------------------------------------------------------------------------


class Device:
    """The only GPU."""

    def __init__(self, device=None):
        self.id = int(device or 0)
        if self.id:
            raise CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")

    def __int__(self):
        return self.id

    def __eq__(self, other):
        return isinstance(other, Device) and self.id == other.id

    def __hash__(self):
        return hash(self.id)

    def __enter__(self):
        return self

    def __exit__(self, *args):
        pass

    def use(self):
        pass

    def synchronize(self):
        pass


class CUDARuntimeError(RuntimeError):
    """An error of the CUDA runtime."""


class _Pool:
    malloc = None

    def free_all_blocks(self):
        pass


class _Stream:
    null = None
    captures = False
    _entered = []

    def __init__(self, non_blocking=False):
        self.ptr = id(self)

    def __enter__(self):
        self._entered.append(self)
        return self

    def __exit__(self, *args):
        self._entered.pop()

    @classmethod
    def current(cls):
        return cls._entered[-1] if cls._entered else _NULL_STREAM

    def synchronize(self):
        pass

    def begin_capture(self):
        """Begins; what follows is not recorded, but runs."""
        _Stream.captures = True

    def end_capture(self):
        _Stream.captures = False
        raise NotImplementedError("the stand-in records nothing")


_NULL_STREAM = _Stream()
_NULL_STREAM.ptr = 0


class _Random:
    """Random numbers of the GPU. Chainer's gradient check uses them; our code does not."""

    def normal(self, loc=0.0, scale=1.0, size=None, dtype=float):
        return _wrap(numpy.random.normal(loc, scale, size).astype(dtype))


def _as_strided(x, shape=None, strides=None):
    host = _of_the_device(x)
    return _wrap(numpy.lib.stride_tricks.as_strided(host, shape, strides))


def _rsqrt(x, dtype=None):
    host = _of_the_device(x)
    return _wrap((1 / numpy.sqrt(host)).astype(dtype or host.dtype))


def _gemm(*args):
    """Refuses to be recorded, as in CuPy 14."""
    if _Stream.captures:
        raise NotImplementedError("calling cuBLAS API during stream capture is unsupported")
    cuda_on_cpu.gemm(*args)


def _module(name, **attributes):
    module = types.ModuleType(name)
    module.__dict__.update(attributes)
    module.__path__ = []
    sys.modules[name] = module
    return module


def install():
    """Makes the stand-in the module ``cupy`` of this process, before Chainer looks for CuPy."""
    own = {name: value for name, value in globals().items() if not name.startswith("_")}
    functions = {name: _function(name) for name in _FUNCTIONS}
    dtypes = {
        name: getattr(numpy, name)
        for name in _words(
            "bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 "
            "complex64 complex128 dtype newaxis inf nan pi e"
        )
    }
    cupy = _module("cupy", **functions, **dtypes, **own, __version__="14.2.0", random=_Random())
    runtime = types.SimpleNamespace(
        getDeviceCount=lambda: 1,
        CUDARuntimeError=CUDARuntimeError,
        runtimeGetVersion=lambda: 12090,
        driverGetVersion=lambda: 12090,
        getDeviceProperties=lambda number: {
            "name": b"stand-in",
            "major": 9,
            "minor": 0,
            "totalGlobalMem": 1 << 30,
            "multiProcessorCount": 1,
        },
    )
    memory = types.SimpleNamespace(OutOfMemoryError=type("OutOfMemoryError", (MemoryError,), {}))
    cupy.cuda = _module(
        "cupy.cuda",
        Device=Device,
        Event=object,
        Stream=_Stream,
        get_current_stream=_Stream.current,
        MemoryPool=_Pool,
        runtime=runtime,
        memory=memory,
        cublas=_module("cupy.cuda.cublas", gemmEx=_gemm),
        get_cublas_handle=lambda: 0,
        nvrtc=types.SimpleNamespace(getVersion=lambda: (12, 9)),
        get_device_id=lambda: 0,
        set_allocator=lambda *args: None,
        set_pinned_memory_allocator=lambda *args: None,
        using_allocator=lambda *args: contextlib.nullcontext(),
    )
    cupy.get_default_memory_pool = cupy.get_default_pinned_memory_pool = _Pool
    cupy.lib = _module("cupy.lib")
    cupy.lib.stride_tricks = types.SimpleNamespace(as_strided=_as_strided)
    cupy._util = _module("cupy._util", PerformanceWarning=Warning)
    cupy.show_config = lambda: print("a stand-in for CuPy")
    cupy.memoize = lambda for_each_device=False: lambda function: function
    cupy.fuse = lambda *args, **kwargs: args[0] if args else lambda function: function
    cupyx = _module("cupyx", rsqrt=_rsqrt)
    cupyx.scipy = _module("cupyx.scipy")
    cupyx.scipy.linalg = _module("cupyx.scipy.linalg")
    cupyx.scipy.special = _module("cupyx.scipy.special")
    return cupy


def pytest_load_initial_conftests(early_config, parser, args):
    """Installs the stand-in, as a plugin of pytest, before the tests import Chainer."""
    install()
