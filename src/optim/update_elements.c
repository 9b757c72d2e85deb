/* Updating the elements of a variable and of its slots, in place or in a new buffer. */
#include "optim/optim.h"
#include "reduce/reduction.h"

#include <math.h>
#include <string.h>

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

/* The elements [begin, end) of `whole`; room: from->n pointers. */
static void update_range(const lsi_step *whole, const lsi_sources *from,
                         const void **room, int64_t begin, int64_t end)
{
    _Alignas(64) double sums[BLOCK]; // large enough for any dtype
    const size_t size = ls_dtype_size(whole->dtype);
    const bool clips = from->limit != 0 || from->factor != 1;
    const bool direct = from->n == 1 && !clips;
    const bool blocks = !direct || whole->optimizer->shared.weight_decay != 0;
    lsi_step s;

    for (int64_t at = begin; at < end; at = blocks ? at + BLOCK : end) {
        part_of_step(whole, at, blocks ? LSI_MIN(at + BLOCK, end) : end, &s);
        for (int r = 0; r < from->n; r++) {
            room[r] = (const char *)from->from[r] + (size_t)at * size;
        }
        s.g = direct ? room[0] : sums;
        if (!direct) {
            lsi_reduce_tree(LS_SUM, room, from->n, sums, s.n, s.dtype);
        }
        if (clips) {
            clip_block(s.dtype, sums, s.n, from->limit, from->factor);
        }
        update_part(&s);
    }
}

struct team_update {
    const lsi_step *whole;
    const lsi_sources *from;
    const void **room;
    int64_t begin, end;
};

static void run_part(void *arg, int part, int parts)
{
    const struct team_update *u = arg;
    int64_t begin, end;

    lsi_team_share(u->end - u->begin, 64, part, parts, &begin, &end);
    update_range(u->whole, u->from, u->room + (size_t)part * (size_t)u->from->n,
                 u->begin + begin, u->begin + end);
}

void lsi_optimizer_update_share(const lsi_step *whole, const lsi_sources *from,
                                int64_t begin, int64_t end, lsi_team *team,
                                const void **room)
{
    enum { WORTH_SHARING = 1 << 16 };
    struct team_update u = {whole, from, room, begin, end};

    lsi_team_run(team, end - begin >= WORTH_SHARING ? lsi_team_size(team) : 1, run_part,
                 &u);
}

/* ---- the memory of variables ---- */

/* The copy that is opened; `holders`: references to its buffer that are the copies' own. */
static ls_variable *copy_of(const ls_variable *v, int copy, int *holders)
{
    *holders = copy == LSI_ALL_COPIES && v->components > 0 ? v->components : 1;
    return ls_variable_component(v, copy == LSI_ALL_COPIES ? 0 : (size_t)copy);
}

static ls_status open_write(const ls_variable *v, int copy, lsi_write *w, ls_error *err)
{
    int holders;
    ls_variable *own = copy_of(v, copy, &holders);
    ls_status st = lsi_variable_write_shared(own, holders, w, err);

    for (int k = 1; k < holders && st == LS_OK && w->fresh != NULL; k++) {
        (void)lsi_buffer_retain(w->fresh);
    }
    return st;
}

static void discard_write(const ls_variable *v, int copy, lsi_write *w)
{
    int holders;

    (void)copy_of(v, copy, &holders);
    for (int k = 0; k < holders; k++) {
        lsi_buffer_release(w->fresh);
    }
    w->fresh = NULL;
}

ls_status lsi_writes_open(const ls_optimizer *o, const ls_variable *v,
                          const lsi_slots *slots, int copy, lsi_writes *w, ls_error *err)
{
    ls_status st = open_write(v, copy, &w->component, err);
    size_t opened = 0;

    if (st != LS_OK) {
        return st;
    }
    for (; opened < lsi_optimizer_slot_count(o) && st == LS_OK; opened++) {
        st = open_write(slots->slot[opened], copy, &w->slot[opened], err);
    }
    if (st != LS_OK) {
        discard_write(v, copy, &w->component);
        for (size_t i = 0; i + 1 < opened; i++) { // the last one was not opened
            discard_write(v, copy, &w->slot[i]);
        }
    }
    return st;
}

void lsi_writes_discard(const ls_optimizer *o, const ls_variable *v, int copy,
                        lsi_writes *w)
{
    discard_write(v, copy, &w->component);
    for (size_t i = 0; i < lsi_optimizer_slot_count(o); i++) {
        discard_write(v, copy, &w->slot[i]); // has as many copies as the variable
    }
}

static lsi_write write_again(const lsi_write *first)
{
    return (lsi_write){first->to, first->to, NULL};
}

void lsi_writes_again(const lsi_writes *first, lsi_writes *w)
{
    w->component = write_again(&first->component);
    for (int i = 0; i < LSI_MAX_SLOTS; i++) {
        w->slot[i] = write_again(&first->slot[i]);
    }
}

static void keep_elements(const lsi_write *w, size_t size, int64_t begin, int64_t end)
{
    const size_t at = (size_t)begin * size, bytes = (size_t)(end - begin) * size;

    if (w->fresh != NULL && bytes > 0) {
        memcpy((char *)w->to + at, (const char *)w->from + at, bytes);
    }
}

void lsi_writes_keep(const ls_optimizer *o, const lsi_writes *w, size_t size,
                     bool component, int64_t begin, int64_t end)
{
    if (component) {
        keep_elements(&w->component, size, begin, end);
    }
    for (size_t i = 0; i < lsi_optimizer_slot_count(o); i++) {
        keep_elements(&w->slot[i], size, begin, end);
    }
}

void lsi_writes_commit(const ls_optimizer *o, const ls_variable *v,
                       const lsi_slots *slots, int copy, const lsi_writes *w)
{
    lsi_variable_commit(ls_variable_component(v, (size_t)copy), &w->component);
    for (size_t i = 0; i < lsi_optimizer_slot_count(o); i++) {
        lsi_variable_commit(ls_variable_component(slots->slot[i], (size_t)copy),
                            &w->slot[i]);
    }
}
