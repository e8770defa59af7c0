# Every target works on a fresh clone: ci/setup makes .venv with what the target needs.
PYTHON ?= $(shell ci/find-python)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SPARK := $(VENV)/.ready-spark
SOURCES := pyproject.toml setup.py $(wildcard native/*.py native/c/*/*.h native/kraftlog/_native/* python/kraftlog/messages/definitions/*) ci/setup

.PHONY: demo test test-all simulate mutants build lint bench bench-compare bench-plots bench-history free-threaded instructions docs bench-spark interop sanitize fuzz wheel deploy clean

# kraftlog with Spark, which the demo needs
$(SPARK): $(SOURCES)
	PYTHON="$(PYTHON)" ci/setup $(VENV) spark
	touch $(SPARK)

# and what tests, benchmarks and documentation need
$(READY): $(SOURCES)
	PYTHON="$(PYTHON)" ci/setup $(VENV) test,bench,dev,docs,spark
	touch $(SPARK) $(READY)

build: $(READY)

demo: $(SPARK)
	$(BIN)/kraftlog demo --spark

TESTS := $(BIN)/python -m pytest tests --ignore=tests/interop --ignore=tests/native -n 2 --dist loadfile --no-loadscope-reorder \
	--max-worker-restart=0

# a sample of the sweeps: make test SAMPLE=2 takes another one
SAMPLE := 0
test: $(READY)
	$(TESTS) --sample-seed=$(SAMPLE)

test-all: $(READY)
	$(TESTS) --all-cases

# crashes of simulated disks: make simulate SEED=2 takes other schedules
SCHEDULES := 100000
SEED := 0
simulate: $(READY)
	$(BIN)/python tests/simulation/simulate.py --schedules=$(SCHEDULES) --seed=$(SEED)

# changes that make the code wrong, each with the check that has to notice it
mutants: $(READY)
	$(BIN)/python tests/mutants/run.py

lint: $(READY)
	ci/lint

# for small logs and few rounds: make bench OPTIONS=--quick
bench: $(READY)
	$(BIN)/python bench/run.py --json build/bench/bench.json $(OPTIONS)

bench-compare: $(READY)
	$(BIN)/python bench/run.py --compare --json build/bench/compare.json $(OPTIONS)

# of what "make bench" and "make bench-compare" have measured
bench-plots: $(READY)
	$(BIN)/python bench/plots.py build/bench/*.json

# the commit that is checked out, into the pages of build/asv/html
bench-history: $(READY)
	cd bench && ../$(BIN)/asv machine --yes && ../$(BIN)/asv run --python=same --set-commit-hash $$(git rev-parse HEAD)
	cd bench && ../$(BIN)/asv publish

# with the interpreter of FREE_THREADED_PYTHON, or python3.14t or python3.13t
free-threaded:
	ci/free-threaded

instructions: $(READY)
	ci/instructions

bench-spark: $(READY)
	PYTHONPATH=bench/spark:bench:tests/interop $(BIN)/python bench/spark/run.py

# into build/site
docs: $(READY)
	ci/docs

interop: $(READY)
	ci/interop

sanitize: $(READY)
	ci/sanitize

fuzz: $(READY)
	ci/fuzz

wheel: $(READY)
	ci/wheel

deploy: $(READY)
	ci/deploy

clean:
	rm -rf build dist demo-output .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
	find python native -name '*.so' -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
