/*
 * How a strategy feeds its replicas: the dataset is rewritten for this worker (batches
 * cut, files or elements shared out), a feed deals its elements to the replicas in turn,
 * and the iterator keeps all workers in step.
 */
#ifndef LSI_INPUT_H
#define LSI_INPUT_H
#include "data/data.h"
#include "replica/replica.h"

#include "lockstep/distribute.h"

/* ---- rewriting graphs (graph_rewrite.c) ---- */

/*
 * Decides on one node whose inputs have been rewritten already: *out is the node's
 * replacement (a new reference), or stays NULL to leave the operator as it is.
 */
typedef ls_status (*lsi_graph_fn)(void *user, ls_dataset *node, ls_dataset *const *inputs,
                                  ls_dataset **out, ls_error *err);

/*
 * The graph of `d` with `fn` applied to every node, inputs first, each node once: what
 * two nodes share they share afterwards. Nodes that nothing happened to are kept.
 */
ls_status lsi_graph_rewrite(ls_dataset *d, lsi_graph_fn fn, void *user, ls_dataset **out,
                            ls_error *err);

/* The operator of `d` with `input` (taken over) in the place of its input 0. */
ls_status lsi_graph_over(const ls_dataset *d, ls_dataset *input, ls_dataset **out,
                         ls_error *err);

/* Passes a builder's result on: LS_OK and *out, or its failure. Takes `made` over. */
ls_status lsi_graph_made(ls_dataset *made, ls_dataset **out, ls_error *err);

/* The node's operator is one of a list that ends with NULL. */
bool lsi_dataset_is(const ls_dataset *d, const char *kind);
bool lsi_dataset_among(const ls_dataset *d, const char *const *kinds);

/* A number by which workers find out that their specs differ in more than rows. */
uint64_t lsi_spec_print(const ls_spec *s);

/* ---- batches and shards ---- */

/* The global batch size (batch_size.c); -1: it cannot be told. */
ls_status lsi_batch_size(const ls_dataset *d, int64_t *out, ls_error *err);

typedef struct lsi_sharding {
    int64_t shards, index;
    int64_t replicas; /* in sync, of all workers */
    ls_auto_shard policy;
    int64_t *too_few; /* receives the number of files if it is known and not enough */
} lsi_sharding;

/* The error that files are too few for everybody. */
ls_status lsi_fail_too_few(int64_t files, int64_t shards, ls_error *err);

/* The pipeline of one worker (auto_shard.c); `d` is borrowed and stays what it is. */
ls_status lsi_auto_shard(ls_dataset *d, const lsi_sharding *how, ls_dataset **out,
                         ls_error *err);

/* ---- seeds and caches of several workers (worker_graph.c) ---- */

/* The pair that the first unseeded random operator drew; false: there is none. */
bool lsi_graph_drawn_seeds(const ls_dataset *d, lsi_seeds *out);

/* Gives every unseeded random operator a pair made from `first`. Takes *d over. */
ls_status lsi_graph_share_seeds(ls_dataset **d, lsi_seeds first, ls_error *err);

/* Cache files get a name of their own on every worker. Takes *d over. */
ls_status lsi_graph_part_caches(ls_dataset **d, int workers, int worker, ls_error *err);

/* ---- specs and stand-ins (empty_batch.c) ---- */

/* The spec with dim 0 of every component unknown; scalars stay. */
ls_status lsi_spec_open_rows(const ls_spec *s, ls_spec **out, ls_error *err);
bool lsi_spec_is_static(const ls_spec *s);
bool lsi_spec_is_open(const ls_spec *s); /* a component's dtype is not known */

/* What a replica without data gets. */
ls_status lsi_empty_value(const ls_spec *s, ls_device *device, ls_value **out,
                          ls_error *err);

/* The value with its tensors on `device` (device_copy.c); NULL: where they are. The second
 * takes `v` over, also when it fails, and makes nothing new of what nobody else holds. */
ls_status lsi_value_place(ls_value *v, ls_device *device, ls_value **out, ls_error *err);
ls_status lsi_value_move(ls_value *v, ls_device *device, ls_value **out, ls_error *err);

/* ---- feeds (feed.c) ---- */
typedef struct lsi_feed lsi_feed;

