/*
 * lockstep/info.h - facts about the build, the machine, the optional modules and the
 * operations: what `lockstep info` prints.
 *
 * Threads: any.
 */
#ifndef LS_INFO_H
#define LS_INFO_H

#include "lockstep/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How it was built: "Release", "gcc 12.2.0". Never NULL. */
LS_API const char *ls_info_build(void);
LS_API const char *ls_info_compiler(void);

/* The machine, as far as this process may use it. Start from LS_MACHINE_INIT. */
typedef struct ls_machine {
    size_t struct_size;
    int cores;
    int threads_per_core;
    int numa_nodes;
    size_t l1_bytes, l2_bytes, l3_bytes; /* data caches that a core uses; 0: unknown */
    char model[96];                      /* of the CPU; "" if unknown */
} ls_machine;

/* clang-format off */
#define LS_MACHINE_INIT {sizeof(ls_machine), 0, 0, 0, 0, 0, 0, ""}
/* clang-format on */

/* Fills `out`. Takes some milliseconds: it reads the topology of the machine. */
LS_API LS_MUST_USE ls_status ls_info_machine(ls_machine *out, ls_error *err);

/* The best instruction set of this CPU, and the one that `device` uses: "avx2". */
LS_API const char *ls_info_cpu_isa(void);
LS_API const char *ls_info_device_isa(const ls_device *device);

/* An optional library that is loaded at run time if it is installed. */
typedef struct ls_module {
    const char *name;    /* "oneDNN" */
    const char *purpose; /* what it improves */
    const char *remedy;  /* how to install it */
    bool found;
    bool used; /* false although found: a setting turns it off */
} ls_module;

/*
 * Fills at most `room` modules with their state on `device` (NULL: CPU:0); returns how
 * many modules there are. Loads those that are not loaded yet.
 */
LS_API size_t ls_info_modules(ls_device *device, ls_module *out, size_t room);

/* The name of built-in operation `i`, counted from 0; NULL: there is none. */
LS_API const char *ls_info_operation(size_t i);

#ifdef __cplusplus
}
#endif
#endif /* LS_INFO_H */
