# Every task of the project; `make help` lists them. The virtual environment is made on first use.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Test files side by side. Most tests wait, for servers and deadlines: three at a time for two cores. Browsers do not.
WORKERS ?= 3
BROWSERS ?= 2
SIDE_BY_SIDE := --dist loadfile --no-loadscope-reorder
# Whole machines, and everything the README and the quick start say typed on them: minutes, so a target of their own.
DEPLOY := tests/deploy/test_ansible.py tests/deploy/test_deb.py tests/deploy/test_install.py tests/integration/walk \
    tests/packaging/test_installing.py
SOAK ?= 50
# Only these tests: make test TESTS=tests/unit, also for test-latest, test-oldest and update.
TESTS ?=
# Tests start hundreds of commands. Compile the package once, even where Python is asked to keep nothing.
export PYTHONDONTWRITEBYTECODE :=
LOCKS := $(wildcard locks/*.txt)
WEB_SOURCES := $(shell find web -type f -not -path 'web/node_modules/*' -not -path 'web/dist/*' 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help run demo test test-page test-hub test-browser test-deploy test-fast test-latest test-oldest lock update check format soak attack chaos bench screenshots page generate man docs dist deb provision clean

help: ## List the tasks
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/.ready-all ## Watch this machine: hub, page and agent (http://127.0.0.1:8470)
	@$(BIN)/gpuherd up

demo: $(VENV)/.ready-all ## Show a simulated herd of 24 nodes; needs no GPU (http://127.0.0.1:8471)
	@$(BIN)/gpuherd demo

test: test-page test-hub $(if $(TESTS),,test-browser) ## Run the tests; as root on Debian installs the servers they use (--jobs=2: side by side)

test-page: $(VENV)/.ready-dev web/node_modules/.package-lock.json ## Run the page's own tests
	@scripts/npm $(VENV) run --silent test

test-hub: provision $(VENV)/.ready-dev web/node_modules/.package-lock.json ## Run all tests but those of the page and in a browser
	@scripts/ldap-extra $(BIN)/python
	$(BIN)/python -m pytest -n $(WORKERS) $(SIDE_BY_SIDE) $(or $(TESTS),--ignore=tests/e2e $(DEPLOY:%=--ignore=%))

test-browser: provision $(VENV)/.ready-dev web/node_modules/.package-lock.json ## Run the tests in a browser
	$(BIN)/python -m pytest -n $(BROWSERS) $(SIDE_BY_SIDE) tests/e2e

test-deploy: provision $(VENV)/.ready-dev ## Run the tests that install on whole machines: packages, Ansible, quick start, README
	$(BIN)/python -m pytest -n $(BROWSERS) $(SIDE_BY_SIDE) $(DEPLOY)

test-fast: $(VENV)/.ready-dev ## Run the unit and documentation tests only
	$(BIN)/python -m pytest -n $(WORKERS) $(SIDE_BY_SIDE) tests/unit tests/docs

test-latest: $(VENV)/.ready-dev ## Run checks and tests with the newest packages instead of the locked ones; reports, never fails
	@scripts/test-with newest $(BIN)/python

test-oldest: $(VENV)/.ready-dev ## Run the tests with the lower bounds of pyproject.toml
	@scripts/test-with lowest $(BIN)/python

lock: $(BIN)/uv ## Add to locks/ what pyproject.toml newly asks for; other versions stay
	$(BIN)/python scripts/locks.py write added

update: $(BIN)/uv ## Renew all locks, run checks and tests with them, list what changed
	$(BIN)/python scripts/locks.py write newest --report build/update.txt
	@$(MAKE) check test; status=$$?; cat build/update.txt; exit $$status

check: $(VENV)/.ready-dev web/node_modules/.package-lock.json ## Lint, format check, types, import contracts, prose, page checks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/prose.py
	@scripts/npm $(VENV) run --silent check

format: $(VENV)/.ready-dev ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

soak: provision $(VENV)/.ready-dev ## Run the tests that try at random for much longer (SOAK=50 times as long)
	GPUHERD_SOAK=$(SOAK) $(BIN)/python -m pytest -m soak -n $(WORKERS) --dist loadfile

attack: provision $(VENV)/.ready-dev ## Attack hubs on this machine, longer than the tests do; prints what held and what did not
	GPUHERD_SOAK=$(SOAK) $(BIN)/python -m pytest -m attack

chaos: provision $(VENV)/.ready-dev ## Kill, cut, fill and damage what a hub uses, longer than the tests do; prints what was lost
	GPUHERD_SOAK=$(SOAK) $(BIN)/python -m pytest -m chaos

bench: $(VENV)/.ready-dev ## Measure; prints a table of ratios and writes bench/results/
	$(BIN)/python -m bench

screenshots: provision $(VENV)/.ready-dev ## Take pictures of every page into build/screenshots/, and renew those of README and docs
	$(BIN)/python scripts/screenshots.py

page: $(VENV)/.ready-all ## Build the page into the package, if its sources changed

generate: $(VENV)/.ready-dev man ## Write again what is generated: the page's API types, references, manual pages
	@scripts/npm $(VENV) run --silent generate

man: $(VENV)/.ready-dev ## Write again the manual pages (docs/man/) and references, from commands, settings and routes
	$(BIN)/python -m scripts.write_docs

docs: $(VENV)/.ready-dev ## Build the documentation's site into build/site/; whatever is wrong in it is an error
	$(BIN)/zensical build --strict --clean

dist: $(VENV)/.ready-dev ## Build wheel and sdist into dist/, with the page in them: installing needs no Node.js
	rm -rf dist
	$(BIN)/python -m hatchling build -t sdist -t wheel

deb: $(VENV)/.ready-dev ## Build the Debian package into dist/, for a Debian whose python3 is that of this environment
	scripts/build-deb $(BIN)/python

provision: ## Install the Debian packages that the tests use (as root; otherwise says what is missing)
	@scripts/provision

clean: ## Remove what was built, not what was recorded
	rm -rf $(VENV) build dist web/node_modules web/dist src/gpuherd/api/page .mypy_cache .ruff_cache .pytest_cache

$(VENV)/bin/python:
	@scripts/make-venv $(PYTHON) $(VENV)

# uv writes the locks. This works too while pyproject.toml asks for something that they lack.
$(BIN)/uv: | $(VENV)/bin/python
	$(BIN)/python scripts/locks.py install build sdists dev

# Versions and checksums come from locks/.
$(VENV)/.ready-all: $(VENV)/bin/python pyproject.toml $(LOCKS) hatch_build.py $(WEB_SOURCES)
	$(BIN)/python scripts/locks.py install build all --editable --project '.[all]'
	@touch $@

$(VENV)/.ready-dev: $(VENV)/bin/python pyproject.toml $(LOCKS) hatch_build.py $(WEB_SOURCES)
	$(BIN)/python scripts/locks.py install build sdists dev --editable --project '.[dev]'
	@touch $@ $(VENV)/.ready-all

web/node_modules/.package-lock.json: web/package-lock.json | $(VENV)/.ready-dev
	@scripts/npm $(VENV) ci --silent --no-audit --no-fund
	@touch $@
