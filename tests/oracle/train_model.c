/* The layers of the models of the suite `train`, by operations of the library. */
#include "train_model.h"

#include <stdio.h>
#include <string.h>

static ls_status add_weight(train_model *m, const safetensors_entry *e, ls_error *err)
{
    ls_variable_options opts = LS_VARIABLE_OPTIONS_INIT;
    train_weight *w = &m->weights[m->count];
    ls_tensor *value = NULL;
    ls_status st;

    (void)snprintf(w->name, sizeof w->name, "%s", e->name + strlen("init/"));
    opts.name = w->name;
    opts.not_trainable = strstr(w->name, "/moving_") != NULL;
    st = ls_tensor_create(NULL, e->dtype, e->shape, e->data, &value, err);
    if (st == LS_OK) {
        st = ls_variable_create(value, &opts, &w->variable, err);
    }
    ls_tensor_release(value);
    if (st == LS_OK) {
        m->count++;
        if (!opts.not_trainable) {
            m->trained[m->trainables] = w;
            m->trainable[m->trainables++] = w->variable;
        }
    }
    return st;
}

ls_status train_model_create(train_model *m, const json_t *layers,
                             const safetensors *data, ls_error *err)
{
    ls_status st = LS_OK;

    memset(m, 0, sizeof *m);
    m->layers = layers;
    m->data = data;
    for (size_t i = 0; i < safetensors_count(data) && st == LS_OK; i++) {
        const safetensors_entry *e = safetensors_at(data, i);

        if (strncmp(e->name, "init/", 5) == 0 && m->count < MODEL_MOST) {
            st = add_weight(m, e, err);
        }
    }
    return st;
}

void train_model_release(train_model *m)
{
    for (size_t i = 0; i < m->count; i++) {
        ls_variable_release(m->weights[i].variable);
    }
    m->count = 0;
}

/* One layer: its number and its description. */
struct layer {
    const train_model *m;
    size_t number;
    const json_t *spec;
    bool training;
};

/* NULL: there is no weight of that name. */
static ls_variable *find_weight(const struct layer *l, const char *name)
{
    char full[96];

    (void)snprintf(full, sizeof full, "%zu/%s", l->number, name);
    for (size_t i = 0; i < l->m->count; i++) {
        if (strcmp(l->m->weights[i].name, full) == 0) {
            return l->m->weights[i].variable;
        }
    }
    return NULL;
}

/* The weight; fails if there is none. */
static ls_tensor *weight(ls_context *c, const struct layer *l, const char *name)
{
    ls_variable *v = find_weight(l, name);

    if (v == NULL) {
        return ls_context_fail(c, LS_NOT_FOUND, "layer %zu has no weight %s", l->number,
                               name);
    }
    return ls_read(c, v);
}

/* The weight, or NULL if the layer has none. */
static ls_tensor *if_there(ls_context *c, const struct layer *l, const char *name)
{
    return find_weight(l, name) == NULL ? NULL : weight(c, l, name);
}

static ls_activation activation_of(ls_context *c, const json_t *spec)
{
    static const struct {
        const char *name;
        ls_activation value;
    } known[] = {
        {"relu", LS_RELU}, {"tanh", LS_TANH}, {"sigmoid", LS_SIGMOID}, {"gelu", LS_GELU}};
    const char *name = json_string_value(json_object_get(spec, "activation"));

    for (size_t i = 0; name != NULL && i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(name, known[i].name) == 0) {
            return known[i].value;
        }
    }
    if (name != NULL) {
        (void)ls_context_fail(c, LS_UNIMPLEMENTED, "no activation is called %s", name);
    }
    return LS_LINEAR;
}

static int integer(const json_t *spec, const char *name)
{
    return (int)json_integer_value(json_object_get(spec, name));
}

static double number(const json_t *spec, const char *name)
{
    return json_number_value(json_object_get(spec, name));
}

static ls_tensor *dense(ls_context *c, const struct layer *l, ls_tensor *x)
{
    return ls_dense(c, x, weight(c, l, "kernel"), weight(c, l, "bias"),
                    activation_of(c, l->spec));
}

static ls_tensor *conv2d(ls_context *c, const struct layer *l, ls_tensor *x)
{
    const char *padding = json_string_value(json_object_get(l->spec, "padding"));
    ls_conv_options o = LS_CONV_OPTIONS_INIT;

    o.stride[0] = o.stride[1] = integer(l->spec, "strides");
    o.padding = padding != NULL && strcmp(padding, "same") == 0 ? LS_SAME : LS_VALID;
    o.activation = activation_of(c, l->spec);
    return ls_conv2d(c, x, weight(c, l, "kernel"), weight(c, l, "bias"), &o);
}

