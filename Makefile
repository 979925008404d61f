# Two commands do everything on a fresh Debian or Ubuntu with python3 (3.11 or newer), python3-venv and make:
#   make rehearse    the console on a fleet that this machine plays
#   make test        the tests
# `make` alone lists the rest. ARGS is passed on: make rehearse ARGS="--list", make test ARGS="-k memory".

PYTHON ?= python3
VENV ?= .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip install --quiet --quiet --disable-pip-version-check --constraint constraints.txt
NEEDS_311 := import sys; sys.exit("laneswap needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)
# Six processes for two processors and more: much of the time is waiting for hosts, terminals and clocks that are played.
UNIT = $(PY) -m pytest -n 6 --dist loadfile $(ARGS)
# Three processes, each with hosts of its own: most of the time is waiting. Code that many commands load is compiled once.
# Where nothing else is named, what runs on real hosts lies in one folder: the other nine thousand need not be gathered.
BED = $(PY) -m pytest -o testpaths=tests/fleet -m bed --bed -n 3 --dist worksteal $(ARGS)
COMPILED = $(PY) -m compileall -q console widgets screens
FLEET := cd tests/fleet && PYTHONDONTWRITEBYTECODE=1 $(PYTHON) -m bed

.DEFAULT_GOAL := help
.PHONY: help rehearse test bed soak guards bench picture look lint types contracts pins clean clean-bed

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | awk -F '\t' '{ printf "  make %-10s %s\n", $$1, $$2 }'

rehearse: $(VENV)/.user ## the console on the embedded fleet; ARGS="--headless --seconds 20 --json" without a screen
	@$(PY) -m console rehearse $(ARGS)

test: $(VENV)/.dev ## all tests that need no root; says what it leaves out. With CI=true also those on real hosts
	@$(COMPILED)
	@failed=0; $(UNIT) || failed=1; \
	if [ "$$CI" = true ]; then $(BED) || failed=1; fi; exit $$failed

bed: ## the tests on real systemd hosts with OpenSSH and Docker (root on Debian or Ubuntu; installs five packages)
	@$(FLEET) install
	@$(FLEET) base
	@$(MAKE) --silent --no-print-directory $(VENV)/.dev
	@$(COMPILED)
	@$(BED)

soak: $(VENV)/.dev ## the tests that are slow by nature; with root also those on real hosts
	@$(PY) -m pytest -m soak --soak $(if $(filter 0,$(shell id -u)),--bed) $(ARGS)

guards: $(VENV)/.dev ## takes each guard of the act side away and sees a test fail; ARGS="--bed" those of real hosts (root)
	@cd tests && PYTHONDONTWRITEBYTECODE=1 $(abspath $(PY)) -m guards $(ARGS)

bench: $(VENV)/.dev ## measures the budgets and prints one table
	@$(PY) -m bench $(ARGS)

picture: $(VENV)/.dev ## draws the picture of the README from the real console
	@$(PY) bench/picture.py $(ARGS)

look: $(VENV)/.dev ## draws every scenario at three sizes in every theme into look/ (half an hour; ARGS="--scenario spark4")
	@$(PY) bench/look.py $(ARGS)

lint: $(VENV)/.dev ## ruff: rules and format
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .

types: $(VENV)/.dev ## mypy, strict
	@$(PY) -m mypy
	@cd tests/fleet && $(abspath $(PY)) -m mypy --strict --python-version 3.11 bed/*.py

contracts: $(VENV)/.dev ## who may import whom
	@$(VENV)/bin/lint-imports

# The stamps say that the environment has what pyproject.toml asks for; nothing is installed twice.
$(VENV)/.user: pyproject.toml constraints.txt | $(VENV)/.made
	@echo "laneswap: installing the libraries into $(VENV) (once, under a minute)"
	@$(PIP) --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/.made
	@echo "laneswap: installing the libraries and the test tools into $(VENV) (once, about a minute)"
	@$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/.user

$(VENV)/.made:
	@$(PYTHON) -c '$(NEEDS_311)'
	@$(PYTHON) -m venv $(VENV)
	@touch $@

pins: $(VENV)/.dev ## writes constraints.txt from what is installed now
	@head -1 constraints.txt > constraints.new
	@$(PY) -m pip freeze --exclude-editable --exclude pip --exclude setuptools >> constraints.new
	@mv constraints.new constraints.txt

clean: ## removes the environment and all caches
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

clean-bed: ## removes the root file system of the real hosts (root)
	@$(FLEET) clean
