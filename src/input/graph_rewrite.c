/* Rewriting dataset graphs: new nodes over old ones. */
#include "base/hash.h"
#include "input/input.h"

#include <string.h>

bool lsi_dataset_is(const ls_dataset *d, const char *kind)
{
    return strcmp(d->ops->kind, kind) == 0;
}

bool lsi_dataset_among(const ls_dataset *d, const char *const *kinds)
{
    for (size_t i = 0; kinds[i] != NULL; i++) {
        if (lsi_dataset_is(d, kinds[i])) {
            return true;
        }
    }
    return false;
}

ls_status lsi_graph_made(ls_dataset *made, ls_dataset **out, ls_error *err)
{
    const ls_status st = ls_dataset_status(made, err);

    if (st != LS_OK) {
        ls_dataset_release(made);
        return st;
    }
    *out = made;
    return LS_OK;
}

/* The operator of `d` with other inputs, which are borrowed. */
static ls_status over_inputs(const ls_dataset *d, ls_dataset *const *inputs,
                             ls_dataset **out, ls_error *err)
{
    return lsi_graph_made(lsi_dataset_rebuild(d, inputs), out, err);
}

ls_status lsi_graph_over(const ls_dataset *d, ls_dataset *input, ls_dataset **out,
                         ls_error *err)
{
    ls_dataset **inputs = lsi_alloc((size_t)d->ninputs, sizeof(ls_dataset *));
    ls_status st;

    if (inputs == NULL) {
        st = lsi_fail_memory(err, "a dataset", (size_t)d->ninputs * sizeof(ls_dataset *));
    } else {
        memcpy(inputs, d->inputs, (size_t)d->ninputs * sizeof(ls_dataset *));
        inputs[0] = input;
        st = over_inputs(d, inputs, out, err);
    }
    lsi_free(inputs);
    ls_dataset_release(input);
    return st;
}

/* A node and its replacement. */
struct pair {
    const ls_dataset *from;
    ls_dataset *to; /* owned */
};

struct rewriting {
    lsi_graph_fn fn;
    void *user;
    ls_error *err;
    struct pair *done;
    size_t ndone, room;
};

static ls_dataset *find_rewritten(const struct rewriting *w, const ls_dataset *d)
{
    for (size_t i = 0; i < w->ndone; i++) {
        if (w->done[i].from == d) {
            return w->done[i].to;
        }
    }
    return NULL;
}

/* Records the replacement of `d`; takes ownership of `to`. */
static ls_status note_rewritten(struct rewriting *w, const ls_dataset *d, ls_dataset *to)
{
    if (w->ndone == w->room) {
        const size_t room = w->room == 0 ? 16 : 2 * w->room;
        struct pair *more = lsi_realloc(w->done, w->room, room, sizeof *more);

        if (more == NULL) {
            ls_dataset_release(to);
            return lsi_fail_memory(w->err, "rewriting a dataset", room * sizeof *more);
        }
        w->done = more;
        w->room = room;
    }
    w->done[w->ndone++] = (struct pair){d, to};
    return LS_OK;
}

/* Rewrites node `d`, whose rewritten inputs are `inputs`. */
static ls_status rewrite_node(struct rewriting *w, ls_dataset *d,
                              ls_dataset *const *inputs)
{
    ls_dataset *to = NULL;
    bool changed = false;
    ls_status st = w->fn(w->user, d, inputs, &to, w->err);

    for (int i = 0; i < d->ninputs; i++) {
        changed = changed || inputs[i] != d->inputs[i];
    }
    if (st == LS_OK && to == NULL) {
        if (changed) {
            st = over_inputs(d, inputs, &to, w->err);
        } else {
            to = ls_dataset_retain(d);
        }
    }
    return st == LS_OK ? note_rewritten(w, d, to) : st;
}

/* Rewrites the graph of `d`; *out is borrowed from the list of replacements. */
static ls_status rewrite_graph(struct rewriting *w, ls_dataset *d, ls_dataset **out)
{
    ls_dataset **inputs;
    ls_status st = LS_OK;

    *out = find_rewritten(w, d);
    if (*out != NULL) {
        return LS_OK;
    }
    inputs = lsi_alloc((size_t)d->ninputs + 1, sizeof(ls_dataset *));
    if (inputs == NULL) {
        return lsi_fail_memory(w->err, "rewriting a dataset",
                               (size_t)d->ninputs * sizeof(ls_dataset *));
    }
    for (int i = 0; i < d->ninputs && st == LS_OK; i++) {
        st = rewrite_graph(w, d->inputs[i], &inputs[i]);
    }
    if (st == LS_OK) {
        st = rewrite_node(w, d, inputs);
    }
    lsi_free(inputs);
    *out = find_rewritten(w, d);
    return st;
}

ls_status lsi_graph_rewrite(ls_dataset *d, lsi_graph_fn fn, void *user, ls_dataset **out,
                            ls_error *err)
{
    struct rewriting w = {fn, user, err, NULL, 0, 0};
    ls_dataset *to = NULL;
    const ls_status st = rewrite_graph(&w, d, &to);

    if (st == LS_OK) {
        *out = ls_dataset_retain(to);
    }
    for (size_t i = 0; i < w.ndone; i++) {
        ls_dataset_release(w.done[i].to);
    }
    lsi_free(w.done);
    return st;
}

static uint64_t mix_hash(uint64_t h, uint64_t x)
{
    h = (h ^ x) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ (h >> 29);
}

uint64_t lsi_spec_print(const ls_spec *s)
{
    uint64_t h = mix_hash(LSI_HASH_INIT, (uint64_t)s->kind);

    h = mix_hash(mix_hash(mix_hash(h, s->dtype), (uint64_t)s->ndim), s->size);
    if (s->kind == LS_SPEC_TENSOR || s->kind == LS_SPEC_SPARSE) {
        for (int a = 1; a < s->ndim; a++) { // the number of rows may differ
            h = mix_hash(h, (uint64_t)s->dims[a]);
        }
    }
    for (size_t i = 0; i < s->size; i++) {
        if (s->keys != NULL) {
            h = lsi_hash(h, s->keys[i], strlen(s->keys[i]) + 1);
        }
        h = mix_hash(h, lsi_spec_print(s->child[i]));
    }
    return h;
}
