/* What becomes Examples: rows of arrays, images with labels, records of CSV files. */
#include "cli/data/convert.h"

#include <stdlib.h>
#include <string.h>

/* ---- tensors as features ---- */

/* Numbers as Examples have them: float32 or int64. */
static ls_status add_numbers(convert_source *s, ls_example *e, const char *name,
                             ls_tensor *t, ls_error *err)
{
    const ls_dtype dtype = ls_tensor_dtype(t);
    const bool floats = dtype == LS_F32 || dtype == LS_F64 || dtype == LS_F16;
    const size_t n = (size_t)ls_tensor_count(t);
    const ls_tensor *numbers = ls_cast(s->context, t, floats ? LS_F32 : LS_I64);
    const void *values = numbers != NULL ? ls_tensor_data(numbers) : NULL;
    ls_status st = LS_OK;

    for (size_t i = 0; values != NULL && dtype == LS_U64 && i < n; i++) {
        if (((const int64_t *)values)[i] < 0) {
            st = lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                          "'%s' has %s that do not fit in the int64 of an Example", name,
                          ls_dtype_name(dtype));
            break;
        }
    }
    if (values != NULL && st == LS_OK) {
        st = floats ? ls_example_add_float(e, name, values, n, err)
                    : ls_example_add_int64(e, name, values, n, err);
    }
    return st == LS_OK ? ls_context_finish(s->context, err) : st;
}

/* Rows of bytes stay bytes, as images are stored; everything else is numbers or text. */
static ls_status add_tensor(convert_source *s, ls_example *e, const char *name,
                            ls_tensor *t, ls_error *err)
{
    if (t == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "'%s' is no array", name);
    }
    if (ls_tensor_dtype(t) == LS_STRING) {
        return ls_example_add_bytes(e, name, ls_tensor_data(t),
                                    (size_t)ls_tensor_count(t), err);
    }
    if (ls_tensor_dtype(t) == LS_U8 && ls_tensor_ndim(t) > 0) {
        const ls_string bytes = {ls_tensor_data(t), ls_tensor_bytes(t)};

        return ls_example_add_bytes(e, name, &bytes, 1, err);
    }
    return add_numbers(s, e, name, t, err);
}

static ls_status fill_arrays(convert_source *s, ls_value *element, ls_example *e,
                             ls_error *err)
{
    ls_status st = LS_OK;

    if (ls_value_is_leaf(element)) {
        return add_tensor(s, e, s->key, ls_value_as_tensor(element), err);
    }
    for (size_t i = 0; st == LS_OK && i < ls_value_size(element); i++) {
        st = add_tensor(s, e, ls_value_key(element, i),
                        ls_value_as_tensor(ls_value_child(element, i)), err);
    }
    return st;
}

static ls_status fill_image(convert_source *s, ls_value *element, ls_example *e,
                            ls_error *err)
{
    ls_value *image = s->labelled ? ls_value_child(element, 0) : element;
    ls_tensor *t = ls_value_as_tensor(image);
    ls_status st = add_tensor(s, e, s->key, t, err);

    if (st == LS_OK && ls_tensor_ndim(t) == 2) {
        const int64_t height = ls_tensor_dim(t, 0), width = ls_tensor_dim(t, 1);

        st = ls_example_add_int64(e, "height", &height, 1, err);
        if (st == LS_OK) {
            st = ls_example_add_int64(e, "width", &width, 1, err);
        }
    }
    if (st == LS_OK && s->labelled) {
        st = add_tensor(s, e, "label", ls_value_as_tensor(ls_value_child(element, 1)),
                        err);
    }
    return st;
}

/* ---- CSV ---- */

static ls_status fill_fields(convert_source *s, ls_value *element, ls_example *e,
                             ls_error *err)
{
    ls_status st = LS_OK;

    for (size_t i = 0; st == LS_OK && i < s->csv.n; i++) {
        const ls_string field = data_csv_field(&s->csv, element, i);
        const char *name = s->csv.names[i];
        int64_t whole = 0;
        float number = 0;

        if (field.len == 0) {
            continue; // nothing there: the Example has no such feature
        }
        if (s->kinds[i] == LS_LIST_INT64 && data_is_int(field, &whole)) {
            st = ls_example_add_int64(e, name, &whole, 1, err);
        } else if (s->kinds[i] == LS_LIST_FLOAT && data_is_number(field, &number)) {
            st = ls_example_add_float(e, name, &number, 1, err);
        } else {
            st = ls_example_add_bytes(e, name, &field, 1, err);
        }
    }
    return st;
}

/* The first pass: what kind each column is, and how many records there are. */
static ls_status see_fields(ls_value *element, void *user, ls_error *err)
{
    convert_source *s = user;

    for (size_t i = 0; i < s->csv.n; i++) {
        const ls_string field = data_csv_field(&s->csv, element, i);
        int64_t whole = 0;
        float number = 0;

        if (field.len == 0 || s->kinds[i] == LS_LIST_BYTES) {
            continue;
        }
        if (!data_is_number(field, &number)) {
            s->kinds[i] = LS_LIST_BYTES;
        } else if (s->kinds[i] != LS_LIST_FLOAT) {
            s->kinds[i] = data_is_int(field, &whole) ? LS_LIST_INT64 : LS_LIST_FLOAT;
        }
    }
    s->total++;
    return convert_stopped(err);
}

