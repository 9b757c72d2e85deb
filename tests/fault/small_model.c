/* A small model: its variables, its batch and one training step. */
#include "small_model.h"

#include "ls_test.h"

static ls_status make_tensor(small_model *m, ls_shape shape, float size, uint64_t *random,
                             ls_tensor **out, ls_error *err)
{
    float values[SMALL_IN * SMALL_HIDDEN];

    for (int64_t i = 0; i < ls_shape_count(&shape); i++) {
        values[i] = lst_random_f32(random, -size, size);
    }
    return ls_tensor_create(ls_runtime_device(m->runtime, 0), LS_F32, shape, values, out,
                            err);
}

static ls_status make_variable(small_model *m, int i, ls_shape shape, uint64_t *random,
                               ls_error *err)
{
    ls_tensor *t = NULL;
    ls_status st = make_tensor(m, shape, 0.3f, random, &t, err);

    if (st == LS_OK) {
        st = ls_variable_create(t, NULL, &m->v[i], err);
    }
    ls_tensor_release(t);
    return st;
}

ls_status small_model_create(small_model *m, int threads, ls_error *err)
{
    ls_runtime_options opts = LS_RUNTIME_OPTIONS_INIT;
    ls_runtime *rt = NULL;
    ls_status st;

    memset(m, 0, sizeof *m);
    opts.threads = threads;
    st = ls_runtime_create(&opts, &rt, err);
    return st == LS_OK ? small_model_create_in(m, rt, err) : st;
}

ls_status small_model_create_in(small_model *m, ls_runtime *rt, ls_error *err)
{
    static const int32_t labels[SMALL_ROWS] = {0, 1, 2, 3, 4, 0, 1, 2};
    const ls_shape shapes[4] = {LS_SHAPE(SMALL_IN, SMALL_HIDDEN), LS_SHAPE(SMALL_HIDDEN),
                                LS_SHAPE(SMALL_HIDDEN, SMALL_CLASSES),
                                LS_SHAPE(SMALL_CLASSES)};
    uint64_t random = 3;
    ls_status st;

    memset(m, 0, sizeof *m);
    m->runtime = rt;
    st = ls_context_open(ls_runtime_device(rt, 0), NULL, &m->c, err);
    for (int i = 0; i < 4 && st == LS_OK; i++) {
        st = make_variable(m, i, shapes[i], &random, err);
    }
    if (st == LS_OK) {
        st = make_tensor(m, LS_SHAPE(SMALL_ROWS, SMALL_IN), 1, &random, &m->x, err);
    }
    if (st == LS_OK) {
        st = ls_tensor_create(ls_runtime_device(m->runtime, 0), LS_I32,
                              LS_SHAPE(SMALL_ROWS), labels, &m->y, err);
    }
    return st == LS_OK ? ls_adam_create(NULL, &m->optimizer, err) : st;
}

void small_model_release(small_model *m)
{
    ls_tensor_release(m->x);
    ls_tensor_release(m->y);
    ls_optimizer_release(m->optimizer);
    for (int i = 0; i < 4; i++) {
        ls_variable_release(m->v[i]);
    }
    ls_context_close(m->c);
    ls_runtime_release(m->runtime);
}

ls_status small_model_step(small_model *m, double *loss, ls_error *err)
{
    ls_context *c = m->c;
    ls_tape *tape = ls_tape_open(c, NULL);
    ls_tensor *h = ls_dense(c, m->x, ls_read(c, m->v[0]), ls_read(c, m->v[1]), LS_RELU);
    ls_tensor *logits =
        ls_dense(c, h, ls_read(c, m->v[2]), ls_read(c, m->v[3]), LS_LINEAR);
    ls_tensor *each = ls_sparse_softmax_cross_entropy(c, logits, m->y);
    ls_tensor *mean = ls_mean(c, each, NULL, 0, false);

    ls_optimizer_minimize(c, m->optimizer, tape, mean, m->v, 4);
    *loss = ls_item(c, mean);
    return ls_context_finish(c, err);
}
