# make demo | test | test-slow | test-release | test-clients | release-check | lint | includes | docs | sanitize | fuzz | kills | gate | notebooks
# make benchmark | benchmark-live | instructions | native | bpf | mutate | clean
#
# `make demo` and `make test` need Python 3.10 or newer (with venv and headers) and a C++20 compiler;
# everything else, CMake and Ninja included, is fetched into .venv in the versions of constraints.txt.
# Stamp files make a second call quick: Python packages follow constraints.txt and setup.cfg, the native
# build follows the C++ sources.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory

# Bytecode is kept, whatever the shell says: pytest takes 10 s to rewrite all tests, and they start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

VENV ?= .venv
BUILD ?= build/native
SANITIZE_BUILD ?= build/sanitize
CLIENTS ?= build/clients
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
PYTEST_ARGS ?=
DEMO_ARGS ?=
BENCHMARK_ARGS ?=
SECONDS ?= 60
FUZZ_ARGS ?=
KILLS_ARGS ?=
RELEASE_ARGS ?=
NOTEBOOKS ?=

# The first interpreter that is new enough; `make PYTHON=/path/to/python` overrides.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.10; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1 && { echo $$p; exit; }; done; echo none)

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
CMAKE := $(BIN)/cmake
CTEST := $(BIN)/ctest
CXX_SOURCES := CMakeLists.txt $(shell find cpp -name '*.cc' -o -name '*.h' -o -name CMakeLists.txt)
PACKAGING := setup.cfg setup.py pyproject.toml constraints.txt

.PHONY: demo test test-slow test-release test-clients test-cpp test-python release-check lint includes docs sanitize sanitizers fuzz kills kills-live \
  gate notebooks benchmark benchmark-live instructions native check-machine clean

# The learners are fetched while the compiler works.
demo: $(VENV)/.tools
	$(MAKE) -j2 $(VENV)/.train native
	$(BIN)/netbuf-gym demo $(DEMO_ARGS)

test: $(VENV)/.tools
	$(MAKE) -j2 $(VENV)/.test $(BUILD)/.tests
	$(MAKE) test-cpp test-python

test-cpp: $(BUILD)/.tests
	$(CTEST) --test-dir $(BUILD) --output-on-failure -j $(JOBS)

# Those that are not marked as slow. A file at a time on each core; one process, as debuggers need it: PYTEST_ARGS="-n0 --pdb".
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder

test-python: $(VENV)/.test native
	$(PYTEST) -m "not slow and not release" $(PYTEST_ARGS)

test-slow: $(VENV)/.test native
	$(PYTEST) -m "slow and not release" $(PYTEST_ARGS)

test-release: $(VENV)/.test $(BUILD)/.tests
	$(PYTEST) -m release $(PYTEST_ARGS)

# With other versions of Gymnasium: the oldest that setup.cfg takes, and the one that RLlib pins.
test-clients: $(CLIENTS)/floor/.made $(CLIENTS)/rllib/.made native
	$(CLIENTS)/floor/bin/python -m pytest -m "not slow and not release" tests/envs tests/wrappers tests/integrations $(PYTEST_ARGS)
	$(CLIENTS)/rllib/bin/python -m pytest tests/integrations/test_rllib.py tests/integrations/test_clients.py $(PYTEST_ARGS)

# Everything that a release has to be, beside what CI checks: about 6 hours on two cores. A step that has passed for this commit
# is not taken again, RELEASE_ARGS=--anew: all are. What came of it stands in results/release-check.json.
release-check: $(VENV)/.test $(VENV)/.docs native
	$(BIN)/python .ci/release_check.py $(RELEASE_ARGS)

lint: $(VENV)/.test native
	$(BIN)/ruff check .
	$(BIN)/codespell
	$(BIN)/python -m mypy

# The documentation's site, build/site: the package is imported, for the docstrings that it makes of itself.
docs: $(VENV)/.docs native
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build
	@echo "to read it: $(BIN)/python -m http.server -b 127.0.0.1 -d build/site"

