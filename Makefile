# `make demo` and `make test` need nothing but Python 3.11 to 3.14: they make a .venv here, and each adds to it what it
# needs. The stamps .venv/.demo, .venv/.notebooks and so on say what is there.
.DEFAULT_GOAL := help
.PHONY: help demo test test-system types lab edit sync notebooks site bundled chat everyday stamp colab gpu results bench faults mutants test-oldest torchtext clean

CANDIDATES := python3 python3.13 python3.12 python3.11 python3.14 python
PYTHON ?= $(shell for p in $(CANDIDATES); do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null && echo $$p && break; done)
# torchtext's last release has wheels for these two and no newer one
PYTHON_OLDEST ?= $(shell for p in python3.11 python3.12 python3 $(PYTHON); do \
	$$p -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))' 2>/dev/null && echo $$p && break; done)
# exact versions; CONSTRAINTS= takes the newest that fit
CONSTRAINTS ?= -c constraints.txt
# uv where it is on the path, pip where it is not; UV= takes pip
UV ?= $(shell uv --version >/dev/null 2>&1 && echo uv)
ifneq ($(UV),)
# what pip was told about where packages are
ifneq ($(PIP_FIND_LINKS),)
export UV_FIND_LINKS ?= $(PIP_FIND_LINKS)
endif
ifneq ($(PIP_INDEX_URL),)
export UV_DEFAULT_INDEX ?= $(PIP_INDEX_URL)
endif
ifneq ($(PIP_EXTRA_INDEX_URL),)
export UV_INDEX ?= $(PIP_EXTRA_INDEX_URL)
export UV_INDEX_STRATEGY ?= unsafe-best-match
endif
ENVIRONMENT = test -x $(1)/bin/python || $(UV) venv --quiet --seed --python "$$($(2) -c 'import sys; print(sys.executable)')" $(1)
INSTALL = $(UV) pip install --quiet --python $(1)/bin/python
else
ENVIRONMENT = $(2) -m venv $(1) || { \
	echo "$(2) could not make a virtual environment. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
INSTALL = $(1)/bin/python -m pip install --quiet --no-compile
endif
# test processes side by side; each computes with one thread, and keeps what it has compiled for the next; the tests
# start nbval themselves, for each notebook
JOBS ?= 2
PYTEST = PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(1)/bin/python -m pytest -p no:nbval -q -n $(JOBS) --dist worksteal

help:  ## what there is
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "%-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv/.demo  ## a Transformer learns to translate, in about four minutes (results in runs/demo/)
	.venv/bin/transformer demo

test: .venv/.notebooks .venv/.bench .venv/.test  ## the house's rules, the unit tests, every notebook
	.venv/bin/python -m ruff check .
	.venv/bin/python -m ruff format --check .
	$(call PYTEST,.venv) -m "not system" tests

test-system: .venv/.notebooks .venv/.bench .venv/.site .venv/.test  ## processes, pages in a browser, the site, long searches: ten minutes
	$(call PYTEST,.venv) -m system tests

types: .venv/.notebooks .venv/.test  ## check the types of the package, a minute or two
	.venv/bin/python -m mypy

lab: .venv/.notebooks  ## JupyterLab for readers: no cell of yours reaches the package
	.venv/bin/python -m jupyterlab --ServerApp.root_dir="$(CURDIR)" --ServerApp.jpserver_extensions="{'jupyterlab_jupytext': False}"

edit: sync  ## JupyterLab for authors: saving either side of a pair updates the other
	.venv/bin/python -m jupyterlab --ServerApp.root_dir="$(CURDIR)" --config=tools/edit_config.py

sync: .venv/.notebooks .venv/.test  ## both sides of each pair equal; the one that changed wins
	.venv/bin/python tools/pairs.py sync

notebooks: .venv/.notebooks .venv/.bench .venv/.test  ## execute the notebooks whose code changed (NAMES="04 05" or NAMES=--all for others)
	.venv/bin/python tools/pairs.py execute $(NAMES)

site: .venv/.notebooks .venv/.site  ## the book as a web site, from the notebooks as they are: site/html/index.html
	.venv/bin/python tools/site/book.py

torchtext: .venv-oldest/.installed  ## execute notebook 90, whose outputs are made with torchtext (torch 2.3.1)
	.venv-oldest/bin/python tools/pairs.py execute 90

bundled: .venv/.demo  ## train the model that comes with the package again (data/models/bundled)
	.venv/bin/python tools/bundle.py

chat: .venv/.demo  ## train the chat bot that comes with the package again (data/models/chat)
	.venv/bin/python tools/chatbot.py

everyday: .venv/.demo  ## train the model of everyday sentences again (data/models/tatoeba), three hours of a core
	.venv/bin/python tools/everyday.py

stamp: .venv/.notebooks .venv/.test  ## the repository's address everywhere: git's origin at GitHub, or REPOSITORY=https://github.com/you/name
	.venv/bin/python tools/stamp.py $(REPOSITORY)

colab: .venv/.notebooks .venv/.test  ## rehearse Colab: notebooks 00, 04, 16 and 19 from a wheel, nothing there replaced; ten minutes
	.venv/bin/python tools/colab.py

gpu: .venv/.demo  ## on a GPU: the speed of training and decoding, stage by stage, kept in data/runs
	.venv/bin/python -m transformer.experiments.gpu

results: .venv/.notebooks  ## the numbers of RESULTS.md, from data/runs
	.venv/bin/python -m transformer.experiments.results

bench: .venv/.notebooks .venv/.bench  ## speed and memory beside nn.Transformer, Marian and CTranslate2, an hour and more
	.venv/bin/transformer bench --record data/runs/bench.json

faults: .venv/.notebooks .venv/.test  ## 10,000 malformed inputs, an hour or two: is each refused in a sentence?
	.venv/bin/python tools/faults.py --jobs $(JOBS)

mutants: .venv/.notebooks .venv/.bench .venv/.site .venv/.test  ## break the package in some 150 places: do the tests notice?
	.venv/bin/python tools/mutants.py --jobs $(JOBS)

test-oldest: .venv-oldest/.installed  ## unit tests, notebooks 03-08 and 90 with torch 2.3.1 and torchtext
	NOTEBOOKS=03-08,90 $(call PYTEST,.venv-oldest) tests

clean:  ## remove the environments
	rm -rf .venv .venv-oldest .venv-colab

.venv/.demo: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" && $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "This needs Python 3.11 or newer, and '$(or $(PYTHON),python3)' is not. Install one, or name it: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@$(call ENVIRONMENT,.venv,$(PYTHON))
	@echo 'Setting up .venv, once; where torch has to be downloaded first, that takes minutes ...'
	@$(call INSTALL,.venv) $(CONSTRAINTS) -e .
	@touch $@

.venv/.notebooks: EXTRAS = notebooks,experiments,images
.venv/.bench: EXTRAS = bench
.venv/.site: EXTRAS = site
.venv/.test: EXTRAS = test
.venv/.notebooks .venv/.bench .venv/.site .venv/.test: .venv/.demo
	@echo 'Adding to .venv, once: $(EXTRAS) ...'
	@$(call INSTALL,.venv) $(CONSTRAINTS) -e '.[$(EXTRAS)]'
	@touch $@

.venv-oldest/.installed: pyproject.toml constraints-oldest.txt
	@test -n "$(PYTHON_OLDEST)" && $(PYTHON_OLDEST) -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))' || { \
	  echo "The oldest torch supported, 2.3.1, needs Python 3.11 or 3.12. Install one, or name it: make $(MAKECMDGOALS) PYTHON_OLDEST=python3.12" >&2; exit 1; }
	@$(call ENVIRONMENT,.venv-oldest,$(PYTHON_OLDEST))
	@echo 'Setting up .venv-oldest, once: some minutes, this torch brings CUDA along on Linux (5 GB) ...'
	@$(call INSTALL,.venv-oldest) -c constraints-oldest.txt -e '.[notebooks,experiments,test,torchtext]'
	@touch $@
