/* Making and running oneDNN primitives, for its C APIs of 2.x and of 3.x. */
#include "bench/dnnl_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static dnnl_engine_t engine;
static dnnl_stream_t stream;
static const dnnl_dims_t ones = {1, 1}, zeros = {0, 0};

void kit_check(dnnl_status_t status, const char *what)
{
    if (status != dnnl_success) {
        fprintf(stderr, "oneDNN: %s: status %d\n", what, (int)status);
        exit(1); // NOLINT(concurrency-mt-unsafe): no other thread runs an atexit function
    }
}
#define TRY(call) kit_check((call), #call)

void kit_open(void)
{
    TRY(dnnl_engine_create(&engine, dnnl_cpu, 0));
    TRY(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
}

kit_desc kit_plain(int ndims, const int64_t *dims, dnnl_format_tag_t tag)
{
#if DNNL_VERSION_MAJOR >= 3
    dnnl_memory_desc_t md;

    TRY(dnnl_memory_desc_create_with_tag(&md, ndims, dims, dnnl_f32, tag));
    return md;
#else
    dnnl_memory_desc_t *md = calloc(1, sizeof *md);

    kit_check(md == NULL ? dnnl_out_of_memory : dnnl_success, "memory of a description");
    TRY(dnnl_memory_desc_init_by_tag(md, ndims, dims, dnnl_f32, tag));
    return md;
#endif
}

kit_desc kit_of(dnnl_memory_t memory)
{
    kit_desc md;

    TRY(dnnl_memory_get_memory_desc(memory, &md));
    return md;
}

bool kit_same(kit_desc a, kit_desc b)
{
    return dnnl_memory_desc_equal(a, b) != 0;
}

dnnl_memory_t kit_memory(kit_desc desc)
{
    const size_t n = dnnl_memory_desc_get_size(desc) / sizeof(float);
    uint32_t state = 2463534242U;
    dnnl_memory_t memory;
    float *p;

    TRY(dnnl_memory_create(&memory, desc, engine, DNNL_MEMORY_ALLOCATE));
    p = kit_data(memory);
    for (size_t i = 0; i < n; i++) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        p[i] = ((float)(state >> 8) / 16777216.0F - 0.5F) * 0.1F;
    }
    return memory;
}

dnnl_memory_t kit_view(kit_desc desc, void *data)
{
    dnnl_memory_t memory;

    TRY(dnnl_memory_create(&memory, desc, engine, data));
    return memory;
}

void *kit_data(dnnl_memory_t memory)
{
    void *p = NULL;

    TRY(dnnl_memory_get_data_handle(memory, &p));
    return p;
}

kit_desc kit_wants(const_dnnl_primitive_desc_t pd, dnnl_query_t what)
{
    return dnnl_primitive_desc_query_md(pd, what, 0);
}

/* relu after the primitive, in the same pass; NULL if not wanted. */
static dnnl_primitive_attr_t relu_attr(bool relu)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t ops;

    if (!relu) {
        return NULL;
    }
    TRY(dnnl_primitive_attr_create(&attr));
    TRY(dnnl_post_ops_create(&ops));
#if DNNL_VERSION_MAJOR >= 3
    TRY(dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_relu, 0, 0));
#else
    TRY(dnnl_post_ops_append_eltwise(ops, 1, dnnl_eltwise_relu, 0, 0));
#endif
    TRY(dnnl_primitive_attr_set_post_ops(attr, ops));
    TRY(dnnl_post_ops_destroy(ops));
    return attr;
}

dnnl_primitive_desc_t kit_matmul(kit_desc a, kit_desc b, kit_desc bias, kit_desc c,
                                 bool relu)
{
    dnnl_primitive_attr_t attr = relu_attr(relu);
    dnnl_primitive_desc_t pd;

#if DNNL_VERSION_MAJOR >= 3
    TRY(dnnl_matmul_primitive_desc_create(&pd, engine, a, b, bias, c, attr));
#else
    dnnl_matmul_desc_t d;

    TRY(dnnl_matmul_desc_init(&d, a, b, bias, c));
    TRY(dnnl_primitive_desc_create(&pd, &d, attr, engine, NULL));
#endif
    return pd;
}

