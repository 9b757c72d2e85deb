/* Descriptors and primitives of oneDNN, for its versions 2 and 3. */
#include "kernel/dnnl/api.h"

#include <string.h>

bool api_attr(dnnl_primitive_attr_t *attr, bool relu)
{
    dnnl_post_ops_t ops = NULL;
    bool ok = dnnl_primitive_attr_create(attr) == dnnl_success &&
              dnnl_primitive_attr_set_scratchpad_mode(*attr, dnnl_scratchpad_mode_user) ==
                  dnnl_success;

    if (ok && relu) {
        ok = dnnl_post_ops_create(&ops) == dnnl_success &&
#if DNNL_VERSION_MAJOR >= 3
             dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_relu, 0, 0) == dnnl_success &&
#else
             dnnl_post_ops_append_eltwise(ops, 1, dnnl_eltwise_relu, 0, 0) ==
                 dnnl_success &&
#endif
             dnnl_primitive_attr_set_post_ops(*attr, ops) == dnnl_success;
        (void)dnnl_post_ops_destroy(ops);
    }
    return ok;
}

#if DNNL_VERSION_MAJOR >= 3

bool api_desc(mdesc *d, int ndims, const dnnl_dim_t *dims, const dnnl_dim_t *strides)
{
    return (strides != NULL
                ? dnnl_memory_desc_create_with_strides(d, ndims, dims, dnnl_f32, strides)
                : dnnl_memory_desc_create_with_tag(d, ndims, dims, dnnl_f32,
                                                   dnnl_format_tag_any)) == dnnl_success;
}

void api_desc_free(mdesc *d)
{
    if (*d != NULL) {
        (void)dnnl_memory_desc_destroy(*d);
        *d = NULL;
    }
}

size_t api_desc_bytes(const mdesc *d)
{
    return dnnl_memory_desc_get_size(*d);
}

bool api_desc_equal(const mdesc *a, const mdesc *b)
{
    return dnnl_memory_desc_equal(*a, *b) != 0;
}

bool api_query(const_dnnl_primitive_desc_t pd, dnnl_query_t what, mdesc *out)
{
    return dnnl_memory_desc_clone(out, dnnl_primitive_desc_query_md(pd, what, 0)) ==
           dnnl_success;
}

bool api_memory(dnnl_memory_t *m, const mdesc *d, dnnl_engine_t e, void *data)
{
    return dnnl_memory_create(m, *d, e, data) == dnnl_success;
}

bool api_matmul(dnnl_primitive_desc_t *pd, dnnl_engine_t e, const mdesc *a,
                const mdesc *b, const mdesc *bias, const mdesc *c,
                dnnl_primitive_attr_t attr)
{
    return dnnl_matmul_primitive_desc_create(pd, e, *a, *b, bias != NULL ? *bias : NULL,
                                             *c, attr) == dnnl_success;
}

static bool describe_forward(dnnl_primitive_desc_t *pd, dnnl_engine_t e,
                             const api_conv *c, dnnl_primitive_attr_t attr)
{
    return dnnl_convolution_forward_primitive_desc_create(
               pd, e, dnnl_forward_training, dnnl_convolution_direct, *c->x, *c->w,
               c->bias != NULL ? *c->bias : NULL, *c->y, c->stride, c->dilation,
               c->before, c->after, attr) == dnnl_success;
}

bool api_convolution(dnnl_primitive_desc_t *pd, dnnl_engine_t e, api_conv_kind kind,
                     const api_conv *c, dnnl_primitive_attr_t attr)
{
    dnnl_primitive_desc_t hint = NULL;
    bool ok;

    if (kind == API_FORWARD) {
        return describe_forward(pd, e, c, attr);
    }
    ok = describe_forward(&hint, e, c, NULL);
    if (ok && kind == API_DATA) {
        ok = dnnl_convolution_backward_data_primitive_desc_create(
                 pd, e, dnnl_convolution_direct, *c->x, *c->w, *c->y, c->stride,
                 c->dilation, c->before, c->after, hint, attr) == dnnl_success;
    } else if (ok) {
        ok = dnnl_convolution_backward_weights_primitive_desc_create(
                 pd, e, dnnl_convolution_direct, *c->x, *c->w, NULL, *c->y, c->stride,
                 c->dilation, c->before, c->after, hint, attr) == dnnl_success;
    }
    (void)dnnl_primitive_desc_destroy(hint);
    return ok;
}

