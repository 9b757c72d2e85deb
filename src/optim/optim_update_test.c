/*
 * Tests of the update loops of every instruction set, of updates of parts of variables,
 * and of slots made by another function.
 */
#include "optim_test.h"

enum { MOST = 70, ARRAYS = 5 };

static const lsi_update_table *table_of(lsi_isa isa)
{
    ls_device dev = {.isa = isa};

    return lsi_update_for(&dev);
}

/* w, three slots that are not negative, g. */
typedef struct arrays {
    float a[ARRAYS][MOST];
} arrays;

typedef void (*kernel)(const lsi_update_table *t, arrays *x, float *w_out, size_t n);

static void sgd(const lsi_update_table *t, arrays *x, float *w_out, size_t n)
{
    t->sgd(w_out, x->a[0], x->a[4], n, 0.1f);
}

static void momentum(const lsi_update_table *t, arrays *x, float *w_out, size_t n)
{
    t->momentum(w_out, x->a[0], x->a[1], x->a[4], n, 0.1f, 0.9f, false);
}

static void nesterov(const lsi_update_table *t, arrays *x, float *w_out, size_t n)
{
    t->momentum(w_out, x->a[0], x->a[1], x->a[4], n, 0.1f, 0.9f, true);
}

static void adam(const lsi_update_table *t, arrays *x, float *w_out, size_t n)
{
    t->adam(w_out, x->a[0], x->a[1], x->a[2], NULL, x->a[4], n, 0.1f, 0.9, 0.999, 1e-7f);
}

static void amsgrad(const lsi_update_table *t, arrays *x, float *w_out, size_t n)
{
    t->adam(w_out, x->a[0], x->a[1], x->a[2], x->a[3], x->a[4], n, 0.1f, 0.9, 0.999,
            1e-7f);
}

static void rmsprop(const lsi_update_table *t, arrays *x, float *w_out, size_t n)
{
    t->rmsprop(w_out, x->a[0], x->a[1], NULL, NULL, x->a[4], n, 0.1f, 0.9, 0.5f, 1e-2f);
}

static void rmsprop_momentum(const lsi_update_table *t, arrays *x, float *w_out, size_t n)
{
    t->rmsprop(w_out, x->a[0], x->a[1], x->a[2], NULL, x->a[4], n, 0.1f, 0.9, 0.5f,
               1e-2f);
}

static void rmsprop_centered(const lsi_update_table *t, arrays *x, float *w_out, size_t n)
{
    t->rmsprop(w_out, x->a[0], x->a[1], NULL, x->a[3], x->a[4], n, 0.1f, 0.9, 0.5f,
               1e-2f);
}

static void rmsprop_both(const lsi_update_table *t, arrays *x, float *w_out, size_t n)
{
    t->rmsprop(w_out, x->a[0], x->a[1], x->a[2], x->a[3], x->a[4], n, 0.1f, 0.9, 0.5f,
               1e-2f);
}

static void adagrad(const lsi_update_table *t, arrays *x, float *w_out, size_t n)
{
    t->adagrad(w_out, x->a[0], x->a[1], x->a[4], n, 0.1f, 1e-7f);
}

static void decay(const lsi_update_table *t, arrays *x, float *w_out, size_t n)
{
    t->decay(w_out, x->a[0], n, 0.2f, 0.1f);
}

static void axpy(const lsi_update_table *t, arrays *x, float *w_out, size_t n)
{
    memcpy(w_out, x->a[0], sizeof x->a[0]);
    t->axpy(w_out, x->a[4], n, 0.3f);
}

static const kernel KERNELS[] = {
    sgd,     momentum,         nesterov,         adam,         amsgrad, rmsprop,
    adagrad, rmsprop_momentum, rmsprop_centered, rmsprop_both, decay,   axpy};

/*
 * The mean square is larger than the square of any mean, so no difference is rounding
 * error only.
 */
