# The two commands of the README: make train, make test. The first call makes the
# .venv that both use. PYTHON chooses the Python to make it with: make train PYTHON=python3.12

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN := run

# A run that was interrupted, or is to go on, goes on where it was.
RESUME = $(if $(wildcard $(RUN)/state_policy),-m $(RUN)/model_policy -r $(RUN)/state_policy)

.PHONY: train test test-slow lint wheel clean

train: $(VENV)/.for-train
	@mkdir -p $(RUN)
	$(BIN)/python train_policy.py kifu/kifulist_train.txt kifu/kifulist_test.txt --epoch 1 \
	    --eval_interval 100 --model $(RUN)/model_policy --state $(RUN)/state_policy \
	    --log $(RUN)/log.txt $(RESUME)
	@tail -n 6 $(RUN)/log.txt
	$(BIN)/python utils/plot_log.py $(RUN)/log.txt --output $(RUN)/log.png
	@echo "Trained: $(RUN)/model_policy. Log: $(RUN)/log.txt. Curve: $(RUN)/log.png." \
	    "make train again goes on from here. To play with it, set the engine's option" \
	    "modelfile to $(RUN)/model_policy (README, Playing)."

test: $(VENV)/.for-test
	$(BIN)/python -m pytest $(PYTEST_ARGS)

test-slow: $(VENV)/.for-test
	$(BIN)/python -m pytest -m slow $(PYTEST_ARGS)

lint: $(VENV)/.for-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

wheel: $(VENV)/.for-lint
	$(BIN)/python -m build --wheel --no-isolation

# Chainer's setup.py needs an older setuptools, which is therefore installed first and
# used to build it: see "Installing" in README.md.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 9) <= sys.version_info < (3, 14))' || \
	    { echo "$(PYTHON) is missing or not Python 3.9-3.13: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@# The Python that it was made from is gone. Only once more, for make has judged what is in it.
	@if test -L $@; then rm -rf $(VENV); \
	    echo "$(VENV) was of a Python that is gone, and is removed: the same command once more makes it anew"; exit 1; fi
	@# Half an environment (Debian without python3-venv) would be taken for a whole one.
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/.setuptools: | $(BIN)/python
	@# uv makes environments without pip.
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip
	$(BIN)/python -m pip install --quiet "setuptools>=70.1,<82"
	@touch $@

$(VENV)/.for-train: pyproject.toml setup.py $(VENV)/.setuptools
	$(BIN)/python -m pip install --quiet --no-build-isolation -e ".[plot,7z]"
	@touch $@

$(VENV)/.for-test: pyproject.toml setup.py $(VENV)/.setuptools
	$(BIN)/python -m pip install --quiet --no-build-isolation -e ".[test]"
	@touch $@

$(VENV)/.for-lint: $(VENV)/.for-test
	$(BIN)/python -m pip install --quiet --no-build-isolation -e ".[lint]"
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info
