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
WEB_SOURCES := $(shell find web -type f -not -path 'web/node_modules/*' -not -path 'web/dist/*' 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help run demo test test-deploy test-fast check format soak bench screenshots page generate man docs dist deb provision clean

help: ## List the tasks
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/.ready-all ## Watch this machine: hub, page and agent (http://127.0.0.1:8470)
	@$(BIN)/gpuherd up

demo: $(VENV)/.ready-all ## Show a simulated herd of 24 nodes; needs no GPU (http://127.0.0.1:8471)
	@$(BIN)/gpuherd demo

test: provision $(VENV)/.ready-dev web/node_modules/.package-lock.json ## Run the tests; as root on Debian installs the servers they use
	@scripts/ldap-extra $(BIN)/python
	@scripts/npm $(VENV) run --silent test
	$(BIN)/python -m pytest -n $(WORKERS) $(SIDE_BY_SIDE) --ignore=tests/e2e $(DEPLOY:%=--ignore=%)
	$(BIN)/python -m pytest -n $(BROWSERS) $(SIDE_BY_SIDE) tests/e2e

test-deploy: provision $(VENV)/.ready-dev ## Run the tests that install on whole machines: packages, Ansible, quick start, README
	$(BIN)/python -m pytest -n $(BROWSERS) $(SIDE_BY_SIDE) $(DEPLOY)

test-fast: $(VENV)/.ready-dev ## Run the unit and documentation tests only
	$(BIN)/python -m pytest -n $(WORKERS) $(SIDE_BY_SIDE) tests/unit tests/docs

check: $(VENV)/.ready-dev web/node_modules/.package-lock.json ## Lint, format check, types, import contracts, page checks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@scripts/npm $(VENV) run --silent check

format: $(VENV)/.ready-dev ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

soak: provision $(VENV)/.ready-dev ## Run the tests that try at random for much longer (SOAK=50 times as long)
	GPUHERD_SOAK=$(SOAK) $(BIN)/python -m pytest -m soak -n $(WORKERS) --dist loadfile

bench: $(VENV)/.ready-dev ## Measure; prints a table of ratios and writes bench/results/
	$(BIN)/python -m bench

screenshots: provision $(VENV)/.ready-dev ## Take a picture of every page, both themes, desk and phone, into build/screenshots/
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

$(VENV)/.ready-all: $(VENV)/bin/python pyproject.toml hatch_build.py $(WEB_SOURCES)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[all]'
	@touch $@

$(VENV)/.ready-dev: $(VENV)/bin/python pyproject.toml hatch_build.py $(WEB_SOURCES)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.ready-all

web/node_modules/.package-lock.json: web/package-lock.json | $(VENV)/.ready-dev
	@scripts/npm $(VENV) ci --silent --no-audit --no-fund
	@touch $@
