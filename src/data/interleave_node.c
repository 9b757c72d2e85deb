/* flat_map and interleave as nodes: their options, and the spec of their elements. */
#include "data/interleave.h"

#include <string.h>

/* ---- the dataset of an element ---- */

/* Fails if no element of `have` can be one of `want`; *check: each has to be checked. */
static ls_status compare_specs(const ls_spec *want, const ls_spec *have, bool *check,
                               ls_error *err)
{
    ls_spec *both = NULL;
    ls_status st = LS_OK;

    *check = lsi_spec_is_unknown(have) && !lsi_spec_is_unknown(want);
    if (*check || lsi_spec_is_unknown(want)) {
        return LS_OK;
    }
    st = lsi_spec_common(want, have, &both, err);
    if (st == LS_OK) {
        *check = !ls_spec_equal(both, want);
        ls_spec_release(both);
    }
    return st;
}

ls_status lsi_interleave_open(const lsi_interleave_node *node, ls_value *element,
                              ls_dataset **out, bool *check, ls_error *err)
{
    ls_error e = LS_ERROR_INIT;
    ls_dataset *d = node->fn(element, node->user);
    ls_status st = ls_dataset_status(d, &e);

    if (st == LS_OK && node->base.spec != NULL) {
        st = compare_specs(node->base.spec, d->spec, check, &e);
    }
    if (st == LS_OK) {
        *out = d;
        return LS_OK;
    }
    ls_dataset_release(d);
    if (st == LS_OUT_OF_RANGE) { // a function cannot end a dataset
        e.code = LS_INVALID_ARGUMENT;
    }
    return lsi_fail_again(err, &e);
}

/* ---- the spec of the elements, if the caller gave none ---- */

/* Whether reading an element has no side effects: no files, seeds, caches, functions. */
static bool is_pure(const ls_dataset *d)
{
    static const char *const kinds[] = {"range",  "tensors",   "slices",      "take",
                                        "skip",   "repeat",    "shard",       "batch",
                                        "zip",    "enumerate", "concatenate", "options",
                                        "window", "kept",      "unbatch"};
    bool found = false;

    for (size_t i = 0; i < LSI_COUNT_OF(kinds) && !found; i++) {
        found = strcmp(d->ops->kind, kinds[i]) == 0;
    }
    for (int i = 0; found && i < d->ninputs; i++) {
        found = is_pure(d->inputs[i]);
    }
    return found && !d->stateful;
}

/* Leaves the sizes out: they may differ from one dataset to the next. */
static ls_status without_sizes(const ls_spec *leaf, void *user, ls_spec **out,
                               ls_error *err)
{
    int64_t dims[LS_MAX_DIMS];

    (void)user;
    if (leaf->kind == LS_SPEC_DATASET || lsi_spec_is_unknown(leaf)) {
        return lsi_spec_unknown(out, err);
    }
    for (int i = 0; i < LS_MAX_DIMS; i++) {
        dims[i] = -1;
    }
    return leaf->kind == LS_SPEC_SPARSE
               ? ls_spec_sparse(leaf->dtype, leaf->ndim, dims, out, err)
               : ls_spec_tensor(leaf->dtype, leaf->ndim, dims, out, err);
}

/* Calls the function for the first element, if reading that has no side effects. */
static ls_status spec_of_first(const lsi_interleave_node *node, ls_spec **out,
                               ls_error *err)
{
    ls_dataset *from = node->base.inputs[0], *made = NULL;
    const lsi_opening nowhere = {NULL, 0, from->depth};
    lsi_iterator *it = NULL;
    ls_value *first = NULL;
    bool check = false;
    ls_status st = LS_OUT_OF_RANGE;

    if (is_pure(from) && lsi_dataset_iterate(from, &nowhere, &it, NULL) == LS_OK) {
        st = lsi_iterator_next(it, &first, NULL);
    }
    if (st == LS_OK) {
        st = lsi_interleave_open(node, first, &made, &check, NULL);
    }
    st = st == LS_OK && made != NULL
             ? lsi_spec_map(made->spec, without_sizes, NULL, out, err)
             : lsi_spec_unknown(out, err); // the iterator will report the failure
    ls_dataset_release(made);
    ls_value_release(first);
    lsi_iterator_close(it);
    return st;
}

