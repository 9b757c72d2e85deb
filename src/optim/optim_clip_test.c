/* Tests of clipping and of sparse gradients: exact by default, as Keras on request. */
#include "optim_test.h"

enum { ROWS = 4, WIDTH = 2, COUNT = ROWS * WIDTH };

/* Row 1 occurs twice. */
static const double SLICES[] = {1, -2, 0.5, 3, 0.25, 1};
static const double DENSE[COUNT] = {0, 0, 1.5, 1, 0, 0, 0.25, 1};
static const double FIRST[COUNT] = {1, 2, 3, 4, 5, 6, 7, 8};

static ls_context *open_context(void)
{
    ls_context *c = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_context_open(NULL, NULL, &c, &err));
    return c;
}

static void close_context(ls_context *c)
{
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_context_finish(c, &err));
    ls_context_close(c);
}

static ls_tensor *constant(ls_context *c, ls_dtype dtype, ls_shape shape,
                           const double *from, int n)
{
    return lsi_context_own(c, tensor_of(NULL, dtype, shape, from, n));
}

static ls_tensor *sparse(ls_context *c, ls_dtype dtype)
{
    static const int32_t rows[] = {1, 1, 3};
    const ls_shape shape = LS_SHAPE(ROWS, WIDTH);

    return lsi_context_sparse(c, &shape,
                              constant(c, dtype, LS_SHAPE(3, WIDTH), SLICES, 6),
                              (ls_constant)(c, LS_I32, LS_SHAPE(3), rows));
}

/* The variable after `steps` steps with the sparse gradient, or with the dense one. */
static ls_variable *train(const recipe *r, ls_dtype dtype, bool dense, int steps)
{
    ls_context *c = open_context();
    ls_optimizer *o = make_optimizer(r);
    ls_variable *v = variable_of(NULL, dtype, LS_SHAPE(ROWS, WIDTH), FIRST, COUNT);

    for (int t = 0; t < steps; t++) {
        ls_tensor *g = dense ? constant(c, dtype, LS_SHAPE(ROWS, WIDTH), DENSE, COUNT)
                             : sparse(c, dtype);

        (ls_optimizer_apply)(c, o, &g, &v, 1);
    }
    close_context(c);
    ls_optimizer_release(o);
    return v;
}

LST_TEST(a_sparse_gradient_is_the_dense_one_for_every_optimizer)
{
    static const recipe recipes[] = {
        {"SGD", 0.9, true, false, false, LS_OPTIMIZER_SHARED_INIT},
        {"Adam", 0, false, true, false, LS_OPTIMIZER_SHARED_INIT},
        {"AdamW", 0, false, false, false, {.weight_decay = 0.1}},
        {"RMSprop", 0.5, false, false, true, LS_OPTIMIZER_SHARED_INIT},
        {"Adagrad", 0, false, false, false, LS_OPTIMIZER_SHARED_INIT},
        {"Adagrad", 0, false, false, false, {.clipvalue = 0.75}},
        {"Adagrad", 0, false, false, false, {.clipnorm = 1}},
        {"Adagrad", 0, false, false, false, {.global_clipnorm = 1}},
    };

    for (size_t i = 0; i < 2 * LSI_COUNT_OF(recipes); i++) {
        const ls_dtype dtype = i % 2 == 0 ? LS_F32 : LS_F64;
        ls_variable *a = train(&recipes[i / 2], dtype, false, 5);
        ls_variable *b = train(&recipes[i / 2], dtype, true, 5);

        for (int k = 0; k < COUNT; k++) {
            LST_CHECK(at(a, k) == at(b, k));
        }
        LST_CHECK(at(a, 2) < FIRST[2]);
        ls_variable_release(a);
        ls_variable_release(b);
    }
}

/*
 * The expected numbers are those of Keras 3.15 with TensorFlow 2.21 after two steps with
 * the sparse gradient.
 */
