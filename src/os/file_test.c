/* Files and folders: reading, writing, atomic replacement, failures. */
#include "os/file.h"

#include "ls_test.h"

#include <sys/stat.h>
#include <unistd.h>

/* A folder of this test's own, and paths in it. */
struct place {
    char folder[64];
    char path[128];
};

static void enter(struct place *at)
{
    (void)snprintf(at->folder, sizeof at->folder, "/tmp/ls-file-XXXXXX");
    LST_CHECK(mkdtemp(at->folder) != NULL);
    (void)snprintf(at->path, sizeof at->path, "%s/file", at->folder);
}

static void leave(const struct place *at)
{
    ls_error err = LS_ERROR_INIT;
    lsi_names left = {NULL, 0};

    LST_OK(lsi_folder_list(at->folder, &left, &err));
    for (size_t i = 0; i < left.count; i++) {
        char path[400];

        (void)snprintf(path, sizeof path, "%s/%s", at->folder, left.names[i]);
        LST_OK(lsi_file_remove(path, &err));
    }
    lsi_names_release(&left);
    LST_OK(lsi_file_remove(at->folder, &err));
}

LST_TEST(what_is_written_is_read_back_and_replaces_what_was_there)
{
    ls_error err = LS_ERROR_INIT;
    struct place at;
    lsi_names names;
    void *data = NULL;
    size_t len = 0;

    enter(&at);
    LST_OK(lsi_file_write_atomic(at.path, "a longer text", 13, &err));
    LST_OK(lsi_file_write_atomic(at.path, "short", 5, &err));
    LST_OK(lsi_file_read(at.path, 5, &data, &len, &err));
    LST_CHECK(len == 5 && memcmp(data, "short", 6) == 0); // with the NUL
    lsi_free(data);
    LST_OK(lsi_folder_list(at.folder, &names, &err));
    LST_CHECK(names.count == 1); // nothing temporary is left
    lsi_names_release(&names);
    leave(&at);
}

LST_TEST(an_empty_file_and_one_that_hides_its_size_are_read_whole)
{
    ls_error err = LS_ERROR_INIT;
    struct place at;
    void *data = NULL;
    size_t len = 99;

    enter(&at);
    LST_OK(lsi_file_write_atomic(at.path, "", 0, &err));
    LST_OK(lsi_file_read(at.path, 0, &data, &len, &err));
    LST_CHECK(len == 0 && *(char *)data == '\0');
    lsi_free(data);
    data = NULL;
#ifdef __linux__
    LST_OK(lsi_file_read("/proc/self/status", 1 << 20, &data, &len, &err));
    LST_CHECK(len > 100 && strstr(data, "VmHWM") != NULL);
    lsi_free(data);
    LST_FAILS(lsi_file_read("/proc/self/status", 10, &data, &len, &err),
              LS_RESOURCE_EXHAUSTED, err, "/proc/self/status");
    LST_FAILS(lsi_file_read("/dev/zero", 1 << 20, &data, &len, &err),
              LS_RESOURCE_EXHAUSTED, err, "/dev/zero"); // ends at the limit
#endif
    leave(&at);
}

LST_TEST(a_missing_file_a_folder_and_one_too_large_are_told_apart_and_named)
{
    ls_error err = LS_ERROR_INIT;
    struct place at;
    void *data = NULL;
    size_t len = 0;

    enter(&at);
    LST_FAILS(lsi_file_read(at.path, 10, &data, &len, &err), LS_NOT_FOUND, err, at.path);
    LST_FAILS(lsi_file_read(at.folder, 10, &data, &len, &err), LS_FAILED_PRECONDITION,
              err, at.folder);
    LST_OK(lsi_file_write_atomic(at.path, "0123456789", 10, &err));
    LST_FAILS(lsi_file_read(at.path, 9, &data, &len, &err), LS_RESOURCE_EXHAUSTED, err,
              at.path);
    LST_CHECK(data == NULL && len == 0);
    if (geteuid() != 0) { // root may read everything
        LST_CHECK(chmod(at.path, 0) == 0);
        LST_FAILS(lsi_file_read(at.path, 10, &data, &len, &err), LS_PERMISSION_DENIED,
                  err, at.path);
    }
    leave(&at);
}

