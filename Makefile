# `make demo` and `make test` need nothing but Python 3.11 to 3.14: they make a .venv here and fill it.
.DEFAULT_GOAL := help
.PHONY: help demo test types lab sync notebooks site bundled chat everyday stamp gpu results bench faults mutants test-oldest torchtext clean

CANDIDATES := python3 python3.13 python3.12 python3.11 python3.14 python
PYTHON ?= $(shell for p in $(CANDIDATES); do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null && echo $$p && break; done)
# torchtext's last release has wheels for these two and no newer one
PYTHON_OLDEST ?= $(shell for p in python3.11 python3.12 python3 $(PYTHON); do \
	$$p -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))' 2>/dev/null && echo $$p && break; done)
# exact versions; CONSTRAINTS= takes the newest that fit
CONSTRAINTS ?= -c constraints.txt
# test processes side by side; each computes with one thread
JOBS ?= 2
PYTEST = OMP_NUM_THREADS=1 $(1)/bin/python -m pytest -q -n $(JOBS) --dist worksteal

help:  ## what there is
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "%-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv/.installed  ## a Transformer learns to translate, in about four minutes (results in runs/demo/)
	.venv/bin/transformer demo

test: .venv/.installed  ## the house's rules, the unit tests, every notebook
	.venv/bin/python -m ruff check .
	.venv/bin/python -m ruff format --check .
	$(call PYTEST,.venv) tests

types: .venv/.installed  ## check the types of the package, a minute or two
	.venv/bin/python -m mypy

lab: sync  ## JupyterLab; saving either side of a pair updates the other
	.venv/bin/python -m jupyterlab --ServerApp.root_dir="$(CURDIR)"

sync: .venv/.installed  ## both sides of each pair equal; the newer one wins
	.venv/bin/python tools/pairs.py sync

notebooks: .venv/.installed  ## execute the notebooks whose code changed (NAMES="04 05" or NAMES=--all for others)
	.venv/bin/python tools/pairs.py execute $(NAMES)

site: .venv/.installed  ## the book as a web site, from the notebooks as they are: site/html/index.html
	.venv/bin/python tools/site/book.py

torchtext: .venv-oldest/.installed  ## execute notebook 90, whose outputs are made with torchtext (torch 2.3.1)
	.venv-oldest/bin/python tools/pairs.py execute 90

bundled: .venv/.installed  ## train the model that comes with the package again (data/models/bundled)
	.venv/bin/python tools/bundle.py

chat: .venv/.installed  ## train the chat bot that comes with the package again (data/models/chat)
	.venv/bin/python tools/chatbot.py

everyday: .venv/.installed  ## train the model of everyday sentences again (data/models/tatoeba), three hours of a core
	.venv/bin/python tools/everyday.py

stamp: .venv/.installed  ## a new address everywhere (REPOSITORY=https://github.com/you/name; else pyproject.toml's)
	.venv/bin/python tools/stamp.py $(REPOSITORY)

gpu: .venv/.installed  ## on a GPU: the speed of training and decoding, stage by stage, kept in data/runs
	.venv/bin/python -m transformer.experiments.gpu

results: .venv/.installed  ## RESULTS.md from data/runs
	.venv/bin/python -m transformer.experiments.results

bench: .venv/.installed  ## speed and memory beside nn.Transformer, Marian and CTranslate2, an hour and more
	.venv/bin/transformer bench --record data/runs/bench.json

faults: .venv/.installed  ## 10,000 malformed inputs, an hour or two: is each refused in a sentence?
	.venv/bin/python tools/faults.py --jobs $(JOBS)

mutants: .venv/.installed  ## break the package in some 150 places: do the tests notice?
	.venv/bin/python tools/mutants.py --jobs $(JOBS)

test-oldest: .venv-oldest/.installed  ## unit tests, notebooks 03-08 and 90 with torch 2.3.1 and torchtext
	NOTEBOOKS=03-08,90 $(call PYTEST,.venv-oldest) tests

clean:  ## remove both environments
	rm -rf .venv .venv-oldest

.venv/.installed: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" && $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "This needs Python 3.11 or newer, and '$(or $(PYTHON),python3)' is not. Install one, or name it: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv .venv || { \
	  echo "$(PYTHON) could not make a virtual environment. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@echo 'Setting up .venv, once: some minutes, torch is a large download ...'
	@.venv/bin/python -m pip install --quiet $(CONSTRAINTS) -e '.[notebooks,experiments,images,test,site,bench]'
	@touch $@

.venv-oldest/.installed: pyproject.toml constraints-oldest.txt
	@test -n "$(PYTHON_OLDEST)" && $(PYTHON_OLDEST) -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))' || { \
	  echo "The oldest torch supported, 2.3.1, needs Python 3.11 or 3.12. Install one, or name it: make $(MAKECMDGOALS) PYTHON_OLDEST=python3.12" >&2; exit 1; }
	@$(PYTHON_OLDEST) -m venv .venv-oldest || { \
	  echo "$(PYTHON_OLDEST) could not make a virtual environment. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@echo 'Setting up .venv-oldest, once: some minutes, this torch brings CUDA along on Linux (5 GB) ...'
	@.venv-oldest/bin/python -m pip install --quiet -c constraints-oldest.txt -e '.[notebooks,experiments,test,torchtext]'
	@touch $@
