/* Settings of a runtime: from options, else the environment, else defaults. */
#ifndef LSI_SETTINGS_H
#define LSI_SETTINGS_H
#include "device/device.h"

/* name, one line of help: every setting the library reads, in the order it is shown. */
#define LSI_SETTING_MAP(X)                                                               \
    X(DEVICES, "number of logical CPUs, CPU:0 ... CPU:n-1, that share the cores")        \
    X(THREADS, "threads of each device; 0: its share of the cores")                      \
    X(ISA, "best instruction set to use: ref, baseline, avx2, avx512")                   \
    X(SEED, "seed of the random operations")                                             \
    X(PIN, "1: threads stay on the cores of their device")                               \
    X(DNNL, "1: the oneDNN module is used, 0: it is not")                                \
    X(SPIN_US, "microseconds a thread spins for work before it sleeps")                  \
    X(COMM_ALGORITHM, "of reductions: auto, direct, tree, hierarchical, ring")           \
    X(COMM_TIMEOUT_MS, "milliseconds a collective waits for ranks; -1: no timeout")

typedef enum lsi_setting {
#define LSI_SETTING_ENUM(name, help) LSI_SETTING_##name,
    LSI_SETTING_MAP(LSI_SETTING_ENUM)
#undef LSI_SETTING_ENUM
        LSI_SETTING_COUNT
} lsi_setting;

typedef struct lsi_settings {
    int devices;
    int threads; /* 0: the share of the cores */
    lsi_isa isa;
    uint64_t seed;
    bool pin;
    bool dnnl;
    ls_setting shown[LSI_SETTING_COUNT]; /* values point into `text` */
    char text[LSI_SETTING_COUNT][24];
} lsi_settings;

/*
 * Fills *out, which then must not move. `opts` may be NULL. With `lenient` a setting of
 * the environment that is not valid is logged and ignored instead of failing.
 * LS_INVALID_ARGUMENT names the setting, its value and the choices.
 */
ls_status lsi_settings_resolve(const ls_runtime_options *opts, bool lenient,
                               lsi_settings *out, ls_error *err);
#endif
