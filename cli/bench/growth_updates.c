/* How updates grow with the variables there are, and with the rows of one. */
#include "cli/bench/growth.h"

#include <stdlib.h>

enum { SLOTTED = 4, COLUMNS = 64, TOUCHED = 8, TABLE = 4096, STEPS = 4 };

/* n variables of four elements, and an optimizer. */
struct model {
    ls_variable **vars, **reversed;
    ls_tensor **grads;
    ls_optimizer *opt;
};

static void open_model(growth_run *r, struct model *m)
{
    const size_t n = (size_t)r->n;

    *m = (struct model){0};
    growth_runtime(r, 1);
    m->vars = (ls_variable **)growth_room(r, n, sizeof(void *));
    m->reversed = (ls_variable **)growth_room(r, n, sizeof(void *));
    m->grads = (ls_tensor **)growth_room(r, n, sizeof(void *));
    GROWTH_TRY(r, ls_adam_create(NULL, &m->opt, &r->err));
    for (size_t i = 0; r->st == LS_OK && i < n; i++) {
        m->vars[i] = growth_variable(r, LS_SHAPE(SLOTTED));
        m->reversed[n - 1 - i] = m->vars[i];
    }
}

static void close_model(growth_run *r, struct model *m)
{
    growth_finish(r);
    for (size_t i = 0; m->vars != NULL && i < (size_t)r->n; i++) {
        ls_variable_release(m->vars[i]);
    }
    ls_optimizer_release(m->opt);
    free((void *)m->vars);
    free((void *)m->reversed);
    free((void *)m->grads);
}

/* The same gradient for all of them. */
static void make_gradients(growth_run *r, struct model *m)
{
    const float ones[SLOTTED] = {1, 1, 1, 1};
    ls_tensor *one =
        r->st == LS_OK ? ls_constant(r->c, LS_F32, LS_SHAPE(SLOTTED), ones) : NULL;

    for (size_t i = 0; r->st == LS_OK && i < (size_t)r->n; i++) {
        m->grads[i] = one;
    }
}

/* Adam has gone `steps` times the same way. */
static void check_moved(growth_run *r, const struct model *m, int steps)
{
    for (size_t i = 0; r->st == LS_OK && i < (size_t)r->n; i++) {
        const float *p = ls_tensor_data(ls_read(r->c, m->vars[i]));

        growth_check(r, p != NULL && p[0] < -0.0009F * (float)steps && p[0] == p[3],
                     "a variable was not updated");
    }
}

static void take_gradients(growth_run *r)
{
    struct model m;

    open_model(r, &m);
    if (r->st == LS_OK) {
        ls_tape *tape = NULL;
        ls_tensor *sum = NULL;

        growth_begin(r);
        tape = ls_tape_open(r->c, NULL);
        for (size_t i = 0; i < (size_t)r->n; i++) {
            ls_tensor *x = ls_read(r->c, m.vars[i]);

            sum = i == 0 ? x : ls_add(r->c, sum, x);
        }
        ls_variable_gradients(r->c, tape, sum, m.vars, (size_t)r->n, m.grads);
        growth_end(r);
        for (size_t i = 0; i < (size_t)r->n; i++) {
            const float *g = m.grads[i] != NULL ? ls_tensor_data(m.grads[i]) : NULL;

            growth_check(r, g != NULL && g[0] == 1, "a gradient is not 1");
        }
    }
    close_model(r, &m);
}

/* The first update of the variables, or a second one in the opposite order. */
static void apply_gradients(growth_run *r, bool second)
{
    struct model m;

    open_model(r, &m);
    make_gradients(r, &m);
    if (r->st == LS_OK) {
        if (second) {
            ls_optimizer_apply(r->c, m.opt, m.grads, m.vars, (size_t)r->n);
        }
        growth_begin(r);
        ls_optimizer_apply(r->c, m.opt, m.grads, second ? m.reversed : m.vars,
                           (size_t)r->n);
        growth_end(r);
        check_moved(r, &m, second ? 2 : 1);
    }
    close_model(r, &m);
}

static void apply_first(growth_run *r)
{
    apply_gradients(r, false);
}

static void apply_reversed(growth_run *r)
{
    apply_gradients(r, true);
}

static void find_slots(growth_run *r)
{
    struct model m;
    bool found = true;

    open_model(r, &m);
    make_gradients(r, &m);
    if (r->st == LS_OK) {
        ls_optimizer_apply(r->c, m.opt, m.grads, m.vars, (size_t)r->n);
        growth_begin(r);
        for (size_t i = 0; i < (size_t)r->n; i++) {
            found = found && ls_optimizer_slot(m.opt, m.vars[i], "velocity") != NULL;
        }
        growth_end(r);
        growth_check(r, found, "a slot is missing");
    }
    close_model(r, &m);
}

