# A fresh clone needs Python 3.11 or later, make, openssl and a network; everything else is installed into .venv by the lock files.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SAMPLES = $(filter-out examples/fleet.yaml,$(sort $(wildcard examples/*.yaml)))
CHECKED = operator/plimsoll $(wildcard tests benchmarks e2e charts runtime)
# Modules that write generated files; each is run as `python -m`.
GENERATORS := plimsoll.api.generate plimsoll.kube.rbac plimsoll.alerts.generate

# Files of measurements are never part of the project; benchmarks take them by path.
OBSERVATIONS ?=
LATENCIES ?=
TRACES ?=
# What takes the real engine and real nodes is measured only where it is asked for.
REAL ?=
BENCH_FLAGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-down test test-parser e2e lint format generate bench pack lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

setup: $(STAMP) ## make .venv with the locked dependencies and this package

# The lock also holds the build backend, so that the package itself is built without a download that no hash guards.
$(STAMP): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"$(PYTHON) is Python {v[0]}.{v[1]}; Plimsoll needs 3.11 or later: make PYTHON=python3.11 ...")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: setup ## plan the samples in seconds, then a cluster of 200 simulated nodes, the operator and three models that come to serve; it stays
	@test -n "$(SAMPLES)" || { echo "examples/ holds no sample resources" >&2; exit 1; }
	@for sample in $(SAMPLES); do \
	  printf '\n'; sed -n '/^# /p; /^[^#]/q' "$$sample"; \
	  $(call shown,plan -f $$sample --snapshot examples/fleet.yaml) || exit 1; \
	done
	@$(call shown,explain -f examples/02-chat.yaml --snapshot examples/fleet.yaml max_num_seqs)
	@$(call shown,plan -f examples/02-chat.yaml --snapshot examples/fleet.yaml --what-if precision=fp8 --what-if users=200)
	@$(call shown,memory gpt-oss-120b --gpu H100 --sweep tp --context-tokens 32768 --concurrency 32)
	@$(call shown,import -- vllm serve Qwen/Qwen3-8B -tp 2 --max-model-len 16k --swap-space 4)
	@printf '\nNow on a real API server; the first time its programs are built, for 10 minutes or so.\n'
	@$(BIN)/python e2e/demo.py

demo-down: setup ## end the demonstration's cluster, and leave nothing of it
	@cd e2e && ../$(BIN)/python -m cluster down --name demo

# shown(arguments): the command line and its answer. 2 is an answer ("does not fit"), not a failure of the demonstration.
shown = { printf '\n$$ plimsoll %s\n' "$(1)"; $(BIN)/plimsoll $(1) || [ $$? -eq 2 ]; }

# In their order: the files of many tests are not the long ones, and one that takes ten minutes may not be the last to begin.
BY_FILE := --dist loadfile --no-loadscope-reorder

# The programs come first and by themselves: what takes minutes is told while it happens, which pytest would hold back. A file's tests
# share a cluster, so they stay together and in their order; they wait for a cluster more than they compute, so three share two cores.
# What needs the engine's own parsers is test-parser's.
test: setup ## run the tests, on a real API server with simulated nodes too; the first time builds it, for 10 minutes or so
	$(BIN)/pytest -n 2 -q --ignore=tests/real_parser
	@cd e2e && ../$(BIN)/python -m cluster programs --simulated
	$(BIN)/pytest e2e -n 3 $(BY_FILE) -q -m "not real_node and not real_engine and not real_store"

# Two at a time: an engine that serves takes all cores, but it starts on one, and starts are most of it. Images and engine come first and
# by themselves, as programs do; where they cannot be had, the tests say so again. REQUIRE_REAL_NODE=1 makes a failure of what the
# machine cannot run.
e2e: setup ## run the tests on real nodes, with the real engine and with real servers of models (root on Linux; without, they say why not)
	@cd e2e && ../$(BIN)/python -m cluster programs
	-@cd e2e && ../$(BIN)/python -m cluster.images
	-@cd e2e && ../$(BIN)/python -m cluster.engine
	$(BIN)/pytest e2e -n 2 $(BY_FILE) -q -m "real_node or real_engine or real_store"

