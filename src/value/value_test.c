/* Values: structures, map and pack, regroup and select, printing. */
#include "ls_test.h"
#include "value/value.h"

/* Builders for tests: what fails here fails the test, and NULL goes on harmlessly. */
static ls_value *text(const char *s)
{
    ls_value *v = NULL;
    const ls_string string = {s, strlen(s)};

    LST_OK(ls_value_string(string, &v, NULL));
    return v;
}

static ls_value *integer(int64_t x)
{
    ls_value *v = NULL;

    LST_OK(ls_value_int(x, &v, NULL));
    return v;
}

static ls_value *number(double x)
{
    ls_value *v = NULL;

    LST_OK(ls_value_float(x, &v, NULL));
    return v;
}

/* Makes a structure and drops the references to its items. */
static ls_value *over(ls_value_kind kind, const char *const *keys, ls_value **items,
                      size_t n)
{
    ls_value *v = NULL;

    if (kind == LS_VALUE_DICT) {
        LST_OK(ls_value_dict(keys, items, n, &v, NULL));
    } else if (kind == LS_VALUE_NAMED_TUPLE) {
        LST_OK(ls_value_named_tuple("Point", keys, items, n, &v, NULL));
    } else {
        LST_OK(lsi_value_over(kind, items, n, &v, NULL));
    }
    for (size_t i = 0; i < n; i++) {
        ls_value_release(items[i]);
    }
    return v;
}
#define OVER(kind, ...)                                                                  \
    over(kind, NULL, (ls_value *[]){__VA_ARGS__},                                        \
         sizeof((ls_value *[]){__VA_ARGS__}) / sizeof(ls_value *))
#define TUPLE(...) OVER(LS_VALUE_TUPLE, __VA_ARGS__)
#define LIST(...) OVER(LS_VALUE_LIST, __VA_ARGS__)
#define KEYS(...) ((const char *[]){__VA_ARGS__})
#define NAMED(kind, keys, ...)                                                           \
    over(kind, keys, (ls_value *[]){__VA_ARGS__},                                        \
         sizeof((ls_value *[]){__VA_ARGS__}) / sizeof(ls_value *))

static bool prints(const ls_value *v, const char *want)
{
    char buf[600];
    const size_t n = ls_value_text(v, buf, sizeof buf);

    if (n != strlen(want) || strcmp(buf, want) != 0) {
        (void)fprintf(stderr, "printed %s\n  wanted %s\n", buf, want);
        return false;
    }
    return true;
}

/* Case S25 of the specification: ("a1",["b1",{c:"d1",e:"f1"},"g1"],"h1"). */
static ls_value *nested(const char *const words[6])
{
    return TUPLE(
        text(words[0]),
        LIST(text(words[1]),
             NAMED(LS_VALUE_DICT, KEYS("c", "e"), text(words[2]), text(words[3])),
             text(words[4])),
        text(words[5]));
}

LST_TEST(select_undoes_regroup_of_nested_structures)
{
    static const char *const one[] = {"a1", "b1", "d1", "f1", "g1", "h1"};
    static const char *const two[] = {"a2", "b2", "d2", "f2", "g2", "h2"};
    ls_value *parts[] = {nested(one), nested(two)};
    ls_value *merged = NULL, *back = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_value_regroup(parts, 2, NULL, &merged, &err));
    LST_CHECK(ls_value_kind_of(merged) == LS_VALUE_TUPLE);
    ls_value *list = ls_value_child(merged, 1);
    LST_CHECK(ls_value_kind_of(list) == LS_VALUE_LIST);
    LST_CHECK(ls_value_kind_of(ls_value_child(list, 1)) == LS_VALUE_DICT);
    LST_CHECK(prints(ls_value_child(merged, 0), "PerReplica:{\n  0: a1,\n  1: a2\n}"));
    LST_CHECK(prints(ls_value_find(ls_value_child(list, 1), "e"),
                     "PerReplica:{\n  0: f1,\n  1: f2\n}"));
    LST_CHECK(prints(ls_value_child(merged, 2), "PerReplica:{\n  0: h1,\n  1: h2\n}"));

    LST_OK(ls_value_select(merged, 1, &back, &err));
    LST_CHECK(prints(back, "('a2', ['b2', {'c': 'd2', 'e': 'f2'}, 'g2'], 'h2')"));
    ls_value_release(back);
    LST_OK(ls_value_select(merged, 0, &back, &err));
    LST_CHECK(prints(back, "('a1', ['b1', {'c': 'd1', 'e': 'f1'}, 'g1'], 'h1')"));
    ls_value_release(back);

    LST_FAILS(ls_value_select(merged, 2, &back, &err), LS_INVALID_ARGUMENT, err,
              "replica 2");
    LST_FAILS(ls_value_select_mirrored(merged, 0, &back, &err), LS_INVALID_ARGUMENT, err,
              "PerReplica");
    LST_CHECK(err.kind == LS_KIND_TYPE);
    ls_value_release(merged);
    ls_value_release(parts[0]);
    ls_value_release(parts[1]);
}

