/*
 * The graph of datasets: nodes that never change, each over its inputs. A failure while a
 * node is built is kept in the node, and every node above it fails with the same error.
 */
#include "data/data.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- nodes ---- */

static void release_inputs(ls_dataset *const *inputs, int n)
{
    for (int i = 0; i < n; i++) {
        ls_dataset_release(inputs[i]);
    }
}

static uint64_t mix_print(uint64_t print, uint64_t x)
{
    print = (print ^ x) * 0x9E3779B97F4A7C15u;
    return print ^ (print >> 29);
}

void lsi_dataset_mix_parameter(ls_dataset *d, uint64_t parameter)
{
    d->print = mix_print(d->print, parameter);
}

static ls_dataset *fail_too_deep(ls_dataset *d)
{
    return lsi_dataset_fail(d, LS_INVALID_ARGUMENT, LS_KIND_OP,
                            "%s: more than %d datasets are nested; instead of so long a "
                            "chain, make one dataset of what differs and flat_map or "
                            "interleave it",
                            d->ops->kind, LS_DATASET_MAX_DEPTH);
}

/* The depth of the datasets in a value; 0: there are none. */
static int depth_of(const ls_value *v)
{
    const ls_dataset *d = ls_value_as_dataset(v);
    int depth = d != NULL ? d->depth : 0;

    for (size_t i = 0; i < ls_value_size(v); i++) {
        depth = LSI_MAX(depth, depth_of(ls_value_child(v, i)));
    }
    return depth;
}

void lsi_dataset_hold(ls_dataset *d, const ls_value *v)
{
    d->depth = LSI_MAX(d->depth, 1 + depth_of(v));
    if (d->depth > LS_DATASET_MAX_DEPTH) {
        (void)fail_too_deep(d);
    }
}

/* What a new node has from its inputs: a failure, the depth, options, a seed. */
static void inherit_from_inputs(ls_dataset *d)
{
    d->depth = 1;
    for (int i = 0; i < d->ninputs; i++) {
        const ls_dataset *input = d->inputs[i];

        if (input == NULL) {
            (void)lsi_dataset_fail(d, LS_RESOURCE_EXHAUSTED, LS_KIND_OP,
                                   "%s: there was no memory for its input", d->ops->kind);
        } else if (input->status != LS_OK) {
            (void)lsi_dataset_fail_with(d, &input->error);
        } else {
            d->depth = LSI_MAX(d->depth, 1 + input->depth);
            lsi_data_options_merge(&d->options, &input->options);
            d->share += input->share;
            if (input->seeded && !d->seeded) {
                d->seeded = true;
                d->seed = input->seed;
            }
        }
    }
    if (d->depth > LS_DATASET_MAX_DEPTH) {
        (void)fail_too_deep(d);
    }
}

ls_dataset *lsi_dataset_new(const lsi_dataset_ops *ops, size_t size,
                            ls_dataset *const *inputs, int ninputs)
{
    ls_dataset *d = lsi_alloc(1, size);
    ls_dataset **held = lsi_alloc((size_t)LSI_MAX(ninputs, 1), sizeof(ls_dataset *));
    const lsi_global_seed global = lsi_global_seed_get();

    if (d == NULL || held == NULL) {
        lsi_free(d);
        lsi_free(held);
        release_inputs(inputs, ninputs);
        return NULL;
    }
    atomic_init(&d->refs, 1);
    d->ops = ops;
    d->inputs = held;
    d->ninputs = ninputs;
    d->cardinality = LS_UNKNOWN_SIZE;
    d->options = (ls_data_options)LS_DATA_OPTIONS_INIT;
    d->error = (ls_error)LS_ERROR_INIT;
    d->stateful = ops->stateful;
    atomic_init(&d->passes, 0);
    for (int i = 0; i < ninputs; i++) {
        held[i] = inputs[i];
    }
    inherit_from_inputs(d);
    if (d->status != LS_OK) { // inputs of a failed node are never used: no depth
        release_inputs(held, ninputs);
        d->ninputs = 0;
        d->depth = 1;
    }
    if (global.set) {
        d->seeded = true;
        d->seed = global.seed;
    }
    return d;
}

ls_dataset *lsi_dataset_fail_with(ls_dataset *d, const ls_error *err)
{
    if (d != NULL && d->status == LS_OK) {
        d->status = err->code;
        d->error = *err;
        ls_spec_release(d->spec);
        d->spec = NULL;
    }
    return d;
}

