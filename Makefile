# Two commands do all the set-up: `make run` and `make test`. Everything else is one step of theirs.
# The first Python that really runs and is new enough (a shim may be there without its Python).
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
VENV ?= .venv
BIN = $(VENV)/bin
HOST ?= 127.0.0.1
PORT ?= 8111
# Where the server keeps everything it has; unset: the platform's user data folder.
HOME_OPTION = $(if $(CROCEVIA_HOME),--home "$(CROCEVIA_HOME)",)
PIP = $(BIN)/python -m pip --disable-pip-version-check -q install -c constraints.txt
# In the order of their paths: by number of tests, the few that take longest would come last, on one core.
PYTEST = $(BIN)/python -m pytest -q -n auto --dist loadfile --no-loadscope-reorder
NOT_HERE = not model and not clients and not browser and not torture and not long

.DEFAULT_GOAL := help
.PHONY: help run install dev model test test-server test-sdk test-clients test-browser test-sdks test-model torture long check newer format bench clean

help: ## Show what there is to do
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

run: install ## Install, fetch the embedded model, serve on $(HOST):$(PORT)
	@$(BIN)/crocevia model pull $(HOME_OPTION) || echo "No embedded model for now: the server starts without it, and every other engine works."
	@exec $(BIN)/crocevia serve $(HOME_OPTION) --host $(HOST) --port $(PORT)

install: $(VENV)/.installed ## .venv with the server and the local engine
dev: $(VENV)/.developing ## .venv with everything the suite needs

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer found. Install one, or say: make PYTHON=/path/to/python $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "$(PYTHON) has no venv module. On Debian and Ubuntu: apt install python3-venv"; exit 1; }

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing Crocevia into $(VENV) (about a minute) …"
	@$(PIP) -e '.[local,pdf]'
	@touch $@

$(VENV)/.developing: pyproject.toml constraints.txt sdk/python/pyproject.toml | $(BIN)/python
	@echo "Installing Crocevia and the tools of its suite into $(VENV) (one or two minutes) …"
	@$(PIP) -e '.[local,pdf,dev]' -e sdk/python
	@$(PIP) --no-deps openresponses-py # for the schema file that it carries; its own dependencies are older than ours
	@touch $@ $(VENV)/.installed

test: test-server test-sdk ## The suite, on a fresh machine (<= 12 minutes)

test-server: dev ## The server's half of it
	$(PYTEST) tests -m "$(NOT_HERE)" $(ARGS)

test-sdk: dev ## The other half: envai-client for Python
	$(PYTEST) sdk/python/tests $(ARGS)

test-clients: dev ## Real SDKs, each in an environment of its own
	$(BIN)/python -m pytest -q tests -m clients $(ARGS)

test-sdks: dev ## The SDKs of other languages, each with a toolchain it installs, and the cases that all SDKs share
	$(BIN)/python scripts/test_go.py $(ARGS)
	$(BIN)/python scripts/test_typescript.py

test-browser: dev ## The panel and the chat kit in real Chromium
	$(BIN)/python -m pytest -q tests -m browser $(ARGS)

test-model: dev ## The embedded model for real (fetches its weights)
	$(BIN)/crocevia model pull $(HOME_OPTION)
	$(BIN)/python -m pytest -q tests -m "model and not browser" $(ARGS)

torture: dev ## kill -9 at random moments, for a few minutes
	$(BIN)/python -m pytest -q tests -m torture $(ARGS)
	SDK_SCHEDULES=200 $(BIN)/python -m pytest -q sdk/python/tests/test_delivery_schedules.py $(ARGS)

long: dev ## By hand: what takes many minutes (300 kills over 60 turns, 2,000 random turns, …)
	$(BIN)/python -m pytest -q tests -m long $(ARGS)

check: dev ## Format, lint, types, imports, dependencies, shape
	$(BIN)/ruff format --check src tests bench examples sdk conformance
	$(BIN)/ruff check src tests bench examples sdk conformance
	$(BIN)/mypy
	cd sdk/python && $(abspath $(BIN))/mypy src
	$(BIN)/lint-imports --no-cache
	$(BIN)/deptry src
	cd sdk/python && $(abspath $(BIN))/deptry src
	$(BIN)/python -m pytest -q tests/test_shape.py

newer: dev ## Whether a newer version exists of what pyproject.toml caps
	@$(BIN)/python scripts/newer.py

format: dev ## Let ruff format and mend what it can
	$(BIN)/ruff check --fix src tests bench examples sdk conformance
	$(BIN)/ruff format src tests bench examples sdk conformance

bench: dev ## CPU per request and per token beside nginx; the event log beside its bars
	$(BIN)/python -m bench
	$(BIN)/python -m bench.log

clean: ## Remove .venv and caches (never a home)
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
