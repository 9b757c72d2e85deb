/*
 * window: elements that are datasets of consecutive elements of the input. A window has
 * every `stride`-th element of a span; the next span begins `shift` elements later. Of
 * elements with several components a window has a dataset per component.
 */
#include "data/user_function.h"

#include <string.h>

struct window_node {
    ls_dataset base;
    int64_t size, shift, stride;
    int64_t span; // elements from a window's first to its last
    bool exact;   // windows that are not full are left out
};

struct window {
    lsi_unary_iterator unary;
    bool over;       // the input has ended; kept, because its position is saved with ours
    ls_value **held; // elements [first, first + count) of the input
    size_t first, count, room;
    int64_t ahead; // elements to pass over before the next window
};

static bool make_held_room(struct window *w)
{
    size_t room = LSI_MAX(16, 2 * w->room);
    ls_value **grown = NULL;

    if (w->first + w->count < w->room) {
        return true;
    }
    if (w->first > w->room / 2) {
        memmove(w->held, w->held + w->first, w->count * sizeof(ls_value *));
        w->first = 0;
        return true;
    }
    grown = lsi_realloc(w->held, w->room, room, sizeof(ls_value *));
    if (grown != NULL) {
        w->held = grown;
        w->room = room;
    }
    return grown != NULL;
}

static void drop_held(struct window *w, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ls_value_release(w->held[w->first + i]);
    }
    w->count -= n;
    w->first = w->count > 0 ? w->first + n : 0;
}

/* Passes over elements between two windows. */
static ls_status pass_gap(struct window *w, ls_error *err)
{
    int64_t passed = 0;
    ls_status st = LS_OK;

    if (w->ahead > 0 && !w->over) {
        st = lsi_iterator_skip(w->unary.input, w->ahead, &passed, err);
        w->ahead -= passed;
    }
    return st;
}

/* Reads until a whole span is held, or the input ends. */
static ls_status fill_span(struct window *w, int64_t span, ls_error *err)
{
    ls_status st = pass_gap(w, err);

    while (st == LS_OK && !w->over && (int64_t)w->count < span) {
        ls_value *element = NULL;

        if (!make_held_room(w)) {
            return lsi_fail_memory(err, "a window", 2 * w->room * sizeof(ls_value *));
        }
        st = lsi_iterator_next(w->unary.input, &element, err);
        if (st == LS_OK) {
            w->held[w->first + w->count++] = element;
        }
    }
    if (st == LS_OUT_OF_RANGE) {
        w->over = true;
        st = LS_OK;
    }
    return st;
}

/* Component `leaf` of the window's elements as a dataset. `part` has room for `n`. */
static ls_status dataset_of_leaf(const ls_spec *spec, size_t leaf,
                                 const ls_value **leaves, size_t nleaves, size_t n,
                                 const ls_value **part, ls_value **out, ls_error *err)
{
    ls_dataset *d = NULL;
    ls_status st = LS_OK;

    for (size_t i = 0; i < n; i++) {
        part[i] = leaves[i * nleaves + leaf];
    }
    // the elements are only retained
    d = lsi_dataset_of_elements((ls_value *const *)part, n,
                                (ls_spec *)lsi_spec_leaf(spec, leaf));
    st = d != NULL ? ls_value_dataset(d, out, err)
                   : lsi_fail_memory(err, "a window", n * sizeof(ls_value *));
    ls_dataset_release(d);
    return st;
}

/* The window over the first `n` elements held. */
static ls_status build_window(struct window *w, const ls_spec *spec, size_t n,
                              ls_value **out, ls_error *err)
{
    const struct window_node *node = (const struct window_node *)w->unary.base.dataset;
    const size_t nleaves = lsi_spec_leaves(spec);
    const ls_value **leaves = lsi_alloc(LSI_MAX(n * nleaves, 1), sizeof(ls_value *));
    const ls_value **part = lsi_alloc(n, sizeof(ls_value *));
    ls_value **made = lsi_alloc(LSI_MAX(nleaves, 1), sizeof(ls_value *));
    ls_status st = LS_OK;

    if (leaves == NULL || part == NULL || made == NULL) {
        st = lsi_fail_memory(err, "a window", n * nleaves * sizeof(ls_value *));
        goto out;
    }
    for (size_t i = 0; i < n && st == LS_OK; i++) {
        st = lsi_spec_flatten(spec, w->held[w->first + i * (size_t)node->stride],
                              leaves + i * nleaves, err);
    }
    for (size_t k = 0; k < nleaves && st == LS_OK; k++) {
        st = dataset_of_leaf(spec, k, leaves, nleaves, n, part, &made[k], err);
    }
    if (st == LS_OK) {
        st = lsi_spec_pack(spec, made, out, err);
    }
out:
    lsi_free(leaves);
    lsi_free(part);
    if (made != NULL) {
        lsi_value_release_all(made, nleaves);
    }
    return st;
}

/* The next window, with the spec of the input or, if unknown, of its first element. */
static ls_status emit_window(struct window *w, size_t n, ls_value **out, ls_error *err)
{
    ls_spec *spec = ls_spec_retain(w->unary.base.dataset->inputs[0]->spec);
    ls_status st = LS_OK;

    if (lsi_spec_is_unknown(spec)) {
        ls_spec_release(spec);
        spec = NULL;
        st = lsi_spec_of(w->held[w->first], &spec, err);
    }
    if (st == LS_OK) {
        st = build_window(w, spec, n, out, err);
    }
    ls_spec_release(spec);
    return st;
}

