/* Statements that build datasets: sources, and every transformation. */
#include "random_machine.h"

/* The `user` argument of the functions: which of them to be. */
static const int KINDS[] = {0, 1, 2, 3, 4, 5, 6, 7};

static void *kind_of(const statement *s)
{
    const int64_t k = number(s, "fn") + number(s, "pred");

    return (void *)(uintptr_t)&KINDS[(uint64_t)k % LSI_COUNT_OF(KINDS)];
}

/* The first tensor of an element; NULL: it has none. */
static ls_tensor *first_tensor(const ls_value *v)
{
    ls_tensor *t = ls_value_as_tensor(v);

    for (size_t i = 0; t == NULL && i < ls_value_size(v); i++) {
        t = first_tensor(ls_value_child(v, i));
    }
    return t;
}

/* The first number of an element, small and not negative. */
static int64_t first_number(const ls_value *v)
{
    const ls_tensor *t = first_tensor(v);

    if (t == NULL || t->count == 0 || t->data == NULL || t->dtype == LS_STRING) {
        return 0;
    }
    const double x = fabs(lsi_element(t, 0));
    return x < 1e6 ? (int64_t)x : 1;
}

static ls_value *wrapped(ls_context *c, ls_value *element, bool dict)
{
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;
    ls_value *const both[] = {element, element};
    const ls_status st =
        dict ? ls_value_dict((const char *const[]){"b", "a"}, both, 2, &out, &err)
             : ls_value_tuple(both, 2, &out, &err);

    if (st != LS_OK) {
        (void)ls_context_fail(c, st, "%s", err.message);
        return NULL;
    }
    return ls_value_adopt(c, out);
}

static ls_value *map_element(ls_context *c, ls_value *element, void *user)
{
    ls_tensor *t = first_tensor(element);

    switch (*(const int *)user) {
    case 0:
        return element;
    case 1:
        return t == NULL ? element : ls_value_of(c, ls_cast(c, t, LS_F32));
    case 2:
        return wrapped(c, element, false);
    case 3: // some elements cannot be mapped
        if (first_number(element) % 3 == 2) {
            (void)ls_context_fail(c, LS_DATA_LOSS, "element of %d",
                                  (int)first_number(element));
            return NULL;
        }
        return element;
    case 4:
        return t == NULL
                   ? element
                   : ls_value_of(c, ls_sum(c, ls_cast(c, t, LS_F64), NULL, 0, false));
    case 5:
        return wrapped(c, element, true);
    case 6: // lengths that differ
        return ls_value_of(
            c, ls_constant(c, LS_I32, LS_SHAPE(first_number(element) % 4), NULL));
    default:
        return ls_value_of(c, ls_add(c, ls_cast(c, t, LS_F32), ls_constant_f32(c, 1)));
    }
}

static ls_value *choose_element(ls_context *c, ls_value *element, void *user)
{
    const int kind = *(const int *)user;
    const bool yes = kind == 1 || (kind != 2 && first_number(element) % 2 == 0);

    if (kind == 3 && first_number(element) == 3) {
        (void)ls_context_fail(c, LS_DATA_LOSS, "no answer for 3");
        return NULL;
    }
    if (kind == 4) { // not a bool
        return ls_value_of(c, ls_constant_i64(c, 1));
    }
    return ls_value_of(c, ls_constant(c, LS_BOOL, LS_SCALAR, &yes));
}

static ls_dataset *dataset_of_element(ls_value *element, void *user)
{
    ls_dataset *inner = ls_value_as_dataset(element);

    if (inner != NULL) {
        return ls_dataset_retain(inner);
    }
    switch (*(const int *)user) {
    case 0:
    case 1:
        return ls_dataset_range(0, first_number(element) % 4, 1);
    case 2:
        return ls_tensor_ndim(first_tensor(element)) == 0 ? ls_dataset_range(0, 2, 1)
                                                          : ls_dataset_slices(element);
    case 3:
        return first_number(element) == 2 ? ls_dataset_failed(LS_NOT_FOUND, "none for 2")
                                          : ls_dataset_tensors(element);
    default:
        return ls_dataset_tensors(element);
    }
}

static void give_dataset(place *at, ls_dataset *d)
{
    machine *m = at->m;
    ls_error err = LS_ERROR_INIT;
    entry e = {.kind = NOTE, .statement = at->at, .replica = -1, .bytes = 8};
    const int64_t cardinality = d == NULL ? 0 : ls_dataset_cardinality(d);

    if (d == NULL) {
        return;
    }
    ended(at, ls_dataset_status(d, &err), &err);
    if (!m->loose) {
        journal_put(&at->log, e, &cardinality);
    }
    if (m->ndatasets < MOST_DATASETS) {
        m->datasets[m->ndatasets++] = d;
    } else {
        ls_dataset_release(d);
    }
}

