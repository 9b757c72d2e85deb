/*
 * Creating variables: creators are called first, the strategy last; a variable has one
 * copy, or one on each of several devices.
 */
#include "variable/variable.h"

#include <stdio.h>
#include <string.h>

/* A variable without elements or components; NULL: failed, see err. */
ls_variable *lsi_variable_new(const lsi_variable_ops *ops, const ls_tensor *value,
                              const ls_variable_options *opts, const char *name,
                              ls_device *device, ls_error *err)
{
    ls_variable *v = lsi_alloc(1, sizeof *v);
    char *copy = v == NULL ? NULL : lsi_strdup(name);

    if (copy == NULL) {
        lsi_free(v);
        (void)lsi_fail_memory(err, "a variable", sizeof *v);
        return NULL;
    }
    atomic_init(&v->refs, 1);
    lsi_mutex_init(&v->lock);
    v->ops = ops;
    v->name = copy;
    v->dtype = (ls_dtype)value->dtype;
    v->shape = ls_tensor_shape(value);
    v->count = value->count;
    v->synchronization = opts->synchronization;
    v->aggregation = opts->aggregation;
    v->strict = opts->strict;
    v->trainable = !opts->not_trainable &&
                   (opts->trainable || opts->synchronization != LS_SYNC_ON_READ);
    v->device = device;
    v->runtime = ls_runtime_retain(device->runtime);
    return v;
}

/* ---- creators first, the strategy last ---- */

struct ls_creator_next {
    struct lsi_scope *creator; // NULL: the strategy creates the variable
    lsi_copy_maker make;       // not NULL: creates one copy, in place of the strategy
    void *arg;
};

static ls_status create_here(const ls_tensor *value, const ls_variable_options *opts,
                             ls_variable **out, ls_error *err)
{
    ls_strategy *s = ls_current_strategy();
    ls_variable_options named = *opts;
    char *name;
    ls_status st;

    if (lsi_scope_mixed()) {
        return lsi_fail_kind(err, LS_FAILED_PRECONDITION, LS_KIND_RUNTIME,
                             "variable: mixing different strategies: the scope of the "
                             "default one is open below that of %s",
                             s->ops->name);
    }
    name = lsi_scoped_name(opts->name != NULL ? opts->name : "Variable");
    if (name == NULL) {
        return lsi_fail_memory(err, "a name", 1);
    }
    named.name = name;
    st = s->ops->create_variable != NULL
             ? s->ops->create_variable(s, value, &named, out, err)
             : lsi_create_plain(s, value, &named, out, err);
    lsi_free(name);
    return st;
}

ls_status ls_creator_call(const ls_creator_next *next, const ls_tensor *value,
                          const ls_variable_options *opts, ls_variable **out,
                          ls_error *err)
{
    static const ls_variable_options defaults = LS_VARIABLE_OPTIONS_INIT;

    if (value == NULL || out == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "variable: %s is NULL",
                        value == NULL ? "the initial value" : "out");
    }
    if (opts == NULL) {
        opts = &defaults;
    }
    if (opts->struct_size < sizeof *opts) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "variable: start the options from LS_VARIABLE_OPTIONS_INIT");
    }
    if (next != NULL && next->creator != NULL) {
        const ls_creator_next rest = {lsi_creator_outer(next->creator), next->make,
                                      next->arg};
        void *user = NULL;
        ls_creator_fn fn = lsi_creator_fn(next->creator, &user);

        return fn(&rest, value, opts, user, out, err);
    }
    if (next != NULL && next->make != NULL) {
        return next->make(next->arg, value, opts, out, err);
    }
    return create_here(value, opts, out, err);
}

ls_status lsi_creator_copy(const ls_tensor *value, const ls_variable_options *opts,
                           lsi_copy_maker make, void *arg, ls_variable **out,
                           ls_error *err)
{
    const ls_creator_next first = {lsi_scope_creator_outside(), make, arg};

    return ls_creator_call(&first, value, opts, out, err);
}

ls_status ls_variable_create(const ls_tensor *value, const ls_variable_options *opts,
                             ls_variable **out, ls_error *err)
{
    const ls_creator_next first = {lsi_scope_creator(), NULL, NULL};

    return ls_creator_call(&first, value, opts, out, err);
}

/* ---- one copy ---- */

