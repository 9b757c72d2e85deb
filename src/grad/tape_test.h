/* What the tests of tapes share: a step, small tensors, and looking at them. */
#ifndef LSI_TAPE_TEST_H
#define LSI_TAPE_TEST_H
#include "lockstep/lockstep.h" // only the public headers: a tape as programs see it
#include "ls_test.h"

static ls_context *c;
static ls_error err;

static inline void open_step(void)
{
    err = (ls_error)LS_ERROR_INIT;
    LST_OK(ls_context_open(NULL, NULL, &c, &err));
}

/* Ends the step, which went well. */
static inline void close_step(void)
{
    LST_OK(ls_context_finish(c, &err));
    if (err.code != LS_OK) {
        (void)fprintf(stderr, "  %s (%s:%d)\n", err.message, err.file, err.line);
    }
    ls_context_close(c);
    c = NULL;
}

static inline ls_tensor *vector(size_t n, const double *values)
{
    return ls_constant(c, LS_F64, LS_SHAPE((int64_t)n), values);
}
#define VECTOR(...)                                                                      \
    vector(sizeof((const double[]){__VA_ARGS__}) / sizeof(double),                       \
           (const double[]){__VA_ARGS__})

static inline ls_tensor *scalar(double value)
{
    return ls_constant(c, LS_F64, LS_SCALAR, &value);
}

static inline ls_tape *persistent_tape(void)
{
    ls_tape_options o = LS_TAPE_OPTIONS_INIT;

    o.persistent = true;
    return ls_tape_open(c, &o);
}

/* True if `t` is float64 with these elements, to 1e-12. */
static inline bool holds(const ls_tensor *t, size_t n, const double *want)
{
    double got[16];

    if (t == NULL || ls_tensor_dtype(t) != LS_F64 || ls_tensor_count(t) != (int64_t)n ||
        ls_tensor_read(t, got, n * sizeof *got, NULL) != LS_OK) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (!lst_near(got[i], want[i], 1e-12, 1e-12)) {
            (void)fprintf(stderr, "  element %zu is %.15g, not %.15g\n", i, got[i],
                          want[i]);
            return false;
        }
    }
    return true;
}
#define HOLDS(t, ...)                                                                    \
    holds(t, sizeof((const double[]){__VA_ARGS__}) / sizeof(double),                     \
          (const double[]){__VA_ARGS__})

/* The step has failed with `code`, at `file` and `line`, with a word. */
static inline bool failed_in(const char *file, ls_status code, int line, const char *word)
{
    ls_error e = LS_ERROR_INIT;

    (void)!ls_context_finish(c, &e);
    if (e.code != code || e.line != line || !lst_same_file(e.file, file) ||
        strstr(e.message, word) == NULL) {
        (void)fprintf(stderr, "  got %s \"%s\" at %s:%d, not %s at line %d\n",
                      ls_status_name(e.code), e.message, e.file, e.line,
                      ls_status_name(code), line);
        return false;
    }
    return true;
}
#define failed_at(code, line, word) failed_in(__FILE__, code, line, word)

static inline ls_tensor *cube(ls_tensor *x)
{
    return ls_mul(c, ls_mul(c, x, x), x);
}
#endif
