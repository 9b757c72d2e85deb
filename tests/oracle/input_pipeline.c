/* Builds pipelines from JSON: each operator is one call of the library. */
#include "input_machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- options ---- */

int64_t input_option(const json_t *options, const char *name, int64_t otherwise)
{
    const json_t *x = json_object_get(options, name);

    return json_is_integer(x) ? json_integer_value(x) : otherwise;
}

bool input_flag(const json_t *options, const char *name, bool otherwise)
{
    const json_t *x = json_object_get(options, name);

    return json_is_boolean(x) ? json_is_true(x) : otherwise;
}

const int64_t *input_seed(const json_t *options, const char *name, int64_t *room)
{
    const json_t *x = json_object_get(options, name);

    if (!json_is_integer(x)) {
        return NULL;
    }
    *room = json_integer_value(x);
    return room;
}

static int64_t argument(const json_t *op, size_t i, int64_t otherwise)
{
    const json_t *x = json_array_get(op, i);

    return json_is_integer(x) ? json_integer_value(x) : otherwise;
}

/* ---- the builder ---- */

void input_builder_open(input_builder *b, const char *folder, ls_strategy *strategy,
                        const ls_input_context *ic)
{
    *b = (input_builder){.folder = folder, .strategy = strategy, .err = LS_ERROR_INIT};
    b->ic = ic == NULL ? (ls_input_context){1, 0, 1} : *ic;
}

void input_builder_close(input_builder *b)
{
    while (b->functions != NULL) {
        input_function *f = b->functions;

        b->functions = f->next;
        if (f->free_extra != NULL) {
            f->free_extra(f->extra);
        }
        ls_spec_release(f->spec);
        free(f);
    }
}

input_function *input_function_new(input_builder *b, json_t *op, size_t at,
                                   json_t *options)
{
    input_function *f = calloc(1, sizeof *f);

    if (f != NULL) {
        *f = (input_function){.next = b->functions,
                              .op = op,
                              .at = at,
                              .options = options,
                              .pipeline_id = b->ic.pipeline_id};
        b->functions = f;
    }
    return f;
}

ls_dataset *input_build_fail(input_builder *b, ls_status code, const char *fmt, ...)
{
    va_list args;

    if (b->err.code == LS_OK) {
        b->err.code = code;
        va_start(args, fmt);
        (void)vsnprintf(b->err.message, sizeof b->err.message, fmt, args);
        va_end(args);
    }
    return NULL;
}

/* ---- policies ---- */

bool input_policy_of(const char *name, ls_auto_shard *out)
{
    static const struct {
        const char *name;
        ls_auto_shard policy;
    } POLICIES[] = {{"AUTO", LS_SHARD_AUTO},
                    {"OFF", LS_SHARD_OFF},
                    {"FILE", LS_SHARD_FILE},
                    {"DATA", LS_SHARD_DATA},
                    {"HINT", LS_SHARD_BY_HINT}};

    for (size_t i = 0; name != NULL && i < sizeof POLICIES / sizeof POLICIES[0]; i++) {
        if (strcmp(POLICIES[i].name, name) == 0) {
            *out = POLICIES[i].policy;
            return true;
        }
    }
    return false;
}

/* The last policy that an operator sets, also in inner pipelines. */
static void last_policy(const json_t *x, ls_auto_shard *out)
{
    const char *name = json_string_value(json_array_get(x, 0));

    if (name != NULL && strcmp(name, "policy") == 0) {
        (void)input_policy_of(json_string_value(json_array_get(x, 1)), out);
        return;
    }
    for (size_t i = 0; i < json_array_size(x); i++) {
        last_policy(json_array_get(x, i), out);
    }
}

ls_auto_shard input_policy(const json_t *kase)
{
    ls_auto_shard policy = LS_SHARD_AUTO;

    last_policy(json_object_get(kase, "pipeline"), &policy);
    (void)input_policy_of(json_string_value(json_object_get(kase, "policy")), &policy);
    return policy;
}

