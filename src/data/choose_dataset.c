/*
 * choose and sample: each element comes from one of several datasets. choose reads the
 * index from a dataset of choices; sample draws it by weights, among the datasets that
 * have not ended, and with the same draws in every pass.
 */
#include "data/data.h"

#include <math.h>
#include <string.h>

struct choose_node {
    ls_dataset base; // data inputs, then the choices
    int n;           // data inputs
    bool stop;       // the end of one dataset ends all
    double *weights; // of a sample; NULL: choose
    lsi_mutex lock;  // guards the pair, which a restored state replaces
    lsi_seeds seeds;
};

struct choose {
    lsi_iterator base;
    const struct choose_node *node;
    lsi_iterator **inputs;
    bool *over; // per data input: it has ended; its position is saved with ours
    int live;   // data inputs that have not ended
    bool ended;
    lsi_seeds seeds;
    lsi_draws draw;
    double *sums;  // of a sample, as a tree: sums[i] = sums[2i] + sums[2i + 1]
    size_t leaves; // index of the first weight: a power of two
};

/* ---- picks ---- */

/* A uniform random number in [0, 1). */
static double draw_uniform(lsi_draws *g)
{
    const uint64_t high = lsi_draws_next(g), low = lsi_draws_next(g);

    return (double)((high << 32 | low) >> 11) * 0x1p-53;
}

/* Sets a weight and recomputes the sums above it (adding a difference would round). */
static void set_weight(struct choose *c, int input, double weight)
{
    size_t at = c->leaves + (size_t)input;

    c->sums[at] = weight;
    for (at /= 2; at >= 1; at /= 2) {
        c->sums[at] = c->sums[2 * at] + c->sums[2 * at + 1];
    }
}

/* Allocates the sums; inputs that have ended have the weight 0. */
static ls_status add_weights(struct choose *c, ls_error *err)
{
    const size_t n = (size_t)c->node->n;

    for (c->leaves = 1; c->leaves < n;) {
        c->leaves *= 2;
    }
    if (c->sums == NULL) {
        c->sums = lsi_alloc(2 * c->leaves, sizeof *c->sums);
    }
    if (c->sums == NULL) {
        return lsi_fail_memory(err, "the weights of a sample",
                               2 * c->leaves * sizeof *c->sums);
    }
    LSI_ASSERT(c->over != NULL);
    for (size_t i = 0; i < n; i++) {
        c->sums[c->leaves + i] = c->over[i] ? 0 : c->node->weights[i];
    }
    for (size_t at = c->leaves - 1; at >= 1; at--) {
        c->sums[at] = c->sums[2 * at] + c->sums[2 * at + 1];
    }
    return LS_OK;
}

/* Draws one of the inputs that have not ended, by weight, in O(log n). */
static int draw_input(struct choose *c)
{
    double left = draw_uniform(&c->draw) * c->sums[1];
    size_t at = 1;

    while (at < c->leaves) {
        at *= 2;
        if (left >= c->sums[at] && c->sums[at + 1] > 0) { // > 0: sums are rounded
            left -= c->sums[at];
            at++;
        }
    }
    return (int)(at - c->leaves);
}

static ls_status read_choice(struct choose *c, int *pick, ls_error *err)
{
    ls_value *v = NULL;
    const ls_tensor *t = NULL;
    int64_t x = -1;
    ls_status st = lsi_iterator_next(c->inputs[c->node->n], &v, err);

    if (st != LS_OK) {
        return st;
    }
    t = ls_value_as_tensor(v);
    if (t == NULL || ls_tensor_dtype(t) != LS_I64 || ls_tensor_ndim(t) != 0) {
        st = lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                           "choose: a choice is an int64 scalar");
    } else {
        x = *(const int64_t *)ls_tensor_data(t);
        if (x < 0 || x >= c->node->n) {
            st = lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                          "choose: a choice of %lld among %d datasets; choices are 0 to "
                          "%d",
                          (long long)x, c->node->n, c->node->n - 1);
        }
    }
    ls_value_release(v);
    *pick = (int)x;
    return st;
}

/* ---- the iterator ---- */