/* The device of a variable with one copy: from options, a scope or the strategy. */
static ls_device *device_for(const ls_strategy *s, const ls_tensor *value,
                             const ls_variable_options *opts)
{
    if (opts->device != NULL) {
        return opts->device;
    }
    if (lsi_variable_colocated() != NULL) {
        return lsi_variable_colocated()->device;
    }
    if (s->local > 0) {
        return s->devices[0];
    }
    return lsi_scope_device() != NULL ? lsi_scope_device() : value->device;
}

static ls_status make_plain(void *arg, const ls_tensor *value,
                            const ls_variable_options *opts, ls_variable **out,
                            ls_error *err)
{
    ls_strategy *s = arg;
    ls_variable *v = NULL;
    ls_status st = lsi_variable_plain(value, opts, opts->name, device_for(s, value, opts),
                                      NULL, &v, err);

    if (st == LS_OK) {
        v->strategy = s->ops->is_default ? NULL : ls_strategy_retain(s);
        *out = v;
    }
    return st;
}

ls_status lsi_create_plain(ls_strategy *s, const ls_tensor *value,
                           const ls_variable_options *opts, ls_variable **out,
                           ls_error *err)
{
    return lsi_creator_copy(value, opts, make_plain, s, out, err);
}

/* ---- a copy on each device ---- */

/* "name", "name/replica_1", ...; the caller frees it by lsi_free(). */
static char *copy_name(const char *name, int i)
{
    const size_t room = strlen(name) + 32;
    char *text = lsi_alloc(room, 1);

    if (text != NULL && i == 0) {
        (void)snprintf(text, room, "%s", name);
    } else if (text != NULL) {
        (void)snprintf(text, room, "%s/replica_%d", name, i);
    }
    return text;
}

/* The argument of make_copy(): the device, and the first copy. */
struct copy {
    ls_device *device;
    const ls_variable *first; /* NULL: this is the first */
};

static ls_status make_copy(void *arg, const ls_tensor *value,
                           const ls_variable_options *opts, ls_variable **out,
                           ls_error *err)
{
    const struct copy *k = arg;
    lsi_buffer *shared = k->first == NULL ? NULL : k->first->buffer;

    return lsi_variable_plain(value, opts, opts->name != NULL ? opts->name : "Variable",
                              k->device, value->buffer == shared ? shared : NULL, out,
                              err);
}

/* A creator may return any variable; checks that it is plain and like the first copy. */
static ls_status check_copy(const ls_variable *copy, const struct copy *k, ls_error *err)
{
    const bool plain = copy != NULL && copy->components == 0 && copy->container == NULL &&
                       copy->strategy == NULL && copy->device == k->device;

    if (plain && (k->first == NULL || (copy->dtype == k->first->dtype &&
                                       ls_shape_equal(&copy->shape, &k->first->shape)))) {
        return LS_OK;
    }
    return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                         "variable '%s': a creator outside of the strategy's scope is "
                         "called for each copy, and made one of another kind, device, "
                         "dtype or shape; make it by ls_creator_call()",
                         copy != NULL ? copy->name : "(NULL)");
}

/* Adds copy i with its name and device; later copies get the value of the first. */
static ls_status add_copy(ls_variable *v, int i, ls_device *device,
                          const ls_tensor *value, const ls_variable_options *opts,
                          ls_error *err)
{
    struct copy k = {device, i > 0 ? v->component[0] : NULL};
    ls_variable_options named = *opts;
    char *name = copy_name(v->name, i);
    ls_tensor *same = NULL;
    ls_variable *copy = NULL;
    ls_status st = LS_OK;

    if (name == NULL) {
        return lsi_fail_memory(err, "a name", strlen(v->name));
    }
    named.name = name;
    named.device = device;
    if (i > 0) {
        st = ls_variable_value(v->component[0], &same, err);
        value = same;
    }
    if (st == LS_OK) {
        st = lsi_creator_copy(value, &named, make_copy, &k, &copy, err);
    }
    if (st == LS_OK) {
        st = check_copy(copy, &k, err);
    }
    ls_tensor_release(same);
    lsi_free(name);
    if (st != LS_OK || copy == NULL) { // NULL has failed the check
        ls_variable_release(copy);
        return st;
    }
    v->component[i] = copy;
    copy->container = v;
    return LS_OK;
}