static ls_dataset *with_policy(input_builder *b, ls_dataset *d, const json_t *name)
{
    ls_data_options opts = LS_DATA_OPTIONS_INIT;

    if (!input_policy_of(json_string_value(name), &opts.auto_shard)) {
        ls_dataset_release(d);
        return input_build_fail(b, LS_UNKNOWN, "no policy has that name");
    }
    return ls_dataset_with_options(d, &opts);
}

/* ---- batches ---- */

static ls_dataset *op_batch(input_builder *b, ls_dataset *d, json_t *op, json_t *options)
{
    const int64_t n = argument(op, 1, 0);

    (void)b;
    return input_flag(options, "drop_remainder", false) ? ls_dataset_batch_exact(d, n)
                                                        : ls_dataset_batch(d, n);
}

static ls_dataset *op_batch_global(input_builder *b, ls_dataset *d, json_t *op,
                                   json_t *options)
{
    ls_error err = LS_ERROR_INIT;
    int64_t n = 0;

    if (ls_input_context_batch(&b->ic, argument(op, 1, 0), &n, &err) != LS_OK) {
        ls_dataset_release(d);
        return input_build_fail(b, err.code, "%s", err.message);
    }
    return input_flag(options, "drop_remainder", false) ? ls_dataset_batch_exact(d, n)
                                                        : ls_dataset_batch(d, n);
}

enum { MOST_COMPONENTS = 16 };

/* The arguments of padded_batch for each component. */
struct padding {
    const json_t *shapes, *values;
    size_t n;
    ls_spec *spec[MOST_COMPONENTS];
    ls_tensor *value[MOST_COMPONENTS];
};

static ls_status read_shape(const json_t *dims, ls_dtype dtype, ls_spec **out,
                            ls_error *err)
{
    int64_t sizes[LS_MAX_DIMS] = {0};
    const size_t n = json_array_size(dims);

    for (size_t i = 0; i < n && i < LS_MAX_DIMS; i++) {
        sizes[i] = json_integer_value(json_array_get(dims, i));
    }
    return ls_spec_tensor(dtype, (int)n, sizes, out, err);
}

static ls_status read_padding(const ls_spec *leaf, const void *user, ls_spec **out,
                              ls_error *err)
{
    struct padding *p = (struct padding *)(uintptr_t)user;
    const ls_dtype dtype = ls_spec_dtype(leaf);
    const ls_shape scalar = LS_SCALAR;
    const size_t i = p->n++;
    ls_status st = LS_OK;

    if (i >= MOST_COMPONENTS) {
        return input_fail(err, LS_UNKNOWN, "more than %d components", MOST_COMPONENTS);
    }
    if (p->shapes != NULL) {
        st = read_shape(json_array_get(p->shapes, i), dtype, &p->spec[i], err);
    }
    if (st == LS_OK && p->values != NULL) {
        st = input_decode_tensor(ls_dtype_name(dtype), &scalar,
                                 json_array_get(p->values, i), &p->value[i], err);
    }
    *out = ls_spec_retain((
        ls_spec *)(uintptr_t)leaf); // another number of elements does not change the spec
    return st;
}

static ls_dataset *op_padded_batch(input_builder *b, ls_dataset *d, json_t *op,
                                   json_t *options)
{
    struct padding p = {.shapes = json_object_get(options, "shapes"),
                        .values = json_object_get(options, "values")};
    const ls_spec *in = ls_dataset_spec(d);
    ls_error err = LS_ERROR_INIT;
    ls_spec *visited = NULL;

    if (in != NULL && input_spec_map(in, read_padding, &p, &visited, &err) != LS_OK) {
        ls_dataset_release(d);
        d = input_build_fail(b, err.code, "%s", err.message);
    } else {
        d = ls_dataset_padded_batch(d, argument(op, 1, 0),
                                    p.shapes == NULL ? NULL : p.spec,
                                    p.values == NULL ? NULL : p.value, p.n,
                                    input_flag(options, "drop_remainder", false));
    }
    ls_spec_release(visited);
    for (size_t i = 0; i < MOST_COMPONENTS; i++) {
        ls_spec_release(p.spec[i]);
        ls_tensor_release(p.value[i]);
    }
    return d;
}