static void fill_arrays(arrays *x, uint64_t random)
{
    static const float low[ARRAYS] = {-2, 5, 0.5f, 0.5f, -2};
    static const float high[ARRAYS] = {2, 6, 2, 2, 2};

    for (int k = 0; k < ARRAYS; k++) {
        for (int i = 0; i < MOST; i++) {
            x->a[k][i] = lst_random_f32(&random, low[k], high[k]);
        }
    }
}

/* Compares everything the kernel may write, and what is behind it, which it must not. */
static void compare_arrays(const arrays *got, const float *w_got, const arrays *want,
                           const float *w_want, size_t n)
{
    for (size_t i = 0; i < MOST; i++) {
        const double tolerance = i < n ? 2e-6 : 0;

        LST_CHECK(lst_near((double)w_got[i], (double)w_want[i], tolerance, tolerance));
        for (int k = 0; k < ARRAYS; k++) {
            LST_CHECK(lst_near((double)got->a[k][i], (double)want->a[k][i], tolerance,
                               tolerance));
        }
    }
}

static void check_kernel(kernel run, const lsi_update_table *t, size_t n)
{
    arrays want, got, place;
    float w_want[MOST] = {0}, w_got[MOST] = {0};

    fill_arrays(&want, n + 1);
    got = place = want;
    run(&lsi_update_ref, &want, w_want, n);
    run(t, &got, w_got, n);
    compare_arrays(&got, w_got, &want, w_want, n);
    run(t, &place, place.a[0], n); // w_out is w
    memcpy(w_got, place.a[0], n * sizeof w_got[0]);
    memcpy(place.a[0], want.a[0], sizeof want.a[0]);
    compare_arrays(&place, w_got, &want, w_want, n);
}

LST_TEST(every_instruction_set_computes_what_the_reference_does)
{
    for (int isa = LSI_ISA_BASELINE; isa <= (int)lsi_isa_best(); isa++) {
        LST_CHECK(table_of((lsi_isa)isa) != &lsi_update_ref);
        for (size_t k = 0; k < LSI_COUNT_OF(KERNELS); k++) {
            for (size_t n = 0; n < MOST; n++) {
                check_kernel(KERNELS[k], table_of((lsi_isa)isa), n);
            }
        }
    }
}

LST_TEST(a_nan_is_never_smoothed_away)
{
    for (int isa = LSI_ISA_REF; isa <= (int)lsi_isa_best(); isa++) {
        for (size_t k = 0; k < LSI_COUNT_OF(KERNELS); k++) {
            arrays x;
            float w[MOST] = {0};

            fill_arrays(&x, 3);
            if (KERNELS[k] == decay) {
                x.a[0][20] = NAN;
            }
            x.a[4][20] = NAN;
            KERNELS[k](table_of((lsi_isa)isa), &x, w, 40);
            LST_CHECK(isnan(w[20]));
            LST_CHECK(!isnan(w[19]) && !isnan(w[21]));
        }
    }
}

/* A variance that rounding made negative counts as 0. */
LST_TEST(no_instruction_set_takes_the_root_of_a_negative_variance)
{
    for (int isa = LSI_ISA_REF; isa <= (int)lsi_isa_best(); isa++) {
        arrays x;
        float w[MOST] = {0};

        fill_arrays(&x, 3);
        for (int i = 0; i < MOST; i++) {
            x.a[1][i] = 0.0f; // the mean square
            x.a[3][i] = 1e3f; // the mean
        }
        rmsprop_both(table_of((lsi_isa)isa), &x, w, MOST);
        for (int i = 0; i < MOST; i++) {
            LST_CHECK(isfinite(w[i]));
        }
    }
}

enum { N = 50 };

struct setting {
    ls_context *c;
    ls_optimizer *o;
    ls_variable *v;
    ls_tensor *g;
    double w[N];
};

