# One command each. Every target installs what it needs into .venv and .venv-sam; uv is used when it is there.
find_python = $(shell for v in $(1); do p=$$(command -v python$$v) && $$p -c '' 2>/dev/null && echo $$p && break; done)
PY ?= $(call find_python,3.13 3.12)
PY313 ?= $(call find_python,3.13)
BIN := .venv/bin
RUN := PYTHONPATH=shared:. $(BIN)/python
# The region only lets botocore and cfn-lint resolve names; no command here reaches AWS.
SAM := PATH="$(CURDIR)/.venv-sam/bin:$$PATH" SAM_CLI_TELEMETRY=0 AWS_DEFAULT_REGION=us-east-1 .venv-sam/bin/sam
SOURCES := template.yaml $(shell find shared functions layers -type f -not -name '*.pyc')
# Whole files to each process, in the order of tests/conftest.py. (`--dist loadgroup` does nothing with pytest 9.2 and
# pytest-xdist 3.8.0: groups are lost, and each process sets up what a file needs.)
SPREAD := $(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder
# Python keeps what it compiled: else each run compiles and rewrites five hundred files of tests anew.
unexport PYTHONDONTWRITEBYTECODE
TRACES ?=
SHARED ?= ../shared
.DEFAULT_GOAL := help
.PHONY: help install check test artefact fast lint format types contracts guards audit secrets readme validate build bench replay \
	faults mutants spot \
	sandbox demo screenshots readme-table slack-picture clean

help: ## List the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

# pip is the base path; uv only makes it faster. Both check every hash.
define install_into
	@if command -v uv >/dev/null 2>&1; then uv pip sync -q -p $(1) --require-hashes $(2); \
	else $(1)/bin/pip install -q --disable-pip-version-check --require-hashes -r $(2); fi
	@touch $@
endef

.venv/.installed: requirements/dev.txt
	@test -n "$(PY)" || { echo "No Python 3.13 or 3.12 on PATH: install one, then run make again." >&2; exit 1; }
	$(PY) -m venv .venv
	$(call install_into,.venv,requirements/dev.txt)

# SAM CLI pins its own boto3 and pydantic, so it lives alone. It builds for Lambda's python3.13 and needs one.
.venv-sam/.installed: requirements/sam.txt
	@test -n "$(PY313)" || { echo "No Python 3.13 on PATH: the SAM build needs Lambda's version. Install it." >&2; exit 1; }
	$(PY313) -m venv .venv-sam
	$(call install_into,.venv-sam,requirements/sam.txt)

# What the Lambda runtime brings, and nothing else: a dependency forgotten in the layer fails here as it would on AWS.
.venv-lambda/.installed: requirements/lambda.txt
	@test -n "$(PY313)" || { echo "No Python 3.13 on PATH: the built functions need Lambda's version. Install it." >&2; exit 1; }
	$(PY313) -m venv .venv-lambda
	$(call install_into,.venv-lambda,requirements/lambda.txt)

# The same with the oldest botocore that is supported, which a runtime may still carry.
.venv-lambda-oldest/.installed: requirements/lambda-oldest.txt
	@test -n "$(PY313)" || { echo "No Python 3.13 on PATH: the built functions need Lambda's version. Install it." >&2; exit 1; }
	$(PY313) -m venv .venv-lambda-oldest
	$(call install_into,.venv-lambda-oldest,requirements/lambda-oldest.txt)

# The library of this clone and its command, from sources and without a network. `uv pip sync` by hand removes it; this
# target puts it back.
.venv/bin/rightsizer: .venv/.installed
	@if command -v uv >/dev/null 2>&1; then uv pip install -q -p .venv --offline --no-deps --no-build-isolation -e .; \
	else .venv/bin/pip install -q --disable-pip-version-check --no-index --no-deps --no-build-isolation -e .; fi
	@touch $@

install: .venv/bin/rightsizer ## Create .venv with everything pinned, and .venv/bin/rightsizer

demo: install ## A simulated account, found, changed, proven, reported; TRACES=dir seeds it from real traces
	$(RUN) -m sandbox.demo $(if $(TRACES),--traces $(TRACES))

# The build for this machine's processor, and the two environments that it is tried in.
BUILT := $(if $(filter aarch64 arm64,$(shell uname -m)),.aws-sam/build,.aws-sam/x86)/.built
ARTEFACT := $(BUILT) .venv-lambda/.installed .venv-lambda-oldest/.installed

# With ARTEFACT=1 a missing or outdated build is a failure; without Python 3.13 there is none, unless CI asks for it.
test: install $(if $(PY313),$(ARTEFACT)) ## All tests, the built functions too
	$(if $(PY313),ARTEFACT=1) $(SPREAD)

artefact: install $(ARTEFACT) ## The whole main path on the built functions, with the pinned and the oldest botocore
	ARTEFACT=1 $(SPREAD) -rP -m "" tests/artefact

fast: install ## The tests without the slow ones and without a build
	$(SPREAD) -m "not slow and not artefact and not grid"

lint: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

format: install ## Format and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: install
	$(BIN)/mypy

contracts: install
	PYTHONPATH=shared:. $(BIN)/lint-imports

guards: # A requirement file that names a host or a machine's path ties every user to it.
	@! grep -nE '://|--index-url|--extra-index-url|--find-links|^-e |file:' requirements/*.txt shared/requirements*.txt layers/*/requirements.txt \
	|| { echo "guards: compile these again with scripts/compile_requirements.sh" >&2; exit 1; }

audit: install ## Known vulnerabilities in what is pinned; says "not checked" where the database cannot be reached
	$(BIN)/python scripts/audit.py

secrets: install # Keys and tokens by their form. What is no secret carries "pragma: allowlist secret".
	@git rev-parse -q --git-dir >/dev/null 2>&1 || { echo "secrets: not checked, this is no git checkout"; exit 0; }; \
	git ls-files -z | xargs -0 $(BIN)/detect-secrets-hook --disable-plugin Base64HighEntropyString \
	--disable-plugin HexHighEntropyString --disable-plugin KeywordDetector

readme: install
	$(RUN) scripts/check_readme.py

readme-table: install ## Run the demo, put its table into README.md, and draw the picture of it
	$(RUN) -m sandbox.demo --table README.md
	$(RUN) -m sandbox.demo_picture

screenshots: demo ## Draw the demo's report, on a desktop and on a phone, into docs/pictures
	$(RUN) -m scripts.screenshots

slack-picture: install ## Draw the pictures of the Slack message; needs the extra pictures in .venv, and chromium
	$(RUN) scripts/slack_picture.py docs/pictures

validate: .venv-sam/.installed ## Validate and lint the template
	$(SAM) validate --lint

check: lint types contracts guards secrets audit readme validate ## Lint, types, contracts, secrets, vulnerabilities, README, template

# $(1) processor, $(2) folder. SAM calls shared/Makefile for the layer and passes it no processor, hence ARCH.
define sam_build
	ARCH=$(1) KEPT="$(CURDIR)/.aws-sam/kept" $(SAM) build --parameter-overrides Arch=$(1) -b $(2)
	.venv-sam/bin/python scripts/compile_build.py $(2)
	@touch $(2)/.built
endef

.aws-sam/build/.built: .venv-sam/.installed $(SOURCES) scripts/compile_build.py
	$(call sam_build,arm64,.aws-sam/build)

.aws-sam/x86/.built: .venv-sam/.installed $(SOURCES) scripts/compile_build.py
	$(call sam_build,x86_64,.aws-sam/x86)

build: .aws-sam/build/.built .aws-sam/x86/.built ## Build with SAM: arm64 to deploy, x86_64 for the tests

bench: install $(BUILT) .venv-lambda/.installed ## Cold starts, AWS calls, decisions, time to a replacement; all run, the worst decides
	@worst=0; for one in doors calls scan reading decide interruption report first; do echo "bench.$$one"; $(RUN) -m bench.$$one; code=$$?; \
	[ $$code -le $$worst ] || worst=$$code; done; exit $$worst

replay: install ## The decision engine and the rules of the field in the referee; SEEDS=1,2,3 (1), FAST=1 thins
	$(RUN) -m bench.replay $(if $(FAST),--fast) $(if $(SEEDS),--seeds $(SEEDS))

faults: install ## Kill a change after every AWS call; doors that meet; 10,000 spoilt events; grids and many examples; the replay as frozen
	$(RUN) -m bench.faults
	$(RUN) -m bench.meeting
	$(RUN) -m bench.events
	$(RUN) -m bench.poison
	$(SPREAD) -m grid
	$(SPREAD) --hypothesis-profile=many -m hypothesis
	$(RUN) -m tests.frozen.write --check replay

mutants: install ## Mutation tests of the deciding packages; MODULE=recommender/gate for one, SINCE=main for what a branch changed
	$(BIN)/python scripts/mutants.py $(MODULE) $(if $(SINCE),--since $(SINCE))

spot: install ## Replay Spot traces through the policies; TRACES=dir takes other traces, PERTURB=1 changes them
	$(RUN) -m bench.spot$(if $(PERTURB),_perturb) --traces $(or $(TRACES),$(SHARED)/traces/spot) $(if $(WRITE),--write docs/spot-$(if $(PERTURB),other-traces,replay).md)

sandbox: install ## A simulated account with a deployed stack and its history, on loopback; every command can be tried on it
	@$(RUN) -m sandbox

clean: ## Remove what make made
	rm -rf .venv .venv-sam .venv-lambda .venv-lambda-oldest .aws-sam out .mypy_cache .ruff_cache .pytest_cache .hypothesis
