# A thin front of the CMake presets (CMakePresets.json): what it runs can be typed by hand.
#
#   make train    train a network on Fashion-MNIST and show its test accuracy
#   make test     build and run the tests
#   make check    everything a change must pass besides: style, analysis, sanitizers
#   make bench    measure operations, steps, sums and input    (ARGS="--json" ...)
#   make interop  the tests that want TensorFlow, in a Python of their own (build/venv)
#   make fuzz     feed random bytes to what reads files        (SECONDS=600 each; clang)
#   make random   run random programs                (PROGRAMS=100000 SEED=1 PRESET=asan)
#   make install  install into PREFIX (/usr/local)            (DESTDIR is respected)
#   make format   lay out the sources as .clang-format says
#   make clean    remove build/
#   make help     this list
#
# ARGS go to the program that `train` and `bench` run: make train ARGS="--epochs 1".

PREFIX ?= /usr/local
SECONDS ?= 60
PROGRAMS ?= 10000
SEED ?= 1
PRESET ?= dev
ARGS ?=
TRAIN = build/release/examples/02_fashion_mnist/train
LOCKSTEP = build/release/cli/lockstep
IDX = /usr/share/datasets/fashion-mnist
SHARDS = build/fashion-mnist

help:
	@sed -n '3,15s/^# \{0,1\}//p' Makefile

train: release $(SHARDS)/.made
	$(TRAIN) --data $(SHARDS) $(ARGS)

# The images as TFRecord shards, once.
$(SHARDS)/.made: | release
	@scripts/deps.sh train
	@mkdir -p $(SHARDS)
	$(LOCKSTEP) data convert $(IDX)/train-images-idx3-ubyte.gz $(SHARDS)/train \
	    --labels $(IDX)/train-labels-idx1-ubyte.gz --shards 4
	$(LOCKSTEP) data convert $(IDX)/t10k-images-idx3-ubyte.gz $(SHARDS)/t10k \
	    --labels $(IDX)/t10k-labels-idx1-ubyte.gz
	@touch $@

test:
	@scripts/deps.sh build
	cmake --preset dev
	cmake --build --preset dev
	ctest --preset dev

check:
	@scripts/deps.sh build check
	scripts/check.sh

bench: release
	$(LOCKSTEP) bench op $(ARGS)
	$(LOCKSTEP) bench step $(ARGS)
	$(LOCKSTEP) bench step --replicas 2 $(ARGS)
	$(LOCKSTEP) bench collective $(ARGS)
	$(LOCKSTEP) bench input $(ARGS)

fuzz:
	@scripts/deps.sh build fuzz
	tests/fuzz/run.sh $(SECONDS)

interop:
	@scripts/deps.sh build interop
	scripts/interop.sh

random:
	@scripts/deps.sh build
	cmake --preset $(PRESET)
	cmake --build --preset $(PRESET) --target random_programs
	build/$(PRESET)/tests/random/random_programs --programs $(PROGRAMS) --seed $(SEED) \
	    --cases tests/random/cases

install: release
	cmake --install build/release --prefix $(PREFIX)

release:
	@scripts/deps.sh build
	cmake --preset release -DCMAKE_INSTALL_PREFIX=$(PREFIX)
	cmake --build --preset release

format:
	@scripts/deps.sh check
	scripts/check-format.sh --fix

clean:
	rm -rf build

.PHONY: help train test check bench fuzz interop random install release format clean
