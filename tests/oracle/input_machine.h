/*
 * The machine of the suite `input`: builds the pipelines of its cases by calls of the
 * library, reads them to their end (drains them), and compares the results with the line.
 *
 * What functions of a pipeline need (their arguments, declared specs) belongs to the
 * builder of the pipeline, which lives until all its datasets and iterators are released:
 * the library calls them on threads of its own. A builder serves one worker. The line's
 * JSON is only read, by any thread.
 */
#ifndef INPUT_MACHINE_H
#define INPUT_MACHINE_H
#include "oracle.h"

#include "lockstep/distribute.h"
#include "lockstep/input.h"
#include "lockstep/lockstep.h"

/* ---- bytes, elements and specs as JSON (input_value.c, input_bytes.c) ---- */

/* Fills the error as the library would and returns the code. */
ls_status input_fail(ls_error *err, ls_status code, const char *fmt, ...) LS_PRINTF(3, 4);

/* The bytes of a JSON string or of {"b64": "..."}: malloc'd, a NUL behind them. */
char *input_bytes(const json_t *x, size_t *n);

/* The reverse: text stays text. NULL: out of memory. */
json_t *input_encode_bytes(const char *bytes, size_t n);

/* An element literal: tensors, tuples, dicts, {"list": [...]}. */
ls_status input_decode(json_t *x, ls_value **out, ls_error *err);

/* One tensor; `data` is the array of its elements, or a single one as it is. */
ls_status input_decode_tensor(const char *dtype, const ls_shape *shape,
                              const json_t *data, ls_tensor **out, ls_error *err);

/* An element as the line writes it; the windows in it are drained. */
ls_status input_encode(const ls_value *v, json_t **out, ls_error *err);
json_t *input_encode_spec(const ls_spec *s);
json_t *input_encode_error(const ls_error *err);

/* ---- draining ---- */
typedef struct input_limits {
    int64_t steps; /* negative: to the end */
    int64_t errors, past_end;
} input_limits;

input_limits input_limits_of(const json_t *kase);

/* The next event; LS_OUT_OF_RANGE: the end. */
typedef ls_status (*input_next)(void *user, json_t **event, ls_error *err);

/* The events until the end or a limit, yours to json_decref(); NULL: out of memory. */
json_t *input_drain(input_next next, void *user, const input_limits *limits);
ls_status input_next_plain(void *iterator, json_t **event, ls_error *err);

/* ---- answers against each other (input_compare.c) ---- */

/* Whether `got` is what the line expects; if not, `note` says where they differ. */
bool input_agrees(const json_t *line, const json_t *got, char *note, size_t size);

/* ---- files (input_files.c) ---- */

/* A new folder with the case's files in it. */
bool input_files_open(const json_t *files, char *folder, size_t size, char *note,
                      size_t note_size);
void input_files_close(const json_t *files, const char *folder);

/* ---- pipelines (input_pipeline.c, input_sources.c) ---- */

/* The `user` argument of a pipeline's function. */
typedef struct input_function {
    struct input_function *next;
    json_t *op;          /* the whole operator: ["map", "add", 3, {...}] */
    size_t at;           /* the index of the function's name in it */
    json_t *options;     /* its last object; NULL: none */
    int64_t pipeline_id; /* of the InputContext when it was made */
    ls_spec *spec;       /* of what it makes; NULL: not known */
    void *extra;         /* more, of the function's own */
    void (*free_extra)(void *extra);
} input_function;

typedef struct input_builder {
    const char *folder;
    ls_strategy *strategy; /* of `numpy`; borrowed */
    ls_input_context ic;
    input_function *functions; /* all that were made */
    ls_error err; /* why building failed, unless the dataset holds the failure */
} input_builder;

void input_builder_open(input_builder *b, const char *folder, ls_strategy *strategy,
                        const ls_input_context *ic);
void input_builder_close(input_builder *b);

/* The pipeline with the case's policy on it; NULL: b->err says why. */
ls_dataset *input_build(input_builder *b, json_t *pipeline, const json_t *kase);
ls_dataset *input_build_plain(input_builder *b, json_t *pipeline);

/* Stores the failure in the builder; returns NULL. */
ls_dataset *input_build_fail(input_builder *b, ls_status code, const char *fmt, ...)
    LS_PRINTF(3, 4);
input_function *input_function_new(input_builder *b, json_t *op, size_t at,
                                   json_t *options);

/* The sharding policy in effect at the end of the case's pipeline. */
ls_auto_shard input_policy(const json_t *kase);
bool input_policy_of(const char *name, ls_auto_shard *out);

