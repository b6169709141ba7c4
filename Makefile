# Makefile of pg_gpusort: PGXS, with the targets of the tests below it.
#
#   make                     build against the pg_config on PATH, and the library
#                            for GPUs where nvcc is found
#   make CUDA=no             without the library for GPUs
#   make CUDA_ARCHS="80 90"  for GPUs of these compute capabilities, or CUDA_ARCHS=all,
#                            instead of the GPUs of this machine, if it has any
#   make PG_CONFIG=/path     build against another PostgreSQL
#   make STRICT=yes          with more warnings, as errors
#   make FAULTS=yes          for tests: with the setting pg_gpusort.debug_fault
#   make POISON=yes          for tests: memory that is handed out is overwritten
#   make install             install into that PostgreSQL
#   make install-emu         install the emulator of the library for GPUs, for tests
#   make installcheck        regression and isolation tests on a running server
#   make check-tap           TAP tests, which start servers of their own; one of them
#                            with PROVE_TESTS=test/t/001_loading.pl
#   make unit                unit tests of src/core under ASan and UBSan
#   make lint                layering, headers, file names, formatting
#   make dist                an archive of the last commit for PGXN, in build/
#   make GPUSORT_COMMIT=...  where git does not tell: the commit that gpusort_version() names
#
# scripts/test does all of this on a machine that has nothing installed yet.

EXTENSION = pg_gpusort
MODULE_big = pg_gpusort
PGFILEDESC = "pg_gpusort - radix sort for queries, index builds and arrays"

# The script of each release, and from each release to the next.  PGXS adds srcdir.
DATA = $(patsubst $(srcdir)/%,%,$(wildcard $(srcdir)/sql/pg_gpusort--*.sql))

# Bottom layer first; src/ has the same order (see docs/design.md).
OBJS = \
	$(WIN32RES) \
	src/core/loser_tree.o \
	src/core/radix_sort.o \
	src/version.o \
	src/settings.o \
	src/reason.o \
	src/loading.o \
	src/work.o \
	src/preload.o \
	src/key/enum_words.o \
	src/key/numeric_words.o \
	src/key/citext_bytes.o \
	src/key/device_key.o \
	src/key/icu_agreement.o \
	src/key/icu_keys.o \
	src/key/locale_tables.o \
	src/key/locale_weights.o \
	src/key/nested_bytes.o \
	src/key/string_pivot.o \
	src/key/find_encoding.o \
	src/key/distrust.o \
	src/key/key_encoding.o \
	src/key/key_plan.o \
	src/key/key_statistics.o \
	src/key/key_comparison.o \
	src/key/order_check.o \
	src/key/plain_strings.o \
	src/service/device_trial.o \
	src/service/devices.o \
	src/service/device_sessions.o \
	src/service/device_parking.o \
	src/service/device_process.o \
	src/service/fault.o \
	src/service/service_client.o \
	src/service/service_shmem.o \
	src/service/service_worker.o \
	src/heap/heap_blocks.o \
	src/heap/heap_columns.o \
	src/heap/heap_rows.o \
	src/heap/page_scan.o \
	src/sort/base/budget.o \
	src/sort/base/group_keys.o \
	src/sort/base/progress.o \
	src/sort/base/row_format.o \
	src/sort/base/sort_stats.o \
	src/sort/base/tuple_rows.o \
	src/sort/base/warm_memory.o \
	src/sort/memory/key_sort.o \
	src/sort/memory/range_splitters.o \
	src/sort/memory/row_store.o \
	src/sort/memory/shared_ranges.o \
	src/sort/memory/shared_sort.o \
	src/sort/memory/shared_view.o \
	src/sort/memory/sorted_ranges.o \
	src/sort/memory/tie_comparisons.o \
	src/sort/memory/tie_sorter.o \
	src/sort/memory/memory_sort.o \
	src/sort/disk/extent_file.o \
	src/sort/disk/sorted_run.o \
	src/sort/disk/run_merge.o \
	src/sort/disk/run_ranges.o \
	src/sort/disk/shared_merge.o \
	src/sort/disk/cpu_sort.o \
	src/sort/gpu/gpu_session.o \
	src/sort/gpu/gpu_sorted_rows.o \
	src/sort/gpu/gpu_ranges.o \
	src/sort/gpu/gpu_rows.o \
	src/sort/team.o \
	src/sort/first_keys.o \
	src/sort/sort_state.o \
	src/sort/sort_rows.o \
	src/sort/sort_input.o \
	src/sort/sort_finish.o \
	src/sort/producer.o \
	src/exec/worker_reports.o \
	src/exec/gpusort_explain.o \
	src/exec/gpusort_private.o \
	src/exec/stock_ties.o \
	src/exec/row_source.o \
	src/exec/sink_node.o \
	src/exec/divided_sort.o \
	src/exec/gpusort_node.o \
	src/exec/incremental_node.o \
	src/exec/limit_bound.o \
	src/exec/packed_rows.o \
	src/exec/percentiles.o \
	src/exec/agg_rows.o \
	src/exec/agg_sort.o \
	src/exec/presorted_agg.o \
	src/plan/divided_paths.o \
	src/plan/input_repeat.o \
	src/plan/key_values.o \
	src/plan/sort_eligibility.o \
	src/plan/sort_cost.o \
	src/plan/agg_paths.o \
	src/plan/setop_paths.o \
	src/plan/sort_paths.o \
	src/plan/window_paths.o \
	src/plan/window_rows.o \
	src/plan/join_paths.o \
	src/plan/plan_columns.o \
	src/plan/plan_swap.o \
	src/index/base/index_build.o \
	src/index/base/leaf_tuples.o \
	src/index/base/page_writer.o \
	src/index/btree/btree_validate.o \
	src/index/btree/btree_loader.o \
	src/index/btree/btree_build.o \
	src/index/gin/gin_rows.o \
	src/index/gin/gin_keys.o \
	src/index/gin/gin_writer.o \
	src/index/gin/gin_build.o \
	src/index/index_hook.o \
	src/sqlfn/advice.o \
	src/sqlfn/array_elements.o \
	src/sqlfn/element_order.o \
	src/sqlfn/array_sort.o \
	src/sqlfn/sort_agg.o \
	src/sqlfn/status.o \
	src/pg_gpusort.o

