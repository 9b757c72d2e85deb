/*
 * Matrix products and convolutions by oneDNN, as a module: liblockstep itself does not
 * link it. The work is cut among the device's team and every member runs oneDNN alone, on
 * its share: threads of ours and OpenMP's never compete for a device's cores.
 *
 * Making a primitive takes milliseconds, so it is made once for a shape and a share and
 * kept with the memory it needs (a plan). Weights are laid out anew in every call, the
 * way oneDNN wants them: a small copy next to the product.
 */
#include "kernel/dnnl/module.h"
#include "base/hash.h"
#include "kernel/dnnl/api.h"

#include <pthread.h>

/* All we use of omp.h, which is gcc's own where it comes from gcc: clang cannot read it.
 */
extern void omp_set_num_threads(int threads);

enum { MAX_ARGS = 4, BUCKETS = 256, MAX_PLANS = 4096 };

typedef enum kind { MATMUL, CONV, CONV_DATA, CONV_WEIGHTS } kind;

/* Everything a plan depends on; compared as bytes, so it is zeroed before it is filled.
 */
struct key {
    const ls_device *device;
    kind kind;
    int part, parts; /* each share has its own, so that shares can run at once */
    bool bias, relu, ta, tb;
    int64_t dims[12];
    int stride[2], dilation[2], pad[2];
};

struct arg {
    int id;
    dnnl_memory_t memory; /* as the primitive wants it */
    dnnl_memory_t plain;  /* as the caller has it; NULL: the same */
    dnnl_primitive_t reorder;
    bool output;
    void *owned;
};

struct plan {
    struct plan *next;
    struct key key;
    pthread_mutex_t lock; /* one run at a time */
    dnnl_primitive_t primitive;
    struct arg args[MAX_ARGS];
    int nargs;
    dnnl_memory_t scratch;
    void *scratch_data;
};

static const lsi_dnnl_host *host;
static dnnl_engine_t engine;
static pthread_mutex_t plans_lock = PTHREAD_MUTEX_INITIALIZER; // guards what follows
static struct plan *plans[BUCKETS];
static int nplans;

static void *aligned(size_t bytes)
{
    void *p = NULL;

    return posix_memalign(&p, 64, bytes > 0 ? bytes : 64) == 0 ? p : NULL;
}

static void free_plan(struct plan *p)
{
    if (p == NULL) {
        return;
    }
    for (int i = 0; i < p->nargs; i++) {
        (void)dnnl_primitive_destroy(p->args[i].reorder);
        (void)dnnl_memory_destroy(p->args[i].memory);
        (void)dnnl_memory_destroy(p->args[i].plain);
        free(p->args[i].owned);
    }
    (void)dnnl_memory_destroy(p->scratch);
    (void)dnnl_primitive_destroy(p->primitive);
    free(p->scratch_data);
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
}

/* Adds an argument that the caller has as `plain` and the primitive wants as `query`. */
static bool add_arg(struct plan *p, const_dnnl_primitive_desc_t pd, int id,
                    dnnl_query_t query, const mdesc *plain, bool output)
{
    struct arg *a = &p->args[p->nargs++];
    mdesc want;
    bool ok;

    a->id = id;
    a->output = output;
    if (!api_query(pd, query, &want)) {
        return false;
    }
    if (api_desc_equal(&want, plain)) {
        ok = api_memory(&a->memory, plain, engine, DNNL_MEMORY_NONE);
    } else {
        a->owned = aligned(api_desc_bytes(&want));
        ok = a->owned != NULL && api_memory(&a->memory, &want, engine, a->owned) &&
             api_memory(&a->plain, plain, engine, DNNL_MEMORY_NONE) &&
             (output ? api_reorder(&a->reorder, engine, &want, plain)
                     : api_reorder(&a->reorder, engine, plain, &want));
    }
    api_desc_free(&want);
    return ok;
}

static bool add_scratch(struct plan *p, const_dnnl_primitive_desc_t pd)
{
    mdesc d;
    bool ok;

    if (!api_query(pd, dnnl_query_scratchpad_md, &d)) {
        return true; // needs none
    }
    p->scratch_data = aligned(api_desc_bytes(&d));
    ok = p->scratch_data != NULL && api_memory(&p->scratch, &d, engine, p->scratch_data);
    api_desc_free(&d);
    return ok;
}

