/*
 * The suite `train`: small models trained to the same numbers as TensorFlow. A line of
 * several workers is run by as many threads of this process.
 */
#include "ls_workers.h"
#include "oracle.h"
#include "train_model.h"
#include "train_optimizer.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_REPLICAS = 16, MS_A_CALL = 60000 };

/* The sums of one replica; read between runs. */
struct part {
    double loss, error_sum, examples, hits, guesses;
    bool bad; /* the note says why */
};

/* The run of a line, or a worker's part of it. */
struct run {
    const oracle_case *k;
    const json_t *case_, *expect;
    double rtol;
    double
        atol; /* added to it for values that are rounding errors; 0 but for gradients */
    safetensors *data;
    train_model model;
    ls_runtime *rt;
    ls_strategy *strategy;
    int replicas;     /* in the sync group */
    int first, local; /* those of this worker: first .. first + local - 1 */
    struct part
        parts[MOST_REPLICAS]; /* by the id in the sync group; zero: another worker's */
    double *losses;           /* one per step, of this worker's replicas */
    size_t steps;
    ls_optimizer *optimizer;
    size_t number;      /* of the step */
    int64_t from, rows; /* of the step, in all replicas */
    int64_t split[MOST_REPLICAS];
    char *note;
    size_t size;
};

static bool fail_run(struct run *r, const char *fmt, ...) LS_PRINTF(2, 3);
static bool fail_run(struct run *r, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(r->note, r->size, fmt, args);
    va_end(args);
    return false;
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *s = json_string_value(json_object_get(object, name));

    return s == NULL ? "" : s;
}

static double number_or(const json_t *object, const char *name, double otherwise)
{
    const json_t *n = json_object_get(object, name);

    return json_is_number(n) ? json_number_value(n) : otherwise;
}

/* |got - want| <= atol + rtol * max|want| for all `n`; says where not. */
static bool all_near(struct run *r, const char *what, const double *got,
                     const double *want, size_t n)
{
    double most = 0;

    for (size_t i = 0; i < n; i++) {
        most = fabs(want[i]) > most ? fabs(want[i]) : most;
    }
    for (size_t i = 0; i < n; i++) {
        if (!(fabs(got[i] - want[i]) <= r->atol + r->rtol * most)) {
            return fail_run(r, "%s[%zu]: expected %.9g, got %.9g (largest %.3g)", what, i,
                            want[i], got[i], most);
        }
    }
    return true;
}

/* A tensor of float32 against one of the data file. */
static bool same_tensor(struct run *r, const char *name, const ls_tensor *t)
{
    const safetensors_entry *e = safetensors_find(r->data, name);
    const size_t n = e == NULL ? 0 : (size_t)e->count;
    float *got = calloc(n + 1, sizeof *got);
    double *both = calloc(2 * n + 1, sizeof *both);
    bool ok = false;

    if (e == NULL || e->dtype != LS_F32 || t == NULL || ls_tensor_dtype(t) != LS_F32 ||
        ls_tensor_count(t) != e->count || got == NULL || both == NULL) {
        (void)fail_run(r, "%s: there is no such tensor, or of another shape", name);
    } else if (ls_tensor_read(t, got, n * sizeof *got, NULL) != LS_OK) {
        (void)fail_run(r, "%s: cannot be read", name);
    } else {
        for (size_t i = 0; i < n; i++) {
            float want;

            memcpy(&want, (const char *)e->data + i * sizeof want, sizeof want);
            both[i] = (double)got[i];
            both[n + i] = (double)want;
        }
        ok = all_near(r, name, both, both + n, n);
    }
    free(got);
    free(both);
    return ok;
}

/* Rows `from` .. `from + rows` of `x` or `y`. */
static ls_tensor *rows_of(const struct run *r, ls_context *c, const char *name,
                          int64_t from, int64_t rows)
{
    const safetensors_entry *e = safetensors_find(r->data, name);
    ls_shape s;

    if (e == NULL || e->shape.ndim < 1 || from < 0 || rows < 0 ||
        rows > e->shape.dims[0] - from) {
        return ls_context_fail(c, LS_OUT_OF_RANGE, "%s has no rows %lld to %lld", name,
                               (long long)from, (long long)from + (long long)rows);
    }
    s = e->shape;
    s.dims[0] = rows;
    return ls_constant(
        c, e->dtype, s,
        (const char *)e->data +
            from * (e->count / (e->shape.dims[0] + (e->shape.dims[0] == 0))) * 4);
}

