/*
 * A strategy: the struct that all kinds share. A kind (src/strategy) is a table of type
 * lsi_strategy_ops.
 */
#ifndef LSI_STRATEGY_H
#define LSI_STRATEGY_H
#include "collective/collective.h"
#include "device/device.h"

#include "lockstep/strategy.h"

/* A kind of strategy: traits that other layers read, and the kind's own functions. */
typedef struct lsi_strategy_ops {
    const char *name;          /* "MirroredStrategy" */
    ls_strategy_traits traits; /* reported to programs; struct_size is not used */

    /* The strategy used where no other is current: one replica, no devices of its own. */
    bool is_default;

    /*
     * Values belong to replicas: they are wrapped, combined and distributed per replica,
     * also if there is one replica only. Else there is one value, used as it is.
     */
    bool per_replica;

    /* Every device has a copy of a variable, and an input of its own if asked for. */
    bool copies_variables;

    /* Variables live on the strategy's parameter device alone. */
    bool one_parameter_device;

    /* Values are combined on one device, in the order of replicas, unless the strategy
     * was given other cross-device operations. */
    bool combines_on_one_device;

    /*
     * Optional: creates a variable in the way of this strategy. The name already includes
     * the name scopes. NULL: a variable with one copy, on the strategy's first device.
     */
    ls_status (*create_variable)(ls_strategy *s, const ls_tensor *value,
                                 const ls_variable_options *opts, ls_variable **out,
                                 ls_error *err);
} lsi_strategy_ops;

struct lsi_crew;

struct ls_strategy {
    atomic_int refs;
    const lsi_strategy_ops *ops;
    ls_runtime *runtime;         /* retained; NULL: the default strategy */
    int replicas;                /* in the sync group */
    int local;                   /* in this process: the local peers */
    int first;                   /* the id in the sync group of local replica 0 */
    ls_comm *workers;            /* retained; NULL: this process is the only worker */
    ls_device *const *devices;   /* one per local replica */
    ls_device *parameter_device; /* central storage: the device of variables */
    ls_communication_options communication;
    ls_cross_device *cross_device; /* NULL: each call chooses */
    bool sequential;
    int spin_us;
    struct lsi_crew *crew; /* NULL: one replica, which needs no threads */
};

/*
 * A strategy with one replica per device; it owns `devices` then, also on failure.
 * `workers` has one rank per worker, each with as many devices, and is retained; NULL:
 * there is one worker.
 */
ls_status lsi_strategy_create(const lsi_strategy_ops *ops, ls_device **devices, int n,
                              ls_comm *workers, const ls_strategy_options *opts,
                              ls_strategy **out, ls_error *err);

/* Checks the arguments of a constructor; the options may be NULL. */
ls_status lsi_strategy_check(const char *what, const ls_strategy_options *opts,
                             ls_strategy **out, ls_error *err);

/* A full copy of the caller's options, which may be NULL or an older, shorter struct. */
ls_communication_options lsi_communication_of(const ls_communication_options *opts);

/*
 * How a call of a communicator runs: the options of the strategy, replaced by those that
 * `call` (NULL: none) sets.
 */
ls_comm_options lsi_call_options(const ls_strategy *s,
                                 const ls_communication_options *call);

/* ---- cross-device operations as handles (cross_device.c) ---- */

typedef enum lsi_cross_kind {
    LSI_CROSS_TREE, /* the binary tree over replicas: the automatic choice */
    LSI_CROSS_ONE_DEVICE,
    LSI_CROSS_HIERARCHICAL,
    LSI_CROSS_NCCL
} lsi_cross_kind;

struct ls_cross_device {
    atomic_int refs;
    lsi_cross_kind kind;
    int num_packs;
    ls_device *device;   /* of a reduction to one device; NULL: the destination's first */
    ls_runtime *runtime; /* retained: the runtime of `device` */
};
#endif
