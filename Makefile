# Two commands for a fresh machine with Python >= 3.11 (pip, venv) and make: `make demo`, `make test`.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
SOURCES = $(shell find workbench templates sessions/recorded -type f -not -name '*.pyc') pyproject.toml
# Modules are compiled when they are first imported, if that may be kept: all of them at once are a
# third of what an installation costs, before there is anything to look at.
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check \
	$(if $(PYTHONDONTWRITEBYTECODE),,--no-compile)

.PHONY: demo replay test lint unit docker-test accept bench bench-truth bench-why bench-science bench-chains bench-counters bench-alarms bench-fleet bench-hosts release-check lock lock-check screenshot clean help

# Exit code 1 is a finding, such as a configuration without a usable sample: told, and no error of make.
demo: $(VENV)/.runtime  ## profile haproxy, tinyproxy and their chains; a new session each time
	@$(BIN)/workbench run demo || test $$? -eq 1

replay: $(VENV)/.runtime  ## look around: a real campaign that ships with it, replayed; needs no Docker
	@$(BIN)/workbench replay chain-real --speed 60

# Lint is one process for a minute, and tests wait for half of their time: both at once keep two cores at work.
test: $(VENV)/.dev  ## lint, types, floors, tests against the built wheel; with SLOW=1 all that CI runs, but for release-check and a bare host
	$(MAKE) --jobs=2 lint unit
	$(MAKE) docker-test

lint: $(VENV)/.dev lock-check  ## format, lint, types, floors, lock files
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo 2>/dev/null || $(BIN)/lint-imports

# `make test TESTS="cli ssh"` takes these rooms or files of tests/ only.
# Tests are spread by work over four workers, as they wait for half of their time on two cores;
# those of a file that share an engine stay together (tests/spreading.py). A file that costs over
# 30 s of CPU fails the run (tests/file_costs.py). Those marked `slow` are left to `.ci/run`.
UNIT = not docker$(if $(SLOW),, and not slow)
unit: $(VENV)/.dev  ## tests that need no Docker engine; SLOW=1 with those that only .ci/run takes
	cd tests && $(KEEPING) ../$(BIN)/pytest -q -n 4 -m "$(UNIT)" $(TESTS) \
		|| { test $$? -eq 1 && $(ONCE_MORE) "$(UNIT)"; }

docker-test: $(VENV)/.dev  ## skipped by name without an engine; a failure with WORKBENCH_REQUIRE=docker or all
	cd tests && $(KEEPING) ../$(BIN)/pytest $(APART) -q -n $(WORKERS) -m "$(DOCKER)" $(or $(TESTS),$(WITH_DOCKER)) \
		|| { test $$? -eq 1 && $(ONCE_MORE) "$(DOCKER)" $(APART); }

# `.ci/run` runs those marked `unhurried` beside the other tests, which keep their own failures, and
# two at once: they hold however busy the host is, and wait for the engine most of the time.
DOCKER ?= docker
WORKERS ?= 0
APART = -o cache_dir=.pytest_cache/docker
# Collecting all other files takes as long as two tests.
WITH_DOCKER = $$(grep -rl --include='test_*.py' 'mark\.docker' . | sort)

# Rewriting the asserts of all tests takes each worker 15 s, in every run that may not keep them.
KEEPING = PYTHONDONTWRITEBYTECODE=

# A shared host may spoil a measurement or a wait: what failed runs once more, alone, and stands
# above as failed. A run that failed by something else than a test fails here, too.
ONCE_MORE = ../$(BIN)/pytest -q --last-failed --last-failed-no-failures none -m

accept: $(VENV)/.dev  ## the long acceptance runs, and whatever else has a full length
	cd tests && ../$(BIN)/pytest -q --accept --timeout 0 acceptance docker/test_docker_whole_way.py tui \
		$$(grep -rlE 'full_length|mark.long|@given' --include='test_*.py' . | grep -vE '^./(acceptance|tui)/' | sort)

bench: $(VENV)/.dev  ## benchmarks with their targets; never a timed test
	$(BIN)/python benchmarks/run.py

bench-truth: $(VENV)/.dev  ## the tables of docs/truth.md; an interrupted run goes on
	cd benchmarks && ../$(BIN)/python -m bench_truth --publish