static ls_tensor *max_pool2d(ls_context *c, const struct layer *l, ls_tensor *x)
{
    ls_pool_options o = LS_POOL_OPTIONS_INIT;

    o.size[0] = o.size[1] = integer(l->spec, "size");
    return ls_max_pool2d(c, x, &o);
}

static ls_tensor *global_average_pool2d(ls_context *c, const struct layer *l,
                                        ls_tensor *x)
{
    (void)l;
    return ls_global_avg_pool2d(c, x);
}

static ls_tensor *flatten(ls_context *c, const struct layer *l, ls_tensor *x)
{
    int64_t columns = 1;

    (void)l;
    for (int i = 1; x != NULL && i < ls_tensor_ndim(x); i++) {
        columns *= ls_tensor_dim(x, i);
    }
    return x == NULL ? NULL : ls_reshape(c, x, LS_SHAPE(ls_tensor_dim(x, 0), columns));
}

static ls_tensor *activation(ls_context *c, const struct layer *l, ls_tensor *x)
{
    switch (activation_of(c, l->spec)) {
    case LS_RELU:
        return ls_relu(c, x);
    case LS_TANH:
        return ls_tanh(c, x);
    case LS_SIGMOID:
        return ls_sigmoid(c, x);
    case LS_GELU:
        return ls_gelu(c, x, false);
    default:
        return x;
    }
}

static ls_tensor *layer_norm(ls_context *c, const struct layer *l, ls_tensor *x)
{
    return ls_layer_norm(c, x, weight(c, l, "gamma"), weight(c, l, "beta"),
                         number(l->spec, "epsilon"));
}

/* moving <- momentum * moving + (1 - momentum) * moment */
static void move_average(ls_context *c, const struct layer *l, const char *name,
                         ls_tensor *moment)
{
    const double keep = number(l->spec, "momentum");
    ls_tensor *old = weight(c, l, name);
    ls_tensor *kept = ls_mul(c, old, ls_constant_f32(c, (float)keep));
    ls_tensor *news =
        ls_mul(c, ls_stop_gradient(c, moment), ls_constant_f32(c, (float)(1 - keep)));

    (void)ls_assign(c, find_weight(l, name), ls_add(c, kept, news));
}

/* Moments over the rows of all replicas; gradients pass through the sums. */
static ls_tensor *batch_norm_of_all(ls_context *c, const struct layer *l, ls_tensor *x)
{
    int axes[LS_MAX_DIMS];
    const int n = x == NULL ? 0 : ls_tensor_ndim(x) - 1;
    float own = 1;

    for (int i = 0; i < n; i++) {
        axes[i] = i;
        own *= (float)ls_tensor_dim(x, i);
    }
    ls_tensor *count = ls_all_reduce(c, LS_SUM, ls_constant_f32(c, own));
    ls_tensor *sum = ls_all_reduce(c, LS_SUM, ls_sum(c, x, axes, (size_t)n, false));
    ls_tensor *squares =
        ls_all_reduce(c, LS_SUM, ls_sum(c, ls_square(c, x), axes, (size_t)n, false));
    ls_tensor *mean = ls_div(c, sum, count);
    ls_tensor *variance =
        ls_maximum(c, ls_sub(c, ls_div(c, squares, count), ls_square(c, mean)),
                   ls_constant_f32(c, 0));
    ls_tensor *epsilon = ls_constant_f32(c, (float)number(l->spec, "epsilon"));
    ls_tensor *scale =
        ls_mul(c, ls_rsqrt(c, ls_add(c, variance, epsilon)), weight(c, l, "gamma"));

    move_average(c, l, "moving_mean", mean);
    move_average(c, l, "moving_variance", variance);
    return ls_add(c, ls_mul(c, ls_sub(c, x, mean), scale), weight(c, l, "beta"));
}

static ls_tensor *batch_norm(ls_context *c, const struct layer *l, ls_tensor *x)
{
    ls_tensor *gamma = weight(c, l, "gamma"), *beta = weight(c, l, "beta");
    const double epsilon = number(l->spec, "epsilon");
    ls_tensor *mean = NULL, *variance = NULL;
    ls_tensor *y;

    if (!l->training) {
        return ls_batch_norm_inference(c, x, gamma, beta, weight(c, l, "moving_mean"),
                                       weight(c, l, "moving_variance"), epsilon);
    }
    if (json_is_true(json_object_get(l->spec, "synchronized")) &&
        ls_replica_count(c) > 1) {
        return batch_norm_of_all(c, l, x);
    }
    y = ls_batch_norm(c, x, gamma, beta, epsilon, &mean, &variance);
    move_average(c, l, "moving_mean", mean);
    move_average(c, l, "moving_variance", variance);
    return y;
}

