/* Updating the elements of a variable and of its slots, in place or in a new buffer. */
#include "optim/optim.h"
#include "reduce/reduction.h"

#include <math.h>

double lsi_square_at(const lsi_step *s, size_t i)
{
    const double g = lsi_get_float(s->g, s->dtype, (int64_t)i);

    return s->squares == NULL ? g * g : lsi_get_float(s->squares, s->dtype, (int64_t)i);
}

double lsi_larger(double a, double b)
{
    return a > b || isnan(a) ? a : b;
}

static void decay_weights(const lsi_step *s)
{
    const double rate = s->optimizer->shared.weight_decay;

    if (s->dtype == LS_F32) {
        s->update->decay(s->w_out, s->w, s->n, (float)rate, (float)s->turn->rate);
        return;
    }
    for (size_t i = 0; i < s->n; i++) {
        const double w = lsi_get_float(s->w, s->dtype, (int64_t)i);

        lsi_put_float(s->w_out, s->dtype, (int64_t)i, w - w * rate * s->turn->rate);
    }
}

/* Sets `s` to the elements [begin, end) of `whole`. */
static void part_of_step(const lsi_step *whole, int64_t begin, int64_t end, lsi_step *s)
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

enum { BLOCK = 2048 }; /* elements that stay in the L1 cache between two loops */

/* Weight decay, if any, then the update, of elements that are in the cache. */
static void update_part(lsi_step *s)
{
    if (s->optimizer->shared.weight_decay != 0) {
        decay_weights(s);
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
        part_of_step(whole, at, blocks ? LSI_MIN(at + BLOCK, end) : end, &s);
        update_part(&s);
    }
}

/* Clips elements of a sum with the same bits as the operations of lsi_clip(). */
static void clip_block(ls_dtype dtype, void *block, size_t n, double limit, double factor)
{
    if (dtype == LS_F32) {
        const float low = (float)-limit, high = (float)limit, by = (float)factor;
        float *x = block;

        for (size_t i = 0; i < n && limit != 0; i++) {
            const float raised = x[i] < low ? low : x[i];

            x[i] = raised > high ? high : raised;
        }
        for (size_t i = 0; i < n && factor != 1; i++) {
            x[i] *= by;
        }
        return;
    }
    for (size_t i = 0; i < n && limit != 0; i++) {
        const double x = lsi_get_float(block, dtype, (int64_t)i),
                     raised = x < -limit ? -limit : x;

        lsi_put_float(block, dtype, (int64_t)i, raised > limit ? limit : raised);
    }
    if (factor != 1) {
        uint64_t by = 0; // the factor is rounded to the dtype, too

        lsi_put_float(&by, dtype, 0, factor);
        factor = lsi_get_float(&by, dtype, 0);
        for (size_t i = 0; i < n; i++) {
            lsi_put_float(block, dtype, (int64_t)i,
                          lsi_get_float(block, dtype, (int64_t)i) * factor);
        }
    }
}

void lsi_optimizer_update_share(const lsi_step *whole, const lsi_sources *from,
                                int64_t begin, int64_t end)
{
    _Alignas(64) double sums[BLOCK]; // large enough for any dtype
    const size_t size = ls_dtype_size(whole->dtype);
    const bool clips = from->limit != 0 || from->factor != 1;
    lsi_step s;

    for (int64_t at = begin; at < end; at += BLOCK) {
        part_of_step(whole, at, LSI_MIN(at + BLOCK, end), &s);
        for (int r = 0; r < from->n; r++) {
            from->room[r] = (const char *)from->from[r] + (size_t)at * size;
        }
        lsi_reduce_tree(LS_SUM, from->room, from->n, sums, s.n, s.dtype);
        if (clips) {
            clip_block(s.dtype, sums, s.n, from->limit, from->factor);
        }
        s.g = sums;
        update_part(&s);
    }
}

/* Releases the new buffer; the variable keeps its value. */
static void discard_write(lsi_write *w)
{
    lsi_buffer_release(w->fresh);
    w->fresh = NULL;
}

/* Copies to the new buffer the elements that the update does not write. */
static void keep_elements(const lsi_write *w, size_t size, int64_t begin, int64_t end,
                          int64_t count)
{
    const size_t from = (size_t)begin * size, to = (size_t)end * size;

    if (w->fresh == NULL || count == 0) {
        return;
    }
    memcpy(w->to, w->from, from);
    memcpy((char *)w->to + to, (const char *)w->from + to, (size_t)count * size - to);
}

ls_status lsi_writes_open(const ls_optimizer *o, ls_variable *component,
                          ls_variable *const *slots, int64_t begin, int64_t end,
                          lsi_writes *w, ls_error *err)
{
    const size_t n = lsi_optimizer_slot_count(o), size = ls_dtype_size(component->dtype);
    ls_status st;

    memset(w, 0, sizeof *w);
    st = lsi_variable_write(component, &w->component, err);
    for (size_t i = 0; i < n && st == LS_OK; i++) {
        st = lsi_variable_write(slots[i], &w->slot[i], err);
    }
    if (st != LS_OK) {
        discard_write(&w->component);
        for (size_t i = 0; i < n; i++) {
            discard_write(&w->slot[i]);
        }
        return st;
    }
    keep_elements(&w->component, size, begin, end, component->count);
    for (size_t i = 0; i < n; i++) { // a slot with a new buffer is copied whole
        keep_elements(&w->slot[i], size, 0, 0, component->count);
    }
    return LS_OK;
}

void lsi_writes_commit(const ls_optimizer *o, ls_variable *component,
                       ls_variable *const *slots, const lsi_writes *w)
{
    lsi_variable_commit(component, &w->component);
    for (size_t i = 0; i < lsi_optimizer_slot_count(o); i++) {
        lsi_variable_commit(slots[i], &w->slot[i]);
    }
}

ls_status lsi_optimizer_update(const ls_optimizer *o, const lsi_optimizer_turn *turn,
                               ls_variable *component, ls_variable *const *slots,
                               const ls_tensor *g, const ls_tensor *squares,
                               int64_t begin, int64_t end, ls_error *err)
{
    enum { WORTH_SHARING = 1 << 16 };
    lsi_team *team = component->device->team;
    lsi_writes w;
    lsi_step whole = {.dtype = component->dtype, .optimizer = o, .turn = turn};
    ls_status st;

    LSI_ASSERT(0 <= begin && begin <= end && end <= component->count);
    LSI_ASSERT(g->count == component->count);
    st = lsi_writes_open(o, component, slots, begin, end, &w, err);
    if (st != LS_OK) {
        return st;
    }
    for (size_t i = 0; i < lsi_optimizer_slot_count(o); i++) {
        whole.slot[i] = w.slot[i].to;
    }
    if (begin < end) {
        lsi_step s;

        whole.w = w.component.from;
        whole.w_out = w.component.to;
        whole.g = g->data;
        whole.squares = squares == NULL ? NULL : squares->data;
        whole.update = lsi_update_for(component->device);
        part_of_step(&whole, begin, end, &s);
        lsi_team_run(team, s.n >= WORTH_SHARING ? lsi_team_size(team) : 1, run_part, &s);
    }
    lsi_writes_commit(o, component, slots, &w);
    return LS_OK;
}