LST_TEST(a_leaf_that_is_the_same_on_every_replica_is_not_wrapped)
{
    ls_value *a[] = {TUPLE(text("a"), text("foo")), TUPLE(text("b"), text("foo"))};
    ls_value *b[] = {TUPLE(text("1"), text("2")), TUPLE(text("3"), text("4"))};
    ls_value *merged = NULL;

    LST_OK(ls_value_regroup(a, 2, NULL, &merged, NULL));
    LST_CHECK(prints(merged, "(PerReplica:{\n  0: 'a',\n  1: 'b'\n}, 'foo')"));
    ls_value_release(merged);
    LST_OK(ls_value_regroup(b, 2, NULL, &merged, NULL));
    LST_CHECK(prints(merged, "(PerReplica:{\n  0: '1',\n  1: '3'\n}, "
                             "PerReplica:{\n  0: '2',\n  1: '4'\n})"));
    ls_value_release(merged);
    LST_OK(ls_value_regroup(a, 1, NULL, &merged, NULL)); // one replica: the identity
    LST_CHECK(prints(merged, "('a', 'foo')"));
    ls_value_release(merged);
    for (int i = 0; i < 2; i++) {
        ls_value_release(a[i]);
        ls_value_release(b[i]);
    }
}

LST_TEST(always_wrap_wraps_even_one_replica_and_mirrored_can_be_asked_for)
{
    ls_regroup_options opts = LS_REGROUP_OPTIONS_INIT;
    ls_value *one = number(1.0), *merged = NULL, *back = NULL;
    ls_error err = LS_ERROR_INIT;

    opts.always_wrap = true;
    LST_OK(ls_value_regroup(&one, 1, &opts, &merged, &err));
    LST_CHECK(prints(merged, "PerReplica:{\n  0: 1.0\n}"));
    ls_value_release(merged);

    opts.wrap = LS_VALUE_MIRRORED;
    LST_OK(ls_value_regroup((ls_value *[]){one, one}, 2, &opts, &merged, &err));
    LST_CHECK(prints(merged, "Mirrored:{\n  0: 1.0,\n  1: 1.0\n}"));
    LST_OK(ls_value_select_mirrored(merged, 1, &back, &err));
    LST_CHECK(back == one);
    ls_value_release(back);
    ls_value_release(merged);

    opts.wrap = LS_VALUE_LIST;
    LST_FAILS(ls_value_regroup(&one, 1, &opts, &merged, &err), LS_INVALID_ARGUMENT, err,
              "list");
    ls_value_release(one);
}

