/* A barrier and a flag for threads that spin: what collectives are compared with. */
#ifndef BENCH_SPIN_H
#define BENCH_SPIN_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

static inline void bench_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/*
 * A barrier of `ranks` threads. A thread that waits long yields its core; none waits once
 * `broken` is set.
 */
typedef struct bench_barrier {
    _Alignas(64) atomic_int come;
    _Alignas(64) atomic_int turn;
    atomic_bool broken;
    int ranks;
} bench_barrier;

static inline void bench_meet(bench_barrier *b)
{
    const int turn = atomic_load(&b->turn);
    int looks = 0;

    if (atomic_fetch_add(&b->come, 1) + 1 == b->ranks) {
        atomic_store(&b->come, 0);
        atomic_store(&b->turn, turn + 1);
        return;
    }
    while (atomic_load_explicit(&b->turn, memory_order_acquire) == turn) {
        bench_relax();
        if (++looks % 1024 == 0) {
            if (atomic_load(&b->broken)) {
                return;
            }
            sched_yield();
        }
    }
}

/* A flag in a cache line of its own. */
typedef struct bench_flag {
    _Alignas(64) atomic_uint value;
} bench_flag;

/* `turns` round trips between two threads, `side` 0 or 1, over two flags. */
static inline void bench_ping(bench_flag flags[2], int side, unsigned turns)
{
    const unsigned first = atomic_load(&flags[side].value);
    int looks = 0;

    for (unsigned i = first + 1; i != first + turns + 1; i++) {
        if (side == 0) {
            atomic_store_explicit(&flags[0].value, i, memory_order_release);
        }
        while (atomic_load_explicit(&flags[1 - side].value, memory_order_acquire) != i) {
            bench_relax();
            if (++looks % 1024 == 0) {
                sched_yield(); // both may be on one core
            }
        }
        if (side == 1) {
            atomic_store_explicit(&flags[1].value, i, memory_order_release);
        }
    }
}
#endif
