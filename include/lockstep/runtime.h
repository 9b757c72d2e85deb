/*
 * lockstep/runtime.h - a runtime: the logical devices, the seed and the settings.
 *
 * A program that creates none uses the default runtime (NULL everywhere), which has CPU:0
 * with all cores the process may use, or as many devices as LS_DEVICES says. A test may
 * create several: N workers are N runtimes in one process.
 *
 * Threads: any. The devices of a runtime do not change after it is created.
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
    int logical_cpus; /* CPU:0 ... CPU:n-1 share the cores; 0: LS_DEVICES, or 1 */
    int threads;      /* threads of each device; 0: its share of the cores, at least 1 */
    uint64_t seed;    /* of the random operations; used when `seeded` */
    bool seeded;      /* false: LS_SEED, or seed 0 */
    const char *isa;  /* "baseline", "avx2", "avx512": the highest to use; NULL: LS_ISA,
                         or the CPU's */
    bool pin;         /* bind threads to the device's cores */
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
 * Finds a device by any name TensorFlow accepts: "CPU:0", "/cpu:1",
 * "/job:localhost/replica:0/task:0/device:CPU:0". *out is borrowed.
 * LS_INVALID_ARGUMENT: the name cannot be parsed; LS_NOT_FOUND: there is no such device,
 * and the message lists those that exist.
 */
LS_API LS_MUST_USE ls_status ls_runtime_find_device(ls_runtime *rt, const char *name,
                                                    ls_device **out, ls_error *err);

/*
 * Writes the canonical form of a device's name, whether or not the device exists, to
 * `buf` of `size` bytes; missing parts come from `defaults` (NULL:
 * "/job:localhost/replica:0/task:0/device:CPU:0").
 */
LS_API LS_MUST_USE ls_status ls_device_canonicalize(const char *name,
                                                    const char *defaults, char *buf,
                                                    size_t size, ls_error *err);

/* Canonical name: "/job:localhost/replica:0/task:0/device:CPU:0". */
LS_API const char *ls_device_name(const ls_device *device);

/* How many threads its operations use. */
LS_API int ls_device_threads(const ls_device *device);

/* One setting and where its value comes from. All strings belong to the runtime. */
typedef struct ls_setting {
    const char *name;   /* of the environment variable: "LS_ISA" */
    const char *value;  /* the one in effect */
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
