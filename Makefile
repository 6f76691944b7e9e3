# Every setting of the template may be given as a variable, under its environment
# name: make run MAX_BODY_BYTES=1000. Make itself hands what stands on its command
# line on to the programs that it starts.

# A key is the last line that `make key` prints, also where another make has called it.
MAKEFLAGS += --no-print-directory

.DEFAULT_GOAL := help
.SUFFIXES:
.PHONY: help run database key keys revoke forget redrive test lint fmt bench load smoke validate build clean

PIP_INSTALL := -I -m pip install --quiet --disable-pip-version-check --no-compile

help: ## Show this
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: .venv/run ## Serve the agent on http://127.0.0.1:3000 (AGENT=slow, PORT=, DB_PORT=, DYNAMODB_ENDPOINT=, any setting)
	@exec .venv/bin/python -m local gateway

# AGENT=slow is the one that works for SECONDS= in the background; AGENT=module:Class is any other. Only on the
# command line: there are shells that have an AGENT of their own.
ifeq ($(origin AGENT),command line)
run: export A2A_AGENT = $(if $(filter slow,$(AGENT)),report_writer:ReportWriter,$(AGENT))
endif

database: .venv/run ## Serve the embedded DynamoDB, SQS and KMS alone, for several gateways (DB_PORT=, DB_HOST=)
	@exec .venv/bin/python -m local database

# On the database at DB_PORT, at DYNAMODB_ENDPOINT, or of a deployed stack with STACK=name.

key: .venv/run ## Make an API key and print it (CALLER=name, DAYS=n; STACK= of a deployed stack)
	@exec .venv/bin/python -m admin key

keys: .venv/run ## List the API keys (STACK=)
	@exec .venv/bin/python -m admin keys

revoke: .venv/run ## End an API key (KEY=id, STACK=)
	@exec .venv/bin/python -m admin revoke

forget: .venv/run ## Delete a caller's tasks, keys and markers (CALLER=name or OWNER=owner, STACK=)
	@exec .venv/bin/python -m admin forget

redrive: .venv/run ## Put dead letters back into their queues (STACK=)
	@exec .venv/bin/python -m admin redrive

test: lint .venv-sam/made ## Check everything (THOROUGH=1: and more of each kind, for some minutes more)
	.venv/bin/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile $(if $(THOROUGH),-m "")

lint: .venv/test ## Check style and types
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

fmt: .venv/test ## Format the code
	.venv/bin/ruff check --fix-only --quiet .
	.venv/bin/ruff format .

bench: .venv/test ## Measure
	.venv/bin/python -m bench

load: .venv/run ## Have many callers at once, then check the database (CALLERS=, SECONDS=, REQUESTS=, RATE=)
	@exec .venv/bin/python -m load

smoke: .venv/run ## Walk an agent through the protocol, deployed or local (URL=, KEY=, TEXT=, WEBHOOK=)
	@exec .venv/bin/python -m smoke

validate: .venv/validate ## Check a card with a2aops, a public validator (URL=)
	@exec .venv/bin/a2aops card check "$${URL:-http://127.0.0.1:3000}"

# A .pyc that is never compared with its source: Lambda's disk cannot be written to, and times change on the way there.
build: .venv-sam/made ## Build for `sam deploy`, with compiled code, which starts faster (CONFIG_ENV=x86_64)
	PATH="$(CURDIR)/.venv-sam/bin:$$PATH" sam build --config-env $(or $(CONFIG_ENV),default)
	.venv-sam/bin/python3.13 -m compileall -q --invalidation-mode unchecked-hash .aws-sam/build

clean: ## Remove all that was made
	rm -rf .venv .venv-sam .aws-sam .hypothesis .mypy_cache .pytest_cache .ruff_cache tests/interop/javascript/node_modules
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The environments. Each is made anew when what it is made from changes.

# What the agent brings along, if it brings anything.
OF_AGENT := $(wildcard layers/agent/requirements.txt)

.venv/run: requirements/run.txt requirements/constraints.txt layers/dependencies/requirements.txt $(OF_AGENT)
	@echo "Making .venv, once …"
	@rm -rf .venv
	@python=$$(local/find_python at-least 3.11) && "$$python" -I -m venv .venv
	@.venv/bin/python $(PIP_INSTALL) -r requirements/run.txt $(OF_AGENT:%=-r %)
	@touch $@

.venv/test: .venv/run requirements/test.txt
	@echo "Adding the test tools to .venv, once …"
	@.venv/bin/python $(PIP_INSTALL) -r requirements/test.txt
	@touch $@

.venv/validate: .venv/run requirements/validate.txt
	@.venv/bin/python $(PIP_INSTALL) -r requirements/validate.txt
	@touch $@

# SAM and Lambda's runtime for the tests of the template and the runtime: in Python
# 3.13 as on Lambda, or in the Python there is, and then the tests that need 3.13 skip.
.venv-sam/made: requirements/sam.txt requirements/sam-constraints.txt
	@echo "Making .venv-sam, once …"
	@rm -rf .venv-sam
	@python=$$(local/find_python exactly 3.13 2>/dev/null || local/find_python at-least 3.11) && \
		"$$python" -I -m venv .venv-sam
	@.venv-sam/bin/python $(PIP_INSTALL) -r requirements/sam.txt
	@touch $@
