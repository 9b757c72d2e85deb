/* Sums of gradients, dense and sparse, and early release of what is not needed. */
#include "grad/gradient_sums.h"

#include "grad/journal.h"

struct lsi_sparse_part {
    struct lsi_sparse_part *next;
    ls_tensor *t;
};

/* What became of a tensor that a gradient function made: ls_tensor.mark. */
enum mark { OLD, MADE, GIVEN, GIVEN_TWICE, SPENT };

lsi_sparse_parts lsi_sum_own;

static bool is_sparse(const ls_tensor *t)
{
    return t->values != NULL;
}

/* Only the step's list holds the struct, and only the struct holds its memory. */
static bool is_alone(const ls_tensor *t)
{
    return atomic_load_explicit(&t->refs, memory_order_relaxed) == 1 && !is_sparse(t) &&
           t->origin == NULL &&
           (t->buffer == NULL ||
            atomic_load_explicit(&t->buffer->refs, memory_order_relaxed) == 1);
}

/* ---- sums ---- */

static bool add_part(ls_context *c, lsi_journal *j, lsi_sparse_parts *parts, ls_tensor *t)
{
    struct lsi_sparse_part *p = lsi_journal_alloc(j, sizeof *p);

    if (p == NULL) {
        lsi_journal_no_memory(c);
        return false;
    }
    *p = (struct lsi_sparse_part){NULL, t};
    if (parts->count++ == 0) {
        parts->first = p;
    } else {
        parts->last->next = p;
    }
    parts->last = p;
    return true;
}

static void list_part(ls_context *c, lsi_journal *j, lsi_sum *sum, ls_tensor *g)
{
    if (sum->parts == NULL) {
        lsi_sparse_parts *parts = lsi_journal_alloc(j, sizeof *parts);

        if (parts == NULL) {
            lsi_journal_no_memory(c);
            return;
        }
        *parts = (lsi_sparse_parts){NULL, NULL, 0};
        if (!add_part(c, j, parts, sum->t)) {
            return;
        }
        sum->parts = parts;
    }
    (void)add_part(c, j, sum->parts, g);
}

/* All parts in one: their rows one after the other, indices as int64. */
static ls_tensor *join_parts(ls_context *c, lsi_journal *j, const lsi_sparse_parts *parts)
{
    const size_t n = parts->count;
    ls_tensor **list = lsi_journal_alloc(j, 2 * n * sizeof(ls_tensor *));
    const ls_shape shape = ls_tensor_shape(parts->first->t);
    ls_tensor *values, *indices;
    size_t i = 0;

    if (list == NULL) {
        lsi_journal_no_memory(c);
        return NULL;
    }
    for (const struct lsi_sparse_part *p = parts->first; p != NULL; p = p->next, i++) {
        list[i] = p->t->values;
        list[n + i] = (ls_cast)(c, p->t->indices, LS_I64);
    }
    values = (ls_concat)(c, list, n, 0);
    indices = (ls_concat)(c, list + n, n, 0);
    return lsi_failed(c) ? NULL : lsi_context_sparse(c, &shape, values, indices);
}

ls_tensor *lsi_sum_value(ls_context *c, lsi_journal *j, lsi_sum *sum)
{
    if (sum->parts != NULL && !lsi_sum_is_own(sum)) {
        sum->t = join_parts(c, j, sum->parts);
        sum->parts = NULL;
    }
    return sum->t;
}

/* Adds two tensors of which one at least is dense. */
static void add_dense(ls_context *c, lsi_sum *sum, ls_tensor *g, bool own)
{
    ls_tensor *a = lsi_dense(c, sum->t), *b = lsi_dense(c, g);
    const bool own_a = a != sum->t ? c->recording == 0 : lsi_sum_is_own(sum);
    const bool own_b = b != g ? c->recording == 0 : own;

    if (lsi_failed(c)) {
        return;
    }
    if (own_a && lsi_add_into(c, a, b)) {
        sum->t = a;
    } else if (own_b && lsi_add_into(c, b, a)) {
        sum->t = b;
    } else {
        sum->t = (ls_add)(c, a, b);
    }
    sum->parts = c->recording == 0 ? &lsi_sum_own : NULL;
    if (own_a && sum->t != a) {
        lsi_tensor_clear(a);
    }
    if (b != g && own_b && sum->t != b) {
        lsi_tensor_clear(b);
    }
    if (sum->t != g) {
        lsi_fresh_spend(g);
    }
}

void lsi_sum_add(ls_context *c, lsi_journal *j, lsi_sum *sum, ls_tensor *g, bool own)
{
    if (sum->t == NULL) {
        *sum = (lsi_sum){g, own ? &lsi_sum_own : NULL};
    } else if (is_sparse(sum->t) && is_sparse(g)) {
        list_part(c, j, sum, g);
    } else if (lsi_sum_value(c, j, sum) != NULL) {
        add_dense(c, sum, g, own);
    }
}

/* ---- what a gradient function made ---- */

bool lsi_fresh_is_own(const ls_tensor *g)
{
    return g->mark == GIVEN && is_alone(g);
}

void lsi_fresh_spend(ls_tensor *g)
{
    if (g->mark == GIVEN) {
        g->mark = SPENT;
    }
}

/* Takes the tensors of `mark` since `before` off the step's list and gives them back. */
static void give_back(ls_context *c, ls_tensor *before, enum mark mark)
{
    ls_tensor **at = &c->tensors;

    while (*at != before) {
        ls_tensor *t = *at;

        if (t->mark != mark || !t->recycled || t->origin != NULL ||
            atomic_load_explicit(&t->refs, memory_order_relaxed) != 1) {
            at = &t->next;
            continue;
        }
        *at = t->next;
        t->listed = false;
        t->owner = NULL;
        lsi_tensor_clear(t);
        t->next = c->spare;
        c->spare = t;
    }
}

void lsi_fresh_sort(ls_context *c, ls_tensor *before, ls_tensor *const *gin, size_t n)
{
    for (ls_tensor *t = c->tensors; t != before; t = t->next) {
        t->mark = MADE;
    }
    for (size_t i = 0; i < n; i++) {
        if (gin[i] != NULL && gin[i]->mark != OLD) {
            gin[i]->mark = gin[i]->mark == MADE ? GIVEN : GIVEN_TWICE;
        }
    }
    give_back(c, before, MADE);
}

void lsi_fresh_end(ls_context *c, ls_tensor *before)
{
    give_back(c, before, SPENT);
    for (ls_tensor *t = c->tensors; t != before; t = t->next) {
        t->mark = OLD;
    }
}