LST_TEST(literals_are_the_same_by_kind_and_bits_tensors_by_handle)
{
    ls_tensor *t = NULL, *u = NULL;
    ls_value *v[4] = {NULL};

    LST_OK(ls_tensor_create(NULL, LS_F32, LS_SHAPE(1), NULL, &t, NULL));
    LST_OK(ls_tensor_create(NULL, LS_F32, LS_SHAPE(1), NULL, &u, NULL));
    LST_OK(ls_value_tensor(t, &v[0], NULL));
    LST_OK(ls_value_tensor(t, &v[1], NULL));
    LST_OK(ls_value_tensor(u, &v[2], NULL));
    LST_OK(ls_value_none(&v[3], NULL));
    ls_tensor_release(t); // the values hold it
    ls_tensor_release(u);
    LST_CHECK(ls_value_same(v[0], v[1]));
    LST_CHECK(!ls_value_same(v[0], v[2]));
    LST_CHECK(!ls_value_same(v[0], v[3]));
    LST_CHECK(ls_tensor_dtype(ls_value_as_tensor(v[0])) == LS_F32);
    for (int i = 0; i < 4; i++) {
        ls_value_release(v[i]);
    }

    static const struct {
        double a, b;
        bool same;
    } cases[] = {{1.5, 1.5, true}, {0.0, -0.0, false}, {NAN, NAN, true}, {1, 2, false}};
    for (size_t i = 0; i < LSI_COUNT_OF(cases); i++) {
        ls_value *a = number(cases[i].a), *b = number(cases[i].b);

        LST_CHECK(ls_value_same(a, b) == cases[i].same);
        ls_value_release(a);
        ls_value_release(b);
    }
    ls_value *one = integer(1), *float_one = number(1.0), *word = text("1");
    LST_CHECK(!ls_value_same(one, float_one));
    LST_CHECK(!ls_value_same(one, word));
    LST_CHECK(ls_value_same(one, one));
    ls_value_release(one);
    ls_value_release(float_one);
    ls_value_release(word);
}

/* Regroups two values and expects an assertion failure that mentions `word`. */
static void disagrees(ls_value *a, ls_value *b, const char *word)
{
    ls_value *parts[] = {a, b}, *merged = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_FAILS(ls_value_regroup(parts, 2, NULL, &merged, &err), LS_INVALID_ARGUMENT, err,
              word);
    LST_CHECK(err.kind == LS_KIND_ASSERT);
    LST_CHECK(merged == NULL);
    ls_value_release(a);
    ls_value_release(b);
}

LST_TEST(replicas_that_disagree_on_the_structure_are_named_with_the_place)
{
    disagrees(LIST(integer(1)), LIST(integer(1), integer(2)), "replica 1 a list of 2");
    disagrees(TUPLE(integer(1)), LIST(integer(1)), "kinds differ");
    disagrees(integer(1), TUPLE(integer(1)), "kinds differ");
    disagrees(NAMED(LS_VALUE_DICT, KEYS("a"), integer(1)),
              NAMED(LS_VALUE_DICT, KEYS("b"), integer(1)), "names differ");
    disagrees(NAMED(LS_VALUE_NAMED_TUPLE, KEYS("x"), integer(1)),
              NAMED(LS_VALUE_NAMED_TUPLE, KEYS("y"), integer(1)), "names differ");
    disagrees(TUPLE(integer(1), NAMED(LS_VALUE_DICT, KEYS("c"), LIST(integer(1)))),
              TUPLE(integer(1), NAMED(LS_VALUE_DICT, KEYS("c"), integer(1))),
              "the result[1]['c']");
}

LST_TEST(dicts_merge_by_key_and_keep_the_first_replicas_order)
{
    ls_value *parts[] = {
        NAMED(LS_VALUE_DICT, KEYS("z", "a"), integer(1), integer(2)),
        NAMED(LS_VALUE_DICT, KEYS("a", "z"), integer(20), integer(10)),
    };
    ls_value *merged = NULL;

    LST_OK(ls_value_regroup(parts, 2, NULL, &merged, NULL));
    LST_CHECK(prints(merged, "{'z': PerReplica:{\n  0: 1,\n  1: 10\n}, "
                             "'a': PerReplica:{\n  0: 2,\n  1: 20\n}}"));
    ls_value_release(merged);
    ls_value_release(parts[0]);
    ls_value_release(parts[1]);
}