/* ---- building ---- */

static lsi_shared_user *retain_user(lsi_shared_user *s)
{
    if (s != NULL) {
        (void)atomic_fetch_add(&s->refs, 1);
    }
    return s;
}

static void release_user(lsi_shared_user *s)
{
    if (s != NULL && atomic_fetch_sub(&s->refs, 1) == 1) {
        s->destroy(s);
    }
}

static void destroy_interleave(ls_dataset *d)
{
    lsi_interleave_node *node = (lsi_interleave_node *)d;

    release_user(node->shared);
    lsi_free(node->reader);
}

/* Of the process, not of the thread: the order must not depend on it. */
static int64_t usable_cpus(void)
{
    return LSI_MAX(LSI_MIN(lsi_affinity_unpinned(NULL, 0), lsi_cpu_quota()), 1);
}

/* The number of slots that TensorFlow chooses. */
static int64_t choose_slots(int parallel)
{
    const int64_t cpus = usable_cpus();

    if (parallel > 0) {
        return LSI_MIN(parallel, cpus);
    }
    return parallel == LS_AUTOTUNE ? (cpus + 2) / 3 : cpus;
}

static ls_dataset *check_options(ls_dataset *made, const ls_interleave_options *o)
{
    if (o->cycle < LS_AUTOTUNE || o->block < 0) {
        return lsi_dataset_fail(
            made, LS_INVALID_ARGUMENT, LS_KIND_OP,
            "interleave: %lld inputs in turn, %lld elements per visit: "
            "both are positive, or 0 to let the library choose",
            (long long)o->cycle, (long long)o->block);
    }
    if (o->parallel < LS_AUTOTUNE) {
        return lsi_dataset_fail(made, LS_INVALID_ARGUMENT, LS_KIND_OP,
                                "interleave: %d inputs read at once; 0 is none ahead, "
                                "LS_AUTOTUNE lets the library choose",
                                o->parallel);
    }
    if (o->cycle > 0 && o->parallel > o->cycle) {
        return lsi_dataset_fail(made, LS_INVALID_ARGUMENT, LS_KIND_OP,
                                "interleave: %d inputs read at once, but only %lld are "
                                "visited in turn; parallel is at most cycle",
                                o->parallel, (long long)o->cycle);
    }
    return made;
}

static ls_status keep_reader(lsi_interleave_node *node, const char *reader, ls_error *err)
{
    if (reader == NULL) {
        return LS_OK;
    }
    node->reader = lsi_strdup(reader);
    node->base.reader = node->reader;
    return node->reader != NULL
               ? LS_OK
               : lsi_fail_memory(err, "the name of a reader", strlen(reader));
}

/* Completes a node whose function and options are set. */
static ls_dataset *complete_interleave(lsi_interleave_node *node,
                                       const ls_interleave_options *o)
{
    ls_dataset *made = &node->base;
    const ls_dataset *from = made->inputs[0];
    const bool endless = node->parallel != 0 && from->cardinality == LS_INFINITE;
    ls_error e = LS_ERROR_INIT;
    ls_spec *spec = ls_spec_retain(o->spec);
    ls_status st = spec != NULL ? LS_OK : spec_of_first(node, &spec, &e);

    if (st == LS_OK) {
        st = keep_reader(node, o->reader, &e);
    }
    lsi_dataset_mix_parameter(made, (uint64_t)node->slots);
    lsi_dataset_mix_parameter(made, (uint64_t)node->visit);
    return lsi_dataset_done(made, st, spec, endless ? LS_INFINITE : LS_UNKNOWN_SIZE, &e);
}