/* The loss of each row. */
static ls_tensor *errors_of(const struct run *r, ls_context *c, ls_tensor *out,
                            ls_tensor *y)
{
    const char *kind = text_of(r->case_, "loss");
    ls_tensor *e;

    if (strcmp(kind, "mean_squared_error") == 0) {
        return ls_mean_squared_error(c, out, y);
    }
    if (strcmp(kind, "binary_crossentropy") == 0) {
        e = ls_sigmoid_cross_entropy(c, out, y);
        return ls_mean(c, e, (const int[]){-1}, 1, false);
    }
    if (strcmp(kind, "sparse_categorical_crossentropy") == 0) {
        e = ls_sparse_softmax_cross_entropy(c, out, y);
        return e != NULL && ls_tensor_ndim(e) == 2
                   ? ls_mean(c, e, (const int[]){1}, 1, false)
                   : e;
    }
    return ls_context_fail(c, LS_UNIMPLEMENTED, "no loss is called %s", kind);
}

/* Adds what the step contributes to the metrics. */
static void count_metrics(const struct run *r, ls_context *c, struct part *p,
                          ls_tensor *errors, ls_tensor *out, ls_tensor *y)
{
    const char *kind = text_of(r->case_, "loss");
    ls_tensor *right = NULL;

    if (strcmp(kind, "binary_crossentropy") == 0) {
        ls_tensor *zero = ls_constant_f32(c, 0), *half = ls_constant_f32(c, 0.5f);

        right = ls_equal(c, ls_greater(c, out, zero), ls_greater(c, y, half));
    } else if (strcmp(kind, "sparse_categorical_crossentropy") == 0) {
        right = ls_equal(c, ls_argmax(c, out, -1), ls_cast(c, y, LS_I64));
    }
    if (errors != NULL) {
        p->error_sum += ls_item(c, ls_sum(c, errors, NULL, 0, false));
        p->examples += (double)ls_tensor_count(errors);
    }
    if (right != NULL) {
        ls_tensor *ones = ls_cast(c, right, LS_F32);

        p->hits += ls_item(c, ls_sum(c, ones, NULL, 0, false));
        p->guesses += (double)ls_tensor_count(right);
    }
}

/* The largest magnitude among the gradients of the data file. */
static double largest_gradient(const struct run *r)
{
    double most = 0;

    for (size_t i = 0; i < safetensors_count(r->data); i++) {
        const safetensors_entry *e = safetensors_at(r->data, i);

        for (int64_t k = 0; strncmp(e->name, "grad/", 5) == 0 && k < e->count; k++) {
            float v;

            memcpy(&v, (const char *)e->data + k * (int64_t)sizeof v, sizeof v);
            most = fabs((double)v) > most ? fabs((double)v) : most;
        }
    }
    return most;
}

/*
 * The gradient of a bias before a batch norm is zero; what TensorFlow and we compute for
 * it is a rounding error, of the order of float32's epsilon times the gradients whose
 * difference it is. Sixteen of those are allowed in addition to the line's tolerance.
 */
static bool check_gradients(struct run *r, ls_tensor *const *grads)
{
    bool ok = true;

    r->atol = 16 * 1.1920929e-7 * largest_gradient(r);
    for (size_t i = 0; i < r->model.trainables && ok; i++) {
        char name[128];

        (void)snprintf(name, sizeof name, "grad/%s", r->model.trained[i]->name);
        ok = same_tensor(r, name, grads[i]);
    }
    r->atol = 0;
    return ok;
}

