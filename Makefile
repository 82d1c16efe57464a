# Each target creates the virtual environment .venv and installs the packages that it needs. The only requirements are make
# and Python 3.11 or newer. To use another Python in another environment, set PYTHON=/path/to/python3 VENV=folder.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TESTS :=
TESTED :=
ALL_PARTS := reproduce verify scenarios
PARTS := $(ALL_PARTS)
# Compiled kernels of development commands are cached in the repository.
CACHED := NUMBA_CACHE_DIR=$(CURDIR)/.kernel_cache
# Run tests in three processes, also on two cores, because many tests wait for the processes that they start. "worksteal"
# gives each process consecutive tests, which share fixtures; a process that has finished takes over tests from the others.
PARALLEL := -n 3 --dist worksteal
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help run page test versions interpreted coverage lint bench stress soak verify results screenshots docs clean
help:            ## list the targets of this file
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

run: $(VENV)/run   ## compare six policies in the synthetic environment of the paper; results in runs/compare
	@$(BIN)/locb compare --output runs/compare

page: $(VENV)/service ## start a service with simulated visitors; dashboard on http://127.0.0.1:8080, PORT=number changes the port
	@$(BIN)/locb demo $(if $(PORT),--port $(PORT))

test: $(VENV)/dev ## run all tests; TESTS="paths" selects tests
	@echo "Compiling the kernels (once) …"
	@$(CACHED) $(BIN)/python tests/warm_up.py
	$(CACHED) $(BIN)/python -m pytest $(PARALLEL) -q $(TESTS)

versions:        ## run a selection of tests with the oldest and the newest installed Python; TESTS="paths" selects other tests
	@$(PYTHON) tools/python_versions.py $(if $(TESTED),--tested $(TESTED)) $(TESTS)

interpreted: $(VENV)/dev ## run the kernel tests without compilation, which detects indices out of bounds
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest $(PARALLEL) -q -m interpreted

coverage: $(VENV)/dev ## run the targets test and interpreted, and report code coverage (at least 95%)
	@rm -f .coverage .coverage.*
	@$(CACHED) $(BIN)/python tests/warm_up.py
	$(CACHED) $(BIN)/python -m pytest $(PARALLEL) --cov --cov-report= -q
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest $(PARALLEL) --cov --cov-append --cov-report= -q -m interpreted
	$(BIN)/python -m coverage report --fail-under=95

lint: $(VENV)/dev  ## run ruff, mypy and import-linter; check for retired words and the sizes of files and functions
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.check_language
	$(BIN)/python -m tools.check_layout

bench: $(VENV)/bench ## run the benchmarks and update the tables of docs/explanation/performance.md
	@$(CACHED) $(BIN)/python benchmarks/import_time.py
	@$(BIN)/python benchmarks/first_use.py
	@$(CACHED) $(BIN)/python benchmarks/play.py
	@$(CACHED) $(BIN)/python benchmarks/calls.py
	@$(CACHED) $(BIN)/python benchmarks/other_libraries.py docs/explanation/performance.md
	@$(CACHED) $(BIN)/python benchmarks/add_users.py
	@$(CACHED) $(BIN)/python benchmarks/save_load.py
	@$(CACHED) $(BIN)/python benchmarks/baselines.py
	@$(CACHED) $(BIN)/python benchmarks/option_regret.py
	@$(CACHED) $(BIN)/python benchmarks/reward_scale.py
	@$(CACHED) $(BIN)/python benchmarks/scaling.py --into docs
	@$(CACHED) $(BIN)/python benchmarks/scaling.py --busy --into docs
	@$(CACHED) PYTHONPATH=benchmarks $(BIN)/python benchmarks/data/dataset_preparation.py --scale 0.05
	@$(CACHED) PYTHONPATH=benchmarks $(BIN)/python benchmarks/data/user_groups.py
	@$(CACHED) PYTHONPATH=benchmarks $(BIN)/python benchmarks/data/start_from_log.py
	@$(CACHED) PYTHONPATH=benchmarks $(BIN)/python benchmarks/data/log_memory.py

