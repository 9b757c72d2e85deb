/* zip: one element of each input, as a tuple or a dict; it ends with the shortest. */
#include "data/data.h"

#include <string.h>

struct zip {
    ls_dataset base;
    char **keys; // of the inputs; NULL: a tuple
};

static const char *const *keys_of(const ls_dataset *d)
{
    return (const char *const *)((const struct zip *)d)->keys;
}

struct zip_iterator {
    lsi_iterator base;
    bool over;
    ls_error why; // of a later input; not on the stack, which nested iterators share
    lsi_iterator *inputs[];
};

/*
 * Every input is read, also after one failed or ended, so that all stay at the same
 * position: the call after a failure returns elements that belong together.
 */
static ls_status next_of_each(struct zip_iterator *z, ls_value **items, ls_error *err)
{
    const int n = z->base.dataset->ninputs;
    ls_status st = LS_OK;

    for (int i = 0; i < n; i++) {
        const ls_status one =
            lsi_iterator_next(z->inputs[i], &items[i], st == LS_OK ? err : &z->why);

        if (one == LS_OUT_OF_RANGE) {
            z->over = true;
        } else if (one != LS_OK && st == LS_OK) {
            st = one;
        }
    }
    return st == LS_OK && z->over ? LS_OUT_OF_RANGE : st;
}

static ls_status next_zip(lsi_iterator *it, ls_value **out, ls_error *err)
{
    struct zip_iterator *z = (struct zip_iterator *)it;
    const size_t n = (size_t)it->dataset->ninputs;
    ls_value **items = NULL;
    ls_status st;

    if (z->over) {
        return LS_OUT_OF_RANGE;
    }
    items = lsi_alloc(n, sizeof(ls_value *));
    if (items == NULL) {
        return lsi_fail_memory(err, "a tuple", n * sizeof(ls_value *));
    }
    st = next_of_each(z, items, err);
    if (st == LS_OK) {
        st = keys_of(it->dataset) == NULL
                 ? ls_value_tuple(items, n, out, err)
                 : ls_value_dict(keys_of(it->dataset), items, n, out, err);
    }
    lsi_value_release_all(items, n);
    return st;
}

static void close_zip(lsi_iterator *it)
{
    for (int i = 0; i < it->dataset->ninputs; i++) {
        lsi_iterator_close(((struct zip_iterator *)it)->inputs[i]);
    }
}

static ls_status save_zip(lsi_iterator *it, lsi_state_writer *w, ls_error *err)
{
    struct zip_iterator *z = (struct zip_iterator *)it;
    ls_status st = LS_OK;

    lsi_state_write_bool(w, z->over);
    for (int i = 0; i < it->dataset->ninputs && st == LS_OK; i++) {
        st = lsi_iterator_save(z->inputs[i], w, err);
    }
    return st;
}

static ls_status restore_zip(lsi_iterator *it, lsi_state_reader *r, ls_error *err)
{
    struct zip_iterator *z = (struct zip_iterator *)it;
    ls_status st = lsi_state_read_bool(r, &z->over, err);

    for (int i = 0; i < it->dataset->ninputs && st == LS_OK; i++) {
        st = lsi_iterator_restore(z->inputs[i], r, err);
    }
    return st;
}

static ls_status iterate_zip(ls_dataset *d, const lsi_opening *how, lsi_iterator **out,
                             ls_error *err)
{
    static const lsi_iterator_ops ops = {
        .next = next_zip, .save = save_zip, .restore = restore_zip, .close = close_zip};
    const size_t size =
        sizeof(struct zip_iterator) + (size_t)d->ninputs * sizeof(lsi_iterator *);
    lsi_iterator *it = NULL;
    ls_status st = lsi_iterator_new(&ops, size, d, how, &it, err);

    if (st == LS_OK) {
        ((struct zip_iterator *)it)->why = (ls_error)LS_ERROR_INIT;
    }
    for (int i = 0; i < d->ninputs && st == LS_OK; i++) {
        st = lsi_iterator_open_input(it, d->inputs[i], lsi_lineage_below(it, (uint64_t)i),
                                     &((struct zip_iterator *)it)->inputs[i], err);
    }
    if (st == LS_OK) {
        *out = it;
    } else {
        lsi_iterator_close(it);
    }
    return st;
}

static ls_dataset *build_zip(const char *const *keys, ls_dataset *const *ds, size_t n);

