/*
 * lockstep/runtime.h - a runtime: logical devices, the seed, registered operations.
 *
 * A program that never makes one uses the default runtime (NULL everywhere), which has
 * CPU:0 with all cores the process may use, or what LS_DEVICES says. Tests make several:
 * N workers are N runtimes in one process.
 *
 * Threads: any. A runtime's devices are fixed when it is made.
 */
#ifndef LS_RUNTIME_H
#define LS_RUNTIME_H

#include "lockstep/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Start from LS_RUNTIME_OPTIONS_INIT; zero means "choose". */
typedef struct ls_runtime_options {
    size_t struct_size;
    int logical_cpus; /* CPU:0 ... CPU:n-1 share the cores; 0: LS_DEVICES, else 1 */
    int threads;      /* threads of each device; 0: its share of the cores, at least 1 */
    uint64_t seed;    /* of the random operations; used when `seeded` */
    bool seeded;      /* false: LS_SEED, else seed 0 */
    const char *isa;  /* "baseline", "avx2", "avx512": the best to use; NULL: LS_ISA, else
                         the CPU's */
    bool pin;         /* threads stay on the device's cores */
} ls_runtime_options;

/* clang-format off */
#define LS_RUNTIME_OPTIONS_INIT {sizeof(ls_runtime_options), 0, 0, 0, false, NULL, false}
/* clang-format on */

LS_API LS_MUST_USE ls_status ls_runtime_create(const ls_runtime_options *opts,
                                               ls_runtime **out, ls_error *err);
LS_API ls_runtime *ls_runtime_retain(ls_runtime *rt);
LS_API void ls_runtime_release(ls_runtime *rt); /* NULL is allowed */

/* Number of logical devices of `rt` (NULL: the default runtime). */
LS_API int ls_runtime_device_count(ls_runtime *rt);

/* The i-th device, borrowed; NULL if there is none. */
LS_API ls_device *ls_runtime_device(ls_runtime *rt, int i);

/*
 * Finds a device by any spelling TensorFlow takes: "CPU:0", "/cpu:1",
 * "/job:localhost/replica:0/task:0/device:CPU:0". Borrowed through `out`.
 * LS_INVALID_ARGUMENT (cannot be parsed), LS_NOT_FOUND (the message lists what exists).
 */
LS_API LS_MUST_USE ls_status ls_runtime_find_device(ls_runtime *rt, const char *name,
                                                    ls_device **out, ls_error *err);

/*
 * The canonical form of a device's name, whether or not there is such a device; missing
 * parts come from `defaults` (NULL: "/job:localhost/replica:0/task:0/device:CPU:0").
 */
LS_API LS_MUST_USE ls_status ls_device_canonicalize(const char *name,
                                                    const char *defaults, char *buf,
                                                    size_t size, ls_error *err);

/* Canonical name: "/job:localhost/replica:0/task:0/device:CPU:0". */
LS_API const char *ls_device_name(const ls_device *device);

/* How many threads its operations use. */
LS_API int ls_device_threads(const ls_device *device);

/* One setting: what the library was told, and by whom. All texts are the runtime's. */
typedef struct ls_setting {
    const char *name;   /* of the environment variable: "LS_ISA" */
    const char *value;  /* in force */
    const char *origin; /* "default", "environment" or "option" */
    const char *help;   /* one line */
} ls_setting;

/* All settings of `rt` (NULL: the default runtime), borrowed; returns how many. */
LS_API size_t ls_settings(ls_runtime *rt, const ls_setting **out);

/* The library's version: "0.1.0". */
LS_API const char *ls_version(void);

#ifdef __cplusplus
}
#endif
#endif /* LS_RUNTIME_H */
