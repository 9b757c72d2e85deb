/* The table of the functions of `map` and `filter`, each with the spec of its results. */
#include "input_map.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- specs ---- */

const ls_spec *input_argument_spec(const ls_spec *s)
{
    const bool lone =
        s != NULL && ls_spec_kind_of(s) == LS_SPEC_TUPLE && ls_spec_size(s) == 1;

    return lone ? ls_spec_child(s, 0) : s;
}

ls_value *input_argument(ls_value *element)
{
    return ls_value_kind_of(element) == LS_VALUE_TUPLE && ls_value_size(element) == 1
               ? ls_value_child(element, 0)
               : element;
}

static ls_status map_items(const ls_spec *s, input_leaf_spec fn, const void *user,
                           ls_spec **out, ls_error *err)
{
    const bool dict = ls_spec_kind_of(s) == LS_SPEC_DICT;
    const size_t n = ls_spec_size(s);
    ls_spec **items = calloc(n + 1, sizeof(ls_spec *));
    const char **keys = calloc(n + 1, sizeof(char *));
    ls_status st = LS_OK;

    if (items == NULL || keys == NULL) {
        st = input_fail(err, LS_UNKNOWN, "out of memory");
        goto out;
    }
    for (size_t i = 0; st == LS_OK && i < n; i++) {
        if (dict) {
            keys[i] = ls_spec_key(s, i);
        }
        st = input_spec_map(ls_spec_child(s, i), fn, user, &items[i], err);
    }
    if (st == LS_OK) {
        st = dict ? ls_spec_dict(keys, items, n, out, err)
                  : ls_spec_tuple(items, n, out, err);
    }
out:
    for (size_t i = 0; items != NULL && i < n; i++) {
        ls_spec_release(items[i]);
    }
    free((void *)items);
    free((void *)keys);
    return st;
}

ls_status input_spec_map(const ls_spec *s, input_leaf_spec fn, const void *user,
                         ls_spec **out, ls_error *err)
{
    const ls_spec_kind kind = ls_spec_kind_of(s);

    return kind == LS_SPEC_TUPLE || kind == LS_SPEC_DICT
               ? map_items(s, fn, user, out, err)
               : fn(s, user, out, err);
}

static ls_status copy_spec(const ls_spec *s, ls_spec **out, ls_error *err)
{
    (void)err;
    *out = ls_spec_retain(
        (ls_spec *)(uintptr_t)s); // another number of elements does not change the spec
    return LS_OK;
}

/* The leaf's shape, `tail` added to it unless 0, with another dtype. */
static ls_status retype(const ls_spec *s, ls_dtype dtype, int64_t tail, ls_spec **out,
                        ls_error *err)
{
    int64_t dims[LS_MAX_DIMS + 1] = {0};
    int ndim = ls_spec_ndim(s);

    for (int i = 0; i < ndim; i++) {
        dims[i] = ls_spec_dim(s, i);
    }
    if (tail > 0 && ndim >= 0) {
        dims[ndim++] = tail;
    }
    return ls_spec_tensor(dtype, ndim, dims, out, err);
}

static ls_status retype_leaf(const ls_spec *s, const void *user, ls_spec **out,
                             ls_error *err)
{
    return retype(s, *(const ls_dtype *)user, 0, out, err);
}

static ls_status spec_same(const input_function *f, const ls_spec *in, ls_spec **out,
                           ls_error *err)
{
    (void)f;
    return copy_spec(in, out, err);
}

static ls_status spec_float32(const input_function *f, const ls_spec *in, ls_spec **out,
                              ls_error *err)
{
    const ls_dtype dtype = LS_F32;

    (void)f;
    return input_spec_map(in, retype_leaf, &dtype, out, err);
}

static ls_status spec_string(const input_function *f, const ls_spec *in, ls_spec **out,
                             ls_error *err)
{
    const ls_dtype dtype = LS_STRING;

    (void)f;
    return input_spec_map(in, retype_leaf, &dtype, out, err);
}

static ls_status spec_int64(const input_function *f, const ls_spec *in, ls_spec **out,
                            ls_error *err)
{
    (void)f;
    return retype(in, LS_I64, 0, out, err);
}

static ls_status spec_pair(const input_function *f, const ls_spec *in, ls_spec **out,
                           ls_error *err)
{
    ls_spec *x = (ls_spec *)(uintptr_t)in;
    ls_spec *const both[] = {x, x};

    (void)f;
    return ls_spec_tuple(both, 2, out, err);
}

static ls_status spec_dict(const input_function *f, const ls_spec *in, ls_spec **out,
                           ls_error *err)
{
    static const char *const keys[] = {"a", "b"};
    ls_spec *x = (ls_spec *)(uintptr_t)in;
    ls_spec *const both[] = {x, x};

    (void)f;
    return ls_spec_dict(keys, both, 2, out, err);
}

static ls_status spec_expand(const input_function *f, const ls_spec *in, ls_spec **out,
                             ls_error *err)
{
    return retype(in, ls_spec_dtype(in), input_map_integer(f, 1), out, err);
}

static ls_status spec_fill(const input_function *f, const ls_spec *in, ls_spec **out,
                           ls_error *err)
{
    const int64_t unknown = -1;

    (void)f;
    return ls_spec_tensor(ls_spec_dtype(in), 1, &unknown, out, err);
}

static ls_status spec_first(const input_function *f, const ls_spec *in, ls_spec **out,
                            ls_error *err)
{
    (void)f;
    while (ls_spec_kind_of(in) == LS_SPEC_TUPLE || ls_spec_kind_of(in) == LS_SPEC_DICT) {
        in = ls_spec_child(in, 0);
    }
    return copy_spec(in, out, err);
}