static void open_setting(struct setting *s, const recipe *r)
{
    ls_error err = LS_ERROR_INIT;
    uint64_t random = 5;
    double g[N];

    for (int i = 0; i < N; i++) {
        s->w[i] = (double)lst_random_f32(&random, -1, 1);
        g[i] = (double)lst_random_f32(&random, 0.5f, 1);
    }
    LST_OK(ls_context_open(NULL, NULL, &s->c, &err));
    s->o = make_optimizer(r);
    s->v = variable_of(NULL, LS_F32, LS_SHAPE(N), s->w, N);
    s->g = tensor_of(NULL, LS_F32, LS_SHAPE(N), g, N);
}

static void close_setting(struct setting *s)
{
    ls_tensor_release(s->g);
    ls_variable_release(s->v);
    ls_optimizer_release(s->o);
    ls_context_close(s->c);
}

/* One step, in parts that end where `cuts` says. */
static void update_parts(struct setting *s, const int64_t *cuts, int parts)
{
    const lsi_slots *slots;
    const void *room[1];
    const void *const g[] = {s->g->data};
    const lsi_sources from = {g, 1, 0, 1};
    lsi_optimizer_turn turn;
    lsi_step whole = {.dtype = LS_F32, .optimizer = s->o, .turn = &turn, .n = N};
    lsi_writes w;
    ls_error err = LS_ERROR_INIT;

    LST_OK(lsi_optimizer_build(s->o, NULL, &s->v, 1, &err));
    slots = lsi_optimizer_find(s->o, s->v, NULL);
    lsi_optimizer_prepare(s->o, &turn);
    LST_CHECK(turn.t == 1);
    LST_OK(lsi_writes_open(s->o, s->v, slots, 0, &w, &err));
    whole.w = w.component.from;
    whole.w_out = w.component.to;
    whole.update = lsi_update_for(s->v->device);
    for (size_t k = 0; k < lsi_optimizer_slot_count(s->o); k++) {
        whole.slot[k] = w.slot[k].to;
    }
    for (int i = 0; i < parts; i++) {
        lsi_writes_keep(s->o, &w, sizeof(float), false, cuts[i], cuts[i + 1]);
        lsi_optimizer_update_share(&whole, &from, cuts[i], cuts[i + 1],
                                   s->c->device->team, room);
    }
    lsi_writes_commit(s->o, s->v, slots, 0, &w);
}

static const recipe BOTH = {"RMSprop", 0.5, false, false, true, {.weight_decay = 0.1}};
static const int64_t WHOLE[] = {0, N}, PARTS[] = {0, 11, 11, 30, N};
static const char *const BOTH_SLOTS[] = {"velocity", "momentum", "average_gradient"};

/* Holds the values of the variable and its slots: a write must use new memory. */
static void hold_values(const struct setting *s, ls_tensor **held)
{
    LST_OK(ls_variable_value(s->v, &held[3], NULL));
    for (int k = 0; k < 3; k++) {
        LST_OK(ls_variable_value(ls_optimizer_slot(s->o, s->v, BOTH_SLOTS[k]), &held[k],
                                 NULL));
    }
}

static void check_same(const struct setting *a, const struct setting *b)
{
    for (int i = 0; i < N; i++) {
        LST_CHECK(at(a->v, i) == at(b->v, i));
        for (int k = 0; k < 3; k++) {
            LST_CHECK(at(ls_optimizer_slot(a->o, a->v, BOTH_SLOTS[k]), i) ==
                      at(ls_optimizer_slot(b->o, b->v, BOTH_SLOTS[k]), i));
        }
    }
}

LST_TEST(the_parts_of_an_update_are_the_whole)
{
    struct setting whole, parts;

    open_setting(&whole, &BOTH);
    open_setting(&parts, &BOTH);
    update_parts(&whole, WHOLE, 1);
    update_parts(&parts, PARTS, 4);
    check_same(&whole, &parts);
    // lsi_optimizer_advance() was not called
    LST_CHECK(ls_optimizer_iterations(whole.o) == 0);
    lsi_optimizer_advance(whole.o);
    LST_CHECK(ls_optimizer_iterations(whole.o) == 1);
    close_setting(&whole);
    close_setting(&parts);
}