# Each C++ file by itself, without the headers that a build reads once for all: one that forgets an include is found.
includes:
	find cpp/src cpp/tests -name '*.cc' -print0 | xargs -0 -P $(JOBS) -n 1 $${CXX:-c++} -std=c++20 -fsyntax-only \
	  -Icpp/include -Icpp/src -Icpp/tests

sanitize: $(SANITIZE_BUILD)/.built
	$(CTEST) --test-dir $(SANITIZE_BUILD) --output-on-failure -j $(JOBS)

# The package is imported as it is here; its native module is that of the sanitizers' build.
fuzz: $(VENV)/.test $(SANITIZE_BUILD)/.module
	$(BIN)/python -m tools.fuzz --build $(SANITIZE_BUILD) --seconds $(SECONDS) $(FUZZ_ARGS)

# Commands are killed (SIGKILL) at random moments and given again: KILLS_ARGS="--command train --kills 30".
kills: $(VENV)/.test native
	$(BIN)/python -m tools.kills $(KILLS_ARGS)

# Controllers of live worlds, and tuners of a namespace's settings: KILLS_ARGS="--kills 100 --seed 2". Needs root.
kills-live: $(VENV)/.test native
	$(BIN)/python -m tools.kills.live_worlds $(KILLS_ARGS)
	$(BIN)/python -m tools.kills.live_tuners $(KILLS_ARGS)

# All agents on some worlds of their tasks' suites, beside their kept rows; worlds that the simulator has changed are told of.
gate: $(VENV)/.train native
	$(BIN)/netbuf-gym leaderboard check

# All notebooks from clean, in place, or those that NOTEBOOKS names: NOTEBOOKS="papers leaderboard".
notebooks: $(VENV)/.test native
	$(BIN)/python notebooks/run.py $(NOTEBOOKS)

benchmark: $(VENV)/.train native
	$(BIN)/python benchmarks/simulator.py --json runs/benchmarks/simulator.json $(BENCHMARK_ARGS)
	$(BIN)/python benchmarks/training.py --json runs/benchmarks/training.json $(BENCHMARK_ARGS)
	$(BIN)/python benchmarks/start.py --json runs/benchmarks/start.json $(BENCHMARK_ARGS)

# Of live worlds, in real time: on a machine that has nothing else to do.
benchmark-live: $(VENV)/.train native
	$(BIN)/python benchmarks/live.py --json runs/benchmarks/live.json $(BENCHMARK_ARGS)

# Instructions, cache misses and bytes against those of results/benchmarks/instructions.json; needs valgrind.
instructions: $(VENV)/.package native
	$(BIN)/python benchmarks/instructions.py --check --build $(BUILD)

native: $(BUILD)/.built $(VENV)/.package