LST_TEST(with_keras3_repeated_rows_count_as_in_keras)
{
    static const struct {
        recipe r;
        double w[COUNT];
    } cases[] = {
        {{"SGD", 0, false, false, false, {.keras3 = true}},
         {1, 2, 2.7, 3.8, 5, 6, 6.95, 7.8}},
        {{"SGD", 0, false, false, false, {.keras3 = true, .clipvalue = 0.75}},
         {1, 2, 2.75, 4, 5, 6, 6.95, 7.85}},
        {{"SGD", 0, false, false, false, {.keras3 = true, .clipnorm = 1}},
         {1, 2, 2.9233346, 3.94889, 5, 6, 6.9872227, 7.9488897}},
        {{"SGD", 0, false, false, false, {.keras3 = true, .global_clipnorm = 1}},
         {1, 2, 2.9233346, 3.9488897, 5, 6, 6.9872227, 7.9488897}},
        {{"SGD", 0.9, true, false, false, {.keras3 = true}},
         {1, 2, 2.3084998, 3.539, 5, 6, 6.88475, 7.539}},
        {{"Adam", 0, false, false, false, {.keras3 = true}},
         {1, 2, 2.7316747, 3.9445305, 5, 6, 6.800004, 7.800002}},
        {{"Adam", 0, false, false, false, {.keras3 = true, .clipvalue = 0.75}},
         {1, 2, 2.7226532, 4, 5, 6, 6.800004, 7.8000026}},
        {{"Adam", 0, false, false, false, {.keras3 = true, .clipnorm = 1}},
         {1, 2, 2.7316766, 3.9445305, 5, 6, 6.80001, 7.800004}},
        {{"Adam", 0, false, false, false, {.keras3 = true, .global_clipnorm = 1}},
         {1, 2, 2.800003, 3.8000038, 5, 6, 6.80001, 7.800004}},
        {{"Adam", 0, false, true, false, {.keras3 = true}},
         {1, 2, 2.7316747, 3.9445305, 5, 6, 6.800004, 7.800002}},
        {{"AdamW", 0, false, false, false, {.keras3 = true, .weight_decay = 0.1}},
         {0.9801, 1.9602001, 2.6733162, 3.865208, 4.9005, 5.8806, 6.6617036, 7.6418023}},
        {{"RMSprop", 0, false, false, false, {.keras3 = true}},
         {1, 2, 2.2679427, 3.8486657, 5, 6, 6.45436, 7.4543567}},
        {{"RMSprop", 0.5, false, false, true, {.keras3 = true}},
         {1, 2, 1.9177754, 3.8038337, 5, 6, 6.2450995, 7.2450943}},
        {{"Adagrad", 0, false, false, false, {.keras3 = true}},
         {1, 2, 2.7778745, 3.952797, 5, 6, 6.8852777, 7.835647}},
        {{"Adagrad", 0, false, false, false, {.keras3 = true, .clipvalue = 0.75}},
         {1, 2, 2.7739706, 4, 5, 6, 6.8852777, 7.8400927}},
        {{"Adagrad", 0, false, false, false, {.keras3 = true, .clipnorm = 1}},
         {1, 2, 2.8353474, 3.9547086, 5, 6, 6.960771, 7.883931}},
        {{"Adagrad", 0, false, false, false, {.keras3 = true, .global_clipnorm = 1}},
         {1, 2, 2.8617828, 3.883931, 5, 6, 6.960771, 7.883931}},
    };

    for (size_t i = 0; i < 2 * LSI_COUNT_OF(cases); i++) {
        ls_variable *v = train(&cases[i / 2].r, i % 2 == 0 ? LS_F32 : LS_F64, false, 2);

        for (int k = 0; k < COUNT; k++) {
            LST_CHECK(lst_near(at(v, k), cases[i / 2].w[k], 0, 2e-5));
        }
        ls_variable_release(v);
    }
}

