"""Packages of the project; everything that can be declared is in pyproject.toml.

The folder model/ travels in a wheel as the package's data folder pydlshogi/model, so
that an engine installed by pip finds the shipped model (pydlshogi.files.shipped_model).
"""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["pydlshogi", "pydlshogi.*"]), "pydlshogi.model"],
    package_dir={"pydlshogi.model": "model"},
    package_data={"pydlshogi.model": ["model_policy", "README.md"]},
)
