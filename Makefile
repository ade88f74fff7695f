# The front door. Everything here is a short way to CMake, CTest or a script of scripts/.
BUILD ?= build
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
CTEST = ctest --test-dir $(BUILD) --output-on-failure --no-tests=error -j $(JOBS)
# The seed and the counts of the random programs, also when they all agreed.
RANDOM_PROGRAMS = grep -hE '^random programs: .*(SEED|compared|ended)' $(BUILD)/Testing/Temporary/LastTest.log || true
COMPILE = cmake --build $(BUILD) --parallel $(JOBS) --target
# The objects of one checkout are found again in another.
export CCACHE_BASEDIR ?= $(CURDIR)
export CCACHE_NOHASHDIR ?= 1

SINGLE = cpu cuda hip metal vulkan sycl opencl webgpu

.PHONY: help run test test-devices test-server test-page test-python wheel build build-all $(SINGLE:%=build-%) bench format lint fuzz attack show-backends \
        install reset setup build-tests support-table

help:
	@echo "make run            set up, build, list the devices, write text with the default model (fetched once)"
	@echo "make build          the program at $(BUILD)/prism with every backend (the same as build-all)"
	@echo "make build-X        X and the CPU only; X: $(SINGLE)"
	@echo "make test           set up, build, run all tests on what is installed"
	@echo "make test-devices   install every further software device (500 MB), run the device tests on them"
	@echo "make test-server    test prism serve through the official clients, which come from PyPI"
	@echo "make test-page      test the chat page of prism serve in Chromium, which is installed"
	@echo "make wheel          the Python package prismrt as a wheel in $(BUILD)/wheel"
	@echo "make test-python    make the wheel, install it into a fresh environment, run its tests"
	@echo "make support-table  both, then write the tables of docs/support.md from the results"
	@echo "make show-backends  per backend: on or off and by what, what was found, what is missing"
	@echo "make bench          build and run the benches"
	@echo "make format         lay out the sources with clang-format"
	@echo "make fuzz           the parsers under libFuzzer, SECONDS=25 each"
	@echo "make attack         hostile files, servers and command lines: 100 times the rounds (ROUNDS=100), then the fuzzers, SECONDS=120 each"
	@echo "make lint           layout, layers, vendor names, clang-tidy"
	@echo "make install        install to PREFIX (default /usr/local)"
	@echo "make reset          remove the build folder"
	@echo "Switches: PRISM_CUDA=0 make build (also HIP, METAL, VULKAN, SYCL, OPENCL, WEBGPU); CXX=clang++; JOBS=2"

setup:
	@scripts/setup.sh build test python

build build-all:
	@scripts/setup.sh build
	@scripts/configure.sh $(BUILD)
	@$(COMPILE) product

$(SINGLE:%=build-%): build-%:
	@scripts/setup.sh build
	@scripts/configure.sh $(BUILD) $*
	@$(COMPILE) product

# Everything, tests and benches too.
build-tests: setup
	@scripts/configure.sh $(BUILD)
	@$(COMPILE) all

# Text from the default model, which is fetched once (98 MB); PROMPT='...' and RUN_ARGS='...' change it.
PROMPT ?= In two sentences: why is the sky blue?
run: build
	@$(BUILD)/prism devices
	@$(BUILD)/prism run -p "$(PROMPT)" -n 128 --temperature 0 $(RUN_ARGS)

test: build-tests
	@$(CTEST)
	@scripts/count_skips.sh $(BUILD)
	@$(RANDOM_PROGRAMS)
	@scripts/test_python.sh $(BUILD)

# The random programs on OpenCL's devices only: make test has run them on the others. Fewer programs of ops than there:
# Intel's compiler takes 1.5 s for each, and minutes for some products, so of models the one with plain weights.
test-devices: build-tests
	@scripts/setup_devices.sh $(BUILD)/devices.env
	@set -a; . $(abspath $(BUILD))/devices.env; set +a; PRISM_OPS_PROGRAMS=125 $(CTEST) -L device -E 'random|architectures|decode_device|generation|epilogues|speculation'
	@scripts/count_skips.sh $(BUILD)
	@$(BUILD)/prism model fetch smollm2 || echo "test-devices: without the default model its tests on the doubles are skipped"
	@for test in hip_models_device_test metal_double_test; do [ ! -x $(BUILD)/$$test ] || echo $(BUILD)/$$test; done | \
	  xargs -P $(JOBS) -I TEST env TEST --gtest_also_run_disabled_tests --gtest_filter='*DefaultModel*'
	@PRISM_BACKENDS=vulkan,cpu PRISM_VULKAN_VALIDATION=sync $(CTEST) -R 'plans_device_test|in_place_device_test|bounded_device_test'
	@set -a; . $(abspath $(BUILD))/devices.env; set +a; PRISM_BACKENDS=opencl $(CTEST) -L device -R random
	@$(RANDOM_PROGRAMS)
	@set -a; . $(abspath $(BUILD))/devices.env; set +a; $(BUILD)/prism devices --json >$(BUILD)/devices.json && \
	  $(BUILD)/prism check --json >$(BUILD)/check.json && echo "prism check: every kernel is right on every device"
	@scripts/check_webgpu.sh $(BUILD)

# The wheel is linked from the objects of the library in the build folder.
wheel: build
	@scripts/setup.sh python
	@scripts/wheel.sh $(BUILD)

test-python: build
	@scripts/setup.sh python
	@scripts/test_python.sh $(BUILD)

test-server: build
	@scripts/test_server.sh $(BUILD)

test-page: build
	@scripts/setup.sh page
	@$(COMPILE) page_server
	@scripts/test_page.sh $(BUILD)

# The support table of docs/support.md, from the results of the tests on every device.
support-table: test test-devices
	@scripts/update_readme.py table --build $(BUILD)

bench:
	@scripts/setup.sh build
	@scripts/configure.sh $(BUILD)
	@$(COMPILE) benches
	@for bench in $(BUILD)/bench_*; do [ -x "$$bench" ] || continue; echo "== $${bench##*/}"; "$$bench" $(BENCH_ARGS) || exit 1; done

format:
	@scripts/setup.sh lint
	@git ls-files -z '*.h' '*.cpp' | xargs -0 clang-format -i

lint:
	@scripts/setup.sh build test lint
	@scripts/configure.sh $(BUILD)
	@scripts/lint.sh $(BUILD)

fuzz:
	@scripts/fuzz.sh $(or $(SECONDS),25)

# Each attack with 100 times the rounds of make test.
attack:
	@scripts/setup.sh build test fuzz
	@scripts/configure.sh $(BUILD)
	@$(COMPILE) attacks
	@PRISM_ATTACK=$(or $(ROUNDS),100) $(CTEST) --timeout 7200 -R attack
	@scripts/fuzz.sh $(or $(SECONDS),120)

show-backends:
	@scripts/setup.sh build
	@cmake -DBUILD=$(abspath $(BUILD)) -P cmake/show_backends.cmake

install: build
	@cmake --install $(BUILD) --prefix $(or $(PREFIX),/usr/local)

reset:
	@rm -rf $(BUILD) $(BUILD)-pip