LST_TEST(a_file_that_was_cut_is_data_loss)
{
    ls_error err = LS_ERROR_INIT;
    struct place at;
    lsi_file *file = NULL;
    char bytes[8] = "";
    uint64_t size = 0;
    size_t got = 0;

    enter(&at);
    LST_OK(lsi_file_write_atomic(at.path, "0123456789", 10, &err));
    LST_OK(lsi_file_open(at.path, LSI_FILE_READ, &file, &err));
    LST_OK(lsi_file_size(file, &size, &err));
    LST_CHECK(size == 10 && strcmp(lsi_file_path(file), at.path) == 0);
    LST_OK(lsi_file_read_exactly(file, 2, bytes, 8, &err));
    LST_CHECK(memcmp(bytes, "23456789", 8) == 0);
    LST_FAILS(lsi_file_read_exactly(file, 3, bytes, 8, &err), LS_DATA_LOSS, err, at.path);
    LST_CHECK(strstr(err.message, "byte 10") != NULL);
    LST_OK(lsi_file_read_at(file, 8, bytes, 8, &got, &err));
    LST_CHECK(got == 2);
    LST_OK(lsi_file_read_at(file, 1000, bytes, 8, &got, &err));
    LST_CHECK(got == 0);
    LST_FAILS(lsi_file_read_at(file, UINT64_MAX, bytes, 8, &got, &err),
              LS_INVALID_ARGUMENT, err, at.path);
    lsi_file_close(file);
    leave(&at);
}

LST_TEST(pieces_are_filled_one_after_the_other)
{
    enum { PIECES = 150 }; // more than one system call takes
    ls_error err = LS_ERROR_INIT;
    unsigned char from[PIECES * 4], to[PIECES * 4];
    lsi_file_piece pieces[PIECES];
    struct place at;
    lsi_file *file = NULL;
    size_t got = 0, used = 0;

    enter(&at);
    for (size_t i = 0; i < sizeof from; i++) {
        from[i] = (unsigned char)(i * 7);
    }
    memset(to, 0, sizeof to);
    for (size_t i = 0; i < PIECES; i++) { // of 0 to 4 bytes
        pieces[i] = (lsi_file_piece){to + used, i % 5};
        used += i % 5;
    }
    LST_OK(lsi_file_write_atomic(at.path, from, sizeof from, &err));
    LST_OK(lsi_file_open(at.path, LSI_FILE_READ, &file, &err));
    LST_OK(lsi_file_read_pieces(file, 1, pieces, PIECES, &got, &err));
    LST_CHECK(got == used && memcmp(to, from + 1, used) == 0);
    LST_OK(lsi_file_read_pieces(file, sizeof from - 7, pieces, PIECES, &got, &err));
    LST_CHECK(got == 7 && memcmp(to, from + sizeof from - 7, 7) == 0);
    LST_OK(lsi_file_read_pieces(file, 0, NULL, 0, &got, &err));
    LST_CHECK(got == 0);
    lsi_file_close(file);
    leave(&at);
}

LST_TEST(appending_keeps_and_writing_empties)
{
    ls_error err = LS_ERROR_INIT;
    struct place at;
    lsi_file *file = NULL;
    void *data = NULL;
    size_t len = 0;

    enter(&at);
    for (int i = 0; i < 2; i++) {
        LST_OK(lsi_file_open(at.path, LSI_FILE_APPEND, &file, &err));
        LST_OK(lsi_file_write(file, "ab", 2, &err));
        LST_OK(lsi_file_sync(file, &err));
        lsi_file_close(file);
    }
    LST_OK(lsi_file_read(at.path, 100, &data, &len, &err));
    LST_CHECK(len == 4 && strcmp(data, "abab") == 0);
    lsi_free(data);
    LST_OK(lsi_file_open(at.path, LSI_FILE_WRITE, &file, &err));
    lsi_file_close(file);
    LST_OK(lsi_file_read(at.path, 100, &data, &len, &err));
    LST_CHECK(len == 0);
    lsi_free(data);
    leave(&at);
}

LST_TEST(a_write_that_fails_names_the_path_and_leaves_nothing_behind)
{
    ls_error err = LS_ERROR_INIT;
    struct place at;
    lsi_names names;
    char path[160];

    enter(&at);
    (void)snprintf(path, sizeof path, "%s/missing/file", at.folder);
    LST_FAILS(lsi_file_write_atomic(path, "x", 1, &err), LS_NOT_FOUND, err, path);
    LST_OK(lsi_folder_create(at.path, &err));
    LST_FAILS(lsi_folder_create(at.path, &err), LS_ALREADY_EXISTS, err, at.path);
    LST_FAILS(lsi_file_write_atomic(at.path, "x", 1, &err), LS_FAILED_PRECONDITION, err,
              at.path);
    LST_OK(lsi_folder_list(at.folder, &names, &err));
    LST_CHECK(names.count == 1); // the folder alone
    lsi_names_release(&names);
    LST_FAILS(lsi_file_remove(path, &err), LS_NOT_FOUND, err, path);
    leave(&at);
}

