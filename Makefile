# Two commands set everything up on a machine with Python 3.11+, Java 17+ and make:
#   make run    the main job on a snapshot of a real cluster
#   make test   format, lint, type checks and all tests but the slow ones
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
ZIP := build/kassign_spark.zip
# A file at a time in each of two processes, the files in their order.
IN_TWO := --numprocesses 2 --dist loadfile --no-loadscope-reorder
# What has public names, beside the package itself: a page each in the reference.
ROOMS := brokers graph history inputs log plans producer settings simulation

# The versions of PySpark that are tested, and what each is installed with.
VERSIONS := 3.5 4.0 4.1 newest
PYSPARK_newest := >=4.1,<5
CONSTRAINTS_3.5 := tests/versions/constraints-3.5.txt
VERSION_DOCUMENTS := build/versions/documents.jsonl

.PHONY: help run unit test slow versions extremes lint format bench docs zip clean java browser jars python

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: java $(INSTALLED) ## Assign the example fleet, check and measure it, write the plan to build/plan
	@$(BIN)/kassign-spark assign examples/fleet --output build/plan --overwrite

unit: $(INSTALLED) ## The tests without Java, in a minute
	@$(BIN)/pytest -m 'unit and not slow' $(IN_TWO)

test: java browser lint jars ## Format, lint and type checks, then the tests but the slow ones
	@$(BIN)/pytest -m 'not slow' $(IN_TWO)

slow: java browser jars ## The slow tests: clusters, stores, catalogs, installs, all documents, the longest of the rest
	@$(BIN)/pytest -m slow $(IN_TWO)

versions: java ## The library's tests and all commands on each PySpark that is supported (hours)
	@rm -f $(VERSION_DOCUMENTS)
	@for version in $(VERSIONS); do $(MAKE) --no-print-directory versions-$$version || exit; done

extremes: ## The same on the lowest and the newest alone, as CI does
	@$(MAKE) --no-print-directory versions VERSIONS='3.5 newest'

versions-%: documents-% jars
	@build/versions/$*/bin/python -m pytest -m 'spark and not slow and not broker and not process' $(IN_TWO)

documents-%: | python
	@mkdir -p build/versions
	@grep -vE '^(pyspark|py4j|numpy|pandas|pyarrow|ortools|protobuf|grpcio|grpcio-status|googleapis-common-protos)==' constraints.txt \
	  | cat - $(CONSTRAINTS_$*) > build/versions/constraints-$*.txt
	@test -x build/versions/$*/bin/python || $(PYTHON) -m venv build/versions/$*
	@echo "installing PySpark $* into build/versions/$* ..."
	@build/versions/$*/bin/pip install --quiet --upgrade --constraint build/versions/constraints-$*.txt \
	  --editable '.[dev]' 'pyspark$(or $(PYSPARK_$*),==$*.*)'
	@build/versions/$*/bin/python -c 'import pyspark; print("PySpark", pyspark.__version__)'
	@build/versions/$*/bin/python -m tests.versions.documents $(VERSION_DOCUMENTS)

lint: $(INSTALLED) ## Format, lint and type checks only
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

format: $(INSTALLED) ## Format and sort imports
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: java $(INSTALLED) ## Benchmarks beside Kafka's own assignors and Spark's floor (minutes)
	@$(BIN)/python -m tests.benchmarks

zip: ## The package as one file, for spark-submit --py-files
	@$(PYTHON) -c 'import shutil, sys; shutil.make_archive(sys.argv[1], "zip", ".", "kassign_spark")' $(ZIP:.zip=)

docs: $(INSTALLED) ## Reference of the public functions from their docstrings, in build/docs
	@$(BIN)/pdoc --docformat google --no-show-source --output-directory build/docs \
	  kassign_spark $(ROOMS:%=kassign_spark.%) '!kassign_spark[.]\w+[.]'
	@echo "open build/docs/index.html"

clean: ## Remove what make and the tests have built
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache

java:
	@java -version 2>&1 | awk -F '"' '/version/ {split($$2, v, "."); found = (v[1] >= 17)} END {exit !found}' \
	  || { echo "Java 17 or later is needed and was not found: install it (Debian and Ubuntu: apt-get install openjdk-17-jre-headless)" >&2; exit 2; }

# The page of the command report is tested in a real browser; elsewhere those tests are skipped.
browser:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing chromium ..." && apt-get update -qq \
	      && apt-get install -qq -y --no-install-recommends chromium chromium-driver >/dev/null; \
	  else echo "chromium and chromedriver are not installed: tests of the page of report are skipped"; fi; }

# Ivy's cache is no place for two processes at once, so they find it filled.
jars: $(INSTALLED)
	@$(BIN)/python -m tests.kafka.jars

python:
	@$(PYTHON) -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	  || { echo "Python 3.11 or later with venv is needed: install it, or name it: make PYTHON=/path/to/python3.11 ..." >&2; exit 2; }

$(INSTALLED): pyproject.toml constraints.txt | python
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) ..."
	@$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@
