/* Instruction sets: their names, and the best one of this CPU. */
#include "device/device.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

static const char *const names[LSI_ISA_COUNT] = {
    [LSI_ISA_BASELINE] = "baseline",
    [LSI_ISA_AVX2] = "avx2",
    [LSI_ISA_AVX512] = "avx512",
};

const char *lsi_isa_name(lsi_isa isa)
{
    if (isa == LSI_ISA_REF) {
        return "ref";
    }
    return (int)isa >= 0 && isa < LSI_ISA_COUNT ? names[isa] : "?";
}

bool lsi_isa_from_name(const char *name, lsi_isa *out)
{
    if (strcmp(name, "ref") == 0) {
        *out = LSI_ISA_REF;
        return true;
    }
    for (int i = 0; i < LSI_ISA_COUNT; i++) {
        if (strcmp(name, names[i]) == 0) {
            *out = (lsi_isa)i;
            return true;
        }
    }
    return false;
}

#if defined(__x86_64__)
/* Not every compiler knows "f16c" by name. */
static bool has_f16c(void)
{
    unsigned a, b, c, d;

    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

/* The flags here are those the kernels are compiled with (cmake/LockstepBuild.cmake). */
lsi_isa lsi_isa_best(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
        !has_f16c()) {
        return LSI_ISA_BASELINE;
    }
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")) {
        return LSI_ISA_AVX512;
    }
    return LSI_ISA_AVX2;
#else
    return LSI_ISA_BASELINE; // arm64: every one has NEON and fused multiplication
#endif
}
