/* `lockstep data convert`: arguments, progress, and removing what a failure left. */
#include "cli/data/convert.h"

#include "bench/bench_clock.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char command[] = "lockstep data convert";

enum { SHARDS_MOST = 99999 };

/* Set by ^C: the command then removes what it has begun. */
static volatile sig_atomic_t interrupted;

static void note_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

static void heed_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = note_interrupt};

    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction before;

        // Signals that nohup or a shell's & made ignored stay ignored.
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) {
            (void)sigaction(signals[i], &action, NULL);
        }
    }
    // A write beyond the limit of a file's size fails, and the files are removed.
    action.sa_handler = SIG_IGN;
    (void)sigaction(SIGXFSZ, &action, NULL);
}

ls_status convert_stopped(ls_error *err)
{
    return interrupted
               ? lsi_fail(err, LS_CANCELLED, -1, "interrupted: nothing was written")
               : LS_OK;
}

ls_status convert_count(convert_job *job, ls_error *err)
{
    job->done++;
    if (job->terminal && job->done % 64 == 0 && bench_now() - job->shown > 0.2) {
        job->shown = bench_now();
        fprintf(stderr, "\r%3d %%  %lld of %lld records",
                (int)(job->total > 0 ? 100 * job->done / job->total : 0),
                (long long)job->done, (long long)job->total);
    }
    return convert_stopped(err);
}

/* Whether files and options fit together. CLI_OK: they do. */
static int check_job(const convert_job *job, bool table)
{
    const data_format format = job->from[0].format;

    for (size_t i = 0; i < job->nfrom; i++) {
        const data_file *f = &job->from[i];

        if (f->format == DATA_TEXT || f->format == DATA_EMPTY ||
            f->format == DATA_UNKNOWN) {
            fprintf(stderr,
                    "%s: %s is none of TFRecord, CSV, npy, npz and IDX by its bytes; "
                    "'lockstep data inspect %s' says what it is\n",
                    command, f->path, f->path);
            return CLI_FAILED;
        }
        if (f->format != format) {
            fprintf(stderr,
                    "%s: %s is %s and %s is %s: convert them one after the other\n",
                    command, job->from[0].path, data_format_name(format), f->path,
                    data_format_name(f->format));
            return CLI_FAILED;
        }
    }
    if (table && format != DATA_TFRECORD) {
        fprintf(stderr,
                "%s: %s is %s, and only TFRecord becomes .csv or .npz: convert it to "
                "TFRecord first\n",
                command, job->from[0].path, data_format_name(format));
        return CLI_FAILED;
    }
    if (job->labels.path != NULL && format != DATA_IDX) {
        return cli_misuse(command, "'--labels' goes with images of an IDX file");
    }
    if (job->key != NULL && (format == DATA_CSV || format == DATA_NPZ || table)) {
        return cli_misuse(
            command, "'--key' goes with npy and IDX files: others have names already");
    }
    if (table && (job->shards > 0 || job->compression != NULL)) {
        return cli_misuse(command, "'--shards' and '--compression' go with TFRecord");
    }
    return CLI_OK;
}

static int run_job(convert_job *job, bool table)
{
    ls_error err = LS_ERROR_INIT;
    ls_status st;

    heed_signals();
    job->terminal = isatty(STDERR_FILENO) == 1;
    if (!table) {
        st = convert_to_shards(job, &err);
    } else if (data_ends_with(job->to, ".csv")) {
        st = convert_to_csv(job, &err);
    } else {
        st = convert_to_npz(job, &err);
    }
    if (st == LS_OK) {
        st = convert_outputs_commit(&job->outputs, &err);
    }
    if (job->shown > 0) {
        fprintf(stderr, "\r%60s\r", "");
    }
    if (st != LS_OK) {
        return data_failed(command, NULL, &err);
    }
    printf("%lld records in %zu file%s: %s%s%s\n", (long long)job->records,
           job->outputs.n, job->outputs.n == 1 ? "" : "s", job->outputs.list[0].name,
           job->outputs.n > 1 ? " ... " : "",
           job->outputs.n > 1 ? job->outputs.list[job->outputs.n - 1].name : "");
    return CLI_OK;
}

