/* map: a function of the user applied to each element, one call after the other. */
#include "data/map.h"

#include <string.h>

struct map {
    lsi_unary_iterator unary;
    ls_context *context;
    uint64_t number; // of the next element
};

ls_status lsi_map_call(const lsi_iterator *it, uint64_t number, ls_context **c,
                       ls_value *element, ls_value **out, ls_error *err)
{
    const lsi_map_node *node = (const lsi_map_node *)it->dataset;
    ls_value *made = NULL;
    ls_status st = lsi_user_function_call(it, number, c, node->fn, node->user, element,
                                          "map", &made, err);

    if (st == LS_OK) {
        st = lsi_spec_check(node->base.spec, made, err);
    }
    if (st == LS_OK) {
        *out = made;
    } else {
        ls_value_release(made);
    }
    return st;
}

static ls_status next_mapped(lsi_iterator *it, ls_value **out, ls_error *err)
{
    struct map *m = (struct map *)it;
    ls_value *element = NULL;
    ls_status st = lsi_iterator_next(m->unary.input, &element, err);

    if (st == LS_OK) {
        st = lsi_map_call(it, m->number++, &m->context, element, out, err);
        ls_value_release(element);
    }
    return st;
}

static ls_status save_map(lsi_iterator *it, lsi_state_writer *w, ls_error *err)
{
    lsi_state_write_u64(w, ((struct map *)it)->number);
    return lsi_iterator_save(((struct map *)it)->unary.input, w, err);
}

static ls_status restore_map(lsi_iterator *it, lsi_state_reader *r, ls_error *err)
{
    struct map *m = (struct map *)it;
    const ls_status st = lsi_state_read_u64(r, &m->number, err);

    return st == LS_OK ? lsi_iterator_restore(m->unary.input, r, err) : st;
}

static void close_map(lsi_iterator *it)
{
    ls_context_close(((struct map *)it)->context);
    lsi_unary_iterator_close(it);
}

static ls_status iterate_map(ls_dataset *d, const lsi_opening *how, lsi_iterator **out,
                             ls_error *err)
{
    static const lsi_iterator_ops ops = {.next = next_mapped,
                                         .save = save_map,
                                         .restore = restore_map,
                                         .close = close_map};

    return lsi_function_iterator_new(&ops, sizeof(struct map), d, how, out, err);
}

/* ---- the node ---- */

static void destroy_map(ls_dataset *d)
{
    lsi_free(((lsi_map_node *)d)->reader);
}

/* The options with this library's size, whichever size the caller was compiled with. */
static ls_map_options options_of(const ls_map_options *opts)
{
    ls_map_options o = LS_MAP_OPTIONS_INIT;

    if (opts != NULL) {
        memcpy(&o, opts, LSI_MIN(opts->struct_size, sizeof o));
    }
    return o;
}

static ls_dataset *rebuild_map(const ls_dataset *d, ls_dataset *const *inputs)
{
    const lsi_map_node *node = (const lsi_map_node *)d;
    ls_map_options o = LS_MAP_OPTIONS_INIT;

    o.spec = d->spec;
    o.parallel = node->parallel;
    o.unordered = node->unordered;
    o.stateful = d->stateful;
    o.reader = node->reader;
    return ls_dataset_map(ls_dataset_retain(inputs[0]), node->fn, node->user, &o);
}

static ls_dataset *complete_map(ls_dataset *made, const ls_map_options *o)
{
    lsi_map_node *node = (lsi_map_node *)made;
    ls_error e = LS_ERROR_INIT;
    ls_spec *spec = ls_spec_retain(o->spec);
    ls_status st = spec != NULL ? LS_OK : lsi_spec_unknown(&spec, &e);

    if (st == LS_OK && o->reader != NULL) {
        node->reader = lsi_strdup(o->reader);
        made->reader = node->reader;
        if (node->reader == NULL) {
            st = lsi_fail_memory(&e, "the name of a reader", strlen(o->reader));
        }
    }
    return lsi_dataset_done(made, st, spec, made->inputs[0]->cardinality, &e);
}

ls_dataset *ls_dataset_map(ls_dataset *d, ls_map_fn fn, void *user,
                           const ls_map_options *opts)
{
    static const lsi_dataset_ops serial = {.kind = "map",
                                           .iterate = iterate_map,
                                           .rebuild = rebuild_map,
                                           .destroy = destroy_map};
    static const lsi_dataset_ops parallel = {.kind = "parallel_map",
                                             .iterate = lsi_parallel_map_iterate,
                                             .rebuild = rebuild_map,
                                             .destroy = destroy_map};
    const ls_map_options o = options_of(opts);
    ls_dataset *made = lsi_dataset_new(o.parallel == 0 ? &serial : &parallel,
                                       sizeof(lsi_map_node), &d, 1);
    lsi_map_node *node = (lsi_map_node *)made;

    if (lsi_dataset_bad(made)) {
        return made;
    }
    if (fn == NULL) {
        return lsi_dataset_fail(made, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                "map: the function is NULL");
    }
    if (o.parallel < LS_AUTOTUNE) {
        return lsi_dataset_fail(made, LS_INVALID_ARGUMENT, LS_KIND_OP,
                                "map: %d calls at once; 0 means one after the other, "
                                "LS_AUTOTUNE lets the library choose",
                                o.parallel);
    }
    node->fn = fn;
    node->user = user;
    node->parallel = o.parallel;
    node->unordered = o.unordered || made->options.unordered;
    made->stateful = o.stateful;
    return complete_map(made, &o);
}
