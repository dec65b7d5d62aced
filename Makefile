# The front door. CMake does the building; this file knows the few commands that people need.
# `make help` lists them.

MAKEFLAGS += --no-print-directory
BUILD   ?= build
JOBS    ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX  ?= /usr/local
SECONDS ?= 20

# Settings that `make test` and CI hand on: WERROR=1, CUDA=OFF, CUDA_ARCHS=90a-real, CMAKE_FLAGS=...
FLAGS := $(if $(WERROR),-DLATENT_WERROR=ON) $(if $(CUDA),-DLATENT_CUDA=$(CUDA)) \
         $(if $(CUDA_ARCHS),"-DLATENT_CUDA_ARCHS=$(CUDA_ARCHS)") $(CMAKE_FLAGS)
PROGRAM := $(BUILD)/latent

.PHONY: all demo test check sanitize fuzz format install clean help
all:
	@tools/install-deps --check
	cmake -S . -B $(BUILD) -DCMAKE_INSTALL_PREFIX=$(PREFIX) $(FLAGS)
	cmake --build $(BUILD) -j $(JOBS) --target latent latent_static latent_shared

demo:
	@tools/install-deps
	@$(MAKE) all
	@tools/demo $(PROGRAM) $(BUILD)/demo

test:
	@tools/install-deps --test
	cmake -S . -B $(BUILD) -DLATENT_TESTS=ON -DCMAKE_INSTALL_PREFIX=$(PREFIX) $(FLAGS)
	cmake --build $(BUILD) -j $(JOBS)
	ctest --test-dir $(BUILD) --output-on-failure -j 2

check:
	@tools/install-deps --style
	@tools/check-style

sanitize:
	@tools/install-deps --test
	cmake -S . -B build-asan -DLATENT_TESTS=ON -DLATENT_CUDA=OFF -DLATENT_SANITIZE=address,undefined
	cmake --build build-asan -j $(JOBS)
	ctest --test-dir build-asan --output-on-failure -j 2

fuzz:
	@tools/install-deps --fuzz
	cmake -S . -B build-fuzz -DCMAKE_C_COMPILER=clang -DLATENT_FUZZ=ON
	cmake --build build-fuzz -j $(JOBS)
	tools/run-fuzz build-fuzz $(SECONDS)

format:
	@tools/install-deps --style
	tools/list-sources | xargs $$(command -v clang-format-14 || echo clang-format) -i

install: all
	cmake --install $(BUILD) --prefix $(PREFIX)

clean:
	rm -rf $(BUILD) build-asan build-fuzz build-cuda

help:
	@echo "make            build $(PROGRAM) and the libraries"
	@echo "make demo       install what is missing, build, run the whole way in small and write a report"
	@echo "make test       install what is missing, build, run all tests"
	@echo "make check      style: format, include law, lengths"
	@echo "make sanitize   all tests under AddressSanitizer and UndefinedBehaviorSanitizer"
	@echo "make fuzz       every fuzz target for SECONDS=$(SECONDS) seconds each (clang)"
	@echo "make format     let clang-format rewrite the sources"
	@echo "make install    install under PREFIX=$(PREFIX)"
	@echo "make clean      remove the build folders"
