/* Errors, allocation with failure injection, sizes, the log. */
#include "base/base.h"

#include "ls_test.h"

LST_TEST(every_status_has_a_name_a_meaning_and_an_exception)
{
    for (int i = LS_OK; i <= LS_UNAUTHENTICATED; i++) {
        ls_error err = LS_ERROR_INIT;

        err.code = (ls_status)i;
        LST_CHECK(strcmp(ls_status_name((ls_status)i), "?") != 0);
        LST_CHECK(strcmp(ls_status_meaning((ls_status)i), "?") != 0);
        LST_CHECK((ls_error_python(&err)[0] == '\0') == (i == LS_OK));
    }
    LST_CHECK(strcmp(ls_status_name(LS_OUT_OF_RANGE), "OUT_OF_RANGE") == 0);
    LST_CHECK(LS_OUT_OF_RANGE == 11 && LS_UNAVAILABLE == 14); // wire format
    LST_CHECK(strcmp(ls_status_name((ls_status)99), "?") == 0);
    LST_CHECK(strcmp(ls_status_meaning((ls_status)-1), "?") == 0);
}

LST_TEST(a_failure_fills_the_error_and_returns_its_code)
{
    ls_error err = LS_ERROR_INIT;

    LST_CHECK(lsi_fail(&err, LS_UNAVAILABLE, 3, "rank %d left", 3) == LS_UNAVAILABLE);
    LST_CHECK(err.code == LS_UNAVAILABLE && err.rank == 3 && err.kind == LS_KIND_OP);
    LST_CHECK(strcmp(err.message, "rank 3 left") == 0);
    LST_CHECK(strcmp(ls_error_python(&err), "UnavailableError") == 0);
    LST_CHECK(lsi_fail(NULL, LS_ABORTED, 0, "nobody listens") == LS_ABORTED);
}

LST_TEST(the_kind_of_a_failure_decides_the_exception)
{
    static const struct {
        ls_kind kind;
        const char *name;
    } cases[] = {{LS_KIND_OP, "InvalidArgumentError"},
                 {LS_KIND_VALUE, "ValueError"},
                 {LS_KIND_TYPE, "TypeError"},
                 {LS_KIND_ASSERT, "AssertionError"},
                 {LS_KIND_RUNTIME, "RuntimeError"}};

    for (size_t i = 0; i < LSI_COUNT_OF(cases); i++) {
        ls_error err = LS_ERROR_INIT;

        LST_CHECK(lsi_fail_kind(&err, LS_INVALID_ARGUMENT, cases[i].kind, "x") ==
                  LS_INVALID_ARGUMENT);
        LST_CHECK(err.rank == -1);
        LST_CHECK(strcmp(ls_error_python(&err), cases[i].name) == 0);
    }
    LST_CHECK(ls_error_python(NULL)[0] == '\0');
}

LST_TEST(a_message_that_is_too_long_is_cut_and_ends)
{
    ls_error err = LS_ERROR_INIT;
    char text[1000];

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    (void)lsi_fail(&err, LS_INTERNAL, -1, "%s", text);
    LST_CHECK(strlen(err.message) == sizeof err.message - 1);
}

LST_TEST(an_older_and_shorter_error_is_not_read_past_its_end)
{
    struct {
        ls_error err;
        char after[64];
    } old;
    const size_t shorter = offsetof(ls_error, message) + 16;
    ls_error now = LS_ERROR_INIT;

    memset(&old, 'x', sizeof old);
    memset(&now.message, 'y', sizeof now.message);
    old.err.struct_size = shorter;
    (void)lsi_fail(&old.err, LS_ABORTED, 3, "a message that is longer than 16 bytes");
    LST_CHECK(lsi_fail_again(&now, &old.err) == LS_ABORTED);
    LST_CHECK(now.struct_size == sizeof now && now.rank == 3);
    LST_CHECK(strcmp(now.message, "a message that ") == 0);
    LST_CHECK(now.message[16] == '\0' && now.message[sizeof now.message - 1] == '\0');
}

LST_TEST(an_older_and_shorter_error_is_not_written_past_its_end)
{
    struct {
        ls_error err;
        char after[8];
    } old;
    const size_t shorter = offsetof(ls_error, message) + 16;

    memset(&old, 0x5a, sizeof old);
    old.err.struct_size = shorter;
    (void)lsi_fail(&old.err, LS_ABORTED, 1, "a message of more than sixteen characters");
    LST_CHECK(old.err.code == LS_ABORTED && old.err.struct_size == shorter);
    LST_CHECK(strcmp(old.err.message, "a message of mo") == 0);
    LST_CHECK(old.err.message[16] == 0x5a);
    memset(&old, 0x5a, sizeof old);
    old.err.struct_size = 4; // not an ls_error at all: not touched
    (void)lsi_fail(&old.err, LS_ABORTED, 1, "x");
    LST_CHECK(old.err.rank == 0x5a5a5a5a);
}

