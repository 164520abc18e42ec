"""The part of the installation that pyproject.toml cannot declare.

- The folder model/ becomes the data folder pydlshogi/model of a wheel, so that an installed
  engine finds the shipped model (pydlshogi.files.shipped_model).
- pydlshogi.pth goes to site-packages. It lets scripts begin with ``import chainer``
  (pydlshogi.chainer_import).
"""

import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

PTH = "pydlshogi.pth"


class BuildWithPth(build_py):
    """Adds pydlshogi.pth beside the packages, also in an editable installation."""

    def run(self):
        """Builds, then copies the file."""
        if not self.editable_mode:  # an earlier build may have left modules that are gone now
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        self.copy_file(PTH, str(self._site_packages() / PTH))

    def get_outputs(self, include_bytecode=True):
        """Gives the files built; an editable installation takes its own from there."""
        outputs = super().get_outputs(include_bytecode)
        return outputs if self.editable_mode else [*outputs, str(self._site_packages() / PTH)]

    def _site_packages(self):
        """Gives the folder whose content goes to site-packages."""
        if self.editable_mode:
            return Path(self.get_finalized_command("install").install_lib)
        return Path(self.build_lib)


setup(
    packages=[
        *find_packages(include=["pydlshogi", "pydlshogi.*"]),
        "pydlshogi.browser.page",
        "pydlshogi.drawing.viewer",
        "pydlshogi.model",
    ],
    package_dir={"pydlshogi.model": "model"},
    package_data={
        "pydlshogi.model": ["model_policy", "model_policy_value", "README.md"],
        "pydlshogi.browser.page": ["*"],
        "pydlshogi.drawing.viewer": ["*"],
    },
    cmdclass={"build_py": BuildWithPth},
)