static ls_dataset *fail_with_format(ls_dataset *d, ls_status code, ls_kind kind,
                                    const char *fmt, va_list args)
{
    ls_error err = LS_ERROR_INIT;

    err.code = code;
    err.kind = kind;
    (void)vsnprintf(err.message, sizeof err.message, fmt, args);
    return lsi_dataset_fail_with(d, &err);
}

ls_dataset *lsi_dataset_fail(ls_dataset *d, ls_status code, ls_kind kind, const char *fmt,
                             ...)
{
    va_list args;

    va_start(args, fmt);
    d = fail_with_format(d, code, kind, fmt, args);
    va_end(args);
    return d;
}

static ls_dataset *new_failed_node(void)
{
    static const lsi_dataset_ops ops = {.kind = "failed"};

    return lsi_dataset_new(&ops, sizeof(ls_dataset), NULL, 0);
}

ls_dataset *lsi_dataset_failed(ls_status code, ls_kind kind, const char *fmt, ...)
{
    ls_dataset *d = new_failed_node();
    va_list args;

    va_start(args, fmt);
    d = fail_with_format(d, code, kind, fmt, args);
    va_end(args);
    return d;
}

/* A code that a user's function may fail with: neither OK nor the end. */
static ls_status user_failure_code(ls_status code)
{
    return code == LS_OK             ? LS_UNKNOWN
           : code == LS_OUT_OF_RANGE ? LS_INVALID_ARGUMENT
                                     : code;
}

ls_dataset *ls_dataset_failed(ls_status code, const char *fmt, ...)
{
    ls_dataset *d = new_failed_node();
    va_list args;

    va_start(args, fmt);
    d = fail_with_format(d, user_failure_code(code), LS_KIND_OP, fmt, args);
    va_end(args);
    return d;
}

ls_dataset *ls_dataset_failed_with(const ls_error *err)
{
    ls_error own = LS_ERROR_INIT;

    if (err == NULL || err->code == LS_OK) {
        return ls_dataset_failed(LS_UNKNOWN, "a failure without an error");
    }
    (void)lsi_fail_again(&own, err);
    own.code = user_failure_code(own.code);
    return lsi_dataset_fail_with(new_failed_node(), &own);
}

ls_dataset *lsi_dataset_done(ls_dataset *d, ls_status st, ls_spec *spec,
                             int64_t cardinality, const ls_error *err)
{
    if (lsi_dataset_bad(d) || st != LS_OK) {
        ls_spec_release(spec);
        return st != LS_OK ? lsi_dataset_fail_with(d, err) : d;
    }
    d->spec = spec;
    d->cardinality = cardinality;
    return d;
}

bool lsi_dataset_bad(const ls_dataset *d)
{
    return d == NULL || d->status != LS_OK;
}

const char *lsi_dataset_reader(const ls_dataset *d)
{
    return d != NULL ? d->reader : NULL;
}

/* ---- graphs ---- */

ls_dataset *lsi_dataset_rebuild(const ls_dataset *d, ls_dataset *const *inputs)
{
    lsi_global_seed now;
    ls_dataset *made;

    if (d->ninputs == 0 || d->ops->rebuild == NULL || d->status != LS_OK) {
        // NOLINTNEXTLINE: the count of references is what changes, not the node
        return ls_dataset_retain((ls_dataset *)d);
    }
    now = lsi_global_seed_swap((lsi_global_seed){.set = d->seeded, .seed = d->seed});
    made = d->ops->rebuild(d, inputs); // with the seed it was first built with
    (void)lsi_global_seed_swap(now);
    return made;
}

/* The clones so far: a node that is used twice is cloned once. */
struct clones {
    const ls_dataset **from;
    ls_dataset **to;
    size_t n, room;
};

static bool remember_clone(struct clones *c, const ls_dataset *from, ls_dataset *to)
{
    if (c->n == c->room) {
        const size_t room = LSI_MAX(16, 2 * c->room);
        const ls_dataset **f = lsi_realloc(c->from, c->n, room, sizeof(ls_dataset *));

        if (f == NULL) {
            return false;
        }
        c->from = f;
        ls_dataset **t = lsi_realloc(c->to, c->n, room, sizeof(ls_dataset *));
        if (t == NULL) {
            return false;
        }
        c->to = t;
        c->room = room;
    }
    c->from[c->n] = from;
    c->to[c->n++] = to;
    return true;
}

