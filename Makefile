# Needs only Python 3.11 and make. Each target installs what it uses, and installs nothing twice.
PYTHON ?= python3.11
VENV   := .venv
BIN    := $(VENV)/bin

# The port, the log directory and the port for metrics of `make run` (0: any free port, -1: no metrics); how often
# `make crash` kills a broker; how many seconds `make fuzz` runs; how often `make crash-streams` kills a query.
PORT    ?= 9092
DATA    ?= data
METRICS ?= 9404
CYCLES  ?= 1000
SECONDS ?= 600
KILLS   ?= 10

# How many seeds `make simulate` runs, from which one on.
SEEDS      ?= 1000
FIRST_SEED ?= 0

# How many seeds `make simulate-mutants` runs on a mutant at most; those that no seed finds take half an hour for 1000.
MUTANT_SEEDS ?= 100

# How many processes run the tests: one for each processor, up to four, because each may start a Java machine.
WORKERS ?= auto

# The tests start hundreds of processes; without bytecode each would compile the modules that it imports.
unexport PYTHONDONTWRITEBYTECODE

# The tests that start no process, and take no second of processor time each.
FAST := not process and not interop and not java and not crash and not fuzz and not spark and not slow

# The suites of other clients that `make peers` runs; all by default.
SUITES ?=

# What `make bench` measures (default: everything) and `make compare` compares (default: raw work), the other commit, and
# more arguments for the benchmark, as in `make bench GROUPS=raw.fetch BENCH_ARGS='--rounds 1 --output /tmp/one'`.
GROUPS     ?=
COMMIT     ?= HEAD~1
BENCH_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help run demo cluster setup test test-fast peers lint format types contracts docs site linkcheck crash crash-streams simulate simulate-members simulate-mutants fuzz waiting pipeline-cluster coverage check bench bench-quick rebalances compare compile test-compiled uncompile clean

help: ## This list
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do printf '  make %-16s %s\n' "$$name" "$$text"; done

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# A stamp is newer than pyproject.toml exactly if the requirements in it are installed.
$(VENV)/.runtime: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.everything: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,docs,test,pipeline]'
	@touch $@ $(VENV)/.runtime

$(VENV)/.bench: $(VENV)/.everything
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@touch $@

run: $(VENV)/.runtime ## A broker on loopback (PORT=9092 DATA=data METRICS=9404)
	@exec $(BIN)/python -m broker --config config/server.properties \
	    --override listeners=PLAINTEXT://127.0.0.1:$(PORT) --override log.dirs=$(DATA) \
	    --override metrics.port=$(METRICS) --override group.initial.rebalance.delay.ms=0

demo: $(VENV)/.runtime ## A walk through a log of a million records: segments, indexes, offsets, times
	@$(BIN)/python -m demo

cluster: $(VENV)/.everything ## An etcd and three brokers on loopback, three ports from PORT=9092 on, until Ctrl-C
	@exec $(BIN)/python -m demo.three_brokers --port $(PORT)

setup: $(VENV)/.everything ## .venv with the broker, the client, the pipeline and every development tool

test: $(VENV)/.everything ## The whole suite, real clients and Java tools included
	$(BIN)/python -m pytest --numprocesses=$(WORKERS) --maxprocesses=4 $(PYTEST_ARGS)

# In memory where there is room: on a disk the fast suite waits for syncs and removals most of its time. Files of tests
# that pass are removed at once.
test-fast: $(VENV)/.everything ## The tests that start no process and are not slow, in about two minutes
	@room=$$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 { print $$4 }'); \
	[ "$${room:-0}" -lt 2000000 ] || export TMPDIR=/dev/shm; \
	HYPOTHESIS_PROFILE=fast $(BIN)/python -m pytest --numprocesses=$(WORKERS) --maxprocesses=4 -m '$(FAST)' \
	    -o tmp_path_retention_policy=failed -o tmp_path_retention_count=1 $(PYTEST_ARGS)

peers: $(VENV)/.everything ## The suites of franz-go, sarama, kafka-go, watermill-kafka, kafka-python, kombu, rskafka, Go transactions and security, against a new broker (needs Go and Rust; an hour; SUITES=sarama)
	$(BIN)/python -m tests.peers.suites $(SUITES)

lint: $(VENV)/.everything ## ruff: rules and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.everything ## Format the tree, and apply ruff's fixes
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

types: $(VENV)/.everything ## mypy, strict
	$(BIN)/mypy

contracts: $(VENV)/.everything ## import-linter: which package may import which
	$(BIN)/lint-imports --no-logo

