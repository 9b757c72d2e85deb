/* The failure that broke a group: the first one, read without a lock once it is set. */
#include "collective/backend.h"

static const ls_error none = LS_ERROR_INIT;

void lsi_failure_init(lsi_failure *f)
{
    atomic_init(&f->set, false);
    lsi_mutex_init(&f->lock);
    f->why = none;
}

void lsi_failure_destroy(lsi_failure *f)
{
    lsi_mutex_destroy(&f->lock);
}

void lsi_failure_forget(lsi_failure *f)
{
    lsi_mutex_lock(&f->lock);
    atomic_store(&f->set, false);
    f->why = none;
    lsi_mutex_unlock(&f->lock);
}

void lsi_failure_set(lsi_failure *f, const ls_error *why, int rank)
{
    lsi_mutex_lock(&f->lock);
    if (!atomic_load(&f->set)) {
        (void)lsi_fail_again(&f->why, why);
        if (f->why.rank < 0) {
            f->why.rank = rank;
        }
        atomic_store(&f->set, true);
    }
    lsi_mutex_unlock(&f->lock);
}

bool lsi_failure_get(lsi_failure *f, ls_error *why)
{
    if (!atomic_load_explicit(&f->set, memory_order_acquire)) {
        return false;
    }
    if (why != NULL) {
        (void)lsi_fail_again(why, &f->why);
    }
    return true;
}
