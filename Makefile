# `make run` starts a broker, `make test` runs the tests; both install what they need into .venv.
#   make run ARGS="--port 9093"     make test ARGS="-k fetch"     make test PYTHON=python3.12
#   make run CONSOLE=1 also starts the console, on http://127.0.0.1:8989/

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory

# If it were set, each process that the tests start would compile all of its modules again.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
ARGS ?=
CONSOLE ?=
CORES := $(shell getconf _NPROCESSORS_ONLN)
# Twice the cores: half of the tests wait for brokers and clients (tests/support/harness/scheduling.py).
WORKERS ?= $(shell echo $$((2 * $(CORES))))

# Container images: the engine (docker or podman), the image's name, its base.
ENGINE ?= docker
IMAGE ?= wirebroker
BASE ?=
WHEELS ?=
PIP_OPTIONS ?=

BIN := .venv/bin
TREE := .venv/compiled
# The tests of compiled modules and of the modules that call them most (test_compiled.py checks this
# list); none needs Java. Randomized tests try other cases than in the plain run.
COMPILED_UNITS := codecs coordinator/controller/image coordinator/groups coordinator/test_runtime.py \
  storage $(addprefix wirebroker/,api base/test_request_meters.py broker/test_compiled.py \
  coordination disks engine net replica replication request share)
COMPILED_TESTS := tests/hostile tests/property tests/transcripts \
  $(addprefix tests/unit/,$(COMPILED_UNITS)) \
  $(addprefix --ignore=tests/unit/wirebroker/api/,test_loop_holds.py test_loop_holds_of_batches.py \
  test_loop_holds_of_groups.py test_request_arrays.py) \
  $(addprefix --ignore=tests/property/,raft share test_acl_index.py test_cluster_image.py test_partition_states.py \
  test_quota_rates.py test_sasl_messages.py test_seed.py test_transaction_machine.py)
COMPILED_SEED := 2000
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Links from the package to its layers; a checkout needs symbolic links.
LINKS := wirebroker/codecs wirebroker/storage wirebroker/coordinator wirebroker/pipelines wirebroker/segments

.PHONY: help run first-run modules test collect test-all test-nightly compiled test-compiled compat twin spark-suite bench lint format types house docs dist release image test-image tools clean
.DELETE_ON_ERROR:

help:
	@sed -n '1,2s/^# *//p' Makefile
	@echo "targets: run modules test test-all test-nightly compiled test-compiled compat twin spark-suite bench lint format types house docs dist release image test-image tools clean"

# exec lets a signal to make reach the broker itself. The broker's output is passed on line by line.
# Hints follow after the last line of its report ("data:"); they name 127.0.0.1 if the broker is
# bound to every interface.
# DELIVERY=1 runs the delivery service as well, with the library that it needs.
run: modules $(if $(CONSOLE),.venv/.console-installed) $(if $(DELIVERY),.venv/.delivery-installed)
	@exec $(BIN)/python -m compiling.run $(TREE) serve $(if $(CONSOLE),--console 8989) $(if $(DELIVERY),--delivery) $(ARGS) > >(trap '' HUP INT TERM; address=; while IFS= read -r line; do \
	    echo "$$line"; \
	    if [[ $$line == "wirebroker ready on "* ]]; then \
	      read -r _ _ _ address _ <<< "$$line"; \
	      case $$address in 0.0.0.0:*|'[::]':*) address=127.0.0.1:$${address##*:};; esac; \
	    elif [[ -n $$address && $$line == "  data: "* ]]; then \
	      echo "try in another terminal:"; \
	      echo "  echo hello | $(BIN)/wirebroker produce -b $$address greetings"; \
	      echo "  $(BIN)/wirebroker consume -b $$address --from-beginning greetings"; \
	      echo "  $(BIN)/wirebroker topic list -b $$address --internal"; \
	      address=; \
	    fi; done)

# Starts a broker as above, sends a record through it and stops it (.ci/run does so first).
first-run: modules
	@bash .ci/first-run

test: .venv/.test-installed modules
	@$(BIN)/python -m pytest -n $(WORKERS) $(ARGS)

# Imports all tests, so that Python has compiled them and their imports.
collect: .venv/.test-installed modules
	@$(BIN)/python -m pytest --collect-only --quiet --long -p no:cacheprovider > .venv/collected.txt

test-all: .venv/.test-installed .venv/.release-installed modules
	@$(BIN)/python -m pytest -n $(WORKERS) --long --timeout 1800 $(ARGS)

# The tests that take hours, a step at a time; ARGS=--list lists the steps. Results are in .venv/nightly.
test-nightly: .venv/.test-installed modules
	@$(BIN)/python -m tests.nightly $(ARGS)

# A copy of the tree whose hot path is compiled (docs/decisions/0007); needs a C compiler.
compiled: .venv/.test-installed
	@$(BIN)/python -m compiling.tree $(TREE)

test-compiled: compiled
	@cd $(TREE) && PYTHONPATH=$(CURDIR)/$(TREE) WIREBROKER_TESTS_EXPECT=compiled \
	  $(CURDIR)/$(BIN)/python -m pytest -n $(CORES) --seed $(COMPILED_SEED) \
	  $(or $(ARGS),$(COMPILED_TESTS))

