# Two promises: `make demo` and `make test` work on a fresh Debian machine with Python 3.11 and nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: install demo test lint types campaign clean

install: $(STAMP)

# torch comes first and pinned: asked for loosely it is a build of several gigabytes that nothing here needs.
$(STAMP): pyproject.toml constraints.txt scripts/system-packages
	bash scripts/system-packages
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch==2.13.0 numpy
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	$(BIN)/robustjudge models pull smollm2
	$(BIN)/robustjudge models pull minilm
	touch $(STAMP)

demo: install
	$(BIN)/robustjudge demo

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: install
	$(BIN)/mypy src

test: lint types
	ROBUSTJUDGE_MINILM=$$($(BIN)/python -c "from robustjudge.models.pull import model_path; print(model_path('minilm'))") \
	$(BIN)/python -m pytest -m "not campaign" -n 2 --dist loadgroup

# What is too long for CI: large simulations, fault and fuzz runs, the 135M white-box plan. docs/reference/campaign.md
# holds command, date and output of the last one.
campaign: install
	$(BIN)/python -m pytest -m campaign -s --timeout 3600

clean:
	rm -rf $(VENV) build dist