static ls_status next_choice(lsi_iterator *it, ls_value **out, ls_error *err)
{
    struct choose *c = (struct choose *)it;

    while (!c->ended && c->live > 0) {
        ls_status st = LS_OK;
        int pick = 0;

        if (c->node->weights != NULL) {
            pick = draw_input(c);
        } else {
            st = read_choice(c, &pick, err);
        }
        if (st == LS_OUT_OF_RANGE) {
            break;
        }
        if (st != LS_OK) {
            return st;
        }
        if (!c->over[pick]) {
            st = lsi_iterator_next(c->inputs[pick], out, err);
            if (st != LS_OUT_OF_RANGE) {
                return st;
            }
            c->over[pick] = true;
            c->live--;
            if (c->sums != NULL) {
                set_weight(c, pick, 0);
            }
        }
        if (c->node->stop) {
            break;
        }
    }
    c->ended = true;
    return LS_OUT_OF_RANGE;
}

static ls_status save_choice(lsi_iterator *it, lsi_state_writer *w, ls_error *err)
{
    const struct choose *c = (const struct choose *)it;
    ls_status st = LS_OK;

    lsi_state_write_bool(w, c->ended);
    lsi_state_write_u64(w, c->seeds.a);
    lsi_state_write_u64(w, c->seeds.b);
    lsi_state_write_u64(w, c->draw.draws);
    for (int i = 0; i < it->dataset->ninputs && st == LS_OK; i++) {
        lsi_state_write_bool(w, c->over[i]);
        st = lsi_iterator_save(c->inputs[i], w, err);
    }
    return st;
}

/* The pair of seeds and the position in its draws; later passes use the pair as well. */
static ls_status restore_draws(struct choose *c, lsi_state_reader *r, ls_error *err)
{
    struct choose_node *node = (struct choose_node *)c->base.dataset;
    uint64_t draws = 0;
    ls_status st = lsi_state_read_u64(r, &c->seeds.a, err);

    if (st == LS_OK) {
        st = lsi_state_read_u64(r, &c->seeds.b, err);
    }
    if (st == LS_OK) {
        st = lsi_state_read_u64(r, &draws, err);
    }
    if (st == LS_OK) {
        lsi_draws_init(&c->draw, c->seeds);
        lsi_draws_skip(&c->draw, draws);
        lsi_mutex_lock(&node->lock);
        node->seeds = c->seeds;
        lsi_mutex_unlock(&node->lock);
    }
    return st;
}

static ls_status restore_choice(lsi_iterator *it, lsi_state_reader *r, ls_error *err)
{
    struct choose *c = (struct choose *)it;
    ls_status st = lsi_state_read_bool(r, &c->ended, err);

    if (st == LS_OK) {
        st = restore_draws(c, r, err);
    }
    c->live = 0;
    for (int i = 0; i < it->dataset->ninputs && st == LS_OK; i++) {
        st = lsi_state_read_bool(r, &c->over[i], err);
        c->live += i < c->node->n && !c->over[i];
        if (st == LS_OK) {
            st = lsi_iterator_restore(c->inputs[i], r, err);
        }
    }
    return st == LS_OK && c->node->weights != NULL ? add_weights(c, err) : st;
}

static void close_choose(lsi_iterator *it)
{
    struct choose *c = (struct choose *)it;

    for (int i = 0; c->inputs != NULL && i < it->dataset->ninputs; i++) {
        lsi_iterator_close(c->inputs[i]);
    }
    lsi_free(c->inputs);
    lsi_free(c->over);
    lsi_free(c->sums);
}

static ls_status iterate_choice(ls_dataset *d, const lsi_opening *how, lsi_iterator **out,
                                ls_error *err)
{
    static const lsi_iterator_ops ops = {.next = next_choice,
                                         .save = save_choice,
                                         .restore = restore_choice,
                                         .close = close_choose};
    struct choose_node *node = (struct choose_node *)d;
    lsi_iterator *it = NULL;
    struct choose *c = NULL;
    ls_status st = lsi_iterator_new(&ops, sizeof *c, d, how, &it, err);

    if (st != LS_OK) {
        return st;
    }
    c = (struct choose *)it;
    c->node = node;
    c->live = node->n;
    lsi_mutex_lock(&node->lock);
    c->seeds = node->seeds;
    lsi_mutex_unlock(&node->lock);
    lsi_draws_init(&c->draw, c->seeds);
    c->inputs = lsi_alloc((size_t)d->ninputs, sizeof(lsi_iterator *));
    c->over = lsi_alloc((size_t)d->ninputs, sizeof(bool));
    if (c->inputs == NULL || c->over == NULL) {
        st = lsi_fail_memory(err, "the inputs of a choice",
                             (size_t)d->ninputs * sizeof(lsi_iterator *));
    }
    if (st == LS_OK && node->weights != NULL) {
        st = add_weights(c, err);
    }
    for (int i = 0; i < d->ninputs && st == LS_OK; i++) {
        st = lsi_iterator_open_input(it, d->inputs[i], lsi_lineage_below(it, (uint64_t)i),
                                     &c->inputs[i], err);
    }
    if (st == LS_OK) {
        *out = it;
    } else {
        lsi_iterator_close(it);
    }
    return st;
}

