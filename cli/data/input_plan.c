/* `lockstep data plan`: what is to be planned, from options or a file of JSON. */
#include "cli/data/input_plan.h"

#include <glob.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char command[] = "lockstep data plan";

enum {
    STEPS = 4,
    WORKERS_MOST = 256,
    REPLICAS_MOST = 256,
    SAMPLES_MOST = 1 << 28, /* of the steps that are shown: 2 GiB */
};

/* The place of a sample in its file has the bits below its file's number. */
#define RECORDS_MOST (((int64_t)1 << PLAN_FILE_SHIFT) - 1)

/* ---- files ---- */

static bool add_file(plan *p, const char *name)
{
    plan_file *files = realloc(p->files, (p->nfiles + 1) * sizeof *files);

    if (files == NULL) {
        return false;
    }
    p->files = files;
    files[p->nfiles] = (plan_file){.name = strdup(name)};
    if (files[p->nfiles].name == NULL) {
        return false;
    }
    p->nfiles++;
    return true;
}

static int add_pattern(plan *p, const char *pattern)
{
    glob_t found;
    bool ok = true;

    // NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread yet
    if (glob(pattern, 0, NULL, &found) != 0) {
        fprintf(stderr,
                "%s: no file matches '%s'; patterns begin in the current folder\n",
                command, pattern);
        return CLI_FAILED;
    }
    for (size_t i = 0; ok && i < found.gl_pathc; i++) {
        ok = add_file(p, found.gl_pathv[i]);
    }
    globfree(&found);
    if (!ok) {
        fprintf(stderr, "%s: out of memory\n", command);
    }
    return ok ? CLI_OK : CLI_FAILED;
}

static ls_status count_one(ls_value *element, void *user, ls_error *err)
{
    (void)element;
    (void)err;
    ++*(int64_t *)user;
    return LS_OK;
}

static ls_status count_records(const data_file *f, int64_t *out, ls_error *err)
{
    data_csv csv = {0};
    ls_dataset *d = NULL;
    ls_status st;

    if (f->format != DATA_CSV || f->bytes == 0) {
        return data_file_count(f, false, out, err);
    }
    if (!data_csv_open(f, &csv, err)) {
        return err->code;
    }
    d = data_csv_dataset(f, &csv);
    data_csv_close(&csv);
    st = data_each(d, count_one, out, err);
    ls_dataset_release(d);
    return st;
}

/* Counts the records of all files; they are of one kind. */
static int count_files(plan *p, bool kind_given)
{
    for (size_t i = 0; i < p->nfiles; i++) {
        ls_error err = LS_ERROR_INIT;
        ls_status st = LS_OK;
        data_file f;

        if (!data_file_open(p->files[i].name, &f, &err)) {
            return data_failed(command, p->files[i].name, &err);
        }
        if (!kind_given && i == 0) {
            p->format = f.format;
        }
        if (f.bytes > 0 && f.format != p->format && f.format != DATA_TEXT &&
            f.format != DATA_CSV) {
            fprintf(stderr, "%s: %s is %s by its bytes, not %s\n", command,
                    p->files[i].name, data_format_name(f.format),
                    data_format_name(p->format));
            data_file_close(&f);
            return CLI_FAILED;
        }
        f.format = p->format;
        if (p->format == DATA_TFRECORD || p->format == DATA_TEXT ||
            p->format == DATA_CSV) {
            st = count_records(&f, &p->files[i].records, &err);
        } else {
            st = lsi_fail(&err, LS_INVALID_ARGUMENT, -1,
                          "%s is %s: a plan is for TFRecord, text and CSV files; make "
                          "TFRecord of it with 'lockstep data convert'",
                          f.path, data_format_name(f.format));
        }
        data_file_close(&f);
        if (st == LS_OK && p->files[i].records > RECORDS_MOST) {
            st = lsi_fail(&err, LS_INVALID_ARGUMENT, -1,
                          "%lld records in one file: a plan counts up to %lld",
                          (long long)p->files[i].records, (long long)RECORDS_MOST);
        }
        if (st != LS_OK) {
            return data_failed(command, p->files[i].name, &err);
        }
        p->records += p->files[i].records;
    }
    return CLI_OK;
}

/* ---- the file of JSON ---- */

static bool set_kind(plan *p, const char *kind)
{
    static const struct {
        const char *name;
        data_format format;
    } kinds[] = {{"tfrecord", DATA_TFRECORD}, {"text", DATA_TEXT}, {"csv", DATA_CSV}};

    for (size_t i = 0; kind != NULL && i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, kind) == 0) {
            p->format = kinds[i].format;
            return true;
        }
    }
    return false;
}

