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
# Tests start hundreds of processes, and each worker imports all test modules: what is compiled is kept, whatever the
# environment says.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: requirements papers test-matrix release deploy fuzz soak setup demo docs pictures check test types suite test-kube bench bench-compare bench-kube bench-kube-jobs wheel clean

# `make setup LOCKED=1` installs what requirements/dev.txt names, each file by its hash, as CI does; without it the newest
# that pyproject.toml allows.
setup: $(READY)

# Resolve the requirements anew, for all versions of Python and both architectures. Needs uv.
requirements:
	uv pip compile --quiet pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -o requirements/run.txt
	uv pip compile --quiet pyproject.toml --extra dev --extra docs --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -o requirements/dev.txt

$(READY): pyproject.toml $(if $(LOCKED),requirements/dev.txt)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version.split()[0])'
	@echo 'Making a virtual environment in $(VENV)'
	$(PYTHON) -m venv $(VENV)
ifdef LOCKED
	@echo 'Installing what requirements/dev.txt names: about 150 packages, one to three minutes'
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
else
	@echo 'Updating pip in it'
	$(BIN)/python -m pip install --quiet --upgrade pip
	@echo 'Installing fairlead and what tests need: about 100 packages, one to three minutes'
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
endif
	touch $(READY)

demo: $(READY)
	$(BIN)/fairlead demo $(ARGS)

# The tables of the parity documents, from the fields of Quirks; the lists of modules in the heads of packages; then the
# documentation as a site, in build/site. A warning, such as a link or an anchor that leads nowhere, fails.
docs: $(SITE_READY)
	$(BIN)/python tools/docs/parity_tables.py
	$(BIN)/python tools/docs/gang_table.py
	$(BIN)/python tools/docs/reading_orders.py
	$(BIN)/mkdocs build --strict

# The pictures of README, drawn anew by the program.
pictures: $(READY)
	$(BIN)/python tools/docs/pictures.py

$(SITE_READY): $(READY)
ifndef LOCKED
	@echo 'Installing what builds the documentation into $(VENV): about half a minute'
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
endif
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
	$(MAKE) --no-print-directory --jobs 2 types suite

# mypy has one thread: beside the tests it costs no time of its own.
types: $(READY)
	$(BIN)/mypy
	$(BIN)/lint-imports

suite: $(READY)
	$(BIN)/pytest -n $(WORKERS) -m "not kube and not long" $(ARGS)