stress: $(VENV)/dev ## test the service under faults and load (about 90 minutes); results in runs/stress
	@SCHEMA_EXAMPLES=200 $(CACHED) $(BIN)/python -m pytest -q tests/service/api/test_openapi.py
	@$(CACHED) $(BIN)/python -m stress

soak: $(VENV)/dev ## keep the service under load for 30 minutes per store and policy (about 2 hours, 30 GB of disk); results in runs/stress
	@$(CACHED) $(BIN)/python -m stress soak

verify: $(VENV)/dev ## check the theorems of the paper, all policies against the reference implementation, and estimates on logs against the truth (about 25 minutes); results in runs/verify
	@$(CACHED) $(BIN)/locb verify --output runs/verify
	@ORACLE_SETTINGS=96 $(CACHED) $(BIN)/python -m pytest $(PARALLEL) -q tests/test_oracle.py
	@TRUTH_LOGS=400 $(CACHED) $(BIN)/python -m pytest -q -s tests/logs/test_truth.py

# Each part keeps its finished runs in runs/results. After an interruption, the same command continues.
results: $(VENV)/data ## run all experiments and write docs/results.md (about 135 minutes on two cores); MOVIELENS=folder, YELP=folder and YAHOO=folder add data, PARTS="reproduce verify scenarios" selects parts
	@$(if $(filter-out $(ALL_PARTS),$(PARTS)),echo "unknown part $(filter-out $(ALL_PARTS),$(PARTS)); choose from $(ALL_PARTS)"; exit 1)
	@$(if $(filter reproduce,$(PARTS)),$(CACHED) $(BIN)/locb reproduce all --repeats 20 $(if $(MOVIELENS),--movielens $(MOVIELENS)) $(if $(YELP),--yelp $(YELP)) $(if $(YAHOO),--yahoo $(YAHOO)) --output runs/results/reproduce)
	@$(if $(filter verify,$(PARTS)),$(CACHED) $(BIN)/locb verify --output runs/results/verify)
	@$(if $(filter scenarios,$(PARTS)),$(CACHED) $(BIN)/locb compare --scenarios all --policies all --repeats 13 --tuning-repeats 3 $(if $(MOVIELENS),--data movielens --path $(MOVIELENS)) --output runs/results/scenarios)
	@$(BIN)/python -m locb.report.pages.results_page docs $(foreach part,$(PARTS),$(part)=runs/results/$(part))

screenshots: $(VENV)/dev ## update the images of README.md and docs (about 5 minutes); MOVIELENS=folder adds MovieLens data
	@$(CACHED) $(BIN)/python -m tools.screenshots $(if $(MOVIELENS),--movielens $(MOVIELENS))

docs: $(VENV)/docs ## build the documentation in docs/_build/html; warnings are errors
	@rm -rf docs/reference/generated
	@$(CACHED) $(BIN)/python -m sphinx -q -W --keep-going -b html -d docs/_build/doctrees docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

clean:           ## remove .venv, caches, the results in runs, and all other generated files
	rm -rf .venv .venv-* .kernel_cache runs docs/_build docs/gallery docs/reference/generated .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.* .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/base:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "locb needs Python 3.11 or newer, not " + sys.version.split()[0] + "; run make PYTHON=/path/to/python3 with a newer version")'
	@echo "Setting up $(VENV) (once) …"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/run: $(VENV)/base pyproject.toml
	@echo "Installing locb (once) …"
	@$(PIP) -e .
	@touch $@

$(VENV)/data: $(VENV)/run
	@echo "Installing the packages for data sets (once) …"
	@$(PIP) -e '.[data]'
	@touch $@

$(VENV)/service: $(VENV)/run
	@echo "Installing the packages for the service (once) …"
	@$(PIP) -e '.[client,service]'
	@touch $@

$(VENV)/dev: $(VENV)/run
	@echo "Installing the development tools (once) …"
	@$(PIP) -e '.[dev]'
	@touch $@

$(VENV)/bench: $(VENV)/run
	@echo "Installing the packages for benchmarks (once) …"
	@$(PIP) -e '.[bench]'
	@touch $@

$(VENV)/docs: $(VENV)/run
	@echo "Installing the packages for the documentation (once) …"
	@$(PIP) -e '.[docs]'
	@touch $@
