# Every target sets up what it needs in .venv first. Another interpreter: make test PYTHON=python3.12
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# One thread per process: the arrays are small, and two test processes already fill a small machine.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1

.PHONY: help demo test lint evidence bench docs clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(VENV)/.stamp-plots ## two studies, from records to published effects
	$(BIN)/discreet demo

test: lint ## style, types and all fast tests
	tests/with-postgres.sh $(BIN)/python -m pytest -n 2

lint: $(VENV)/.stamp-dev ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

evidence: $(VENV)/.stamp-evidence $(VENV)/.stamp-plots ## the simulations behind the documentation's numbers
	$(BIN)/python -m evidence.run
	$(BIN)/python -m evidence.uplift
	$(BIN)/python -m evidence.effects
	$(BIN)/python -m evidence.audit

bench: $(VENV)/.stamp-evidence $(VENV)/.stamp-dev ## speed and memory, as ratios in one run; large tables take an hour
	$(BIN)/python -m benchmarks.run
	$(BIN)/python -m benchmarks.scale

docs: $(VENV)/.stamp-docs $(VENV)/.stamp-plots ## the documentation, in docs/_build
	$(BIN)/python -m sphinx -W --keep-going -q docs docs/_build

clean: ## remove everything that the targets made
	rm -rf $(VENV) build dist docs/_build .hypothesis .mypy_cache .pytest_cache .ruff_cache

# .stamp-dev means that the extra "dev" is installed, and so on.
$(VENV)/.stamp-%: pyproject.toml constraints.txt | $(VENV)/.stamp-venv
	@echo "Installing discreet[$*] into $(VENV); the first time takes a minute or two."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[$*]"
	@touch $@

# Debian packs venv apart from Python, so a first failure may only mean that it is not installed.
$(VENV)/.stamp-venv:
	@$(PYTHON) -m venv --clear $(VENV) >/dev/null 2>&1 \
	  || { test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -y -qq python3-venv && $(PYTHON) -m venv --clear $(VENV); } \
	  || { rm -rf $(VENV); echo "No virtual environment: install Python 3.11 or later with venv (Debian: python3-venv)."; exit 1; }
	@touch $@