# Against the real kube-apiserver, etcd, kube-scheduler and kubectl, built once into a cache directory; and what takes long.
# Each worker has control planes of its own and is dealt one module after the other, those that take longest first.
# `make test-kube INSTALL=1` may install the system packages that are missing.
INSTALL ?=
test-kube: $(READY)
	INSTALL=$(INSTALL) tools/real/packages.sh
	FAIRLEAD_REAL=$$(tools/real/build.sh) $(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "kube or long" $(ARGS)

# The same small cluster on every version of Kubernetes in tools/real/matrix; each is built once, in some ten minutes.
# `make test-matrix VERSIONS='1.37'` chooses. Not part of what runs on every change.
VERSIONS ?=
test-matrix: $(READY)
	tools/real/matrix.sh $(VERSIONS)

# A release: version, changelog, sdist and wheel in dist/, each installed in an empty environment and used there.
# Without VERSION what is there is built and checked; with one the manifests are made anew, which needs Helm, and the
# image's base is named by digest: `make release VERSION=0.2.0 BASE_IMAGE=python:3.13-slim@sha256:...`.
VERSION ?=
BASE_IMAGE ?=
release: $(READY)
	FAIRLEAD_REAL=$(if $(VERSION),$$(tools/real/build.sh helm)) $(BIN)/python tools/release/release.py $(if $(VERSION),$(VERSION) --base '$(BASE_IMAGE)',--check)

# The chart's roles, and from the chart the kustomize base and the one file. Needs Helm.
deploy: $(READY)
	FAIRLEAD_REAL=$$(tools/real/build.sh helm) $(BIN)/python tools/deploy/generate.py

# Fresh random clusters through the real kube-scheduler and then through ours: `make fuzz N=300`, `make fuzz SEED=7`.
# `make fuzz WHAT=gangs` and `WHAT=claims` play only those worlds. `WHAT=jobs` plays stories of Volcano Jobs through
# Volcano's controllers and scheduler, `WHAT=koordinator` clusters through koord-scheduler.
# Requests drawn by OpenAPI to our API server, of which none may get a 500: `make fuzz WHAT=requests N=200000`.
# Answers that are done as they are printed, on forty random clusters: `make fuzz WHAT=answers`, `N=300 SEED=7` for others.
# Trees of queues with gangs that must not stand still: `make fuzz WHAT=queues`, five hundred unless N says otherwise.
N ?= 100
SEED ?=
WHAT ?= decisions
FUZZ_decisions := test_fuzz.py test_gang_fuzz.py test_claim_fuzz.py
FUZZ_gangs := test_gang_fuzz.py
FUZZ_claims := test_claim_fuzz.py
FUZZ_jobs := test_job_fuzz.py
FUZZ_koordinator := test_koordinator_fuzz.py
FUZZ_CHOICES := decisions gangs claims jobs koordinator requests answers queues
fuzz: $(READY)
ifeq ($(filter $(WHAT),$(FUZZ_CHOICES)),)
	@echo 'WHAT=$(WHAT) is no kind of fuzzing: choose one of $(FUZZ_CHOICES)' >&2; exit 2
endif
ifeq ($(WHAT),requests)
	FAIRLEAD_REQUESTS=$(N) FAIRLEAD_FUZZ_SEED=$(SEED) $(BIN)/pytest tests/fuzz -k drawn $(ARGS)
else ifeq ($(WHAT),answers)
	FAIRLEAD_ANSWERS=$(if $(filter file,$(origin N)),40,$(N)) FAIRLEAD_FUZZ_SEED=$(SEED) $(BIN)/pytest -n 2 tests/property/assembly/test_answers_hold.py $(ARGS)
else ifeq ($(WHAT),queues)
	FAIRLEAD_QUEUES=$(if $(filter file,$(origin N)),500,$(N)) FAIRLEAD_FUZZ_SEED=$(SEED) $(BIN)/pytest -n 2 tests/property/volcano/test_waiting_queues.py $(ARGS)
else
	FAIRLEAD_REAL=$$(tools/real/build.sh) FAIRLEAD_FUZZ=$(N) FAIRLEAD_FUZZ_SEED=$(SEED) $(BIN)/pytest -m kube $(addprefix tests/kube/fuzz/,$(FUZZ_$(WHAT))) $(ARGS)
endif

# Faults, overload and restarts on the real API server, then pods that come and go for as long as is wanted: `make soak
# MINUTES=60`, and the same with kube-scheduler: `make soak ARGS='--scheduler kube'`; `--only cuts,lost` chooses, `--only
# disk` plays 500 faults of the disk under a journal, `sweep` 2,000 runs with a restart, silence or lateness, `history`
# ten minutes of writers and watchers with 20 kills.
MINUTES ?= 30
soak: $(READY)
	FAIRLEAD_KILLS=1000 $(BIN)/pytest tests/e2e/test_journal_kill.py tests/scenario/volcano/test_jobs_killed.py
	FAIRLEAD_JOBS=2000 $(BIN)/pytest tests/property/volcano/test_job_lives.py
	FAIRLEAD_REAL=$$(tools/real/build.sh) $(BIN)/python -m soak --minutes $(MINUTES) $(ARGS)

# What a directory of recordings of a paper's program holds, played again and compared (papers/README.md says more):
# `make papers DIR=recordings`, `make papers DIR=recordings ARGS='--all'`.
DIR ?=
papers: $(READY)
	$(BIN)/python -m papers reference $(or $(DIR),$(error make papers DIR=DIRECTORY; papers/README.md says what such a directory holds)) $(ARGS)

# Compiled first, as an installed package is: how soon `fairlead up` is ready depends on it.
bench: $(READY)
	$(BIN)/python -m compileall -q src benchmarks
	$(BIN)/python -m benchmarks $(ARGS)

# CPU time of a dozen rows of this commit beside those of another one, in turn: `make bench-compare BASE=main`, in at most
# 20 minutes. `ARGS='--only api --runs 3'` chooses, `ARGS=--list` names the rows.
BASE ?=
bench-compare: $(READY)
	$(BIN)/python -m benchmarks.compare --base '$(BASE)' $(ARGS)

# fairlead beside the real kube-scheduler on the real API server, or beside Volcano's: `make bench-kube ARGS='--scheduler
# volcano'`.
bench-kube: $(READY)
	FAIRLEAD_REAL=$$(tools/real/build.sh) $(BIN)/python -m benchmarks.kube $(ARGS)

# API writes for Volcano Jobs, of Volcano's controllers and scheduler and of ours: `make bench-kube-jobs ARGS='--pods 100'`.
bench-kube-jobs: $(READY)
	FAIRLEAD_REAL=$$(tools/real/build.sh) $(BIN)/python -m benchmarks.kube_jobs $(ARGS)

# The wheel, installed in an empty environment, runs the demo and the laboratory without papers/: at most 3 minutes.
wheel: $(READY)
	$(BIN)/python tools/wheel/check.py

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