static int complain_key(const char *path, const char *key, const char *wanted)
{
    fprintf(stderr, "%s: %s: \"%s\" is %s\n", command, path, key, wanted);
    return CLI_FAILED;
}

static int set_files(plan *p, const char *path, const json_t *value)
{
    int status = CLI_OK;

    if (json_is_string(value)) {
        return add_pattern(p, json_string_value(value));
    }
    if (!json_is_array(value) || json_array_size(value) == 0) {
        return complain_key(path, "files", "a pattern or a list of names");
    }
    for (size_t i = 0; status == CLI_OK && i < json_array_size(value); i++) {
        const char *name = json_string_value(json_array_get(value, i));

        if (name == NULL) {
            return complain_key(path, "files", "a pattern or a list of names");
        }
        if (!add_file(p, name)) {
            fprintf(stderr, "%s: out of memory\n", command);
            status = CLI_FAILED;
        }
    }
    return status;
}

static const char *const keys[] = {"files",  "kind", "batch", "shuffle",
                                   "repeat", "seed", "policy"};
enum { KEYS = sizeof keys / sizeof *keys };

static int unknown_key(const char *path, const char *key)
{
    const char *nearest = cli_nearest(key, keys, KEYS);

    fprintf(stderr, "%s: %s: there is no key \"%s\"", command, path, key);
    if (nearest != NULL) {
        fprintf(stderr, "; did you mean \"%s\"?", nearest);
    }
    fprintf(stderr, "\n");
    return CLI_FAILED;
}

static int set_number(plan *p, const char *path, const char *key, const json_t *value)
{
    const struct {
        const char *key;
        int64_t *out;
        int64_t least, most;
        const char *wanted;
    } numbers[] = {
        {"batch", &p->batch, 1, INT32_MAX, "a whole number from 1 to 2147483647"},
        {"shuffle", &p->shuffle, 0, INT64_MAX, "a whole number of at least 0"},
        {"repeat", &p->repeat, -1, INT64_MAX, "a whole number; -1: for ever"},
        {"seed", &p->seed, INT64_MIN, INT64_MAX, "a whole number"}};

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strcmp(key, numbers[i].key) == 0) {
            if (!json_is_integer(value) || json_integer_value(value) < numbers[i].least ||
                json_integer_value(value) > numbers[i].most) {
                return complain_key(path, key, numbers[i].wanted);
            }
            *numbers[i].out = json_integer_value(value);
            return CLI_OK;
        }
    }
    return unknown_key(path, key);
}

static int set_key(plan *p, const char *path, const char *key, const json_t *value,
                   bool *kind_given)
{
    const char *word = json_string_value(value);

    if (strcmp(key, "files") == 0) {
        return set_files(p, path, value);
    }
    if (strcmp(key, "kind") == 0) {
        *kind_given = set_kind(p, word);
        return *kind_given ? CLI_OK
                           : complain_key(path, key, "\"tfrecord\", \"text\" or \"csv\"");
    }
    if (strcmp(key, "policy") == 0) {
        return word != NULL && plan_policy_from_name(word, &p->asked)
                   ? CLI_OK
                   : complain_key(path, key,
                                  "\"AUTO\", \"FILE\", \"DATA\", \"OFF\" or \"HINT\"");
    }
    return set_number(p, path, key, value);
}

static int read_pipeline(plan *p, const char *path, bool *kind_given)
{
    json_error_t where;
    json_t *o = json_load_file(path, JSON_REJECT_DUPLICATES, &where);
    const char *key = NULL;
    json_t *value = NULL;
    int status = CLI_OK;

    if (o == NULL) {
        fprintf(stderr, "%s: %s, line %d: %s\n", command, path, where.line, where.text);
        return CLI_FAILED;
    }
    if (!json_is_object(o)) {
        fprintf(stderr, "%s: %s holds no object {\"files\": ..., \"batch\": ...}\n",
                command, path);
        status = CLI_FAILED;
    }
    json_object_foreach(o, key, value)
    {
        if (status == CLI_OK) {
            status = set_key(p, path, key, value, kind_given);
        }
    }
    json_decref(o);
    return status;
}

/* ---- the command ---- */

/* Prints what to change if no plan is possible. */
static void print_remedy(const plan *p)
{
    if (p->batch == 0) {
        fprintf(stderr,
                "The pipeline gives single records, and a strategy cuts batches: give "
                "--batch G, the batch of all replicas together.\n");
    } else if (p->used == LS_SHARD_FILE && p->nfiles < (size_t)p->workers) {
        fprintf(stderr,
                "There are %zu files for %d workers: write at least %d ('lockstep data "
                "convert FROM TO --shards %d'),\nor let every worker read everything and "
                "keep its part of each batch with --policy DATA.\n",
                p->nfiles, p->workers, p->workers, p->workers);
    }
}

