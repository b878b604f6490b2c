# One entry point for everything a developer does. `make` alone prints what there is.
#
# Every target that needs the environment depends on its stamp, so `make test` on a fresh clone
# sets up everything by itself and costs nothing when nothing changed.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Distributions installed into the environment, dependencies first. A new part adds itself here.
DISTS := api base bigfleet providerkit lab $(patsubst %/pyproject.toml,%,$(wildcard providers/*/pyproject.toml)) conformance fakecloud dashboard scaletest

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LOCK := requirements/dev.lock

# Tests and demos start hundreds of processes: without compiled modules each of them reads the source
# of every library again, which costs a shard twice its time to start.
unexport PYTHONDONTWRITEBYTECODE

# Compiled kernels stay inside the checkout: a second run of anything finds them again.
export NUMBA_CACHE_DIR ?= $(CURDIR)/.numba

.PHONY: help
help: ## Print this list
	@awk -F ':.*## ' '/^[a-zA-Z0-9_-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(STAMP) ## Create the environment and install the locked dependencies

$(STAMP): $(LOCK) $(DISTS:%=%/pyproject.toml)
	@tools/setup.sh "$(PYTHON)" "$(VENV)" "$(LOCK)" $(DISTS)
	@touch $@

# SDKs of clouds are not part of the environment: only the tests of providers over HTTP need them.
SDKS = $(if $(NAME),providers/$(NAME)/requirements.lock,requirements/providers.lock)
.PHONY: providers-setup
providers-setup: $(STAMP) ## Install the SDKs of all clouds for the tests of providers; NAME=x of that provider only
	@tools/install_lock.sh "$(VENV)" "$(SDKS)"

# The engine's kernels are compiled once; afterwards this only finds them in the cache.
.PHONY: kernels
kernels: $(STAMP) ## Compile the engine once, so that nothing waits for it later
	@echo "Engine: loading its kernels (the first time compiles them, about a minute)"
	@$(BIN)/python -c 'from bigfleet.engine_warm_up import warm_up; warm_up()'

.PHONY: run
run: kernels $(if $(KUBE),kube-tools) ## Start the whole system and print the dashboard's address; KUBE=1 around a real Kubernetes
	@exec $(if $(KUBE),env PYTHONPATH=tools:tests/support $(BIN)/python tools/run_kube.py,$(BIN)/bigfleet demo) $(ARGS)

.PHONY: test
test: kernels ## Run the tests; ONLY=unit,property,golden,closedloop,integration picks rungs, ALL=1 every size
	@$(BIN)/python tools/run_tests.py $(if $(ONLY),--only "$(ONLY)") $(if $(ALL),--all) $(NO_SKIPS) $(ARGS)

# STRICT=1: a test that is skipped, because a program is missing, is a failure. CI says so.
NO_SKIPS = $(if $(STRICT),--no-skips)

.PHONY: test-deep
test-deep: kernels ## Run everything at nightly size, the deep tests included
	@MODE=nightly FULL=1 $(BIN)/python tools/run_tests.py --deep $(ARGS)

.PHONY: dst
dst: kernels ## The whole fleet on virtual time: SEEDS=30 runs, BASE=1 the first seed
	@$(BIN)/python tools/run_dst.py --seeds "$(or $(SEEDS),30)" --base "$(or $(BASE),1)" $(ARGS)

.PHONY: mutants
mutants: $(STAMP) ## Mutation testing: change a line, and see that a test notices
	@$(BIN)/python tools/mutants.py $(ARGS)

.PHONY: bench
bench: kernels ## Run the benchmarks with their assertions; ONLY=engine, shapes, provider, shard, coordinator, operator, metrics or dashboard picks a part
	@mkdir -p bench
	@$(BIN)/bigfleet bench suite --out bench/results.json $(if $(ONLY),--only "$(ONLY)") \
		--outside "shapes=$(BIN)/python -m bigfleet_lab.bench_shapes" \
		--outside "provider=$(BIN)/python -m providerkit.bench" \
		--outside "shard=$(BIN)/python -m bigfleet_lab.bench_shard" \
		--outside "coordinator=$(BIN)/python tools/bench_coordinator.py" \
		--outside "operator=$(BIN)/python tools/bench_operator.py" \
		$(if $(filter e2e,$(ONLY)),--outside "e2e=$(BIN)/python tools/bench_e2e.py") \
		--outside "metrics=$(BIN)/python tools/bench_metrics.py" \
		--outside "dashboard=$(BIN)/python tools/bench_dashboard.py"

.PHONY: scaletest
scaletest: kernels ## Run a scale or failure profile: PROFILE=dev-50, CI=1 a quarter of the time, SUBSTRATE=local-process, SCALE=, SEED=, DURATION=, SET=
	@test -n "$(PROFILE)" || { echo "Give a profile: make scaletest PROFILE=dev-50; bigfleet-scaletest list shows all" >&2; exit 2; }
	@$(BIN)/bigfleet-scaletest run --profile "$(PROFILE)" --substrate "$(or $(SUBSTRATE),local-process)" \
		--etcd "$$(PYTHONPATH=tools $(BIN)/python tools/etcd.py | cut -d' ' -f1)" $(if $(CI),--ci) \
		$(if $(SCALE),--scale-factor "$(SCALE)") $(if $(SEED),--seed "$(SEED)") \
		$(if $(DURATION),--duration "$(DURATION)") $(foreach pair,$(SET),--set "$(pair)") $(ARGS)

.PHONY: soak
soak: kernels ## Ten minutes of churn on a provider, ten on a shard; LONG=1 two hours on real processes
	@$(BIN)/python -m providerkit.bench.churn 600
	@$(BIN)/python tools/soak.py $(if $(LONG),--long) $(ARGS)

# `make -k lint` goes on after the first complaint.
.PHONY: lint lint-style lint-types lint-layers lint-deps lint-rules
lint: lint-style lint-types lint-layers lint-deps lint-rules ## Style, types, import layers, declared dependencies, house rules

lint-style: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

lint-types: $(STAMP)
	@tools/typecheck.sh $(BIN)/mypy $(DISTS)

lint-layers: $(STAMP)
	$(BIN)/lint-imports --no-cache --no-logo
	@cd scaletest && $(abspath $(BIN))/lint-imports --no-cache --no-logo --config pyproject.toml

lint-deps: $(STAMP)
	@for dist in $(DISTS); do echo "deptry $$dist"; (cd $$dist && $(abspath $(BIN))/deptry src); done

lint-rules: $(STAMP)
	@$(BIN)/python tools/checks.py

.PHONY: fmt
fmt: $(STAMP) ## Format the code and repair what can be repaired
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: proto
proto: $(STAMP) ## Generate the package bigfleet_api and the API reference from the protocol definitions
	@$(BIN)/python tools/proto.py
	@$(BIN)/python tools/api_reference.py

.PHONY: new-provider
new-provider: $(STAMP) ## Copy the example provider: NAME=x, and DEST=dir outside the repository
	@test -n "$(NAME)" || { echo "Give a name: make new-provider NAME=mycloud" >&2; exit 2; }
	@$(BIN)/python tools/new_provider.py "$(NAME)" $(if $(DEST),--dest "$(DEST)")

.PHONY: conformance
conformance: $(STAMP) ## Certify a running provider: TARGET=host:port, PROFILE=core, OUT=dir
	@test -n "$(TARGET)" || { echo "Give a target: make conformance TARGET=127.0.0.1:9001" >&2; exit 2; }
	@$(BIN)/bigfleet-conformance run --target "$(TARGET)" $(CONFORMANCE_ARGS) $(if $(PROFILE),--profile "$(PROFILE)")

.PHONY: conformance-self
conformance-self: $(STAMP) ## The suite on fake, example and fault provider, and the mutants that it must find
	@$(BIN)/bigfleet-conformance run --provider fake --profile all $(if $(OUT),--out "$(OUT)/fake")
	@$(BIN)/bigfleet-conformance run --provider _template --profile all $(if $(OUT),--out "$(OUT)/template")
	@$(BIN)/bigfleet-conformance run --provider fault --profile fault $(if $(OUT),--out "$(OUT)/fault")
	@$(BIN)/pytest conformance/tests/mutants -q -n 2 --dist=worksteal $(ARGS)

.PHONY: conformance-quick
conformance-quick: $(STAMP) ## The quick form of the suite on the fake and on every provider here
	@for name in fake $(patsubst providers/%/conformance.yaml,%,$(wildcard providers/*/conformance.yaml)); do \
		$(BIN)/bigfleet-conformance run --provider "$$name" --quick $(ARGS); done

