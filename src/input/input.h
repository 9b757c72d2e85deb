/*
 * Input of replicas: a dataset is rewritten for this worker (batches are cut, files or
 * elements sharded), a feed distributes its elements to the replicas in turn, and the
 * iterator keeps all workers at the same step.
 */
#ifndef LSI_INPUT_H
#define LSI_INPUT_H
#include "data/data.h"
#include "replica/replica.h"

#include "lockstep/distribute.h"

/* ---- rewriting graphs (graph_rewrite.c) ---- */

/*
 * Rewrites one node whose inputs have been rewritten already: *out becomes the node's
 * replacement (a new reference), or stays NULL to keep the operator.
 */
typedef ls_status (*lsi_graph_fn)(void *user, ls_dataset *node, ls_dataset *const *inputs,
                                  ls_dataset **out, ls_error *err);

/*
 * The graph of `d` with `fn` applied to every node, inputs first, each node once: a node
 * shared by two others stays shared. Nodes that do not change are kept.
 */
ls_status lsi_graph_rewrite(ls_dataset *d, lsi_graph_fn fn, void *user, ls_dataset **out,
                            ls_error *err);

/* The operator of `d` with `input` (ownership passes) as its input 0. */
ls_status lsi_graph_over(const ls_dataset *d, ls_dataset *input, ls_dataset **out,
                         ls_error *err);

/* A builder's result: LS_OK and *out, or its failure. Takes ownership of `made`. */
ls_status lsi_graph_made(ls_dataset *made, ls_dataset **out, ls_error *err);

/* True if the node's operator is `kind`, or in a list that ends with NULL. */
bool lsi_dataset_is(const ls_dataset *d, const char *kind);
bool lsi_dataset_among(const ls_dataset *d, const char *const *kinds);

/* A hash of the spec without the number of rows: workers compare it. */
uint64_t lsi_spec_print(const ls_spec *s);

/* ---- batches and shards ---- */

/* The global batch size (batch_size.c); -1: unknown. */
ls_status lsi_batch_size(const ls_dataset *d, int64_t *out, ls_error *err);

typedef struct lsi_sharding {
    int64_t shards, index;
    int64_t replicas; /* of all workers */
    ls_auto_shard policy;
    int64_t *too_few; /* set to the number of files if it is known and too small */
} lsi_sharding;

/* Fails with: fewer files than workers. */
ls_status lsi_fail_too_few(int64_t files, int64_t shards, ls_error *err);

/* The pipeline of one worker (auto_shard.c); `d` is borrowed and not changed. */
ls_status lsi_auto_shard(ls_dataset *d, const lsi_sharding *how, ls_dataset **out,
                         ls_error *err);

/* ---- seeds and caches of several workers (worker_graph.c) ---- */

/* The seeds that the first unseeded random operator drew; false: there is none. */
bool lsi_graph_drawn_seeds(const ls_dataset *d, lsi_seeds *out);

/* Gives every unseeded random operator seeds derived from `first`. Replaces *d. */
ls_status lsi_graph_share_seeds(ls_dataset **d, lsi_seeds first, ls_error *err);

/* Gives cache files a different name on every worker. Replaces *d. */
ls_status lsi_graph_part_caches(ls_dataset **d, int workers, int worker, ls_error *err);

/* ---- specs and empty batches (empty_batch.c) ---- */

/* The spec with dim 0 of every component unknown; scalars do not change. */
ls_status lsi_spec_open_rows(const ls_spec *s, ls_spec **out, ls_error *err);
bool lsi_spec_is_static(const ls_spec *s);
bool lsi_spec_is_open(const ls_spec *s); /* the dtype of a component is unknown */

/* An empty batch, for a replica without data. */
ls_status lsi_empty_value(const ls_spec *s, ls_device *device, ls_value **out,
                          ls_error *err);

/*
 * lsi_value_place() that takes ownership of `v`, also on failure, and changes tensors
 * without other references in place (device_copy.c).
 */
ls_status lsi_value_move(ls_value *v, ls_device *device, ls_value **out, ls_error *err);

/* ---- feeds (feed.c) ---- */
typedef struct lsi_feed lsi_feed;