/* dims: batch, m, n, k; strides of a matrix that may be stored the other way round. */
static bool plan_matmul(struct plan *p)
{
    const struct key *k = &p->key;
    const dnnl_dim_t m = k->dims[1], n = k->dims[2], in = k->dims[3], b = k->dims[0];
    const dnnl_dim_t ad[3] = {b, m, in}, bd[3] = {b, in, n}, cd[3] = {b, m, n},
                     zd[3] = {1, 1, n};
    const dnnl_dim_t as[3] = {m * in, k->ta ? 1 : in, k->ta ? k->dims[4] : 1};
    const dnnl_dim_t bs[3] = {in * n, k->tb ? 1 : n, k->tb ? in : 1};
    const dnnl_dim_t cs[3] = {m * n, n, 1}, zs[3] = {n, n, 1};
    mdesc a, w, c, z;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    bool ok = api_desc(&a, 3, ad, as);

    ok = api_desc(&w, 3, bd, bs) && ok;
    ok = api_desc(&c, 3, cd, cs) && ok;
    ok = api_desc(&z, 3, zd, zs) && ok;
    ok = ok && api_attr(&attr, k->relu) &&
         api_matmul(&pd, engine, &a, &w, k->bias ? &z : NULL, &c, attr) &&
         dnnl_primitive_create(&p->primitive, pd) == dnnl_success &&
         add_arg(p, pd, DNNL_ARG_SRC, dnnl_query_src_md, &a, false) &&
         add_arg(p, pd, DNNL_ARG_WEIGHTS, dnnl_query_weights_md, &w, false) &&
         add_arg(p, pd, DNNL_ARG_DST, dnnl_query_dst_md, &c, true) && add_scratch(p, pd);
    if (ok && k->bias) {
        struct arg *arg = &p->args[p->nargs++];

        arg->id = DNNL_ARG_BIAS;
        ok = api_memory(&arg->memory, &z, engine, DNNL_MEMORY_NONE);
    }
    api_desc_free(&a);
    api_desc_free(&w);
    api_desc_free(&c);
    api_desc_free(&z);
    (void)dnnl_primitive_desc_destroy(pd);
    (void)dnnl_primitive_attr_destroy(attr);
    return ok;
}

/* dims: n h w c, kh kw c out, oh ow. oneDNN's logical order is n c h w and out c h w. */
static bool plan_conv(struct plan *p)
{
    const struct key *k = &p->key;
    const int64_t *d = k->dims;
    const dnnl_dim_t xd[4] = {d[0], d[3], d[1], d[2]},
                     xs[4] = {d[1] * d[2] * d[3], 1, d[2] * d[3], d[3]};
    const dnnl_dim_t wd[4] = {d[7], d[6], d[4], d[5]},
                     ws[4] = {1, d[7], d[5] * d[6] * d[7], d[6] * d[7]};
    const dnnl_dim_t yd[4] = {d[0], d[7], d[8], d[9]},
                     ys[4] = {d[8] * d[9] * d[7], 1, d[9] * d[7], d[7]};
    const dnnl_dim_t zd[1] = {d[7]}, zs[1] = {1};
    mdesc x, w, wany, y, z;
    api_conv c = {&x, &wany, k->bias ? &z : NULL, &y, {0}, {0}, {0}, {0}};
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    bool ok = api_desc(&x, 4, xd, xs);

    for (int i = 0; i < 2; i++) {
        const int64_t reach = (d[4 + i] - 1) * k->dilation[i] + 1;

        c.stride[i] = k->stride[i];
        c.dilation[i] = k->dilation[i] - 1;
        c.before[i] = k->pad[i];
        c.after[i] = (d[8 + i] - 1) * k->stride[i] + reach - d[1 + i] - k->pad[i];
    }
    ok = api_desc(&w, 4, wd, ws) && ok;
    ok = api_desc(&wany, 4, wd, NULL) && ok;
    ok = api_desc(&y, 4, yd, ys) && ok;
    ok = api_desc(&z, 1, zd, zs) && ok;
    ok = ok && api_attr(&attr, k->relu) &&
         api_convolution(&pd, engine,
                         k->kind == CONV        ? API_FORWARD
                         : k->kind == CONV_DATA ? API_DATA
                                                : API_WEIGHTS,
                         &c, attr) &&
         dnnl_primitive_create(&p->primitive, pd) == dnnl_success && add_scratch(p, pd);
    if (ok && k->kind == CONV) {
        ok = add_arg(p, pd, DNNL_ARG_SRC, dnnl_query_src_md, &x, false) &&
             add_arg(p, pd, DNNL_ARG_WEIGHTS, dnnl_query_weights_md, &w, false) &&
             add_arg(p, pd, DNNL_ARG_DST, dnnl_query_dst_md, &y, true);
    } else if (ok && k->kind == CONV_DATA) {
        ok = add_arg(p, pd, DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, &y, false) &&
             add_arg(p, pd, DNNL_ARG_WEIGHTS, dnnl_query_weights_md, &w, false) &&
             add_arg(p, pd, DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md, &x, true);
    } else if (ok) {
        ok = add_arg(p, pd, DNNL_ARG_SRC, dnnl_query_src_md, &x, false) &&
             add_arg(p, pd, DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, &y, false) &&
             add_arg(p, pd, DNNL_ARG_DIFF_WEIGHTS, dnnl_query_diff_weights_md, &w, true);
    }
    if (ok && k->bias) {
        struct arg *arg = &p->args[p->nargs++];

        arg->id = DNNL_ARG_BIAS;
        ok = api_memory(&arg->memory, &z, engine, DNNL_MEMORY_NONE);
    }
    api_desc_free(&x);
    api_desc_free(&w);
    api_desc_free(&wany);
    api_desc_free(&y);
    api_desc_free(&z);
    (void)dnnl_primitive_desc_destroy(pd);
    (void)dnnl_primitive_attr_destroy(attr);
    return ok;
}