.PHONY: conformance-changed
conformance-changed: $(STAMP) ## Certify the providers that a change touches: SINCE=commit before it
	@$(BIN)/python tools/certify_changed.py --since "$(or $(SINCE),HEAD~1)" $(ARGS)

# One of ours by name: make conformance-_template [SUBSTRATE=http] [OUT=dir]
conformance-%: $(STAMP)
	@$(if $(filter http,$(SUBSTRATE)),tools/install_lock.sh "$(VENV)" "providers/$*/requirements.lock")
	@$(BIN)/bigfleet-conformance run --provider "$*" --profile all $(CONFORMANCE_ARGS)

CONFORMANCE_ARGS = $(if $(SUBSTRATE),--substrate "$(SUBSTRATE)") $(if $(OUT),--out "$(OUT)") $(ARGS)

.PHONY: docs
docs: $(STAMP) ## Check links and generated pages, then build the site from docs/ into site/
	@$(BIN)/python tools/check_links.py
	@$(BIN)/python tools/crd_reference.py --check
	@$(BIN)/python tools/api_reference.py --check
	@$(BIN)/python tools/provider_registry.py --check
	@$(BIN)/python tools/provider_pages.py --check
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site: built, open site/index.html"

.PHONY: boards
boards: $(STAMP) ## Write the chart's Grafana boards, the runbook from its alerts, and the reference of metrics
	@PYTHONPATH=tools $(BIN)/python -m boards.write $(ARGS)
	@$(BIN)/python tools/runbook.py $(ARGS)
	@$(BIN)/python tools/metric_reference.py $(ARGS)
	@$(BIN)/python tools/query_reference.py $(ARGS)