static bool open_files(convert_job *job, char **words, size_t n, const char *labels)
{
    ls_error err = LS_ERROR_INIT;

    for (; job->nfrom < n; job->nfrom++) {
        if (!data_file_open(words[job->nfrom], &job->from[job->nfrom], &err)) {
            (void)data_failed(command, words[job->nfrom], &err);
            return false;
        }
    }
    if (labels == NULL) {
        return true;
    }
    if (!data_file_open(labels, &job->labels, &err)) {
        (void)data_failed(command, labels, &err);
        return false;
    }
    if (job->labels.format != DATA_IDX) {
        fprintf(stderr, "%s: %s is %s, and labels are an IDX file\n", command, labels,
                data_format_name(job->labels.format));
        return false;
    }
    return true;
}

static int convert_files(convert_job *job, char **words, size_t n, const char *labels)
{
    const bool table = data_ends_with(job->to, ".csv") || data_ends_with(job->to, ".npz");
    int status = CLI_FAILED;

    if (n < 1) {
        return cli_misuse(command, "from which files, and to which? FROM... TO");
    }
    if (job->compression != NULL && strcmp(job->compression, "GZIP") != 0 &&
        strcmp(job->compression, "ZLIB") != 0) {
        return cli_misuse(command, "'--compression' is GZIP or ZLIB");
    }
    job->from = calloc(n, sizeof *job->from);
    if (job->from != NULL && open_files(job, words, n, labels)) {
        status = check_job(job, table);
        if (status == CLI_OK) {
            status = run_job(job, table);
        }
    }
    convert_outputs_free(&job->outputs, status == CLI_OK);
    for (size_t i = 0; i < job->nfrom; i++) {
        data_file_close(&job->from[i]);
    }
    data_file_close(&job->labels);
    free(job->from);
    return status;
}

static const char text[] =
    "Makes TFRecord files of Examples out of CSV (one feature per column; whole numbers\n"
    "are int64, other numbers float, the rest bytes; an empty field is no feature), npy\n"
    "and npz (one Example per row; rows of uint8 are bytes, integers int64, floats "
    "float)\n"
    "and IDX files (image, height, width and, with --labels, label). With a TO that "
    "ends\n"
    "in .csv or .npz: Examples back to a table, if every feature has a fixed size.\n"
    "TFRecord to TFRecord deals records out anew.\n"
    "\n"
    "With --shards N files are called TO-00000-of-0000N.tfrecord, and each is a\n"
    "contiguous part: the first records are in the first file. Files appear under their\n"
    "names only when all of them are whole.\n";

int data_convert(int argc, char **argv)
{
    const char *labels = NULL;
    cli_whole shards = {0, 1, SHARDS_MOST};
    convert_job job = {0};
    const cli_option options[] = {
        {"--shards", "N", CLI_WHOLE, &shards, "files to write (default: one, TO)"},
        {"--compression", "C", CLI_TEXT, (void *)&job.compression,
         "GZIP or ZLIB (default: none)"},
        {"--labels", "FILE", CLI_TEXT, (void *)&labels, "IDX file with the labels"},
        {"--key", "NAME", CLI_TEXT, (void *)&job.key,
         "feature of an npy or IDX file (default: data, image)"},
    };
    const cli_usage usage = {command, text, options, LSI_COUNT_OF(options), "FROM... TO"};
    int status = CLI_OK;
    size_t n = 0;

    if (!cli_parse(&usage, argc, argv, &status)) {
        return status;
    }
    while (argv[1 + n] != NULL) {
        n++;
    }
    job.shards = shards.value;
    job.to = n > 0 ? argv[n] : "";
    return convert_files(&job, argv + 1, n > 0 ? n - 1 : 0, labels);
}
