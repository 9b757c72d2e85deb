/*
 * Generates a program from a seed. Most programs are meant to be valid: their arguments
 * fit as far as the generator can tell. One in five has wrong shapes, dtypes and
 * arguments. In one in four, all replicas do the same except for one statement, which one
 * replica does differently or not at all.
 */
#include "random_machine.h"

struct drawing {
    uint64_t random;
    theme theme;
    bool wild; /* the program may be wrong on purpose */
    bool odd;  /* or one replica does something else */
    program *p;
};

static uint64_t below(struct drawing *d, uint64_t n)
{
    return lst_random(&d->random) % n;
}

static bool one_in(struct drawing *d, uint64_t n)
{
    return below(d, n) == 0;
}

#define PICK(d, ...)                                                                     \
    pick((d), (const int64_t[]){__VA_ARGS__},                                            \
         sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
static int64_t pick(struct drawing *d, const int64_t *from, size_t n)
{
    return from[below(d, n)];
}

/* ---- numbers, by their names ---- */

static int64_t draw_dtype(struct drawing *d)
{
    return PICK(d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 3, 4, 4, 5, 5, 6, 6, 7, 8,
                9, 10, 11, 12, 13);
}

static int64_t draw_real(struct drawing *d)
{
    return PICK(d, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3);
}

static int64_t draw_rank(struct drawing *d)
{
    return PICK(d, 0, 1, 1, 1, 2, 2, 2, 2, 3, 3);
}

static int64_t draw_dim(struct drawing *d)
{
    return one_in(d, 14) ? PICK(d, 0, 17, 8, 40) : PICK(d, 3, 3, 3, 4, 4, 2, 1, 5);
}

static int64_t draw_axis(struct drawing *d)
{
    return d->wild ? PICK(d, 0, 0, 1, -1, 2, -2, 5) : PICK(d, 0, 0, 0, 0, 1, -1);
}

static int64_t draw_tensor(struct drawing *d)
{
    return d->wild && one_in(d, 12) ? -1 - (int64_t)below(d, 40) : (int64_t)below(d, 60);
}

/* An operand of an operation: a new tensor, a matching one of the pool, or any tensor. */
static int64_t draw_use(struct drawing *d)
{
    if (d->wild && one_in(d, 15)) {
        return -1 - (int64_t)below(d, 60);
    }
    return one_in(d, 3) ? 0 : 1 + (int64_t)below(d, 60);
}

static int64_t draw_bind(struct drawing *d)
{
    return one_in(d, 3) ? 0 : 1 + (int64_t)below(d, 60);
}

static int64_t draw_no_odd(struct drawing *d)
{
    (void)d;
    return 0; // one statement of a run at most: add_odd()
}

static int64_t draw_wild(struct drawing *d)
{
    return d->wild && one_in(d, 5);
}

static int64_t draw_wrong(struct drawing *d)
{
    return d->wild && one_in(d, 2) ? 1 + (int64_t)below(d, 4) : 0;
}

static int64_t draw_seldom(struct drawing *d)
{
    return one_in(d, 8) ? 1 + (int64_t)below(d, 3) : 0;
}

static int64_t draw_clip(struct drawing *d)
{
    return d->wild ? PICK(d, 0, 1, 2, 3, 4) : PICK(d, 0, 0, 0, 1, 2, 3);
}

static int64_t draw_algorithm(struct drawing *d)
{
    return d->wild ? PICK(d, 0, 2, 3, 4, 5, 6) : PICK(d, 0, 0, 2, 3, 4, 5);
}

static int64_t draw_fn(struct drawing *d)
{
    return d->wild ? PICK(d, 0, 1, 2, 3, 4, 5, 6, 7) : PICK(d, 0, 1, 1, 2, 4, 5, 6, 7);
}

static int64_t draw_size(struct drawing *d)
{
    return d->wild && one_in(d, 3)
               ? PICK(d, 0, -1, -2, -3, 100, INT64_MAX, INT64_MIN, 1 << 20)
               : PICK(d, 1, 2, 2, 3, 3, 4, 5, 9);
}

static int64_t draw_count(struct drawing *d)
{
    return d->wild && one_in(d, 3)
               ? PICK(d, -1, -2, -3, 100, INT64_MAX, INT64_MIN, INT64_MAX - 1)
               : PICK(d, 0, 1, 2, 2, 3, 4, 6, -1);
}

static int64_t draw_index(struct drawing *d)
{
    return d->wild ? PICK(d, 0, 1, 2, 5, -1, INT64_MAX - 2) : PICK(d, 0, 0, 0, 1);
}

static int64_t draw_begin(struct drawing *d)
{
    return d->wild ? PICK(d, 0, -4, INT64_MAX - 3, INT64_MIN + 2) : PICK(d, 0, 0, 1, -3);
}

static int64_t draw_step(struct drawing *d)
{
    return d->wild ? PICK(d, 0, 1, 2, 4, 5) : PICK(d, 0, 0, 4);
}

static int64_t draw_sync(struct drawing *d)
{
    return d->wild ? PICK(d, 0, 1, 2, 3) : PICK(d, 0, 0, 0, 2, 3, 3);
}

static int64_t draw_aggregation(struct drawing *d)
{
    return d->wild ? PICK(d, 0, 1, 2, 3) : PICK(d, 0, 1, 1, 1, 2, 2, 3, 3);
}

static int64_t draw_differ(struct drawing *d)
{
    return one_in(d, d->wild ? 3 : 12) ? 2 : PICK(d, 0, 1, 1);
}

static int64_t draw_along(struct drawing *d)
{
    return d->wild ? PICK(d, 0, 0, 1, 2, -1, 7) : PICK(d, 0, 0, 0, 0, 1);
}

static int64_t draw_predicate(struct drawing *d)
{
    return d->wild ? PICK(d, 0, 1, 2, 3, 4) : PICK(d, 0, 0, 1, 2);
}

static int64_t draw_few(struct drawing *d)
{
    return (int64_t)below(d, 6);
}

static int64_t draw_seed(struct drawing *d)
{
    return (int64_t)below(d, 100000);
}

static int64_t draw_dataset(struct drawing *d)
{
    return one_in(d, 4) ? (int64_t)below(d, 5) : 0;
}

static int64_t draw_length(struct drawing *d)
{
    return (int64_t)below(d, 14);
}

static const struct rule {
    const char *name;
    int64_t (*draw)(struct drawing *d);
} RULES[] = {
    {"dtype", draw_dtype},   {"real", draw_real},     {"rank", draw_rank},
    {"d0", draw_dim},        {"d1", draw_dim},        {"d2", draw_dim},
    {"axis", draw_axis},     {"t", draw_tensor},      {"t2", draw_tensor},
    {"from", draw_bind},     {"from2", draw_bind},    {"u0", draw_use},
    {"u1", draw_use},        {"u2", draw_use},        {"u3", draw_use},
    {"bind", draw_bind},     {"odd", draw_no_odd},    {"wild", draw_wild},
    {"outside", draw_wild},  {"wrong", draw_wrong},   {"missing", draw_seldom},
    {"sparse", draw_seldom}, {"clip", draw_clip},     {"by", draw_algorithm},
    {"fn", draw_fn},         {"size", draw_size},     {"more", draw_size},
    {"count", draw_count},   {"index", draw_index},   {"begin", draw_begin},
    {"step", draw_step},     {"seed", draw_seed},     {"d", draw_dataset},
    {"d2", draw_dataset},    {"length", draw_length}, {"whole", draw_seldom},
    {"stateful", draw_wild}, {"sync", draw_sync},     {"agg", draw_aggregation},
    {"differ", draw_differ}, {"along", draw_along},   {"pred", draw_predicate},
    {"each", draw_wild},
};

static int64_t draw_number(struct drawing *d, const char *name, size_t length)
{
    for (size_t i = 0; i < LSI_COUNT_OF(RULES); i++) {
        if (strlen(RULES[i].name) == length && memcmp(RULES[i].name, name, length) == 0) {
            return RULES[i].draw(d);
        }
    }
    return draw_few(d);
}

/* ---- operations ---- */

static int64_t elements_of(const char *in)
{
    sig_input spec[SIG_MOST];
    sig_sizes sizes;
    int64_t all = 0;

    for (int i = 0; i < 128; i++) {
        sizes.of[i] = 4;
    }
    const int n = sig_parse(in, &sizes, LS_F32, spec);
    for (int i = 0; i < n; i++) {
        all += spec[i].null ? 0 : ls_shape_count(&spec[i].shape);
    }
    return all;
}

static bool is_product(lsi_op_id op)
{
    return op >= LSI_OP_matmul && op <= LSI_OP_self_attention_grad;
}

/* Whether the case is small enough and of the program's kind. */
static bool case_suits(struct drawing *d, lsi_op_id op, const op_case *k)
{
    const bool bad = k->kind == OP_BAD;
    int64_t elements;

    if (strlen(k->in) >= MOST_SIGNATURE || (bad && !(d->wild && one_in(d, 20)))) {
        return false;
    }
    elements = elements_of(k->in);
    // Now and then one that is large enough to be divided among threads.
    return elements <= 1500 || (elements <= 160000 && !is_product(op) && one_in(d, 60));
}

static void draw_op(struct drawing *d, statement *s)
{
    for (;;) {
        const lsi_op_id op = (lsi_op_id)(1 + below(d, LSI_OP_COUNT - 1));
        const op_entry *e = op_find(op);
        size_t n = 0;

        if (e == NULL) {
            continue;
        }
        while (e->cases[n].kind != OP_NO_MORE) {
            n++;
        }
        const op_case *k = &e->cases[below(d, n)];
        if (case_suits(d, op, k)) {
            s->op = op;
            s->how = *k;
            s->how.kind = k->kind == OP_BAD ? OP_BAD : OP_GRADIENT;
            s->how.in = s->how.out = NULL;
            (void)snprintf(s->in, sizeof s->in, "%s", k->in);
            return;
        }
    }
}

/* ---- statements ---- */

/*
 * Valid combinations of a variable: strings have no aggregation, integers have no mean.
 */
static void settle_variable(statement *s)
{
    int64_t *dtype = &s->n[0], *sync = &s->n[5], *aggregation = &s->n[6];

    *dtype = dtype_of(*dtype) == LS_STRING ? 0 : *dtype;
    if (op_epsilon(dtype_of(*dtype)) == 0 && *aggregation == LS_AGGREGATE_MEAN) {
        *aggregation = LS_AGGREGATE_ONLY_FIRST_REPLICA;
    }
    if (*sync == LS_SYNC_ON_READ && *aggregation == LS_AGGREGATE_NONE) {
        *aggregation = LS_AGGREGATE_ONLY_FIRST_REPLICA;
    }
}

static statement *add_statement(struct drawing *d, const verb *v)
{
    statement *s;
    size_t n;

    if (d->p->count == MOST_STATEMENTS) {
        return NULL;
    }
    s = &d->p->statements[d->p->count++];
    memset(s, 0, sizeof *s);
    s->verb = v;
    n = verb_numbers(v);
    for (size_t i = 0; i < n; i++) {
        const char *name;
        int64_t most;
        const size_t length = verb_number(v, i, &name, &most);

        s->n[i] =
            most > 0 ? (int64_t)below(d, (uint64_t)most) : draw_number(d, name, length);
    }
    if (strcmp(v->name, "op") == 0) {
        draw_op(d, s);
    } else if (strcmp(v->name, "var") == 0 && !d->wild) {
        settle_variable(s);
    }
    return s;
}

static statement *add_named(struct drawing *d, const char *name)
{
    return add_statement(d, verb_find(name, strlen(name)));
}

struct choice {
    struct drawing *d;
    int where;
    uint64_t left; /* of the weights; SIZE_MAX: counting */
    uint64_t total;
    const verb *found;
};

static void count_weight(const verb *v, void *user)
{
    struct choice *c = user;

    c->total += (v->where & c->where) != 0 ? v->weight[c->d->theme] : 0;
}

static void find_weight(const verb *v, void *user)
{
    struct choice *c = user;
    const uint64_t w = (v->where & c->where) != 0 ? v->weight[c->d->theme] : 0;

    if (c->found == NULL && c->left < w) {
        c->found = v;
    }
    c->left -= c->found == NULL ? w : 0;
}

static void add_any(struct drawing *d, int where)
{
    struct choice c = {d, where, 0, 0, NULL};

    each_verb(count_weight, &c);
    c.left = below(d, c.total);
    each_verb(find_weight, &c);
    (void)add_statement(d, c.found);
}

/*
 * Changes one of the statements from `first` on for one replica. Mostly it is one that
 * replicas do together, and half of the time the first one, before another can have
 * failed.
 */
static void add_odd(struct drawing *d, size_t first)
{
    const bool update = d->theme == TRAIN && !one_in(d, 3);

    if (update) {
        (void)add_named(d, PICK(d, 0, 0, 1) == 0 ? "apply" : "scatter");
    }
    for (int tries = 0; tries < 8; tries++) {
        const size_t last = d->p->count - 1;
        statement *s =
            &d->p->statements[update ? last : first + below(d, d->p->count - first)];

        if (tries < 6 && (strcmp(s->verb->name, "op") == 0 ||
                          strcmp(s->verb->name, "constant") == 0)) {
            continue;
        }
        if (set_number(s, "odd", PICK(d, 1, 2, 3, 1, 2, -1))) {
            if (one_in(d, 2)) {
                const statement early = *s;

                *s = d->p->statements[first];
                d->p->statements[first] = early;
            }
            return;
        }
    }
}

static void add_run(struct drawing *d)
{
    const uint64_t n = 4 + below(d, 9);
    size_t first;

    (void)add_named(d, "run");
    first = d->p->count;
    for (uint64_t i = 0; i < n; i++) {
        if (d->wild && one_in(d, 60)) {
            statement *s = add_named(d, one_in(d, 2) ? "fail" : "leave");

            if (s != NULL) {
                s->n[0] = 1 + (int64_t)below(d, 4);
            }
        } else {
            add_any(d, IN_STEP);
        }
    }
    if (d->odd && !one_in(d, 4)) {
        add_odd(d, first);
    }
    (void)add_named(d, "end");
}

static void add_block(struct drawing *d)
{
    const uint64_t n = 2 + below(d, 6);

    if (d->theme != DATA && !one_in(d, d->theme == COMPUTE ? 2 : 5)) {
        add_run(d);
    } else if (d->theme != DATA) {
        for (uint64_t i = 0; i < n + 3; i++) {
            add_any(d, IN_STEP);
        }
        (void)add_named(d, "finish");
    }
    for (uint64_t i = 0; d->theme != COMPUTE && i < (d->theme == DATA ? 3 * n : n); i++) {
        add_any(d, IN_HOST);
    }
}

/* Statements to begin and to end a training with. */
static void add_variables(struct drawing *d)
{
    const uint64_t n = 2 + below(d, 3);

    for (uint64_t i = 0; i < n; i++) {
        (void)add_named(d, "var");
    }
    if (d->theme == TRAIN) {
        (void)add_named(d, "opt");
        (void)add_named(d, "metric");
    }
}

void program_generate(uint64_t seed, program *out)
{
    static const unsigned char themes[] = {COMPUTE, COMPUTE, COMPUTE, TRAIN, TRAIN,
                                           TRAIN,   DATA,    DATA,    MIXED, MIXED};
    struct drawing d = {.random = seed, .p = out};
    const uint64_t blocks = 1;

    memset(out, 0, sizeof *out);
    out->seed = seed;
    d.random =
        lst_random(&d.random); // neighbouring seeds would draw the same numbers, shifted
    d.theme = (theme)themes[below(&d, sizeof themes)];
    d.wild = one_in(&d, 5);
    d.odd = one_in(&d, d.wild ? 2 : 4);
    (void)add_named(&d, "setup");
    if (d.theme == TRAIN || d.theme == MIXED) {
        add_variables(&d);
    }
    for (uint64_t i = 0; i < blocks + below(&d, 2); i++) {
        add_block(&d);
    }
    for (int64_t i = 0; d.theme == TRAIN && i < 4; i++) {
        statement *s = add_named(&d, "value");

        if (s != NULL) {
            s->n[0] = i;
        }
    }
}
