/*
 * Fuzz target for the readers of JSON. The first byte chooses: a line of the oracle's
 * cases, of which everything that has the form of an element is read; a pipeline of
 * `lockstep data plan`; or a safetensors file, whose header is JSON.
 */
#include "fuzz.h"

#include "cli/data/input_plan.h"
#include "oracle/input_machine.h"
#include "oracle/safetensors.h"

#include <glob.h>
#include <stdarg.h>

/* ---- a line of cases ---- */

/* What was read must be written so that it reads as the same value. */
static void check_element(json_t *x)
{
    ls_error err = LS_ERROR_INIT;
    ls_value *v = NULL, *again = NULL;
    json_t *text = NULL, *second = NULL;

    if (input_decode(x, &v, &err) != LS_OK) {
        FUZZ_CHECK(err.message[0] != '\0');
        return;
    }
    FUZZ_CHECK(input_encode(v, &text, &err) == LS_OK);
    FUZZ_CHECK(input_decode(text, &again, &err) == LS_OK);
    FUZZ_CHECK(input_encode(again, &second, &err) == LS_OK);
    FUZZ_CHECK(fuzz_sum_value(v) == fuzz_sum_value(again) && json_equal(text, second));
    json_decref(text);
    json_decref(second);
    ls_value_release(v);
    ls_value_release(again);
}

static void check_inside(json_t *x)
{
    const char *key;
    json_t *inside;
    size_t i;

    check_element(x);
    json_object_foreach(x, key, inside)
    {
        check_inside(inside);
    }
    json_array_foreach(x, i, inside)
    {
        check_inside(inside);
    }
}

static void read_line(const uint8_t *data, size_t size)
{
    char note[256] = "";
    json_error_t error;
    json_t *line = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, &error);

    if (line != NULL) {
        check_inside(line);
        (void)input_agrees(line, json_object_get(line, "expect"), note, sizeof note);
    }
    json_decref(line);
}

/* ---- a pipeline to plan ---- */

/*
 * The functions that `plan` calls are replaced here, by names that
 * tests/fuzz/CMakeLists.txt sets: file names and patterns are not looked up, because a
 * fuzzer's could match any file of the system; messages are not printed; and the plan
 * ends when all of it was read.
 */
int fuzz_glob(const char *pattern, int flags, int (*fn)(const char *, int),
              glob_t *found);
void fuzz_globfree(glob_t *found);
bool fuzz_file_open(const char *path, data_file *f, ls_error *err);
int fuzz_say(FILE *to, const char *fmt, ...) LS_PRINTF(2, 3);
int fuzz_failed(const char *command, const char *what, const ls_error *err);
ls_status fuzz_plan_choose(plan *p, ls_error *err);

int fuzz_glob(const char *pattern, int flags, int (*fn)(const char *, int), glob_t *found)
{
    static char name[] = "a.tfrecord";
    static char *names[] = {name, NULL};

    (void)flags;
    (void)fn;
    FUZZ_CHECK(pattern != NULL);
    *found = (glob_t){.gl_pathc = 1, .gl_pathv = names};
    return pattern[0] == '*' ? 0 : GLOB_NOMATCH;
}

void fuzz_globfree(glob_t *found)
{
    found->gl_pathc = 0;
}

/* Every file is there and empty. */
bool fuzz_file_open(const char *path, data_file *f, ls_error *err)
{
    (void)err;
    FUZZ_CHECK(path != NULL);
    *f = (data_file){.path = "/dev/null", .format = DATA_TFRECORD};
    return true;
}

int fuzz_say(FILE *to, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    int n;

    (void)to;
    va_start(args, fmt);
    n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    FUZZ_CHECK(n > 0);
    return n;
}

int fuzz_failed(const char *command, const char *what, const ls_error *err)
{
    (void)command;
    (void)what;
    FUZZ_CHECK(err->code != LS_OK && err->message[0] != '\0');
    return CLI_FAILED;
}

/* A pipeline that was accepted must have valid numbers. */
ls_status fuzz_plan_choose(plan *p, ls_error *err)
{
    FUZZ_CHECK(p->nfiles > 0 && p->batch >= 0 && p->shuffle >= 0 && p->repeat >= -1);
    for (size_t i = 0; i < p->nfiles; i++) {
        FUZZ_CHECK(p->files[i].name != NULL && p->files[i].records == 0);
    }
    return lsi_fail(err, LS_CANCELLED, -1, "%zu files", p->nfiles);
}

static void read_pipeline(const uint8_t *data, size_t size)
{
    char command[] = "plan", path[64];
    char *argv[] = {command, path, NULL};
    int status;

    (void)snprintf(path, sizeof path, "%s", fuzz_file(data, size));
    status = data_plan(2, argv);
    FUZZ_CHECK(status == CLI_FAILED || status == CLI_USAGE);
}

/* ---- a file of tensors ---- */

static void read_tensors(const uint8_t *data, size_t size)
{
    char why[256] = "";
    safetensors *st = safetensors_open(fuzz_file(data, size), why, sizeof why);
    uint64_t sum = 0;

    if (st == NULL) {
        FUZZ_CHECK(why[0] != '\0');
        return;
    }
    for (size_t i = 0; i < safetensors_count(st); i++) {
        const safetensors_entry *e = safetensors_at(st, i);
        const uint8_t *bytes = e->data;

        for (int64_t k = 0; k < 4 * e->count; k++) {
            sum = sum * 31 + bytes[k];
        }
        FUZZ_CHECK(safetensors_find(st, e->name) == e);
    }
    FUZZ_CHECK(safetensors_count(st) < size && (sum == 0 || size > 8));
    safetensors_close(st);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    switch (data[0] % 3) {
    case 0:
        read_line(data + 1, size - 1);
        break;
    case 1:
        read_pipeline(data + 1, size - 1);
        break;
    default:
        read_tensors(data + 1, size - 1);
    }
    return 0;
}