/* ---- nodes ---- */

static void destroy_choice(ls_dataset *d)
{
    struct choose_node *node = (struct choose_node *)d;

    lsi_mutex_destroy(&node->lock);
    lsi_free(node->weights);
}

static ls_dataset *rebuild_choice(const ls_dataset *d, ls_dataset *const *inputs);

static const lsi_dataset_ops choose_ops = {.kind = "choose",
                                           .iterate = iterate_choice,
                                           .rebuild = rebuild_choice,
                                           .destroy = destroy_choice};
static const lsi_dataset_ops sample_ops = {.kind = "sample",
                                           .iterate = iterate_choice,
                                           .rebuild = rebuild_choice,
                                           .destroy = destroy_choice};

/* The spec that the elements of all data inputs have in common. */
static ls_status merge_specs(const ls_dataset *d, int n, ls_spec **out, ls_error *err)
{
    ls_spec *spec = ls_spec_retain(d->inputs[0]->spec);
    ls_status st = LS_OK;

    for (int i = 1; i < n && st == LS_OK; i++) {
        ls_spec *both = NULL;

        st = lsi_spec_common(spec, d->inputs[i]->spec, &both, err);
        ls_spec_release(spec);
        spec = both;
    }
    if (st == LS_OK) {
        *out = spec;
    }
    return st;
}

/* The inputs are taken over; the last `ninputs - n` are the choices. */
static ls_dataset *build_choice(const lsi_dataset_ops *ops, ls_dataset *const *inputs,
                                int ninputs, int n, bool stop)
{
    ls_dataset *made = lsi_dataset_new(ops, sizeof(struct choose_node), inputs, ninputs);
    struct choose_node *node = (struct choose_node *)made;
    int64_t cardinality = LS_UNKNOWN_SIZE;
    ls_error e = LS_ERROR_INIT;
    ls_spec *spec = NULL;
    ls_status st = LS_OK;

    if (made == NULL) {
        return NULL;
    }
    lsi_mutex_init(&node->lock);
    if (lsi_dataset_bad(made)) {
        return made;
    }
    node->n = n;
    node->stop = stop;
    lsi_dataset_mix_parameter(made, stop);
    for (int i = 0; i < n; i++) {
        if (made->inputs[i]->cardinality == LS_INFINITE) {
            cardinality = LS_INFINITE;
        }
    }
    st = merge_specs(made, n, &spec, &e);
    return lsi_dataset_done(made, st, spec, cardinality, &e);
}

static bool is_choice(const ls_spec *s)
{
    return lsi_spec_is_unknown(s) ||
           (s->kind == LS_SPEC_TENSOR && s->dtype == LS_I64 && s->ndim <= 0);
}

static void release_datasets(ls_dataset **ds, size_t n)
{
    for (size_t i = 0; ds != NULL && i < n; i++) {
        ls_dataset_release(ds[i]);
    }
}

/* Releases the arguments of choose or sample and returns a failed dataset. */
static ls_dataset *refuse_inputs(ls_dataset **ds, size_t n, ls_dataset *choices,
                                 const char *what, const char *why)
{
    release_datasets(ds, n);
    ls_dataset_release(choices);
    return lsi_dataset_failed(LS_INVALID_ARGUMENT, LS_KIND_VALUE, "%s: %s", what, why);
}

