# Two commands do everything on a fresh machine: `make demo` and `make test`. Both create their own virtual environment.
# Needed: Python 3.11 or newer, make and a package index; for the -kube targets also Go.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SITE_READY := $(VENV)/.site-ready
# Two workers: the suite is made for two cores.
WORKERS ?= 2
ARGS ?=

.PHONY: test-matrix release deploy fuzz soak setup demo docs check test test-kube bench bench-kube bench-kube-jobs wheel clean

setup: $(READY)

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $(READY)

demo: $(READY)
	$(BIN)/fairlead demo $(ARGS)

# The tables of the parity documents, from the fields of Quirks; then the documentation as a site, in build/site. A
# warning, such as a link or an anchor that leads nowhere, fails.
docs: $(SITE_READY)
	$(BIN)/python tools/docs/parity_tables.py
	$(BIN)/mkdocs build --strict

$(SITE_READY): $(READY)
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $(SITE_READY)

# Lint, types, import contracts and unit tests: before every commit.
check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest tests/architecture tests/unit -n $(WORKERS)

# All that needs no cluster, but for what takes long: about five minutes on two cores.
test: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n $(WORKERS) -m "not kube and not long" $(ARGS)

# Against the real kube-apiserver, etcd, kube-scheduler and kubectl, built once into a cache directory; and what takes long.
test-kube: $(READY)
	tools/real/mpi.sh
	FAIRLEAD_REAL=$$(tools/real/build.sh) $(BIN)/pytest -m "kube or long" $(ARGS)

# The same small cluster on every version of Kubernetes in tools/real/matrix; each is built once, in some ten minutes.
# `make test-matrix VERSIONS='1.37'` chooses. Not part of what runs on every change.
VERSIONS ?=
test-matrix: $(READY)
	tools/real/matrix.sh $(VERSIONS)

# A release: version, changelog, sdist and wheel in dist/, each installed in an empty environment and used there.
# Without VERSION what is there is built and checked; with one the manifests are made anew, which needs Helm.
VERSION ?=
release: $(READY)
	FAIRLEAD_REAL=$(if $(VERSION),$$(tools/real/build.sh helm)) $(BIN)/python tools/release/release.py $(or $(VERSION),--check)

# The chart's roles, and from the chart the kustomize base and the one file. Needs Helm.
deploy: $(READY)
	FAIRLEAD_REAL=$$(tools/real/build.sh helm) $(BIN)/python tools/deploy/generate.py

# Fresh random clusters through the real kube-scheduler and then through ours: `make fuzz N=300`, `make fuzz SEED=7`.
N ?= 100
SEED ?=
fuzz: $(READY)
	FAIRLEAD_REAL=$$(tools/real/build.sh) FAIRLEAD_FUZZ=$(N) FAIRLEAD_FUZZ_SEED=$(SEED) $(BIN)/pytest -m kube tests/kube/fuzz $(ARGS)

# Faults, overload and restarts on the real API server, then pods that come and go for as long as is wanted: `make soak
# MINUTES=60`, and the same with kube-scheduler: `make soak ARGS='--scheduler kube'`; `--only cuts,lost` chooses.
MINUTES ?= 30
soak: $(READY)
	FAIRLEAD_KILLS=1000 $(BIN)/pytest tests/e2e/test_journal_kill.py tests/scenario/test_volcano_jobs_killed.py
	FAIRLEAD_JOBS=2000 $(BIN)/pytest tests/property/test_volcano_job_lives.py
	FAIRLEAD_REAL=$$(tools/real/build.sh) $(BIN)/python -m soak --minutes $(MINUTES) $(ARGS)

# Compiled first, as an installed package is: how soon `fairlead up` is ready depends on it.
bench: $(READY)
	$(BIN)/python -m compileall -q src benchmarks
	$(BIN)/python -m benchmarks $(ARGS)

# fairlead against the real kube-scheduler on the real API server.
bench-kube: $(READY)
	FAIRLEAD_REAL=$$(tools/real/build.sh) $(BIN)/python -m benchmarks.kube $(ARGS)

# API writes for Volcano Jobs, of Volcano's controllers and scheduler and of ours: `make bench-kube-jobs ARGS='--pods 100'`.
bench-kube-jobs: $(READY)
	FAIRLEAD_REAL=$$(tools/real/build.sh) $(BIN)/python -m benchmarks.kube_jobs $(ARGS)

# The wheel, installed in an empty environment, runs the demo.
wheel: $(READY)
	rm -rf build/wheel && mkdir -p build/wheel
	$(BIN)/python -m build --quiet --wheel --outdir build/wheel .
	$(PYTHON) -m venv build/wheel/venv
	build/wheel/venv/bin/python -m pip install --quiet build/wheel/*.whl
	cd build/wheel && venv/bin/fairlead demo

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
