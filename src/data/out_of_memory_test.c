/* A call that runs out of memory fails with LS_RESOURCE_EXHAUSTED and loses no element:
 * the next call returns it. */
#include "data/file/file_cases.h"

#include "lockstep/record.h"

static lst_folder at;

static const char *const text = "a,1\nbb,2\nccc,3\n";

static void write_files(void)
{
    ls_record_writer *w = NULL;

    (void)lst_file(&at, "text", text, strlen(text));
    (void)lst_file(&at, "fixed", "HHabcdefF", 9);
    LST_OK(ls_record_writer_open(lst_path(&at, "records"), NULL, &w, NULL));
    for (int i = 0; i < 3; i++) {
        LST_OK(ls_record_writer_write(w, "record", (size_t)i + 3, NULL));
    }
    LST_OK(ls_record_writer_close(w, NULL));
    ls_record_writer_release(w);
}

static ls_dataset *of_file(const char *name, int kind)
{
    const char *path = lst_path(&at, name);
    const ls_csv_column columns[2] = {{LS_STRING, NULL}, {LS_I64, NULL}};
    ls_csv_options csv = LS_CSV_OPTIONS_INIT;

    csv.header = true;
    return kind == 0   ? ls_dataset_text_files(&path, 1, NULL)
           : kind == 1 ? ls_dataset_tfrecord_files(&path, 1, NULL)
           : kind == 2 ? ls_dataset_fixed_files(&path, 1, 2, 2, 1, NULL)
                       : ls_dataset_csv_files(&path, 1, columns, 2, &csv);
}

/* The pipelines and their elements; NULL: `which` is too large. */
static ls_dataset *pipeline(int which, const char **want)
{
    *want = "0 1 2 3";
    switch (which) {
    case 0:
        *want = "a,1 bb,2 ccc,3";
        return of_file("text", 0);
    case 1:
        *want = "rec reco recor";
        return of_file("records", 1);
    case 2:
        *want = "ab cd ef";
        return of_file("fixed", 2);
    case 3:
        *want = "(bb,2) (ccc,3)";
        return of_file("text", 3);
    case 4:
        return ls_dataset_cache(lst_range(4), lst_path(&at, "cache"));
    case 5:
        return ls_dataset_cache(lst_range(4), NULL);
    case 6:
        return ls_dataset_unique(lst_range(4));
    case 7:
        *want = "<0 1> <2 3>";
        return ls_dataset_window(lst_range(4), 2, 2, 1, false);
    case 8:
        *want = "ccc,3";
        return ls_dataset_skip(of_file("text", 0), 2);
    default:
        return NULL;
    }
}

enum { MOST = 20 };

/* Elements of earlier attempts are kept: their buffers cannot be reused, so that every
 * attempt has to allocate memory for its file. */
static struct {
    ls_value *values[8192];
    size_t n;
} held;

static void hold(ls_value *v)
{
    if (held.n < LSI_COUNT_OF(held.values)) {
        held.values[held.n++] = v;
    } else {
        ls_value_release(v);
    }
}

/* Reads an epoch, repeating calls that ran out of memory; *n counts the elements. */
static ls_status read_all(ls_dataset *d, ls_value **values, size_t *n, ls_error *err)
{
    ls_iterator *it = NULL;
    ls_status st = ls_dataset_iterate(d, &it, err);

    *n = 0;
    while (it != NULL && *n < MOST && (st == LS_OK || st == LS_RESOURCE_EXHAUSTED)) {
        st = ls_iterator_next(it, &values[*n], err);
        *n += st == LS_OK;
    }
    ls_iterator_release(it);
    return st;
}

/* Two epochs with the n-th allocation failing; false: there are fewer. */
static bool read_twice(int which, int64_t n)
{
    const char *want = NULL;
    ls_value *values[2][MOST] = {{NULL}};
    ls_status st[2] = {LS_OK, LS_OK};
    ls_error err[2] = {LS_ERROR_INIT, LS_ERROR_INIT};
    size_t count[2] = {0, 0};
    ls_dataset *d = NULL;
    bool reached = false;

    (void)lsi_file_remove(lst_path(&at, "cache"), NULL);
    (void)lsi_alloc_fail_at(n);
    d = pipeline(which, &want);
    for (int epoch = 0; epoch < 2; epoch++) {
        st[epoch] = read_all(d, values[epoch], &count[epoch], &err[epoch]);
    }
    reached = lsi_alloc_fail_at(0) >= n;
    ls_dataset_release(d);
    for (int epoch = 0; epoch < 2; epoch++) {
        lst_text t = {{0}, 0};

        for (size_t i = 0; i < count[epoch]; i++) {
            lst_put(&t, i > 0 ? " " : "");
            lst_put_value(&t, values[epoch][i]);
            hold(values[epoch][i]);
        }
        if (st[epoch] != LS_RESOURCE_EXHAUSTED) { // else no iterator could be made
            LST_FAILS(st[epoch], LS_OUT_OF_RANGE, err[epoch], "end of");
            LST_CHECK(lst_same(&t, want));
        }
    }
    return reached;
}

LST_TEST(no_element_is_lost_where_memory_runs_out)
{
    const char *want = NULL;

    lst_enter(&at);
    write_files();
    for (int which = 0;; which++) {
        ls_dataset *d = pipeline(which, &want);

        if (d == NULL) {
            break;
        }
        ls_dataset_release(d);
        for (int64_t n = 1; read_twice(which, n); n++) {
        }
    }
    while (held.n > 0) {
        ls_value_release(held.values[--held.n]);
    }
    lst_leave(&at);
}

LST_MAIN(LST_CASE(no_element_is_lost_where_memory_runs_out))
