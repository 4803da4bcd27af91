# The front door: `make lab` for learners, `make test` for maintainers, `make grader` for instructors.
#
# Everything is installed into .venv, to the exact versions of binder/constraints.txt.
#   PYTHON=python3.12     another Python (3.11 to 3.14)
#   LAB_ARGS="--port 9000 --no-browser"     more for JupyterLab
#   FUZZ_ARGS="grader/tests/sandbox/test_codec.py" more for pytest: which properties, how many processes
#   WITHOUT="browser index sandbox"               tests that this system can never run, to be left out of `make test`

PYTHON ?= python3
LAB_ARGS ?=
FUZZ_ARGS ?= tests
WITHOUT ?=
# What a test waits for takes no core: three share two of them, and where there are more cores more do. Without such
# tests one fewer is faster.
CORES := $(shell nproc 2>/dev/null || sysctl -n hw.ncpu 2>/dev/null || echo 2)
PROCESSES ?= $(shell echo $$(($(CORES) < 8 ? $(CORES) + 1 : 8)))

VENV := .venv
RUN := $(VENV)/bin/python

# JupyterLab refuses to run as root unless it is told to, and without a display there is no browser to open.
# It prints the address in either case.
AS_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)
NO_DISPLAY := $(if $(filter Darwin,$(shell uname -s)),,$(if $(DISPLAY)$(WAYLAND_DISPLAY),,--no-browser))
JUPYTERLAB := $(RUN) -m jupyterlab $(AS_ROOT) $(NO_DISPLAY)

# Programs start faster where Python may keep what it has compiled.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help lab test test-lab test-doctor test-grader check lint mypy types pytest fuzz build grader formgrader bench
.PHONY: validation docs docs-links site
.PHONY: lite dist clean
.DELETE_ON_ERROR:

help:
	@echo "make lab         open the lab in JupyterLab"
	@echo "make test        install what is missing, and run every check and test"
	@echo "make test-lab, test-doctor, test-grader   run the tests of one house"
	@echo "make check       run what takes a minute, and starts no other program than Python"
	@echo "make fuzz        search for examples that break a property, until one is found or you stop it"
	@echo "make build       derive the notebooks from solutions/*/*.py, and the tables of the documents"
	@echo "make grader      install what grades a class: nbgrader and starvelab grade"
	@echo "make formgrader  open nbgrader's formgrader on the course folder"
	@echo "make bench       run the benchmarks"
	@echo "make validation  print how far the model is from published measurements, and draw it"
	@echo "make docs        build the site into docs/_build/html"
	@echo "make docs-links  check the site's links to other sites"
	@echo "make site        build the site with the lab in it, for a browser that has installed nothing"
	@echo "make dist        build what is published into dist/, and test it"
	@echo "make clean       remove .venv and caches; notebooks and predictions stay"

# A folder of the learner's own, which git ignores: what is written there stands in the way of no git pull.
lab: $(VENV)/lab.installed
	$(RUN) -m starvelab lab --folder "$(CURDIR)/starvelab-lab" $(LAB_ARGS)

# A sandbox only reads the cache: where the images are missing, it would draw them anew for each student, 5 s each.
IMAGES := from starvelab.measure.samples import KINDS, photos; [photos(size) for size in KINDS]

grader: $(VENV)/grade.installed
	@$(RUN) -c '$(IMAGES)'
	@echo 'Ready. Next: export PATH="$(CURDIR)/$(VENV)/bin:$$PATH"'

formgrader: $(VENV)/grade.installed $(VENV)/lab.installed
	$(JUPYTERLAB) --ServerApp.root_dir="$(CURDIR)" --LabApp.default_url=/formgrader $(LAB_ARGS)

# Each house alone, in an environment that has what this house stands on: `make clean` first, to see it fail without.
test-lab: TESTS := tests
test-doctor: TESTS := doctor/tests
test-grader: TESTS := grader/tests
test-lab test-doctor test-grader: test-%: $(VENV)/test-%.installed
	@$(MAKE) --no-print-directory pytest PYTEST_ARGS="$(TESTS)"

# What the system lacks is found out first: nothing is installed in vain. What takes no second core goes on beside
# the tests.
test:
	@PYTHON="$(PYTHON)" WITHOUT="$(WITHOUT)" tests/system.sh
	@$(MAKE) --no-print-directory $(VENV)/test.installed
	@$(MAKE) --no-print-directory --jobs 2 lint types pytest

check: $(VENV)/test.installed
	@$(MAKE) --no-print-directory --jobs 3 PROCESSES=$$(($(PROCESSES) - 1)) WITHOUT="browser index sandbox programs" \
		PYTEST_ARGS="--hypothesis-profile few" lint mypy pytest

