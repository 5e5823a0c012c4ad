# wirebroker's workshop. `make run` starts a broker, `make test` runs the tests; both set up .venv.
#   make run ARGS="--port 9093"     make test ARGS="-k fetch"     make test PYTHON=python3.12

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
ARGS ?=
# Long tests have 40 minutes together; processes beside each other share the machine's cores.
WORKERS ?= 2

BIN := .venv/bin
COMPILED := .venv/compiled
COMPILED_TESTS := tests/unit tests/property tests/hostile tests/transcripts
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# The layers are linked into the package; a clone without symbolic links can't be worked in.
LINKS := wirebroker/codecs wirebroker/storage wirebroker/coordinator

.PHONY: help run test test-all compiled test-compiled compat twin spark-suite bench lint format types house docs tools clean
.DELETE_ON_ERROR:

help:
	@sed -n '1,2s/^# *//p' Makefile
	@echo "targets: run test test-all compiled test-compiled compat twin spark-suite bench lint format types house docs tools clean"

# exec: a signal to make reaches the broker itself. What it prints is passed on line by line.
run: .venv/.run-installed
	@exec $(BIN)/python -m wirebroker serve $(ARGS) > >(trap '' INT TERM; while IFS= read -r line; do \
	    echo "$$line"; \
	    if [[ $$line == "wirebroker ready on "* ]]; then \
	      read -r _ _ _ address _ <<< "$$line"; \
	      echo "try in another terminal:"; \
	      echo "  echo hello | $(BIN)/kafka-python producer -b $$address -t greetings"; \
	      echo "  $(BIN)/kafka-python consumer -b $$address -t greetings -f str -C auto_offset_reset=earliest"; \
	      echo "  $(BIN)/kafka-python admin -b $$address topics list"; \
	    fi; done)

test: .venv/.test-installed
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile $(ARGS)

test-all: .venv/.test-installed
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --long --timeout 1800 $(ARGS)

# A copy of the tree whose hot path is compiled (docs/decisions/0007); needs a C compiler.
compiled: .venv/.test-installed
	@$(BIN)/python -m compiling.tree $(COMPILED)

# What can tell the two apart, but no Java: the rest is the same code.
test-compiled: compiled
	@cd $(COMPILED) && PYTHONPATH=$(CURDIR)/$(COMPILED) WIREBROKER_TESTS_EXPECT=compiled \
	  $(CURDIR)/$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -p no:cacheprovider \
	  $(or $(ARGS),$(COMPILED_TESTS))

compat: .venv/.test-installed
	@$(BIN)/python -m pytest compat_tests $(ARGS)

# One request stream to Apache Kafka and to wirebroker; what both then have on disk is compared.
twin: .venv/.test-installed
	@$(BIN)/python -m compat_tests.twin $(ARGS)

spark-suite: .venv/.test-installed
	@$(BIN)/python -m spark_it.suites.run $(ARGS)

# The compiled broker beside Apache Kafka, an hour; ARGS=--quick takes some minutes. See benchmarks/README.md.
bench: .venv/.bench-installed compiled
	@$(BIN)/python -m benchmarks --ours $(COMPILED) $(ARGS)

lint: .venv/.lint-installed
	@$(BIN)/ruff format --check . && $(BIN)/ruff check .

format: .venv/.lint-installed
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

types: .venv/.lint-installed
	@$(BIN)/mypy && $(BIN)/pyright

house: .venv/.test-installed
	@$(BIN)/python -m pytest -q tests/test_house.py $(ARGS)

docs: .venv/.run-installed
	@$(BIN)/python -m wirebroker configs --markdown > docs/configs.md.new
	@mv docs/configs.md.new docs/configs.md

tools: .venv/.test-installed
	@$(BIN)/python -m compat_tests.tools

clean:
	@rm -rf .venv build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.made:
	@for link in $(LINKS); do test -d "$$link" || { \
	  echo "$$link is no link to a folder: clone with git config core.symlinks=true" >&2; exit 1; }; done
	@command -v $(PYTHON) > /dev/null || { \
	  echo "$(PYTHON) is not installed: wirebroker needs Python 3.11 or later" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is $$($(PYTHON) -V | cut -d" " -f2): wirebroker needs 3.11 or later;" \
	    "name one, make PYTHON=python3.12" >&2; exit 1; }
	@echo "making .venv (once)"
	@$(PYTHON) -m venv .venv || { \
	  echo "$(PYTHON) cannot make .venv: install its venv module (Debian: python3-venv)" >&2; exit 1; }
	@touch $@

# A stale build/ would put deleted modules into the next install.
.venv/.run-installed: .venv/.made pyproject.toml
	@echo "installing wirebroker into .venv (once)"
	@rm -rf build
	@$(PIP) install -e .
	@touch $@

.venv/.test-installed: .venv/.run-installed
	@echo "installing what the tests need into .venv (once)"
	@$(PIP) install -e '.[test]'
	@touch $@

.venv/.bench-installed: .venv/.test-installed
	@echo "installing what the benchmarks draw with into .venv (once)"
	@$(PIP) install -e '.[test,bench]'
	@touch $@

.venv/.lint-installed: .venv/.test-installed
	@echo "installing the linters into .venv (once)"
	@$(PIP) install -e '.[test,lint]'
	@touch $@
