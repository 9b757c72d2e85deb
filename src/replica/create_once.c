/*
 * Variables created inside of replicas: replica 0 creates them, the others get the same
 * ones, by canonical name and order. A variable is an object of a higher layer: this file
 * knows how to retain and release one, not what it is.
 */
#include "replica/run.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

/* "foo_1/bar_0" is canonically "foo/bar": suffixes may differ per replica. */
static char *canonical_name(const char *name)
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

void lsi_created_pause(struct lsi_run *run, unsigned met)
{
    lsi_mutex_lock(&run->created_lock);
    run->first_met = met;
    lsi_cond_broadcast(&run->created_more);
    lsi_mutex_unlock(&run->created_lock);
}

void lsi_created_forget(struct lsi_run *run)
{
    for (size_t i = 0; i < run->ncreated; i++) {
        lsi_free(run->created[i].name);
        lsi_free(run->created[i].given);
        run->created[i].object.ops->release(run->created[i].object.self);
    }
    run->ncreated = 0;
}

/* Appends an object that replica 0 created; owns `name` then, also on failure. */
static ls_status add_created(struct lsi_run *run, char *name, const lsi_object *object,
                             ls_error *err)
{
    bool *given = lsi_alloc((size_t)run->n, sizeof *given);
    ls_status st = LS_OK;

    lsi_mutex_lock(&run->created_lock);
    if (given == NULL) {
        st = lsi_fail_memory(err, "a variable created in a replica", (size_t)run->n);
    } else if (run->ncreated == run->created_room) {
        const size_t room = run->created_room == 0 ? 8 : 2 * run->created_room;
        lsi_created *grown =
            lsi_realloc(run->created, run->ncreated, room, sizeof *grown);

        if (grown == NULL) {
            st = lsi_fail_memory(err, "a variable created in a replica", sizeof *grown);
        } else {
            run->created = grown;
            run->created_room = room;
        }
    }
    if (st == LS_OK) {
        run->created[run->ncreated++] =
            (lsi_created){name, {object->ops->retain(object->self), object->ops}, given};
        lsi_cond_broadcast(&run->created_more);
    }
    lsi_mutex_unlock(&run->created_lock);
    if (st != LS_OK) {
        lsi_free(given);
        lsi_free(name);
    }
    return st;
}

/* The first object of that name not yet received by this replica; NULL: none so far. */
static lsi_created *find_created(struct lsi_run *run, int replica, const char *name)
{
    for (size_t i = 0; i < run->ncreated; i++) {
        if (!run->created[i].given[replica] && strcmp(run->created[i].name, name) == 0) {
            return &run->created[i];
        }
    }
    return NULL;
}

/* Waits until replica 0 has created the object; fails if it does not create it. */
static ls_status wait_for_created(struct lsi_run *run, lsi_replica *r, const char *name,
                                  void **out, ls_error *err)
{
    lsi_created *found;

    lsi_mutex_lock(&run->created_lock);
    while ((found = find_created(run, r->index, name)) == NULL &&
           run->first_met <= r->met && !lsi_comm_broken(r->local)) {
        (void)lsi_cond_wait(&run->created_more, &run->created_lock,
                            lsi_deadline_in_ms(50));
    }
    if (found != NULL) {
        *out = found->object.ops->retain(found->object.self);
        found->given[r->index] = true;
    }
    lsi_mutex_unlock(&run->created_lock);
    if (found == NULL) {
        return lsi_fail_kind(err, LS_FAILED_PRECONDITION, LS_KIND_RUNTIME,
                             "variable: replica %d creates '%s', which replica 0 has not "
                             "created: every replica must create the same variables in "
                             "the same order",
                             r->index, name);
    }
    return LS_OK;
}

ls_status lsi_create_once(ls_context *c, const char *name, lsi_object_fn create,
                          void *arg, const lsi_object_ops *ops, void **out, ls_error *err)
{
    lsi_replica *r = lsi_replica_of(c);
    lsi_object object = {NULL, ops};
    char *key = NULL;
    ls_status st = LS_OK;

    if (lsi_local_peers(c) == 1) {
        return create(arg, out, err);
    }
    key = canonical_name(name);
    if (key == NULL) {
        return lsi_fail_memory(err, "a name", strlen(name));
    }
    lsi_turn_wait(r->run, r->index);
    if (r->index != 0) {
        st = wait_for_created(r->run, r, key, out, err);
        lsi_free(key);
        return st;
    }
    st = create(arg, &object.self, err);
    if (st != LS_OK) {
        lsi_free(key);
        return st;
    }
    st = add_created(r->run, key, &object, err);
    if (st == LS_OK) {
        *out = object.self;
    } else {
        ops->release(object.self);
    }
    return st;
}
