/*
 * What a variable is made of. A plain one holds elements; a distributed one holds plain
 * ones, its components, and the rules by which they are read and written together.
 */
#ifndef LSI_VARIABLE_H
#define LSI_VARIABLE_H
#include "grad/grad.h"
#include "replica/replica.h"

#include "lockstep/variable.h"

typedef enum lsi_variable_kind {
    LSI_PLAIN,
    LSI_MIRRORED_VARIABLE, /* one component a device, kept equal by its writes */
    LSI_SYNC_ON_READ,      /* one component a device, each written by its replica alone */
    LSI_AGGREGATING        /* one component for all replicas: central storage */
} lsi_variable_kind;

struct ls_variable {
    atomic_int refs;
    lsi_variable_kind kind;
    char *name;
    ls_dtype dtype;
    ls_shape shape;
    int64_t count;
    bool trainable;
    bool strict;
    ls_synchronization synchronization;
    ls_aggregation aggregation;
    ls_strategy *strategy; /* retained; NULL: the default one */
    ls_device *device;
    ls_runtime *runtime; /* retained: the memory belongs to its device */
    lsi_buffer
        *buffer; /* a plain one's; shared with the tensors that were read from it */

    ls_variable **component; /* a distributed one's */
    int components;
    ls_variable *container; /* a component's, borrowed; NULL: it is none */
    lsi_mutex lock;         /* aggregating: replicas write it in turn */
};

/*
 * A variable with a copy of `value`, whatever scope is open. `name` and `device` win.
 * `shared` (NULL: none) holds these elements already: it is retained in place of a copy,
 * and the first write of whoever shares it takes new memory.
 */
ls_status lsi_variable_plain(const ls_tensor *value, const ls_variable_options *opts,
                             const char *name, ls_device *device, lsi_buffer *shared,
                             ls_variable **out, ls_error *err);

/*
 * One component on each of `n` devices, the first from `value`, the others from it. The
 * checks of a mirrored strategy have passed.
 */
ls_status lsi_variable_distributed(lsi_variable_kind kind, ls_strategy *s,
                                   ls_device *const *devices, int n,
                                   const ls_tensor *value,
                                   const ls_variable_options *opts, ls_variable **out,
                                   ls_error *err);

/*
 * Makes one copy of a variable: through the creators outside of the strategy's scope, and
 * at their end by `make`, with what they passed on.
 */
typedef ls_status (*lsi_copy_maker)(void *arg, const ls_tensor *value,
                                    const ls_variable_options *opts, ls_variable **out,
                                    ls_error *err);
ls_status lsi_creator_copy(const ls_tensor *value, const ls_variable_options *opts,
                           lsi_copy_maker make, void *arg, ls_variable **out,
                           ls_error *err);

/* A variable with one copy: what a strategy without a create_variable() creates. */
ls_status lsi_create_plain(ls_strategy *s, const ls_tensor *value,
                           const ls_variable_options *opts, ls_variable **out,
                           ls_error *err);
/*
 * The same as lsi_variable_distributed(), to be called by all replicas if it is called
 * inside of a replica: replica 0 creates the variable, all get that one.
 */
ls_status lsi_variable_create_on(lsi_variable_kind kind, ls_strategy *s,
                                 ls_device *const *devices, int n, const ls_tensor *value,
                                 const ls_variable_options *opts, ls_variable **out,
                                 ls_error *err);

/* LS_OK, or that the options' aggregation is none. */
ls_status lsi_check_aggregation(const ls_variable_options *opts, ls_error *err);

/* The variable of the innermost colocation; NULL: none. */
ls_variable *lsi_variable_colocated(void);

/* A variable as an object that lower layers retain and release. */
extern const lsi_object_ops lsi_variable_object;

/*
 * The component that the calling thread's replica, or its update function, works on;
 * NULL: it is in no such place, and *err stays LS_OK, or another strategy is current and
 * *err says so. A plain variable is its own.
 */
ls_variable *lsi_variable_here(ls_variable *v, const char *what, ls_error *err);

/* The present value of a plain variable as a tensor of the step, watched by nobody. */
ls_tensor *lsi_variable_peek(ls_context *c, ls_variable *v);

/* The value outside of replicas: of one copy, or the aggregate. */
ls_tensor *lsi_variable_aggregate(ls_context *c, ls_variable *v);

/* True if `t` has the variable's dtype and shape; else the context has failed. */
bool lsi_variable_takes(ls_context *c, const ls_variable *v, ls_assign_op op,
                        const ls_tensor *t);

/* Writes `t` into a plain variable; returns its new value. */
ls_tensor *lsi_variable_put(ls_context *c, ls_variable *v, ls_assign_op op, ls_tensor *t);

/* ---- what replicas show each other (offer.c) ---- */

/*
 * Zeroed memory that the other replicas may look at until the run ends, and a tensor of
 * anybody's that lives as long; NULL, false: the context has failed.
 */
void *lsi_show_room(ls_context *c, size_t bytes);
bool lsi_show_tensor(ls_context *c, ls_tensor *t);

/* all[r] is what replica r shows. */
enum { LSI_FEW_OFFERS = 64 };
typedef struct lsi_offers {
    void *few[LSI_FEW_OFFERS];
    void **all;
    int n;
} lsi_offers;

/* Shows `mine` and sees everybody's; false: the context has failed. */
bool lsi_offers_meet(ls_context *c, const char *what, uint64_t detail, void *mine,
                     lsi_offers *o);

/*
 * A literal as a scalar of the variable's dtype; NULL: it is none, and the step has
 * failed with TensorFlow's TypeError, or ValueError for an integer that the dtype cannot
 * hold.
 */
ls_tensor *lsi_literal_like(ls_context *c, const ls_variable *v, const char *what,
                            const ls_value *literal);

static inline bool lsi_value_is_literal(const ls_value *v)
{
    return v != NULL && (v->kind == LS_VALUE_INT || v->kind == LS_VALUE_FLOAT ||
                         v->kind == LS_VALUE_BOOL || v->kind == LS_VALUE_STRING);
}

/*
 * Opens a plain variable for writing: `from` holds the present elements, `to` receives
 * the new ones, all of them. They are the same memory if nobody else refers to it. LS_OK
 * must be followed by lsi_variable_commit().
 */
typedef struct lsi_write {
    const void *from;
    void *to;
    lsi_buffer *fresh; /* NULL: in place */
} lsi_write;
ls_status lsi_variable_write(ls_variable *v, lsi_write *w, ls_error *err);
void lsi_variable_commit(ls_variable *v, const lsi_write *w);
#endif