/* A reference to the k-th dataset, for a builder; a small range if there is none. */
static ls_dataset *dataset_at(place *at, int64_t k)
{
    machine *m = at->m;

    // The last one mostly, so that pipelines grow.
    return m->ndatasets == 0
               ? ls_dataset_range(0, 6, 1)
               : ls_dataset_retain(
                     m->datasets[m->ndatasets - 1 - (uint64_t)k % m->ndatasets]);
}

/* Elements of the dataset are tensors with at least so many axes, of whole numbers. */
static bool elements_are(const ls_dataset *d, int axes, bool whole)
{
    const ls_spec *spec = ls_dataset_spec(d);

    return spec != NULL && ls_spec_kind_of(spec) == LS_SPEC_TENSOR &&
           ls_spec_ndim(spec) >= axes &&
           (!whole || ls_spec_dtype(spec) == LS_I64 || ls_spec_dtype(spec) == LS_I32);
}

static void run_range(place *at, const statement *s)
{
    const int64_t step = number(s, "step");

    const int64_t begin = number(s, "begin"), length = number(s, "length");
    const int64_t end = begin > INT64_MAX - length ? INT64_MAX : begin + length;

    give_dataset(at, ls_dataset_range(begin, end, step == 0 ? 1 : step - 2));
}

static void run_slices(place *at, const statement *s)
{
    ls_shape shape = shape_of(s);
    const bool rows = number(s, "whole") == 0;

    if (rows && shape.ndim == 0 && number(s, "wild") == 0) {
        shape.ndim = 1;
    }
    ls_tensor *t =
        host_tensor(at->m, dtype_of(number(s, "dtype")), &shape, number(s, "seed"));
    ls_error err = LS_ERROR_INIT;
    ls_value *v = NULL, *both = NULL;

    if (ls_value_tensor(t, &v, &err) == LS_OK &&
        ls_value_tuple((ls_value *[]){v, v}, 2, &both, &err) == LS_OK) {
        ls_value *element = number(s, "pair") == 1 ? both : v;

        give_dataset(at, rows ? ls_dataset_slices(element) : ls_dataset_tensors(element));
    }
    ls_value_release(both);
    ls_value_release(v);
    ls_tensor_release(t);
}

static void run_map(place *at, const statement *s)
{
    ls_map_options o = LS_MAP_OPTIONS_INIT;

    o.parallel = (int)number(s, "parallel") - 1;
    at->m->ahead = at->m->ahead || o.parallel != 0;
    o.stateful = number(s, "stateful") != 0;
    give_dataset(
        at, ls_dataset_map(dataset_at(at, number(s, "d")), map_element, kind_of(s), &o));
}

static void run_filter(place *at, const statement *s)
{
    give_dataset(at, ls_dataset_filter(dataset_at(at, number(s, "d")), choose_element,
                                       kind_of(s)));
}

static void run_interleave(place *at, const statement *s)
{
    ls_interleave_options o = LS_INTERLEAVE_OPTIONS_INIT;
    ls_dataset *d = dataset_at(at, number(s, "d"));

    o.cycle = number(s, "cycle");
    o.block = number(s, "block");
    o.parallel = (int)number(s, "parallel") - 1;
    at->m->ahead = at->m->ahead || o.parallel != 0;
    give_dataset(at, number(s, "flat") == 1
                         ? ls_dataset_flat_map(d, dataset_of_element, kind_of(s), NULL)
                         : ls_dataset_interleave(d, dataset_of_element, kind_of(s), &o));
}

static void run_batch(place *at, const statement *s)
{
    ls_dataset *d = dataset_at(at, number(s, "d"));
    const int64_t size = number(s, "size");
    const int64_t sizes[] = {size, number(s, "more")};
    const bool wild = number(s, "wild") != 0;

    switch (number(s, "how")) {
    case 0:
        d = ls_dataset_batch(d, size);
        break;
    case 1:
        d = ls_dataset_batch_exact(d, size);
        break;
    case 2:
        d = ls_dataset_padded_batch(d, size, NULL, NULL, 0, number(s, "drop") == 1);
        break;
    case 3:
        d = wild || elements_are(d, 1, false) ? ls_dataset_unbatch(d)
                                              : ls_dataset_batch(d, size);
        break;
    case 4:
        d = ls_dataset_rebatch(d, sizes, 2, number(s, "drop") == 1);
        break;
    default:
        d = ls_dataset_window(d, size, number(s, "more"), 1 + number(s, "stride"),
                              number(s, "drop") == 1);
        if (!wild) {
            d = ls_dataset_flat_map(d, dataset_of_element, (void *)(uintptr_t)&KINDS[0],
                                    NULL);
        }
        break;
    }
    give_dataset(at, d);
}