/* Three steps of Keras 3.15, with rates so large that its roundings can be seen. */
LST_TEST(with_keras3_float32_is_rounded_as_in_keras)
{
    static const struct {
        recipe r;
        double rate;
        float w[COUNT]; // rows 1 and 3 have no gradient
    } cases[] = {
        {{"SGD", 0, false, false, false, {.keras3 = true}},
         0.5,
         {-2.1500001F, -1.29999995F, 0.3F, 0.4F, -4, 6.5999999F, 0.7F, 0.8F}},
        {{"SGD", 0.9, false, false, false, {.keras3 = true}},
         0.5,
         {-4.1074996F, -2.60500002F, 0.3F, 0.4F, -7.91499949F, 11.8199997F, 0.7F, 0.8F}},
        {{"SGD", 0.9, true, false, false, {.keras3 = true}},
         0.5,
         {-5.93674946F, -3.82450008F, 0.3F, 0.4F, -11.5734997F, 16.698F, 0.7F, 0.8F}},
        {{"Adam", 0, false, false, false, {.keras3 = true}},
         1,
         {-3.92488623F, -1.14163017F, 0.3F, 0.4F, -2.49997711F, 3.59997749F, 0.7F, 0.8F}},
        {{"Adam", 0, false, true, false, {.keras3 = true}},
         1,
         {-3.92488623F, -1.14163017F, 0.3F, 0.4F, -2.49997711F, 3.59997749F, 0.7F, 0.8F}},
        {{"AdamW", 0, false, false, false, {.keras3 = true, .weight_decay = 0.004}},
         1,
         {-3.91000342F, -1.13866127F, 0.296414405F, 0.395219207F, -2.4939692F,
          3.58082247F, 0.691633582F, 0.790438414F}},
        {{"RMSprop", 0, false, false, false, {.keras3 = true}},
         0.5,
         {-4.84889698F, -1.44963241F, 0.3F, 0.4F, -3.18869066F, 4.28869104F, 0.7F, 0.8F}},
        {{"RMSprop", 0.9, false, false, false, {.keras3 = true}},
         0.5,
         {-9.86142349F, -3.12047529F, 0.3F, 0.4F, -6.9248085F, 8.02480888F, 0.7F, 0.8F}},
        {{"RMSprop", 0, false, false, true, {.keras3 = true}},
         0.5,
         {-5.9403553F, -1.47898126F, 0.3F, 0.4F, -3.56611824F, 4.66611862F, 0.7F, 0.8F}},
        {{"RMSprop", 0.9, false, false, true, {.keras3 = true}},
         0.5,
         {-11.6537027F, -3.17113042F, 0.3F, 0.4F, -7.56319618F, 8.66319752F, 0.7F, 0.8F}},
        {{"Adagrad", 0, false, false, false, {.keras3 = true}},
         0.5,
         {-1.39286292F, -0.307404131F, 0.3F, 0.4F, -0.63796258F, 1.73982191F, 0.7F,
          0.8F}},
    };
    static const double start[] = {.1, .2, .3, .4, .5, .6, .7, .8};
    static const double rows[] = {1, 2, 3, -4, .5, -1};
    static const int64_t at_rows[] = {0, 2, 0};
    const ls_shape shape = LS_SHAPE(ROWS, WIDTH);

    for (size_t i = 0; i < LSI_COUNT_OF(cases); i++) {
        ls_context *c = open_context();
        ls_optimizer *o = make_optimizer(&cases[i].r);
        ls_variable *v = variable_of(NULL, LS_F32, shape, start, COUNT);

        ls_optimizer_set_learning_rate(o, cases[i].rate);
        for (int t = 0; t < 3; t++) {
            ls_tensor *g = lsi_context_sparse(
                c, &shape, constant(c, LS_F32, LS_SHAPE(3, WIDTH), rows, 6),
                (ls_constant)(c, LS_I64, LS_SHAPE(3), at_rows));

            (ls_optimizer_apply)(c, o, &g, &v, 1);
        }
        close_context(c);
        for (int k = 0; k < COUNT; k++) {
            LST_CHECK(lst_near(at(v, k), (double)cases[i].w[k], 4e-7, 0));
        }
        ls_variable_release(v);
        ls_optimizer_release(o);
    }
}

