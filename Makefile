# The programs of this project in their simplest use; `make help` lists them. The first call makes
# the Python environment .venv. PYTHON chooses its Python: make train PYTHON=python3.14

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Games of your own: make train KIFU=FOLDER.
KIFU :=

# The extra with CuPy: cuda12, or cuda13 (docs/gpu.md). GPU_ARGS: options of benchmarks/gpu_check.py.
CUDA := cuda12
GPU_ARGS :=

.PHONY: train train-book train-value retrain play gpu setup test test-all test-slow lint wheel gui-test help clean

# Lists, training and curve. Started again, each target continues its run.
#   $(1): the target that continues, which an interrupted training names
export KIFU
TRAIN = @PYDLSHOGI_CONTINUE="make $(1)$${KIFU:+ KIFU=\"$$KIFU\"}" \
    $(BIN)/python -m pydlshogi train_kifu $${KIFU:+"$$KIFU"}

train: setup
	$(call TRAIN,$@)

train-book: setup
	$(call TRAIN,$@) --recipe book

train-value: setup
	$(call TRAIN,$@) --recipe value

# Starts over, and keeps the earlier run under another name.
retrain: setup
	$(call TRAIN,train) --restart

# Opens the board in the browser. PLAY_ARGS: options of the program play. Ctrl-C (status 130) is the
# usual end.
PLAY_ARGS :=
play: setup
	@$(BIN)/python -m pydlshogi play $(PLAY_ARGS) || test $$? = 130

# Runs the tests, the benchmark, the trainings and the engine on an NVIDIA GPU. A Python that has
# the packages is used as it is, so that nothing is downloaded; else they are installed into .venv.
# Without internet, a Python that lacks only the packages of the tests is good enough: that part
# fails, and the others run. GPU_ARGS="--gpu -1" rehearses on the CPU and needs no CuPy.
REHEARSAL := $(filter -1 --gpu=-1 -g-1,$(GPU_ARGS))
GPU_PACKAGES := pydlshogi.compat, $(if $(REHEARSAL),sys,cupy), numpy, shogi, filelock, threadpoolctl, tqdm
gpu:
	@test -n "$(REHEARSAL)" || nvidia-smi -L 2>/dev/null | grep -q GPU || \
	    test -e /dev/nvidia0 || test -e /dev/dxg || \
	    { echo "make gpu: this machine has no NVIDIA GPU, or its driver is not installed."; exit 1; }
	@run() { \
	    for python in $(BIN)/python $(PYTHON); do \
	        if PYTHONPATH=.$${PYTHONPATH:+:$$PYTHONPATH} "$$python" -c "import $(GPU_PACKAGES)$$1" 2>/dev/null; then \
	            exec "$$python" benchmarks/gpu_check.py $(GPU_ARGS); \
	        fi; \
	    done; \
	}; \
	run ", pytest, hypothesis, matplotlib"; \
	$(MAKE) --no-print-directory $(VENV)/.for-gpu && exec $(BIN)/python benchmarks/gpu_check.py $(GPU_ARGS); \
	run ""; \
	exit 1

# On processors with AVX2, OpenVINO makes the search much faster (docs/search.md); it has wheels for
# Macs with ARM, too. All else works without.
FITS_OPENVINO := $(shell { grep -q avx2 /proc/cpuinfo 2>/dev/null || test "`uname -sm`" = "Darwin arm64"; } && echo yes)
NO_OPENVINO = OpenVINO could not be installed. The search works without it, but is slower.

# numba and the fast board have no wheels for some systems.
ADD_SEARCH = @$(BIN)/python -m pip install $(PIP) --only-binary numba,llvmlite,rsshogi -e ".[search]" || \
    echo "The packages of the extra search could not be installed. The search works without them, but is slower."

# On Python 3.12, no extra names cshogi: its wheel fits numpy 2, but demands numpy 1 (pyproject.toml).
# pip leaves out a package whose condition does not hold.
CSHOGI := cshogi>=1.1; python_version == '3.12' and sys_platform != 'darwin' and platform_machine in 'x86_64 AMD64'
ADD_CSHOGI = $(BIN)/python -m pip install --quiet --no-deps "$(CSHOGI)"

# numba's compiled functions stay on the disk. So the first start of an engine need not wait for them.
COMPILE_SEARCH := $(BIN)/python -c "from pydlshogi.uct.search import compile_search; compile_search()" 2>/dev/null || true

# Chainer has no pyproject.toml. Without --use-pep517, pip announces the end of its old way to build.
PIP := --quiet --no-build-isolation --use-pep517
export PIP_DISABLE_PIP_VERSION_CHECK := 1

VERSION := sys.version_info[:2]