GPUSORT_VERSION = 1.1.0

PG_CPPFLAGS = -I$(srcdir)/src -I$(srcdir)/cuda -Ibuild -DGPUSORT_VERSION='"$(GPUSORT_VERSION)"'

ifneq ($(filter-out no,$(FAULTS)),)
PG_CPPFLAGS += -DGPUSORT_FAULTS
# What tests load into the server.
OBJS += \
	test/modules/test_c_function.o \
	test/modules/test_custom_scan.o \
	test/modules/test_table_am.o
endif
ifneq ($(filter-out no,$(POISON)),)
PG_CPPFLAGS += -DGPUSORT_POISON
endif

# Calls between the files of the library need no detour then.
PG_CFLAGS = -fvisibility=hidden

# Unused parameters and signs: what PostgreSQL's own headers are full of.  The
# other ones are of clang, for the options and attributes of a server built by gcc.
ifneq ($(filter-out no,$(STRICT)),)
PG_CFLAGS += -Werror -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare \
	-Wno-unknown-warning-option -Wno-ignored-optimization-argument -Wno-ignored-attributes
endif

# Regression tests in sql/ and expected/, isolation tests in test/isolation/.  Their heads say
# what they need.
REGRESS = $(or $(shell $(srcdir)/test/list regress),$(error test/list finds no tests))
ISOLATION = $(or $(shell $(srcdir)/test/list isolation),$(error test/list finds no tests))
# PostgreSQL 16 took the directory of the expected output apart from the input.
ISOLATION_OPTS = --inputdir=test/isolation --outputdir=build/isolation \
	$(if $(filter-out 15,$(MAJORVERSION)),--expecteddir=test/isolation)
REGRESS_PREP = build/isolation
EXTRA_CLEAN = tmp_check build/gpusort_build.h

