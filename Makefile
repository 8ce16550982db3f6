# Two commands on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
CONSTRAINTS ?= constraints-ci.txt
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# One torch thread a worker: two workers with two threads each take twice as long.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n logical

.PHONY: demo test test-slow paper house lint types check check-oldest docs clean

demo: $(READY)
	$(BIN)/unbag demo

test: $(READY)
	$(PYTEST)

test-slow: $(READY)
	$(PYTEST) -m slow

# Both tables, all figures and the quick check of the theory, from committed rows.
paper: $(READY)
	@mkdir -p build
	$(BIN)/unbag-paper render > build/tables.md
	$(BIN)/unbag-paper theory --quick --out build/theory > build/theory.txt
	@tail -n 1 build/theory.txt

house: $(READY)
	$(BIN)/python tools/house.py --check

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

check: lint types test

# The lowest versions that pyproject.toml allows.
check-oldest:
	$(MAKE) test VENV=.venv-oldest CONSTRAINTS=constraints-oldest.txt

docs: $(READY)
	$(BIN)/python -m mkdocs build --strict

$(READY): pyproject.toml paper/pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e ".[dev]" -e ./paper
	@touch $@

clean:
	rm -rf $(VENV) .venv-oldest build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
