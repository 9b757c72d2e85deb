/* What the families of the catalogue share, and finding an operation in it. */
#include "op_cases.h"

void op_by_row(ls_context *c, const op_entry *e, const op_case *k, ls_tensor *const *in,
               size_t n, ls_tensor **out)
{
    (void)k;
    ls_op_apply(c, lsi_op_table[e->op], in, n, NULL, 0, out);
}

double op_epsilon(ls_dtype dtype)
{
    switch (dtype) {
    case LS_F32:
        return 1.1920929e-7;
    case LS_F64:
        return 2.220446049250313e-16;
    case LS_F16:
        return 9.765625e-4;
    case LS_BF16:
        return 7.8125e-3;
    default:
        return 0; // integers and bools: exact
    }
}

static const op_entry *find_in(const op_entry *list, size_t n, lsi_op_id op)
{
    for (size_t i = 0; i < n; i++) {
        if (list[i].op == op) {
            return &list[i];
        }
    }
    return NULL;
}

const op_entry *op_find(lsi_op_id op)
{
    const struct {
        const op_entry *list;
        size_t n;
    } families[] = {
        {op_entries_unary, op_count_unary},   {op_entries_binary, op_count_binary},
        {op_entries_reduce, op_count_reduce}, {op_entries_product, op_count_product},
        {op_entries_pool, op_count_pool},     {op_entries_layout, op_count_layout},
        {op_entries_index, op_count_index},   {op_entries_norm, op_count_norm},
    };

    for (size_t i = 0; i < LSI_COUNT_OF(families); i++) {
        const op_entry *e = find_in(families[i].list, families[i].n, op);

        if (e != NULL) {
            return e;
        }
    }
    return NULL;
}
