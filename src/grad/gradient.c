/* Gradients: the journal walked backwards. */
#include "grad/walk.h"

/* The sum that a gradient which flows to `at` is added to. */
static lsi_sum *sum_of(const lsi_journal *j, const ls_tape *tape, uint64_t at)
{
    return lsi_walk_slot(j, tape, lsi_walk_target(j, at));
}

static bool clear_grads(ls_context *c, lsi_journal *j, size_t nodes)
{
    const size_t need = nodes * LSI_MAX_OUTPUTS;

    if (need > j->grads_room) {
        lsi_sum *grown = lsi_alloc(need + need / 2, sizeof *grown);

        if (grown == NULL) {
            lsi_journal_no_memory(c);
            return false;
        }
        lsi_free(j->grads);
        j->grads = grown;
        j->grads_room = need + need / 2;
    }
    if (need > 0) {
        memset(j->grads, 0, need * sizeof(lsi_sum));
    }
    return true;
}

uint64_t lsi_walk_oldest(const lsi_journal *j, const ls_tape *tape, uint64_t at,
                         size_t end)
{
    for (;;) {
        const struct ls_op_node *n = lsi_node_at(j, (size_t)(at >> 8));

        if (n->op != NULL || n->nin == 0 || !lsi_walk_meets(j, tape, n->from[0], end)) {
            return at;
        }
        at = n->from[0];
    }
}

static LSI_COLD void wrong_shape(ls_context *c, const struct ls_op_node *n, size_t i,
                                 const ls_tensor *g)
{
    (void)ls_context_fail(c, LS_INTERNAL,
                          "gradient of %s: input %zu is %s but its gradient is %s",
                          n->op->name, i, lsi_text_of(n->in[i]).s, lsi_text_of(g).s);
}

/* Adds what a record's operation gave for its inputs. */
static void add_inputs(ls_context *c, lsi_journal *j, const ls_tape *tape,
                       const struct ls_op_node *n, size_t end, ls_tensor **gin)
{
    for (size_t i = 0; i < n->nin && !lsi_failed(c); i++) {
        if (gin[i] == NULL) {
            continue;
        }
        if (!lsi_walk_meets(j, tape, n->from[i], end)) {
            lsi_fresh_spend(gin[i]);
            continue;
        }
        if (gin[i]->count != n->in[i]->count || gin[i]->dtype != n->in[i]->dtype) {
            wrong_shape(c, n, i, gin[i]);
            return;
        }
        lsi_sum_add(c, j, sum_of(j, tape, n->from[i]), gin[i], lsi_fresh_is_own(gin[i]));
    }
}

/*
 * The gradient of a slice is added where it belongs, if the sum exists already: many
 * slices of one tensor, of a split, would otherwise be padded to its size each.
 */
static bool add_slice(ls_context *c, lsi_journal *j, const ls_tape *tape,
                      const struct ls_op_node *n, const ls_tensor *g)
{
    const lsi_shape_attrs *attrs = n->attrs;
    const lsi_sum *sum = sum_of(j, tape, n->from[0]);

    return g != NULL && n->op == &lsi_op_slice && c->recording == 0 &&
           lsi_sum_is_own(sum) && g->ndim == n->in[0]->ndim &&
           lsi_add_slice_into(c, sum->t, g, attrs->begin);
}

/* Passes the gradients of a record's outputs on to its inputs. */
static void step_back(ls_context *c, lsi_journal *j, const ls_tape *tape, size_t index,
                      size_t end, ls_tensor **gin)
{
    struct ls_op_node *n = lsi_node_at(j, index);
    lsi_sum *sums = lsi_walk_slot(j, tape, lsi_place((uint32_t)index, 0));
    ls_tensor *gouts[LSI_MAX_OUTPUTS], *before;
    bool any = false, ours;

    for (size_t o = 0; o < n->nout; o++) {
        gouts[o] = lsi_sum_value(c, j, &sums[o]);
        any |= gouts[o] != NULL;
    }
    if (!any || lsi_failed(c)) {
        return;
    }
    if (n->op == NULL) { // watched: goes on to the record that made the tensor, if any
        if (n->nin > 0 && lsi_walk_meets(j, tape, n->from[0], end)) {
            lsi_sum_add(c, j, sum_of(j, tape, n->from[0]), gouts[0], false);
        }
        return;
    }
    n->needs = 0;
    for (size_t i = 0; i < n->nin; i++) {
        gin[i] = NULL;
        if (i < 64 && lsi_walk_meets(j, tape, n->from[i], end)) {
            n->needs |= (uint64_t)1 << i;
        }
    }
    c->file = n->file; // a failing gradient is reported at the site of its operation
    c->line = n->line;
    if (n->needs == 1 && add_slice(c, j, tape, n, gouts[0])) {
        return;
    }
    // A program's function may have kept what it made; a recording tape needs it, too.
    ours = c->recording == 0 && n->op->builtin != 0;
    before = c->tensors;
    n->op->gradient(c, n, gouts, gin);
    if (ours && !lsi_failed(c)) {
        lsi_fresh_sort(c, before, gin, n->nin);
    }
    add_inputs(c, j, tape, n, end, gin);
    if (ours && !lsi_failed(c)) {
        lsi_fresh_end(c, before);
    }
}