LST_TEST(named_tuples_keep_their_type_and_fields)
{
    ls_value *p = NAMED(LS_VALUE_NAMED_TUPLE, KEYS("y", "x"), integer(1), text("two"));
    ls_value *parts[] = {p, p}, *merged = NULL;

    LST_CHECK(prints(p, "Point(y=1, x='two')"));
    LST_CHECK(strcmp(ls_value_type_name(p), "Point") == 0);
    LST_CHECK(strcmp(ls_value_key(p, 1), "x") == 0);
    LST_CHECK(ls_value_find(p, "x") == ls_value_child(p, 1));
    LST_CHECK(ls_value_find(p, "z") == NULL);
    LST_OK(ls_value_regroup(parts, 2, NULL, &merged, NULL));
    LST_CHECK(prints(merged, "Point(y=1, x='two')"));
    ls_value_release(merged);
    ls_value_release(p);
}

LST_TEST(dicts_flatten_by_sorted_keys_and_pack_puts_everything_back)
{
    ls_value *v = NAMED(LS_VALUE_DICT, KEYS("b", "a", "B", ""), integer(1),
                        TUPLE(integer(2), integer(3)), LIST(integer(4)), integer(5));
    ls_value *flat = NULL, *back = NULL, *few = TUPLE(integer(1));
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_value_flatten(v, &flat, &err));
    LST_CHECK(prints(flat, "[5, 4, 2, 3, 1]"));
    LST_OK(ls_value_pack(v, flat, &back, &err));
    LST_CHECK(prints(back, "{'b': 1, 'a': (2, 3), 'B': [4], '': 5}"));
    LST_FAILS(ls_value_pack(v, few, &back, &err), LS_INVALID_ARGUMENT, err,
              "has 5 leaves, 1");
    LST_FAILS(ls_value_pack(v, v, &back, &err), LS_INVALID_ARGUMENT, err, "dict");
    ls_value_release(back);
    ls_value_release(few);
    ls_value_release(flat);
    ls_value_release(v);
}

LST_TEST(a_dict_of_many_keys_finds_each_of_them)
{
    enum { N = 200 };
    char names[N][8];
    const char *keys[N];
    ls_value *items[N], *v = NULL, *flat = NULL;
    int64_t found = 0, last = -1;

    for (int i = 0; i < N; i++) {
        const int mixed = (i * 77) % N;

        (void)snprintf(names[i], sizeof names[i], "k%03d", mixed);
        keys[i] = names[i];
        items[i] = integer(mixed);
    }
    v = over(LS_VALUE_DICT, keys, items, N);
    for (int i = 0; i < N; i++) {
        LST_CHECK(ls_value_as_int(ls_value_find(v, names[i]), &found));
        LST_CHECK(found == (i * 77) % N);
    }
    LST_CHECK(ls_value_find(v, "k") == NULL && ls_value_find(v, "k999") == NULL);
    LST_OK(ls_value_flatten(v, &flat, NULL));
    for (size_t i = 0; i < N; i++) {
        LST_CHECK(ls_value_as_int(ls_value_child(flat, i), &found) && found == last + 1);
        last = found;
    }
    ls_value_release(flat);
    ls_value_release(v);
}

static ls_status negate(ls_value *leaf, void *user, ls_value **out, ls_error *err)
{
    int64_t x = 0;

    if (!ls_value_as_int(leaf, &x)) {
        return lsi_fail(err, LS_ABORTED, -1, "no int");
    }
    ++*(int *)user;
    return ls_value_int(-x, out, err);
}

LST_TEST(map_keeps_the_structure_and_returns_the_first_failure)
{
    ls_value *v = TUPLE(
        integer(1), NAMED(LS_VALUE_DICT, KEYS("b", "a"), integer(2), LIST(integer(3))));
    ls_value *w = TUPLE(integer(1), text("x"), integer(2)), *mapped = NULL;
    ls_error err = LS_ERROR_INIT;
    int calls = 0;

    LST_OK(ls_value_map(v, negate, &calls, &mapped, &err));
    LST_CHECK(prints(mapped, "(-1, {'b': -2, 'a': [-3]})"));
    LST_CHECK(calls == 3);
    ls_value_release(mapped);
    mapped = NULL;
    calls = 0;
    LST_FAILS(ls_value_map(w, negate, &calls, &mapped, &err), LS_ABORTED, err, "no int");
    LST_CHECK(calls == 1 && mapped == NULL);
    ls_value_release(v);
    ls_value_release(w);
}