/* Eight rows of a table of n, by a gradient that is those rows. */
static void update_rows(growth_run *r)
{
    const int64_t rows[TOUCHED] = {0, 1, 2, 3, 4, 5, 6, 7};
    ls_optimizer *opt = NULL;
    ls_variable *w = NULL;

    growth_runtime(r, 1);
    w = growth_variable(r, LS_SHAPE(r->n, COLUMNS));
    GROWTH_TRY(r, ls_sgd_create(NULL, &opt, &r->err));
    growth_begin(r);
    for (int step = 0; r->st == LS_OK && step < STEPS; step++) {
        ls_tape *tape = ls_tape_open(r->c, NULL);
        ls_tensor *x = NULL, *g = NULL;

        x = ls_variable_gather(r->c, w,
                               ls_constant(r->c, LS_I64, LS_SHAPE(TOUCHED), rows));
        ls_variable_gradients(r->c, tape, ls_sum(r->c, x, NULL, 0, false), &w, 1, &g);
        ls_optimizer_apply(r->c, opt, &g, &w, 1);
        growth_finish(r);
    }
    growth_end(r);
    if (r->st == LS_OK) {
        const float *p = ls_tensor_data(ls_read(r->c, w));

        growth_check(r, p != NULL && p[0] < 0 && p[(size_t)TOUCHED * COLUMNS] == 0,
                     "other rows were updated");
    }
    growth_finish(r);
    ls_optimizer_release(opt);
    ls_variable_release(w);
}

static void scatter_one(growth_run *r, ls_variable *v, int64_t row)
{
    const float ones[COLUMNS] = {[0] = 1, [COLUMNS - 1] = 1};

    ls_variable_scatter_in_place(r->c, v, LS_SCATTER_ADD,
                                 ls_constant(r->c, LS_I64, LS_SHAPE(1), &row),
                                 ls_constant(r->c, LS_F32, LS_SHAPE(1, COLUMNS), ones));
}

static void check_row(growth_run *r, ls_variable *v, float x)
{
    const float *p = r->st == LS_OK ? ls_tensor_data(ls_read(r->c, v)) : NULL;

    growth_check(r, p != NULL && p[0] == x && p[1] == 0 && p[COLUMNS - 1] == x,
                 "a row was not added to");
}

/* One row into a table of n. */
static void scatter_into(growth_run *r)
{
    ls_variable *v = NULL;

    growth_runtime(r, 1);
    v = growth_variable(r, LS_SHAPE(r->n, COLUMNS));
    growth_begin(r);
    for (int step = 0; r->st == LS_OK && step < STEPS; step++) {
        scatter_one(r, v, 0);
        growth_finish(r);
    }
    growth_end(r);
    check_row(r, v, STEPS);
    growth_finish(r);
    ls_variable_release(v);
}

/* One row n times into a table of 1 MiB, in one step. */
static void scatter_often(growth_run *r)
{
    ls_variable *v = NULL;

    growth_runtime(r, 1);
    v = growth_variable(r, LS_SHAPE(TABLE, COLUMNS));
    if (r->st == LS_OK) {
        growth_begin(r);
        for (int64_t i = 0; i < r->n; i++) {
            scatter_one(r, v, 0);
        }
        growth_end(r);
    }
    check_row(r, v, (float)r->n);
    growth_finish(r);
    ls_variable_release(v);
}

const growth_case growth_of_updates[] = {
    {"gradients", "variables", 128, 2048, GROWTH_LINEAR_TIME, GROWTH_LINEAR,
     GROWTH_LINEAR, 0, take_gradients},
    {"first apply", "variables", 128, 2048, GROWTH_LINEAR_TIME, GROWTH_LINEAR,
     GROWTH_LINEAR, 0, apply_first},
    {"reversed apply", "variables", 128, 8192, GROWTH_LINEAR_TIME, GROWTH_LINEAR,
     GROWTH_LINEAR, 0, apply_reversed}, // fewer stay in the caches
    {"slots", "variables", 128, 2048, GROWTH_LINEAR_TIME, 0, 0, 0, find_slots},
    {"sparse update", "rows of the table", 1024, 1 << 14, GROWTH_FLAT_TIME, GROWTH_FLAT,
     GROWTH_FLAT, 0, update_rows},
    {"scatter", "rows of the table", 1024, 1 << 14, GROWTH_FLAT_TIME, GROWTH_FLAT,
     GROWTH_FLAT, 0, scatter_into},
    {"scatters", "scatters in a step", 8, 32, GROWTH_LINEAR_TIME, GROWTH_LINEAR,
     GROWTH_LINEAR, 16 << 10, scatter_often},
    {0},
};