typedef struct lsi_feed_options {
    ls_dataset *dataset;        /* NULL: there is a callable instead */
    ls_runtime *runtime;        /* where it is opened; NULL: the default one */
    ls_input_callable callable; /* called once per element, never prefetched */
    void *user;
    size_t ahead;              /* elements to prefetch; 0: none, and no thread */
    int64_t cheap_ns;          /* less time to make one, or between calls: no prefetch */
    int64_t (*now_ns)(void);   /* NULL: the system's clock */
    ls_device *const *devices; /* element k goes to devices[k % n]; NULL: not moved */
    size_t ndevices;
} lsi_feed_options;

ls_status lsi_feed_open(const lsi_feed_options *opts, lsi_feed **out, ls_error *err);
void lsi_feed_close(lsi_feed *f); /* waits for the element being made; NULL is allowed */

/* The next element; LS_OUT_OF_RANGE at the end and after it. */
ls_status lsi_feed_take(lsi_feed *f, ls_value **out, ls_error *err);

/* The state after the last element that was taken. */
ls_status lsi_feed_save(lsi_feed *f, lsi_state_writer *w, ls_error *err);
ls_status lsi_feed_restore(lsi_feed *f, lsi_state_reader *r, ls_error *err);

/* ---- distributed datasets (distribute.c) ---- */

struct ls_dist_dataset {
    atomic_int refs;
    ls_strategy *strategy; /* retained; it holds the communicator of the workers */
    int workers, worker;   /* of the strategy */
    int local;             /* replicas of this worker */
    int total;             /* replicas in the sync group */

    ls_dataset **pipelines; /* one, or one per replica */
    int npipelines;
    bool prefetched;      /* the last node is the prefetch that distributing added */
    ls_dataset *original; /* the user's dataset, if its spec is not declared */
    ls_input_callable callable;
    void *user;

    int buffer;       /* elements to prefetch per replica */
    int64_t cheap_ns; /* unless they take less time */
    bool on_host;
    bool partial; /* replicas without data get empty batches */
    bool wrapped; /* values are PerReplica */
    int64_t cardinality;
    ls_spec *spec;       /* of one replica's value; NULL: unknown, of a callable */
    ls_spec *empty_spec; /* of empty batches: the spec with its known number of rows */
    int64_t too_few;     /* number of files if too small: iterating fails; 0: enough */
    int64_t wanting;     /* shards that need one file each */
};

/* Creates *out for this worker of the strategy, with checked options and no pipelines. */
ls_status lsi_dist_create(const char *what, ls_strategy *s,
                          const ls_distribute_options *opts, ls_dist_dataset **out,
                          ls_error *err);

/* Sets spec, cardinality and the fields that depend on them, from the user's dataset. */
ls_status lsi_dist_describe(ls_dist_dataset *dd, const ls_dataset *original,
                            const ls_spec *spec, ls_error *err);

/*
 * The end of a call that distributes: exchanges its outcome on this worker (`st`, `why`;
 * `dd` may be NULL after a failure) with those on the others. A failure of one fails all
 * with the same error. `shared`: the random operators of all workers use the same seeds.
 */
ls_status lsi_dist_agree(ls_strategy *s, ls_dist_dataset *dd, bool shared,
                         lsi_comm_site site, ls_status st, ls_error *why, ls_error *err);

/* ---- distributed iterators (dist_iterator.c) ---- */

struct ls_dist_iterator {
    ls_dist_dataset *dataset; /* retained */
    lsi_feed **feeds;         /* one per pipeline; NULL: not initialized yet */
    bool uninitialized;       /* compat.v1: before ls_dist_iterator_initialize() */
    ls_value **parts;         /* of the current step, one per replica */
    int have;                 /* parts taken so far; NULL among them: no data */
    ls_value **whole;         /* of a step: parts, empty batches for missing; borrowed */
    ls_value **empty;         /* empty batches, created when needed */
    ls_spec *seen;            /* the spec of an element, if the dataset's is unknown */
    int64_t *facts;           /* what all workers sent, in one step */
    int64_t steps;            /* returned so far */
    bool over;                /* the end was reached */
    lsi_comm_site place;      /* the site of the program's call for a step */
};

ls_status lsi_dist_iterator_create(ls_dist_dataset *dd, bool uninitialized,
                                   ls_dist_iterator **out, ls_error *err);
ls_status lsi_dist_iterator_ready(const ls_dist_iterator *it, const char *what,
                                  ls_error *err);
void lsi_dist_iterator_drop(ls_dist_iterator *it); /* releases the current parts */
#endif
