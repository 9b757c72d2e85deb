/*
 * Sums in place: what a gradient that many operations contribute to is made with. Each
 * element is added as the operation `add` does, so the bits are those of a sum that makes
 * a new tensor each time.
 */
#include "kernel/ref/copy.h"
#include "kernel/update_loops.h"
#include "op/op.h"

struct team_work {
    const lsi_update_table *table;
    ls_tensor *sum;
    const ls_tensor *part;
};

/* `n` elements; the dtype is one of those can_add() knows. */
static void add_run(const lsi_update_table *table, ls_dtype dtype, void *to,
                    const void *from, int64_t n)
{
    if (dtype == LS_F32) {
        table->axpy(to, from, (size_t)n, 1.0F);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        ((double *)to)[i] += ((const double *)from)[i];
    }
}

static void add_share(void *arg, int part, int parts)
{
    const struct team_work *j = arg;
    const ls_dtype dtype = (ls_dtype)j->sum->dtype;
    const int64_t size = (int64_t)ls_dtype_size(dtype);
    int64_t begin = 0, end = 0;

    lsi_team_share(j->sum->count, 64, part, parts, &begin, &end);
    add_run(j->table, dtype, (char *)j->sum->data + begin * size,
            (const char *)j->part->data + begin * size, end - begin);
}

static bool can_add(const ls_tensor *sum, const ls_tensor *part)
{
    return (sum->dtype == LS_F32 || sum->dtype == LS_F64) && part->dtype == sum->dtype &&
           sum->values == NULL && part->values == NULL && part->ndim == sum->ndim;
}

bool lsi_add_into(ls_context *c, ls_tensor *sum, const ls_tensor *part)
{
    const struct team_work j = {lsi_update_for(c->device), sum, part};
    const ls_shape a = lsi_shape(sum), b = lsi_shape(part);
    const ls_op_call call = {.team = c->device->team};

    if (!can_add(sum, part) || !ls_shape_equal(&a, &b)) {
        return false;
    }
    lsi_team_run(c->device->team, lsi_parts(&call, sum->count / 4), add_share,
                 (void *)&j);
    return true;
}

bool lsi_add_slice_into(ls_context *c, ls_tensor *sum, const ls_tensor *part,
                        const int64_t *begin)
{
    const lsi_update_table *table = lsi_update_for(c->device);
    const ls_dtype dtype = (ls_dtype)sum->dtype;
    int64_t strides[LS_MAX_DIMS], at[LS_MAX_DIMS] = {0};
    int last = sum->ndim - 1;
    int64_t run = 1;

    if (!can_add(sum, part)) {
        return false;
    }
    lsi_strides(sum, strides);
    // Axes that are whole from the end on are one run with the axis before them.
    while (last > 0 && part->dims[last] == sum->dims[last]) {
        run *= part->dims[last--];
    }
    run *= last >= 0 ? part->dims[last] : 1;
    for (int64_t done = 0; done < part->count; done += run) {
        int64_t offset = 0;

        for (int i = 0; i <= last; i++) {
            offset += (begin[i] + at[i]) * strides[i];
        }
        add_run(table, dtype, (char *)sum->data + (size_t)offset * ls_dtype_size(dtype),
                (const char *)part->data + (size_t)done * ls_dtype_size(dtype), run);
        for (int i = last - 1; i >= 0 && ++at[i] == part->dims[i]; i--) {
            at[i] = 0;
        }
    }
    return true;
}