LST_TEST(a_failure_that_travels_up_is_unchanged)
{
    ls_error first = LS_ERROR_INIT, err = LS_ERROR_INIT;

    (void)lsi_fail_kind(&first, LS_NOT_FOUND, LS_KIND_VALUE, "first");
    first.rank = 5;
    lsi_error_set_site(&first, "train.c", 77);
    LST_CHECK(lsi_fail_again(&err, &first) == LS_NOT_FOUND);
    LST_CHECK(memcmp(&err, &first, sizeof err) == 0);
    LST_CHECK(lsi_fail_again(NULL, &first) == LS_NOT_FOUND);
    LST_CHECK(lsi_fail_memory(&err, "a test", 123) == LS_RESOURCE_EXHAUSTED);
    LST_CHECK(strstr(err.message, "a test needs 123 bytes") != NULL);
}

LST_TEST(an_error_owns_the_name_of_its_file)
{
    char path[] = "plugins/loss.c";
    ls_error err = LS_ERROR_INIT, copy;

    LST_CHECK(err.file[0] == '\0');
    lsi_error_set_site(&err, path, 12);
    copy = err;
    memset(path, 'x', sizeof path - 1); // as when its module is unloaded
    LST_CHECK(strcmp(err.file, "plugins/loss.c") == 0 && err.line == 12);
    memset(&err, 0x5a, sizeof err);
    LST_CHECK(strcmp(copy.file, "plugins/loss.c") == 0);
    lsi_error_set_site(&copy, NULL, 0);
    LST_CHECK(copy.file[0] == '\0' && copy.line == 0);
    lsi_error_set_site(NULL, path, 1);
    err.struct_size = 4; // not an ls_error at all: not touched
    lsi_error_set_site(&err, path, 1);
    LST_CHECK(err.line == 0x5a5a5a5a && err.file[0] == 0x5a);
}

LST_TEST(a_file_with_a_long_path_keeps_its_end)
{
    char path[300];
    ls_error err = LS_ERROR_INIT;
    const size_t room = sizeof err.file;

    for (size_t len = room - 2; len < sizeof path; len++) {
        memset(path, 'd', len);
        memcpy(path + len - 7, "/loss.c", sizeof "/loss.c");
        lsi_error_set_site(&err, path, 3);
        if (len < room) {
            LST_CHECK(strcmp(err.file, path) == 0);
        } else {
            LST_CHECK(strlen(err.file) == room - 1 && strncmp(err.file, "...", 3) == 0);
            LST_CHECK(strcmp(err.file + 3, path + len - (room - 4)) == 0);
        }
        LST_CHECK(lst_same_file(err.file, path) && err.message[0] == '\0');
    }
    LST_CHECK(!lst_same_file(err.file, "loss.c") && !lst_same_file("", "loss.c"));
}

LST_TEST(memory_is_zeroed_and_aligned)
{
    for (size_t align = 16; align <= 4096; align *= 2) {
        void *p = lsi_alloc_aligned(100, align);

        LST_CHECK(p != NULL && (uintptr_t)p % align == 0);
        lsi_free(p);
    }
    for (size_t n = 0; n < 200; n += 13) {
        unsigned char *p = lsi_alloc(n, 3);

        LST_CHECK(p != NULL && (uintptr_t)p % 16 == 0);
        for (size_t i = 0; i < 3 * n; i++) {
            LST_CHECK(p[i] == 0);
        }
        lsi_free(p);
    }
    lsi_free(NULL);
}

LST_TEST(sizes_that_overflow_are_refused)
{
    size_t out = 5;

    LST_CHECK(lsi_alloc(SIZE_MAX / 2, 3) == NULL);
    LST_CHECK(!lsi_mul_size(SIZE_MAX / 2, 3, &out) && !lsi_add_size(SIZE_MAX, 1, &out));
    LST_CHECK(lsi_mul_size(6, 7, &out) && out == 42);
    LST_CHECK(lsi_add_size(SIZE_MAX - 1, 1, &out) && out == SIZE_MAX);
}

LST_TEST(growing_keeps_the_old_and_zeroes_the_new)
{
    int *p = lsi_alloc(3, sizeof *p), *grown;

    for (int i = 0; i < 3; i++) {
        p[i] = i + 1;
    }
    grown = lsi_realloc(p, 3, 6, sizeof *p);
    LST_CHECK(grown != NULL);
    for (int i = 0; grown != NULL && i < 6; i++) {
        LST_CHECK(grown[i] == (i < 3 ? i + 1 : 0));
    }
    (void)lsi_alloc_fail_at(1);
    LST_CHECK(lsi_realloc(grown, 6, 12, sizeof *p) == NULL);
    (void)lsi_alloc_fail_at(0);
    LST_CHECK(grown[2] == 3); // intact
    lsi_free(grown);
    grown = lsi_realloc(NULL, 0, 2, sizeof *p);
    LST_CHECK(grown != NULL && grown[0] == 0 && grown[1] == 0);
    lsi_free(grown);
}