/* One replica's part of a step. */
static ls_value *replica_step(ls_context *c, ls_value *args, void *user)
{
    struct run *r = user;
    const int id = ls_replica_id(c);
    struct part *p = &r->parts[id];
    int64_t from = r->from;
    ls_tensor *grads[MODEL_MOST] = {NULL};

    (void)args;
    for (int i = 0; i < id; i++) {
        from += r->split[i];
    }
    ls_tensor *x = rows_of(r, c, "x", from, r->split[id]);
    ls_tensor *y = rows_of(r, c, "y", from, r->split[id]);
    ls_tape *tape = ls_tape_open(c, NULL);
    ls_tensor *out = train_model_forward(c, &r->model, x, true);
    ls_tensor *errors = errors_of(r, c, out, y);
    ls_tensor *total = ls_average_loss(c, errors, NULL, r->rows);
    ls_tensor *penalty = train_model_penalty(c, &r->model);

    if (penalty != NULL) {
        total = ls_add(c, total, ls_scale_regularization_loss(c, penalty));
    }
    ls_variable_gradients(c, tape, total, r->model.trainable, r->model.trainables, grads);
    p->loss = ls_item(c, total);
    count_metrics(r, c, p, errors, out, y);
    if (r->number == 0 && r->replicas == 1 && ls_context_status(c, NULL) == LS_OK) {
        p->bad = !check_gradients(r, grads);
    }
    ls_optimizer_apply(c, r->optimizer, grads, r->model.trainable, r->model.trainables);
    return NULL;
}

/* One step on the worker's replicas; false: r->note says what went wrong. */
static bool train_step(struct run *r)
{
    ls_error err = LS_ERROR_INIT;

    if (ls_strategy_run(r->strategy, replica_step, NULL, r, NULL, &err) != LS_OK) {
        return fail_run(r, "step %zu, replica %d: %s (%s:%d)", r->number, err.rank,
                        err.message, err.file, err.line);
    }
    for (int i = r->first; i < r->first + r->local; i++) {
        r->losses[r->number] += r->parts[i].loss;
        if (r->parts[i].bad) {
            return false;
        }
    }
    return true;
}

static bool check_metrics(struct run *r)
{
    const json_t *metrics = json_object_get(r->expect, "metrics");
    const double loss = number_or(metrics, "mean_loss", NAN);
    const double accuracy = number_or(metrics, "accuracy", NAN);
    struct part sum = {0};

    for (int i = 0; i < r->replicas; i++) {
        sum.error_sum += r->parts[i].error_sum;
        sum.examples += r->parts[i].examples;
        sum.hits += r->parts[i].hits;
        sum.guesses += r->parts[i].guesses;
    }
    const double got[] = {sum.error_sum / sum.examples, sum.hits / sum.guesses};

    return all_near(r, "mean_loss", &got[0], &loss, 1) &&
           (isnan(accuracy) || all_near(r, "accuracy", &got[1], &accuracy, 1));
}

/*
 * The name of copy `k` of a weight in the data file, which has one if it differs from
 * copy 0.
 */
static bool check_copy(struct run *r, const train_weight *w, size_t k)
{
    ls_variable *copy = ls_variable_component(w->variable, k);
    ls_tensor *value = NULL;
    char name[240];
    bool ok;

    (void)snprintf(name, sizeof name, "%s%s/copy%zu", text_of(r->expect, "final"),
                   w->name, k);
    if (k == 0 || safetensors_find(r->data, name) == NULL) {
        (void)snprintf(name, sizeof name, "%s%s", text_of(r->expect, "final"), w->name);
    }
    ok = ls_variable_value(copy, &value, NULL) == LS_OK && same_tensor(r, name, value);
    ls_tensor_release(value);
    return ok;
}

static bool check_final(struct run *r)
{
    bool ok = true;

    for (size_t i = 0; i < r->model.count && ok; i++) {
        const train_weight *w = &r->model.weights[i];

        for (size_t k = 0; k < ls_variable_components(w->variable) && ok; k++) {
            ok = check_copy(r, w, k);
        }
    }
    return ok;
}

