/* Snapshots of a training: bytes of variables and slots. */
#include "ls_snapshot.h"

void lst_snapshot_bytes(lst_snapshot *r, const void *bytes, size_t n)
{
    if (r->used + n > r->room) {
        const size_t room = 2 * (r->used + n);
        unsigned char *grown = realloc(r->bytes, room);

        if (grown == NULL) {
            LST_CHECK(grown != NULL);
            return;
        }
        r->bytes = grown;
        r->room = room;
    }
    if (n > 0) {
        memcpy(r->bytes + r->used, bytes, n);
    }
    r->used += n;
}

void lst_snapshot_free(lst_snapshot *r)
{
    free(r->bytes);
    *r = (lst_snapshot){0};
}

void lst_snapshot_value(lst_snapshot *r, ls_variable *v)
{
    ls_error err = LS_ERROR_INIT;
    ls_tensor *t = NULL;
    size_t n;
    void *bytes;

    LST_OK(ls_variable_value(v, &t, &err));
    n = ls_tensor_bytes(t);
    bytes = calloc(n + 1, 1);
    LST_OK(ls_tensor_read(t, bytes, n, &err));
    lst_snapshot_bytes(r, &n, sizeof n);
    lst_snapshot_bytes(r, bytes, n);
    free(bytes);
    ls_tensor_release(t);
}

static void record_copy(lst_snapshot *r, ls_variable *v, int k)
{
    const size_t n = ls_variable_components(v);

    lst_snapshot_value(r, ls_variable_component(v, n == 1 ? 0 : (size_t)k));
}

void lst_snapshot_copies(lst_snapshot *r, ls_variable *const *v, size_t n,
                         const ls_optimizer *o, int k)
{
    static const char *const slots[] = {"momentum", "velocity", "velocity_hat",
                                        "average_gradient", "accumulator"};

    for (size_t i = 0; i < n; i++) {
        record_copy(r, v[i], k);
        for (size_t s = 0; o != NULL && s < LSI_COUNT_OF(slots); s++) {
            ls_variable *slot = ls_optimizer_slot(o, v[i], slots[s]);

            if (slot != NULL) {
                lst_snapshot_bytes(r, slots[s], strlen(slots[s]));
                record_copy(r, slot, k);
            }
        }
    }
}

bool lst_snapshot_same(const lst_snapshot *a, const lst_snapshot *b)
{
    return a->used > 0 && a->used == b->used && memcmp(a->bytes, b->bytes, a->used) == 0;
}
