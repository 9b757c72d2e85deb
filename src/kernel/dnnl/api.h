/*
 * oneDNN's C API as the kernels use it. Version 2 (Debian 12) describes an
 * operation first and makes a primitive of the description; version 3 does both at once.
 */
#ifndef LSI_DNNL_API_H
#define LSI_DNNL_API_H
#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>
#include <stddef.h>

/* A handle in version 3, a struct by value in version 2. */
typedef dnnl_memory_desc_t mdesc;

/* float32; strides NULL: oneDNN chooses the layout. */
bool api_desc(mdesc *d, int ndims, const dnnl_dim_t *dims, const dnnl_dim_t *strides);
void api_desc_free(mdesc *d);
size_t api_desc_bytes(const mdesc *d);
bool api_desc_equal(const mdesc *a, const mdesc *b);

/* The layout that a primitive chose for an argument: dnnl_query_weights_md etc. */
bool api_query(const_dnnl_primitive_desc_t pd, dnnl_query_t what, mdesc *out);

bool api_memory(dnnl_memory_t *m, const mdesc *d, dnnl_engine_t e, void *data);

/* User-owned scratch memory, and max(x, 0) after the operation if `relu`. */
bool api_attr(dnnl_primitive_attr_t *attr, bool relu);

bool api_matmul(dnnl_primitive_desc_t *pd, dnnl_engine_t e, const mdesc *a,
                const mdesc *b, const mdesc *bias, const mdesc *c,
                dnnl_primitive_attr_t attr);

typedef struct api_conv {
    const mdesc *x, *w, *bias, *y;               /* bias NULL: none */
    dnnl_dims_t stride, dilation, before, after; /* dilation 0: dense */
} api_conv;

typedef enum api_conv_kind { API_FORWARD, API_DATA, API_WEIGHTS } api_conv_kind;

bool api_convolution(dnnl_primitive_desc_t *pd, dnnl_engine_t e, api_conv_kind kind,
                     const api_conv *c, dnnl_primitive_attr_t attr);
bool api_reorder(dnnl_primitive_t *p, dnnl_engine_t e, const mdesc *from,
                 const mdesc *to);
#endif