/* The model on all rows, with copy 0 of the weights. */
static bool check_output(struct run *r)
{
    const int64_t rows = (int64_t)number_or(r->case_, "rows", -1);
    ls_context *c = NULL;
    ls_error err = LS_ERROR_INIT;
    bool ok = ls_context_open(NULL, NULL, &c, &err) == LS_OK;

    if (ok) {
        ls_tensor *x = rows_of(r, c, "x", 0, rows);
        ls_tensor *out = train_model_forward(c, &r->model, x, false);

        ok = ls_context_status(c, NULL) == LS_OK &&
             same_tensor(r, text_of(r->expect, "output"), out);
        if (ls_context_finish(c, &err) != LS_OK) {
            ok = fail_run(r, "output: %s", err.message);
        }
    }
    ls_context_close(c);
    return ok;
}

/* All steps of the run. */
static bool train_steps(struct run *r)
{
    const json_t *splits = json_object_get(r->case_, "splits");
    const int64_t all = (int64_t)number_or(r->case_, "rows", 0);
    bool ok;

    r->steps = json_array_size(splits);
    r->losses = calloc(r->steps + 1, sizeof *r->losses);
    ok = (r->losses != NULL && r->steps > 0) || fail_run(r, "the line has no steps");
    for (size_t s = 0; s < r->steps && ok; s++) {
        const json_t *split = json_array_get(splits, s);

        r->number = s;
        r->rows = 0;
        for (int i = 0; i < r->replicas; i++) {
            r->split[i] = json_integer_value(json_array_get(split, (size_t)i));
            r->rows += r->split[i];
        }
        ok = train_step(r);
        r->from = r->from + r->rows >= all ? 0 : r->from + r->rows;
    }
    return ok;
}

/* The losses of all replicas against those of the line. */
static bool check_losses(struct run *r)
{
    const json_t *losses = json_object_get(r->expect, "losses");
    double *want = calloc(r->steps + 1, sizeof *want);
    bool ok = want != NULL && json_array_size(losses) >= r->steps;

    for (size_t s = 0; s < r->steps && ok; s++) {
        want[s] = json_number_value(json_array_get(losses, s));
    }
    ok = ok ? all_near(r, "losses", r->losses, want, r->steps)
            : fail_run(r, "the line has fewer losses than steps");
    free(want);
    return ok;
}

/* False: r->note says what went wrong. */
static bool make_optimizer(struct run *r)
{
    const json_t *spec = json_object_get(r->case_, "optimizer");
    const char *kind = json_string_value(json_array_get(spec, 0));
    const train_optimizer_maker make = train_optimizer_named(kind);
    ls_error err = LS_ERROR_INIT;

    if (make == NULL) {
        return fail_run(r, "no optimizer is called %s", kind == NULL ? "that" : kind);
    }
    return make(json_array_get(spec, 1), false, &r->optimizer, &err) == LS_OK ||
           fail_run(r, "%s", err.message);
}

/* MirroredStrategy over as many logical devices as the line says. */
static bool make_strategy(struct run *r)
{
    ls_runtime_options devices = LS_RUNTIME_OPTIONS_INIT;
    ls_strategy_options options = LS_STRATEGY_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;

    devices.logical_cpus = r->replicas;
    devices.threads = 1;
    if (ls_runtime_create(&devices, &r->rt, &err) != LS_OK) {
        return fail_run(r, "%s", err.message);
    }
    options.runtime = r->rt;
    return ls_mirrored_create(NULL, &options, &r->strategy, &err) == LS_OK ||
           fail_run(r, "%s", err.message);
}

/* Reads the data and makes the model in the scope of the strategy. */
static bool prepare_run(struct run *r)
{
    const char *name = text_of(r->case_, "data");
    ls_error err = LS_ERROR_INIT;
    char path[4500];
    bool ok;

    if (name[0] == '\0' || strchr(name, '/') != NULL) {
        return fail_run(r, "the data file \"%s\" does not stand beside the line's", name);
    }
    (void)snprintf(path, sizeof path, "%s/%s", r->k->folder, name);
    r->data = safetensors_open(path, r->note, r->size);
    if (r->data == NULL) {
        return false;
    }
    if (ls_scope_enter(r->strategy, &err) != LS_OK) {
        return fail_run(r, "%s", err.message);
    }
    ok = train_model_create(&r->model, json_object_get(r->case_, "layers"), r->data,
                            &err) == LS_OK
             ? make_optimizer(r)
             : fail_run(r, "%s", err.message);
    ls_scope_exit(r->strategy);
    return ok;
}

