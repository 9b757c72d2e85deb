/* The struct of a value, and functions to make one like another. */
#ifndef LSI_VALUE_H
#define LSI_VALUE_H
#include "base/base.h"
#include "lockstep/value.h"
#include "tensor/tensor.h"

/* Names of items, in one block: insertion order, and the order of sorted names. */
typedef struct lsi_keys {
    const char *type;  /* a named tuple's; NULL: a dict's */
    const char **name; /* name[i] belongs to child i */
    size_t *sorted;    /* name[sorted[0]] < name[sorted[1]] < ... */
} lsi_keys;

struct ls_context;

/* The functions of a leaf that is an object of a higher layer (a variable). */
typedef struct lsi_object_ops {
    void *(*retain)(void *object);
    void (*release)(void *object);
    void *(*container)(void *object); /* what it is a component of; itself: nothing */
    size_t (*text)(void *object, char *buf, size_t size);
    /* The object read in a step; NULL: it cannot be. */
    ls_tensor *(*tensor)(void *object, struct ls_context *c);
} lsi_object_ops;

typedef struct lsi_object {
    void *self;
    const lsi_object_ops *ops;
} lsi_object;

struct ls_value {
    atomic_int refs;
    ls_value_kind kind;
    int depth; /* 0: a leaf without components */
    union {
        ls_tensor *tensor;
        int64_t integer;
        double number;
        bool truth;
        ls_string string; /* its bytes lie behind the struct */
        lsi_object object;
    } leaf;
    lsi_keys *keys; /* of dicts and named tuples */
    size_t size;
    ls_value *child[];
};

static inline bool lsi_value_is_distributed(const ls_value *v)
{
    return v->kind == LS_VALUE_PER_REPLICA || v->kind == LS_VALUE_MIRRORED;
}

static inline bool lsi_value_is_object(const ls_value *v)
{
    return v->kind == LS_VALUE_VARIABLE || v->kind == LS_VALUE_DATASET;
}

/* A leaf over an object, which is retained. */
ls_status lsi_value_object(ls_value_kind kind, void *self, const lsi_object_ops *ops,
                           ls_value **out, ls_error *err);

/* The index of the i-th child in TensorFlow's order: sorted for dicts. */
static inline size_t lsi_value_turn(const ls_value *v, size_t i)
{
    return v->kind == LS_VALUE_DICT ? v->keys->sorted[i] : i;
}

/* A value of `kind` over `n` children, which are checked and retained. */
ls_status lsi_value_over(ls_value_kind kind, ls_value *const *children, size_t n,
                         ls_value **out, ls_error *err);

/* A structure of the kind, names and size of `like` over other children. */
ls_status lsi_value_like(const ls_value *like, ls_value *const *children, ls_value **out,
                         ls_error *err);

/*
 * `v` with its tensors on `device` (lsi_tensor_placed()), the caller's to release: itself if
 * they are, or if `device` is NULL. Sparse tensors and other leaves stay as they are.
 */
ls_status lsi_value_place(ls_value *v, ls_device *device, ls_value **out, ls_error *err);

/* Releases `n` values, some of which may be NULL, and the array that held them. */
void lsi_value_release_all(ls_value **values, size_t n);

/* Position of `name` among the children, or -1. */
ptrdiff_t lsi_value_index(const ls_value *v, const char *name);
#endif
