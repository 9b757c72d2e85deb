/* Runtimes: their task and logical devices, the default one, finding a device. */
#include "device/device.h"
#include "device/pool.h"
#include "device/settings.h"
#include "device/topology.h"
#include "os/thread.h"

#include <stdio.h>

struct ls_runtime {
    atomic_int refs;
    int device_count;
    ls_device *devices;
    lsi_settings settings;
    lsi_input_threads *input;
    char task[96]; // "/job:localhost/replica:0/task:0"
};

/* The default runtime: created once under the lock, then read without it. */
static _Atomic(ls_runtime *) default_runtime;
static lsi_mutex default_lock = LSI_MUTEX_INIT;

/* The processors of this process; `*out` is the caller's to free. */
static ls_status list_processors(bool by_topology, int **out, int *count, ls_error *err)
{
    const int most = lsi_affinity_get(NULL, 0);
    int *list = lsi_alloc((size_t)most, sizeof *list);
    ls_error why = LS_ERROR_INIT;

    if (list == NULL) {
        return lsi_fail_memory(err, "the list of cores", (size_t)most * sizeof *list);
    }
    *count = LSI_MIN(lsi_affinity_get(list, most), most);
    if (by_topology) {
        int ordered = 0;

        if (lsi_topology_order(list, most, &ordered, &why) == LS_OK && ordered > 0) {
            *count = ordered;
        } else {
            lsi_log(LS_LOG_WARNING, "cores are shared out by number: %s", why.message);
        }
    }
    *count = LSI_MIN(*count, lsi_cpu_quota());
    *out = list;
    return LS_OK;
}

/*
 * With `pin`, the members of the team stay on the cores in `share`, one after the other.
 */
static ls_status make_team(ls_device *dev, const int *share, int threads, bool pin,
                           ls_error *err)
{
    int *cores = NULL;
    ls_status st;

    if (pin) {
        cores = lsi_alloc((size_t)threads, sizeof *cores);
        if (cores == NULL) {
            return lsi_fail_memory(err, "the cores of a team",
                                   (size_t)threads * sizeof *cores);
        }
        for (int i = 0; i < threads; i++) {
            cores[i] = share[i % dev->cores];
        }
    }
    st = lsi_team_create(threads, cores, &dev->team, err);
    lsi_free(cores);
    return st;
}

/* The pool of a device, over the provider that the setup names. */
static ls_status make_pool(ls_device *dev, const lsi_runtime_setup *setup, ls_error *err)
{
    lsi_memory_provider from = lsi_system_memory;
    ls_status st = LS_OK;

    if (setup->memory_of != NULL) {
        st = setup->memory_of(setup->user, dev->index, &from, err);
    }
    if (st != LS_OK) {
        return st;
    }
    dev->inline_bytes = from.small_tensors ? 0 : LSI_INLINE_BYTES;
    dev->pool = lsi_pool_create(&from);
    if (dev->pool == NULL) {
        if (from.destroy != NULL) {
            from.destroy(from.self);
        }
        return lsi_fail_memory(err, "the pool of a device", sizeof *dev);
    }
    return LS_OK;
}

static ls_status make_device(ls_runtime *rt, int i, const int *processors, int count,
                             const lsi_runtime_setup *setup, ls_error *err)
{
    const lsi_settings *s = &rt->settings;
    const int n = rt->device_count;
    ls_device *dev = &rt->devices[i];
    int64_t begin, end;
    ls_status st;

    lsi_team_share(count, 1, i, n, &begin, &end);
    if (begin == end) { // more devices than cores: they share
        begin = i % count;
        end = begin + 1;
    }
    dev->runtime = rt;
    dev->index = i;
    dev->isa = s->isa;
    dev->dnnl = s->dnnl;
    dev->cores = (int)(end - begin);
    dev->core = s->pin ? processors[begin] : -1;
    (void)snprintf(dev->name, sizeof dev->name, "%s/device:CPU:%d", rt->task, i);
    st = make_pool(dev, setup, err);
    if (st != LS_OK) {
        return st;
    }
    return make_team(dev, processors + begin, s->threads > 0 ? s->threads : dev->cores,
                     s->pin, err);
}

