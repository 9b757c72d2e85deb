/*
 * Specs inside the library: what is known about the elements of a dataset, and the rules
 * by which operators make the spec of their elements from that of their input's.
 */
#ifndef LSI_SPEC_H
#define LSI_SPEC_H
#include "value/value.h"

#include "lockstep/dataset.h"

struct ls_spec {
    atomic_int refs;
    ls_spec_kind kind;
    ls_dtype dtype;
    int ndim;  /* -1: unknown */
    int depth; /* 1: a leaf */
    int64_t dims[LS_MAX_DIMS];
    size_t size;
    char **keys; /* of a dict, sorted */
    ls_spec *child[];
};

/* ---- spec.c ---- */

/* The spec of elements about which nothing is known: a leaf of dtype 0, unknown rank. */
ls_status lsi_spec_unknown(ls_spec **out, ls_error *err);
bool lsi_spec_is_unknown(const ls_spec *s);

/* ---- rules (spec_rules.c) ---- */

/* The spec that a value has. */
ls_status lsi_spec_of(const ls_value *v, ls_spec **out, ls_error *err);

/* Every leaf with a new axis 0 of size n (-1: unknown), and every leaf without its axis
 * 0, where a scalar leaf fails with LS_INVALID_ARGUMENT. */
ls_status lsi_spec_batch(const ls_spec *s, int64_t n, ls_spec **out, ls_error *err);
ls_status lsi_spec_unbatch(const ls_spec *s, ls_spec **out, ls_error *err);

/* Every leaf's axis 0 has the size n. */
ls_status lsi_spec_with_rows(const ls_spec *s, int64_t n, ls_spec **out, ls_error *err);

/* Every leaf's axis 0 divided by n: unknown if it was, or if n does not divide it. */
ls_status lsi_spec_divide_rows(const ls_spec *s, int64_t n, ls_spec **out, ls_error *err);

/* The most precise spec that elements of both have; LS_INVALID_ARGUMENT if structures or
 * dtypes differ. */
ls_status lsi_spec_common(const ls_spec *a, const ls_spec *b, ls_spec **out,
                          ls_error *err);

/* Makes another spec of a leaf, the caller's to release. */
typedef ls_status (*lsi_spec_rule)(const ls_spec *leaf, void *user, ls_spec **out,
                                   ls_error *err);

/* The structure of `s` with rule(leaf) in the place of each leaf, in order. */
ls_status lsi_spec_map(const ls_spec *s, lsi_spec_rule rule, void *user, ls_spec **out,
                       ls_error *err);

/* LS_OK if the value is an element of the spec; the message of the failure names both. */
ls_status lsi_spec_check(const ls_spec *s, const ls_value *v, ls_error *err);

/* ---- leaves, in order (spec_rules.c) ---- */

/* How many there are, and the i-th, borrowed. */
size_t lsi_spec_leaves(const ls_spec *s);
const ls_spec *lsi_spec_leaf(const ls_spec *s, size_t i);

/* The size of axis 0 if it is known and the same for every leaf; -1 if not. */
int64_t lsi_spec_rows(const ls_spec *s);

/* A value's leaves along a spec, borrowed: `leaves` has room for lsi_spec_leaves(). */
ls_status lsi_spec_flatten(const ls_spec *s, const ls_value *v, const ls_value **leaves,
                           ls_error *err);

/* A value of the spec's structure over these leaves, which are borrowed. */
ls_status lsi_spec_pack(const ls_spec *s, ls_value *const *leaves, ls_value **out,
                        ls_error *err);

/* A batch of no rows: unknown sizes become 0, an unknown rank one axis.
 * (dataset_element.c) */
ls_status lsi_spec_no_rows(const ls_spec *batch, ls_device *device, ls_value **out,
                           ls_error *err);
#endif