LST_TEST(a_new_file_never_opens_what_has_its_name)
{
    ls_error err = LS_ERROR_INIT;
    struct place at;
    lsi_file *file = NULL;
    char target[160];
    void *data = NULL;
    size_t len = 0;

    enter(&at);
    (void)snprintf(target, sizeof target, "%s/target", at.folder);
    LST_CHECK(symlink(target, at.path) == 0); // to a file that is not there
    LST_FAILS(lsi_file_open(at.path, LSI_FILE_CREATE, &file, &err), LS_ALREADY_EXISTS,
              err, at.path);
    LST_FAILS(lsi_file_remove(target, &err), LS_NOT_FOUND, err, target);
    LST_OK(lsi_file_write_atomic(at.path, "new", 3, &err)); // the link, not what it names
    LST_FAILS(lsi_file_remove(target, &err), LS_NOT_FOUND, err, target);
    LST_OK(lsi_file_read(at.path, 100, &data, &len, &err));
    LST_CHECK(len == 3);
    lsi_free(data);
    leave(&at);
}

LST_TEST(a_full_disk_is_resource_exhausted)
{
#ifdef __linux__
    ls_error err = LS_ERROR_INIT;
    lsi_file *file = NULL;

    LST_OK(lsi_file_open("/dev/full", LSI_FILE_WRITE, &file, &err));
    LST_FAILS(lsi_file_write(file, "x", 1, &err), LS_RESOURCE_EXHAUSTED, err,
              "/dev/full");
    lsi_file_close(file);
#endif
}

LST_TEST(the_names_in_a_folder_come_sorted)
{
    ls_error err = LS_ERROR_INIT;
    struct place at;
    lsi_names names = {NULL, 0};

    enter(&at);
    for (int i = 39; i >= 0; i--) { // more than the list begins with
        (void)snprintf(at.path, sizeof at.path, "%s/f%02d", at.folder, i);
        LST_OK(lsi_file_write_atomic(at.path, "", 0, &err));
    }
    LST_OK(lsi_folder_list(at.folder, &names, &err));
    LST_CHECK(names.count == 40);
    for (size_t i = 0; i < names.count; i++) {
        char expect[32];

        (void)snprintf(expect, sizeof expect, "f%02zu", i);
        LST_CHECK(strcmp(names.names[i], expect) == 0);
    }
    lsi_names_release(&names);
    LST_FAILS(lsi_folder_list("/nowhere", &names, &err), LS_NOT_FOUND, err, "/nowhere");
    leave(&at);
}

static struct place shared; // write_and_read() has no other way to know it

static ls_status write_and_read(ls_error *err)
{
    lsi_names names = {NULL, 0};
    void *data = NULL;
    size_t len = 0;
    ls_status st = lsi_file_write_atomic(shared.path, "text", 4, err);

    if (st == LS_OK) {
        st = lsi_file_read(shared.path, 10, &data, &len, err);
    }
    if (st == LS_OK) {
        st = lsi_folder_list(shared.folder, &names, err);
    }
    lsi_names_release(&names);
    lsi_free(data);
    return st;
}

LST_TEST(files_survive_the_failure_of_every_allocation)
{
    enter(&shared);
    lst_every_allocation(write_and_read);
    leave(&shared);
}

LST_MAIN(LST_CASE(what_is_written_is_read_back_and_replaces_what_was_there),
         LST_CASE(an_empty_file_and_one_that_hides_its_size_are_read_whole),
         LST_CASE(a_missing_file_a_folder_and_one_too_large_are_told_apart_and_named),
         LST_CASE(a_file_that_was_cut_is_data_loss),
         LST_CASE(pieces_are_filled_one_after_the_other),
         LST_CASE(appending_keeps_and_writing_empties),
         LST_CASE(a_write_that_fails_names_the_path_and_leaves_nothing_behind),
         LST_CASE(a_new_file_never_opens_what_has_its_name),
         LST_CASE(a_full_disk_is_resource_exhausted),
         LST_CASE(the_names_in_a_folder_come_sorted),
         LST_CASE(files_survive_the_failure_of_every_allocation))
