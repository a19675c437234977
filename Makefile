# One command each. Every target installs what it needs.
PY ?= $(shell for v in 3.13 3.12; do p=$$(command -v python$$v) && $$p -c '' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
.DEFAULT_GOAL := help
.PHONY: help install check test lint types contracts

help: ## List the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

.venv/.installed: requirements/dev.txt
	@test -n "$(PY)" || { echo "No Python 3.13 or 3.12 found: install one (python.org, pyenv, apt) and run make again." >&2; exit 1; }
	$(PY) -m venv .venv
	@if command -v uv >/dev/null; then uv pip sync -q -p .venv --require-hashes requirements/dev.txt; \
	else $(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements/dev.txt; fi
	@touch $@

install: .venv/.installed ## Create .venv with everything pinned

lint: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: install
	$(BIN)/mypy

contracts: install
	PYTHONPATH=shared:. $(BIN)/lint-imports

check: lint types contracts ## Lint, types, import contracts

test: install ## All tests
	$(BIN)/pytest -n 2
