/* Sparse values of several devices, gathered on one in the order of replicas. */
#include "cross_replica/cross_replica.h"

#include "op/op.h"

/* Sparse tensors are not added: their rows are concatenated, none is merged. */
ls_status lsi_reduce_rows(const lsi_components *p, ls_device *device, ls_tensor **out,
                          ls_error *err)
{
    const ls_shape shape = ls_tensor_shape(p->t[0]);
    ls_tensor **rows = lsi_alloc(p->n, 2 * sizeof(ls_tensor *));
    ls_context *c = NULL;
    ls_tensor *sparse = NULL;

    if (rows == NULL) {
        return lsi_fail_memory(err, "the rows of sparse tensors",
                               2 * p->n * sizeof(ls_tensor *));
    }
    ls_status st = ls_context_open(device, NULL, &c, err);
    if (st != LS_OK) {
        goto out;
    }
    for (size_t i = 0; i < p->n; i++) {
        rows[i] = p->t[i]->values;
        rows[p->n + i] = p->t[i]->indices;
    }
    ls_tensor *values = ls_concat(c, rows, p->n, 0);
    ls_tensor *indices = ls_concat(c, rows + p->n, p->n, 0);
    if (values != NULL && indices != NULL) {
        sparse = lsi_tensor_sparse(&shape, values, indices);
        if (sparse == NULL) {
            (void)ls_context_fail(c, LS_RESOURCE_EXHAUSTED,
                                  "out of memory for a sparse tensor");
        }
    }
    st = ls_context_finish(c, err);
    if (st == LS_OK) {
        *out = sparse;
        sparse = NULL;
    }
out:
    ls_tensor_release(sparse);
    ls_context_close(c);
    lsi_free(rows);
    return st;
}