ls_dataset *ls_dataset_choose(ls_dataset **ds, size_t n, ls_dataset *choices,
                              bool stop_on_empty)
{
    ls_dataset **inputs = NULL, *made = NULL;

    if (ds == NULL || n == 0 || n >= INT32_MAX) {
        return refuse_inputs(ds, n, choices, "choose",
                             "there is no dataset to choose from");
    }
    inputs = lsi_alloc(n + 1, sizeof(ls_dataset *));
    if (inputs == NULL) {
        release_datasets(ds, n);
        ls_dataset_release(choices);
        return NULL;
    }
    memcpy(inputs, ds, n * sizeof(ls_dataset *));
    inputs[n] = choices;
    made = build_choice(&choose_ops, inputs, (int)n + 1, (int)n, stop_on_empty);
    lsi_free(inputs);
    if (!lsi_dataset_bad(made) && !is_choice(choices->spec)) {
        char text[200];

        (void)ls_spec_text(choices->spec, text, sizeof text);
        return lsi_dataset_fail(made, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                                "choose: choices are int64 scalars, not %s", text);
    }
    return made;
}

/* A sample of inputs, which are taken over, with weights, which are borrowed. */
static ls_dataset *build_sample(ls_dataset *const *inputs, const double *weights, int n,
                                bool stop, lsi_seeds seeds)
{
    ls_dataset *made = build_choice(&sample_ops, inputs, n, n, stop);
    struct choose_node *node = (struct choose_node *)made;

    if (lsi_dataset_bad(made)) {
        return made;
    }
    node->seeds = seeds;
    node->weights = lsi_alloc((size_t)n, sizeof(double));
    if (node->weights == NULL) {
        return lsi_dataset_fail(made, LS_RESOURCE_EXHAUSTED, LS_KIND_OP,
                                "sample: no memory for %d weights", n);
    }
    for (int i = 0; i < n; i++) {
        uint64_t bits = 0;

        node->weights[i] = weights[i];
        memcpy(&bits, &weights[i], sizeof bits);
        lsi_dataset_mix_parameter(made, bits);
    }
    return made;
}

static ls_dataset *rebuild_choice(const ls_dataset *d, ls_dataset *const *inputs)
{
    const struct choose_node *node = (const struct choose_node *)d;

    for (int i = 0; i < d->ninputs; i++) {
        (void)ls_dataset_retain(inputs[i]);
    }
    return node->weights == NULL
               ? build_choice(&choose_ops, inputs, d->ninputs, node->n, node->stop)
               : build_sample(inputs, node->weights, node->n, node->stop, node->seeds);
}

/* The sum of the weights; negative: one of them is invalid. */
static double sum_weights(const double *weights, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        if (!isfinite(weights[i]) || weights[i] < 0) {
            return -1;
        }
        sum += weights[i];
    }
    return isfinite(sum) ? sum : -1;
}

/* Moves inputs with a positive weight to the front and releases the others. Returns how
 * many are left. */
static int drop_unweighted(ls_dataset **ds, double *weights, size_t n)
{
    int kept = 0;

    for (size_t i = 0; i < n; i++) {
        if (weights[i] > 0) {
            weights[kept] = weights[i];
            ds[kept++] = ds[i];
        } else {
            ls_dataset_release(ds[i]);
        }
    }
    return kept;
}

ls_dataset *ls_dataset_sample(ls_dataset **ds, size_t n, const double *weights,
                              const int64_t *seed, bool stop_on_empty)
{
    ls_dataset **inputs = NULL, *made = NULL;
    double *own = NULL;
    int kept = 0;

    if (ds == NULL || n == 0 || n > INT32_MAX) {
        return refuse_inputs(ds, n, NULL, "sample", "there is no dataset to draw from");
    }
    if (weights != NULL && !(sum_weights(weights, n) > 0)) {
        return refuse_inputs(
            ds, n, NULL, "sample",
            "weights are finite and not negative, and one of them is positive");
    }
    inputs = lsi_alloc(n, sizeof(ls_dataset *));
    own = lsi_alloc(n, sizeof(double));
    if (inputs == NULL || own == NULL) {
        release_datasets(ds, n);
        lsi_free(inputs);
        lsi_free(own);
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        inputs[i] = ds[i];
        own[i] = weights != NULL ? weights[i] : 1;
    }
    kept = drop_unweighted(inputs, own, n);
    made = kept == 1 ? inputs[0]
                     : build_sample(inputs, own, kept, stop_on_empty, lsi_seeds_of(seed));
    lsi_free(inputs);
    lsi_free(own);
    return made;
}
