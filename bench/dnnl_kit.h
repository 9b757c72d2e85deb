/*
 * oneDNN called directly, without the library: the limit that `lockstep bench` compares
 * with. The C API of 2.x and of 3.x differ in how a primitive is described; this file is
 * where they are made one. A call that fails ends the program with oneDNN's number.
 */
#ifndef BENCH_DNNL_KIT_H
#define BENCH_DNNL_KIT_H

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t kit_desc;
#else
typedef const dnnl_memory_desc_t *kit_desc;
#endif

enum { KIT_MAX_ARGS = 6 };

/* One primitive with its arguments, ready to be run any number of times. */
typedef struct kit_call {
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[KIT_MAX_ARGS];
    int nargs;
} kit_call;

void kit_open(void);
void kit_check(dnnl_status_t status, const char *what);

/* Descriptions live as long as the program. */
kit_desc kit_plain(int ndims, const int64_t *dims, dnnl_format_tag_t tag);
kit_desc kit_of(dnnl_memory_t memory);
bool kit_same(kit_desc a, kit_desc b);

/* Memory of the size of `desc`, filled with small random numbers. */
dnnl_memory_t kit_memory(kit_desc desc);
dnnl_memory_t kit_view(kit_desc desc, void *data);
void *kit_data(dnnl_memory_t memory);

/* The description that primitive `pd` expects for `what` (dnnl_query_src_md ...). */
kit_desc kit_wants(const_dnnl_primitive_desc_t pd, dnnl_query_t what);

dnnl_primitive_desc_t kit_matmul(kit_desc a, kit_desc b, kit_desc bias, kit_desc c,
                                 bool relu);
dnnl_primitive_desc_t kit_conv_forward(kit_desc x, kit_desc w, kit_desc bias, kit_desc y,
                                       bool relu);
dnnl_primitive_desc_t kit_conv_data(kit_desc dx, kit_desc w, kit_desc dy,
                                    const_dnnl_primitive_desc_t forward);
dnnl_primitive_desc_t kit_conv_weights(kit_desc x, kit_desc dw, kit_desc db, kit_desc dy,
                                       const_dnnl_primitive_desc_t forward);
dnnl_primitive_desc_t kit_relu_backward(kit_desc y);
dnnl_primitive_desc_t kit_reorder(kit_desc from, kit_desc to);

/* Makes the primitive; `pd` stays the caller's. */
kit_call kit_call_of(dnnl_primitive_desc_t pd);
void kit_arg(kit_call *call, int what, dnnl_memory_t memory);
void kit_run(const kit_call *call);
#endif
