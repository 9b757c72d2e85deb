/*
 * Loops of fused multiply-adds, one per instruction set, and the threads that run them.
 */
#include "bench/fma_peak.h"

#include "bench/bench_clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { MAX_THREADS = 256, CHAINS = 12 };

typedef double (*burst_fn)(long rounds);

/*
 * Twelve independent chains hide the latency of the unit (4 or 5 cycles, two a cycle).
 * The compiler contracts each line to one instruction and, without -ffast-math, may not
 * shorten the chain. Returns the seconds of `rounds` rounds.
 */
#define DEFINE_BURST(name, target, bytes)                                                \
    target static double name(long rounds)                                               \
    {                                                                                    \
        typedef float vec __attribute__((vector_size(bytes)));                           \
        vec x = {0}, y = {0}, a[CHAINS];                                                 \
        volatile float sink;                                                             \
        float sum = 0;                                                                   \
        double start;                                                                    \
                                                                                         \
        x += 0.999F;                                                                     \
        y += 0.001F;                                                                     \
        for (int i = 0; i < CHAINS; i++) {                                               \
            a[i] = x + (float)i;                                                         \
        }                                                                                \
        start = bench_now();                                                             \
        for (long r = 0; r < rounds; r++) {                                              \
            a[0] = a[0] * x + y;                                                         \
            a[1] = a[1] * x + y;                                                         \
            a[2] = a[2] * x + y;                                                         \
            a[3] = a[3] * x + y;                                                         \
            a[4] = a[4] * x + y;                                                         \
            a[5] = a[5] * x + y;                                                         \
            a[6] = a[6] * x + y;                                                         \
            a[7] = a[7] * x + y;                                                         \
            a[8] = a[8] * x + y;                                                         \
            a[9] = a[9] * x + y;                                                         \
            a[10] = a[10] * x + y;                                                       \
            a[11] = a[11] * x + y;                                                       \
        }                                                                                \
        start = bench_now() - start;                                                     \
        for (int i = 0; i < CHAINS; i++) {                                               \
            sum += a[i][0];                                                              \
        }                                                                                \
        sink = sum;                                                                      \
        (void)sink;                                                                      \
        return start;                                                                    \
    }

DEFINE_BURST(burst_baseline, , 16)
#if defined(__x86_64__)
DEFINE_BURST(burst_avx2, __attribute__((target("avx2,fma"))), 32)
DEFINE_BURST(burst_avx512, __attribute__((target("avx512f"))), 64)
#endif

struct burst {
    burst_fn fn;
    int lanes;
    long rounds;
    atomic_int go;
    double gflops[MAX_THREADS];
};

struct member {
    struct burst *burst;
    int index;
    pthread_t thread;
};

static void run_part(struct burst *b, int index)
{
    const double seconds = b->fn(b->rounds);

    b->gflops[index] = 2.0 * CHAINS * b->lanes * (double)b->rounds / seconds * 1e-9;
}

static void *run_member(void *arg)
{
    struct member *m = arg;

    while (atomic_load(&m->burst->go) == 0) {
    }
    run_part(m->burst, m->index);
    return NULL;
}

/* Chooses the loop of an instruction set; false: this CPU does not have it. */
static int choose_burst(struct burst *b, const char *isa)
{
    b->fn = burst_baseline;
    b->lanes = 4;
#if defined(__x86_64__)
    if (strcmp(isa, "avx2") == 0) {
        b->fn = burst_avx2;
        b->lanes = 8;
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    }
    if (strcmp(isa, "avx512") == 0) {
        b->fn = burst_avx512;
        b->lanes = 16;
        return __builtin_cpu_supports("avx512f") != 0;
    }
#else
    (void)isa;
#endif
    return 1;
}

double bench_fma_peak(int threads, const char *isa)
{
    struct member members[MAX_THREADS];
    struct burst b;
    int started = 1;
    double sum = 0;

    memset(&b, 0, sizeof b);
    if (threads < 1 || threads > MAX_THREADS || !choose_burst(&b, isa)) {
        return 0;
    }
    b.rounds = 8000000 / b.lanes; // about 2 ms at 100 GFLOP/s
    atomic_init(&b.go, 0);
    for (; started < threads; started++) {
        members[started].burst = &b;
        members[started].index = started;
        if (pthread_create(&members[started].thread, NULL, run_member,
                           &members[started]) != 0) {
            break;
        }
    }
    atomic_store(&b.go, 1);
    run_part(&b, 0);
    for (int i = 1; i < started; i++) {
        pthread_join(members[i].thread, NULL);
    }
    for (int i = 0; i < started; i++) {
        sum += b.gflops[i];
    }
    return started == threads ? sum : 0;
}

double bench_fma_peak_best(int threads, const char *isa, int bursts)
{
    double best = 0;

    for (int i = 0; i < bursts; i++) {
        const double got = bench_fma_peak(threads, isa);

        best = got > best ? got : best;
    }
    return best;
}