static ls_status add_copies(ls_variable *v, ls_device *const *devices,
                            const ls_tensor *value, const ls_variable_options *opts,
                            ls_error *err)
{
    ls_status st = LS_OK;

    for (int i = 0; i < v->components && st == LS_OK; i++) {
        st = add_copy(v, i, devices[i], value, opts, err);
    }
    if (st == LS_OK) { // a creator may have changed the initial value
        v->dtype = v->component[0]->dtype;
        v->shape = v->component[0]->shape;
        v->count = v->component[0]->count;
    }
    return st;
}

ls_status lsi_variable_distributed(const lsi_variable_ops *ops, ls_strategy *s,
                                   ls_device *const *devices, int n,
                                   const ls_tensor *value,
                                   const ls_variable_options *opts, ls_variable **out,
                                   ls_error *err)
{
    ls_variable *v = lsi_variable_new(ops, value, opts, opts->name, devices[0], err);
    ls_status st;

    if (v == NULL) {
        return LS_RESOURCE_EXHAUSTED;
    }
    v->strategy = ls_strategy_retain(s);
    v->component = lsi_alloc((size_t)n, sizeof(ls_variable *));
    if (v->component == NULL) {
        st = lsi_fail_memory(err, "a variable", (size_t)n * sizeof(ls_variable *));
    } else {
        v->components = n;
        st = add_copies(v, devices, value, opts, err);
    }
    if (st != LS_OK) {
        ls_variable_release(v);
        return st;
    }
    *out = v;
    return LS_OK;
}

ls_status lsi_variable_distributed_like(const lsi_variable_ops *ops,
                                        const ls_variable *like, const ls_tensor *value,
                                        const ls_variable_options *opts,
                                        ls_variable **out, ls_error *err)
{
    ls_device **devices = lsi_alloc((size_t)like->components, sizeof(ls_device *));
    ls_status st;

    if (devices == NULL) {
        return lsi_fail_memory(err, "a variable", sizeof *like);
    }
    for (int i = 0; i < like->components; i++) {
        devices[i] = like->component[i]->device;
    }
    st = lsi_variable_distributed(ops, like->strategy, devices, like->components, value,
                                  opts, out, err);
    lsi_free(devices);
    return st;
}

ls_status lsi_check_aggregation(const ls_variable_options *opts, ls_error *err)
{
    if ((unsigned)opts->aggregation > LS_AGGREGATE_ONLY_FIRST_REPLICA) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "variable '%s': %d is not an aggregation", opts->name,
                             (int)opts->aggregation);
    }
    return LS_OK;
}

/* ---- in replicas ---- */

/* The arguments of lsi_variable_distributed(). */
struct order {
    const lsi_variable_ops *ops;
    ls_strategy *strategy;
    ls_device *const *devices;
    int n;
    const ls_tensor *value;
    const ls_variable_options *opts;
};

static ls_status create_distributed(void *arg, void **out, ls_error *err)
{
    const struct order *o = arg;
    const ls_tensor *value = o->value;
    ls_tensor *chief = NULL;
    ls_variable *v = NULL;
    ls_status st = LS_OK;

    if (lsi_workers(o->strategy) > 1) {
        st = lsi_chief_value(o->strategy, o->opts, value, &chief, err);
        value = chief;
    }
    if (st == LS_OK) {
        st = lsi_variable_distributed(o->ops, o->strategy, o->devices, o->n, value,
                                      o->opts, &v, err);
    }
    ls_tensor_release(chief);
    *out = v;
    return st;
}

ls_status lsi_variable_create_on(const lsi_variable_ops *ops, ls_strategy *s,
                                 ls_device *const *devices, int n, const ls_tensor *value,
                                 const ls_variable_options *opts, ls_variable **out,
                                 ls_error *err)
{
    struct order o = {ops, s, devices, n, value, opts};
    const lsi_mode *now = lsi_mode_now();
    void *v = NULL;
    ls_status st;

    if (now != NULL && !now->cross && now->strategy == s) {
        st = lsi_create_once(now->context, opts->name, create_distributed, &o,
                             &lsi_variable_object, &v, err);
    } else {
        st = create_distributed(&o, &v, err);
    }
    if (st == LS_OK) {
        *out = v;
    }
    return st;
}