test-parser: setup ## judge command lines by the engine's own parsers (downloads 0.6 GB beside the engine, minutes)
	@PYTHONPATH=e2e $(BIN)/python -m tests.real_parser.setup
	$(BIN)/pytest -q tests/real_parser

lint: setup ## ruff, mypy and the import rules of the rooms
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy $(CHECKED)
	$(BIN)/lint-imports --no-logo

format: setup ## let ruff format and mend what it can
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

generate: setup ## write the generated files again (CRD, reference, the chart's rights, schema and README)
	@set -e; for module in $(GENERATORS); do echo "$$module"; $(BIN)/python -m "$$module"; done
	$(BIN)/python charts/generate.py

# In the order of how long they take: seconds to minutes each, but for traces (hours, by their number) and what REAL=1 adds, which brings up
# clusters and serves with the real engine until a retune has been judged.
bench: setup ## run the benchmarks, for minutes (traces take hours); OBSERVATIONS=FILE LATENCIES=FILE TRACES=FILES REAL=1 BENCH_FLAGS=--json
	@set -x; $(BIN)/python benchmarks/planning_speed.py $(BENCH_FLAGS)
	@set -x; $(BIN)/python benchmarks/planned_rates.py $(BENCH_FLAGS)
	@set -x; $(BIN)/python benchmarks/longest_gap.py $(BENCH_FLAGS)
	@set -x; $(BIN)/python benchmarks/testbed.py $(BENCH_FLAGS)
	@set -x; $(BIN)/python benchmarks/control_scale.py $(BENCH_FLAGS)
	$(call measured,kv_accuracy,OBSERVATIONS,rows of engine start-ups: model and GPU and flags and the tokens reported)
	$(call measured,learning,OBSERVATIONS,rows of engine start-ups: model and GPU and flags and the tokens reported)
	$(call measured,latency_accuracy,LATENCIES,points of measured TTFT and TPOT)
	$(call measured,layout_choice,LATENCIES,points of measured TTFT and TPOT)
	$(call measured,standin_fidelity,LATENCIES,points of measured TTFT and TPOT,--no-engine --latencies)
	$(call measured,autoscaling,TRACES,recorded traffic: requests or rates; several with spaces between)
	$(call real,standin_fidelity)
	$(call real,retune)

# measured(program, variable, what the file holds, options before it): run it on the file, or say what is missing.
define measured
	@if [ -n "$($(2))" ]; then set -x; $(BIN)/python benchmarks/$(1).py $(4) $($(2)) $(BENCH_FLAGS); \
	else echo "benchmarks/$(1).py$(if $(4), $(4)) not run: give $(2)=FILE ($(3))" >&2; fi
endef

# real(program): run it where that is asked for. It says itself what of the engine or of nodes cannot be had here.
define real
	@if [ -n "$(REAL)" ]; then set -x; $(BIN)/python benchmarks/$(1).py $(BENCH_FLAGS); \
	else echo "benchmarks/$(1).py not run: give REAL=1 (real vLLM on CPUs, and for retunes real nodes: root on Linux)" >&2; fi
endef

pack: ## pack the supervisor of engines into dist/plimsoll_runtime.pyz
	$(PYTHON) runtime/build.py dist/plimsoll_runtime.pyz

lock: ## resolve the dependencies again and write requirements/*.txt with hashes for all platforms
	@test -x $(VENV)-lock/bin/uv || { $(PYTHON) -m venv $(VENV)-lock && $(VENV)-lock/bin/pip install --quiet uv; }
	$(LOCK) pyproject.toml -o requirements/run.txt
	$(LOCK) pyproject.toml --extra dev -c requirements/run.txt -o requirements/dev.txt

LOCK = $(VENV)-lock/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url

clean: ## remove what make has made
	rm -rf $(VENV) $(VENV)-lock .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist
	find operator tests e2e benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