/* Five steps; in the formula, too, each repeated row is squared separately. */
LST_TEST(with_keras3_five_steps_follow_the_formula_of_each_optimizer)
{
    static const double squares[COUNT] = {0, 0, 1.25, 13, 0, 0, 0.0625, 1};
    static const recipe recipes[] = {
        {"Adam", 0, false, false, false, {.keras3 = true}},
        {"Adam", 0, false, true, false, {.keras3 = true, .weight_decay = 0.1}},
        {"RMSprop", 0.5, false, false, true, {.keras3 = true}},
        {"RMSprop", 0, false, false, false, {.keras3 = true}},
        {"Adagrad", 0, false, false, false, {.keras3 = true, .weight_decay = 0.1}},
    };

    for (size_t i = 0; i < LSI_COUNT_OF(recipes); i++) {
        ls_variable *v = train(&recipes[i], LS_F64, false, 5);
        state s = {{0}, {0}, {0}, {0}};

        memcpy(s.w, FIRST, sizeof FIRST);
        for (int t = 1; t <= 5; t++) {
            follow_formula(&recipes[i], &s, DENSE, squares, COUNT, t);
        }
        for (int k = 0; k < COUNT; k++) {
            LST_CHECK(lst_near(at(v, k), s.w[k], 0, 1e-12));
        }
        ls_variable_release(v);
    }
}

/* What a step subtracts from variables of zeros: the clipped gradients. */
static void subtract_clipped(ls_context *c, ls_optimizer_shared shared, ls_dtype dtype,
                             ls_tensor *const *grads, ls_variable **vars, size_t n)
{
    static const double zeros[LST_MOST] = {0};
    const recipe r = {"SGD", 0, false, false, false, shared};
    ls_optimizer *o = make_optimizer(&r);

    ls_optimizer_set_learning_rate(o, 1);
    for (size_t i = 0; i < n; i++) {
        const ls_shape shape = grads[i] != NULL ? ls_tensor_shape(grads[i]) : LS_SHAPE(1);
        ls_tensor *t = constant(c, LS_F64, shape, zeros, (int)ls_shape_count(&shape));

        vars[i] = NULL;
        LST_OK(ls_variable_create((ls_cast)(c, t, dtype), NULL, &vars[i], NULL));
    }
    (ls_optimizer_apply)(c, o, grads, vars, n);
    LST_OK(ls_context_status(c, NULL));
    ls_optimizer_release(o);
}

/* Clips (3, -4, 0), NULL and (12, 0); the norms are 5 and 12, together 13. */
static void clip_two(ls_dtype dtype, ls_optimizer_shared shared, const double *a,
                     const double *b)
{
    static const double first[] = {3, -4, 0}, second[] = {12, 0};
    ls_context *c = open_context();
    ls_tensor *g[3] = {constant(c, LS_F64, LS_SHAPE(3), first, 3), NULL,
                       constant(c, LS_F64, LS_SHAPE(2), second, 2)};
    const double tolerance = dtype == LS_F64 ? 1e-14 : dtype == LS_F32 ? 1e-6 : 1e-1;
    ls_variable *v[3];

    g[0] = (ls_cast)(c, g[0], dtype);
    g[2] = (ls_cast)(c, g[2], dtype);
    subtract_clipped(c, shared, dtype, g, v, 3);
    LST_CHECK(at(v[1], 0) == 0);
    for (int i = 0; i < 3; i++) {
        LST_CHECK(lst_near(at(v[0], i), -a[i], 0, tolerance));
    }
    for (int i = 0; i < 2; i++) {
        LST_CHECK(lst_near(at(v[2], i), -b[i], 0, tolerance));
    }
    for (int i = 0; i < 3; i++) {
        ls_variable_release(v[i]);
    }
    close_context(c);
}

