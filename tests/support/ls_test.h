/*
 * The harness: checks that work on any thread, cases that run by name, TAP on stdout.
 *
 *     LST_TEST(a_sentence_stating_the_property) { LST_CHECK(1 + 1 == 2); }
 *     LST_MAIN(LST_CASE(a_sentence_stating_the_property))
 */
#ifndef LS_TEST_H
#define LS_TEST_H
#include "base/base.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern atomic_int lst_failures;

/* The file and line of a check; the functions below count a failure and print them. */
typedef struct lst_place {
    const char *file;
    int line;
    const char *func;
} lst_place;
/* clang-format off */
#define LST_HERE ((lst_place){__FILE__, __LINE__, __func__})
/* clang-format on */

void lst_check(bool ok, lst_place at, const char *text);
void lst_ok(ls_status st, lst_place at, const char *text);
void lst_fails(ls_status st, ls_status want, const ls_error *e, const char *word,
               lst_place at, const char *text);

#define LST_CHECK(cond) lst_check((cond), LST_HERE, #cond)

/* The call succeeds; the name of its status is shown when it does not. */
#define LST_OK(call) lst_ok((call), LST_HERE, #call)

/* The call fails with `code`, and the message in `e` contains `word`. */
#define LST_FAILS(call, code, e, word)                                                   \
    lst_fails((call), (code), &(e), (word), LST_HERE, #call)

/* `got`, the file in an error, is `file`: all of it, or "..." and its end. */
bool lst_same_file(const char *got, const char *file);

/* |a - b| <= atol + rtol * |b|, NaN equal to NaN. */
bool lst_near(double a, double b, double rtol, double atol);

typedef struct lst_case {
    const char *name;
    void (*run)(void);
} lst_case;
int lst_main(int argc, char **argv, const lst_case *cases, size_t n);

/*
 * Calls `fn` with its n-th allocation failing, for n = 1, 2, ... until it succeeds.
 * `fn` returns the status it got; every failure must be LS_RESOURCE_EXHAUSTED.
 */
void lst_every_allocation(ls_status (*fn)(ls_error *err));

/* Deterministic pseudo-random numbers for tests. */
uint64_t lst_random(uint64_t *state);
float lst_random_f32(uint64_t *state, float lo, float hi);

#define LST_TEST(name) static void name(void)
/* clang-format off */
#define LST_CASE(name) {#name, name}
/* clang-format on */
#define LST_MAIN(...)                                                                    \
    int main(int argc, char **argv)                                                      \
    {                                                                                    \
        static const lst_case cases[] = {__VA_ARGS__};                                   \
        return lst_main(argc, argv, cases, LSI_COUNT_OF(cases));                         \
    }
#endif
