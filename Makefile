# Every target sets itself up from a clean clone. It needs Python 3.11+, pip and make.
PYTHON ?= python3
VENV ?= .venv
BENCH_VENV ?= .venv-bench
LOCK_VENV ?= .venv-lock
WORKERS ?= 2
ARGS ?=

PIP = -m pip -qq --disable-pip-version-check --no-input install
UV = $(LOCK_VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --custom-compile-command "make lock"
READY = $(VENV)/.ready
BENCH_READY = $(BENCH_VENV)/.ready

# The environment a lock describes, with this project in it in editable form.
# The build backend comes from the lock too: nothing is fetched that has no hash.
define set-up
@$(PYTHON) dev/can_make_venv.py
@echo "setting up $(1)"
@$(PYTHON) -m venv $(1)
@$(1)/bin/python $(PIP) --require-hashes -r $(2)
@$(1)/bin/python $(PIP) --no-deps --no-build-isolation --editable .
@touch $@
endef

.DEFAULT_GOAL := help
.PHONY: help demo test check format torture bench lock clean
.DELETE_ON_ERROR:

help: ## list these targets
	@sed -n 's/^\([a-z]*\):[^#]*## /\1|/p' Makefile | awk -F'|' '{ printf "make %-9s %s\n", $$1, $$2 }'

demo: $(READY) ## see it work, in a minute, offline
	@$(VENV)/bin/python -m rekindle.demo $(ARGS)

test: $(READY) ## run the tests (ARGS="-k fork" picks some)
	@$(VENV)/bin/python -m pytest -q -n $(WORKERS) --dist worksteal $(ARGS)

check: $(READY) ## formatting, lint, types, layers and docs
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/python -m pytest -q tests/test_layers.py tests/test_links.py tests/test_docs.py

format: $(READY) ## format, and mend what lint can mend
	@$(VENV)/bin/ruff check --fix-only --quiet .
	@$(VENV)/bin/ruff format .

torture: $(READY) ## all tests in long doses: crashes, full disks, many processes
	@REKINDLE_TORTURE=1 $(VENV)/bin/python -m pytest -q -m "torture or not torture" $(ARGS)

bench: $(BENCH_READY) ## measure this and its peers side by side
	@$(BENCH_VENV)/bin/python -m bench $(ARGS)

lock: ## write dev/*.txt anew from dev/*.in
	@$(PYTHON) dev/can_make_venv.py
	@$(PYTHON) -m venv $(LOCK_VENV)
	@$(LOCK_VENV)/bin/python $(PIP) uv
	@$(UV) dev/requirements.in -o dev/requirements.txt
	@$(UV) --constraints dev/requirements.txt dev/bench.in -o dev/bench.txt

clean: ## remove what the other targets and runs in this folder made
	@rm -rf .venv .venv-* build dist bench/out .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage htmlcov
	@rm -rf .rekindle checkpoints checkpoints.db checkpoints.db-* memories runtime projects
	@find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

$(READY): dev/requirements.txt pyproject.toml
	$(call set-up,$(VENV),dev/requirements.txt)

$(BENCH_READY): dev/bench.txt pyproject.toml
	$(call set-up,$(BENCH_VENV),dev/bench.txt)
