# On a fresh machine with only Python and pip:
#   make demo    install into .venv and solve some problems on the CPU with every strategy
#   make test    install into .venv and run every check: lint, types, import contracts, tests
#   make docs    install into .venv and build the documentation as a site, build/site/index.html, which needs no network
#   make arena   compare every strategy on 1,000 problems of each task, which takes many hours; it resumes
#   make bench   time strategies and caches against plain loops, which takes two hours on a quiet machine
#   make test-kernels    run the tests with the kernels of other processors, which takes an hour or more

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
WORKERS ?= 2
RESULTS ?= docs/results/eval
DEFAULTS ?= docs/results/defaults/results
DRAWN ?= docs/results/figures
EXAMPLE ?= docs/results/example

.PHONY: demo test docs lint types contracts tests test-kernels format overhead bench fuzz load table1 table3 arena eval defaults figures tables retrain clean

demo: $(VENV)/.ready
	$(BIN)/python examples/demo.py

test: lint types contracts tests

docs: $(VENV)/.ready-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

lint: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.ready-dev
	$(BIN)/mypy

contracts: $(VENV)/.ready-dev
	$(BIN)/lint-imports

tests: $(VENV)/.ready-dev
	OMP_NUM_THREADS=1 $(BIN)/pytest -n $(WORKERS) --cov --cov-report=term --cov-report=json:$(VENV)/coverage.json
	$(BIN)/python tests/coverage_floor.py $(VENV)/coverage.json 95 search engine

test-kernels: $(VENV)/.ready-dev
	PYTHON=$(BIN)/python tests/kernels.sh

format: $(VENV)/.ready-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

overhead: $(VENV)/.ready
	$(BIN)/python benchmarks/overhead.py

bench: $(VENV)/.ready
	$(INSTALL) -e '.[plots]'
	$(BIN)/python -m benchmarks.performance

load: $(VENV)/.ready-dev
	$(BIN)/python -m benchmarks.load

fuzz: $(VENV)/.ready-dev
	$(BIN)/python -m benchmarks.fuzz

table1: $(VENV)/.ready
	$(BIN)/python -m benchmarks.table1

table3: $(VENV)/.ready
	$(BIN)/python -m benchmarks.table3

arena: $(VENV)/.ready
	$(INSTALL) -e '.[plots]'
	$(BIN)/python -m benchmarks.arena

