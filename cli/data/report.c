/* What a file holds, as a person reads it and as JSON. */
#include "cli/data/report.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static bool has_arrays(const data_report *r)
{
    return r->file.format == DATA_NPY || r->file.format == DATA_NPZ;
}

static const char *unit_name(const data_report *r)
{
    switch (r->file.format) {
    case DATA_TEXT:
    case DATA_EMPTY:
        return "lines";
    case DATA_NPY:
    case DATA_NPZ:
    case DATA_IDX:
        return "rows";
    default:
        return "records";
    }
}

static json_t *features_json(const data_columns *c)
{
    json_t *list = json_array();

    for (size_t i = 0; i < c->n; i++) {
        const data_column *k = &c->list[i];
        json_t *row = json_pack("{so, ss, sI, sI, sI}", "name", cli_json_text(k->name),
                                "kind", k->mixed ? "mixed" : data_kind_name(k->kind),
                                "records", (json_int_t)k->records, "min_values",
                                (json_int_t)k->least, "max_values", (json_int_t)k->most);

        if (row != NULL && k->kind == LS_LIST_BYTES && k->most > 0) {
            json_object_set_new(row, "min_bytes", json_integer((json_int_t)k->shortest));
            json_object_set_new(row, "max_bytes", json_integer((json_int_t)k->longest));
        }
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *arrays_json(const data_report *r)
{
    json_t *list = json_array();

    for (size_t i = 0; i < r->narrays; i++) {
        const ls_array_header *a = &r->arrays[i];

        json_array_append_new(
            list, json_pack("{so, so, so, sb}", "name", cli_json_text(a->name), "dtype",
                            cli_json_text(a->dtype), "shape", cli_json_text(a->shape),
                            "fortran_order", (int)a->fortran_order));
    }
    return list;
}

static void add_contents(json_t *o, const data_report *r)
{
    if (r->nsizes > 0) {
        json_object_set_new(o, "data_bytes", json_integer(r->data_bytes));
        json_object_set_new(o, "record_bytes",
                            json_pack("{sI, sI, sI}", "min", (json_int_t)r->sizes[0],
                                      "median", (json_int_t)r->sizes[(r->nsizes - 1) / 2],
                                      "max", (json_int_t)r->sizes[r->nsizes - 1]));
    }
    if (r->file.format == DATA_TFRECORD) {
        json_object_set_new(o, "examples", json_integer(r->columns.examples));
        json_object_set_new(o, "features", features_json(&r->columns));
    } else if (r->file.format == DATA_CSV) {
        json_t *names = json_array();

        for (size_t i = 0; i < r->csv.n; i++) {
            json_array_append_new(names, cli_json_text(r->csv.names[i]));
        }
        json_object_set_new(o, "columns", names);
        json_object_set_new(o, "header", json_boolean(r->csv.header));
    } else if (has_arrays(r)) {
        json_object_set_new(o, "arrays", arrays_json(r));
    } else if (r->file.format == DATA_IDX) {
        json_t *dims = json_array();

        for (int i = 0; i < r->shape.ndim; i++) {
            json_array_append_new(dims, json_integer(r->shape.dims[i]));
        }
        json_object_set_new(o, "dtype", json_string(ls_dtype_name(r->dtype)));
        json_object_set_new(o, "shape", dims);
    }
}

int data_report_print_json(const data_report *r)
{
    json_t *first = json_array();
    json_t *o = json_pack("{so, ss, so, sI, so}", "file", cli_json_text(r->file.path),
                          "kind", data_format_name(r->file.format), "compression",
                          r->file.compression != NULL ? json_string(r->file.compression)
                                                      : json_null(),
                          "bytes", (json_int_t)r->file.bytes, "records",
                          r->records >= 0 ? json_integer(r->records) : json_null());

    if (o != NULL) {
        add_contents(o, r);
    }
    for (size_t i = 0; i < r->nfirst; i++) {
        json_array_append_new(first, cli_json_text(r->first[i]));
    }
    json_object_set_new(o, "first", first);
    if (r->damaged) {
        json_object_set_new(
            o, "damage",
            json_pack("{ss, sI, so}", "status", ls_status_name(r->damage.code),
                      r->file.format == DATA_TFRECORD ? "offset" : "record",
                      (json_int_t)r->damage_at, "message",
                      cli_json_text(r->damage.message)));
    }
    return cli_print_json("lockstep data inspect", o, 0);
}

static void print_columns(const data_columns *c)
{
    printf("\nfeatures               kind   values        in records\n");
    for (size_t i = 0; i < c->n; i++) {
        const data_column *k = &c->list[i];
        char values[48], sizes[64] = "";

        if (k->least == k->most) {
            snprintf(values, sizeof values, "%zu", k->least);
        } else {
            snprintf(values, sizeof values, "%zu to %zu", k->least, k->most);
        }
        if (k->kind == LS_LIST_BYTES && k->most > 0 && k->shortest == k->longest) {
            snprintf(sizes, sizeof sizes, ", of %zu bytes", k->longest);
        } else if (k->kind == LS_LIST_BYTES && k->most > 0) {
            snprintf(sizes, sizeof sizes, ", of %zu to %zu bytes", k->shortest,
                     k->longest);
        }
        printf("  %-20s %-6s %-13s %lld of %lld%s\n", k->name,
               k->mixed ? "mixed" : data_kind_name(k->kind), values,
               (long long)k->records, (long long)c->records, sizes);
    }
    if (c->examples < c->records) {
        printf("  %lld of %lld records are no Examples\n",
               (long long)(c->records - c->examples), (long long)c->records);
    }
}

static void print_arrays(const data_report *r)
{
    if (r->file.format == DATA_NPY && r->narrays > 0) {
        printf("  dtype         %s\n  shape         %s%s\n", r->arrays[0].dtype,
               r->arrays[0].shape, r->arrays[0].fortran_order ? ", Fortran order" : "");
        return;
    }
    printf("\narrays                 dtype  shape\n");
    for (size_t i = 0; i < r->narrays; i++) {
        printf("  %-20s %-6s %s%s\n", r->arrays[i].name, r->arrays[i].dtype,
               r->arrays[i].shape, r->arrays[i].fortran_order ? ", Fortran order" : "");
    }
    if (r->records < 0) {
        printf("  they are no table: %s\n", r->damage.message);
    }
}

static void print_check(const data_report *r)
{
    if (r->damaged && r->file.format == DATA_TFRECORD) {
        printf("  checksums     BAD at offset %lld: record %lld\n",
               (long long)r->damage_at, (long long)r->records);
    } else if (r->damaged) {
        printf("  damaged       yes, after %lld %s\n",
               (long long)(r->records > 0 ? r->records : 0), unit_name(r));
    } else if (r->file.format == DATA_TFRECORD) {
        printf("  checksums     good, all of them\n");
    }
}

void data_report_print(const data_report *r)
{
    char shape[160];

    printf("%s\n  kind          %s%s%s\n  size          %lld bytes\n", r->file.path,
           data_format_name(r->file.format), r->file.compression != NULL ? ", " : "",
           r->file.compression != NULL ? r->file.compression : "",
           (long long)r->file.bytes);
    if (r->records >= 0) {
        printf("  %-13s %lld\n", unit_name(r), (long long)r->records);
    }
    if (r->nsizes > 0) {
        printf("  contents      %lld bytes; min %llu, median %llu, max %llu\n",
               (long long)r->data_bytes, (unsigned long long)r->sizes[0],
               (unsigned long long)r->sizes[(r->nsizes - 1) / 2],
               (unsigned long long)r->sizes[r->nsizes - 1]);
    }
    if (r->file.format == DATA_IDX) {
        printf("  dtype         %s\n  shape         %s\n", ls_dtype_name(r->dtype),
               ls_shape_text(&r->shape, shape, sizeof shape));
    } else if (r->file.format == DATA_CSV) {
        printf("  columns       %zu%s\n", r->csv.n,
               r->csv.header ? "" : ", without a header");
    }
    print_check(r);
    if (has_arrays(r)) {
        print_arrays(r);
    }
    if (r->columns.examples > 0) {
        print_columns(&r->columns);
    }
    if (r->nfirst > 0) {
        printf("\nfirst %s\n", unit_name(r));
    }
    for (size_t i = 0; i < r->nfirst; i++) {
        printf("  %-5zu %s\n", i, r->first[i]);
    }
}