# Inlining these functions into JIT-compiled expressions gains nothing, and
# the bitcode for it would need the very clang that built the server.
override with_llvm := no

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# A build in another directory has the tree of objects to itself.
ifdef VPATH
MADE_DIRECTORIES := $(shell mkdir -p $(sort $(dir $(OBJS))))
endif

# PGXS tracks headers only for servers built with --enable-depend.
$(OBJS): $(wildcard $(srcdir)/src/*.h $(srcdir)/src/*/*.h $(srcdir)/src/*/*/*.h) \
	$(srcdir)/cuda/gpusort_device.h

# The header changes with the commit, and otherwise not; the version is above.
src/version.o: build/gpusort_build.h $(srcdir)/Makefile
build/gpusort_build.h: FORCE
	@$(srcdir)/scripts/lib/describe-build $@

FORCE:
.PHONY: FORCE

build/isolation:
	mkdir -p $@

# Tests that need no server.
unit:
	$(MAKE) -C $(srcdir)/test/unit

lint: all
	PG_CONFIG='$(PG_CONFIG)' $(srcdir)/test/lint/run

# Named by the version of the distribution, which META.json has.
DIST_VERSION = $(shell sed -n 's/^   "version": "\(.*\)",$$/\1/p' $(srcdir)/META.json)

dist:
	mkdir -p build
	git archive --format=zip --prefix=pg_gpusort-$(DIST_VERSION)/ \
		-o build/pg_gpusort-$(DIST_VERSION).zip HEAD

.PHONY: unit lint dist

# TAP tests of the installed extension, by the recipe of the server's PGXS.  Without
# PostgreSQL's modules for them that recipe tells so and succeeds, hence the checks.
PROVE_TESTS ?= test/t/*.pl

check-tap:
	@if [ "$$(id -u)" -eq 0 ]; then \
		echo 'PostgreSQL does not run as root: call "make check-tap" as the user who owns' \
			'this directory, or "scripts/test tap" as root.' >&2; exit 1; fi
	@if [ '$(enable_tap_tests)' != yes ]; then \
		echo 'The PostgreSQL of $(PG_CONFIG) was configured without --enable-tap-tests.' >&2; exit 1; fi
	@if ! grep -qs debug_fault '$(pkglibdir)/pg_gpusort.so'; then \
		echo 'TAP tests need an installed extension with faults: "make clean", "make FAULTS=yes",' \
			'"make FAULTS=yes install", "make install-emu".' >&2; exit 1; fi
	$(prove_installcheck)

.PHONY: check-tap

# The device library: cuda-lib, cuda-emu, cuda-check and others.
include $(srcdir)/cuda/cuda.mk

# The server opens it from $(pkglibdir).  Not with VPATH, which cuda.mk does without.
ifeq ($(filter-out . ./,$(srcdir))$(filter no,$(CUDA)),)
all: cuda-announce cuda-lib
endif
install: install-cuda
uninstall: uninstall-cuda
clean: cuda-clean

# It takes minutes, and silently so with make -s.
cuda-announce:
ifneq ($(NVCC),)
	@[ -f $(CUDA_LIB) ] || echo 'Building $(CUDA_LIB) for GPUs of compute capability' \
		'$(strip $(CUDA_BUILD_ARCHS)); this takes a while (make CUDA=no leaves it out)'
endif

# Whatever has been built: root may not find nvcc.
install-cuda: all installdirs
	[ ! -f $(CUDA_LIB) ] || $(INSTALL_SHLIB) $(CUDA_LIB) '$(DESTDIR)$(pkglibdir)/'

install-emu: cuda-emu installdirs
	$(INSTALL_SHLIB) $(CUDA_EMU) '$(DESTDIR)$(pkglibdir)/'

uninstall-cuda:
	rm -f '$(DESTDIR)$(pkglibdir)/$(notdir $(CUDA_LIB))' \
		'$(DESTDIR)$(pkglibdir)/$(notdir $(CUDA_EMU))'

.PHONY: cuda-announce install-cuda install-emu uninstall-cuda
