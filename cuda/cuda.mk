# cuda.mk
#	Builds the device library: for GPUs if nvcc is found, and its emulator everywhere.
#
# The top Makefile includes it.  It also works alone, from the top of the tree:
#	make -f cuda/cuda.mk cuda-check
#
# Targets:
#	cuda-lib		pg_gpusort_cuda.so, for the GPUs of this machine or for CUDA_ARCHS; only
#						prints a line if there is no nvcc
#	cuda-emu		pg_gpusort_emu.so
#	cuda-check		all tests on the emulator
#	cuda-check-quick	a part of them
#	cuda-check-asan		the same part under ASan and UBSan
#	cuda-check-bugs		the test of the tests: they detect planted bugs
#	cuda-check-exports	what the libraries export and need; CUDA's only if there is nvcc
#	cuda-check-ptx		no kernel compiles to nothing, and code for the oldest GPUs can be
#						compiled for the newer ones; only if there is nvcc
#	cuda-check-gpu		all tests on the GPU
#	cuda-check-jit		a part of them with code for the oldest GPUs, which the driver
#						compiles for a newer one when it loads the library
#	cuda-bench		the benchmark against CUB, and the tuning program
#	cuda-clean

CUDA_OUT ?= build/cuda
NVCC ?= $(or $(shell command -v nvcc 2>/dev/null),$(wildcard /usr/local/cuda/bin/nvcc))
CUDA_CXX ?= g++
CUDA_CXXFLAGS ?= -O2 -g

# CUDA_ARCHS is the list of architectures, to which PTX is added for later ones.  "all" are those
# that both the toolkit and the kernels support.  The default is what the last build was for, so
# that "make install" does not build again, or else the GPUs of this machine, or else all.
CUDA_KNOWN_ARCHS = 75 80 86 89 90 100 110 120
CUDA_OLDEST = $(firstword $(CUDA_KNOWN_ARCHS))
CUDA_ALL_ARCHS = $(filter $(CUDA_KNOWN_ARCHS),$(subst sm_,,$(shell $(NVCC) --list-gpu-code 2>/dev/null)))
CUDA_GPU_ARCHS = $(subst .,,$(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null))
CUDA_ARCHS_FILE = $(CUDA_OUT)/archs
CUDA_ARCHS ?= $(or $(shell cat $(CUDA_ARCHS_FILE) 2>/dev/null),$(CUDA_ARCHS_HERE),all)
# Nothing if the machine has a GPU for which there is no code of its own.
CUDA_ARCHS_HERE = $(if $(filter-out $(CUDA_ALL_ARCHS),$(CUDA_GPU_ARCHS)),,$(filter $(CUDA_GPU_ARCHS),$(CUDA_ALL_ARCHS)))
CUDA_BUILD_ARCHS = $(if $(filter all,$(CUDA_ARCHS)),$(CUDA_ALL_ARCHS),$(CUDA_ARCHS))
CUDA_GENCODE = $(foreach arch,$(CUDA_BUILD_ARCHS),-gencode=arch=compute_$(arch),code=sm_$(arch)) \
	$(addprefix -gencode=arch=compute_,$(addsuffix $(comma)code=compute_$(lastword $(CUDA_BUILD_ARCHS)),$(lastword $(CUDA_BUILD_ARCHS))))
comma := ,

# Compresses the code to two thirds, which drivers before those of CUDA 13 may not read, and
# compiles the kernels of a file in parallel.
CUDA_MAJOR = $(shell $(NVCC) --version | sed -nE 's/.* release ([0-9]+)\..*/\1/p')
CUDA_13_FLAGS = $(if $(filter-out 10 11 12,$(CUDA_MAJOR)),-compress-mode size --split-compile 0)

CUDA_WARNINGS = -Wall -Wextra -Wno-unknown-pragmas
CUDA_FLAGS = -std=c++17 -Icuda $(CUDA_WARNINGS) -fvisibility=hidden -fPIC -fno-exceptions -fno-rtti
CUDA_NVCCFLAGS = -std=c++17 -O3 -Icuda $(CUDA_GENCODE) $(CUDA_13_FLAGS) -cudart static -lineinfo --threads 0 \
	-Xcompiler "-fvisibility=hidden,-fPIC,-fno-exceptions,-Wall"