void lsi_device_settle(const ls_device *dev)
{
    ls_error why = LS_ERROR_INIT;

    if (dev->core >= 0 && lsi_affinity_set(&dev->core, 1, &why) != LS_OK) {
        lsi_log(LS_LOG_WARNING, "%s: its thread is not pinned: %s", dev->name,
                why.message);
    }
}

static void destroy_runtime(ls_runtime *rt)
{
    lsi_input_threads_release(rt->input); // its calls may use the devices
    for (int i = 0; i < rt->device_count; i++) {
        lsi_team_release(rt->devices[i].team);
        lsi_pool_release(rt->devices[i].pool);
    }
    lsi_free(rt->devices);
    lsi_free(rt);
}

static ls_status make_devices(ls_runtime *rt, const lsi_runtime_setup *setup,
                              ls_error *err)
{
    const size_t n = (size_t)rt->settings.devices;
    int *processors = NULL;
    int count = 0;
    ls_status st = list_processors(rt->settings.pin, &processors, &count, err);

    if (st != LS_OK) {
        return st;
    }
    LSI_ASSERT(count >= 1); // a process that runs has a core
    rt->devices = lsi_alloc(n, sizeof *rt->devices);
    if (rt->devices == NULL) {
        st = lsi_fail_memory(err, "the devices of a runtime", n * sizeof *rt->devices);
    }
    rt->device_count = rt->devices != NULL ? (int)n : 0;
    for (int i = 0; i < rt->device_count && st == LS_OK; i++) {
        st = make_device(rt, i, processors, count, setup, err);
    }
    lsi_free(processors);
    return st;
}

static ls_status create_runtime(const ls_runtime_options *opts,
                                const lsi_runtime_setup *setup, bool lenient,
                                ls_runtime **out, ls_error *err)
{
    static const lsi_runtime_setup usual = {.job = NULL};
    ls_runtime *rt = lsi_alloc(1, sizeof *rt);
    ls_status st;

    if (rt == NULL) {
        return lsi_fail_memory(err, "a runtime", sizeof *rt);
    }
    atomic_init(&rt->refs, 1);
    setup = setup != NULL ? setup : &usual;
    st = lsi_task_name(setup->job != NULL ? setup->job : "localhost", setup->task,
                       rt->task, sizeof rt->task, err);
    if (st == LS_OK) {
        st = lsi_settings_resolve(opts, lenient, &rt->settings, err);
    }
    if (st == LS_OK) {
        rt->input = lsi_input_threads_create();
        st = rt->input != NULL
                 ? make_devices(rt, setup, err)
                 : lsi_fail_memory(err, "the threads of the input", sizeof *rt);
    }
    if (st == LS_OK) {
        *out = rt;
    } else {
        destroy_runtime(rt);
    }
    return st;
}

ls_status ls_runtime_create(const ls_runtime_options *opts, ls_runtime **out,
                            ls_error *err)
{
    return lsi_runtime_create_with(opts, NULL, out, err);
}

ls_status lsi_runtime_create_with(const ls_runtime_options *opts,
                                  const lsi_runtime_setup *setup, ls_runtime **out,
                                  ls_error *err)
{
    if (out == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "runtime: out is NULL");
    }
    return create_runtime(opts, setup, false, out, err);
}

ls_runtime *ls_runtime_retain(ls_runtime *rt)
{
    if (rt != NULL) {
        (void)atomic_fetch_add_explicit(&rt->refs, 1, memory_order_relaxed);
    }
    return rt;
}

void ls_runtime_release(ls_runtime *rt)
{
    if (rt != NULL && atomic_fetch_sub(&rt->refs, 1) == 1) {
        destroy_runtime(rt);
    }
}