LST_TEST(local_results_are_one_value_a_replica)
{
    ls_value *pr = OVER(LS_VALUE_PER_REPLICA, integer(1), integer(2));
    ls_value *plain = number(4.0);
    ls_value *dict = NAMED(LS_VALUE_DICT, KEYS("a", "b"), number(1.0), number(2.0));
    ls_value *mixed = TUPLE(ls_value_retain(pr), ls_value_retain(plain));
    ls_value *local = NULL;

    LST_OK(ls_value_local_results(pr, 2, &local, NULL));
    LST_CHECK(prints(local, "(1, 2)"));
    ls_value_release(local);
    LST_OK(ls_value_local_results(plain, 2, &local, NULL));
    LST_CHECK(prints(local, "(4.0,)"));
    ls_value_release(local);
    LST_OK(ls_value_local_results(dict, 2, &local, NULL));
    LST_CHECK(prints(local, "({'a': 1.0, 'b': 2.0}, {'a': 1.0, 'b': 2.0})"));
    ls_value_release(local);
    LST_OK(ls_value_local_results(dict, 1, &local, NULL));
    LST_CHECK(prints(local, "({'a': 1.0, 'b': 2.0},)"));
    ls_value_release(local);
    LST_OK(ls_value_local_results(mixed, 2, &local, NULL));
    LST_CHECK(prints(local, "((1, 4.0), (2, 4.0))"));
    ls_value_release(local);
    ls_value_release(mixed);
    ls_value_release(dict);
    ls_value_release(plain);
    ls_value_release(pr);
}

LST_TEST(tensors_print_inside_a_per_replica_value_as_in_tensorflow)
{
    static const float five[] = {5}, six[] = {6};
    ls_tensor *t[2] = {NULL, NULL};
    ls_value *v[2] = {NULL, NULL}, *pr = NULL;

    LST_OK(ls_tensor_create(NULL, LS_F32, LS_SHAPE(1), five, &t[0], NULL));
    LST_OK(ls_tensor_create(NULL, LS_F32, LS_SHAPE(1), six, &t[1], NULL));
    for (int i = 0; i < 2; i++) {
        LST_OK(ls_value_tensor(t[i], &v[i], NULL));
        ls_tensor_release(t[i]);
    }
    LST_OK(ls_value_per_replica(v, 2, &pr, NULL));
    ls_value_release(v[0]);
    ls_value_release(v[1]);
    LST_CHECK(prints(pr,
                     "PerReplica:{\n  0: tf.Tensor([5.], shape=(1,), dtype=float32),\n"
                     "  1: tf.Tensor([6.], shape=(1,), dtype=float32)\n}"));
    ls_value_release(pr);
}

LST_TEST(what_is_in_a_container_prints_as_its_repr)
{
    ls_tensor *t = NULL;
    ls_value *v[2] = {NULL, NULL}, *pr = NULL, *dict = NULL, *tuple = NULL;
    const ls_string s = {"x'y\n", 4};

    LST_OK(ls_tensor_create(NULL, LS_F32, LS_SHAPE(2, 1), (float[]){1, 2}, &t, NULL));
    LST_OK(ls_value_tensor(t, &v[0], NULL));
    LST_OK(ls_value_string(s, &v[1], NULL));
    LST_OK(ls_value_tuple(v, 2, &tuple, NULL));
    LST_OK(ls_value_per_replica(v, 2, &pr, NULL));
    LST_OK(ls_value_dict((const char *[]){"k"}, (ls_value *[]){pr}, 1, &dict, NULL));
    LST_CHECK(prints(tuple, "(<tf.Tensor: shape=(2, 1), dtype=float32, numpy=\narray([[1."
                            "],\n       [2.]], dtype=float32)>, \"x'y\\n\")"));
    LST_CHECK(prints(dict, "{'k': PerReplica:{\n  0: <tf.Tensor: shape=(2, 1), "
                           "dtype=float32, numpy=\narray([[1.],\n       [2.]], "
                           "dtype=float32)>,\n  1: \"x'y\\n\"\n}}"));
    // The items of a distributed value are not in a container: their own text.
    LST_CHECK(prints(pr, "PerReplica:{\n  0: tf.Tensor(\n[[1.]\n [2.]], shape=(2, 1), "
                         "dtype=float32),\n  1: x'y\n\n}"));
    ls_value_release(dict);
    ls_value_release(pr);
    ls_value_release(tuple);
    ls_value_release(v[0]);
    ls_value_release(v[1]);
    ls_tensor_release(t);
}