eval: $(VENV)/.ready
	$(BIN)/soar eval -m mini-llada -t mini-gsm,mini-code --threshold 0.95 -o $(RESULTS)/table1 --allow-code-execution
	for pair in margin:0.9 neg_entropy:-0.1; do \
	    $(BIN)/soar eval -m mini-llada -t mini-code -s greedy,soar --metric $${pair%:*} --threshold=$${pair#*:} \
	        -o $(RESULTS)/table2/$${pair%:*} --allow-code-execution || exit 1; done
	$(BIN)/soar eval -m mini-dreamon -t mini-infill -s greedy,soar --metric neg_entropy --threshold=-0.1 -n 8,16,32,64 \
	    -o $(RESULTS)/table3 --allow-code-execution
	$(BIN)/soar sweep -m mini-llada -t mini-code --thresholds 0.9,0.95,0.99,0.999 --beams 1,2,4 -o $(RESULTS)/sweep \
	    --figure $(RESULTS)/sweep.svg --allow-code-execution
	$(BIN)/soar tune $(RESULTS)/sweep --beam 2 --forwards 0.67 -o $(RESULTS)/tuned.toml --overwrite
	$(BIN)/soar eval -m mini-llada -t mini-code -s greedy --preset $(RESULTS)/tuned.toml -o $(RESULTS)/tuned \
	    --allow-code-execution

# The decoding defaults of the embedded models, from validation problems. By probability, mini-llada's come from the sweeps
# of table1, which must have been run before.
defaults: $(VENV)/.ready
	$(BIN)/soar tune docs/results/table1/results/*.validation --beam 2 --forwards 0.67 \
	    --save-to-model src/soar_dlm/models/shipped/mini-llada
	for pair in margin:0.9,0.95,0.98,0.99,0.998 neg_entropy:-0.2,-0.1,-0.05,-0.02,-0.01; do \
	    for task in mini-gsm mini-code mini-sudoku; do \
	        $(BIN)/soar sweep -m mini-llada -t $$task --protocol library --metric $${pair%:*} --thresholds=$${pair#*:} \
	            -o $(DEFAULTS)/mini-llada/$${pair%:*}/$$task --allow-code-execution || exit 1; done; \
	    $(BIN)/soar tune $(DEFAULTS)/mini-llada/$${pair%:*}/* --forwards 0.67 \
	        --save-to-model src/soar_dlm/models/shipped/mini-llada || exit 1; done
	for task in mini-gsm mini-code mini-sudoku; do \
	    $(BIN)/soar sweep -m mini-llada -t $$task -s deliberate --thresholds 0.99,0.995,0.998 --protocol library \
	        -o $(DEFAULTS)/mini-llada/deliberate/$$task --allow-code-execution || exit 1; done
	$(BIN)/soar tune $(DEFAULTS)/mini-llada/deliberate/* --forwards 0.67 --save-to-model src/soar_dlm/models/shipped/mini-llada
	for pair in neg_entropy:-0.5,-0.2,-0.1,-0.05,-0.02 probability:0.8,0.9,0.95,0.98,0.99; do \
	    $(BIN)/soar sweep -m mini-dreamon -t mini-infill --metric $${pair%:*} --thresholds=$${pair#*:} \
	        -o $(DEFAULTS)/mini-dreamon/$${pair%:*} --allow-code-execution || exit 1; \
	    $(BIN)/soar tune $(DEFAULTS)/mini-dreamon/$${pair%:*} --forwards 0.67 \
	        --save-to-model src/soar_dlm/models/shipped/mini-dreamon || exit 1; done

# The gallery and the example of a report: about an hour on a core. Blanks of several lengths and the sweep of mini-code
# come from `make eval`.
figures: $(VENV)/.ready
	$(INSTALL) -e '.[plots]'
	$(BIN)/soar eval -m mini-llada -t mini-gsm,mini-code,mini-sudoku -s greedy,adaptive,pbs,pbs-parallel,soar,deliberate \
	    --preset docs/figures/Parallel.toml \
	    --limit 300 --traces -o $(DRAWN)/eval --allow-code-execution
	$(BIN)/soar eval -m mini-dreamon -t mini-infill -s greedy,adaptive,pbs,pbs-parallel,soar,deliberate -n 16 \
	    --preset docs/figures/Parallel.toml \
	    --metric probability --limit 300 --traces -o $(DRAWN)/eval --allow-code-execution
	for task in mini-gsm mini-sudoku; do \
	    $(BIN)/soar sweep -m mini-llada -t $$task --thresholds 0.9,0.95,0.99,0.999 --beams 1,2,4 \
	        -o $(DRAWN)/sweep/$$task || exit 1; done
	$(BIN)/soar sweep -m mini-dreamon -t mini-infill --metric probability --thresholds 0.8,0.9,0.95,0.99 --beams 1,2,4 \
	    -o $(DRAWN)/sweep/mini-infill --allow-code-execution
	$(BIN)/soar eval -m mini-llada -t mini-gsm,mini-code -s greedy,adaptive,soar,deliberate --limit 40 --traces \
	    -o $(EXAMPLE) --allow-code-execution
	$(BIN)/soar plot all $(DRAWN) docs/results/eval/sweep docs/results/eval/table3 -o docs/figures --format svg

tables: $(VENV)/.ready
	for number in 1 2 3; do for format in markdown:md latex:tex json:json; do \
	    $(BIN)/soar table $(RESULTS)/table$$number --table $$number --format $${format%:*} \
	        > $(RESULTS)/table$$number.$${format#*:} || exit 1; done; done

retrain: $(VENV)/.ready
	$(BIN)/python -m benchmarks.retrain
	$(BIN)/python -m benchmarks.retrain --model mini-dreamon

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .coverage build dist

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing into $(VENV); PyTorch is large, this takes a minute or more ..."
	$(INSTALL) -e .
	touch $@

$(VENV)/.ready-docs: $(VENV)/.ready
	$(INSTALL) -e '.[docs]'
	touch $@

$(VENV)/.ready-dev: $(VENV)/.ready
	$(INSTALL) -e '.[dev]'
	touch $@
