/* Elements of one variable and of its slots, updated in place or into new memory. */
#include "optim/optim.h"

#include <math.h>

double lsi_get(ls_dtype dtype, const void *p, size_t i)
{
    switch (dtype) {
    case LS_F32:
        return (double)((const float *)p)[i];
    case LS_F16:
        return (double)lsi_f16_to_f32(((const uint16_t *)p)[i]);
    case LS_BF16:
        return (double)lsi_bf16_to_f32(((const uint16_t *)p)[i]);
    default:
        return ((const double *)p)[i];
    }
}

void lsi_put(ls_dtype dtype, void *p, size_t i, double value)
{
    switch (dtype) {
    case LS_F32:
        ((float *)p)[i] = (float)value;
        break;
    case LS_F16:
        ((uint16_t *)p)[i] = lsi_f32_to_f16((float)value);
        break;
    case LS_BF16:
        ((uint16_t *)p)[i] = lsi_f32_to_bf16((float)value);
        break;
    default:
        ((double *)p)[i] = value;
        break;
    }
}

double lsi_square_at(const lsi_step *s, size_t i)
{
    const double g = lsi_get(s->dtype, s->g, i);

    return s->squares == NULL ? g * g : lsi_get(s->dtype, s->squares, i);
}

double lsi_larger(double a, double b)
{
    return a > b || isnan(a) ? a : b;
}

static void decay(const lsi_step *s)
{
    const double rate = s->optimizer->shared.weight_decay;

    if (s->dtype == LS_F32) {
        s->update->decay(s->w_out, s->w, s->n, (float)rate, (float)s->turn->rate);
        return;
    }
    for (size_t i = 0; i < s->n; i++) {
        const double w = lsi_get(s->dtype, s->w, i);

        lsi_put(s->dtype, s->w_out, i, w - w * rate * s->turn->rate);
    }
}

/* Elements [begin, end) of the arrays of `whole`. */
static void cut(const lsi_step *whole, int64_t begin, int64_t end, lsi_step *s)
{
    const size_t offset = (size_t)begin * ls_dtype_size(whole->dtype);

    *s = *whole;
    s->n = (size_t)(end - begin);
    s->w = (const char *)s->w + offset;
    s->w_out = (char *)s->w_out + offset;
    s->g = (const char *)s->g + offset;
    if (s->squares != NULL) {
        s->squares = (const char *)s->squares + offset;
    }
    for (int i = 0; i < LSI_MAX_SLOTS; i++) {
        if (s->slot[i] != NULL) {
            s->slot[i] = (char *)s->slot[i] + offset;
        }
    }
}

enum { BLOCK = 2048 }; /* elements that stay in the first cache between two loops */

/* Decay, if there is any, then the update, of elements that lie in the cache. */
static void step(lsi_step *s)
{
    if (s->optimizer->shared.weight_decay != 0) {
        decay(s);
        s->w = s->w_out;
    }
    s->optimizer->ops->update(s);
}

static void run_part(void *arg, int part, int parts)
{
    const lsi_step *whole = arg;
    const bool blocks = whole->optimizer->shared.weight_decay != 0;
    int64_t begin, end;
    lsi_step s;

    lsi_team_share((int64_t)whole->n, 64, part, parts, &begin, &end);
    for (int64_t at = begin; at < end; at += blocks ? BLOCK : end - begin) {
        cut(whole, at, blocks ? LSI_MIN(at + BLOCK, end) : end, &s);
        step(&s);
    }
}

void lsi_optimizer_update_share(const lsi_step *whole, const void *const *grads, int n,
                                int64_t begin, int64_t end)
{
    _Alignas(64) double sums[BLOCK]; // room for any dtype
    const void *from[LSI_MAX_SHARED];
    const size_t size = ls_dtype_size(whole->dtype);
    lsi_step s;

    for (int64_t at = begin; at < end; at += BLOCK) {
        cut(whole, at, LSI_MIN(at + BLOCK, end), &s);
        for (int r = 0; r < n; r++) {
            from[r] = (const char *)grads[r] + (size_t)at * size;
        }
        lsi_reduce_tree(LS_SUM, from, n, sums, s.n, s.dtype);
        s.g = sums;
        step(&s);
    }
}

/* One variable and its slots, open for writing. */
struct writes {
    lsi_write component;
    lsi_write slot[LSI_MAX_SLOTS];
};

/* Memory that nobody reads is given back; the variable keeps its value. */
static void discard(lsi_write *w)
{
    lsi_buffer_release(w->fresh);
    w->fresh = NULL;
}

static ls_status open_writes(const ls_optimizer *o, ls_variable *component,
                             ls_variable *const *slots, struct writes *w, ls_error *err)
{
    const size_t n = lsi_optimizer_slot_count(o);
    ls_status st = lsi_variable_write(component, &w->component, err);

    for (size_t i = 0; i < n && st == LS_OK; i++) {
        st = lsi_variable_write(slots[i], &w->slot[i], err);
    }
    if (st != LS_OK) {
        discard(&w->component);
        for (size_t i = 0; i < n; i++) {
            discard(&w->slot[i]);
        }
    }
    return st;
}

/* New memory gets the elements that the update does not write. */
static void keep(const lsi_write *w, size_t size, int64_t begin, int64_t end,
                 int64_t count)
{
    const size_t from = (size_t)begin * size, to = (size_t)end * size;

    if (w->fresh == NULL || count == 0) {
        return;
    }
    memcpy(w->to, w->from, from);
    memcpy((char *)w->to + to, (const char *)w->from + to, (size_t)count * size - to);
}

ls_status lsi_optimizer_update(const ls_optimizer *o, const lsi_optimizer_turn *turn,
                               ls_variable *component, ls_variable *const *slots,
                               const ls_tensor *g, const ls_tensor *squares,
                               int64_t begin, int64_t end, ls_error *err)
{
    enum { WORTH_SHARING = 1 << 16 };
    const size_t size = ls_dtype_size(component->dtype), n = lsi_optimizer_slot_count(o);
    lsi_team *team = component->device->team;
    struct writes w = {{0}, {{0}}};
    lsi_step whole = {.dtype = component->dtype, .optimizer = o, .turn = turn};
    ls_status st;

    LSI_ASSERT(0 <= begin && begin <= end && end <= component->count);
    LSI_ASSERT(g->count == component->count);
    st = open_writes(o, component, slots, &w, err);
    if (st != LS_OK) {
        return st;
    }
    keep(&w.component, size, begin, end, component->count);
    for (size_t i = 0; i < n; i++) { // a slot that somebody reads is kept whole
        keep(&w.slot[i], size, 0, 0, component->count);
        whole.slot[i] = w.slot[i].to;
    }
    if (begin < end) {
        lsi_step s;

        whole.w = w.component.from;
        whole.w_out = w.component.to;
        whole.g = g->data;
        whole.squares = squares == NULL ? NULL : squares->data;
        whole.update = lsi_update_for(component->device);
        cut(&whole, begin, end, &s);
        lsi_team_run(team, s.n >= WORTH_SHARING ? lsi_team_size(team) : 1, run_part, &s);
    }
    lsi_variable_commit(component, &w.component);
    for (size_t i = 0; i < n; i++) {
        lsi_variable_commit(slots[i], &w.slot[i]);
    }
    return LS_OK;
}