docs: $(VENV)/.everything ## Regenerate docs/ and config/ from the tables in the code
	$(BIN)/python -m broker.config
	$(BIN)/python -m broker.apis
	$(BIN)/python -m broker.metrics

site: $(VENV)/.everything ## The documentation as a site, its links checked: build/site/index.html
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet --conf-dir docs --doctree-dir build/doctrees . build/site

linkcheck: $(VENV)/.everything ## Check the documentation's links to other sites (needs a network)
	$(BIN)/sphinx-build --builder linkcheck --quiet --conf-dir docs --doctree-dir build/doctrees . build/linkcheck

crash: $(VENV)/.everything ## kill -9 a broker again and again under a producer, and check its log (CYCLES=1000)
	$(BIN)/python -m tests.crash.kill_nine --cycles $(CYCLES)

simulate: $(VENV)/.everything ## Three brokers in virtual time, with faults: one run for each seed (SEEDS=1000 FIRST_SEED=0)
	$(BIN)/python -m tests.simulation --seeds $(SEEDS) --first $(FIRST_SEED)

simulate-members: $(VENV)/.everything ## Consumers of one group in virtual time, with faults and cancellations (SEEDS=1000 FIRST_SEED=0)
	$(BIN)/python -m tests.client.simulation --seeds $(SEEDS) --first $(FIRST_SEED)

simulate-mutants: $(VENV)/.everything ## The same on brokers with one defect each, which a seed must find (MUTANT_SEEDS=100)
	$(BIN)/python -m tests.simulation --mutants --seeds $(MUTANT_SEEDS) --first $(FIRST_SEED)

fuzz: $(VENV)/.everything ## Send damaged requests to a broker, and check that it survives them unchanged (SECONDS=600)
	$(BIN)/python -m tests.fuzz.listener --seconds $(SECONDS)

waiting: $(VENV)/.everything ## Send the worst requests of every API, and measure the waits of another client (an hour; WAITING="--only Fetch")
	$(BIN)/python -m tests.fuzz.waiting $(WAITING)

crash-streams: $(VENV)/.everything ## Kill a streaming query's driver, executors and workers, and count the copied records (KILLS=10)
	$(BIN)/python -m tests.pipeline.kill_streams --kills $(KILLS)

pipeline-cluster: $(VENV)/.everything ## Jobs of the pipeline on a Spark master with two workers, packaged as for a cluster
	$(BIN)/python -m pytest tests/pipeline/cluster.py

coverage: $(VENV)/.everything ## The tests that start no process, under coverage
	$(BIN)/coverage run -m pytest -m '$(FAST)'
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

check: lint types contracts test ## Everything that continuous integration runs

bench: $(VENV)/.bench ## The same work on Apache Kafka and Odradek, in turns: benchmarks/RESULTS.md (an hour; GROUPS=raw for a part)
	$(BIN)/python -m benchmarks.side_by_side $(GROUPS) $(BENCH_ARGS)

bench-quick: $(VENV)/.bench ## A few kinds of that work in two minutes; writes no file
	$(BIN)/python -m benchmarks.side_by_side --quick $(BENCH_ARGS)

rebalances: $(VENV)/.everything ## Joins, pauses, kills and restarts of members: our consumer and Java's, a table (20 minutes on a quiet machine; REBALANCES="--seeds 1")
	$(BIN)/python -m benchmarks.rebalances $(REBALANCES)

compare: $(VENV)/.bench ## This tree beside an earlier commit; reports what became slower (COMMIT=HEAD~1)
	$(BIN)/python -m benchmarks.side_by_side --against $(COMMIT) $(GROUPS) $(BENCH_ARGS)

# The compiled modules import code that lies beside the packages, where the command `odradek` does not look.
compile: $(VENV)/.everything uncompile ## Compile the hottest modules in place, as in a wheel (needs a C compiler)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'setuptools>=77'
	ODRADEK_COMPILE=1 $(BIN)/python setup.py --quiet build_ext --inplace
	ln -s -f "$(CURDIR)"/odradek_*__mypyc.*.so "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')"

test-compiled: compile ## The suite on compiled modules, which are removed if it passes
	$(BIN)/python -m pytest --numprocesses=$(WORKERS) --maxprocesses=4 $(PYTEST_ARGS)
	$(MAKE) uncompile

# A compiled module hides its Python file, and with it every change of the file.
uncompile: ## Remove the compiled modules, so that the Python files run again
	@find broker client protocol -name '*.so' -delete
	@rm -rf odradek_*__mypyc.*.so $(VENV)/lib/python3*/site-packages/odradek_*__mypyc.*.so build

clean: uncompile ## Remove what the other targets made, except the broker's log
	rm -rf $(VENV) .peers .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage* build dist *.egg-info
