PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
EXTRAS ?= test

.PHONY: demo test lint docs bench paper clean

# Each stamp names the extras it holds; it is made anew when the dependencies change.
$(VENV)/.installed-%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[$*]"
	touch $@

demo: $(VENV)/.installed-plot
	$(BIN)/python examples/demo.py

test: $(VENV)/.installed-test lint
	$(BIN)/python -m pytest -n auto

lint: $(VENV)/.installed-test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

bench: $(VENV)/.installed-test
	for script in benchmarks/bench_*.py; do $(BIN)/python $$script || exit 1; done

paper: $(VENV)/.installed-plot
	$(BIN)/python examples/paper/report.py --quick --out paper_output

clean:
	rm -rf $(VENV) docs/_build build *.egg-info
