/* TFRecord files of Examples, each a contiguous part of the whole. */
#include "cli/data/convert.h"

#include <string.h>

struct shards {
    convert_job *job;
    convert_source source;
    ls_example *example;
    ls_record_writer *writer;
    int64_t shard; /* the one that is open; -1: none yet */
    int64_t written;
};

/* "train-00000-of-00004.tfrecord", or the name itself where there is one file. */
static ls_status shard_name(const convert_job *job, int64_t shard, char *buf, size_t size,
                            ls_error *err)
{
    static const char end[] = ".tfrecord";
    size_t n = strlen(job->to);
    int len;

    if (n > sizeof end - 1 && strcmp(job->to + n - (sizeof end - 1), end) == 0) {
        n -= sizeof end - 1;
    }
    if (job->shards == 0) {
        len = snprintf(buf, size, "%.*s%s", (int)n, job->to, end);
    } else {
        len = snprintf(buf, size, "%.*s-%05lld-of-%05lld%s", (int)n, job->to,
                       (long long)shard, (long long)job->shards, end);
    }
    return len > 0 && (size_t)len < size
               ? LS_OK
               : lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                          "TO has %zu bytes, and the names of files would be longer "
                          "than a path may be",
                          n);
}

static ls_status close_shard(struct shards *s, ls_error *err)
{
    const ls_status st =
        s->writer != NULL ? ls_record_writer_close(s->writer, err) : LS_OK;

    ls_record_writer_release(s->writer);
    s->writer = NULL;
    return st;
}

static ls_status open_shard(struct shards *s, ls_error *err)
{
    const char *path = NULL;
    char name[4096];
    ls_status st = close_shard(s, err);

    if (st != LS_OK) {
        return st;
    }
    s->shard++;
    st = shard_name(s->job, s->shard, name, sizeof name, err);
    if (st != LS_OK) {
        return st;
    }
    path = convert_output_add(&s->job->outputs, name, err);
    if (path == NULL) {
        return err->code;
    }
    return ls_record_writer_open(path, s->job->compression, &s->writer, err);
}

/* Where the part of a shard ends: parts differ by one record at most. */
static int64_t shard_end(const struct shards *s)
{
    const int64_t n = s->job->shards > 0 ? s->job->shards : 1;
    const int64_t each = s->source.total / n, more = s->source.total % n;
    const int64_t k = s->shard + 1;

    return k * each + (k < more ? k : more);
}

/* Opens the shard that the next record belongs to, if it is not open. */
static ls_status begin_record(struct shards *s, ls_error *err)
{
    return s->written++ == shard_end(s) ? open_shard(s, err) : LS_OK;
}

static ls_status write_record(ls_string record, void *user, ls_error *err)
{
    struct shards *s = user;
    ls_status st = begin_record(s, err);

    if (st == LS_OK) {
        st = ls_record_writer_write(s->writer, record.ptr, record.len, err);
    }
    return st == LS_OK ? convert_count(s->job, err) : st;
}

static ls_status write_element(ls_value *element, void *user, ls_error *err)
{
    struct shards *s = user;
    ls_status st = begin_record(s, err);

    if (st == LS_OK) {
        ls_example_clear(s->example);
        st = s->source.fill(&s->source, element, s->example, err);
    }
    if (st == LS_OK) {
        st = ls_record_writer_write_example(s->writer, s->example, err);
    }
    return st == LS_OK ? convert_count(s->job, err) : st;
}

ls_status convert_to_shards(convert_job *job, ls_error *err)
{
    struct shards s = {.job = job, .shard = -1};
    ls_status st = convert_source_open(job, &s.source, err);

    if (st == LS_OK && s.source.total < job->shards) {
        st = lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                      "%lld records do not fill %lld shards: ask for fewer",
                      (long long)s.source.total, (long long)job->shards);
    }
    job->records = job->total = s.source.total;
    if (st == LS_OK) {
        st = ls_example_create(&s.example, err);
    }
    if (st == LS_OK) {
        st = open_shard(&s, err);
    }
    if (st == LS_OK) {
        st = s.source.dataset == NULL
                 ? convert_each_record(job, write_record, &s, err)
                 : data_each(s.source.dataset, write_element, &s, err);
    }
    if (st == LS_OK) {
        st = close_shard(&s, err);
    }
    ls_record_writer_release(s.writer);
    ls_example_release(s.example);
    convert_source_close(&s.source);
    return st;
}