/* The part `name` of a gpt: a·kernel + bias. */
static ls_tensor *linear(ls_context *c, const struct layer *l, ls_tensor *a,
                         const char *name, ls_activation act)
{
    char kernel[64], bias[64];

    (void)snprintf(kernel, sizeof kernel, "%s/kernel", name);
    (void)snprintf(bias, sizeof bias, "%s/bias", name);
    return ls_dense(c, a, weight(c, l, kernel), if_there(c, l, bias), act);
}

static ls_tensor *gpt_norm(ls_context *c, const struct layer *l, ls_tensor *a,
                           const char *name)
{
    char gamma[64], beta[64];

    (void)snprintf(gamma, sizeof gamma, "%s/gamma", name);
    (void)snprintf(beta, sizeof beta, "%s/beta", name);
    return ls_layer_norm(c, a, weight(c, l, gamma), weight(c, l, beta),
                         number(l->spec, "epsilon"));
}

/* [rows, n, width] -> [rows, heads, n, width / heads] */
static ls_tensor *split_heads(ls_context *c, const struct layer *l, ls_tensor *a)
{
    const int64_t heads = integer(l->spec, "heads"), width = integer(l->spec, "width");
    const int64_t length = integer(l->spec, "length");

    a = ls_reshape(c, a, LS_SHAPE(-1, length, heads, width / heads));
    return ls_transpose(c, a, (const int[]){0, 2, 1, 3});
}

static ls_tensor *join_heads(ls_context *c, const struct layer *l, ls_tensor *a)
{
    a = ls_transpose(c, a, (const int[]){0, 2, 1, 3});
    return ls_reshape(
        c, a, LS_SHAPE(-1, integer(l->spec, "length"), integer(l->spec, "width")));
}

static ls_tensor *gpt(ls_context *c, const struct layer *l, ls_tensor *x)
{
    ls_tensor *h, *a, *q, *k, *v;

    if (integer(l->spec, "heads") < 1) {
        return ls_context_fail(c, LS_INVALID_ARGUMENT, "a gpt needs heads");
    }
    h = ls_add(c, ls_gather(c, weight(c, l, "tokens"), x, 0), weight(c, l, "positions"));
    a = gpt_norm(c, l, h, "norm1");
    q = split_heads(c, l, linear(c, l, a, "query", LS_LINEAR));
    k = split_heads(c, l, linear(c, l, a, "key", LS_LINEAR));
    v = split_heads(c, l, linear(c, l, a, "value", LS_LINEAR));
    a = join_heads(c, l, ls_attention(c, q, k, v, 0, true));
    h = ls_add(c, h, linear(c, l, a, "output", LS_LINEAR));
    a = linear(c, l, gpt_norm(c, l, h, "norm2"), "up", LS_GELU_TANH);
    h = ls_add(c, h, linear(c, l, a, "down", LS_LINEAR));
    return linear(c, l, gpt_norm(c, l, h, "norm3"), "logits", LS_LINEAR);
}

static const struct {
    const char *type;
    ls_tensor *(*forward)(ls_context *c, const struct layer *l, ls_tensor *x);
} TYPES[] = {
    {"dense", dense},
    {"conv2d", conv2d},
    {"max_pool2d", max_pool2d},
    {"global_average_pool2d", global_average_pool2d},
    {"flatten", flatten},
    {"activation", activation},
    {"layer_norm", layer_norm},
    {"batch_norm", batch_norm},
    {"gpt", gpt},
};

static ls_tensor *run_layer(ls_context *c, const struct layer *l, ls_tensor *x)
{
    const char *type = json_string_value(json_object_get(l->spec, "type"));

    for (size_t i = 0; type != NULL && i < sizeof TYPES / sizeof TYPES[0]; i++) {
        if (strcmp(type, TYPES[i].type) == 0) {
            return TYPES[i].forward(c, l, x);
        }
    }
    return ls_context_fail(c, LS_UNIMPLEMENTED, "no layer is called %s",
                           type == NULL ? "that" : type);
}

ls_tensor *train_model_forward(ls_context *c, const train_model *m, ls_tensor *x,
                               bool training)
{
    for (size_t i = 0; i < json_array_size(m->layers); i++) {
        const struct layer l = {m, i, json_array_get(m->layers, i), training};

        x = run_layer(c, &l, x);
    }
    return x;
}

ls_tensor *train_model_penalty(ls_context *c, const train_model *m)
{
    ls_tensor *sum = NULL;

    for (size_t i = 0; i < json_array_size(m->layers); i++) {
        const struct layer l = {m, i, json_array_get(m->layers, i), true};
        const double scale = number(l.spec, "l2");

        if (scale != 0) {
            ls_tensor *w = weight(c, &l, "kernel");
            ls_tensor *part = ls_mul(c, ls_sum(c, ls_square(c, w), NULL, 0, false),
                                     ls_constant_f32(c, (float)scale));

            sum = sum == NULL ? part : ls_add(c, sum, part);
        }
    }
    return sum;
}