LST_TEST(each_kind_of_clipping_does_what_it_says)
{
    static const ls_dtype dtypes[] = {LS_F32, LS_F64, LS_F16, LS_BF16};

    for (size_t i = 0; i < 2 * LSI_COUNT_OF(dtypes); i++) {
        const ls_dtype d = dtypes[i / 2];
        const bool k = i % 2 == 1; // keras3 changes nothing for dense gradients

        clip_two(d, (ls_optimizer_shared){.keras3 = k, .clipvalue = 3.5},
                 (const double[]){3, -3.5, 0}, (const double[]){3.5, 0});
        clip_two(d, (ls_optimizer_shared){.keras3 = k, .clipnorm = 6},
                 (const double[]){3, -4, 0}, (const double[]){6, 0});
        clip_two(d, (ls_optimizer_shared){.keras3 = k, .global_clipnorm = 6.5},
                 (const double[]){1.5, -2, 0}, (const double[]){6, 0});
    }
}

LST_TEST(a_norm_within_the_limit_changes_nothing)
{
    static const double values[] = {3, -4};
    static const ls_optimizer_shared limits[] = {LS_OPTIMIZER_SHARED_INIT,
                                                 {.clipnorm = 5},
                                                 {.global_clipnorm = 5},
                                                 {.clipnorm = 5, .keras3 = true},
                                                 {.global_clipnorm = 5, .keras3 = true}};

    for (size_t i = 0; i < LSI_COUNT_OF(limits); i++) {
        ls_context *c = open_context();
        ls_tensor *g = constant(c, LS_F64, LS_SHAPE(2), values, 2);
        ls_variable *v;

        subtract_clipped(c, limits[i], LS_F64, &g, &v, 1);
        LST_CHECK(at(v, 0) == -3 && at(v, 1) == 4);
        ls_variable_release(v);
        close_context(c);
    }
}

LST_TEST(a_norm_of_zero_stays_zero_and_nan_is_not_hidden)
{
    const double bad[] = {3, (double)INFINITY}, zero[] = {0, 0};
    static const ls_optimizer_shared limits[] = {{.clipnorm = 1},
                                                 {.clipnorm = 1, .keras3 = true},
                                                 {.global_clipnorm = 1},
                                                 {.global_clipnorm = 1, .keras3 = true}};

    for (size_t i = 0; i < LSI_COUNT_OF(limits); i++) {
        ls_context *c = open_context();
        ls_tensor *g = constant(c, LS_F32, LS_SHAPE(2), zero, 2);
        ls_variable *v;

        subtract_clipped(c, limits[i], LS_F32, &g, &v, 1);
        LST_CHECK(at(v, 0) == 0 && at(v, 1) == 0);
        ls_variable_release(v);
        g = constant(c, LS_F32, LS_SHAPE(2), bad, 2);
        subtract_clipped(c, limits[i], LS_F32, &g, &v, 1);
        LST_CHECK(isnan(at(v, 1)));
        LST_CHECK(i < 2 ? at(v, 0) == 0 : isnan(at(v, 0)));
        ls_variable_release(v);
        close_context(c);
    }
}

LST_TEST(a_norm_is_that_of_the_operations)
{
    enum { LONG = 40001 };
    static const ls_dtype dtypes[] = {LS_F32, LS_F64, LS_F16, LS_BF16};
    static double room[LONG];
    ls_context *c = open_context();
    ls_tensor *f = (ls_constant)(c, LS_F32, LS_SHAPE(LONG), NULL);
    uint64_t seed = 3;

    for (int i = 0; i < LONG && f != NULL; i++) {
        ((float *)f->data)[i] = lst_random_f32(&seed, -1, 1);
    }
    for (size_t d = 0; d < LSI_COUNT_OF(dtypes); d++) {
        ls_tensor *t = (ls_cast)(c, f, dtypes[d]);
        ls_tensor *wide = d < 2 ? t : (ls_cast)(c, t, LS_F32);
        const double want =
            (ls_item)(c, (ls_sum)(c, (ls_square)(c, wide), NULL, 0, false));

        LST_CHECK(lsi_norm_bytes(dtypes[d], LONG) <= sizeof room);
        LST_CHECK(lsi_norm_squared(c->device, dtypes[d], t->data, LONG, room) == want);
        LST_CHECK(lsi_norm_squared(c->device, dtypes[d], NULL, 0, room) == 0);
    }
    close_context(c);
}