check-machine:
	@[ "$(PYTHON)" != none ] || { echo "netbuf-gym needs Python 3.10 or newer: no such python3 in PATH (Debian: apt install python3 python3-venv python3-dev; or make PYTHON=/path/to/python)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "netbuf-gym needs Python 3.10 or newer, which $(PYTHON) is not" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "netbuf-gym needs Python's venv module, which $(PYTHON) lacks (Debian: apt install python3-venv)" >&2; exit 1; }
	@$(PYTHON) -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")))' || { echo "netbuf-gym needs Python's C headers, which $(PYTHON) lacks (Debian: apt install python3-dev)" >&2; exit 1; }
	@command -v "$${CXX:-c++}" >/dev/null || command -v g++ >/dev/null || command -v clang++ >/dev/null || { echo "netbuf-gym needs a C++20 compiler: neither c++, g++ nor clang++ is in PATH (Debian: apt install g++)" >&2; exit 1; }

# A virtual environment with the build tools only.
$(VENV)/.tools: constraints.txt pyproject.toml | check-machine
	[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV)
	$(PIP) install -q -c constraints.txt setuptools wheel scikit-build-core nanobind cmake ninja typing_extensions
	touch $@

# The package, editable. Its native module is built below, incrementally, so the install skips it.
$(VENV)/.package: $(PACKAGING) $(VENV)/.tools
	$(PIP) install -q --no-build-isolation -c constraints.txt -C cmake.define.NETBUF_PYTHON=OFF -e .
	touch $@

$(VENV)/.train: $(VENV)/.package
	$(PIP) install --no-build-isolation -c constraints.txt -C cmake.define.NETBUF_PYTHON=OFF -e '.[train]'
	touch $@

$(VENV)/.test: $(VENV)/.train
	$(PIP) install -q --no-build-isolation -c constraints.txt -C cmake.define.NETBUF_PYTHON=OFF -e '.[test]'
	touch $@

$(VENV)/.docs: $(VENV)/.package
	$(PIP) install -q --no-build-isolation -c constraints.txt -C cmake.define.NETBUF_PYTHON=OFF -e '.[docs]'
	touch $@

# Environments layered over that of the tests: what is installed here hides what is installed there.
$(CLIENTS)/floor/.made: LAYER := gymnasium==$(shell sed -n 's/^ *gymnasium>=\([0-9.]*\).*/\1/p' setup.cfg)
$(CLIENTS)/rllib/.made: LAYER := ray[rllib]
$(CLIENTS)/%/.made: $(VENV)/.test
	$(BIN)/python -m venv --clear $(@D)
	printf 'import site; site.addsitedir("%s")\n' "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" \
	  > "$$($(@D)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/below.pth"
	grep -v '^gymnasium==' constraints.txt > $(@D)/constraints.txt
	$(@D)/bin/python -m pip --disable-pip-version-check install -q -c $(@D)/constraints.txt '$(LAYER)'
	touch $@

# The module and its type stub.
$(BUILD)/.built: $(CXX_SOURCES) $(VENV)/.tools
	$(CMAKE) -S . -B $(BUILD) -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) \
	  -DPython_EXECUTABLE=$(abspath $(BIN)/python) -DNETBUF_TESTS=ON
	$(CMAKE) --build $(BUILD) -j $(JOBS) --target inplace
	touch $@

# The C++ tests.
$(BUILD)/.tests: $(BUILD)/.built
	$(CMAKE) --build $(BUILD) -j $(JOBS) --target netbuf_tests
	touch $@

# The C++ tests, and the module that is fuzzed: of the same objects. What imports the module, its stub, is not built.
$(SANITIZE_BUILD)/.configured: $(CXX_SOURCES) $(VENV)/.tools
	$(CMAKE) -S . -B $(SANITIZE_BUILD) -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) \
	  -DPython_EXECUTABLE=$(abspath $(BIN)/python) -DCMAKE_BUILD_TYPE=RelWithDebInfo \
	  -DNETBUF_SANITIZE=address,undefined -DNETBUF_PYTHON=ON -DNETBUF_TESTS=ON
	touch $@

$(SANITIZE_BUILD)/.built: $(SANITIZE_BUILD)/.configured
	$(CMAKE) --build $(SANITIZE_BUILD) -j $(JOBS) --target netbuf_tests
	touch $@

$(SANITIZE_BUILD)/.module: $(SANITIZE_BUILD)/.configured
	$(CMAKE) --build $(SANITIZE_BUILD) -j $(JOBS) --target _core
	touch $@

# Both in one go.
sanitizers: $(SANITIZE_BUILD)/.configured
	$(CMAKE) --build $(SANITIZE_BUILD) -j $(JOBS) --target netbuf_tests _core
	touch $(SANITIZE_BUILD)/.built $(SANITIZE_BUILD)/.module

clean:
	rm -rf build $(VENV) *.egg-info netbuf_gym/_core*.so netbuf_gym/_core.pyi

# The BPF programs of the live plant; needs clang and llvm. What it writes is committed.
.PHONY: bpf
bpf:
	python3 cpp/bpf/compile.py

.PHONY: mutate
mutate: $(VENV)/.test
	$(BIN)/python -m tools.mutation $(MUTATE_ARGS)
