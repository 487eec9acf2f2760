PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
OLDEST := $(addprefix tests/,test_common.py test_workflow.py sequences \
  fitting/test_transformer.py features neighbors cluster plot/test_displays.py)

MESON := $(wildcard meson.build meson.options skawhmm/meson.build skawhmm/*/meson.build)
# What builds the package: an editable install needs it again whenever a kernel changes.
REQUIRES = import tomllib as t; print(*t.load(open("pyproject.toml", "rb"))["build-system"]["requires"])
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check

export PATH := $(abspath $(BIN)):$(PATH)

.PHONY: demo test suite oldest boundscheck lint docs linkcheck bench paper clean

# Each stamp names the extras it holds; it is made anew when the dependencies or the list
# of kernels change. An environment has a build of its own. PINS and SETUP are for targets
# that call make with another VENV.
$(VENV)/.installed-%: pyproject.toml $(MESON)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) $$($(BIN)/python -c '$(REQUIRES)') ninja
	CYTHON=$(abspath $(BIN)/cython) $(PIP) --no-build-isolation -Cbuild-dir=build/$(notdir $(VENV)) $(SETUP) -e ".[$*]" $(PINS)
	touch $@

demo: $(VENV)/.installed-plot
	$(BIN)/python examples/demo.py

test: lint suite

# The import rebuilds what has changed, so that pytest's workers do not do it all at once.
suite: $(VENV)/.installed-test
	$(BIN)/python -c "import skawhmm"
	$(BIN)/python -m pytest -n auto $(TESTS)

# The estimators with the oldest scikit-learn that is supported.
oldest:
	$(MAKE) suite VENV=$(VENV)-oldest PINS="scikit-learn==1.6.*" TESTS="$(OLDEST)"

# All tests with kernels that check every index of an array.
boundscheck:
	$(MAKE) suite VENV=$(VENV)-boundscheck SETUP=-Csetup-args=-Dboundscheck=true

lint: $(VENV)/.installed-test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

# Links within the pages are checked by the build, and by the tests; these lead outside.
linkcheck: $(VENV)/.installed-docs
	if $(BIN)/python -c "import urllib.request as r; r.urlopen('https://www.python.org', timeout=20)" 2> /dev/null; then \
	  $(BIN)/python -m sphinx -D plot_gallery=False -b linkcheck docs docs/_build/linkcheck; \
	else echo "no network: links that lead outside were not checked"; fi

bench: $(VENV)/.installed-test
	for script in benchmarks/bench_*.py; do $(BIN)/python $$script || exit 1; done

paper: $(VENV)/.installed-plot
	$(BIN)/python examples/paper/report.py --quick --out paper_output

clean:
	rm -rf $(VENV) $(VENV)-oldest $(VENV)-boundscheck docs/_build build *.egg-info
