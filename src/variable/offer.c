/*
 * What replicas show each other. Others may look at it after this replica has failed and
 * gone on, so nothing of it stands on a stack or belongs to the caller: it lives until
 * the run ends, and nobody has to wait for those who look.
 */
#include "variable/variable.h"

static void release_shown(void *t)
{
    ls_tensor_release(t);
}

bool lsi_show_tensor(ls_context *c, ls_tensor *t)
{
    return lsi_context_keep(c, ls_tensor_retain(t), release_shown);
}

void *lsi_show_room(ls_context *c, size_t bytes)
{
    const ls_shape shape = LS_SHAPE((int64_t)bytes);
    ls_tensor *t = lsi_context_tensor(c, LS_U8, &shape);

    if (t == NULL || !lsi_show_tensor(c, t)) {
        return NULL;
    }
    memset(t->data, 0, bytes);
    return t->data;
}

bool lsi_offers_meet(ls_context *c, const char *what, uint64_t detail, void *mine,
                     lsi_offers *o)
{
    o->n = lsi_replica_peers(c);
    o->all =
        o->n <= LSI_FEW_OFFERS ? o->few : lsi_show_room(c, (size_t)o->n * sizeof(void *));
    return o->all != NULL && lsi_meet(c, what, detail, mine, o->all);
}
