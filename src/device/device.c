/* A logical device: memory from its pool, copies, its name and threads. */
#include "device/device.h"

#include "device/pool.h"

/*
 * Blocks in use keep the runtime alive: a tensor may outlive the last reference of the
 * program. One reference for all blocks of a device, so that a step pays nothing for it.
 */
LSI_HOT void *lsi_device_alloc(ls_device *dev, size_t bytes)
{
    bool first = false;
    void *ptr = lsi_pool_alloc(dev->pool, bytes, &first);

    if (first) {
        (void)ls_runtime_retain(dev->runtime);
    }
    return ptr;
}

LSI_HOT void lsi_device_free(ls_device *dev, void *ptr)
{
    if (ptr != NULL && lsi_pool_free(dev->pool, ptr)) {
        ls_runtime_release(dev->runtime);
    }
}

void lsi_device_enter(ls_device *dev)
{
    lsi_pool_enter(dev->pool);
}

void lsi_device_step(ls_device *dev)
{
    lsi_pool_step(dev->pool);
}

void lsi_device_leave(ls_device *dev)
{
    lsi_pool_leave(dev->pool);
}

void lsi_device_copy(ls_device *dev, void *to, const void *from, size_t bytes)
{
    (void)dev; // the memory of every device there is so far is the host's
    if (bytes > 0) {
        memmove(to, from, bytes);
    }
}

bool lsi_device_locate(const ls_device *dev, const void *ptr, size_t bytes,
                       lsi_memory_location *out)
{
    const lsi_memory_provider *from = lsi_pool_provider(dev->pool);

    return from->locate != NULL && from->locate(from->self, ptr, bytes, out);
}

void lsi_device_pool_stats(ls_device *dev, uint64_t *system_allocs, size_t *bytes_held)
{
    lsi_pool_stats stats;

    lsi_pool_stats_get(dev->pool, &stats);
    if (system_allocs != NULL) {
        *system_allocs = stats.system_allocs;
    }
    if (bytes_held != NULL) {
        *bytes_held = stats.bytes_held;
    }
}

const char *ls_device_name(const ls_device *device)
{
    return device != NULL ? device->name : "";
}

int ls_device_threads(const ls_device *device)
{
    return device != NULL ? lsi_team_size(device->team) : 0;
}
