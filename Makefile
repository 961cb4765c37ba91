# make demo      a small shop, and five questions answered about it
# make check     what lint does, and the fast tests: in less than a minute; FAST says which they are
# make test      all tests, with coverage
# make lint      format, lint, types, layers
# make nightly   the slow tests too, and everything more often
# make selftest  an audit of answers, and of the audit: every planted fault must be noticed
# make fuzz      SECONDS=600 of wrong statements and messages for each target
# make adversary SECONDS=600 of attacks from the outside on neighbouring databases; goes on where it ended
# make clients   every client of the endpoint beside PostgreSQL, dbt too
# make superset  Apache Superset connects, browses and charts, beside PostgreSQL
# make cube      Cube does, with a model that it drafts itself
# make hostile   a million messages with mistakes in them, others each time; SEED=n for the same ones
# make attacks   attacks on an endpoint, and what another client notices; fails where a bound is broken
# make kills     KILLS=50 times the endpoint is killed while clients ask; goes on where it ended
# make faults    SECONDS=600 for the adversary to find each planted fault; goes on where it ended
# make mutants   COUNT=200 random changes of the code, and who notices them; goes on where it ended
# make overspend many clients spend accounts to the last, while the policy is read again, on both stores
# make reference record anew what every query of the corpus measures, costs and answers
# make bench     speed and accuracy, printed; tables, JSON and plots in build/bench
# make accuracy  DRAWS=30 answers to each question of two suites, beside an oracle; goes on where it ended
# make lock      pin every dependency anew
#
# Only Python 3.11 or later, pip and make are needed: .venv is made and filled from the lock.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
# Each test that starts a process would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip --no-input --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder
FAST := tests/golden/test_refusals.py tests/unit/bound tests/unit/checks tests/unit/declarations tests/unit/plan tests/unit/price tests/unit/privacy tests/unit/release

.PHONY: demo check test lint nightly clients superset cube hostile attacks adversary faults mutants bench accuracy reference lock

demo: $(READY)
	@$(BIN)/dpsql demo demo --ask

check: lint
	$(PYTEST) -m "not slow" $(FAST)

test: $(READY)
	$(PYTEST) -m "not slow" --cov --cov-branch --cov-report=json:.coverage.json
	$(BIN)/python -m tests.repo.coverage_gate .coverage.json

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

nightly: $(READY)
	HYPOTHESIS_PROFILE=nightly $(PYTEST) -m ""

clients: $(READY)
	sh tests/support/clients.sh all
	$(PYTEST) -m "" tests/wire/test_side_by_side.py

superset: $(READY)
	sh tests/support/clients.sh superset
	DPSQL_REQUIRE_SUPERSET=1 $(BIN)/python -m pytest -m "" --timeout=0 tests/wire/test_superset.py

cube: $(READY)
	sh tests/support/clients.sh cube
	DPSQL_REQUIRE_CUBE=1 $(BIN)/python -m pytest -m "" --timeout=0 tests/wire/test_cube.py

hostile: $(READY)
	@seed=$(or $(SEED),$$($(PYTHON) -c 'import secrets; print(secrets.randbits(32))')); \
	echo "make hostile SEED=$$seed sends these messages again"; \
	DPSQL_HOSTILE=1000000 DPSQL_HOSTILE_SEED=$$seed $(PYTEST) --timeout=0 tests/wire/test_wire_machine.py tests/wire/test_wire_knocking.py -k hostile

selftest: $(READY)
	$(BIN)/dpsql selftest --policy fixtures/policies/shop.yaml
	$(PYTEST) tests/laws/test_selftest.py -k "noticed or sharp"

fuzz: $(READY)
	$(BIN)/python -m tests.fuzz --seconds $(or $(SECONDS),600)

adversary: $(READY)
	$(BIN)/python -m tests.adversary --seconds $(or $(SECONDS),600) --state build/adversary

kills: $(READY)
	$(BIN)/python -m tests.endurance kills --kills $(or $(KILLS),50) --seed $(or $(SEED),1)

faults: $(READY)
	$(BIN)/python -m tests.adversary_faults --seconds $(or $(SECONDS),600) --seed $(or $(SEED),1)

mutants: $(READY)
	$(BIN)/python -m tests.mutation unit --count $(or $(COUNT),200) --seed $(or $(SEED),1)
	$(BIN)/python -m tests.mutation laws --count $(or $(COUNT),200) --seed $(or $(SEED),1) --sample 40
	$(BIN)/python -m tests.mutation adversary --count $(or $(COUNT),200) --seed $(or $(SEED),1) --sample 20
	$(BIN)/python -m tests.mutation report --count $(or $(COUNT),200) --seed $(or $(SEED),1)

overspend: $(READY)
	$(BIN)/python -m tests.endurance overspend

reference: $(READY)
	$(BIN)/python -m pytest -n 0 -s --timeout=0 --rewrite tests/reference -k as_recorded

bench: $(READY)
	@set -e; for name in speed corpora alone growth; do echo "== $$name"; \
		$(BIN)/python -m benchmarks.$$name --data build/bench/data --out build/bench; done
	@echo "== accuracy"; $(BIN)/python -m benchmarks.accuracy pareto
	@set -e; for name in composition ledger wire; do echo "== $$name"; \
		$(BIN)/python benchmarks/$$name.py; done
	@echo "== large"; $(BIN)/python -m benchmarks.large --data build/bench/data --out build/bench

accuracy: $(READY)
	$(BIN)/python -m benchmarks.accuracy run known other --label label laplace --draws $(or $(DRAWS),30)

attacks: $(READY)
	$(BIN)/python -m benchmarks.attacks --out build/bench

lock:
	$(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet uv
	echo "setuptools>=77" > build/lock/build.in
	build/lock/bin/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 \
		--all-extras --upgrade --no-header --no-annotate \
		--output-file requirements.lock pyproject.toml build/lock/build.in

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("dpsql needs Python 3.11 or later" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(PIP) install --quiet --no-compile --require-hashes -r requirements.lock
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $(READY)