dnnl_primitive_desc_t kit_conv_forward(kit_desc x, kit_desc w, kit_desc bias, kit_desc y,
                                       bool relu)
{
    dnnl_primitive_attr_t attr = relu_attr(relu);
    dnnl_primitive_desc_t pd;

#if DNNL_VERSION_MAJOR >= 3
    TRY(dnnl_convolution_forward_primitive_desc_create(
        &pd, engine, dnnl_forward_training, dnnl_convolution_direct, x, w, bias, y, ones,
        zeros, zeros, zeros, attr));
#else
    dnnl_convolution_desc_t d;

    TRY(dnnl_convolution_forward_desc_init(&d, dnnl_forward_training,
                                           dnnl_convolution_direct, x, w, bias, y, ones,
                                           zeros, zeros));
    TRY(dnnl_primitive_desc_create(&pd, &d, attr, engine, NULL));
#endif
    return pd;
}

dnnl_primitive_desc_t kit_conv_data(kit_desc dx, kit_desc w, kit_desc dy,
                                    const_dnnl_primitive_desc_t forward)
{
    dnnl_primitive_desc_t pd;

#if DNNL_VERSION_MAJOR >= 3
    TRY(dnnl_convolution_backward_data_primitive_desc_create(
        &pd, engine, dnnl_convolution_direct, dx, w, dy, ones, zeros, zeros, zeros,
        forward, NULL));
#else
    dnnl_convolution_desc_t d;

    TRY(dnnl_convolution_backward_data_desc_init(&d, dnnl_convolution_direct, dx, w, dy,
                                                 ones, zeros, zeros));
    TRY(dnnl_primitive_desc_create(&pd, &d, NULL, engine, forward));
#endif
    return pd;
}

dnnl_primitive_desc_t kit_conv_weights(kit_desc x, kit_desc dw, kit_desc db, kit_desc dy,
                                       const_dnnl_primitive_desc_t forward)
{
    dnnl_primitive_desc_t pd;

#if DNNL_VERSION_MAJOR >= 3
    TRY(dnnl_convolution_backward_weights_primitive_desc_create(
        &pd, engine, dnnl_convolution_direct, x, dw, db, dy, ones, zeros, zeros, zeros,
        forward, NULL));
#else
    dnnl_convolution_desc_t d;

    TRY(dnnl_convolution_backward_weights_desc_init(&d, dnnl_convolution_direct, x, dw,
                                                    db, dy, ones, zeros, zeros));
    TRY(dnnl_primitive_desc_create(&pd, &d, NULL, engine, forward));
#endif
    return pd;
}

dnnl_primitive_desc_t kit_relu_backward(kit_desc y)
{
    const dnnl_alg_kind_t alg = dnnl_eltwise_relu_use_dst_for_bwd;
    dnnl_primitive_desc_t forward, pd;

#if DNNL_VERSION_MAJOR >= 3
    TRY(dnnl_eltwise_forward_primitive_desc_create(
        &forward, engine, dnnl_forward_training, alg, y, y, 0, 0, NULL));
    TRY(dnnl_eltwise_backward_primitive_desc_create(&pd, engine, alg, y, y, y, 0, 0,
                                                    forward, NULL));
#else
    dnnl_eltwise_desc_t d;

    TRY(dnnl_eltwise_forward_desc_init(&d, dnnl_forward_training, alg, y, 0, 0));
    TRY(dnnl_primitive_desc_create(&forward, &d, NULL, engine, NULL));
    TRY(dnnl_eltwise_backward_desc_init(&d, alg, y, y, 0, 0));
    TRY(dnnl_primitive_desc_create(&pd, &d, NULL, engine, forward));
#endif
    return pd;
}

dnnl_primitive_desc_t kit_reorder(kit_desc from, kit_desc to)
{
    dnnl_primitive_desc_t pd;

    TRY(dnnl_reorder_primitive_desc_create(&pd, from, engine, to, engine, NULL));
    return pd;
}

kit_call kit_call_of(dnnl_primitive_desc_t pd)
{
    kit_call call;

    memset(&call, 0, sizeof call);
    TRY(dnnl_primitive_create(&call.primitive, pd));
    return call;
}

void kit_arg(kit_call *call, int what, dnnl_memory_t memory)
{
    if (call->nargs == KIT_MAX_ARGS) {
        kit_check(dnnl_invalid_arguments, "too many arguments of one primitive");
    }
    call->args[call->nargs].arg = what;
    call->args[call->nargs].memory = memory;
    call->nargs++;
}

void kit_run(const kit_call *call)
{
    TRY(dnnl_primitive_execute(call->primitive, stream, call->nargs, call->args));
    TRY(dnnl_stream_wait(stream));
}