LST_TEST(a_copied_string_is_equal_and_elsewhere)
{
    const char *s = "text";
    char *copy = lsi_strdup(s);

    LST_CHECK(copy != NULL && copy != s && strcmp(copy, s) == 0);
    lsi_free(copy);
}

LST_TEST(exactly_the_chosen_allocation_fails)
{
    (void)lsi_alloc_fail_at(3);
    for (int i = 1; i <= 5; i++) {
        void *p = lsi_alloc(1, 1);

        LST_CHECK((p == NULL) == (i == 3));
        lsi_free(p);
    }
    LST_CHECK(lsi_alloc_fail_at(0) == 5);
    LST_CHECK(lsi_alloc_fail_at(0) == 0);
}

struct hook {
    int allocs, frees;
};

static void *count_alloc(size_t size, size_t align, void *user)
{
    struct hook *h = user;
    void *p = NULL;

    h->allocs++;
    return posix_memalign(&p, align, size) == 0 ? p : NULL;
}

static void count_free(void *ptr, void *user)
{
    struct hook *h = user;

    h->frees++;
    free(ptr);
}

LST_TEST(a_users_allocator_gets_every_request_until_malloc_is_put_back)
{
    ls_error err = LS_ERROR_INIT;
    struct hook h = {0, 0};

    LST_OK(ls_allocator_set(count_alloc, count_free, &h, &err));
    lsi_free(lsi_alloc(4, 4));
    lsi_free(lsi_strdup("x"));
    lsi_free(lsi_alloc_aligned(0, 64));
    LST_CHECK(h.allocs == 3 && h.frees == 3);
    LST_FAILS(ls_allocator_set(count_alloc, NULL, &h, &err), LS_INVALID_ARGUMENT, err,
              "both");
    LST_OK(ls_allocator_set(NULL, NULL, NULL, &err));
    lsi_free(lsi_alloc(4, 4));
    LST_CHECK(h.allocs == 3 && h.frees == 3);
}

struct lines {
    int count;
    ls_log_level level;
    char last[1200];
};

static void keep(ls_log_level level, const char *line, void *user)
{
    struct lines *l = user;

    l->count++;
    l->level = level;
    (void)snprintf(l->last, sizeof l->last, "%s", line);
}

LST_TEST(lines_up_to_the_level_reach_the_log_and_others_do_not)
{
    struct lines l = {0, LS_LOG_DEBUG, ""};

    lsi_log(LS_LOG_ERROR, "nobody hears this");
    ls_log_set(LS_LOG_WARNING, keep, &l);
    lsi_log(LS_LOG_INFO, "too fine");
    LST_CHECK(l.count == 0);
    lsi_log(LS_LOG_WARNING, "%s %d", "number", 7);
    LST_CHECK(l.count == 1 && l.level == LS_LOG_WARNING);
    LST_CHECK(strcmp(l.last, "number 7") == 0);
    lsi_log(LS_LOG_ERROR, "%2000d", 1); // longer than a line may be: cut
    LST_CHECK(l.count == 2 && strlen(l.last) == 1023);
    ls_log_set(LS_LOG_DEBUG, NULL, NULL);
    lsi_log(LS_LOG_ERROR, "off");
    LST_CHECK(l.count == 2);
}

LST_TEST(an_empty_setting_is_none)
{
    LST_CHECK(setenv("LS_BASE_TEST", "", 1) == 0);
    LST_CHECK(lsi_env("LS_BASE_TEST") == NULL);
    LST_CHECK(setenv("LS_BASE_TEST", "1", 1) == 0);
    LST_CHECK(lsi_env("LS_BASE_TEST") != NULL &&
              strcmp(lsi_env("LS_BASE_TEST"), "1") == 0);
    LST_CHECK(unsetenv("LS_BASE_TEST") == 0);
    LST_CHECK(lsi_env("LS_BASE_TEST") == NULL);
}

LST_MAIN(LST_CASE(every_status_has_a_name_a_meaning_and_an_exception),
         LST_CASE(a_failure_fills_the_error_and_returns_its_code),
         LST_CASE(the_kind_of_a_failure_decides_the_exception),
         LST_CASE(a_message_that_is_too_long_is_cut_and_ends),
         LST_CASE(an_older_and_shorter_error_is_not_read_past_its_end),
         LST_CASE(an_older_and_shorter_error_is_not_written_past_its_end),
         LST_CASE(a_failure_that_travels_up_is_unchanged),
         LST_CASE(an_error_owns_the_name_of_its_file),
         LST_CASE(a_file_with_a_long_path_keeps_its_end),
         LST_CASE(memory_is_zeroed_and_aligned),
         LST_CASE(sizes_that_overflow_are_refused),
         LST_CASE(growing_keeps_the_old_and_zeroes_the_new),
         LST_CASE(a_copied_string_is_equal_and_elsewhere),
         LST_CASE(exactly_the_chosen_allocation_fails),
         LST_CASE(a_users_allocator_gets_every_request_until_malloc_is_put_back),
         LST_CASE(lines_up_to_the_level_reach_the_log_and_others_do_not),
         LST_CASE(an_empty_setting_is_none))