static void run_shuffle(place *at, const statement *s)
{
    const int64_t seed = number(s, "seed");

    at->m->reshuffles = at->m->reshuffles || number(s, "same") == 0;
    give_dataset(at, ls_dataset_shuffle_with(dataset_at(at, number(s, "d")),
                                             number(s, "size"), &seed,
                                             number(s, "same") == 1));
}

/* Transformations with a count; negative and huge ones have meanings. */
static void run_count(place *at, const statement *s)
{
    ls_dataset *d = dataset_at(at, number(s, "d"));
    const int64_t count = number(s, "count");

    switch (number(s, "how")) {
    case 0:
        d = ls_dataset_repeat(d, count >= 0 && count < 4 ? count : 2);
        break;
    case 1:
        d = ls_dataset_take(d, count);
        break;
    case 2:
        d = ls_dataset_skip(d, count);
        break;
    case 3:
        d = number(s, "wild") != 0
                ? ls_dataset_shard(d, count, number(s, "index"))
                : ls_dataset_shard(d, 3, (int64_t)((uint64_t)number(s, "index") % 3));
        break;
    case 4:
        at->m->ahead = true;
        d = ls_dataset_prefetch(d, count < 100 ? count : 3);
        break;
    case 5:
        d = ls_dataset_enumerate(d, count);
        break;
    case 6:
        d = ls_dataset_assert_cardinality(
            d, number(s, "wild") != 0 ? count : ls_dataset_cardinality(d));
        break;
    default: // endless, but not read to the end
        d = ls_dataset_take(ls_dataset_repeat(d, -1),
                            count > 0 && count < 30 ? count : 5);
        break;
    }
    give_dataset(at, d);
}

static void run_plain(place *at, const statement *s)
{
    ls_dataset *d = dataset_at(at, number(s, "d"));
    ls_data_options o = LS_DATA_OPTIONS_INIT;

    switch (number(s, "how")) {
    case 0:
        if (number(s, "wild") != 0 || elements_are(d, 0, true)) {
            d = ls_dataset_unique(d);
        }
        break;
    case 1:
        d = ls_dataset_ignore_errors(d);
        break;
    case 2:
        d = ls_dataset_cache(d, NULL);
        break;
    default:
        o.auto_shard = (ls_auto_shard)(number(s, "shard") - 1);
        o.threads = (int)number(s, "threads");
        d = ls_dataset_with_options(d, &o);
        break;
    }
    give_dataset(at, d);
}

static void run_several(place *at, const statement *s)
{
    ls_dataset *both[] = {dataset_at(at, number(s, "d")),
                          dataset_at(at, number(s, "d2"))};
    const double weights[] = {0.3, 0.7};
    const int64_t seed = number(s, "seed");
    const bool alike = number(s, "wild") != 0 ||
                       ls_spec_equal(ls_dataset_spec(both[0]), ls_dataset_spec(both[1]));

    switch (alike ? number(s, "how") : 0) {
    case 0:
        give_dataset(at, ls_dataset_zip(both, 2));
        break;
    case 1:
        give_dataset(at, ls_dataset_concatenate(both[0], both[1]));
        break;
    case 2:
        give_dataset(at,
                     ls_dataset_sample(both, 2, weights, &seed, number(s, "stop") == 1));
        break;
    default:
        give_dataset(
            at, ls_dataset_choose(both, 2,
                                  ls_dataset_range(0, number(s, "wild") != 0 ? 4 : 2, 1),
                                  number(s, "stop") == 1));
        break;
    }
}

const verb verbs_data[] = {
    {"range", "begin length step", run_range, IN_HOST, {0, 0, 10, 3}},
    {"slices",
     "dtype rank d0 d1 d2 pair:2 whole wild seed",
     run_slices,
     IN_HOST,
     {0, 0, 8, 3}},
    {"map", "d fn:8 parallel:4 stateful", run_map, IN_HOST, {0, 0, 10, 2}},
    {"filter", "d pred", run_filter, IN_HOST, {0, 0, 5, 1}},
    {"interleave",
     "d fn:5 cycle:4 block:3 parallel:4 flat:2",
     run_interleave,
     IN_HOST,
     {0, 0, 6, 1}},
    {"batch",
     "d how:6 size more drop:2 stride:2 wild",
     run_batch,
     IN_HOST,
     {0, 0, 14, 4}},
    {"shuffle", "d size seed same:2", run_shuffle, IN_HOST, {0, 0, 6, 1}},
    {"count", "d how:8 count index wild", run_count, IN_HOST, {0, 0, 14, 3}},
    {"plain", "d how:4 shard:5 threads:3 wild", run_plain, IN_HOST, {0, 0, 7, 1}},
    {"several", "d d2 how:4 stop:2 wild seed", run_several, IN_HOST, {0, 0, 5, 1}},
};
const size_t count_data = LSI_COUNT_OF(verbs_data);