static size_t bucket_of(const struct key *k)
{
    return (size_t)(lsi_hash(LSI_HASH_INIT, k, sizeof *k) % BUCKETS);
}

/* The plan for `key`, made at first use; NULL: oneDNN does not support it. */
static struct plan *plan_for(const struct key *key)
{
    const size_t b = bucket_of(key);
    struct plan *p;

    (void)pthread_mutex_lock(&plans_lock);
    for (p = plans[b]; p != NULL; p = p->next) {
        if (memcmp(&p->key, key, sizeof *key) == 0) {
            break;
        }
    }
    if (p == NULL && nplans < MAX_PLANS) {
        p = calloc(1, sizeof *p);
        if (p != NULL) {
            p->key = *key;
            (void)pthread_mutex_init(&p->lock, NULL);
            if (key->kind == MATMUL ? plan_matmul(p) : plan_conv(p)) {
                p->next = plans[b];
                plans[b] = p;
                nplans++;
            } else {
                free_plan(p);
                p = NULL;
            }
        }
    }
    (void)pthread_mutex_unlock(&plans_lock);
    return p;
}

/* One copy of an argument into the layout the other side wants. */
static bool reorder(const struct arg *a, dnnl_stream_t stream)
{
    const dnnl_exec_arg_t args[2] = {{DNNL_ARG_FROM, a->output ? a->memory : a->plain},
                                     {DNNL_ARG_TO, a->output ? a->plain : a->memory}};

    return dnnl_primitive_execute(a->reorder, stream, 2, args) == dnnl_success;
}

/* data[i] belongs to args[i], in the order the plan added them. */
static bool run_plan(struct plan *p, void *const *data)
{
    dnnl_exec_arg_t args[MAX_ARGS + 1];
    dnnl_stream_t stream = NULL;
    int n = 0;
    bool ok =
        dnnl_stream_create(&stream, engine, dnnl_stream_default_flags) == dnnl_success;

    omp_set_num_threads(1); // of this thread: the team has cut the work already
    (void)pthread_mutex_lock(&p->lock);
    for (int i = 0; i < p->nargs && ok; i++) {
        struct arg *a = &p->args[i];

        ok = dnnl_memory_set_data_handle(a->plain != NULL ? a->plain : a->memory,
                                         data[i]) == dnnl_success;
        if (ok && a->reorder != NULL && !a->output) {
            ok = reorder(a, stream);
        }
        args[n++] = (dnnl_exec_arg_t){a->id, a->memory};
    }
    if (p->scratch != NULL) {
        args[n++] = (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, p->scratch};
    }
    ok = ok && dnnl_primitive_execute(p->primitive, stream, n, args) == dnnl_success;
    for (int i = 0; i < p->nargs && ok; i++) {
        if (p->args[i].reorder != NULL && p->args[i].output) {
            ok = reorder(&p->args[i], stream);
        }
    }
    ok = ok && dnnl_stream_wait(stream) == dnnl_success;
    (void)pthread_mutex_unlock(&p->lock);
    (void)dnnl_stream_destroy(stream);
    return ok;
}

/* One call cut into shares along its first size: rows of a product, images. */
struct team_work {
    struct key key; /* of the whole; dims[at] is what is cut */
    int at;
    int64_t n;
    struct plan *plans[64];
    char *data[MAX_ARGS];      /* as the plan's arguments */
    size_t per_item[MAX_ARGS]; /* bytes of one row or image; 0: every share uses all */
    int nargs;
    atomic_bool failed;
};