bool api_reorder(dnnl_primitive_t *p, dnnl_engine_t e, const mdesc *from, const mdesc *to)
{
    dnnl_primitive_desc_t pd = NULL;
    const bool ok =
        dnnl_reorder_primitive_desc_create(&pd, *from, e, *to, e, NULL) == dnnl_success &&
        dnnl_primitive_create(p, pd) == dnnl_success;

    (void)dnnl_primitive_desc_destroy(pd);
    return ok;
}

#else

bool api_desc(mdesc *d, int ndims, const dnnl_dim_t *dims, const dnnl_dim_t *strides)
{
    return (strides != NULL
                ? dnnl_memory_desc_init_by_strides(d, ndims, dims, dnnl_f32, strides)
                : dnnl_memory_desc_init_by_tag(d, ndims, dims, dnnl_f32,
                                               dnnl_format_tag_any)) == dnnl_success;
}

void api_desc_free(mdesc *d)
{
    (void)d;
}

size_t api_desc_bytes(const mdesc *d)
{
    return dnnl_memory_desc_get_size(d);
}

bool api_desc_equal(const mdesc *a, const mdesc *b)
{
    return dnnl_memory_desc_equal(a, b) != 0;
}

bool api_query(const_dnnl_primitive_desc_t pd, dnnl_query_t what, mdesc *out)
{
    const dnnl_memory_desc_t *d = dnnl_primitive_desc_query_md(pd, what, 0);

    if (d != NULL) {
        *out = *d;
    }
    return d != NULL;
}

bool api_memory(dnnl_memory_t *m, const mdesc *d, dnnl_engine_t e, void *data)
{
    return dnnl_memory_create(m, d, e, data) == dnnl_success;
}

bool api_matmul(dnnl_primitive_desc_t *pd, dnnl_engine_t e, const mdesc *a,
                const mdesc *b, const mdesc *bias, const mdesc *c,
                dnnl_primitive_attr_t attr)
{
    dnnl_matmul_desc_t d;

    return dnnl_matmul_desc_init(&d, a, b, bias, c) == dnnl_success &&
           dnnl_primitive_desc_create(pd, &d, attr, e, NULL) == dnnl_success;
}

static bool describe_forward(dnnl_primitive_desc_t *pd, dnnl_engine_t e,
                             const api_conv *c, dnnl_primitive_attr_t attr)
{
    dnnl_convolution_desc_t d;

    return dnnl_dilated_convolution_forward_desc_init(
               &d, dnnl_forward_training, dnnl_convolution_direct, c->x, c->w, c->bias,
               c->y, c->stride, c->dilation, c->before, c->after) == dnnl_success &&
           dnnl_primitive_desc_create(pd, &d, attr, e, NULL) == dnnl_success;
}

bool api_convolution(dnnl_primitive_desc_t *pd, dnnl_engine_t e, api_conv_kind kind,
                     const api_conv *c, dnnl_primitive_attr_t attr)
{
    dnnl_primitive_desc_t hint = NULL;
    dnnl_convolution_desc_t d;
    bool ok;

    if (kind == API_FORWARD) {
        return describe_forward(pd, e, c, attr);
    }
    ok = describe_forward(&hint, e, c, NULL);
    if (ok && kind == API_DATA) {
        ok = dnnl_dilated_convolution_backward_data_desc_init(
                 &d, dnnl_convolution_direct, c->x, c->w, c->y, c->stride, c->dilation,
                 c->before, c->after) == dnnl_success;
    } else if (ok) {
        ok = dnnl_dilated_convolution_backward_weights_desc_init(
                 &d, dnnl_convolution_direct, c->x, c->w, NULL, c->y, c->stride,
                 c->dilation, c->before, c->after) == dnnl_success;
    }
    ok = ok && dnnl_primitive_desc_create(pd, &d, attr, e, hint) == dnnl_success;
    (void)dnnl_primitive_desc_destroy(hint);
    return ok;
}

bool api_reorder(dnnl_primitive_t *p, dnnl_engine_t e, const mdesc *from, const mdesc *to)
{
    dnnl_primitive_desc_t pd = NULL;
    const bool ok =
        dnnl_reorder_primitive_desc_create(&pd, from, e, to, e, NULL) == dnnl_success &&
        dnnl_primitive_create(p, pd) == dnnl_success;

    (void)dnnl_primitive_desc_destroy(pd);
    return ok;
}

#endif
