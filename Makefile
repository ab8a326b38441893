# Every command that a developer needs. `make` alone lists them.
#
# Everything happens in .venv, made with the first Python 3.11 or newer that is found; PYTHON=... names another.
# Stamp files inside .venv remember what is installed, so a second run installs nothing.

VENV := .venv
PY := $(VENV)/bin/python
PEERS := .venv-bench
PIP := $(PY) -m pip --disable-pip-version-check --no-input install -qq
# The whole suite runs in one process a core; a narrowed one in this process alone, so that --pdb and -s work.
SPREAD := $(if $(PYTEST),,-n auto --maxprocesses 8 --dist worksteal)
CHECKED := src tests $(wildcard examples bench spec) docs/conf.py docs/draw.py

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test check format example example-payments browser mutants model simulate simulate-long bench docs clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(VENV)/.base ## install the base package and play the founding example: a late worker changes nothing
	$(VENV)/bin/tenure demo

test: $(VENV)/.dev $(VENV)/.mariadb ## run every test; PYTEST="-k claim" narrows them
	$(PY) -m pytest $(SPREAD) $(PYTEST)

check: $(VENV)/.docs ## lint, format, types, import layers, documentation
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy $(CHECKED)
	$(VENV)/bin/lint-imports
	$(MAKE) --no-print-directory docs

format: $(VENV)/.dev ## repair what ruff can repair
	$(VENV)/bin/ruff check --fix
	$(VENV)/bin/ruff format

example: $(VENV)/.dev ## run the example program, on SQLite and on PostgreSQL
	$(PY) examples/stdlib_index/run.py --store sqlite
	$(PY) examples/stdlib_index/run.py --store postgres

example-payments: $(VENV)/.dev ## have 500 invoices paid under attack, with the fence and without
	$(PY) examples/payments/run.py
	$(PY) examples/payments/run.py --no-fence

browser: $(VENV)/.dev ## open reports of `tenure prove` in a headless browser; needs Chromium
	$(PY) -m tests.browser

mutants: $(VENV)/.dev $(VENV)/.mariadb ## break each guard in turn and see that a test notices
	$(PY) -m tests.mutants
	$(PY) -m tests.mutants.simulation

model: $(VENV)/.dev ## check the formal model, each guard on and off; needs Java
	$(PY) -m spec.run

simulate: $(VENV)/.dev ## play histories in virtual time for a minute, and search two workers exhaustively
	$(PY) -m tenure.testing.simulation
	$(PY) -m tenure.testing.simulation --exhaustive --deviations 1

simulate-long: $(VENV)/.dev ## the same for much longer, on both stores
	$(PY) -m tenure.testing.simulation --seconds 1800 --seed $$(date +%s)
	$(PY) -m tenure.testing.simulation --seconds 600 --seed $$(date +%s) --store sqlite
	$(PY) -m tenure.testing.simulation --exhaustive

bench: $(PEERS)/.ready ## measure Tenure beside its peers and the limits of this machine; QUICK=1 takes minutes
	$(PEERS)/bin/python -m bench.run $(if $(QUICK),--quick)

docs: $(VENV)/.docs ## build the documentation into docs/_build/html; a warning is an error
	$(PY) -m sphinx --fail-on-warning --keep-going --quiet --fresh-env docs docs/_build/html

clean: ## remove .venv, caches and whatever was built
	rm -rf $(VENV) $(PEERS) build dist docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find $(wildcard src tests examples bench docs) -name __pycache__ -type d -prune -exec rm -rf {} +

# -- the environment

$(VENV)/.base: requirements/runtime.txt pyproject.toml | $(VENV)/bin/python
	@echo "installing the base package"
	@$(PIP) -r requirements/runtime.txt -e .
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.base
	@echo "installing the development tools"
	@$(PIP) -r requirements/dev.txt
	@touch $@

$(VENV)/.docs: requirements/docs.txt $(VENV)/.dev
	@echo "installing the documentation's generator"
	@$(PIP) -r requirements/docs.txt
	@touch $@

# Of its own, since no peer is needed for anything else.
$(PEERS)/.ready: requirements/bench.txt requirements/runtime.txt pyproject.toml | $(VENV)/bin/python
	@echo "installing the peers"
	@rm -rf $(PEERS) && $(PY) -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip --disable-pip-version-check --no-input install -qq -r requirements/bench.txt -e .
	@touch $@

# Looks for a Python that is new enough and can make an environment with pip in it; says which of the two is missing.
$(VENV)/bin/python:
	@without_pip=; \
	for python in $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11); do \
	  "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
	  if "$$python" -c 'import ensurepip, venv' 2>/dev/null; then \
	    echo "making $(VENV) with $$("$$python" --version)"; \
	    rm -rf $(VENV); \
	    "$$python" -m venv $(VENV) && exit 0; \
	    rm -rf $(VENV); exit 1; \
	  fi; \
	  without_pip="$${without_pip:-$$python}"; \
	done; \
	if [ -n "$$without_pip" ]; then \
	  echo "$$without_pip cannot make an environment: its venv or ensurepip module is missing." >&2; \
	  echo "On Debian or Ubuntu: apt-get install $${without_pip##*/}-venv" >&2; \
	else \
	  echo "Tenure needs Python 3.11 or newer; looked for: $(or $(PYTHON),python3 and python3.14 to python3.11)." >&2; \
	  echo "Name another with: make PYTHON=/path/to/python" >&2; \
	fi; \
	exit 1

# The system's MariaDB, or Debian's packages unpacked into the environment; without one its tests say what is missing.
$(VENV)/.mariadb: $(VENV)/.dev
	@$(PY) -m tenure.testing.mariadb && touch $@ || echo "going on without MariaDB: its tests will fail" >&2