LST_TEST(an_item_is_the_one_number_of_a_leaf)
{
    static const struct {
        ls_dtype dtype;
        union {
            float f;
            double d;
            int64_t i;
            uint16_t h;
            uint8_t u;
        } data;
        double want;
    } cases[] = {{LS_F32, {.f = 1.5F}, 1.5},   {LS_F64, {.d = -0.1}, -0.1},
                 {LS_I64, {.i = -7}, -7},      {LS_I32, {.i = 9}, 9},
                 {LS_F16, {.h = 0x3e00}, 1.5}, {LS_BF16, {.h = 0x3fc0}, 1.5},
                 {LS_BOOL, {.u = 1}, 1},       {LS_U8, {.u = 200}, 200}};
    ls_error err = LS_ERROR_INIT;
    ls_value *v = NULL, *list = NULL;
    double x = 0;

    for (size_t i = 0; i < LSI_COUNT_OF(cases); i++) {
        ls_tensor *t = NULL;

        LST_OK(ls_tensor_create(NULL, cases[i].dtype, LS_SHAPE(1, 1), &cases[i].data, &t,
                                &err));
        LST_OK(ls_value_tensor(t, &v, &err));
        LST_OK(ls_value_item(v, &x, &err));
        LST_CHECK(x == cases[i].want);
        ls_value_release(v);
        ls_tensor_release(t);
    }
    LST_OK(ls_value_int(5, &v, &err));
    LST_OK(ls_value_item(v, &x, &err));
    LST_CHECK(x == 5);
    LST_OK(ls_value_list(&v, 1, &list, &err));
    LST_FAILS(ls_value_item(list, &x, &err), LS_INVALID_ARGUMENT, err,
              "item: needs a value with one number, got [5]");
    LST_FAILS(ls_value_item(NULL, &x, &err), LS_INVALID_ARGUMENT, err, "got None");
    LST_CHECK(x == 5);
    ls_value_release(list);
    ls_value_release(v);
}

LST_TEST(literals_print_as_in_python)
{
    static const struct {
        double x;
        const char *text;
    } cases[] = {
        {0.1, "0.1"},
        {1, "1.0"},
        {-0.0, "-0.0"},
        {1e15, "1000000000000000.0"},
        {1e16, "1e+16"},
        {1e-4, "0.0001"},
        {1e-5, "1e-05"},
        {1.5e-7, "1.5e-07"},
        {1e100, "1e+100"},
        {123456.5, "123456.5"},
        {2.0 / 3, "0.6666666666666666"},
        {INFINITY, "inf"},
        {-INFINITY, "-inf"},
        {NAN, "nan"},
        {5e-324, "5e-324"},
    };

    for (size_t i = 0; i < LSI_COUNT_OF(cases); i++) {
        ls_value *v = number(cases[i].x);

        LST_CHECK(prints(v, cases[i].text));
        ls_value_release(v);
    }
    ls_value *none = NULL, *yes = NULL, *empty = NULL, *odd = NULL;
    const ls_string bytes = {"a'b\n\\\0\"", 7};
    LST_OK(ls_value_none(&none, NULL));
    LST_OK(ls_value_bool(true, &yes, NULL));
    LST_OK(ls_value_tuple(NULL, 0, &empty, NULL));
    LST_OK(ls_value_string(bytes, &odd, NULL));
    ls_value *all = LIST(none, yes, empty, odd, integer(INT64_MIN), text("it's"));
    LST_CHECK(prints(all, "[None, True, (), 'a\\'b\\n\\\\\\x00\"', "
                          "-9223372036854775808, \"it's\"]"));
    ls_value_release(all);
}