typedef struct lsi_feed_options {
    ls_dataset *dataset;        /* NULL: there is a callable */
    ls_input_callable callable; /* called once an element, never ahead */
    void *user;
    size_t ahead;              /* elements read ahead; 0: none, and no thread */
    int64_t cheap_ns;          /* less is not worth it: to make one, or to be away */
    int64_t (*now_ns)(void);   /* NULL: the system's clock */
    ls_device *const *devices; /* element k goes to devices[k % n]; NULL: stays */
    size_t ndevices;
} lsi_feed_options;

ls_status lsi_feed_open(const lsi_feed_options *opts, lsi_feed **out, ls_error *err);
void lsi_feed_close(lsi_feed *f); /* waits for the element being made; NULL is allowed */

/* The next element; LS_OUT_OF_RANGE: the end, and again after it. */
ls_status lsi_feed_take(lsi_feed *f, ls_value **out, ls_error *err);

/* The position after the last element that was taken. */
ls_status lsi_feed_save(lsi_feed *f, lsi_state_writer *w, ls_error *err);
ls_status lsi_feed_restore(lsi_feed *f, lsi_state_reader *r, ls_error *err);

/* ---- distributed datasets (distribute.c) ---- */

struct ls_dist_dataset {
    atomic_int refs;
    ls_strategy *strategy; /* retained */
    ls_comm *comm;         /* borrowed; NULL: nobody to keep step with */
    lsi_comm_site place;   /* where the program distributes it */
    int workers, worker;
    int local; /* R: replicas fed here */
    int total; /* N */

    ls_dataset **pipelines; /* one, or one a replica */
    int npipelines;
    bool prefetched;      /* the last node is the prefetch that distributing added */
    ls_dataset *original; /* what was distributed, if only elements can tell its spec */
    ls_input_callable callable;
    void *user;

    int buffer;       /* elements read ahead a replica */
    int64_t cheap_ns; /* unless they cost less */
    bool on_host;
    bool partial; /* replicas without data get empty batches */
    bool wrapped; /* values are PerReplica */
    int64_t cardinality;
    ls_spec *spec;       /* of one replica's value; NULL: a callable's, unknown */
    ls_spec *empty_spec; /* of empty batches: the spec with the rows it knows */
    int64_t too_few; /* files that are not enough: told when it is iterated; 0: fine */
    int64_t wanting; /* shards that need one each */
};

/* Where this input stands, checked; the rest of *out is empty. */
ls_status lsi_dist_create(const char *what, ls_strategy *s,
                          const ls_distribute_options *opts, ls_dist_dataset **out,
                          ls_error *err);

/* Sets spec, cardinality and what follows from them, given the user's dataset. */
ls_status lsi_dist_describe(ls_dist_dataset *dd, const ls_dataset *original,
                            const ls_spec *spec, ls_error *err);

/*
 * Tells the other workers how far this one got (`st`, `err`), and learns the same of
 * them: a failure of one is a failure of all. LS_OK without others. `shared`: the random
 * operators of all workers draw alike.
 */
ls_status lsi_dist_agree(ls_dist_dataset *dd, ls_status st, bool shared, ls_error *err);

/* ---- distributed iterators (dist_iterator.c) ---- */

struct ls_dist_iterator {
    ls_dist_dataset *dataset; /* retained */
    lsi_feed **feeds;         /* one a pipeline; NULL: not initialized yet */
    bool uninitialized;       /* compat.v1: waits for ls_dist_iterator_initialize() */
    ls_value **parts;         /* of the step being put together, one a replica */
    int have;                 /* parts that are decided; NULL among them: no data */
    ls_value **empty;         /* stand-ins, made when needed */
    ls_spec *seen;            /* of an element, if the dataset's spec is not known */
    int64_t *facts;           /* of all workers, of one step */
    int64_t steps;            /* given */
    bool over;                /* the end was reached */
    lsi_comm_site place;      /* where the program asks for a step */
};

ls_status lsi_dist_iterator_create(ls_dist_dataset *dd, bool uninitialized,
                                   ls_dist_iterator **out, ls_error *err);
ls_status lsi_dist_iterator_ready(const ls_dist_iterator *it, const char *what,
                                  ls_error *err);
void lsi_dist_iterator_drop(ls_dist_iterator *it); /* the parts of the present step */
#endif
