PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
comma := ,
OLDEST := $(addprefix tests/,test_common.py test_workflow.py sequences \
  fitting/test_transformer.py features neighbors cluster \
  $(addprefix plot/test_,curves.py map.py matrix.py registration.py))

.PHONY: demo test faults boundscheck sanitize oldest exchange lint docs linkcheck bench paper clean

# What builds the package stays installed, so that an edited kernel is compiled again at
# the next import.
define install
test -x $(1)/bin/python || $(PYTHON) -m venv $(1)
$(1)/bin/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['build-system']['requires'], 'ninja', 'pip>=25.1', sep='\n')" \
  | xargs $(1)/bin/python -m pip install --quiet --disable-pip-version-check
PATH="$(abspath $(1)/bin):$$PATH" $(1)/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation $(2)
endef

# A stamp names the extras, or the dependency group, that are installed; it is made anew
# when the dependencies change.
$(VENV)/.installed-%: pyproject.toml
	$(call install,$(VENV),-e ".[$*]")
	touch $@

$(VENV)/.group-%: pyproject.toml
	$(call install,$(VENV),-e . --group $*)
	touch $@

demo: $(VENV)/.installed-plot
	$(BIN)/python examples/demo.py

# The import compiles what has changed, so that pytest's workers do not do it all at once.
test: $(VENV)/.group-dev lint
	$(BIN)/python -c "import skawhmm"
	$(BIN)/python -m pytest -n auto

# What takes long to break: interruptions, damaged files, workers that die.
faults: $(VENV)/.group-dev
	$(BIN)/python -c "import skawhmm"
	$(BIN)/python -m pytest -m faults

# The kernels with every index of an array checked, in a place of their own.
boundscheck:
	$(call install,$(VENV)-boundscheck,-C setup-args=-Dboundscheck=true -C build-dir=build/boundscheck -e . --group test)
	$(VENV)-boundscheck/bin/python -m pytest -n auto

# The kernels with every access to memory checked, and every operation that C leaves
# undefined. Python itself is not compiled so: the checker is loaded before it, and its
# own leaks do not count. The browser does not start under it, and it asks for more
# addresses than a limit of memory leaves.
sanitize:
	$(call install,$(VENV)-sanitize,-C setup-args=-Db_sanitize=address$(comma)undefined -C setup-args=-Dbuildtype=debugoptimized -C build-dir=build/sanitize -e . --group test)
	LD_PRELOAD="$$(cc -print-file-name=libasan.so) $$(cc -print-file-name=libstdc++.so.6)" \
	  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	  $(VENV)-sanitize/bin/python -m pytest -n auto --ignore tests/plot/test_explorer.py --ignore tests/test_memory_limit.py

# The estimators with the oldest scikit-learn that is supported, in a place of its own.
oldest:
	$(call install,$(VENV)-oldest,-C build-dir=build/oldest -e . --group test "scikit-learn==1.6.*")
	$(VENV)-oldest/bin/python -m pytest -n auto $(OLDEST)

# Models fitted by other libraries, in a place of their own. torch comes first, in a
# build for CPUs: alone, pomegranate brings one of many gigabytes.
TORCH ?= torch==2.13.0
exchange:
	$(call install,$(VENV)-exchange,"$(TORCH)")
	$(call install,$(VENV)-exchange,-C build-dir=build/exchange -e . --group exchange)
	$(VENV)-exchange/bin/python -m pytest tests/exchange

lint: $(VENV)/.group-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: $(VENV)/.group-docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

# Links within the pages are checked by the build, and by the tests; these lead outside.
linkcheck: $(VENV)/.group-docs
	if $(BIN)/python -c "import urllib.request as r; r.urlopen('https://www.python.org', timeout=20)" 2> /dev/null; then \
	  $(BIN)/python -m sphinx -D plot_gallery=False -b linkcheck docs docs/_build/linkcheck; \
	else echo "no network: links that lead outside were not checked"; fi

bench: $(VENV)/.group-bench
	for script in benchmarks/bench_*.py; do $(BIN)/python $$script || exit 1; done

paper: $(VENV)/.installed-plot
	$(BIN)/python examples/paper/report.py --quick --out paper_output

clean:
	rm -rf $(VENV) $(VENV)-oldest $(VENV)-exchange $(VENV)-boundscheck $(VENV)-sanitize docs/_build build *.egg-info
