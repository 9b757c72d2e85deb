/*
 * Rewrites for several workers: random operators of all workers must use the same seeds,
 * or the shards of workers overlap; a cache file must be different on every worker.
 */
#include "input/input.h"

#include <stdio.h>
#include <string.h>

bool lsi_graph_drawn_seeds(const ls_dataset *d, lsi_seeds *out)
{
    for (int i = 0; i < d->ninputs; i++) {
        if (lsi_graph_drawn_seeds(d->inputs[i], out)) {
            return true;
        }
    }
    return lsi_dataset_drew_seeds(d, out);
}

static ls_status reseed_node(void *user, ls_dataset *node, ls_dataset *const *inputs,
                             ls_dataset **out, ls_error *err)
{
    lsi_seeds *next = user;
    lsi_seeds drawn;

    if (!lsi_dataset_drew_seeds(node, &drawn)) {
        return LS_OK;
    }
    const lsi_seeds s = *next;
    next->b++; // another second half is another stream
    return lsi_graph_made(lsi_dataset_with_seeds(node, inputs, s), out, err);
}

/* Replaces a graph by the rewritten one. */
static ls_status replace_graph(ls_dataset **d, lsi_graph_fn fn, void *user, ls_error *err)
{
    ls_dataset *to = NULL;
    const ls_status st = lsi_graph_rewrite(*d, fn, user, &to, err);

    if (st == LS_OK) {
        ls_dataset_release(*d);
        *d = to;
    }
    return st;
}

ls_status lsi_graph_share_seeds(ls_dataset **d, lsi_seeds first, ls_error *err)
{
    return replace_graph(d, reseed_node, &first, err);
}

struct part {
    int workers, worker;
};

static ls_status rename_cache(void *user, ls_dataset *node, ls_dataset *const *inputs,
                              ls_dataset **out, ls_error *err)
{
    const struct part *p = user;
    const char *file = lsi_dataset_cache_file(node);
    ls_status st;

    if (file == NULL) {
        return LS_OK;
    }
    const size_t size = strlen(file) + 32;
    char *name = lsi_alloc(size, 1);
    if (name == NULL) {
        return lsi_fail_memory(err, "a cache's name", size);
    }
    (void)snprintf(name, size, "%s-%d-of-%d", file, p->worker, p->workers);
    st = lsi_graph_made(ls_dataset_cache(ls_dataset_retain(inputs[0]), name), out, err);
    lsi_free(name);
    return st;
}

ls_status lsi_graph_part_caches(ls_dataset **d, int workers, int worker, ls_error *err)
{
    struct part p = {workers, worker};

    return replace_graph(d, rename_cache, &p, err);
}