enum { MOST_SIZES = 64 };

static ls_dataset *op_rebatch(input_builder *b, ls_dataset *d, json_t *op,
                              json_t *options)
{
    const json_t *given = json_array_get(op, 1);
    int64_t sizes[MOST_SIZES] = {json_integer_value(given)};
    size_t n = 1;

    (void)b;
    if (json_is_array(given)) {
        n = json_array_size(given) < MOST_SIZES ? json_array_size(given) : MOST_SIZES;
        for (size_t i = 0; i < n; i++) {
            sizes[i] = json_integer_value(json_array_get(given, i));
        }
    }
    return ls_dataset_rebatch(d, sizes, n, input_flag(options, "drop_remainder", false));
}

static ls_dataset *op_unbatch(input_builder *b, ls_dataset *d, json_t *op,
                              json_t *options)
{
    (void)b;
    (void)op;
    (void)options;
    return ls_dataset_unbatch(d);
}

static ls_dataset *op_window(input_builder *b, ls_dataset *d, json_t *op, json_t *options)
{
    const int64_t n = argument(op, 1, 0);

    (void)b;
    return ls_dataset_window(d, n, input_option(options, "shift", n),
                             input_option(options, "stride", 1),
                             input_flag(options, "drop_remainder", false));
}

/* ---- the others ---- */

static ls_dataset *op_shuffle(input_builder *b, ls_dataset *d, json_t *op,
                              json_t *options)
{
    int64_t room = 0;

    (void)b;
    return ls_dataset_shuffle_with(d, argument(op, 1, 0),
                                   input_seed(options, "seed", &room),
                                   !input_flag(options, "reshuffle", true));
}

static ls_dataset *op_counted(input_builder *b, ls_dataset *d, json_t *op,
                              json_t *options)
{
    const char *name = json_string_value(json_array_get(op, 0));

    (void)b;
    (void)options;
    if (strcmp(name, "repeat") == 0) {
        return ls_dataset_repeat(d, argument(op, 1, -1));
    }
    if (strcmp(name, "take") == 0) {
        return ls_dataset_take(d, argument(op, 1, 0));
    }
    if (strcmp(name, "skip") == 0) {
        return ls_dataset_skip(d, argument(op, 1, 0));
    }
    if (strcmp(name, "prefetch") == 0) {
        return ls_dataset_prefetch(d, argument(op, 1, 0));
    }
    if (strcmp(name, "enumerate") == 0) {
        return ls_dataset_enumerate(d, argument(op, 1, 0));
    }
    return ls_dataset_assert_cardinality(d, argument(op, 1, 0));
}

static ls_dataset *op_shard(input_builder *b, ls_dataset *d, json_t *op, json_t *options)
{
    (void)b;
    (void)options;
    return ls_dataset_shard(d, argument(op, 1, 0), argument(op, 2, 0));
}

static ls_dataset *op_shard_ctx(input_builder *b, ls_dataset *d, json_t *op,
                                json_t *options)
{
    (void)op;
    (void)options;
    return ls_dataset_shard(d, b->ic.pipelines, b->ic.pipeline_id);
}

static ls_dataset *op_cache(input_builder *b, ls_dataset *d, json_t *op, json_t *options)
{
    (void)b;
    (void)op;
    (void)options;
    return ls_dataset_cache(d, NULL);
}

static ls_dataset *op_unique(input_builder *b, ls_dataset *d, json_t *op, json_t *options)
{
    (void)b;
    (void)op;
    (void)options;
    return ls_dataset_unique(d);
}

static ls_dataset *op_concatenate(input_builder *b, ls_dataset *d, json_t *op,
                                  json_t *options)
{
    ls_dataset *next = input_build_plain(b, json_array_get(op, 1));

    (void)options;
    if (next == NULL) {
        ls_dataset_release(d);
        return NULL;
    }
    return ls_dataset_concatenate(d, next);
}

