# Every target works on a fresh clone: ci/setup makes .venv with what the target needs.
PYTHON ?= $(shell ci/find-python)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-all build lint bench bench-compare instructions bench-spark interop sanitize fuzz wheel deploy clean

$(READY): pyproject.toml setup.py $(wildcard native/c/*.h native/kraftlog/_native/*) ci/setup
	PYTHON="$(PYTHON)" ci/setup $(VENV)
	touch $(READY)

build: $(READY)

demo: $(READY)
	$(BIN)/kraftlog demo

TESTS := $(BIN)/python -m pytest tests --ignore=tests/interop --ignore=tests/native -n 2 --dist loadfile

# a sample of the sweeps, another one each day
test: $(READY)
	$(TESTS) --sample-seed=$$(date -u +%F)

test-all: $(READY)
	$(TESTS) --all-cases

lint: $(READY)
	ci/lint

bench: $(READY)
	$(BIN)/python bench/run.py

# "--quick" for small logs and few rounds: make bench-compare OPTIONS=--quick
bench-compare: $(READY)
	$(BIN)/python bench/run.py --compare --json build/bench/compare.json $(OPTIONS)

instructions: $(READY)
	ci/instructions

bench-spark: $(READY)
	PYTHONPATH=bench/spark:bench:tests/interop $(BIN)/python bench/spark/run.py

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