.PHONY: transcripts
transcripts: kernels ## Write the transcripts of the decision engine from their scenarios
	@PYTHONPATH=tools $(BIN)/python -m transcripts.write $(ARGS)

.PHONY: crds
crds: $(STAMP) ## Write the reference of the custom resources from api/crd
	@$(BIN)/python tools/crd_reference.py

# The binaries are built once and kept outside of the checkout; afterwards this only looks.
.PHONY: kube-tools
kube-tools: ## Build the pinned Kubernetes binaries into a cache; the first time takes 6 to 12 minutes
	@PYTHONPATH=tools $(PYTHON) -m kube.binaries $(BINARIES)

.PHONY: prometheus chromium
prometheus: ## Install Debian's Prometheus and promtool where that is possible; says so where not
	@tools/debian_package.sh prometheus "promised queries and alert rules" prometheus promtool

chromium: ## Install Debian's Chromium where that is possible; says so where not
	@tools/debian_package.sh chromium "the dashboard's screens" chromium

# Most of these tests wait for others most of the time, so two run side by side, each on control planes
# of its own. The long ones, marked deep as everywhere, measure: one at a time. Where ARGS chooses, one of the two
# runs may have nothing to do (5).
NONE = $(if $(ARGS),|| [ $$? = 5 ])
E2E := $(wildcard tests/e2e */tests/e2e providers/*/tests/e2e)
.PHONY: e2e
e2e: kernels kube-tools prometheus ## The real Kubernetes and the real Prometheus; SHORT=1 leaves the long tests out
	@$(BIN)/pytest $(E2E) tests/queries --timeout=600 -rs -n 2 --dist worksteal \
		-m "(e2e or queries) and not deep" $(NO_SKIPS) $(ARGS) $(NONE)
ifndef SHORT
	@$(BIN)/pytest $(E2E) --timeout=600 -m "e2e and deep" $(NO_SKIPS) $(ARGS) $(NONE)
endif

.PHONY: charts
charts: $(STAMP) kube-tools ## Bring the Helm charts in step with the code, lint and render them
	@$(BIN)/python tools/charts.py
	@$(BIN)/pytest tests/unit/test_charts.py tests/e2e/test_charts.py -q -m "unit or e2e" $(ARGS)

.PHONY: lock
lock: $(STAMP) ## Choose the newest versions again and write the hashed locks; NAME=x only that provider's
	@$(BIN)/python tools/locks.py $(if $(NAME),--provider "$(NAME)") $(ARGS)

.PHONY: clean
clean: ## Remove the environments, caches and generated results
	rm -rf .venv .venv-* .numba .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache site
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
