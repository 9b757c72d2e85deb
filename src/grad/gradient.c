/* Gradients: the journal walked backwards. */
#include "grad/journal.h"

ls_tensor *lsi_gradient_add(ls_context *c, ls_tensor *a, ls_tensor *b)
{
    ls_tensor *values[2], *indices[2];
    ls_shape shape;

    if (a == NULL || b == NULL) {
        return a != NULL ? a : b;
    }
    if (a->values == NULL || b->values == NULL) {
        return (ls_add)(c, a, b);
    }
    values[0] = a->values;
    values[1] = b->values;
    indices[0] = (ls_cast)(c, a->indices, LS_I64);
    indices[1] = (ls_cast)(c, b->indices, LS_I64);
    shape = ls_tensor_shape(a);
    values[0] = (ls_concat)(c, values, 2, 0);
    indices[0] = (ls_concat)(c, indices, 2, 0);
    if (lsi_failed(c)) {
        return NULL;
    }
    return lsi_context_sparse(c, &shape, values[0], indices[0]);
}

/*
 * Records of one step have up to LSI_MAX_OUTPUTS outputs; the gradient of output o of
 * record i, counted from the tape's first, is at grads[(i - begin) * LSI_MAX_OUTPUTS +
 * o].
 */
static ls_tensor **slot(lsi_journal *j, const ls_tape *tape, uint64_t at)
{
    return &j->grads[((size_t)(at >> 8) - tape->begin) * LSI_MAX_OUTPUTS + (at & 255)];
}

static bool clear_grads(ls_context *c, lsi_journal *j, size_t nodes)
{
    const size_t need = nodes * LSI_MAX_OUTPUTS;

    if (need > j->grads_room) {
        ls_tensor **grown = lsi_alloc(need + need / 2, sizeof(ls_tensor *));

        if (grown == NULL) {
            lsi_journal_no_memory(c);
            return false;
        }
        lsi_free(j->grads);
        j->grads = grown;
        j->grads_room = need + need / 2;
    }
    if (need > 0) {
        memset(j->grads, 0, need * sizeof(ls_tensor *));
    }
    return true;
}

/* True if the place has a slot: this tape recorded or watches what is there. */
static bool on_tape(const lsi_journal *j, const ls_tape *tape, uint64_t at, size_t end)
{
    const size_t node = (size_t)(at >> 8);

    return at != LSI_NOWHERE && node >= tape->begin && node < end &&
           (lsi_node_at(j, node)->tapes & tape->bit) != 0;
}

/* The place behind a watching record, if this tape knows it: gradients are passed there.
 */
static uint64_t oldest(const lsi_journal *j, const ls_tape *tape, uint64_t at, size_t end)
{
    for (;;) {
        const struct ls_op_node *n = lsi_node_at(j, (size_t)(at >> 8));

        if (n->op != NULL || n->nin == 0 || !on_tape(j, tape, n->from[0], end)) {
            return at;
        }
        at = n->from[0];
    }
}

static void add_to(ls_context *c, lsi_journal *j, const ls_tape *tape, uint64_t at,
                   ls_tensor *g)
{
    ls_tensor *sum = lsi_gradient_add(c, *slot(j, tape, at), g);

    *slot(j, tape, at) = sum;
}

static LSI_COLD void wrong_shape(ls_context *c, const struct ls_op_node *n, size_t i,
                                 const ls_tensor *g)
{
    (void)ls_context_fail(c, LS_INTERNAL,
                          "gradient of %s: input %zu is %s but its gradient is %s",
                          n->op->name, i, lsi_text_of(n->in[i]).s, lsi_text_of(g).s);
}

/* Passes the gradients of a record's outputs on to its inputs. */
static void step_back(ls_context *c, lsi_journal *j, const ls_tape *tape, size_t index,
                      size_t end, ls_tensor **gin)
{
    struct ls_op_node *n = lsi_node_at(j, index);
    ls_tensor **gout = slot(j, tape, lsi_place((uint32_t)index, 0));
    ls_tensor *gouts[LSI_MAX_OUTPUTS];
    bool any = false;

    for (size_t o = 0; o < n->nout; o++) {
        gouts[o] = gout[o];
        any |= gout[o] != NULL;
    }
    if (!any) {
        return;
    }
    if (n->op == NULL) { // watched: goes on to the record that made the tensor, if any
        if (n->nin > 0 && on_tape(j, tape, n->from[0], end)) {
            add_to(c, j, tape, n->from[0], gouts[0]);
        }
        return;
    }
    n->needs = 0;
    for (size_t i = 0; i < n->nin; i++) {
        gin[i] = NULL;
        if (i < 64 && on_tape(j, tape, n->from[i], end)) {
            n->needs |= (uint64_t)1 << i;
        }
    }
    c->file = n->file; // a failing gradient is reported where its operation stands
    c->line = n->line;
    n->op->gradient(c, n, gouts, gin);
    for (size_t i = 0; i < n->nin && !lsi_failed(c); i++) {
        if (gin[i] == NULL || !on_tape(j, tape, n->from[i], end)) {
            continue;
        }
        if (gin[i]->count != n->in[i]->count || gin[i]->dtype != n->in[i]->dtype) {
            wrong_shape(c, n, i, gin[i]);
            return;
        }
        add_to(c, j, tape, n->from[i], gin[i]);
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
    if (on_tape(j, tape, lsi_journal_place(j, target), end)) {
        ls_tensor *g = given != NULL ? given : lsi_ones_like(c, target);

        add_to(c, j, tape, lsi_journal_place(j, target), g);
    }
    return !lsi_failed(c);
}

/* Walks back from the targets; afterwards the slots hold the gradients. */
static bool walk(ls_context *c, ls_tape *tape, ls_tensor *const *targets,
                 ls_tensor *const *given, size_t ntargets, size_t *end_out)
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
    for (size_t i = end; i > tape->begin && !lsi_failed(c); i--) {
        if ((lsi_node_at(j, i - 1)->tapes & tape->bit) != 0) {
            step_back(c, j, tape, i - 1, end, gin);
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
    if (!walk(c, tape, targets, output_gradients, ntargets, &end)) {
        return;
    }
    j = lsi_journal_of(c);
    for (size_t i = 0; i < nsources; i++) {
        const uint64_t at = lsi_journal_place(j, sources[i]);

        if (on_tape(j, tape, at, end)) {
            grads[i] = *slot(j, tape, oldest(j, tape, at, end));
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

void lsi_tape_key_gradients(ls_context *c, ls_tape *tape, ls_tensor *target,
                            const void *const *keys, size_t n, ls_tensor **grads)
{
    lsi_journal *j;
    size_t end;

    for (size_t i = 0; i < n; i++) {
        grads[i] = NULL;
    }
    if (!lsi_tape_usable(c, tape, "gradient") || !walk(c, tape, &target, NULL, 1, &end)) {
        return;
    }
    j = lsi_journal_of(c);
    for (size_t r = 0; r < j->nreads && !lsi_failed(c); r++) {
        const uint64_t at = lsi_place(j->reads[r].node, 0);

        if (!on_tape(j, tape, at, end) || oldest(j, tape, at, end) != at) {
            continue; // another tape's, or counted where it was first watched
        }
        for (size_t i = 0; i < n; i++) {
            if (keys[i] == j->reads[r].key) {
                grads[i] = lsi_gradient_add(c, grads[i], *slot(j, tape, at));
            }
        }
    }
}