static int make_plan(plan *p, bool kind_given, bool json)
{
    ls_error err = LS_ERROR_INIT;
    int status = count_files(p, kind_given);

    if (status != CLI_OK) {
        return status;
    }
    if (!plan_is_counted(p) && p->shown > SAMPLES_MOST / (p->batch > 0 ? p->batch : 1)) {
        fprintf(
            stderr,
            "%s: %lld steps of %lld records each are too many to show: give a smaller "
            "batch, or fewer with --steps\n",
            command, (long long)p->shown, (long long)p->batch);
        return CLI_FAILED;
    }
    if (plan_choose(p, &err) != LS_OK || plan_deal(p, &err) != LS_OK) {
        status = data_failed(command, NULL, &err);
        print_remedy(p);
        return status;
    }
    if (json) {
        return plan_print_json(p);
    }
    plan_print(p);
    return CLI_OK;
}

static const char text[] =
    "Shows before anything runs who reads which file and who gets which sample: the\n"
    "library deals out a pipeline of the same shape whose records are only numbered.\n"
    "f0[3] is the fourth record of the first file. PIPELINE is a file of JSON:\n"
    "\n"
    "  {\"files\": \"train-*.tfrecord\", \"kind\": \"tfrecord\", \"batch\": 128,\n"
    "   \"shuffle\": 10000, \"seed\": 42, \"repeat\": 1, \"policy\": \"AUTO\"}\n"
    "\n"
    "where \"files\" may be a list and all but it may be left out; an option on the\n"
    "command line wins. Records are read, shuffled, repeated and batched, in this "
    "order.\n";

struct arguments {
    bool json;
    const char *files, *policy;
    cli_whole batch, workers, replicas, steps;
};

static int plan_files(const struct arguments *a, const char *pipeline)
{
    plan p = {.repeat = 1,
              .shown = a->steps.value,
              .workers = (int)a->workers.value,
              .replicas = (int)a->replicas.value};
    bool kind_given = false;
    int status = CLI_OK;

    if (pipeline != NULL) {
        status = read_pipeline(&p, pipeline, &kind_given);
    }
    if (a->batch.value > 0) {
        p.batch = a->batch.value;
    }
    if (status == CLI_OK && a->policy != NULL &&
        !plan_policy_from_name(a->policy, &p.asked)) {
        status = cli_misuse(command, "'--policy' is AUTO, FILE, DATA, OFF or HINT");
    }
    if (status == CLI_OK && a->files != NULL && p.nfiles > 0) {
        status = cli_misuse(command, "'--files' or \"files\" of the pipeline, not both");
    } else if (status == CLI_OK && a->files != NULL) {
        status = add_pattern(&p, a->files);
    } else if (status == CLI_OK && p.nfiles == 0) {
        status = cli_misuse(command, "which files? --files GLOB, or a PIPELINE");
    }
    if (status == CLI_OK) {
        status = make_plan(&p, kind_given, a->json);
    }
    plan_free(&p);
    return status;
}

int data_plan(int argc, char **argv)
{
    struct arguments a = {.batch = {0, 1, INT32_MAX},
                          .workers = {1, 1, WORKERS_MOST},
                          .replicas = {1, 1, REPLICAS_MOST},
                          .steps = {STEPS, 0, 1000000}};
    const cli_option options[] = {
        {"--files", "GLOB", CLI_TEXT, (void *)&a.files, "files, in quotes: 'train-*'"},
        {"--batch", "G", CLI_WHOLE, &a.batch,
         "records of a step, of all replicas together"},
        {"--workers", "W", CLI_WHOLE, &a.workers, "processes (default: 1)"},
        {"--replicas", "R", CLI_WHOLE, &a.replicas,
         "replicas of each worker (default: 1)"},
        {"--policy", "P", CLI_TEXT, (void *)&a.policy,
         "AUTO, FILE, DATA, OFF or HINT (default: AUTO)"},
        {"--steps", "N", CLI_WHOLE, &a.steps, "steps to show (default: 4)"},
        {"--json", NULL, CLI_FLAG, &a.json, "print one JSON object"},
    };
    const cli_usage usage = {command, text, options, LSI_COUNT_OF(options), "[PIPELINE]"};
    int status = CLI_OK;

    if (!cli_parse(&usage, argc, argv, &status)) {
        return status;
    }
    return argv[1] != NULL && argv[2] != NULL
               ? cli_misuse(command, "one pipeline at a time")
               : plan_files(&a, argv[1]);
}
