/*
 * Variables made inside of replicas: replica 0 makes them, the others are given the same
 * ones, by canonical name and order.
 */
#include "replica/frame.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

/* "foo_1/bar_0" is canonically "foo/bar": what tells replicas apart is dropped. */
static char *canonical(const char *name)
{
    char *out = lsi_strdup(name);
    size_t to = 0;

    for (size_t i = 0; out != NULL && name[i] != '\0'; i++) {
        const bool digit = name[i] == '_' && isdigit((unsigned char)name[i + 1]);

        if (digit && (name[i + 2] == '/' || name[i + 2] == '\0')) {
            i++;
            continue;
        }
        out[to++] = name[i];
    }
    if (out != NULL) {
        out[to] = '\0';
    }
    return out;
}

void lsi_made_pause(struct lsi_frame *f, unsigned met)
{
    lsi_mutex_lock(&f->made_lock);
    f->first_met = met;
    lsi_cond_broadcast(&f->made_more);
    lsi_mutex_unlock(&f->made_lock);
}

void lsi_made_forget(struct lsi_frame *f)
{
    for (size_t i = 0; i < f->nmade; i++) {
        lsi_free(f->made[i].name);
        lsi_free(f->made[i].given);
        ls_variable_release(f->made[i].variable);
    }
    f->nmade = 0;
}

/* Takes `name` over. */
static ls_status add(struct lsi_frame *f, char *name, ls_variable *v, ls_error *err)
{
    bool *given = lsi_alloc((size_t)f->n, sizeof *given);
    ls_status st = LS_OK;

    lsi_mutex_lock(&f->made_lock);
    if (given == NULL) {
        st = lsi_fail_memory(err, "a variable made in a replica", (size_t)f->n);
    } else if (f->nmade == f->made_room) {
        const size_t room = f->made_room == 0 ? 8 : 2 * f->made_room;
        lsi_made *grown = lsi_realloc(f->made, f->nmade, room, sizeof *grown);

        if (grown == NULL) {
            st = lsi_fail_memory(err, "a variable made in a replica", sizeof *grown);
        } else {
            f->made = grown;
            f->made_room = room;
        }
    }
    if (st == LS_OK) {
        f->made[f->nmade++] = (lsi_made){name, ls_variable_retain(v), given};
        lsi_cond_broadcast(&f->made_more);
    }
    lsi_mutex_unlock(&f->made_lock);
    if (st != LS_OK) {
        lsi_free(given);
        lsi_free(name);
    }
    return st;
}

/* The first of that name that this replica has not been given yet; NULL: none so far. */
static lsi_made *find(struct lsi_frame *f, int replica, const char *name)
{
    for (size_t i = 0; i < f->nmade; i++) {
        if (!f->made[i].given[replica] && strcmp(f->made[i].name, name) == 0) {
            return &f->made[i];
        }
    }
    return NULL;
}

/* Waits until replica 0 has made it, or cannot any more. */
static ls_status take(struct lsi_frame *f, lsi_replica *r, const char *name,
                      ls_variable **out, ls_error *err)
{
    lsi_made *found;

    lsi_mutex_lock(&f->made_lock);
    while ((found = find(f, r->index, name)) == NULL && f->first_met <= r->met &&
           !lsi_comm_broken(r->comm)) {
        (void)lsi_cond_wait(&f->made_more, &f->made_lock, lsi_deadline_in_ms(50));
    }
    if (found != NULL) {
        *out = ls_variable_retain(found->variable);
        found->given[r->index] = true;
    }
    lsi_mutex_unlock(&f->made_lock);
    if (found == NULL) {
        return lsi_fail_kind(err, LS_FAILED_PRECONDITION, LS_KIND_RUNTIME,
                             "variable: replica %d makes '%s', which replica 0 has not "
                             "made: every replica must make the same variables in the "
                             "same order",
                             r->index, name);
    }
    return LS_OK;
}

ls_status lsi_made_once(ls_context *c, const char *name, lsi_maker make, void *arg,
                        ls_variable **out, ls_error *err)
{
    lsi_replica *r = lsi_replica_of(c);
    char *key = NULL;
    ls_status st = LS_OK;

    if (lsi_replica_peers(c) == 1) {
        return make(arg, out, err);
    }
    key = canonical(name);
    if (key == NULL) {
        return lsi_fail_memory(err, "a name", strlen(name));
    }
    lsi_turn_wait(r->frame, r->index);
    if (r->index != 0) {
        st = take(r->frame, r, key, out, err);
        lsi_free(key);
        return st;
    }
    st = make(arg, out, err);
    if (st != LS_OK) {
        lsi_free(key);
        return st;
    }
    st = add(r->frame, key, *out, err);
    if (st != LS_OK) {
        ls_variable_release(*out);
        *out = NULL;
    }
    return st;
}
