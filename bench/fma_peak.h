/*
 * The peak of the cores: a loop of fused multiply-adds only. Every percentage that is
 * printed is relative to this peak, measured in the same run.
 */
#ifndef BENCH_FMA_PEAK_H
#define BENCH_FMA_PEAK_H

/*
 * Float32 GFLOP/s of `threads` cores together in one burst of some milliseconds, with the
 * instruction set `isa` ("avx512", "avx2"; anything else: what every CPU of this
 * architecture has). 0: the threads could not be started or the CPU lacks the set.
 */
double bench_fma_peak(int threads, const char *isa);

/*
 * The best of `bursts` bursts: the peak to compare a measurement made at the same time
 * with.
 */
double bench_fma_peak_best(int threads, const char *isa, int bursts);
#endif
