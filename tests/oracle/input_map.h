/* The functions of `map`, which input_map.c lists by name. */
#ifndef INPUT_MAP_H
#define INPUT_MAP_H
#include "input_machine.h"

/* The i-th argument of a function, counted from 1; 0: it is no integer. */
int64_t input_map_integer(const input_function *f, size_t i);

/* The only element of an integer tensor (input_compute.c). */
int64_t input_map_item(const ls_tensor *t);
ls_value *input_map_truth(ls_context *c, bool x);

/* Applied to every component: the function's name selects the operation. */
ls_value *input_map_each(ls_context *c, ls_value *element, void *user);
ls_value *input_map_identity(ls_context *c, ls_value *element, void *user);
ls_value *input_map_pair(ls_context *c, ls_value *element, void *user);
ls_value *input_map_dict(ls_context *c, ls_value *element, void *user);
ls_value *input_map_expand(ls_context *c, ls_value *element, void *user);
ls_value *input_map_fill(ls_context *c, ls_value *element, void *user);
ls_value *input_map_fail_on(ls_context *c, ls_value *element, void *user);
ls_value *input_map_first(ls_context *c, ls_value *element, void *user);
ls_value *input_map_sum(ls_context *c, ls_value *element, void *user);

/* Of Examples (input_parse.c). */
ls_value *input_map_parse(ls_context *c, ls_value *element, void *user);
ls_value *input_map_parse_single(ls_context *c, ls_value *element, void *user);
ls_status input_parse_spec(const input_function *f, const ls_spec *in, ls_spec **out,
                           ls_error *err);
ls_status input_parse_single_spec(const input_function *f, const ls_spec *in,
                                  ls_spec **out, ls_error *err);

/* A dataset for an element (input_functions.c). */
ls_value *input_map_dataset(ls_context *c, ls_value *element, void *user);
ls_status input_dataset_spec(const input_function *f, const ls_spec *in, ls_spec **out,
                             ls_error *err);
#endif
