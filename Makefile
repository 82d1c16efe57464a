# Everything sets itself up in .venv; a fresh clone needs Python 3.11+ and make, nothing else.
PYTHON ?= python3
BIN := .venv/bin
# Compiled kernels under a name made of all that they may import, so that an edit to any of it is never missed.
FRESH := NUMBA_CACHE_DIR=$(CURDIR)/.numba_cache/$(shell find src/locb/kernels src/locb/common src/locb/evaluation -name "*.py" | sort | xargs cat | cksum | cut -d' ' -f1)
# Who has nothing left takes over tests from the other: neighbours, which share what they start, stay together.
TWO := -n 2 --dist worksteal
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help run page test interpreted coverage lint bench stress verify results screenshots docs clean
help:            ## what there is
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

run: .venv/run   ## compare six policies on the paper's synthetic world: a table and pictures in runs/compare
	@$(BIN)/locb compare --output runs/compare

page: .venv/service ## a service with made-up visitors on http://127.0.0.1:8080 (or PORT=…), to look at in a browser
	@$(BIN)/locb demo $(if $(PORT),--port $(PORT))

test: .venv/dev  ## run the tests
	@echo "Compiling the kernels (once) …"
	@$(FRESH) $(BIN)/python tests/warm_up.py
	$(FRESH) $(BIN)/python -m pytest $(TWO) -q

interpreted: .venv/dev ## the kernels once more with the compiler off: a step outside an array is an error there
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest $(TWO) -q -m interpreted

coverage: .venv/dev ## both, and which lines no test reaches
	@rm -f .coverage .coverage.*
	@$(FRESH) $(BIN)/python tests/warm_up.py
	$(FRESH) $(BIN)/python -m pytest $(TWO) --cov --cov-report= -q
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest $(TWO) --cov --cov-append --cov-report= -q -m interpreted
	$(BIN)/python -m coverage report --fail-under=95

lint: .venv/dev  ## ruff, mypy, import-linter, retired words, size limits
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.check_language
	$(BIN)/python -m tools.check_layout

bench: .venv/bench ## timings, as ratios taken in one run
	@$(FRESH) $(BIN)/python benchmarks/imports.py
	@$(FRESH) $(BIN)/python benchmarks/play.py
	@$(FRESH) $(BIN)/python benchmarks/peers.py docs/explanation/performance.md
	@$(FRESH) $(BIN)/python benchmarks/joining.py
	@$(FRESH) $(BIN)/python benchmarks/files.py
	@$(FRESH) $(BIN)/python benchmarks/baselines.py
	@$(FRESH) $(BIN)/python benchmarks/bonuses.py
	@$(FRESH) $(BIN)/python benchmarks/scaling.py --into docs
	@$(FRESH) $(BIN)/python benchmarks/scaling.py --busy --into docs
	@$(FRESH) $(BIN)/python benchmarks/data.py --scale 0.05

stress: .venv/dev ## faults and load that the service must survive, some forty minutes: tables, and figures in runs/stress
	@SCHEMA_EXAMPLES=200 $(FRESH) $(BIN)/python -m pytest -q tests/service/test_schema.py
	@$(FRESH) $(BIN)/python -m stress

verify: .venv/dev ## the paper's theorems at their own constants, some twenty minutes: runs/verify; all policies against the oracle, at length
	@$(FRESH) $(BIN)/locb verify --output runs/verify
	@ORACLE_SETTINGS=96 $(FRESH) $(BIN)/python -m pytest $(TWO) -q tests/test_oracle.py

results: .venv/data ## docs/results.md anew, from everything; with MOVIELENS=path also on MovieLens
	@$(FRESH) $(BIN)/locb reproduce all --repeats 20 $(if $(MOVIELENS),--movielens $(MOVIELENS)) --output runs/results
	@$(FRESH) $(BIN)/locb verify --output runs/verify
	@$(FRESH) $(BIN)/locb compare --worlds all --policies all $(if $(MOVIELENS),--data movielens --path $(MOVIELENS)) --output runs/scenarios
	@$(BIN)/python -m locb.report.pages.results_page runs/results runs/verify runs/scenarios docs

screenshots: .venv/dev ## update the images of README and docs, about five minutes; MOVIELENS=path adds MovieLens
	@$(FRESH) $(BIN)/python -m tools.screenshots $(if $(MOVIELENS),--movielens $(MOVIELENS))

docs: .venv/docs ## build the documentation in docs/_build/html; a warning is an error
	@rm -rf docs/reference/generated
	@$(FRESH) $(BIN)/python -m sphinx -q -W --keep-going -b html -d docs/_build/doctrees docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

clean:           ## remove the environment and everything that was made
	rm -rf .venv .numba_cache runs docs/_build docs/gallery docs/reference/generated .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.* .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/base:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "locb needs Python 3.11 or newer, this is " + sys.version.split()[0] + ": call make PYTHON=/path/to/a/newer/python3")'
	@echo "Setting up .venv (once) …"
	@$(PYTHON) -m venv .venv
	@touch $@

.venv/run: .venv/base pyproject.toml
	@echo "Installing locb (once) …"
	@$(PIP) -e .
	@touch $@

.venv/data: .venv/run
	@echo "Installing what data sets need (once) …"
	@$(PIP) -e '.[data]'
	@touch $@

.venv/service: .venv/run
	@echo "Installing what the service needs (once) …"
	@$(PIP) -e '.[client,service]'
	@touch $@

.venv/dev: .venv/run
	@echo "Installing the tools for tests (once) …"
	@$(PIP) -e '.[dev]'
	@touch $@

.venv/bench: .venv/run
	@echo "Installing what benchmarks compare with (once) …"
	@$(PIP) -e '.[bench]'
	@touch $@

.venv/docs: .venv/run
	@echo "Installing the packages for the documentation (once) …"
	@$(PIP) -e '.[docs]'
	@touch $@