static ls_status check_names(const data_file *f, const data_csv *a, ls_error *err)
{
    for (size_t i = 0; i < a->n; i++) {
        for (size_t k = 0; k < i; k++) {
            if (strcmp(a->names[i], a->names[k]) == 0) {
                return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                                "%s has two columns called '%s': rename one of them",
                                f->path, a->names[i]);
            }
        }
    }
    return LS_OK;
}

static bool same_names(const data_csv *a, const data_csv *b)
{
    bool same = a->n == b->n && a->header == b->header;

    for (size_t i = 0; same && i < a->n; i++) {
        same = strcmp(a->names[i], b->names[i]) == 0;
    }
    return same;
}

static ls_status add_csv(const convert_job *job, size_t i, convert_source *s,
                         ls_error *err)
{
    const data_file *f = &job->from[i];
    data_csv csv = {0};
    ls_dataset *d = NULL;
    ls_status st = LS_OK;

    if (!data_csv_open(f, &csv, err)) {
        return err->code;
    }
    if (i == 0) {
        s->csv = csv;
        st = check_names(f, &s->csv, err);
    } else if (!same_names(&s->csv, &csv)) {
        st = lsi_fail(err, LS_INVALID_ARGUMENT, -1, "%s and %s have different columns",
                      job->from[0].path, f->path);
    }
    if (st == LS_OK) {
        d = data_csv_dataset(f, &csv);
        s->dataset = i == 0 ? d : ls_dataset_concatenate(s->dataset, d);
    }
    if (i > 0) {
        data_csv_close(&csv);
    }
    return st;
}

static ls_status open_csv(const convert_job *job, convert_source *s, ls_error *err)
{
    ls_status st = LS_OK;

    for (size_t i = 0; st == LS_OK && i < job->nfrom; i++) {
        st = add_csv(job, i, s, err);
    }
    if (st != LS_OK) {
        return st;
    }
    s->kinds = calloc(s->csv.n, sizeof *s->kinds);
    if (s->kinds == NULL) {
        return data_no_memory(err);
    }
    s->fill = fill_fields;
    return data_each(s->dataset, see_fields, s, err);
}

/* ---- the rest ---- */

ls_status convert_each_record(const convert_job *job, data_record_fn fn, void *user,
                              ls_error *err)
{
    int64_t offset;
    ls_status st = LS_OK;

    for (size_t i = 0; st == LS_OK && i < job->nfrom; i++) {
        st = data_file_each(&job->from[i], false, fn, user, &offset, err);
    }
    return st;
}

static ls_status open_images(const convert_job *job, convert_source *s, ls_error *err)
{
    ls_spec *spec = NULL;
    ls_status st;

    st = ls_dataset_status(s->dataset, err);
    if (st != LS_OK) {
        return st;
    }
    spec = ls_dataset_spec(s->dataset);
    s->fill = fill_image;
    s->key = job->key != NULL                          ? job->key
             : spec != NULL && ls_spec_ndim(spec) == 0 ? "label"
             : spec != NULL && ls_spec_ndim(spec) == 2 ? "image"
                                                       : "data";
    if (job->labels.path != NULL) {
        ls_dataset *both[2] = {s->dataset, ls_dataset_idx(job->labels.path)};
        const int64_t labels = both[1] != NULL ? ls_dataset_cardinality(both[1]) : 0;
        ls_status bad =
            both[1] != NULL ? ls_dataset_status(both[1], err) : data_no_memory(err);

        s->labelled = true;
        s->dataset = ls_dataset_zip(both, 2);
        if (bad == LS_OK && labels != s->total) {
            bad = lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                           "there are %lld images and %lld labels in %s: one of the "
                           "files belongs to another set",
                           (long long)s->total, (long long)labels, job->labels.path);
        }
        st = bad;
    }
    return st;
}

static ls_status count_record(ls_string record, void *user, ls_error *err)
{
    (void)record;
    ++*(int64_t *)user;
    return convert_stopped(err);
}

ls_status convert_source_open(const convert_job *job, convert_source *out, ls_error *err)
{
    const data_format format = job->from[0].format;
    ls_status st;

    *out = (convert_source){.key = job->key != NULL ? job->key : "data"};
    if (format == DATA_CSV) {
        return open_csv(job, out, err);
    }
    if (format == DATA_TFRECORD) {
        return convert_each_record(job, count_record, &out->total, err);
    }
    out->dataset = data_file_rows(&job->from[0]);
    for (size_t i = 1; i < job->nfrom; i++) {
        out->dataset =
            ls_dataset_concatenate(out->dataset, data_file_rows(&job->from[i]));
    }
    if (out->dataset == NULL) {
        return data_no_memory(err);
    }
    st = ls_dataset_status(out->dataset, err);
    if (st == LS_OK) {
        st = ls_context_open(NULL, NULL, &out->context, err);
    }
    out->total = ls_dataset_cardinality(out->dataset);
    out->fill = fill_arrays;
    return st == LS_OK && format == DATA_IDX ? open_images(job, out, err) : st;
}

void convert_source_close(convert_source *s)
{
    ls_dataset_release(s->dataset);
    data_csv_close(&s->csv);
    ls_context_close(s->context);
    free(s->kinds);
}
