"""What the tests of every folder share.

They can import the modules of this folder. The fixture ``device`` runs a numeric test on the
CPU and on a GPU. No example of a hypothesis test is timed: a busy machine may take its time.
"""

import importlib.util
import os
import re
import signal
import sys
from pathlib import Path

import hypothesis
import pytest

from pydlshogi.device import gpu_count, select_device
from pydlshogi.processors import THREADS_VARIABLE, processors

sys.path.insert(0, str(Path(__file__).parent))

# The tests of a GPU compare with the CPU. Tests of the other precisions choose them.
os.environ["CUPY_TF32"] = "0"

# Each process of pytest-xdist computes on its share of the processors. The threads of several
# processes on the same processors would wait for each other. Tests of threads choose their number.
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1))
if WORKERS > 1:
    os.environ.setdefault(THREADS_VARIABLE, str(max(1, processors() // WORKERS)))

# What an earlier process has found out about a network is not remembered.
os.environ["PYDLSHOGI_CACHE"] = os.devnull

# A background job of a shell ignores Ctrl-C, and so would every program that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

# Some machines lack cshogi, such as those with macOS or an ARM processor. The tests that import it,
# themselves or by another module, are left out there.
NEEDS_CSHOGI = re.compile(
    r"^ *(import cshogi|from (cshogi|uct_helpers|packed_files|pydlshogi\.match\b)"
    r"|from pydlshogi\.uct\.cshogi_board)",
    re.MULTILINE,
)


def files_with_cshogi():
    """Lists the test files that need cshogi."""
    folder = Path(__file__).parent
    return [
        str(path)
        for path in folder.rglob("test_*.py")
        if NEEDS_CSHOGI.search(path.read_text(encoding="utf-8"))
    ]


collect_ignore = [] if importlib.util.find_spec("cshogi") else files_with_cshogi()

GPUS, NO_GPU = gpu_count()
ON_A_GPU = [pytest.mark.gpu, pytest.mark.skipif(not GPUS, reason=NO_GPU)]


@pytest.fixture(scope="session", params=[-1, pytest.param(0, marks=ON_A_GPU)], ids=["cpu", "gpu"])
def device(request):
    """The ``chainer.backend.Device`` to compute on: the CPU and, where there is one, a GPU.

    Tests of what numbers come out of what can run on both take it. Of a GPU's results the
    same is asked as of the CPU's; what they are compared with is computed on the CPU, but
    where the claim is that Chainer's own way is taken.
    """
    device = select_device(request.param)
    device.use()
    return device


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport():
    """Escapes file names that are no text in the log of a test. pytest-xdist sends only UTF-8."""
    report = (yield).get_result()
    report.sections = [
        (title, text.encode("utf-8", "backslashreplace").decode("utf-8"))
        for title, text in report.sections
    ]
