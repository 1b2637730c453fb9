# Every target makes its own virtual environment first; nothing outside .venv is touched.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/bash

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
CODE := $(wildcard statebackends operators connectors runtime examples tests benchmarks)
TYPED := statebackends operators connectors runtime benchmarks $(sort $(dir $(wildcard examples/*.py tests/typing/*.py)))
PYTEST_ARGS ?=
TEST_PROCESSES ?= 2

.PHONY: help setup demo test check lint types layers style bench format lock clean

help: ## say what the targets do
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /make \1 - /'

setup: $(STAMP) ## make the virtual environment in .venv

# Rebuilt only when the project file or the lock changes. The editable installation puts this folder
# on the path (compat): behind the import hook that is the default mypy sees no packages.
$(STAMP): pyproject.toml requirements-lock.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "riverrun needs Python 3.11 or newer, $(PYTHON) is $$($(PYTHON) --version 2>&1)." \
			"Name another: make setup PYTHON=python3.12" >&2; exit 1; }
	@echo "making $(VENV) with what riverrun and its tests need; this takes about a minute"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install -r requirements-lock.txt
	@$(PIP) install --no-deps --no-build-isolation --config-settings editable_mode=compat --editable .
	@touch $(STAMP)

demo: $(STAMP) ## run the windowed count on generated clicks
	@$(BIN)/python -m runtime examples/windowed_counts.py

test: $(STAMP) ## run the default suite, real Kafka included
	$(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist loadfile $(PYTEST_ARGS)

check: lint types layers style ## lint, format, types, layers and style (make -k check: all of them)

lint: $(STAMP)
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)

types: $(STAMP)
	$(BIN)/mypy --strict $(TYPED)

layers: $(STAMP)
	$(BIN)/lint-imports

style: $(STAMP)
	$(BIN)/python -m pytest -q tests/test_tidy.py tests/tidy

bench: $(STAMP) ## measure throughput and latency against plain Python
	$(BIN)/python -m benchmarks

format: $(STAMP) ## let ruff repair what it can
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

lock: ## write requirements-lock.txt anew from the bounds in pyproject.toml
	rm -rf build/lock && $(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip --quiet install '.[kafka-compression,dev]'
	build/lock/bin/python -m pip freeze --all --exclude pip --exclude riverrun > requirements-lock.txt
	rm -rf build/lock

clean: ## remove the environment and everything generated
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