compat: .venv/.test-installed modules
	@$(BIN)/python -m pytest compat_tests $(ARGS)

# Sends one request stream to Apache Kafka and to wirebroker, and compares their files.
twin: .venv/.test-installed modules
	@$(BIN)/python -m compat_tests.twin $(ARGS)

spark-suite: .venv/.test-installed modules
	@$(BIN)/python -m spark_it.suites.run $(ARGS)

# Compares the compiled broker with Apache Kafka in an hour; ARGS=--quick takes some minutes. See benchmarks/README.md.
bench: .venv/.bench-installed compiled
	@$(BIN)/python -m benchmarks --ours $(TREE) $(ARGS)

# Generates the message modules whose tables have changed (compiling/messages).
modules: .venv/.run-installed
	@$(BIN)/python -m compiling.messages

lint: .venv/.lint-installed
	@$(BIN)/ruff format --check . && $(BIN)/ruff check .
	@$(BIN)/python -m tests.support.harness.prose

format: .venv/.lint-installed
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

types: .venv/.lint-installed
	@$(BIN)/mypy && $(BIN)/pyright

house: .venv/.test-installed modules
	@$(BIN)/python -m pytest -q tests/test_house.py $(ARGS)

docs: modules
	@$(BIN)/python -m wirebroker configs --markdown > docs/configs.md.new
	@mv docs/configs.md.new docs/configs.md
	@$(BIN)/python -m wirebroker commands --markdown > docs/cli.md.new
	@mv docs/cli.md.new docs/cli.md

# Build the files of a release and try each wheel; ARGS=--final requires the version's date in CHANGELOG.md.
dist: .venv/.release-installed modules
	@$(BIN)/python -m compiling.release $(ARGS)

# A dry run of a release; ARGS=--upload uploads, tags and pushes it (docs/releasing.md).
release: .venv/.release-installed modules
	@$(BIN)/python -m compiling.release.publish $(ARGS)

# Builds a container image from the wheel of `make dist` (docs/containers.md). Without a network,
# name the base image and a folder with all wheels: BASE=NAME WHEELS=FOLDER PIP_OPTIONS=--no-index.
image:
	@ls dist/wirebroker-*.whl > /dev/null 2>&1 || $(MAKE) dist
	@rm -rf build/image
	@mkdir -p build/image
	@cp -R deploy/container/. build/image
	@mkdir build/image/wheels
	@cp dist/wirebroker-*.whl $(if $(WHEELS),$(WHEELS)/*.whl )build/image/wheels
	@BUILDAH_FORMAT=docker $(ENGINE) build --tag $(IMAGE) --build-arg "PIP_OPTIONS=$(PIP_OPTIONS)" \
	  $(if $(BASE),--build-arg BASE=$(BASE) )--file build/image/Containerfile build/image

# testcontainers' classes, and the compose files, with the image of `make image`.
test-image: .venv/.test-installed modules
	@WIREBROKER_IMAGE=$(IMAGE) ENGINE=$(ENGINE) $(BIN)/python -m pytest \
	  compat_tests/containers "tests/test_docs.py::test_commands_of_a_page_succeed[docs/containers.md]" $(ARGS)

# Runs both even if one fails: each test reports the tools that it lacks.
tools: .venv/.test-installed
	@failed=0; for part in compat_tests spark_it; do $(BIN)/python -m $$part.tools || failed=1; done; exit $$failed

clean:
	@rm -rf .venv build dist *.egg-info codecs/generated/*.py .mypy_cache .pytest_cache .ruff_cache .hypothesis
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
	@$(PIP) install -e '.[hints]'
	@touch $@

.venv/.delivery-installed: .venv/.run-installed
	@echo "installing what the delivery service needs into .venv (once)"
	@$(PIP) install -e '.[hints,delivery]'
	@touch $@

.venv/.test-installed: .venv/.run-installed
	@echo "installing what the tests need into .venv (once)"
	@$(PIP) install -e '.[test]'
	@touch $@

.venv/.console-installed: .venv/.run-installed
	@echo "installing what the console needs into .venv (once)"
	@$(PIP) install -e '.[console]'
	@touch $@

.venv/.release-installed: .venv/.run-installed
	@echo "installing what releases are made with into .venv (once)"
	@$(PIP) install -e '.[release]'
	@touch $@

# All that .ci/run needs, in one step, which takes half of the time of four.
.venv/.ci-installed: .venv/.made pyproject.toml
	@echo "installing wirebroker and what tests, linters and releases need into .venv (once)"
	@rm -rf build
	@$(PIP) install -e '.[hints,test,lint,release]'
	@touch $(addprefix .venv/.,run-installed test-installed lint-installed release-installed) $@

.venv/.bench-installed: .venv/.test-installed
	@echo "installing what the benchmarks draw with into .venv (once)"
	@$(PIP) install -e '.[test,bench]'
	@touch $@

.venv/.lint-installed: .venv/.test-installed
	@echo "installing the linters into .venv (once)"
	@$(PIP) install -e '.[test,lint]'
	@touch $@
