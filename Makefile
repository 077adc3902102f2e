# make demo    build, integrate and check build_examples/rolling_disk.py
# make test    the test suite
# make test-sympy    the models of SymPy's own test suite against kanegen (about half a minute; see docs/sympy.md)
# make test-targets    further compilers and sanitizers; emitted code in other hosts: analyzers, emulators of microcontrollers, FMI, CasADi,
#                      JAX (see docs/standalone.md); pages in a browser; sweeps on clusters
# make test-all    test and test-targets in one session
# make test-campaigns    the generators of random models, motions, events and damaged files at full size (see docs/verification.md)
# make mutate    changes that tests must notice, one after the other in copies of the project; NAMES="..." tries some
#                  (tests/mutations/mutations.toml; about ten minutes)
# make lint    ruff and mypy --strict
# make docs    the documentation site, in build/site; warnings are errors
# make pictures    the pictures of the examples in docs/plots, and the outputs of docs/tour.ipynb
# make bench-pages    the times that pages of animations take in a browser (see docs/animation.md)
# make bench   the table of numbers (several minutes; see docs/benchmark.md)
# make bench-peers    kanegen beside other packages, in an environment of their own (about ten minutes), and
#                     docs/benchmark.md with the results
#
# Everything runs in .venv, which is made on first use. PYTHON names the interpreter it is made with (3.11 or newer).

PYTHON ?= python3
VENV ?= .venv
PEERS_VENV ?= .venv-peers
PEERS_RESULTS ?= build/peers.json
BIN := $(VENV)/bin
# Otherwise every process of the tests would compile the modules of kanegen and of the tests again.
unexport PYTHONDONTWRITEBYTECODE
JOBS ?= 2

.PHONY: demo docs environment test test-sympy test-targets test-all test-campaigns mutate lint format bench bench-pages bench-peers pictures clean

demo: $(VENV)/demo.stamp
	$(BIN)/python build_examples/rolling_disk.py

environment: $(VENV)/targets.stamp

test: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

test-sympy: export OPENBLAS_NUM_THREADS = 1
test-sympy: $(VENV)/dev.stamp
	PYTHONPATH=tests/support:tests/sympy_models $(BIN)/python -m pytest -n $(JOBS) --dist worksteal -q -c tests/sympy_models/sympy_suite/pytest.ini \
	  --pyargs sympy.physics.mechanics.tests sympy.physics.biomechanics.tests

test-targets: $(VENV)/targets.stamp
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "target and not timing"

test-all: $(VENV)/targets.stamp
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not timing and not campaign"

test-campaigns: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m campaign

mutate: $(VENV)/dev.stamp
	$(BIN)/python tests/mutations/mutate.py --jobs $(JOBS) $(NAMES)

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict kanegen benchmarks

format: $(VENV)/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/docs.stamp
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -b html docs build/site
	@echo "the site is in build/site; open build/site/index.html"

bench-pages: $(VENV)/targets.stamp
	$(BIN)/python -m pytest -m timing tests/view

bench: $(VENV)/demo.stamp
	$(BIN)/kanegen bench --full

# One core: some of the packages would use all of them for batches.
bench-peers: $(PEERS_VENV)/peers.stamp
	mkdir -p $(dir $(PEERS_RESULTS))
	OMP_NUM_THREADS=1 $(PEERS_VENV)/bin/python -m benchmarks --output $(PEERS_RESULTS)
	$(PEERS_VENV)/bin/python docs/make_peers.py $(PEERS_RESULTS)

pictures: $(VENV)/targets.stamp
	$(BIN)/python docs/make_pictures.py
	$(BIN)/python docs/make_notebook.py

# A stamp newer than pyproject.toml means that the environment holds what pyproject.toml asks for. Python compiles what is
# imported when it is imported first; to compile all packages takes as long as to install them.
$(VENV)/pip.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "kanegen needs Python 3.11 or newer; name one with make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/demo.stamp: pyproject.toml $(VENV)/pip.stamp
	$(BIN)/python -m pip install --quiet --no-compile -e .
	touch $@

$(VENV)/dev.stamp: pyproject.toml $(VENV)/pip.stamp
	$(BIN)/python -m pip install --quiet --no-compile -e ".[dev,plot]"
	touch $(VENV)/demo.stamp $@

$(VENV)/docs.stamp: pyproject.toml $(VENV)/pip.stamp
	$(BIN)/python -m pip install --quiet --no-compile -e ".[docs]"
	touch $(VENV)/demo.stamp $@

$(VENV)/targets.stamp: pyproject.toml $(VENV)/pip.stamp
	$(BIN)/python -m pip install --quiet --no-compile -e ".[dev,plot,targets]"
	touch $(VENV)/demo.stamp $(VENV)/dev.stamp $@

$(PEERS_VENV)/peers.stamp: pyproject.toml
	$(MAKE) VENV=$(PEERS_VENV) $(PEERS_VENV)/pip.stamp
	$(PEERS_VENV)/bin/python -m pip install --quiet --no-compile -e ".[peers]"
	touch $@

clean:
	rm -rf $(VENV) $(PEERS_VENV) kanegen/backends/cython/module_*.so build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache
	rm -rf .hypothesis