/* A source by its operator. */
typedef ls_dataset *(*input_source)(input_builder *b, json_t *op, json_t *options);
input_source input_find_source(const char *name);

/* ---- options of operators ---- */
int64_t input_option(const json_t *options, const char *name, int64_t otherwise);
bool input_flag(const json_t *options, const char *name, bool otherwise);

/* The seed of that name: NULL if there is none. */
const int64_t *input_seed(const json_t *options, const char *name, int64_t *room);

/* ---- functions of the user (input_map.c, input_parse.c, input_functions.c) ---- */
ls_dataset *input_map(input_builder *b, ls_dataset *d, json_t *op, json_t *options);
ls_dataset *input_filter(input_builder *b, ls_dataset *d, json_t *op, json_t *options);
ls_dataset *input_flat_map(input_builder *b, ls_dataset *d, json_t *op, json_t *options);
ls_dataset *input_interleave(input_builder *b, ls_dataset *d, json_t *op,
                             json_t *options);

ls_dataset *input_parse_example(input_builder *b, ls_dataset *d, json_t *op,
                                json_t *options);

/* Functions get the item of a tuple of one. */
const ls_spec *input_argument_spec(const ls_spec *s);
ls_value *input_argument(ls_value *element);

/* A spec with other leaves. */
typedef ls_status (*input_leaf_spec)(const ls_spec *leaf, const void *user, ls_spec **out,
                                     ls_error *err);
ls_status input_spec_map(const ls_spec *s, input_leaf_spec fn, const void *user,
                         ls_spec **out, ls_error *err);

/*
 * The reader of files given by full names; `argument` follows them in the operator. Any
 * thread. NULL: the line is wrong.
 */
ls_dataset *input_read_files(const char *reader, const char *const *names, size_t n,
                             const json_t *argument, const json_t *options);

/* ---- actions (input_action.c, input_single_call.c, input_distribute.c) ---- */
typedef struct input_run {
    const oracle_case *k;
    json_t *kase;       /* the line's case */
    const char *folder; /* the folder of its files */
} input_run;

/* The answer in the line's form, yours to json_decref(). NULL: out of memory. */
json_t *input_act(const input_run *r);

/* An action of the table. */
typedef json_t *(*input_action)(const input_run *r);
json_t *input_act_distribute(const input_run *r);
json_t *input_act_checkpoint_distributed(const input_run *r);
json_t *input_act_context(const input_run *r);
json_t *input_act_values(const input_run *r);
json_t *input_act_next_in_replica(const input_run *r);
json_t *input_act_empty_optional(const input_run *r);
json_t *input_act_v1(const input_run *r);
json_t *input_act_batch_sizes(const input_run *r);
json_t *input_act_per_replica_batch_size(const input_run *r);
json_t *input_act_tfrecord_bytes(const input_run *r);
json_t *input_act_example_bytes(const input_run *r);

/* ---- workers: threads in one process (input_workers.c) ---- */
enum { INPUT_MOST_WORKERS = 8 };

typedef struct input_worker {
    const input_run *r;
    int index, workers, replicas;
    ls_runtime *rt;
    ls_strategy *s;
    ls_comm *comm; /* NULL: there is one worker */
    input_builder b;
    ls_dist_dataset *dist;
    ls_dist_iterator *it;
    json_t *error;  /* why it has no dataset; NULL: it has one */
    json_t *events; /* of the last stage that drained */
    ls_value *state;
} input_worker;

typedef struct input_group {
    int n;
    input_worker w[INPUT_MOST_WORKERS];
} input_group;

/* Workers of {"workers": W, "replicas": R}. False: *error is the answer. */
bool input_group_open(input_group *g, const input_run *r, const json_t *topology,
                      json_t **error);
void input_group_close(input_group *g);

/* Runs a stage on every worker, each on its thread, and waits for all. */
typedef void (*input_stage)(input_worker *w);
void input_group_each(input_group *g, input_stage stage);

/* The stage that distributes the case's pipeline: w->dist or w->error. */
void input_distribute(input_worker *w);
ls_distribute_options input_distribute_options(const input_worker *w);

/* The first worker's error, if one has any, as an answer; else NULL. */
json_t *input_group_error(const input_group *g);

/* The function of from_function; user: the worker. */
ls_dataset *input_make_dataset(const ls_input_context *ic, void *worker);

/* The next step of w->it: the array of its local elements. user: the worker. */
ls_status input_next_step(void *worker, json_t **event, ls_error *err);
#endif
