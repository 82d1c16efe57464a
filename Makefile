# All targets set up .venv. A fresh clone needs only Python 3.11 or newer and make.
PYTHON ?= python3
BIN := .venv/bin
# Cache directory of compiled kernels: a checksum of all sources that they import, so that stale code is never used.
FRESH := NUMBA_CACHE_DIR=$(CURDIR)/.numba_cache/$(shell find src/locb/kernels src/locb/common src/locb/evaluation -name "*.py" | sort | xargs cat | cksum | cut -d' ' -f1)
# Two processes; an idle one takes over tests from the other. Neighbouring tests, which share fixtures, stay together.
TWO := -n 2 --dist worksteal
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help run page test interpreted coverage lint bench stress verify results screenshots docs clean
help:            ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

run: .venv/run   ## compare six policies on the synthetic environment of the paper: a table, charts and a report in runs/compare
	@$(BIN)/locb compare --output runs/compare

page: .venv/service ## start a service with simulated visitors and a dashboard on http://127.0.0.1:8080 (or PORT=…)
	@$(BIN)/locb demo $(if $(PORT),--port $(PORT))

test: .venv/dev  ## run the tests
	@echo "Compiling the kernels (once) …"
	@$(FRESH) $(BIN)/python tests/warm_up.py
	$(FRESH) $(BIN)/python -m pytest $(TWO) -q

interpreted: .venv/dev ## run the kernel tests without the compiler, where an index out of bounds is an error
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest $(TWO) -q -m interpreted

coverage: .venv/dev ## run both with a coverage report
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

bench: .venv/bench ## run the benchmarks and update the tables of docs/explanation/performance.md
	@$(FRESH) $(BIN)/python benchmarks/import_time.py
	@$(FRESH) $(BIN)/python benchmarks/play.py
	@$(FRESH) $(BIN)/python benchmarks/other_libraries.py docs/explanation/performance.md
	@$(FRESH) $(BIN)/python benchmarks/add_users.py
	@$(FRESH) $(BIN)/python benchmarks/save_load.py
	@$(FRESH) $(BIN)/python benchmarks/baselines.py
	@$(FRESH) $(BIN)/python benchmarks/bonus_regret.py
	@$(FRESH) $(BIN)/python benchmarks/scaling.py --into docs
	@$(FRESH) $(BIN)/python benchmarks/scaling.py --busy --into docs
	@$(FRESH) $(BIN)/python benchmarks/dataset_preparation.py --scale 0.05

stress: .venv/dev ## test the service under faults and load, about 40 minutes; results in runs/stress
	@SCHEMA_EXAMPLES=200 $(FRESH) $(BIN)/python -m pytest -q tests/service/test_schema.py
	@$(FRESH) $(BIN)/python -m stress

verify: .venv/dev ## check the theorems of the paper and all policies against the plain implementation, about 20 minutes; results in runs/verify
	@$(FRESH) $(BIN)/locb verify --output runs/verify
	@ORACLE_SETTINGS=96 $(FRESH) $(BIN)/python -m pytest $(TWO) -q tests/test_oracle.py

results: .venv/data ## run all experiments and write docs/results.md; MOVIELENS=path adds MovieLens
	@$(FRESH) $(BIN)/locb reproduce all --repeats 20 $(if $(MOVIELENS),--movielens $(MOVIELENS)) --output runs/results
	@$(FRESH) $(BIN)/locb verify --output runs/verify
	@$(FRESH) $(BIN)/locb compare --scenarios all --policies all $(if $(MOVIELENS),--data movielens --path $(MOVIELENS)) --output runs/scenarios
	@$(BIN)/python -m locb.report.pages.results_page runs/results runs/verify runs/scenarios docs

screenshots: .venv/dev ## update the images of README and docs, about five minutes; MOVIELENS=path adds MovieLens
	@$(FRESH) $(BIN)/python -m tools.screenshots $(if $(MOVIELENS),--movielens $(MOVIELENS))

docs: .venv/docs ## build the documentation in docs/_build/html; a warning is an error
	@rm -rf docs/reference/generated
	@$(FRESH) $(BIN)/python -m sphinx -q -W --keep-going -b html -d docs/_build/doctrees docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

clean:           ## remove .venv, caches and all generated files
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
	@echo "Installing the packages for data sets (once) …"
	@$(PIP) -e '.[data]'
	@touch $@

.venv/service: .venv/run
	@echo "Installing the packages for the service (once) …"
	@$(PIP) -e '.[client,service]'
	@touch $@

.venv/dev: .venv/run
	@echo "Installing the tools for tests (once) …"
	@$(PIP) -e '.[dev]'
	@touch $@

.venv/bench: .venv/run
	@echo "Installing the packages for benchmarks (once) …"
	@$(PIP) -e '.[bench]'
	@touch $@

.venv/docs: .venv/run
	@echo "Installing the packages for the documentation (once) …"
	@$(PIP) -e '.[docs]'
	@touch $@