LST_TEST(a_value_that_is_held_changes_nothing_but_the_memory)
{
    struct setting free_one, held_one;
    ls_tensor *held[4] = {NULL};
    const ls_variable *slot;
    float before[N];

    open_setting(&free_one, &BOTH);
    open_setting(&held_one, &BOTH);
    update_parts(&free_one, WHOLE, 1);
    update_parts(&held_one, WHOLE, 1);
    hold_values(&held_one, held);
    memcpy(before, held[0]->data, sizeof before);
    slot = ls_optimizer_slot(held_one.o, held_one.v, "velocity");
    update_parts(&free_one, PARTS, 4);
    update_parts(&held_one, PARTS, 4);
    check_same(&free_one, &held_one);
    LST_CHECK(slot == ls_optimizer_slot(held_one.o, held_one.v, "velocity"));
    LST_CHECK(memcmp(before, held[0]->data, sizeof before) == 0);
    for (int k = 0; k < 4; k++) {
        ls_tensor_release(held[k]);
    }
    close_setting(&free_one);
    close_setting(&held_one);
}

LST_TEST(writes_that_are_discarded_change_nothing)
{
    for (int held = 0; held < 2; held++) {
        struct setting s;
        ls_tensor *values[4] = {NULL};
        lsi_writes w;

        open_setting(&s, &BOTH);
        LST_OK(lsi_optimizer_build(s.o, NULL, &s.v, 1, NULL));
        if (held == 1) {
            hold_values(&s, values);
        }
        LST_OK(
            lsi_writes_open(s.o, s.v, lsi_optimizer_find(s.o, s.v, NULL), 0, &w, NULL));
        LST_CHECK((w.component.to == s.v->buffer->data) == (held == 0));
        lsi_writes_discard(s.o, s.v, 0, &w);
        for (int i = 0; i < N; i++) {
            LST_CHECK(at(s.v, i) == s.w[i]);
            LST_CHECK(at(ls_optimizer_slot(s.o, s.v, "velocity"), i) == 0);
        }
        for (int k = 0; k < 4; k++) {
            ls_tensor_release(values[k]);
        }
        close_setting(&s);
    }
}

enum { LARGE = 200003 };

/* The value of a large variable after two steps of AdamW on `threads` threads. */
static ls_tensor *train_large(int threads)
{
    static const recipe r = {"AdamW", 0, false, true, false, {.weight_decay = 0.1}};
    ls_runtime_options opts = LS_RUNTIME_OPTIONS_INIT;
    ls_runtime *rt = NULL;
    ls_context *c = NULL;
    ls_variable *v = NULL;
    ls_optimizer *o = make_optimizer(&r);
    ls_error err = LS_ERROR_INIT;
    ls_tensor *g, *t = NULL;
    float *data = malloc(LARGE * sizeof *data);
    uint64_t random = 9;

    if (data == NULL) {
        abort();
    }
    for (int i = 0; i < LARGE; i++) {
        data[i] = lst_random_f32(&random, -1, 1);
    }
    opts.threads = threads;
    LST_OK(ls_runtime_create(&opts, &rt, &err));
    LST_OK(ls_context_open(ls_runtime_device(rt, 0), NULL, &c, &err));
    g = (ls_constant)(c, LS_F32, LS_SHAPE(LARGE), data);
    LST_OK(ls_variable_create(g, NULL, &v, &err));
    for (int i = 0; i < 2; i++) {
        (ls_optimizer_apply)(c, o, &g, &v, 1);
    }
    LST_OK(ls_context_finish(c, &err));
    LST_OK(ls_variable_value(v, &t, &err));
    free(data);
    ls_context_close(c);
    ls_variable_release(v);
    ls_optimizer_release(o);
    ls_runtime_release(rt);
    return t;
}

