/* A parser of Examples: the features it looks for, checked and sorted, and their spec. */
#include "data/file/example_parser.h"

#include <stdlib.h>

static ls_status fail_feature(const ls_feature *f, const char *what, ls_error *err)
{
    return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE, "feature %.100s: %s",
                         f->name, what);
}

static ls_status check_feature(const ls_feature *f, int64_t count, ls_error *err)
{
    const int extra = f->kind == LS_FEATURE_SEQUENCE ? 2 : 1;

    if (f->kind != LS_FEATURE_FIXED && f->kind != LS_FEATURE_VAR &&
        f->kind != LS_FEATURE_SEQUENCE) {
        return fail_feature(f, "its kind is not a valid one", err);
    }
    if (f->dtype != LS_I64 && f->dtype != LS_F32 && f->dtype != LS_STRING &&
        (f->dtype != LS_U8 || f->kind != LS_FEATURE_FIXED)) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                             "feature %.100s is %s: features are int64, float32 or "
                             "string, fixed ones also uint8",
                             f->name, ls_dtype_name(f->dtype));
    }
    if (f->kind == LS_FEATURE_VAR) {
        return f->otherwise == NULL
                   ? LS_OK
                   : fail_feature(f, "a sparse feature has no default", err);
    }
    if (count < 0) {
        return fail_feature(f, "its shape must be fully known", err);
    }
    if (f->shape.ndim + extra > LS_MAX_DIMS) {
        return fail_feature(f, "a batch of it would have too many axes", err);
    }
    if (f->otherwise == NULL) {
        return LS_OK;
    }
    if (ls_tensor_dtype(f->otherwise) != f->dtype) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                             "feature %.100s is %s, its default %s", f->name,
                             ls_dtype_name(f->dtype),
                             ls_dtype_name(ls_tensor_dtype(f->otherwise)));
    }
    if (ls_tensor_data(f->otherwise) == NULL ||
        ls_tensor_count(f->otherwise) != (f->kind == LS_FEATURE_FIXED ? count : 1)) {
        return fail_feature(f, "the default has another number of elements", err);
    }
    return LS_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const lsi_wanted_feature *)a)->name,
                  ((const lsi_wanted_feature *)b)->name);
}

static ls_status fill_in(lsi_example_parser *p, ls_error *err)
{
    p->flat = true;
    for (size_t i = 0; i < p->n; i++) {
        const ls_feature *f = &p->features[i];
        ls_status st;

        if (f->name == NULL) {
            return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                 "feature %zu has no name", i);
        }
        p->counts[i] = ls_shape_count(&f->shape);
        st = check_feature(f, p->counts[i], err);
        if (st != LS_OK) {
            return st;
        }
        p->wanted[i] = (lsi_wanted_feature){f->name, strlen(f->name), i};
        p->flat = p->flat && f->kind == LS_FEATURE_FIXED;
    }
    qsort(p->wanted, p->n, sizeof *p->wanted, by_name);
    for (size_t i = 1; i < p->n; i++) {
        if (strcmp(p->wanted[i].name, p->wanted[i - 1].name) == 0) {
            return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                 "feature %.100s is described twice", p->wanted[i].name);
        }
    }
    return LS_OK;
}

ls_status lsi_example_parser_init(lsi_example_parser *p, const ls_feature *features,
                                  size_t n, ls_error *err)
{
    ls_status st;

    if (n == 0 || features == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "parsing an example needs at least one feature");
    }
    p->features = features;
    p->n = n;
    p->wanted = lsi_alloc(n, sizeof *p->wanted + sizeof *p->counts);
    if (p->wanted == NULL) {
        return lsi_fail_memory(err, "a parser of examples", n * sizeof *p->wanted);
    }
    p->counts = (int64_t *)(void *)(p->wanted + n);
    st = fill_in(p, err);
    if (st != LS_OK) {
        lsi_example_parser_clear(p);
    }
    return st;
}

void lsi_example_parser_clear(lsi_example_parser *p)
{
    lsi_free(p->wanted); // `counts` is in the same block
    p->wanted = NULL;
}

/* The spec of one feature. */
static ls_status feature_spec(const ls_feature *f, bool batched, int64_t rows,
                              ls_spec **out, ls_error *err)
{
    int64_t dims[LS_MAX_DIMS] = {-1, -1};
    int n = 0;

    if (f->kind == LS_FEATURE_VAR) {
        return ls_spec_sparse(f->dtype, batched ? 2 : 1, dims, out, err);
    }
    if (batched) {
        dims[n++] = rows;
    }
    if (f->kind == LS_FEATURE_SEQUENCE) {
        dims[n++] = -1;
    }
    for (int i = 0; i < f->shape.ndim; i++) {
        dims[n++] = f->shape.dims[i];
    }
    return ls_spec_tensor(f->dtype, n, dims, out, err);
}

ls_status lsi_example_parser_spec(const lsi_example_parser *p, bool batched, int64_t rows,
                                  ls_spec **out, ls_error *err)
{
    ls_spec **items = lsi_alloc(p->n, sizeof(ls_spec *));
    const char **keys = lsi_alloc(p->n, sizeof *keys);
    ls_status st = LS_OK;
    size_t made = 0;

    if (items == NULL || keys == NULL) {
        st = lsi_fail_memory(err, "the spec of examples", p->n * sizeof *keys);
        goto out;
    }
    while (made < p->n && st == LS_OK) {
        keys[made] = p->features[made].name;
        st = feature_spec(&p->features[made], batched, rows, &items[made], err);
        made += st == LS_OK;
    }
    if (st == LS_OK) {
        st = ls_spec_dict(keys, items, p->n, out, err);
    }
    for (size_t i = 0; i < made; i++) {
        ls_spec_release(items[i]);
    }
out:
    lsi_free(items);
    lsi_free(keys);
    return st;
}

ls_status ls_example_spec(const ls_feature *features, size_t n, bool batched,
                          int64_t rows, ls_spec **out, ls_error *err)
{
    lsi_example_parser p = {0};
    ls_status st = lsi_example_parser_init(&p, features, n, err);

    if (st == LS_OK) {
        st = lsi_example_parser_spec(&p, batched, rows, out, err);
        lsi_example_parser_clear(&p);
    }
    return st;
}