static ls_dataset *rebuild_zip(const ls_dataset *d, ls_dataset *const *inputs)
{
    for (int i = 0; i < d->ninputs; i++) {
        (void)ls_dataset_retain(inputs[i]);
    }
    return build_zip(keys_of(d), inputs, (size_t)d->ninputs);
}

/* Unknown if one is unknown; else the smallest of those that are finite. */
static int64_t shortest_size(ls_dataset *const *ds, size_t n)
{
    int64_t size = LS_INFINITE;

    for (size_t i = 0; i < n; i++) {
        const int64_t one = ds[i]->cardinality;

        if (one == LS_UNKNOWN_SIZE) {
            return one;
        }
        if (one >= 0 && (size < 0 || one < size)) {
            size = one;
        }
    }
    return size;
}

static void destroy_zip(ls_dataset *d)
{
    struct zip *z = (struct zip *)d;

    for (int i = 0; z->keys != NULL && i < d->ninputs; i++) {
        lsi_free(z->keys[i]);
    }
    lsi_free(z->keys);
}

/* Copies the keys, which are part of the fingerprint. */
static ls_status keep_keys(struct zip *z, const char *const *keys, size_t n,
                           ls_error *err)
{
    z->keys = lsi_alloc(n, sizeof(char *));
    for (size_t i = 0; i < n; i++) {
        if (keys[i] == NULL) {
            return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                 "zip_dict: the key of dataset %zu of %zu is NULL", i, n);
        }
        if (z->keys == NULL || (z->keys[i] = lsi_strdup(keys[i])) == NULL) {
            return lsi_fail_memory(err, "the keys of a zip", n * sizeof(char *));
        }
        for (const char *c = keys[i]; *c != '\0'; c++) {
            lsi_dataset_mix_parameter(&z->base, (uint64_t)(unsigned char)*c);
        }
        lsi_dataset_mix_parameter(&z->base, 0);
    }
    return LS_OK;
}

static ls_dataset *build_zip(const char *const *keys, ls_dataset *const *ds, size_t n)
{
    static const lsi_dataset_ops ops = {.kind = "zip",
                                        .iterate = iterate_zip,
                                        .rebuild = rebuild_zip,
                                        .destroy = destroy_zip};
    ls_dataset *made = lsi_dataset_new(&ops, sizeof(struct zip), ds, (int)n);
    ls_error err = LS_ERROR_INIT;
    ls_spec **specs = NULL, *spec = NULL;
    ls_status st;

    if (lsi_dataset_bad(made)) {
        return made;
    }
    specs = lsi_alloc(n, sizeof(ls_spec *));
    if (specs == NULL) {
        (void)lsi_fail_memory(&err, "zip", n * sizeof(ls_spec *));
        return lsi_dataset_fail_with(made, &err);
    }
    for (size_t i = 0; i < n; i++) {
        specs[i] = ds[i]->spec;
    }
    st = keys != NULL ? keep_keys((struct zip *)made, keys, n, &err) : LS_OK;
    if (st == LS_OK) {
        st = keys == NULL ? ls_spec_tuple(specs, n, &spec, &err)
                          : ls_spec_dict(keys, specs, n, &spec, &err);
    }
    lsi_free(specs);
    return lsi_dataset_done(made, st, spec, shortest_size(ds, n), &err);
}

/* Fails if there is nothing to zip. The arguments are taken over. */
static ls_dataset *check_and_build(const char *what, const char *const *keys,
                                   ls_dataset **ds, size_t n, bool given)
{
    if (ds == NULL || n == 0 || n > INT16_MAX || !given) {
        for (size_t i = 0; ds != NULL && i < n; i++) {
            ls_dataset_release(ds[i]);
        }
        return lsi_dataset_failed(LS_INVALID_ARGUMENT, LS_KIND_OP,
                                  "%s: %zu datasets%s; give between 1 and %d", what, n,
                                  given ? "" : " without keys", INT16_MAX);
    }
    return build_zip(keys, ds, n);
}

ls_dataset *ls_dataset_zip(ls_dataset **ds, size_t n)
{
    return check_and_build("zip", NULL, ds, n, true);
}

ls_dataset *ls_dataset_zip_dict(const char *const *keys, ls_dataset **ds, size_t n)
{
    return check_and_build("zip_dict", keys, ds, n, keys != NULL);
}

ls_dataset *ls_dataset_enumerate(ls_dataset *d, int64_t start)
{
    return build_zip(NULL, (ls_dataset *[]){ls_dataset_range(start, INT64_MAX, 1), d}, 2);
}