LST_TEST(a_text_that_does_not_fit_is_cut_and_counted)
{
    static const float data[] = {1, 2, 3, 4};
    ls_tensor *t = NULL;
    ls_value *leaf = NULL;
    char whole[200], cut[200];

    LST_OK(ls_tensor_create(NULL, LS_F32, LS_SHAPE(4), data, &t, NULL));
    LST_OK(ls_value_tensor(t, &leaf, NULL));
    ls_tensor_release(t);
    ls_value *v =
        NAMED(LS_VALUE_DICT, KEYS("key"), TUPLE(text("word"), leaf, number(0.5)));
    const size_t n = ls_value_text(v, whole, sizeof whole);
    LST_CHECK(n == strlen(whole) && n < sizeof whole);
    LST_CHECK(ls_value_text(v, NULL, 0) == n);
    for (size_t size = 1; size <= n + 1; size++) {
        memset(cut, '#', sizeof cut);
        LST_CHECK(ls_value_text(v, cut, size) == n);
        LST_CHECK(strlen(cut) == size - 1 && memcmp(cut, whole, size - 1) == 0);
        LST_CHECK(cut[size] == '#'); // nothing was written behind the end
    }
    ls_value_release(v);
}

LST_TEST(bad_arguments_are_refused_with_their_name)
{
    ls_value *one = integer(1), *pair = TUPLE(integer(1), integer(2)), *out = NULL;
    ls_value *holes[] = {one, NULL};
    ls_error err = LS_ERROR_INIT;

    LST_FAILS(ls_value_tuple(holes, 2, &out, &err), LS_INVALID_ARGUMENT, err,
              "item 1 of 2");
    LST_FAILS(ls_value_list(NULL, 2, &out, &err), LS_INVALID_ARGUMENT, err, "at NULL");
    LST_FAILS(ls_value_tensor(NULL, &out, &err), LS_INVALID_ARGUMENT, err, "NULL");
    LST_FAILS(ls_value_string((ls_string){NULL, 3}, &out, &err), LS_INVALID_ARGUMENT, err,
              "3 bytes");
    LST_FAILS(ls_value_int(1, NULL, &err), LS_INVALID_ARGUMENT, err, "out is NULL");
    LST_FAILS(ls_value_dict(KEYS("a", "a"), (ls_value *[]){one, one}, 2, &out, &err),
              LS_INVALID_ARGUMENT, err, "'a' is there twice");
    LST_FAILS(ls_value_dict(KEYS("a", NULL), (ls_value *[]){one, one}, 2, &out, &err),
              LS_INVALID_ARGUMENT, err, "name of item 1");
    LST_FAILS(ls_value_dict(KEYS("a"), &one, 1, NULL, &err), LS_INVALID_ARGUMENT, err,
              "out is NULL");
    LST_FAILS(ls_value_named_tuple(NULL, KEYS("a"), &one, 1, &out, &err),
              LS_INVALID_ARGUMENT, err, "type is NULL");
    LST_FAILS(ls_value_per_replica(NULL, 0, &out, &err), LS_INVALID_ARGUMENT, err,
              "at least one");
    LST_FAILS(ls_value_mirrored(&pair, 1, &out, &err), LS_INVALID_ARGUMENT, err, "tuple");
    LST_FAILS(ls_value_regroup(NULL, 0, NULL, &out, &err), LS_INVALID_ARGUMENT, err,
              "at least one");
    LST_FAILS(ls_value_regroup(holes, 2, NULL, &out, &err), LS_INVALID_ARGUMENT, err,
              "replica 1");
    LST_FAILS(ls_value_flatten(NULL, &out, &err), LS_INVALID_ARGUMENT, err, "NULL");
    LST_CHECK(out == NULL);
    LST_CHECK(ls_value_child(pair, 2) == NULL && ls_value_key(pair, 0) == NULL);
    LST_CHECK(ls_value_size(NULL) == 0 && ls_value_as_tensor(one) == NULL);
    ls_value_release(NULL);
    ls_value_release(one);
    ls_value_release(pair);
}