static void share_of(const struct team_work *j, int part, int parts, int64_t *begin,
                     int64_t *end)
{
    host->team_share(j->n, 1, part, parts, begin, end);
}

static void run_share(void *arg, int part, int parts)
{
    struct team_work *j = arg;
    int64_t begin, end;
    void *data[MAX_ARGS] = {NULL};

    share_of(j, part, parts, &begin, &end);
    if (begin >= end) {
        return;
    }
    for (int i = 0; i < j->nargs; i++) {
        data[i] = j->data[i] + (size_t)begin * j->per_item[i];
    }
    if (!run_plan(j->plans[part], data)) {
        atomic_store(&j->failed, true);
    }
}

/* Plans of all shares first: nothing is written if oneDNN does not support one. */
static ls_status run_on_team(ls_op_call *k, struct team_work *j, int parts)
{
    for (int p = 0; p < parts; p++) {
        int64_t begin, end;
        struct key key = j->key;

        share_of(j, p, parts, &begin, &end);
        if (begin >= end) {
            continue;
        }
        key.part = p;
        key.parts = parts;
        key.dims[j->at] = end - begin;
        j->plans[p] = plan_for(&key);
        if (j->plans[p] == NULL) {
            return LS_UNIMPLEMENTED;
        }
    }
    host->team_run(k->team, parts, run_share, j);
    return atomic_load(&j->failed) ? LS_INTERNAL : LS_OK;
}

static int parts_for(const ls_op_call *k, int64_t items, double flops)
{
    const int size = host->team_size(k->team);

    if (flops < 4e6) { // some 40 us: not worth waking other members
        return 1;
    }
    return (int)LSI_MIN(LSI_MIN((int64_t)size, items), 64);
}

static bool all_f32(const ls_op_call *k)
{
    for (size_t i = 0; i < k->nin; i++) {
        if (k->in[i]->dtype != LS_F32 || k->in[i]->count == 0) {
            return false;
        }
    }
    return true;
}

static struct team_work new_job(const ls_op_call *k, kind what)
{
    struct team_work j;

    memset(&j, 0, sizeof j); // padding too: keys are compared as bytes
    j.key.device = k->device;
    j.key.kind = what;
    return j;
}

static ls_status product(ls_op_call *k, int64_t batch, int64_t m, int64_t n, int64_t in,
                         bool ta, bool tb, const ls_tensor *bias, bool relu)
{
    struct team_work j = new_job(k, MATMUL);
    const double flops = 2.0 * (double)batch * (double)m * (double)n * (double)in;
    int parts;

    j.key.dims[0] = batch;
    j.key.dims[1] = m;
    j.key.dims[2] = n;
    j.key.dims[3] = in;
    j.key.dims[4] = m; // how far apart the rows of a transposed A are
    j.key.ta = ta;
    j.key.tb = tb;
    j.key.bias = bias != NULL;
    j.key.relu = relu;
    j.nargs = bias != NULL ? 4 : 3;
    j.data[0] = k->in[0]->data;
    j.data[1] = k->in[1]->data;
    j.data[2] = k->out[0]->data;
    j.data[3] = bias != NULL ? bias->data : NULL;
    if (batch > 1) {
        j.at = 0;
        j.n = batch;
        j.per_item[0] = (size_t)(m * in) * sizeof(float);
        j.per_item[1] = (size_t)(in * n) * sizeof(float);
        j.per_item[2] = (size_t)(m * n) * sizeof(float);
    } else {
        j.at = 1;
        j.n = m;
        j.per_item[0] = (size_t)(ta ? 1 : in) * sizeof(float);
        j.per_item[2] = (size_t)n * sizeof(float);
    }
    parts = parts_for(k, j.n, flops);
    return run_on_team(k, &j, parts);
}

/* Equal batch axes only: broadcasting is left to the next kernel. */
static ls_status matmul(ls_op_call *k)
{
    const lsi_matmul_attrs *at = k->attrs;
    const ls_tensor *a = k->in[0], *b = k->in[1];
    int64_t batch = 1;

    if (!all_f32(k) || a->ndim != b->ndim) {
        return LS_UNIMPLEMENTED;
    }
    for (int i = 0; i < a->ndim - 2; i++) {
        if (a->dims[i] != b->dims[i]) {
            return LS_UNIMPLEMENTED;
        }
        batch *= a->dims[i];
    }
    return product(k, batch, a->dims[a->ndim - (at->ta ? 1 : 2)],
                   b->dims[b->ndim - (at->tb ? 2 : 1)],
                   a->dims[a->ndim - (at->ta ? 2 : 1)], at->ta, at->tb, NULL, false);
}

