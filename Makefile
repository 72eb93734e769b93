# make run    a first look: sets up, loads the bundled data, searches it
# make test   everything that is checked: lint, types, imports, tests
# Python 3.11 or newer and make are all that is needed; PYTHON=... names another interpreter.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
PIP_FLAGS := --quiet --disable-pip-version-check
STORE := .run/xquad.colmem
# Of the yardstick: most minutes a contender may take, and options such as --only colmem sqlite.
MINUTES ?= 60
PEERS ?=

.PHONY: run test lint format types imports pytest test-slow test-paths test-browser bench bench-compare bench-save yardstick docs site hotmem chromium clean help

help:
	@echo "make run | test | test-slow | test-paths | test-browser | lint | types | imports | pytest | bench | bench-compare | bench-save |" \
		"yardstick | docs | site | format | clean"

run: $(VENV)/.installed
	@$(BIN)/python data/tour.py $(STORE)

test: lint types imports pytest

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

imports: $(VENV)/.installed-dev
	$(BIN)/lint-imports --no-logo

pytest: $(VENV)/.installed-dev hotmem
	$(BIN)/pytest -q -n 2 --dist loadfile -m "not slow" -W error --ignore=tests/explorer

test-slow: $(VENV)/.installed-dev hotmem
	$(BIN)/pytest -q -m slow -W error --ignore=tests/explorer

# Correctness with every search exact, and with every fast path taken, on 1 and on 4 threads.
test-paths: $(VENV)/.installed-dev hotmem
	for paths in exact-1 exact-4 fast-1 fast-4; do COLMEM_TEST_PATHS=$$paths \
	$(BIN)/pytest -q -n 2 --dist loadfile -m "not slow" -W error \
	tests/property tests/crash tests/contract tests/engine tests/cases || exit 1; done

# The web explorer in a real browser; CHROMIUM=/path/to/it names another one.
test-browser: chromium
	@$(BIN)/python -m pip install $(PIP_FLAGS) --editable '.[browser]'
	$(BIN)/pytest -q -W error tests/explorer

bench: $(VENV)/.installed-dev

# Every kernel and operation beside the saved figures; bench-save makes those anew.
bench-compare: $(VENV)/.installed-dev
	$(BIN)/python bench/compare.py $(SUITES)

bench-save: $(VENV)/.installed-dev
	$(BIN)/python bench/compare.py --save $(SUITES)

# The whole yardstick: the machine, every contender at both sizes, growth, and the report. Hours, on
# a machine that does nothing else; what was measured already is left out when it is run again.
yardstick: $(VENV)/.installed-dev
	for n in 100000 1000000; do \
		$(BIN)/python bench/limits.py --items $$n && \
		$(BIN)/python bench/peers.py --items $$n --minutes $(MINUTES) $(PEERS) || exit 1; \
	done
	test -f bench/results/growth.jsonl || \
		$(BIN)/python bench/peers.py --growth 1000000 2000000 5000000 10000000
	$(BIN)/python bench/report.py

docs: $(VENV)/.installed-dev
	$(BIN)/python docs/make_cli.py
	$(BIN)/python docs/fill_sessions.py

# The documentation site, in .run/site.
site: $(VENV)/.installed-dev
	$(BIN)/python docs/make_pages.py
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --config-file docs/mkdocs.yml
	@echo "the site is in .run/site"

# HotMem, the peer that snapshots are exchanged with, in an environment of its own.
hotmem: $(VENV)/.installed-dev
	@$(BIN)/python bench/peer_env.py >/dev/null

# The browser that the explorer's tests drive; Debian's is installed when there is none.
chromium: $(VENV)/.installed-dev
	@$(BIN)/python tests/explorer/chromium.py

clean:
	rm -rf $(VENV) .run .mypy_cache .ruff_cache .pytest_cache .hypothesis \
		.benchmarks .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; install it, or name one with" \
		"make PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	@echo "installing colmem and what it needs into $(VENV)"
	@$(BIN)/python -m pip install $(PIP_FLAGS) --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	@echo "installing colmem and the tools for its tests into $(VENV)"
	@$(BIN)/python -m pip install $(PIP_FLAGS) --editable '.[dev]'
	@touch $@ $(VENV)/.installed