LST_TEST(a_structure_is_at_most_so_deep)
{
    ls_value *v = integer(1);
    ls_error err = LS_ERROR_INIT;

    for (int i = 0; i < LS_VALUE_MAX_DEPTH; i++) {
        v = LIST(v);
    }
    ls_value *out = NULL;
    LST_FAILS(ls_value_list(&v, 1, &out, &err), LS_INVALID_ARGUMENT, err, "deeper");
    ls_value_release(v);
}

/* Everything that allocates, in one go; leaks show under the address sanitizer. */
static ls_status make_and_regroup(ls_error *err)
{
    ls_value *leaf[2] = {NULL, NULL}, *part[2] = {NULL, NULL};
    ls_value *merged = NULL, *one = NULL, *flat = NULL, *back = NULL, *local = NULL;
    ls_status st = LS_OK;

    for (int i = 0; i < 2 && st == LS_OK; i++) {
        st = ls_value_string((ls_string){i == 0 ? "x" : "y", 1}, &leaf[i], err);
    }
    for (int i = 0; i < 2 && st == LS_OK; i++) {
        st = ls_value_dict(KEYS("b", "a"), (ls_value *[]){leaf[i], leaf[1]}, 2, &part[i],
                           err);
    }
    if (st == LS_OK) {
        st = ls_value_regroup(part, 2, NULL, &merged, err);
    }
    if (st == LS_OK) {
        st = ls_value_select(merged, 1, &one, err);
    }
    if (st == LS_OK) {
        st = ls_value_flatten(merged, &flat, err);
    }
    if (st == LS_OK) {
        st = ls_value_pack(part[0], flat, &back, err);
    }
    if (st == LS_OK) {
        st = ls_value_local_results(merged, 2, &local, err);
    }
    if (st == LS_OK) {
        LST_CHECK(prints(one, "{'b': 'y', 'a': 'y'}"));
        LST_CHECK(prints(local, "({'b': 'x', 'a': 'y'}, {'b': 'y', 'a': 'y'})"));
    }
    ls_value *const all[] = {leaf[0], leaf[1], part[0], part[1], merged,
                             one,     flat,    back,    local};
    for (size_t i = 0; i < LSI_COUNT_OF(all); i++) {
        ls_value_release(all[i]);
    }
    return st;
}

LST_TEST(every_allocation_may_fail)
{
    lst_every_allocation(make_and_regroup);
}

LST_MAIN(LST_CASE(select_undoes_regroup_of_nested_structures),
         LST_CASE(a_leaf_that_is_the_same_on_every_replica_is_not_wrapped),
         LST_CASE(always_wrap_wraps_even_one_replica_and_mirrored_can_be_asked_for),
         LST_CASE(literals_are_the_same_by_kind_and_bits_tensors_by_handle),
         LST_CASE(replicas_that_disagree_on_the_structure_are_named_with_the_place),
         LST_CASE(dicts_merge_by_key_and_keep_the_first_replicas_order),
         LST_CASE(named_tuples_keep_their_type_and_fields),
         LST_CASE(dicts_flatten_by_sorted_keys_and_pack_puts_everything_back),
         LST_CASE(a_dict_of_many_keys_finds_each_of_them),
         LST_CASE(map_keeps_the_structure_and_returns_the_first_failure),
         LST_CASE(local_results_are_one_value_a_replica),
         LST_CASE(tensors_print_inside_a_per_replica_value_as_in_tensorflow),
         LST_CASE(what_is_in_a_container_prints_as_its_repr),
         LST_CASE(an_item_is_the_one_number_of_a_leaf),
         LST_CASE(literals_print_as_in_python),
         LST_CASE(a_text_that_does_not_fit_is_cut_and_counted),
         LST_CASE(bad_arguments_are_refused_with_their_name),
         LST_CASE(a_structure_is_at_most_so_deep), LST_CASE(every_allocation_may_fail))
