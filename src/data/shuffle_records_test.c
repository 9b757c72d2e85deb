/* Shuffles of records, which are held as strings: the order is that of other elements. */
#include "data/file/file_cases.h"

#include "lockstep/record.h"

enum { FILES = 3 };
static const char *files[FILES]; // set by each test

/* Records "<name>0", "<name>1", ... of different lengths. */
static const char *write_records(lst_folder *at, const char *name, int n)
{
    const char *path = lst_path(at, name);
    ls_record_writer *w = NULL;
    ls_error err = LS_ERROR_INIT;
    char text[16];

    LST_OK(ls_record_writer_open(path, NULL, &w, &err));
    for (int i = 0; i < n; i++) {
        const int len = snprintf(text, sizeof text, "%s%d", name, i);

        LST_OK(ls_record_writer_write(w, text, (size_t)len, &err));
    }
    LST_OK(ls_record_writer_close(w, &err));
    ls_record_writer_release(w);
    return path;
}

/* Changes a byte of a file's record `i`, of records of one length. */
static void damage(const char *path, long at)
{
    FILE *f = fopen(path, "r+b");

    LST_CHECK(f != NULL && fseek(f, at, SEEK_SET) == 0 && fputc('#', f) == '#');
    LST_CHECK(fclose(f) == 0);
}

static ls_dataset *all_files(void)
{
    return ls_dataset_tfrecord_files(files, FILES, NULL);
}

/* Three files; the second is damaged after its third record. */
static void write_files(lst_folder *at)
{
    files[0] = write_records(at, "a", 9);
    files[1] = write_records(at, "b", 8);
    files[2] = write_records(at, "c", 5);
    damage(files[1], 3 * 18 + 12); // 12 + 2 + 4 bytes each
}

/* The same shuffle over values: each record as a batch of one. */
static ls_dataset *by_values(int64_t buffer)
{
    return ls_dataset_shuffle(ls_dataset_batch(all_files(), 1), buffer, 7);
}

static void same_events(ls_dataset *a, ls_dataset *b)
{
    for (int epoch = 0; epoch < 2; epoch++) {
        lst_text want = {{0}, 0}, have = {{0}, 0};

        lst_put_events(&want, b, 60);
        lst_put_events(&have, a, 60);
        LST_CHECK(lst_same(&have, want.s));
    }
    ls_dataset_release(a);
    ls_dataset_release(b);
}

LST_TEST(records_come_in_the_order_of_any_other_elements_failures_included)
{
    static const int64_t buffers[] = {1, 2, 3, 5, 8, 11, 20, 40, LS_UNKNOWN_SIZE};
    lst_folder at;

    lst_enter(&at);
    write_files(&at);
    for (size_t i = 0; i < LSI_COUNT_OF(buffers); i++) {
        const int64_t n = buffers[i];

        same_events(ls_dataset_shuffle(all_files(), n, 7),
                    ls_dataset_unbatch(by_values(n)));
        for (int64_t batch = 1; batch < 9; batch++) {
            same_events(ls_dataset_batch(ls_dataset_shuffle(all_files(), n, 7), batch),
                        ls_dataset_batch(ls_dataset_unbatch(by_values(n)), batch));
        }
    }
    lst_leave(&at);
}

static ls_dataset *shuffled(void)
{
    return ls_dataset_shuffle(all_files(), 6, 3);
}

static ls_dataset *in_batches(void)
{
    return ls_dataset_batch(shuffled(), 4);
}

static ls_dataset *as_a_whole(void)
{
    return ls_dataset_batch(ls_dataset_shuffle(all_files(), LS_UNKNOWN_SIZE, 3), 3);
}

LST_TEST(a_position_among_records_can_be_saved_anywhere)
{
    lst_folder at;

    lst_enter(&at);
    write_files(&at);
    LST_SAVES(shuffled);
    LST_SAVES(in_batches);
    LST_SAVES(as_a_whole);
    lst_leave(&at);
}