bench-why: $(VENV)/.dev  ## causes injected on the Docker lab, and what `why` says of them; TIMES=3 trials of each
	cd benchmarks && ../$(BIN)/python -m bench_why --times $(or $(TIMES),3)

bench-science: $(VENV)/.dev  ## the tables behind docs/science.md; QUICK=1 prints one per surface within 10 minutes
	cd benchmarks && ../$(BIN)/python -m science $(if $(QUICK),--quick,--publish)

bench-chains: $(VENV)/.dev  ## the tables of docs/chain-science.md; QUICK=1 plays one seed and writes nothing
	cd benchmarks && ../$(BIN)/python -m chain_science $(if $(QUICK),--quick,--publish)

bench-counters: $(VENV)/.dev  ## models of a KPI from counters, by experiment, of the rows that are kept: FUNCTION=haproxy; SESSIONS=sessions/proxies.duckdb of others, KEEP=1 keeps its rows
	$(BIN)/python -W ignore benchmarks/counted_sessions.py $(or $(FUNCTION),haproxy) $(SESSIONS) $(if $(KEEP),--keep)

bench-alarms: $(VENV)/.dev  ## contention injected beside a function that is watched, and when it is alarmed; TIMES=20; FOLDER= keeps the session, RESULTS= what was seen
	$(BIN)/python -W ignore benchmarks/contention_alarms.py --times $(or $(TIMES),20) $(if $(FOLDER),--folder $(FOLDER)) $(if $(RESULTS),--results $(RESULTS))

bench-fleet: $(VENV)/.dev  ## breakpoints of hosts of speeds 0.5 to 2, by the factor between them and as they are; MINUTES=30
	$(BIN)/python -W ignore benchmarks/fleet_factors.py --minutes $(or $(MINUTES),30)

bench-hosts: $(VENV)/.dev  ## 480 configurations by one simulated host and by HOSTS=16: lab time over 1/16 of one host's
	$(BIN)/python benchmarks/fleet_scale.py --hosts $(or $(HOSTS),16) --pace $(or $(PACE),3) --results benchmarks/results/hosts.json

release-check: $(VENV)/.dev-tools  ## build sdist and wheel, install each into empty environments
	$(BIN)/python scripts/check_release.py

lock: $(VENV)/.tools  ## lock files anew from pyproject.toml
	$(BIN)/python scripts/lock.py write

lock-check: $(VENV)/.dev  ## do the lock files fit pyproject.toml?
	$(BIN)/python scripts/lock.py check

screenshot: $(VENV)/.runtime  ## the pictures of docs/screens.md, from the recording that ships
	$(BIN)/python scripts/screenshot.py

clean:  ## remove .venv and what was built
	rm -rf $(VENV) dist build

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*  ## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

# ---------------------------------------------------------------------- how .venv comes to be

# Without ensurepip a half of it is left that has a Python and no pip: the next call would go on with that.
$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python >= 3.11 is needed")'
	$(PYTHON) -m venv $(VENV) || { rm -rf $(BIN); echo "$(VENV) cannot be made: Python's venv and pip are needed, which Debian and Ubuntu have in python3-venv (apt install python3-venv)" >&2; exit 1; }

# Runtime without optional extras, and the build back end: every file has a hash in the lock.
$(VENV)/.tools: requirements-dev.lock scripts/select_lock.py pyproject.toml | $(BIN)/python
	@echo "installing what the workbench needs into $(VENV): once, about 20 s where packages arrive fast"
	$(BIN)/python scripts/select_lock.py runtime build < requirements-dev.lock > $(VENV)/selected.lock
	$(PIP_INSTALL) --require-hashes -r $(VENV)/selected.lock
	touch $@

$(VENV)/.runtime: $(VENV)/.tools $(SOURCES)
	$(PIP_INSTALL) --no-deps --no-build-isolation --force-reinstall .
	touch $@

$(VENV)/.dev-tools: requirements-dev.lock | $(BIN)/python
	$(PIP_INSTALL) --require-hashes -r requirements-dev.lock
	touch $@

# Tests run against the built wheel, not against this folder.
$(VENV)/.dev: $(VENV)/.dev-tools $(SOURCES)
	rm -rf dist
	$(BIN)/python -m build --quiet --wheel --no-isolation
	$(PIP_INSTALL) --no-deps --force-reinstall dist/*.whl
	touch $@