/* Releases all but the losses and the parts. */
static void close_run(struct run *r)
{
    ls_optimizer_release(r->optimizer);
    train_model_release(&r->model);
    ls_strategy_release(r->strategy);
    ls_runtime_release(r->rt);
    safetensors_close(r->data);
}

/* ---- several workers ---- */

/* A worker's part of the run; its losses and parts are read when all have ended. */
struct share {
    struct run r;
    char note[800];
};

static ls_status run_worker(const lst_worker *w, void *arg, ls_error *err)
{
    struct share *mine = (struct share *)arg + w->index;
    struct run *r = &mine->r;
    bool ok;

    r->note = mine->note;
    r->size = sizeof mine->note;
    r->first = w->index * w->replicas;
    r->local = w->replicas;
    r->strategy = ls_strategy_retain(w->strategy);
    ok = prepare_run(r) && train_steps(r) && check_final(r) && check_output(r);
    close_run(r);
    if (ok) {
        return LS_OK;
    }
    (void)snprintf(err->message, sizeof err->message, "worker %d: %.300s", w->index,
                   mine->note);
    return LS_INTERNAL;
}

/* Adds what the workers counted to the whole run. */
static void add_shares(struct run *r, const struct share *shares, int workers)
{
    for (int w = 0; w < workers; w++) {
        const struct run *part = &shares[w].r;

        for (size_t s = 0; s < r->steps; s++) {
            r->losses[s] += part->losses[s];
        }
        for (int i = part->first; i < part->first + part->local; i++) {
            r->parts[i] = part->parts[i];
        }
    }
}

static bool run_workers(struct run *r, int workers)
{
    const lst_workers how = {
        .workers = workers, .replicas = r->replicas / workers, .timeout_ms = MS_A_CALL};
    struct share *shares = calloc((size_t)workers, sizeof *shares);
    ls_error err = LS_ERROR_INIT;
    bool ok = shares != NULL || fail_run(r, "out of memory");

    for (int w = 0; w < workers && ok; w++) {
        shares[w].r = *r;
    }
    ok = ok && (lst_workers_try(&how, run_worker, shares, NULL, &err) == LS_OK ||
                fail_run(r, "%s", err.message));
    if (ok) {
        r->steps = shares[0].r.steps;
        r->losses = calloc(r->steps + 1, sizeof *r->losses);
        ok = r->losses != NULL || fail_run(r, "out of memory");
    }
    if (ok) {
        add_shares(r, shares, workers);
        ok = check_losses(r) && check_metrics(r);
    }
    for (int w = 0; w < workers && shares != NULL; w++) {
        free(shares[w].r.losses);
    }
    free(shares);
    return ok;
}

/* ---- a line ---- */

oracle_verdict oracle_train(const oracle_case *k, char *note, size_t size)
{
    struct run r = {.k = k,
                    .case_ = json_object_get(k->line, "case"),
                    .expect = json_object_get(k->line, "expect"),
                    .rtol = number_or(k->line, "rtol", 1e-6),
                    .note = note,
                    .size = size};
    const json_t *strategy = json_object_get(r.case_, "strategy");
    const char *kind = json_string_value(json_array_get(strategy, 0));
    bool ok;

    r.replicas = r.local = (int)json_integer_value(json_array_get(strategy, 1));
    if (r.replicas < 1 || r.replicas > MOST_REPLICAS) {
        (void)fail_run(&r, "%d replicas: from 1 to %d can be run", r.replicas,
                       MOST_REPLICAS);
        return ORACLE_FAILED;
    }
    if (kind != NULL && strcmp(kind, "multi_worker") == 0) { // of one replica each
        *k->workers = r.replicas;
        ok = run_workers(&r, r.replicas);
    } else {
        ok = make_strategy(&r) && prepare_run(&r) && train_steps(&r) &&
             check_losses(&r) && check_metrics(&r) && check_final(&r) && check_output(&r);
    }
    close_run(&r);
    free(r.losses);
    return ok ? ORACLE_PASSED : ORACLE_FAILED;
}
