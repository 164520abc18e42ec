"""The tests of this folder train: see training_fixtures."""

from training_fixtures import folder, one_blas_thread  # noqa: F401