# Makes .venv with all that training, playing and plotting need.
setup: $(VENV)/.for-train
	@test "$(origin PYTHON)" != "command line" || $(BIN)/python -c 'import sys; sys.exit($(VERSION) != (*map(int, sys.argv[1:]),))' $$($(PYTHON) -c 'import sys; print(*$(VERSION))') || \
	    { echo "$(VENV) was made with another Python than $(PYTHON). To make it anew: make clean, then the same command."; exit 1; }

# One process for each core, but at most four, because each holds networks and games. A file's tests
# stay in one process and share what they prepare. Many tests start programs: without .pyc files, each
# would compile all modules again.
TEST_PYTHON := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python
test: $(VENV)/.for-test
	$(TEST_PYTHON) -m pytest -n auto --maxprocesses 4 --dist loadfile $(PYTEST_ARGS)

test-all: $(VENV)/.for-test
	$(TEST_PYTHON) -m pytest -n auto --maxprocesses 4 --dist loadfile -m "not slow" $(PYTEST_ARGS)

test-slow: $(VENV)/.for-test
	$(TEST_PYTHON) -m pytest -m slow $(PYTEST_ARGS)

lint: $(VENV)/.for-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

wheel: $(VENV)/.setuptools
	$(BIN)/python -m pip wheel $(PIP) --no-deps --wheel-dir dist .
	@echo dist/*.whl

gui-test:
	@cat .ci/gui-test.txt

help:
	@echo "make train       train on the 200 games of kifu/ by the best recipe; again: continue"
	@echo "                 make train KIFU=FOLDER: on your own games"
	@echo "make train-book  the same by the book's recipe"
	@echo "make train-value train a small network with policy and value, for the search"
	@echo "make retrain     make train from the start; the earlier run is kept"
	@echo "make play        play in the browser, also with your own models in run/"
	@echo "make gpu         run everything that needs an NVIDIA GPU; the results go to run/gpu"
	@echo "make setup       make .venv, the Python environment of all programs"
	@echo "make test        run the tests; make test-all: with those that take longer"
	@echo "make test-slow   run the tests that take longest"
	@echo "make lint        check style and types"
	@echo "make wheel       build the package into the folder dist"
	@echo "make gui-test    print how to test the engine in real GUIs"
	@echo "make clean       remove .venv and what was built; keeps run/"

# Chainer's setup.py needs an older setuptools. It is installed first and builds Chainer.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 9) <= sys.version_info < (3, 15))' || \
	    { echo "$(PYTHON) is missing or is not Python 3.9-3.14. Name one: make PYTHON=python3.14 $(MAKECMDGOALS)"; exit 1; }
	@# A broken link: the Python that made .venv is gone. make has judged the content of .venv
	@# already, so it must start again.
	@if test -L $@; then rm -rf $(VENV); \
	    echo "The Python that made $(VENV) is gone, so $(VENV) was removed. Run the same command again."; exit 1; fi
	@# Without Debian's package python3-venv, venv fails halfway.
	@echo "Making $(VENV), the Python environment of all programs."
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/.setuptools: | $(BIN)/python
	@# uv makes environments without pip.
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip
	@# With setuptools 80, an older pip would call itself without end at pip install -e.
	@$(BIN)/python -m pip install --quiet "pip>=21.3" "setuptools>=77,<82"
	@touch $@

$(VENV)/.for-train: pyproject.toml setup.py $(VENV)/.setuptools
	@echo "Installing the packages. This takes some minutes and needs the internet."
	@$(BIN)/python -m pip install $(PIP) -e ".[plot,board,7z]"
	$(ADD_SEARCH)
ifneq ($(FITS_OPENVINO),)
	@$(BIN)/python -m pip install $(PIP) -e ".[openvino]" || echo "$(NO_OPENVINO)"
endif
	@$(ADD_CSHOGI)
	@$(COMPILE_SEARCH)
	@touch $@
	@echo "The environment $(VENV) is ready."

# Not the extra test: it installs much that the tests marked gpu do not need.
$(VENV)/.for-gpu: pyproject.toml setup.py $(VENV)/.setuptools
	$(BIN)/python -m pip install $(PIP) -e ".[$(CUDA),plot,7z]" pytest hypothesis
	$(ADD_SEARCH)
	@$(ADD_CSHOGI)
	@touch $@

$(VENV)/.for-test: pyproject.toml setup.py $(VENV)/.setuptools
	@echo "Installing the packages of the tests."
	@$(BIN)/python -m pip install $(PIP) -e ".[test]"
	@$(ADD_CSHOGI)
	@touch $@

$(VENV)/.for-lint: $(VENV)/.for-test
	@echo "Installing the packages of the checks."
	@$(BIN)/python -m pip install $(PIP) -e ".[lint]"
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info
