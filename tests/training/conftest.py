"""For the tests of this folder: training_helpers to import, and BLAS on one thread."""

import sys
from pathlib import Path

import pytest
import threadpoolctl

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="package", autouse=True)
def one_blas_thread():
    """On products as tiny as those of these tests, BLAS's threads mostly wait for each other."""
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        yield