CUDA_SOURCES = cuda/sorter.cu cuda/device.cu cuda/health.cu cuda/array_sort.cu cuda/segments.cu cuda/session.cu \
	cuda/session_memory.cu cuda/session_sort.cu cuda/session_deliver.cu cuda/api.cu
CUDA_EMU_SOURCES = cuda/emu/emu_schedule.cpp cuda/emu/emu_runtime.cpp
CUDA_TEST_SOURCES = $(wildcard cuda/test/*.cpp)
CUDA_HEADERS = $(wildcard cuda/*.h cuda/*.cuh cuda/emu/*.h cuda/test/*.h cuda/bench/*.h cuda/bench/*.cuh)

CUDA_LIB = $(CUDA_OUT)/pg_gpusort_cuda.so
CUDA_EMU = $(CUDA_OUT)/pg_gpusort_emu.so
CUDA_EMU_ASAN = $(CUDA_OUT)/asan/pg_gpusort_emu.so
CUDA_TEST = $(CUDA_OUT)/device_test
CUDA_TEST_ASAN = $(CUDA_OUT)/asan/device_test
CUDA_BENCH = $(CUDA_OUT)/sort_bench
CUDA_TUNE = $(CUDA_OUT)/sweep_tune
CUDA_SESSION_BENCH = $(CUDA_OUT)/session_bench
# Callers in C may pass any number as an enum.  Tests do, and expect a status.
CUDA_SANITIZE = -fsanitize=address,undefined -fno-sanitize=enum -fno-sanitize-recover=undefined -fno-omit-frame-pointer

.PHONY: cuda-lib cuda-emu cuda-check cuda-check-bugs cuda-check-quick cuda-check-asan \
	cuda-check-exports cuda-check-ptx cuda-check-gpu cuda-check-jit cuda-bench cuda-clean \
	cuda-always

ifeq ($(NVCC),)
cuda-lib:
	@echo "Without the library for GPUs, which needs nvcc: sorts run on the CPU"
cuda-bench cuda-check-ptx cuda-check-gpu cuda-check-jit:
	@echo "Without $@, which needs nvcc"
else
cuda-lib: $(CUDA_LIB)
cuda-bench: $(CUDA_BENCH) $(CUDA_TUNE) $(CUDA_SESSION_BENCH) $(CUDA_LIB)
cuda-check-gpu: $(CUDA_LIB) $(CUDA_TEST)
	$(CUDA_TEST) $(CUDA_LIB)
cuda-check-jit: $(CUDA_TEST)
	$(MAKE) -f cuda/cuda.mk CUDA_OUT=$(CUDA_OUT)/old CUDA_ARCHS=$(CUDA_OLDEST) cuda-lib
	$(CUDA_TEST) $(CUDA_OUT)/old/pg_gpusort_cuda.so --quick
cuda-check-ptx: $(CUDA_SOURCES:cuda/%.cu=$(CUDA_OUT)/ptx/%.ptx)
	cuda/test/check-ptx $^
	for arch in $(filter-out $(CUDA_OLDEST),$(CUDA_ALL_ARCHS)); do for file in $^; do \
		$(dir $(NVCC))ptxas -arch=sm_$$arch $$file -o $(CUDA_OUT)/ptx/code || exit; done; done
cuda-check-exports: $(CUDA_LIB)
endif

cuda-emu: $(CUDA_EMU)

cuda-check: $(CUDA_EMU) $(CUDA_TEST)
	$(CUDA_TEST) $(CUDA_EMU)
	GPUSORT_EMU_PTX=$(CUDA_OLDEST) $(CUDA_TEST) $(CUDA_EMU)

cuda-check-bugs: $(CUDA_EMU) $(CUDA_TEST)
	$(CUDA_TEST) $(CUDA_EMU) --bugs

cuda-check-quick: $(CUDA_EMU) $(CUDA_TEST)
	$(CUDA_TEST) $(CUDA_EMU) --quick
	GPUSORT_EMU_PTX=$(CUDA_OLDEST) $(CUDA_TEST) $(CUDA_EMU) --quick schedules sessions
	GPUSORT_EMU_NO_POOLS=1 $(CUDA_TEST) $(CUDA_EMU) --quick faults sessions

cuda-check-exports: $(CUDA_EMU)
	cuda/test/check-exports $^

cuda-check-asan: $(CUDA_EMU_ASAN) $(CUDA_TEST_ASAN)
	$(CUDA_TEST_ASAN) $(CUDA_EMU_ASAN) --quick

# Changes only if the list does, and all objects are compiled again then.
$(CUDA_ARCHS_FILE): cuda-always
	@mkdir -p $(@D)
	@echo '$(CUDA_ARCHS)' | cmp -s - $@ || echo '$(CUDA_ARCHS)' >$@

# CUDA: one object for each source file, linked with the static runtime.
$(CUDA_OUT)/%.o: cuda/%.cu $(CUDA_HEADERS) cuda/cuda.mk $(CUDA_ARCHS_FILE)
	@mkdir -p $(@D)
	$(NVCC) $(CUDA_NVCCFLAGS) -c $< -o $@

$(CUDA_OUT)/ptx/%.ptx: cuda/%.cu $(CUDA_HEADERS) cuda/cuda.mk
	@mkdir -p $(@D)
	$(NVCC) -std=c++17 -O3 -Icuda -arch=compute_$(CUDA_OLDEST) -ptx $< -o $@

$(CUDA_LIB): $(CUDA_SOURCES:cuda/%.cu=$(CUDA_OUT)/%.o) cuda/exports.map
	$(NVCC) -shared -cudart static $(CUDA_GENCODE) $(filter %.o,$^) -o $@ -Xlinker --exclude-libs,ALL \
		-Xlinker --version-script=cuda/exports.map -Xcompiler -static-libstdc++,-static-libgcc

$(CUDA_BENCH): $(CUDA_OUT)/bench/sort_bench.o $(CUDA_OUT)/sorter.o
	$(NVCC) -cudart static $(CUDA_GENCODE) $^ -o $@

$(CUDA_SESSION_BENCH): cuda/bench/session_bench.cpp cuda/gpusort_device.h cuda/cuda.mk
	@mkdir -p $(@D)
	$(CUDA_CXX) $(CUDA_CXXFLAGS) -std=c++17 -Icuda $(CUDA_WARNINGS) $< -o $@ -ldl

$(CUDA_TUNE): $(CUDA_OUT)/bench/sweep_tune.o
	$(NVCC) -cudart static $(CUDA_GENCODE) $^ -o $@

# Emulator: the same sources, compiled as C++.
define cuda_emu_rules
$(1)/emu/%.o: cuda/%.cu $$(CUDA_HEADERS) cuda/cuda.mk
	@mkdir -p $$(@D)
	$$(CUDA_CXX) $$(CUDA_CXXFLAGS) $$(CUDA_FLAGS) $(2) -x c++ -c $$< -o $$@

$(1)/emu/%.o: cuda/emu/%.cpp $$(CUDA_HEADERS) cuda/cuda.mk
	@mkdir -p $$(@D)
	$$(CUDA_CXX) $$(CUDA_CXXFLAGS) $$(CUDA_FLAGS) $(2) -c $$< -o $$@

$(1)/pg_gpusort_emu.so: $$(CUDA_SOURCES:cuda/%.cu=$(1)/emu/%.o) $$(CUDA_EMU_SOURCES:cuda/emu/%.cpp=$(1)/emu/%.o) cuda/exports.map
	$$(CUDA_CXX) $(2) -shared $$(filter %.o,$$^) -o $$@ -Wl,--version-script=cuda/exports.map

$(1)/test/%.o: cuda/test/%.cpp $$(CUDA_HEADERS) cuda/cuda.mk
	@mkdir -p $$(@D)
	$$(CUDA_CXX) $$(CUDA_CXXFLAGS) -std=c++17 -Icuda $$(CUDA_WARNINGS) $(2) -c $$< -o $$@

$(1)/device_test: $$(CUDA_TEST_SOURCES:cuda/test/%.cpp=$(1)/test/%.o)
	$$(CUDA_CXX) $(2) $$^ -o $$@ -ldl
endef

$(eval $(call cuda_emu_rules,$(CUDA_OUT),))
$(eval $(call cuda_emu_rules,$(CUDA_OUT)/asan,$(CUDA_SANITIZE)))

cuda-clean:
	rm -rf $(CUDA_OUT)
