# Every target does its own set-up: a fresh machine needs only Python 3.11 or newer, make and git.

PYTHON ?=
ARGS ?=
# Relative paths throughout, and no script with a path in its first line: this folder's own path
# may have spaces in it.
BIN := .venv/bin
PY := $(BIN)/python
MANAGE := $(PY) manage.py
PIP := $(PY) -m pip --disable-pip-version-check
UV := $(BIN)/uv
LOCK := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--custom-compile-command "make lock" pyproject.toml

.PHONY: help up test evidence check fmt drill drill-all matrix bench load lock clean check-style check-types check-layers \
	check-django check-templates check-api check-tools check-model
.DEFAULT_GOAL := help

help:
	@echo "make up      start everything and print the address (PORT=8001 chooses another port)"
	@echo "make test    run the tests (ARGS=\"tests/services -x\" chooses some)"
	@echo "make evidence  what is long by nature: the tests left out of make test, the whole matrix and"
	@echo "            a soak of 20 minutes; about an hour and a half"
	@echo "make check   format, lint, types, layers, migrations, templates, API description, tools,"
	@echo "            and the model of the protocol"
	@echo "make drill   stop a run at a chosen point and compare ledger and world (ARGS=\"--help\")"
	@echo "make drill-all  play every scenario: to its end and undone, and stopped"
	@echo "make matrix  stop runs at every boundary while something goes wrong; about 40 minutes"
	@echo "make bench   measure a durable call and Stop (ARGS=\"--quick\", ARGS=--json)"
	@echo "make load    press Stop while another account does its worst (ARGS=\"--stops 200\", ARGS=--json)"
	@echo "make fmt     format the code"
	@echo "make lock    write the lock files anew from pyproject.toml"
	@echo "make clean   remove the virtual environment and caches; data in .data stays"

up: .venv/run.stamp
	@exec $(MANAGE) up $(ARGS)

test: .venv/dev.stamp
	@.ci/browser
	@$(PY) -m pytest $(if $(ARGS),$(ARGS),--numprocesses 2 --dist loadfile --no-loadscope-reorder)

evidence: .venv/dev.stamp
	@.ci/browser
	@$(PY) -m pytest -m evidence
	@$(PY) -m tests.matrix
	@$(MANAGE) soak --minutes 20

drill: .venv/run.stamp
	@exec $(MANAGE) drill $(ARGS)

drill-all: .venv/run.stamp
	@exec $(MANAGE) drill_all $(ARGS)

matrix: .venv/dev.stamp
	@exec $(PY) -m tests.matrix $(ARGS)

bench: .venv-bench/stamp
	@exec .venv-bench/bin/python -m tests.bench $(ARGS)

load: .venv/dev.stamp
	@exec $(PY) -m tests.load $(ARGS)

# `make -k check` goes on after a failure and shows them all.
check: check-style check-types check-layers check-django check-templates check-api check-tools \
	check-model

check-style: .venv/dev.stamp
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .

check-types: .venv/dev.stamp
	$(PY) -m mypy

check-layers: .venv/dev.stamp
	$(PY) -c "from importlinter.cli import lint_imports_command as run; run()"

check-django: .venv/dev.stamp
	$(MANAGE) check
	$(PY) -m agentruns.services.with_postgres makemigrations --check --dry-run

check-templates: .venv/dev.stamp
	$(PY) -m djlint --quiet --lint templates

check-api: .venv/dev.stamp
	$(MANAGE) spectacular --validate --fail-on-warn --file .venv/openapi.yaml
	diff docs/openapi.yaml .venv/openapi.yaml

check-tools: .venv/dev.stamp
	$(PY) -m agentruns.services.with_postgres audit_tools

# Every order in which workers, people and time can act, in a small model of the protocol.
check-model: .venv/dev.stamp
	$(PY) -m tests.model $(ARGS)

fmt: .venv/dev.stamp
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

lock: $(UV)
	$(LOCK) --output-file requirements.lock
	$(LOCK) --group dev --constraint requirements.lock --output-file requirements-dev.lock
	$(LOCK) --group bench --constraint requirements.lock --output-file requirements-bench.lock

clean:
	rm -rf .venv .venv-bench .mypy_cache .ruff_cache .import_linter_cache .hypothesis build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- Set-up: once, and again when a lock file has changed ---------------------------------------

$(PY):
	@.ci/venv "$(PYTHON)"

.venv/run.stamp: requirements.lock | $(PY)
	@if [ ! -e .venv/dev.stamp ] || [ requirements.lock -nt .venv/dev.stamp ]; then \
		echo "Installing what agentruns needs (once, about a minute) …"; \
		$(PIP) install --quiet --require-hashes -r requirements.lock; \
	fi
	@touch $@

.venv/dev.stamp: requirements-dev.lock requirements.lock | $(PY)
	@echo "Installing what agentruns and its tests need (once, about a minute) …"
	@$(PIP) install --quiet --require-hashes -r requirements-dev.lock
	@touch $@

# Apart from the tests' environment: what the bench compares with brings plug-ins for pytest.
.venv-bench/stamp: requirements-bench.lock | $(PY)
	@echo "Installing what the bench needs (once, about a minute) …" >&2
	@$(PY) -m venv --clear .venv-bench
	@.venv-bench/bin/python -m pip --disable-pip-version-check install --quiet \
		--require-hashes -r requirements-bench.lock
	@touch $@

$(UV): | $(PY)
	@$(PIP) install --quiet uv
