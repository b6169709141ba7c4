/*
 * emu_schedule.cpp
 *		Runs the threads of a kernel launch as fibers, in a seeded random order.
 *
 * The order depends only on the inputs of the launch and on gpusort_emu::schedule, so that a
 * failure can be repeated.  At most schedule.resident blocks are alive at the same time, as
 * when a grid is larger than the device.  A started block remains resident until all of its
 * threads have ended.  A process runs one launch at a time.
 *
 * A lane that waits at a barrier or in a warp collective is not run until it is released.  A
 * lane that spins yields in the flag functions of portable.cuh and remains runnable.  If for a
 * long time no lane of a resident block has done anything but read flags, the launch is
 * abandoned; on a device it would hang.
 */
#include "emu/cuda_emu.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#ifndef __x86_64__
#include <ucontext.h>
#endif

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define RUNNING_ON_VALGRIND 0
#endif

namespace gpusort_emu
{

Schedule schedule;

namespace
{

constexpr size_t STACK_BYTES = 128 * 1024;
constexpr uint64_t MAX_TURNS_WITHOUT_END = 10 * 1000 * 1000;
constexpr unsigned YIELD_ONE_IN = 16;
/*
 * Maximum of turns per resident warp in which lanes only read flags.  A lane polls YIELD_ONE_IN
 * times per turn, so this is more than twice the number of polls after which a look-back falls
 * back to counting, which is progress.
 */
constexpr uint64_t IDLE_TURNS = 10 * 1000;

#ifdef __x86_64__

struct Context {
	void *stack_pointer = nullptr;
};

extern "C" void gpusort_emu_switch(void **save, void *load);
/* System V: the callee preserves rbx, rbp and r12 to r15; the compiler saves the rest. */
asm(R"(
	.text
	.globl gpusort_emu_switch
	.hidden gpusort_emu_switch
	.type gpusort_emu_switch, @function
gpusort_emu_switch:
	pushq %rbp
	pushq %rbx
	pushq %r12
	pushq %r13
	pushq %r14
	pushq %r15
	movq %rsp, (%rdi)
	movq %rsi, %rsp
	popq %r15
	popq %r14
	popq %r13
	popq %r12
	popq %rbx
	popq %rbp
	ret
	.size gpusort_emu_switch, . - gpusort_emu_switch
)");

void context_prepare(Context *context, char *stack, void (*entry)())
{
	uintptr_t top = ((uintptr_t)stack + STACK_BYTES) & ~(uintptr_t)63;
	void **frame = (void **)top;
	*--frame = nullptr; /* aligns the stack as after a call */
	*--frame = (void *)entry;
	for (int i = 0; i < 6; i++)
		*--frame = nullptr;
	context->stack_pointer = frame;
}

inline void context_switch(Context *save, Context *load)
{
	gpusort_emu_switch(&save->stack_pointer, load->stack_pointer);
}

#else

struct Context {
	ucontext_t context;
};

void context_prepare(Context *context, char *stack, void (*entry)())
{
	getcontext(&context->context);
	context->context.uc_stack.ss_sp = stack;
	context->context.uc_stack.ss_size = STACK_BYTES;
	context->context.uc_link = nullptr;
	makecontext(&context->context, entry, 0);
}

inline void context_switch(Context *save, Context *load)
{
	swapcontext(&save->context, &load->context);
}

#endif

enum LaneState : uint8_t { RUNNABLE, WAITING, ENDED };

struct Block;

struct Warp {
	uint64_t values[32];
	uint64_t results[32];
	uint32_t arrived = 0;
	uint32_t mask = 0;
	uint32_t ended = 0;
	Collective what = SYNC;
	unsigned runnable = 0;
};

struct Lane {
	Context context;
	Block *block = nullptr;
	Warp *warp = nullptr;
	unsigned thread = 0;
	LaneState state = RUNNABLE;
};

struct Block {
	unsigned index = 0;
	unsigned alive = 0;
	unsigned at_barrier = 0;
	unsigned runnable = 0;
	int or_collected = 0;
	int or_result = 0;
	std::vector<Lane> lanes;
	std::vector<Warp> warps;
	std::unique_ptr<uint64_t[]> shared;
};

struct Random {
	uint64_t state;
	uint32_t operator()()
	{
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		return (uint32_t)(state >> 16);
	}
	uint32_t below(uint32_t n)
	{
		return (uint32_t)((uint64_t)(*this)() * n >> 32);
	}
};

struct World {
	Context main;
	Lane *current = nullptr;
	const std::function<void()> *kernel = nullptr;
	unsigned grid = 0;
	unsigned block = 0;
	Random random{88172645463325252ull};
	uint64_t idle_turns = 0; /* turns of warps since a lane did anything but read flags */
	bool broken = false;
	char error[160] = "";
	std::vector<std::unique_ptr<char[]>> stacks;
};

World world;

void set_runnable(Lane *lane)
{
	if (lane->state == WAITING) {
		lane->state = RUNNABLE;
		lane->warp->runnable++;
		lane->block->runnable++;
	}
}

void stop_running(Lane *lane, LaneState state)
{
	lane->state = state;
	lane->warp->runnable--;
	lane->block->runnable--;
}

void switch_to_scheduler()
{
	Lane *lane = world.current;
	context_switch(&lane->context, &world.main);
}

/* Reports the violation of a rule.  Does not return, since the launch is abandoned. */
[[noreturn]] void report_violation(const char *what)
{
	if (!world.broken)
		snprintf(world.error, sizeof world.error, "%s (block %u, thread %u)", what,
				 world.current->block->index, world.current->thread);
	world.broken = true;
	for (;;)
		switch_to_scheduler();
}

/* Must be called when a lane does something that others may be waiting for. */
void record_progress()
{
	world.idle_turns = 0;
}

void release_barrier(Block *block)
{
	block->at_barrier = 0;
	block->or_result = block->or_collected;
	block->or_collected = 0;
	for (Lane &lane : block->lanes)
		set_runnable(&lane);
}

void lane_main()
{
	(*world.kernel)();

	Lane *lane = world.current;
	Block *block = lane->block;
	Warp *warp = lane->warp;
	if (warp->arrived)
		report_violation("a lane ended while others of its warp wait for it in a collective");
	record_progress();
	stop_running(lane, ENDED);
	warp->ended |= 1u << lane->thread % 32;
	block->alive--;
	if (block->alive && block->at_barrier == block->alive)
		release_barrier(block);
	switch_to_scheduler();
	abort(); /* an ended lane is never run */
}

/*
 * Returns the stack of a thread.  valgrind assumes a switch to another stack if the stack
 * pointer moves by more than --max-stackframe, and a call or a return if it moves by less.
 * Under valgrind stacks are therefore further apart.  (Stacks could be registered instead, but
 * valgrind would search all of them at each switch.)
 */
char *stack_of(size_t number)
{
	size_t bytes = RUNNING_ON_VALGRIND ? 4 * STACK_BYTES : STACK_BYTES;

	while (world.stacks.size() <= number)
		world.stacks.emplace_back(new char[bytes]);
	return world.stacks[number].get();
}

std::unique_ptr<Block> start_block(unsigned index, size_t shared_bytes, size_t first_stack)
{
	auto block = std::make_unique<Block>();
	unsigned threads = world.block;
	size_t words = (shared_bytes + 7) / 8;

	block->index = index;
	block->alive = block->runnable = threads;
	block->lanes.resize(threads);
	block->warps.resize((threads + 31) / 32);
	block->shared.reset(new uint64_t[words]);
	for (size_t i = 0; i < words; i++)
		block->shared[i] = 0x9E3779B97F4A7C15ull * (i + 1 + world.random());
	for (unsigned t = 0; t < threads; t++) {
		Lane *lane = &block->lanes[t];
		lane->block = block.get();
		lane->warp = &block->warps[t / 32];
		lane->thread = t;
		lane->warp->runnable++;
		if (t % 32 == 0 && threads - t < 32)
			lane->warp->ended = ~0u << (threads - t);
		context_prepare(&lane->context, stack_of(first_stack + t), lane_main);
	}
	return block;
}

void run_warp(Block *block, unsigned number)
{
	unsigned first = number * 32;
	unsigned count = world.block - first < 32 ? world.block - first : 32;
	unsigned start = world.random.below(count);

	for (unsigned i = 0; i < count && !world.broken; i++) {
		Lane *lane = &block->lanes[first + (start + i) % count];
		if (lane->state != RUNNABLE)
			continue;
		world.current = lane;
		context_switch(&world.main, &lane->context);
	}
	world.idle_turns++;
}

unsigned pick_block(unsigned alive)
{
	if (schedule.favour && world.random.below(8))
		return schedule.favour == 1 ? alive - 1 : 0;
	return world.random.below(alive);
}

} // namespace

bool run_kernel(unsigned grid, unsigned threads, size_t shared_bytes, bool cooperative,
				const std::function<void()> &kernel)
{
	world.kernel = &kernel;
	world.grid = grid;
	world.block = threads;
	world.broken = false;
	world.idle_turns = 0;
	world.random.state = (schedule.seed + 1) * 0x9E3779B97F4A7C15ull;

	unsigned slots = cooperative || !schedule.resident ? grid : schedule.resident;
	std::vector<unsigned> order(grid);
	for (unsigned i = 0; i < grid; i++)
		order[i] = schedule.dispatch == 1 ? grid - 1 - i : i;
	if (schedule.dispatch == 2)
		for (unsigned i = grid; i > 1; i--)
			std::swap(order[i - 1], order[world.random.below(i)]);

	struct Resident {
		std::unique_ptr<Block> block;
		size_t slot;
	};
	std::vector<Resident> alive;
	std::vector<size_t> free_slots;
	for (size_t i = slots < grid ? slots : grid; i-- > 0;)
		free_slots.push_back(i);

	unsigned next = 0;
	uint64_t turns = 0;
	while ((next < grid || !alive.empty()) && !world.broken) {
		while (next < grid && !free_slots.empty()) {
			size_t slot = free_slots.back();
			free_slots.pop_back();
			alive.push_back({start_block(order[next], shared_bytes, slot * threads), slot});
			next++;
		}
		unsigned number = pick_block((unsigned)alive.size());
		Block *block = alive[number].block.get();
		unsigned warps = (unsigned)block->warps.size();
		unsigned warp = world.random.below(warps);
		for (unsigned i = 0; i < warps; i++, warp = (warp + 1) % warps)
			if (block->warps[warp].runnable)
				break;
		unsigned rounds = 1 + world.random.below(3);
		while (rounds-- && block->warps[warp].runnable && !world.broken)
			run_warp(block, warp);
		if (!block->alive) {
			free_slots.push_back(alive[number].slot);
			alive.erase(alive.begin() + number);
			turns = 0;
		} else if (!block->runnable && !world.broken) {
			snprintf(world.error, sizeof world.error,
					 "no thread of a block can continue (block %u)", block->index);
			world.broken = true;
		} else if (world.idle_turns > IDLE_TURNS * warps * alive.size() && !world.broken) {
			snprintf(world.error, sizeof world.error,
					 "all threads poll flags that none of them sets (block %u)", block->index);
			world.broken = true;
		} else if (++turns > MAX_TURNS_WITHOUT_END) {
			snprintf(world.error, sizeof world.error, "the launch does not end (block %u)",
					 block->index);
			world.broken = true;
		}
	}
	world.current = nullptr;
	world.kernel = nullptr;
	if (world.broken)
		world.stacks.clear(); /* AddressSanitizer has poisoned the frames on them */
	return !world.broken;
}

const char *launch_error()
{
	return world.error;
}

dim3 thread_index()
{
	return dim3(world.current->thread, 0, 0);
}

dim3 block_index()
{
	return dim3(world.current->block->index, 0, 0);
}

dim3 block_size()
{
	return dim3(world.block);
}

dim3 grid_size()
{
	return dim3(world.grid);
}

void *shared_memory()
{
	return world.current->block->shared.get();
}

unsigned lane()
{
	return world.current->thread % 32;
}

void yield_now()
{
	switch_to_scheduler();
}

void maybe_yield()
{
	if (world.random.below(YIELD_ONE_IN) == 0)
		switch_to_scheduler();
}

void before_atomic()
{
	record_progress();
	maybe_yield();
}

void barrier()
{
	record_progress();
	Lane *lane = world.current;
	Block *block = lane->block;
	if (++block->at_barrier == block->alive) {
		release_barrier(block);
		return;
	}
	stop_running(lane, WAITING);
	switch_to_scheduler();
}

void trap()
{
	report_violation("a kernel trapped");
}

int barrier_or(int predicate)
{
	Block *block = world.current->block;
	block->or_collected |= predicate != 0;
	barrier();
	return block->or_result;
}

const uint64_t *exchange_values(uint32_t mask, Collective what, uint64_t value)
{
	Lane *lane = world.current;
	Warp *warp = lane->warp;
	uint32_t bit = 1u << lane->thread % 32;

	record_progress();
	if (!(mask & bit))
		report_violation("a lane is not in the mask of its collective");
	if (mask & warp->ended)
		report_violation("a collective names a lane that has ended");
	if (!warp->arrived) {
		warp->what = what;
		warp->mask = mask;
	} else if (warp->what != what || warp->mask != mask)
		report_violation("lanes of a warp are in different collectives");

	warp->values[lane->thread % 32] = value;
	warp->arrived |= bit;
	if (warp->arrived != mask) {
		stop_running(lane, WAITING);
		switch_to_scheduler();
		return warp->results;
	}

	Lane *first = lane - lane->thread % 32;
	warp->arrived = 0;
	for (unsigned i = 0; i < 32; i++) {
		warp->results[i] = mask >> i & 1 ? warp->values[i] : 0;
		if (mask >> i & 1 && first + i != lane)
			set_runnable(first + i);
	}
	return warp->results;
}

} // namespace gpusort_emu
