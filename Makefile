# Two commands do everything on a fresh machine: `make demo` and `make test`. Both create their own virtual environment.
# Needed: Python 3.11 or newer, make and a package index; for the -kube targets also Go.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Two workers: the suite is made for two cores.
WORKERS ?= 2
ARGS ?=

.PHONY: setup demo check test test-kube bench wheel clean

setup: $(READY)

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $(READY)

demo: $(READY)
	$(BIN)/fairlead demo $(ARGS)

# Lint, types, import contracts and unit tests: before every commit.
check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest tests/architecture tests/unit -n $(WORKERS)

# All that needs no cluster.
test: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n $(WORKERS) -m "not kube" $(ARGS)

# Against the real kube-apiserver, etcd, kube-scheduler and kubectl, built once into a cache directory.
test-kube: $(READY)
	FAIRLEAD_REAL=$$(tools/real/build.sh) $(BIN)/pytest -m kube $(ARGS)

bench: $(READY)
	$(BIN)/python -m benchmarks $(ARGS)

# The wheel, installed in an empty environment, runs the demo.
wheel: $(READY)
	rm -rf build/wheel && mkdir -p build/wheel
	$(BIN)/python -m build --quiet --wheel --outdir build/wheel .
	$(PYTHON) -m venv build/wheel/venv
	build/wheel/venv/bin/python -m pip install --quiet build/wheel/*.whl
	cd build/wheel && venv/bin/fairlead demo

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