LST_TEST(two_threads_update_like_one)
{
    ls_tensor *one = train_large(1), *two = train_large(2);

    LST_CHECK(memcmp(ls_tensor_data(one), ls_tensor_data(two), LARGE * sizeof(float)) ==
              0);
    ls_tensor_release(one);
    ls_tensor_release(two);
}

/* Creates plain slots, and counts them; fails for the third one. */
static ls_status make_counted(void *user, ls_variable *of, const char *name,
                              double initial, ls_variable **out, ls_error *err)
{
    int *count = user;

    if (*count == 2) {
        return lsi_fail(err, LS_UNAVAILABLE, -1, "no more than two");
    }
    ++*count;
    return lsi_slot_like(NULL, of, name, initial, out, err);
}

LST_TEST(slots_are_made_by_the_function_that_was_set)
{
    static const recipe r = {"Adam", 0, false, false, false, LS_OPTIMIZER_SHARED_INIT};
    struct setting s;
    ls_error err = LS_ERROR_INIT;
    ls_variable *other;
    int count = 0;

    open_setting(&s, &r);
    other = variable_of(NULL, LS_F32, LS_SHAPE(N), s.w, N);
    s.o->make_slot = make_counted;
    s.o->make_user = &count;
    (ls_optimizer_apply)(s.c, s.o, &s.g, &s.v, 1);
    (ls_optimizer_apply)(s.c, s.o, &s.g, &s.v, 1);
    LST_OK(ls_context_finish(s.c, &err));
    LST_CHECK(count == 2);
    (ls_optimizer_apply)(s.c, s.o, &s.g, &other, 1);
    LST_FAILS(ls_context_finish(s.c, &err), LS_UNAVAILABLE, err, "no more than two");
    LST_CHECK(at(other, 0) == s.w[0]);
    LST_CHECK(lsi_optimizer_find(s.o, other, NULL) == NULL);
    LST_CHECK(ls_optimizer_iterations(s.o) == 2);
    ls_variable_release(other);
    close_setting(&s);
}

LST_TEST(slots_are_found_in_any_order)
{
    static const recipe r = {"SGD", 0.9, false, false, false, LS_OPTIMIZER_SHARED_INIT};
    enum { MANY = 40 };
    ls_variable *v[MANY];
    const lsi_slots *made;
    ls_optimizer *o = make_optimizer(&r);
    ls_error err = LS_ERROR_INIT;
    const double one[1] = {1};
    size_t cursor = 0;

    for (int i = 0; i < MANY; i++) {
        v[i] = variable_of(NULL, LS_F32, LS_SHAPE(1), one, 1);
        LST_OK(lsi_optimizer_build(o, NULL, &v[i], 1, &err));
        made = lsi_optimizer_find(o, v[i], &cursor);
        LST_CHECK(made != NULL && made->of == v[i]);
    }
    for (int i = MANY - 1; i >= 0; i--) {
        const lsi_slots *found = lsi_optimizer_find(o, v[i], &cursor);

        LST_CHECK(found != NULL && found->of == v[i]);
        LST_CHECK(cursor == (size_t)i + 1);
    }
    for (int i = 0; i < MANY; i++) {
        ls_variable_release(v[i]);
    }
    ls_optimizer_release(o);
}

LST_MAIN(LST_CASE(every_instruction_set_computes_what_the_reference_does),
         LST_CASE(a_nan_is_never_smoothed_away),
         LST_CASE(no_instruction_set_takes_the_root_of_a_negative_variance),
         LST_CASE(the_parts_of_an_update_are_the_whole),
         LST_CASE(a_value_that_is_held_changes_nothing_but_the_memory),
         LST_CASE(writes_that_are_discarded_change_nothing),
         LST_CASE(two_threads_update_like_one),
         LST_CASE(slots_are_made_by_the_function_that_was_set),
         LST_CASE(slots_are_found_in_any_order))