static ls_dataset *rebuild_interleave(const ls_dataset *d, ls_dataset *const *inputs);

static const lsi_dataset_ops flat_ops = {.kind = "flat_map",
                                         .iterate = lsi_interleave_iterate,
                                         .rebuild = rebuild_interleave,
                                         .destroy = destroy_interleave};
static const lsi_dataset_ops serial_ops = {.kind = "interleave",
                                           .iterate = lsi_interleave_iterate,
                                           .rebuild = rebuild_interleave,
                                           .destroy = destroy_interleave};
static const lsi_dataset_ops parallel_ops = {.kind = "parallel_interleave",
                                             .iterate = lsi_interleave_iterate,
                                             .rebuild = rebuild_interleave,
                                             .destroy = destroy_interleave};

static ls_dataset *build_interleave(ls_dataset *d, ls_dataset_fn fn, void *user,
                                    lsi_shared_user *shared, bool flat,
                                    const ls_interleave_options *opts)
{
    ls_interleave_options o = LS_INTERLEAVE_OPTIONS_INIT;
    const lsi_dataset_ops *ops = &flat_ops;
    ls_dataset *made = NULL;
    lsi_interleave_node *node = NULL;

    if (opts != NULL) {
        memcpy(&o, opts, LSI_MIN(opts->struct_size, sizeof o));
    }
    if (flat) {
        o.cycle = 1;
        o.block = 1;
        o.parallel = 0;
    } else {
        ops = o.parallel != 0 ? &parallel_ops : &serial_ops;
    }
    made = lsi_dataset_new(ops, sizeof *node, &d, 1);
    node = (lsi_interleave_node *)made;
    if (made == NULL) {
        release_user(shared);
        return NULL;
    }
    node->shared = shared;
    if (lsi_dataset_bad(made) || lsi_dataset_bad(check_options(made, &o))) {
        return made;
    }
    if (fn == NULL) {
        return lsi_dataset_fail(made, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                "%s: the function is NULL", ops->kind);
    }
    node->fn = fn;
    node->user = user;
    node->cycle = o.cycle;
    node->block = o.block;
    node->slots = o.cycle > 0 ? o.cycle : choose_slots(o.parallel);
    node->visit = LSI_MAX(o.block, 1);
    node->parallel = o.parallel;
    node->flat = flat;
    node->unordered = o.unordered;
    return complete_interleave(node, &o);
}

static ls_dataset *rebuild_interleave(const ls_dataset *d, ls_dataset *const *inputs)
{
    const lsi_interleave_node *node = (const lsi_interleave_node *)d;
    ls_interleave_options o = LS_INTERLEAVE_OPTIONS_INIT;
    ls_dataset *made = NULL;

    o.spec = d->spec;
    o.cycle = node->cycle;
    o.block = node->block;
    o.parallel = node->parallel;
    o.unordered = node->unordered;
    o.reader = node->reader;
    made = build_interleave(ls_dataset_retain(inputs[0]), node->fn, node->user,
                            retain_user(node->shared), node->flat, &o);
    if (!lsi_dataset_bad(made)) {
        made->print = d->print; // including parameters that were mixed in later
    }
    return made;
}

ls_dataset *lsi_dataset_interleave_shared(ls_dataset *d, ls_dataset_fn fn,
                                          lsi_shared_user *user, bool flat,
                                          const ls_interleave_options *opts)
{
    return build_interleave(d, fn, user, user, flat, opts);
}

ls_dataset *ls_dataset_flat_map(ls_dataset *d, ls_dataset_fn fn, void *user,
                                const ls_interleave_options *opts)
{
    return build_interleave(d, fn, user, NULL, true, opts);
}

ls_dataset *ls_dataset_interleave(ls_dataset *d, ls_dataset_fn fn, void *user,
                                  const ls_interleave_options *opts)
{
    return build_interleave(d, fn, user, NULL, false, opts);
}
