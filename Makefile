# Everything a developer or CI does has a target here; `make help` lists them.
PYTHON ?= python3
BIN := .venv/bin
PYTEST := $(BIN)/pytest -q
# Each of these has a target of its own; every other folder of tests is fast.
SLOW := $(addprefix tests/,template/ build/ contract/ integration/ e2e/ drills/)
.DEFAULT_GOAL := help
.PHONY: help setup run demo stop status logs format check-format lint types imports template unit \
    contract integration e2e test pr clean locks bench-outage build drills drill-worker drill-idempotency \
    drill-lease-recovery drill-dead-letter drill-webhook-replay

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Make the three environments from their locks (seconds when nothing changed)
	@$(PYTHON) locks/sync.py dev cloud sam

run: setup ## Start the local cloud, deploy, and show real jobs travelling through it
	@$(BIN)/python -m tools.localcloud up
	@$(BIN)/python -m tools.localcloud demo

demo: ## Send the demonstration jobs again
	@$(BIN)/python -m tools.localcloud demo

stop: ## Stop the local cloud and everything that belongs to it
	@if [ -x $(BIN)/python ]; then $(BIN)/python -m tools.localcloud down; fi

status: ## Say what is running and where
	@$(BIN)/python -m tools.localcloud status

logs: ## Follow the logs of the local cloud and its functions
	@$(BIN)/python -m tools.localcloud logs --follow

format: setup ## Format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix --select I .

check-format: setup
	@$(BIN)/ruff format --check .

lint: setup ## Lint
	@$(BIN)/ruff check .

types: setup ## Check types
	@$(BIN)/mypy

imports: setup ## Check who imports whom
	@$(BIN)/lint-imports

template: setup ## Check the template, the builds, and that each handler imports from its layers alone
	@$(PYTEST) tests/template tests/build

unit: setup ## Rules, use cases, adapters, simulator: no emulator
	@$(PYTEST) -n 2 --dist worksteal $(filter-out $(SLOW),$(wildcard tests/*/))

contract: setup ## The same suite over the fakes and the emulator
	@$(PYTEST) tests/contract

integration: setup ## Handlers and tools against the emulator and the simulator
	@$(PYTEST) -n 2 --dist loadfile tests/integration

e2e: setup ## A deployed stack in the local cloud
	@$(PYTEST) tests/e2e tests/drills

build: setup ## Build for AWS (`sam deploy` then takes it from .aws-sam)
	@.local/venvs/sam/bin/sam build

test: setup ## Everything, as CI runs it
	@.ci/steps check-format lint types imports template unit contract integration e2e

pr: format test ## Format, then everything: run this before a pull request

bench-outage: setup ## An outage on our stack and on a plain baseline; writes docs/benchmarks/outage.md and plots (25 min)
	@$(PYTHON) locks/sync.py bench
	@$(BIN)/python -m tests.bench.outage
	@$(BIN)/python -m tests.bench.outage.report .local/bench/outage.json docs/benchmarks
	@.local/venvs/bench/bin/python tests/bench/outage/plot.py .local/bench/outage.json docs/benchmarks

locks: setup ## Resolve the locks again (UPGRADE=1 takes newer releases)
	@locks/update $(if $(UPGRADE),--upgrade)

clean: stop ## Remove what was built and what ran, keep the environments
	@rm -rf .aws-sam .local/build .local/cloud .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

drill-worker: setup ## Drill: a provider that says no (PROVIDER_FAULT=429|503|529|500)
	@$(BIN)/python -m tools.drills worker

drill-idempotency: setup ## Drill: the same key twice at once
	@$(BIN)/python -m tools.drills idempotency

drill-lease-recovery: setup ## Drill: a worker process is killed in mid-call
	@$(BIN)/python -m tools.drills lease-recovery

drill-dead-letter: setup ## Drill: a provider that fails for good
	@$(BIN)/python -m tools.drills dead-letter

drill-webhook-replay: setup ## Drill: one delivery replayed, reordered, late
	@$(BIN)/python -m tools.drills webhook-replay

drills: setup ## All five drills, on the local cloud (`make run` first) or where BREAKWATER_URL points
	@$(BIN)/python -m tools.drills all

bench-setup: setup
	@$(PYTHON) locks/sync.py bench

bench: bench-setup ## Measure starts, requests, money, own time, growth; writes docs/benchmarks
	@$(BIN)/python -m tools.bench

bench-quick: bench-setup ## The same with fewer runs
	@$(BIN)/python -m tools.bench --quick

.PHONY: bench bench-quick bench-setup