lint:
	$(RUN) -m ruff check .
	$(VENV)/bin/lint-imports
	$(RUN) solutions/build.py --check

mypy:
	$(RUN) -m mypy

types: mypy
	$(VENV)/bin/basedpyright --warnings

# tests/selection.py says which tests share a process, and in what order they run.
SPACE := $(subst ,, )
SELECTED = $(if $(WITHOUT),-m "not ($(subst $(SPACE), or ,$(strip $(WITHOUT))))")
pytest:
	$(RUN) -m pytest --numprocesses $(PROCESSES) --dist loadscope --no-loadscope-reorder $(SELECTED) $(PYTEST_ARGS)

# Round after round of examples that nobody has seen; Ctrl+C ends it. What it finds becomes an @example of its test.
fuzz: $(VENV)/test.installed
	while $(RUN) -m pytest -q -m hypothesis --hypothesis-profile fuzz --timeout 0 $(FUZZ_ARGS); do :; done; exit 1

build: $(VENV)/grade.installed
	$(RUN) solutions/build.py
	$(RUN) docs/build.py

bench: $(VENV)/test.installed
	$(RUN) -m benchmarks

validation: $(VENV)/test.installed
	$(RUN) -m benchmarks.validation --left-out --picture docs/pictures/how-right.svg
	@echo "The picture is docs/pictures/how-right.svg"

# The notebooks are run again only when one has changed, or what they import: that is what the cache is for.
docs: $(VENV)/docs.installed
	$(RUN) docs/build.py --check
	$(RUN) -m sphinx --fail-on-warning --keep-going --builder html docs docs/_build/html
	$(RUN) docs/check_links.py docs/_build/html
	@echo "Open docs/_build/html/index.html"

docs-links: $(VENV)/docs.installed
	$(RUN) -m sphinx --keep-going --builder linkcheck docs docs/_build/linkcheck

# The documents, and in them the lab as pages that any file server serves. npm brings Pyodide's core.
site: docs lite
	@echo "Serve docs/_build/html: python3 -m http.server --directory docs/_build/html"

lite: $(VENV)/site.installed
	$(RUN) lite/build.py docs/_build/html/lite

# Each distribution that is published, and the tests of what people will install.
# A notebook in labs/ that somebody has run must not be in a wheel.
dist: $(VENV)/test.installed
	rm -rf dist
	$(RUN) solutions/build.py --check
	for folder in $$($(RUN) -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['tool']['starvelab']['published'])"); do \
		$(RUN) -m build --outdir dist "$$folder" || exit 1; done
	STARVELAB_DIST="$(CURDIR)/dist" $(RUN) -m pytest -q tests/test_packaging.py

clean:
	rm -rf $(VENV) dist docs/_build docs/learners .pytest_cache .ruff_cache .mypy_cache .hypothesis .import_linter_cache
	find starvelab doctor grader solutions tests -name __pycache__ -prune -exec rm -rf {} +

# One stamp for each extra of pyproject.toml. An environment remembers where it stood: in a checkout that has moved
# it is made anew, and where its Python is gone.
CHECKOUT := $(shell cat $(VENV)/checkout 2>/dev/null)
ifneq ($(CHECKOUT),)
ifneq ($(CHECKOUT)$(shell test -x $(RUN) || echo gone),$(CURDIR))
MOVED := moved
endif
endif
.PHONY: moved

$(VENV)/%.installed: pyproject.toml doctor/pyproject.toml grader/pyproject.toml binder/requirements.txt binder/constraints.txt $(MOVED)
	@[ -z "$(MOVED)" ] && $(RUN) -c "import pip, sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))" 2>/dev/null || { \
		command -v "$(PYTHON)" >/dev/null || { \
			echo "make installs starvelab for Python 3.11 to 3.14, and there is no $(PYTHON) here."; \
			echo "Install it, or name another: make PYTHON=/path/to/python3.13 lab"; exit 1; }; \
		"$(PYTHON)" -c "import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))" || { \
			echo "make installs starvelab for Python 3.11 to 3.14, and $(PYTHON) is $$("$(PYTHON)" --version 2>&1)."; \
			echo "Name another: make PYTHON=/path/to/python3.13 lab"; exit 1; }; \
		"$(PYTHON)" -c "import ensurepip, venv" 2>/dev/null || { \
			echo "starvelab installs into a virtual environment, and $(PYTHON) cannot make one."; \
			echo "On Debian and Ubuntu: sudo apt-get install python3-venv"; exit 1; }; \
		"$(PYTHON)" -m venv --clear $(VENV); }
	@echo "Installing starvelab with its extra '$*' into $(VENV). The first time takes a minute."
	@binder/install.sh $(VENV) "$*"
	@echo "$(CURDIR)" > $(VENV)/checkout
	@touch $@