ls_runtime *lsi_runtime_default(void)
{
    ls_runtime *rt = atomic_load_explicit(&default_runtime, memory_order_acquire);

    if (rt != NULL) {
        return rt;
    }
    lsi_mutex_lock(&default_lock);
    rt = atomic_load(&default_runtime);
    if (rt == NULL) {
        ls_error err = LS_ERROR_INIT;

        if (create_runtime(NULL, NULL, true, &rt, &err) == LS_OK) {
            atomic_store(&default_runtime, rt);
        } else {
            lsi_log(LS_LOG_ERROR, "no default runtime: %s", err.message);
        } // the next call tries again
    }
    lsi_mutex_unlock(&default_lock);
    return rt;
}

static ls_runtime *or_default(ls_runtime *rt)
{
    return rt != NULL ? rt : lsi_runtime_default();
}

int ls_runtime_device_count(ls_runtime *rt)
{
    rt = or_default(rt);
    return rt != NULL ? rt->device_count : 0;
}

ls_device *ls_runtime_device(ls_runtime *rt, int i)
{
    rt = or_default(rt);
    return rt != NULL && i >= 0 && i < rt->device_count ? &rt->devices[i] : NULL;
}

/* "CPU:0, CPU:1"; of many devices the first three and the last. */
static void list_devices(const ls_runtime *rt, char *out, size_t size)
{
    const int shown = rt->device_count <= 16 ? rt->device_count : 3;
    size_t used = 0;

    out[0] = '\0';
    for (int i = 0; i < shown && used < size; i++) {
        (void)snprintf(out + used, size - used, "%sCPU:%d", i > 0 ? ", " : "", i);
        used = strlen(out);
    }
    if (shown < rt->device_count) {
        (void)snprintf(out + used, size - used, " ... CPU:%d", rt->device_count - 1);
    }
}

/* The error for a device that does not exist, with the reason and the remedy. */
static ls_status no_device(const char *wanted, const char *there, const char *task,
                           ls_error *err)
{
    const char *const device = strstr(wanted, "/device:");
    const char *const type = device + sizeof "/device:" - 1;

    if (strncmp(type, "CPU:", 4) != 0) {
        return lsi_fail(err, LS_NOT_FOUND, -1,
                        "there is no device %s: this build supports CPU devices only, "
                        "not %.*s; there are %s",
                        wanted, (int)strcspn(type, ":"), type, there);
    }
    if ((size_t)(device - wanted) != strlen(task) ||
        strncmp(wanted, task, strlen(task)) != 0) {
        return lsi_fail(err, LS_NOT_FOUND, -1,
                        "there is no device %s: a runtime has the devices of its own "
                        "process only, here %s of %s",
                        wanted, there, task);
    }
    return lsi_fail(err, LS_NOT_FOUND, -1,
                    "there is no device %s: this runtime has %s of %s; set LS_DEVICES or "
                    "the option logical_cpus for more",
                    wanted, there, task);
}

ls_status ls_runtime_find_device(ls_runtime *rt, const char *name, ls_device **out,
                                 ls_error *err)
{
    char wanted[sizeof rt->devices->name];
    char there[200];
    ls_status st;

    rt = or_default(rt);
    if (rt == NULL) {
        return lsi_fail_memory(err, "the default runtime", sizeof *rt);
    }
    if (out == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "find device: out is NULL");
    }
    st = lsi_device_canonical(name, rt->task, wanted, sizeof wanted, err);
    if (st != LS_OK) {
        return st;
    }
    for (int i = 0; i < rt->device_count; i++) {
        if (strcmp(rt->devices[i].name, wanted) == 0) {
            *out = &rt->devices[i];
            return LS_OK;
        }
    }
    list_devices(rt, there, sizeof there);
    return no_device(wanted, there, rt->task, err);
}

const char *ls_version(void)
{
    return LS_VERSION;
}

const char *lsi_runtime_task(const ls_runtime *rt)
{
    return rt->task;
}

lsi_input_threads *lsi_runtime_input_threads(const ls_runtime *rt)
{
    return rt->input;
}

uint64_t lsi_runtime_seed(const ls_runtime *rt)
{
    return rt->settings.seed;
}

size_t ls_settings(ls_runtime *rt, const ls_setting **out)
{
    rt = or_default(rt);
    if (rt == NULL || out == NULL) {
        return 0;
    }
    *out = rt->settings.shown;
    return LSI_COUNT_OF(rt->settings.shown);
}