static size_t most_inputs(const lsi_journal *j, size_t begin, size_t end)
{
    size_t most = 1;

    for (size_t i = begin; i < end; i++) {
        most = LSI_MAX(most, lsi_node_at(j, i)->nin);
    }
    return most;
}

static bool alike(const ls_tensor *a, const ls_tensor *b)
{
    const ls_shape sa = ls_tensor_shape(a), sb = ls_tensor_shape(b);

    return a->dtype == b->dtype && ls_shape_equal(&sa, &sb);
}

static bool seed(ls_context *c, lsi_journal *j, const ls_tape *tape, size_t end,
                 ls_tensor *target, ls_tensor *given)
{
    if (target == NULL) {
        (void)ls_context_fail(c, LS_INVALID_ARGUMENT, "gradient: the target is NULL");
        return false;
    }
    if (given != NULL && !alike(given, target)) {
        (void)ls_context_fail(c, LS_INVALID_ARGUMENT,
                              "gradient: the target is %s, its output gradient is %s",
                              lsi_text_of(target).s, lsi_text_of(given).s);
        return false;
    }
    if (lsi_walk_meets(j, tape, lsi_journal_place(j, target), end)) {
        ls_tensor *g = given != NULL ? given : lsi_ones_like(c, target);

        if (g != NULL) {
            lsi_sum_add(c, j, sum_of(j, tape, lsi_journal_place(j, target)), g, false);
        }
    }
    return !lsi_failed(c);
}

bool lsi_walk_journal(ls_context *c, ls_tape *tape, ls_tensor *const *targets,
                      ls_tensor *const *given, size_t ntargets, lsi_finals *finals,
                      size_t *end_out)
{
    lsi_journal *j = lsi_journal_of(c);
    const size_t end = j->count;
    const char *file = c->file;
    const int line = c->line;
    ls_tensor **gin;

    if (tape->used && !tape->persistent) {
        (void)ls_context_fail(c, LS_FAILED_PRECONDITION,
                              "gradient: a tape gives gradients once; make it persistent "
                              "to ask more than once");
        return false;
    }
    tape->used = true;
    if (!tape->persistent) {
        tape->recording = false;
        c->recording &= (uint16_t)~tape->bit;
    }
    if (!clear_grads(c, j, end - tape->begin)) {
        return false;
    }
    gin = lsi_journal_alloc(j, most_inputs(j, tape->begin, end) * sizeof(ls_tensor *));
    if (gin == NULL) {
        lsi_journal_no_memory(c);
        return false;
    }
    for (size_t i = 0; i < ntargets; i++) {
        if (!seed(c, j, tape, end, targets[i], given != NULL ? given[i] : NULL)) {
            return false;
        }
    }
    if (finals != NULL && !lsi_finals_begin(c, tape, finals, targets, ntargets, end)) {
        return false;
    }
    for (size_t i = end; i > tape->begin && !lsi_failed(c); i--) {
        if ((lsi_node_at(j, i - 1)->tapes & tape->bit) != 0) {
            step_back(c, j, tape, i - 1, end, gin);
            if (finals != NULL) {
                c->file = file;
                c->line = line;
                lsi_finals_passed(c, tape, finals, i - 1);
            }
        }
    }
    c->file = file;
    c->line = line;
    *end_out = end;
    return !lsi_failed(c);
}

void(ls_gradients)(ls_context *c, ls_tape *tape, ls_tensor *const *targets,
                   ls_tensor *const *output_gradients, size_t ntargets,
                   ls_tensor *const *sources, size_t nsources, ls_tensor **grads)
{
    lsi_journal *j;
    size_t end;

    for (size_t i = 0; i < nsources; i++) {
        grads[i] = NULL;
    }
    if (!lsi_tape_usable(c, tape, "gradient")) {
        return;
    }
    if ((targets == NULL && ntargets > 0) || (sources == NULL && nsources > 0)) {
        (void)ls_context_fail(c, LS_INVALID_ARGUMENT, "gradient: the list of %s is NULL",
                              targets == NULL ? "targets" : "sources");
        return;
    }
    for (size_t i = 0; i < nsources; i++) {
        if (sources[i] == NULL) {
            (void)ls_context_fail(c, LS_INVALID_ARGUMENT, "gradient: source %zu is NULL",
                                  i);
            return;
        }
    }
    j = lsi_journal_of(c);
    lsi_forget_shared_reads(j);
    if (!lsi_walk_journal(c, tape, targets, output_gradients, ntargets, NULL, &end)) {
        return;
    }
    for (size_t i = 0; i < nsources; i++) {
        const uint64_t at = lsi_journal_place(j, sources[i]);

        if (lsi_walk_meets(j, tape, at, end)) {
            const uint64_t first = lsi_walk_oldest(j, tape, at, end);

            grads[i] = lsi_sum_value(c, j, lsi_walk_slot(j, tape, first));
        }
    }
}

ls_tensor *(ls_gradient)(ls_context *c, ls_tape *tape, ls_tensor *target,
                         ls_tensor *source)
{
    ls_tensor *grad = NULL;

    (ls_gradients)(c, tape, &target, NULL, 1, &source, 1, &grad);
    return grad;
}