static ls_dataset *clone_node(const ls_dataset *d, struct clones *done)
{
    ls_dataset *copy = NULL;
    ls_dataset **inputs = NULL;

    for (size_t i = 0; i < done->n; i++) {
        if (done->from[i] == d) {
            return ls_dataset_retain(done->to[i]);
        }
    }
    inputs = lsi_alloc((size_t)LSI_MAX(d->ninputs, 1), sizeof(ls_dataset *));
    if (inputs == NULL) {
        return NULL;
    }
    for (int i = 0; i < d->ninputs; i++) {
        if (d->inputs[i] == NULL ||
            (inputs[i] = clone_node(d->inputs[i], done)) == NULL) {
            goto out;
        }
    }
    copy = lsi_dataset_rebuild(d, inputs);
    if (copy != NULL && !remember_clone(done, d, copy)) {
        ls_dataset_release(copy);
        copy = NULL;
    }
out:
    release_inputs(inputs, d->ninputs);
    lsi_free(inputs);
    return copy;
}

ls_dataset *lsi_dataset_clone(const ls_dataset *d)
{
    struct clones done = {0};
    ls_dataset *copy = d != NULL ? clone_node(d, &done) : NULL;

    lsi_free(done.from);
    lsi_free(done.to);
    return copy;
}

uint64_t lsi_dataset_fingerprint(const ls_dataset *d)
{
    uint64_t print = mix_print(d->print, (uint64_t)d->ninputs);

    for (const char *c = d->ops->kind; *c != '\0'; c++) {
        print = mix_print(print, (uint64_t)(unsigned char)*c);
    }
    for (int i = 0; i < d->ninputs; i++) {
        print = mix_print(print, lsi_dataset_fingerprint(d->inputs[i]));
    }
    return print;
}

/* ---- public ---- */

ls_dataset *ls_dataset_retain(ls_dataset *d)
{
    if (d != NULL) {
        (void)atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
    }
    return d;
}

void ls_dataset_release(ls_dataset *d)
{
    if (d == NULL || atomic_fetch_sub_explicit(&d->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (d->ops->destroy != NULL) {
        d->ops->destroy(d);
    }
    release_inputs(d->inputs, d->ninputs);
    ls_spec_release(d->spec);
    lsi_free(d->inputs);
    lsi_free(d);
}

ls_status ls_dataset_status(const ls_dataset *d, ls_error *err)
{
    if (d == NULL) {
        return lsi_fail_memory(err, "a dataset", sizeof(ls_dataset));
    }
    return d->status == LS_OK ? LS_OK : lsi_fail_again(err, &d->error);
}

int64_t ls_dataset_cardinality(const ls_dataset *d)
{
    return lsi_dataset_bad(d) ? LS_UNKNOWN_SIZE : d->cardinality;
}

ls_spec *ls_dataset_spec(const ls_dataset *d)
{
    return lsi_dataset_bad(d) ? NULL : d->spec;
}

const char *ls_dataset_kind(const ls_dataset *d)
{
    return d != NULL ? d->ops->kind : "failed";
}

/* ---- datasets as elements ---- */

static void *retain_object(void *d)
{
    return ls_dataset_retain(d);
}

static void release_object(void *d)
{
    ls_dataset_release(d);
}

static void *dataset_itself(void *d)
{
    return d;
}

static size_t object_text(void *self, char *buf, size_t size)
{
    const ls_dataset *d = self;
    char spec[200];

    (void)ls_spec_text(ls_dataset_spec(d), spec, sizeof spec);
    return (size_t)snprintf(buf, size, "<dataset %s: %s>", ls_dataset_kind(d), spec);
}

static const lsi_object_ops object_ops = {.retain = retain_object,
                                          .release = release_object,
                                          .container = dataset_itself,
                                          .text = object_text};

ls_status ls_value_dataset(ls_dataset *d, ls_value **out, ls_error *err)
{
    const ls_status st = ls_dataset_status(d, err);

    return st == LS_OK ? lsi_value_object(LS_VALUE_DATASET, d, &object_ops, out, err)
                       : st;
}

ls_dataset *ls_value_as_dataset(const ls_value *v)
{
    return ls_value_kind_of(v) == LS_VALUE_DATASET ? v->leaf.object.self : NULL;
}