static ls_status next_window(lsi_iterator *it, ls_value **out, ls_error *err)
{
    const struct window_node *node = (const struct window_node *)it->dataset;
    struct window *w = (struct window *)it;
    ls_status st = fill_span(w, node->span, err);
    size_t n = 0;

    if (st != LS_OK) {
        return st;
    }
    if (w->count == 0 || (node->exact && (int64_t)w->count < node->span)) {
        drop_held(w, w->count);
        return LS_OUT_OF_RANGE;
    }
    n = LSI_MIN((w->count - 1) / (size_t)node->stride + 1, (size_t)node->size);
    st = emit_window(w, n, out, err);
    if (st == LS_RESOURCE_EXHAUSTED) {
        return st; // the next call returns the same window
    }
    if (node->shift >= (int64_t)w->count) {
        w->ahead = node->shift - (int64_t)w->count;
        drop_held(w, w->count);
    } else {
        drop_held(w, (size_t)node->shift);
    }
    return st;
}

static ls_status save_window(lsi_iterator *it, lsi_state_writer *out, ls_error *err)
{
    const struct window *w = (const struct window *)it;

    lsi_state_write_bool(out, w->over);
    lsi_state_write_u64(out, (uint64_t)w->ahead);
    lsi_state_write_u64(out, w->count);
    for (size_t i = 0; i < w->count; i++) {
        lsi_state_write_value(out, w->held[w->first + i]);
    }
    return lsi_iterator_save(w->unary.input, out, err);
}

static ls_status restore_window(lsi_iterator *it, lsi_state_reader *r, ls_error *err)
{
    const struct window_node *node = (const struct window_node *)it->dataset;
    struct window *w = (struct window *)it;
    uint64_t ahead = 0, count = 0;
    ls_status st = lsi_state_read_bool(r, &w->over, err);

    drop_held(w, w->count);
    if (st == LS_OK) {
        st = lsi_state_read_count(r, (uint64_t)node->shift, &ahead, err);
    }
    if (st == LS_OK) {
        st = lsi_state_read_count(r, (uint64_t)node->span, &count, err);
    }
    while (st == LS_OK && w->count < count) {
        ls_value *element = NULL;

        if (!make_held_room(w)) {
            return lsi_fail_memory(err, "a window", 2 * w->room * sizeof(ls_value *));
        }
        st = lsi_state_read_element(r, it->dataset->inputs[0]->spec, &element, err);
        if (st == LS_OK) {
            w->held[w->first + w->count++] = element;
        }
    }
    if (st == LS_OK) {
        w->ahead = (int64_t)ahead;
        st = lsi_iterator_restore(w->unary.input, r, err);
    }
    return st;
}

static void close_window(lsi_iterator *it)
{
    struct window *w = (struct window *)it;

    drop_held(w, w->count);
    lsi_free(w->held);
    lsi_unary_iterator_close(it);
}

static ls_status iterate_window(ls_dataset *d, const lsi_opening *how, lsi_iterator **out,
                                ls_error *err)
{
    static const lsi_iterator_ops ops = {.next = next_window,
                                         .save = save_window,
                                         .restore = restore_window,
                                         .close = close_window};

    return lsi_unary_iterator_new(&ops, sizeof(struct window), d, how, out, err);
}

/* ---- the node ---- */

static ls_dataset *rebuild_window(const ls_dataset *d, ls_dataset *const *inputs)
{
    const struct window_node *node = (const struct window_node *)d;

    return ls_dataset_window(ls_dataset_retain(inputs[0]), node->size, node->shift,
                             node->stride, node->exact);
}

static int64_t count_windows(const struct window_node *node, int64_t n)
{
    if (n < 0) {
        return n;
    }
    if (node->exact) {
        return n < node->span ? 0 : (n - node->span) / node->shift + 1;
    }
    return n / node->shift + (n % node->shift > 0);
}

static ls_status dataset_of(const ls_spec *leaf, void *user, ls_spec **out, ls_error *err)
{
    (void)user;
    return lsi_spec_is_unknown(leaf) ? lsi_spec_unknown(out, err)
                                     : ls_spec_dataset((ls_spec *)leaf, out, err);
}

ls_dataset *ls_dataset_window(ls_dataset *d, int64_t size, int64_t shift, int64_t stride,
                              bool drop_remainder)
{
    static const lsi_dataset_ops ops = {
        .kind = "window", .iterate = iterate_window, .rebuild = rebuild_window};
    ls_dataset *made = lsi_dataset_new(&ops, sizeof(struct window_node), &d, 1);
    struct window_node *node = (struct window_node *)made;
    ls_error e = LS_ERROR_INIT;
    ls_spec *spec = NULL;
    ls_status st = LS_OK;

    if (lsi_dataset_bad(made)) {
        return made;
    }
    if (size <= 0 || shift <= 0 || stride <= 0) {
        return lsi_dataset_fail(
            made, LS_INVALID_ARGUMENT, LS_KIND_OP,
            "window: size %lld, shift %lld and stride %lld must each be "
            "positive",
            (long long)size, (long long)shift, (long long)stride);
    }
    if (size - 1 > (INT64_MAX - 1) / stride) {
        return lsi_dataset_fail(made, LS_INVALID_ARGUMENT, LS_KIND_OP,
                                "window: %lld elements at a stride of %lld are more than "
                                "can be counted",
                                (long long)size, (long long)stride);
    }
    node->size = size;
    node->shift = shift;
    node->stride = stride;
    node->span = (size - 1) * stride + 1;
    node->exact = drop_remainder;
    lsi_dataset_mix_parameter(made, (uint64_t)size);
    lsi_dataset_mix_parameter(made, (uint64_t)shift);
    lsi_dataset_mix_parameter(made, (uint64_t)stride);
    lsi_dataset_mix_parameter(made, drop_remainder);
    st = lsi_spec_map(d->spec, dataset_of, NULL, &spec, &e);
    return lsi_dataset_done(made, st, spec, count_windows(node, d->cardinality), &e);
}