struct merged {
    int ndim; /* -1: not known yet */
    ls_dtype dtype;
    int64_t dims[LS_MAX_DIMS];
};

/* A size that is known of one component is the size of all. */
static ls_status merge_leaf(const ls_spec *s, const void *user, ls_spec **out,
                            ls_error *err)
{
    struct merged *m = (struct merged *)(uintptr_t)user;

    for (int i = 0; i < ls_spec_ndim(s); i++) {
        if (m->ndim < 0 || m->dims[i] < 0) {
            m->dims[i] = ls_spec_dim(s, i);
        }
    }
    m->ndim = ls_spec_ndim(s) >= 0 ? ls_spec_ndim(s) : m->ndim;
    m->dtype = ls_spec_dtype(s);
    return copy_spec(s, out, err);
}

static ls_status spec_sum(const input_function *f, const ls_spec *in, ls_spec **out,
                          ls_error *err)
{
    struct merged m = {.ndim = -1};
    ls_spec *visited = NULL;
    const ls_status st = input_spec_map(in, merge_leaf, &m, &visited, err);

    (void)f;
    ls_spec_release(visited);
    return st == LS_OK ? ls_spec_tensor(m.dtype, m.ndim, m.dims, out, err) : st;
}

/* ---- the table ---- */

typedef struct map_row {
    const char *name;
    ls_status (*spec)(const input_function *f, const ls_spec *in, ls_spec **out,
                      ls_error *err);
    ls_map_fn run;
} map_row;

static const map_row MAPS[] = {
    {"identity", spec_same, input_map_identity},
    {"add", spec_same, input_map_each},
    {"mul", spec_same, input_map_each},
    {"mod", spec_same, input_map_each},
    {"square", spec_same, input_map_each},
    {"mul_ctx", spec_same, input_map_each},
    {"to_float32", spec_float32, input_map_each},
    {"to_string", spec_string, input_map_each},
    {"decode_int", spec_int64, input_map_each},
    {"pair", spec_pair, input_map_pair},
    {"dict", spec_dict, input_map_dict},
    {"expand", spec_expand, input_map_expand},
    {"fill", spec_fill, input_map_fill},
    {"fail_on", spec_same, input_map_fail_on},
    {"first", spec_first, input_map_first},
    {"sum", spec_sum, input_map_sum},
    {"parse", input_parse_spec, input_map_parse},
    {"parse_single", input_parse_single_spec, input_map_parse_single},
    {"tfrecord", input_dataset_spec, input_map_dataset},
};

static const map_row *find_map(const char *name)
{
    for (size_t i = 0; name != NULL && i < sizeof MAPS / sizeof MAPS[0]; i++) {
        if (strcmp(MAPS[i].name, name) == 0) {
            return &MAPS[i];
        }
    }
    return NULL;
}

ls_dataset *input_map(input_builder *b, ls_dataset *d, json_t *op, json_t *options)
{
    const char *name = json_string_value(json_array_get(op, 1));
    const map_row *row = find_map(name);
    const ls_spec *in = input_argument_spec(ls_dataset_spec(d));
    ls_map_options opts = LS_MAP_OPTIONS_INIT;
    input_function *f = input_function_new(b, op, 1, options);
    ls_error err = LS_ERROR_INIT;

    if (row == NULL || f == NULL) {
        ls_dataset_release(d);
        return input_build_fail(b, LS_UNKNOWN, "map %s is not known",
                                name == NULL ? "?" : name);
    }
    if (in != NULL && row->spec(f, in, &f->spec, &err) != LS_OK) {
        ls_dataset_release(d);
        return input_build_fail(b, err.code, "%s", err.message);
    }
    opts.spec = f->spec;
    opts.parallel = (int)input_option(options, "parallel", 0);
    opts.reader = row->run == input_map_dataset ? row->name : NULL;
    return ls_dataset_map(d, row->run, f, &opts);
}

/* ---- filters ---- */

static ls_value *filter_mod(ls_context *c, ls_value *element, void *user)
{
    const ls_tensor *t = ls_value_as_tensor(input_argument(element));
    const int64_t m = input_map_integer(user, 1);
    const int64_t rest = input_map_item(t) % m;

    return input_map_truth(c, (rest < 0 ? rest + m : rest) == input_map_integer(user, 2));
}

static ls_value *filter_less(ls_context *c, ls_value *element, void *user)
{
    const ls_tensor *t = ls_value_as_tensor(input_argument(element));

    return input_map_truth(c, input_map_item(t) < input_map_integer(user, 1));
}

static ls_value *filter_min_rows(ls_context *c, ls_value *element, void *user)
{
    const ls_tensor *t = ls_value_as_tensor(input_argument(element));

    return input_map_truth(c, ls_tensor_dim(t, 0) >= input_map_integer(user, 1));
}

static const struct {
    const char *name;
    ls_map_fn run;
} FILTERS[] = {{"mod", filter_mod}, {"less", filter_less}, {"min_rows", filter_min_rows}};

ls_dataset *input_filter(input_builder *b, ls_dataset *d, json_t *op, json_t *options)
{
    const char *name = json_string_value(json_array_get(op, 1));
    input_function *f = input_function_new(b, op, 1, options);

    for (size_t i = 0; f != NULL && name != NULL && i < 3; i++) {
        if (strcmp(FILTERS[i].name, name) == 0) {
            return ls_dataset_filter(d, FILTERS[i].run, f);
        }
    }
    ls_dataset_release(d);
    return input_build_fail(b, LS_UNKNOWN, "filter %s is not known",
                            name == NULL ? "?" : name);
}
