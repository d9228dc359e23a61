# make demo   jostle at work on simulated GPUs, until Ctrl-C  make test    sets up and passes the tests
# make bench  figures beside floors and peers               make torture N=1000   kill -9 the engine N times
# make soak SECONDS=600  150 streams while the console is killed, hung, flooded
# make seeded  breaks each promise on purpose and asks its tests     make web     builds the console's page (needs Node 20.19 or newer)
# make torchrun   the tests of elastic PyTorch, also with torch itself, which it installs (0.9 GB, without CUDA; else far more)
# make screenshots   takes the pictures of the console into docs/img/ (needs chromium)
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
N      ?= 60
SECONDS ?= 600
TORCH  ?= torch>=2.6,<3

# The tests start jostle a thousand times; without bytecode on the disk each start would compile it anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint types unit torture torture-resizes torchrun soak seeded bench web screenshots clean

demo: $(VENV)/run
	@$(BIN)/jostle demo

test: $(VENV)/test
	@$(BIN)/python tests/parts.py

lint: $(VENV)/test
	@$(BIN)/ruff check . && $(BIN)/mypy

unit: $(VENV)/test
	@$(BIN)/python -m pytest tests

torture: $(VENV)/test
	@$(BIN)/python tests/torture/run.py --kills $(N)

torture-resizes: $(VENV)/test
	@$(BIN)/python tests/torture/elastic.py --kills $(N)

torchrun: $(VENV)/torch
	@$(BIN)/python -m pytest -rs tests/e2e/test_torchrun.py

soak: $(VENV)/test
	@$(BIN)/python -m tests.web.soak --seconds $(SECONDS)

seeded: $(VENV)/test
	@$(BIN)/python tests/planted/plant.py

bench: $(VENV)/test
	@$(BIN)/python bench/run.py

web: web/node_modules/.package-lock.json
	@cd web && npm run --silent check && npm run --silent build

screenshots: $(VENV)/test
	@$(BIN)/python tests/browser/pictures.py $(NAMES)

web/node_modules/.package-lock.json: web/package-lock.json
	@cd web && npm install --no-save --no-progress --loglevel=error && touch node_modules/.package-lock.json  # not ci: it refuses a lock file without the binaries of other systems

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "jostle needs Python 3.10 or newer; set PYTHON=…"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "venv does not work here: on Debian and Ubuntu install python3-venv (apt install python3-venv)"; exit 1; }

$(VENV)/run: $(VENV)/bin/python pyproject.toml
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[web]'
	@touch $@

$(VENV)/test: $(VENV)/bin/python pyproject.toml
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -e '.[test]'  # most of it is never imported
	@touch $@ $(VENV)/run

$(VENV)/torch: $(VENV)/test
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(TORCH)'  # PIP_INDEX_URL can name an index that has one for CPUs only
	@touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