/* Enough strings for the copies that bypass the caches. */
LST_TEST(batches_of_shuffled_records_outlive_their_iterator)
{
    enum { RECORDS = 2000, LENGTH = 1500, BATCH = 50 };
    static ls_value *batches[RECORDS / BATCH];
    static char data[LENGTH];
    static bool seen[RECORDS];
    ls_record_writer *w = NULL;
    ls_iterator *it = NULL;
    ls_error err = LS_ERROR_INIT;
    lst_folder at;

    lst_enter(&at);
    const char *path = lst_path(&at, "a");
    LST_OK(ls_record_writer_open(path, NULL, &w, &err));
    for (int i = 0; i < RECORDS; i++) {
        memset(data, i % 251, sizeof data);
        memcpy(data + 70, &i, sizeof i);
        LST_OK(ls_record_writer_write(w, data, sizeof data - (size_t)(i % 100), &err));
    }
    LST_OK(ls_record_writer_close(w, &err));
    ls_record_writer_release(w);
    ls_dataset *d = ls_dataset_batch(
        ls_dataset_shuffle(ls_dataset_tfrecord_files(&path, 1, NULL), 1500, 1), BATCH);
    LST_OK(ls_dataset_iterate(d, &it, &err));
    for (int i = 0; i < RECORDS / BATCH; i++) {
        LST_OK(ls_iterator_next(it, &batches[i], &err));
    }
    ls_iterator_release(it);
    ls_dataset_release(d);
    for (int i = 0; i < RECORDS; i++) {
        const ls_string *s = ls_tensor_data(ls_value_as_tensor(batches[i / BATCH]));
        int number = -1;

        s += i % BATCH;
        memcpy(&number, s->ptr + 70, sizeof number);
        LST_CHECK(number >= 0 && number < RECORDS && !seen[number]);
        seen[number] = true;
        LST_CHECK(s->len == (size_t)(LENGTH - number % 100));
        for (size_t k = 0; k < s->len; k++) {
            LST_CHECK((k >= 70 && k < 70 + sizeof number) ||
                      s->ptr[k] == (char)(number % 251));
        }
    }
    for (int i = 0; i < RECORDS / BATCH; i++) {
        ls_value_release(batches[i]);
    }
    lst_leave(&at);
}

static ls_status read_all(ls_error *err)
{
    ls_dataset *d = ls_dataset_batch(shuffled(), 4);
    ls_iterator *it = NULL;
    ls_status st = d != NULL ? ls_dataset_iterate(d, &it, err)
                             : lsi_fail_memory(err, "a dataset", 1);

    while (st == LS_OK) {
        ls_value *v = NULL;

        st = ls_iterator_next(it, &v, err);
        ls_value_release(v);
    }
    ls_iterator_release(it);
    ls_dataset_release(d);
    return st == LS_OUT_OF_RANGE ? LS_OK : st;
}

LST_TEST(every_allocation_of_a_shuffle_of_records_may_fail)
{
    lst_folder at;

    lst_enter(&at);
    files[0] = write_records(&at, "a", 9);
    files[1] = write_records(&at, "b", 8);
    files[2] = write_records(&at, "c", 5);
    lst_every_allocation(read_all);
    lst_leave(&at);
}

LST_TEST(a_batch_of_records_ends_before_the_one_that_is_damaged)
{
    lst_folder at;

    lst_enter(&at);
    write_files(&at);
    LST_CHECK(lst_gives(ls_dataset_batch(all_files(), 1),
                        "[a0] [a1] [a2] [a3] [a4] [a5] [a6] [a7] [a8] [b0] [b1] [b2] "
                        "!DATA_LOSS [c0] [c1] [c2] [c3] [c4]"));
    LST_CHECK(lst_gives(ls_dataset_batch(all_files(), 5),
                        "[a0 a1 a2 a3 a4] [a5 a6 a7 a8 b0] !DATA_LOSS [c0 c1 c2 c3 c4]"));
    damage(files[0], 4 * 18 + 3); // a byte of the length
    LST_CHECK(lst_gives(ls_dataset_batch(all_files(), 4),
                        "[a0 a1 a2 a3] !DATA_LOSS !DATA_LOSS [c0 c1 c2 c3] [c4]"));
    lst_leave(&at);
}

LST_MAIN(LST_CASE(records_come_in_the_order_of_any_other_elements_failures_included),
         LST_CASE(a_position_among_records_can_be_saved_anywhere),
         LST_CASE(batches_of_shuffled_records_outlive_their_iterator),
         LST_CASE(every_allocation_of_a_shuffle_of_records_may_fail),
         LST_CASE(a_batch_of_records_ends_before_the_one_that_is_damaged))