/* Applies random gradients of two shapes to zeros; copies the values to `out`. */
static void clip_random(ls_dtype dtype, ls_optimizer_shared shared, unsigned char *out)
{
    enum { LONG = 5003, SHORT = 7 };
    ls_context *c = open_context();
    const recipe r = {"Adagrad", 0, false, false, false, shared};
    ls_optimizer *o = make_optimizer(&r);
    ls_tensor *g[2];
    ls_variable *v[2];
    uint64_t seed = 3;

    for (int k = 0; k < 2; k++) {
        const ls_shape shape = LS_SHAPE(k == 0 ? LONG : SHORT);
        ls_tensor *t = (ls_constant)(c, LS_F32, shape, NULL);

        for (int64_t i = 0; t != NULL && i < t->count; i++) {
            ((float *)t->data)[i] = lst_random_f32(&seed, -1, 1);
        }
        g[k] = (ls_cast)(c, t, dtype);
        LST_OK(
            ls_variable_create((ls_constant)(c, dtype, shape, NULL), NULL, &v[k], NULL));
    }
    (ls_optimizer_apply)(c, o, g, v, 2);
    for (int k = 0; k < 2; k++) {
        const size_t bytes = (size_t)v[k]->count * ls_dtype_size(dtype);

        memcpy(out, v[k]->buffer->data, bytes);
        out += bytes;
        ls_variable_release(v[k]);
    }
    ls_optimizer_release(o);
    close_context(c);
}

LST_TEST(clipping_while_applying_gives_the_bits_of_the_operations)
{
    static const ls_dtype dtypes[] = {LS_F32, LS_F64, LS_F16, LS_BF16};
    static const ls_optimizer_shared ways[] = {
        {.clipvalue = 0.5}, {.clipnorm = 3}, {.global_clipnorm = 4}, {.clipnorm = 1e6}};
    static unsigned char ours[5010 * 8], by_operations[5010 * 8];

    for (size_t d = 0; d < LSI_COUNT_OF(dtypes); d++) {
        for (size_t w = 0; w < LSI_COUNT_OF(ways); w++) {
            ls_optimizer_shared keras3 = ways[w]; // clips by operations

            keras3.keras3 = true;
            clip_random(dtypes[d], ways[w], ours);
            clip_random(dtypes[d], keras3, by_operations);
            LST_CHECK(memcmp(ours, by_operations, sizeof ours) == 0);
        }
    }
}

LST_TEST(clipping_is_no_part_of_a_gradient)
{
    static const recipe r = {"SGD", 0,     false,
                             false, false, {.clipnorm = 1, .keras3 = true}};
    ls_context *c = open_context();
    ls_optimizer *o = make_optimizer(&r);
    ls_tape *tape = ls_tape_open(c, NULL);
    ls_tensor *x = constant(c, LS_F32, LS_SHAPE(COUNT), FIRST, COUNT), *g = x;

    ls_tape_watch(c, tape, x);
    lsi_clip(c, o, &g, 1);
    LST_CHECK(g != x && c->recording != 0);
    LST_CHECK((ls_gradient)(c, tape, (ls_sum)(c, g, NULL, 0, false), x) == NULL);
    close_context(c);
    ls_optimizer_release(o);
}

/* The order is Keras': the decay sees the weight, the clipping only the gradient. */
LST_TEST(clipping_and_decay_go_together)
{
    static const recipe r = {"SGD", 0,     false,
                             false, false, {.weight_decay = 0.5, .clipvalue = 0.75}};
    ls_variable *v = train(&r, LS_F64, true, 1);

    LST_CHECK(lst_near(at(v, 0), 1 - 1 * 0.5 * LST_RATE, 0, 1e-14));
    LST_CHECK(lst_near(at(v, 2), 3 - 3 * 0.5 * LST_RATE - 0.75 * LST_RATE, 0, 1e-14));
    ls_variable_release(v);
}