static ls_status dense(ls_op_call *k)
{
    const lsi_matmul_attrs *at = k->attrs;
    const ls_tensor *x = k->in[0], *w = k->in[1];

    if (!all_f32(k) || (at->activation != LS_LINEAR && at->activation != LS_RELU)) {
        return LS_UNIMPLEMENTED;
    }
    return product(k, 1, x->count / w->dims[0], w->dims[1], w->dims[0], false, false,
                   k->nin > 2 ? k->in[2] : NULL, at->activation == LS_RELU);
}

static ls_status convolution(ls_op_call *k, kind what, const int64_t x[4],
                             const int64_t w[4], const int64_t y[4], struct team_work *j)
{
    const lsi_conv_attrs *at = k->attrs;
    const double flops =
        2.0 * (double)(y[0] * y[1] * y[2] * y[3]) * (double)(w[0] * w[1] * w[2]);

    for (int i = 0; i < 4; i++) {
        j->key.dims[i] = x[i];
        j->key.dims[4 + i] = w[i];
    }
    j->key.dims[8] = y[1];
    j->key.dims[9] = y[2];
    for (int i = 0; i < 2; i++) {
        j->key.stride[i] = at->stride[i];
        j->key.dilation[i] = at->dilation[i];
        j->key.pad[i] = at->pad[i];
    }
    j->at = 0;
    j->n = x[0];
    j->nargs = j->key.bias ? 4 : 3;
    return run_on_team(k, j, what == CONV_WEIGHTS ? 1 : parts_for(k, x[0], flops));
}

static size_t image_bytes(const int64_t d[4])
{
    return (size_t)(d[1] * d[2] * d[3]) * sizeof(float);
}

static ls_status conv2d(ls_op_call *k)
{
    const lsi_conv_attrs *at = k->attrs;
    struct team_work j = new_job(k, CONV);

    if (!all_f32(k) || (at->activation != LS_LINEAR && at->activation != LS_RELU)) {
        return LS_UNIMPLEMENTED;
    }
    j.key.relu = at->activation == LS_RELU;
    j.key.bias = k->nin > 2;
    j.data[0] = k->in[0]->data;
    j.data[1] = k->in[1]->data;
    j.data[2] = k->out[0]->data;
    j.per_item[0] = image_bytes(k->in[0]->dims);
    j.per_item[2] = image_bytes(k->out[0]->dims);
    if (k->nin > 2) {
        j.data[3] = k->in[2]->data;
    }
    return convolution(k, CONV, k->in[0]->dims, k->in[1]->dims, k->out[0]->dims, &j);
}

static ls_status conv2d_input_grad(ls_op_call *k)
{
    struct team_work j = new_job(k, CONV_DATA);

    if (!all_f32(k)) {
        return LS_UNIMPLEMENTED;
    }
    j.data[0] = k->in[0]->data;
    j.data[1] = k->in[1]->data;
    j.data[2] = k->out[0]->data;
    j.per_item[0] = image_bytes(k->in[0]->dims);
    j.per_item[2] = image_bytes(k->out[0]->dims);
    return convolution(k, CONV_DATA, k->out[0]->dims, k->in[1]->dims, k->in[0]->dims, &j);
}

/* On one member: shares would need their sums added, and the next kernel does that. */
static ls_status conv2d_filter_grad(ls_op_call *k)
{
    struct team_work j = new_job(k, CONV_WEIGHTS);

    if (!all_f32(k) || host->team_size(k->team) > 1) {
        return LS_UNIMPLEMENTED;
    }
    j.data[0] = k->in[0]->data;
    j.data[1] = k->in[1]->data;
    j.data[2] = k->out[0]->data;
    return convolution(k, CONV_WEIGHTS, k->in[0]->dims, k->out[0]->dims, k->in[1]->dims,
                       &j);
}

static const lsi_kernel table[LSI_OP_COUNT] = {
    [LSI_OP_matmul] = matmul,
    [LSI_OP_dense] = dense,
    [LSI_OP_conv2d] = conv2d,
    [LSI_OP_conv2d_input_grad] = conv2d_input_grad,
    [LSI_OP_conv2d_filter_grad] = conv2d_filter_grad,
};

LS_API const lsi_kernel *lsi_dnnl_module(const lsi_dnnl_host *from);

const lsi_kernel *lsi_dnnl_module(const lsi_dnnl_host *from)
{
    if (from->version != LSI_DNNL_MODULE_VERSION) {
        return NULL;
    }
    if (engine == NULL && dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success) {
        return NULL;
    }
    host = from;
    return table;
}
