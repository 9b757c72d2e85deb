/*
 * Facts for clang-tidy, which scripts/check-tidy.sh includes before each source: a
 * function that reports a failure does not return LS_OK. Without them the analyzer, which
 * reads one file at a time, follows paths that do not exist.
 */
#ifndef LSI_ANALYZER_H
#define LSI_ANALYZER_H
#include "base/base.h"

static inline ls_status lsi_not_ok(ls_status code)
{
    if (code == LS_OK) {
        __builtin_unreachable();
    }
    return code;
}
#define lsi_fail(...) lsi_not_ok(lsi_fail(__VA_ARGS__))
#define lsi_fail_kind(...) lsi_not_ok(lsi_fail_kind(__VA_ARGS__))
#define lsi_fail_again(...) lsi_not_ok(lsi_fail_again(__VA_ARGS__))
#define lsi_fail_memory(...) lsi_not_ok(lsi_fail_memory(__VA_ARGS__))
#endif
