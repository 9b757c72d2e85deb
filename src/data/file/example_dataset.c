/* parse_example: as an operation for map functions, and as a transformation. */
#include "data/file/example_parser.h"

#include <inttypes.h>

static void release_value(void *v)
{
    ls_value_release(v);
}

static ls_value *parse_in_context(ls_context *c, ls_tensor *records, bool batched,
                                  const ls_feature *features, size_t n)
{
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;
    lsi_example_parser p = {0};
    lsi_parse_plan at = {NULL, NULL, 0};
    ls_status st;

    if (lsi_failed(c) || records == NULL) {
        return NULL;
    }
    st = lsi_example_parser_init(&p, features, n, &err);
    at.device = c->device;
    if (st == LS_OK) {
        st = lsi_example_parser_run(&p, records, batched, &at, &out, &err);
        lsi_example_parser_clear(&p);
    }
    if (st != LS_OK) {
        (void)lsi_context_error(c, &err);
        return NULL;
    }
    return lsi_context_keep(c, out, release_value) ? out : NULL;
}

ls_value *(ls_parse_single_example)(ls_context *c, ls_tensor *record,
                                    const ls_feature *features, size_t n)
{
    return parse_in_context(c, record, false, features, n);
}

ls_value *(ls_parse_example)(ls_context *c, ls_tensor *records,
                             const ls_feature *features, size_t n)
{
    return parse_in_context(c, records, true, features, n);
}

ls_tensor *(ls_example_feature)(ls_context *c, ls_tensor *record, const char *name,
                                ls_dtype dtype, ls_shape shape)
{
    const ls_feature feature = {.name = name, .dtype = dtype, .shape = shape};
    const ls_value *v = parse_in_context(c, record, false, &feature, 1);

    return v != NULL ? lsi_context_alias(c, ls_value_as_tensor(ls_value_child(v, 0)))
                     : NULL;
}

/* ---- the transformation ---- */

struct parse_node {
    ls_dataset base;
    lsi_example_parser parser;
    ls_feature *features; // names are copies, defaults are retained
    size_t n;
    int parallel;
};

static void destroy_parse(ls_dataset *d)
{
    struct parse_node *node = (struct parse_node *)d;

    lsi_example_parser_clear(&node->parser);
    for (size_t i = 0; i < node->n; i++) {
        lsi_free((char *)(uintptr_t)node->features[i].name); // our copy
        ls_tensor_release(node->features[i].otherwise);
    }
    lsi_free(node->features);
}

static ls_status next_parsed(lsi_iterator *it, ls_value **out, ls_error *err)
{
    const struct parse_node *node = (const struct parse_node *)it->dataset;
    lsi_parse_plan at = {it->as.device, lsi_iterator_threads(it), node->parallel};
    ls_value *batch = NULL;
    ls_tensor *records;
    ls_status st = lsi_iterator_next(((lsi_unary_iterator *)it)->input, &batch, err);

    if (st != LS_OK) {
        return st;
    }
    if (at.parallel == LS_AUTOTUNE) {
        at.parallel = lsi_input_threads_count(at.threads);
    }
    records = ls_value_as_tensor(batch);
    st = records != NULL
             ? lsi_example_parser_run(&node->parser, records, true, &at, out, err)
             : lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "examples are parsed from a vector of strings, not from a %s",
                        ls_value_kind_name(ls_value_kind_of(batch)));
    ls_value_release(batch);
    return st;
}

static ls_status iterate_parse(ls_dataset *d, const lsi_opening *how, lsi_iterator **out,
                               ls_error *err)
{
    static const lsi_iterator_ops ops = {.next = next_parsed,
                                         .skip = lsi_unary_iterator_skip,
                                         .save = lsi_unary_iterator_save,
                                         .restore = lsi_unary_iterator_restore,
                                         .close = lsi_unary_iterator_close};

    return lsi_unary_iterator_new(&ops, sizeof(lsi_unary_iterator), d, how, out, err);
}

static ls_dataset *rebuild_parse(const ls_dataset *d, ls_dataset *const *inputs)
{
    const struct parse_node *node = (const struct parse_node *)d;

    return ls_dataset_parse_example(ls_dataset_retain(inputs[0]), node->features, node->n,
                                    node->parallel);
}

/* Takes copies of the features. */
static ls_status keep_features(struct parse_node *node, const ls_feature *features,
                               size_t n, ls_error *err)
{
    if (n == 0 || features == NULL) {
        return lsi_example_parser_init(&node->parser, features, n, err); // fails
    }
    node->features = lsi_alloc(n, sizeof *features);
    if (node->features == NULL) {
        return lsi_fail_memory(err, "features", n * sizeof *features);
    }
    for (size_t i = 0; i < n; i++) {
        node->features[i] = features[i];
        node->features[i].name =
            features[i].name != NULL ? lsi_strdup(features[i].name) : NULL;
        node->features[i].otherwise = ls_tensor_retain(features[i].otherwise);
        node->n++;
        if (features[i].name != NULL && node->features[i].name == NULL) {
            return lsi_fail_memory(err, "the name of a feature", 1);
        }
    }
    return lsi_example_parser_init(&node->parser, node->features, n, err);
}

/* The input must be batches of records; *rows: their size, -1: unknown. */
static ls_status check_input(const ls_spec *s, int64_t *rows, ls_error *err)
{
    char text[200];

    *rows = -1;
    if (lsi_spec_is_unknown(s)) {
        return LS_OK;
    }
    if (s->kind == LS_SPEC_TENSOR && s->dtype == LS_STRING &&
        (s->ndim == 1 || s->ndim == -1)) {
        *rows = s->ndim == 1 ? s->dims[0] : -1;
        return LS_OK;
    }
    (void)ls_spec_text(s, text, sizeof text);
    return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                         "parse_example takes batches of records (vectors of strings), "
                         "not %s: put a batch before it",
                         text);
}

ls_dataset *ls_dataset_parse_example(ls_dataset *d, const ls_feature *features, size_t n,
                                     int parallel)
{
    static const lsi_dataset_ops ops = {.kind = "parse_example",
                                        .iterate = iterate_parse,
                                        .rebuild = rebuild_parse,
                                        .destroy = destroy_parse};
    ls_error err = LS_ERROR_INIT;
    ls_dataset *made = lsi_dataset_new(&ops, sizeof(struct parse_node), &d, 1);
    struct parse_node *node = (struct parse_node *)made;
    int64_t rows = -1;
    ls_status st;

    if (lsi_dataset_bad(made)) {
        return made;
    }
    node->parallel = parallel;
    made->cardinality = d->cardinality;
    st = keep_features(node, features, n, &err);
    if (st == LS_OK && parallel < LS_AUTOTUNE) {
        st = lsi_fail_kind(&err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                           "parse_example: %d threads; must be 0 or more, or "
                           "LS_AUTOTUNE",
                           parallel);
    }
    if (st == LS_OK) {
        st = check_input(d->spec, &rows, &err);
    }
    if (st == LS_OK) {
        st = lsi_example_parser_spec(&node->parser, true, rows, &made->spec, &err);
    }
    return st == LS_OK ? made : lsi_dataset_fail_with(made, &err);
}