/* A step with a sparse gradient, on a runtime of its own. */
static ls_status clip_sparse(const ls_optimizer_shared *shared, ls_error *err)
{
    static const int32_t rows[] = {1, 1, 3};
    const ls_shape shape = LS_SHAPE(ROWS, WIDTH);
    ls_adagrad_options opts = LS_ADAGRAD_OPTIONS_INIT;
    ls_runtime_options ropts = LS_RUNTIME_OPTIONS_INIT;
    ls_runtime *rt = NULL;
    ls_context *c = NULL;
    ls_optimizer *o = NULL;
    ls_variable *v = NULL;
    ls_status st;

    ropts.threads = 1;
    opts.shared = *shared;
    st = ls_runtime_create(&ropts, &rt, err);
    if (st == LS_OK) {
        st = ls_context_open(ls_runtime_device(rt, 0), NULL, &c, err);
    }
    if (st == LS_OK) {
        st = ls_adagrad_create(&opts, &o, err);
    }
    if (st == LS_OK) {
        ls_tensor *values = (ls_constant)(c, LS_F64, LS_SHAPE(3, WIDTH), SLICES);
        ls_tensor *indices = (ls_constant)(c, LS_I32, LS_SHAPE(3), rows);
        ls_tensor *zeros = (ls_constant)(c, LS_F64, shape, NULL);
        ls_tensor *g = NULL;

        st = lsi_failed(c) ? LS_OK : ls_variable_create(zeros, NULL, &v, err);
        if (!lsi_failed(c) && st == LS_OK) {
            g = lsi_context_sparse(c, &shape, values, indices);
            (ls_optimizer_apply)(c, o, &g, &v, 1);
            LST_CHECK((at(v, WIDTH) != 0) == !lsi_failed(c));
            LST_CHECK(ls_optimizer_iterations(o) == (lsi_failed(c) ? 0 : 1));
        }
        st = st == LS_OK ? ls_context_finish(c, err) : st;
    }
    ls_variable_release(v);
    ls_optimizer_release(o);
    ls_context_close(c);
    ls_runtime_release(rt);
    return st;
}

static ls_status clip_values(ls_error *err)
{
    return clip_sparse(&(ls_optimizer_shared){.keras3 = true, .clipvalue = 0.5}, err);
}

static ls_status clip_norms(ls_error *err)
{
    return clip_sparse(&(ls_optimizer_shared){.keras3 = true, .clipnorm = 0.5}, err);
}

static ls_status clip_all(ls_error *err)
{
    return clip_sparse(&(ls_optimizer_shared){.keras3 = true, .global_clipnorm = 0.5},
                       err);
}

static ls_status clip_sum(ls_error *err)
{
    return clip_sparse(&(ls_optimizer_shared){.clipnorm = 0.5}, err);
}

static ls_status apply_rows(ls_error *err)
{
    return clip_sparse(&(ls_optimizer_shared){.keras3 = true}, err);
}

LST_TEST(clipping_survives_the_failure_of_any_allocation)
{
    lst_every_allocation(clip_values);
    lst_every_allocation(clip_norms);
    lst_every_allocation(clip_all);
    lst_every_allocation(clip_sum);
    lst_every_allocation(apply_rows);
}

LST_MAIN(LST_CASE(a_sparse_gradient_is_the_dense_one_for_every_optimizer),
         LST_CASE(with_keras3_repeated_rows_count_as_in_keras),
         LST_CASE(with_keras3_float32_is_rounded_as_in_keras),
         LST_CASE(with_keras3_five_steps_follow_the_formula_of_each_optimizer),
         LST_CASE(each_kind_of_clipping_does_what_it_says),
         LST_CASE(a_norm_within_the_limit_changes_nothing),
         LST_CASE(a_norm_of_zero_stays_zero_and_nan_is_not_hidden),
         LST_CASE(a_norm_is_that_of_the_operations),
         LST_CASE(clipping_while_applying_gives_the_bits_of_the_operations),
         LST_CASE(clipping_is_no_part_of_a_gradient),
         LST_CASE(clipping_and_decay_go_together),
         LST_CASE(clipping_survives_the_failure_of_any_allocation))