static ls_dataset *op_policy(input_builder *b, ls_dataset *d, json_t *op, json_t *options)
{
    (void)options;
    return with_policy(b, d, json_array_get(op, 1));
}

typedef ls_dataset *(*transformation)(input_builder *b, ls_dataset *d, json_t *op,
                                      json_t *options);

static const struct {
    const char *name;
    transformation apply;
} TRANSFORMATIONS[] = {
    {"map", input_map},
    {"filter", input_filter},
    {"flat_map", input_flat_map},
    {"interleave", input_interleave},
    {"batch", op_batch},
    {"batch_global", op_batch_global},
    {"padded_batch", op_padded_batch},
    {"unbatch", op_unbatch},
    {"rebatch", op_rebatch},
    {"window", op_window},
    {"shuffle", op_shuffle},
    {"repeat", op_counted},
    {"take", op_counted},
    {"skip", op_counted},
    {"prefetch", op_counted},
    {"enumerate", op_counted},
    {"assert_cardinality", op_counted},
    {"cache", op_cache},
    {"unique", op_unique},
    {"shard", op_shard},
    {"shard_ctx", op_shard_ctx},
    {"concatenate", op_concatenate},
    {"policy", op_policy},
    {"parse_example", input_parse_example},
};

static transformation find_transformation(const char *name)
{
    const size_t n = sizeof TRANSFORMATIONS / sizeof TRANSFORMATIONS[0];

    for (size_t i = 0; name != NULL && i < n; i++) {
        if (strcmp(TRANSFORMATIONS[i].name, name) == 0) {
            return TRANSFORMATIONS[i].apply;
        }
    }
    return NULL;
}

/* The last argument, if it is an object and not the operator's only one. */
static json_t *options_of(const char *name, json_t *op)
{
    static const char *const literal[] = {"slices", "tensors", "numpy", "parse_example"};
    json_t *last = json_array_get(op, json_array_size(op) - 1);

    for (size_t i = 0; i < sizeof literal / sizeof literal[0]; i++) {
        if (strcmp(literal[i], name) == 0) {
            return NULL;
        }
    }
    return json_is_object(last) ? last : NULL;
}

static ls_dataset *apply_operator(input_builder *b, ls_dataset *d, json_t *op)
{
    const char *name = json_string_value(json_array_get(op, 0));
    const input_source source = d == NULL ? input_find_source(name) : NULL;
    const transformation transform = d == NULL ? NULL : find_transformation(name);

    if (source == NULL && transform == NULL) {
        ls_dataset_release(d);
        return input_build_fail(b, LS_UNKNOWN, "the operator %s is not known",
                                name == NULL ? "?" : name);
    }
    d = source != NULL ? source(b, op, options_of(name, op))
                       : transform(b, d, op, options_of(name, op));
    return d == NULL ? input_build_fail(b, LS_RESOURCE_EXHAUSTED, "%s gave NULL", name)
                     : d;
}

ls_dataset *input_build_plain(input_builder *b, json_t *pipeline)
{
    ls_dataset *d = NULL;

    for (size_t i = 0; i < json_array_size(pipeline); i++) {
        d = apply_operator(b, d, json_array_get(pipeline, i));
        if (d == NULL) {
            return NULL;
        }
    }
    return d == NULL ? input_build_fail(b, LS_UNKNOWN, "the pipeline is empty") : d;
}

ls_dataset *input_build(input_builder *b, json_t *pipeline, const json_t *kase)
{
    const json_t *policy = json_object_get(kase, "policy");
    int64_t room = 0;
    ls_dataset *d;

    ls_dataset_set_seed(input_seed(kase, "seed", &room));
    d = input_build_plain(b, pipeline);
    if (d != NULL && policy != NULL) {
        d = with_policy(b, d, policy);
    }
    ls_dataset_set_seed(NULL);
    return d;
}
