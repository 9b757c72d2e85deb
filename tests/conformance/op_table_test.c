/*
 * Tests every row of the operation table: its shape rule, that fast kernels agree with
 * the reference, its gradient against finite differences, that its attributes are the
 * same wherever it runs, and that it rejects bad arguments. A row without one of these fails the suite; the catalogue is in op_cases.h.
 */
#include "grad/gradient_check.h"
#include "ls_test.h"
#include "op_cases.h"

#include <stdarg.h>
#include <stdio.h>

enum { DRAWS = 7 };

static const char *name_of(lsi_op_id op)
{
    return lsi_op_table[op]->name;
}

static size_t count(const op_entry *e, op_kind kind)
{
    size_t n = 0;

    for (const op_case *k = e->cases; k->kind != OP_NO_MORE; k++) {
        n += k->kind == kind;
    }
    return n;
}

/* Reports a failed check with its operation and inputs. */
static void complain(const op_entry *e, const op_case *k, const char *fmt, ...)
    LS_PRINTF(3, 4);
static void complain(const op_entry *e, const op_case *k, const char *fmt, ...)
{
    char text[600];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    atomic_fetch_add(&lst_failures, 1);
    (void)fprintf(stderr, "%s %s p=(%d %d %d): %s\n", name_of(e->op), k->in, (int)k->p[0],
                  (int)k->p[1], (int)k->p[2], text);
}

static size_t outputs_of(const op_entry *e)
{
    return e->outputs == 0 ? 1 : (size_t)e->outputs;
}

/* The kind of case that a row lacks; NULL: none. */
static const char *lacking(const ls_op *row, const op_entry *e)
{
    if (row == NULL || row->shape == NULL) {
        return "a row with a shape rule";
    }
    if (e == NULL) {
        return "an entry of the catalogue";
    }
    if (count(e, OP_SHAPE) == 0) {
        return "a test of its shape rule";
    }
    if (count(e, OP_COMPARE) == 0) {
        return "a comparison of its kernels";
    }
    if (count(e, OP_BAD) == 0) {
        return "a test of a bad argument";
    }
    if ((count(e, OP_GRADIENT) == 0) != e->no_gradient) {
        return "a test of its gradient, or the mark that it has none";
    }
    // The mark must agree with the row: otherwise it would hide a missing gradient.
    return (row->gradient == NULL) == e->no_gradient ? NULL
                                                     : "the gradient it should have";
}

LST_TEST(every_row_has_a_test_of_each_kind)
{
    for (int op = 1; op < LSI_OP_COUNT; op++) {
        const ls_op *row = lsi_op_table[op];
        const char *what = lacking(row, op_find((lsi_op_id)op));

        if (what != NULL) {
            atomic_fetch_add(&lst_failures, 1);
            (void)fprintf(stderr, "operation %d (%s) lacks %s\n", op,
                          row == NULL ? "?" : row->name, what);
        }
    }
}

/* Inputs of a case on a device; false: the line cannot be read. */
static bool make_inputs(const op_entry *e, const op_case *k, const sig_sizes *sizes,
                        ls_dtype real, ls_device *dev, uint64_t *random, ls_tensor **in,
                        size_t *n)
{
    sig_input spec[SIG_MOST];
    const int count_ = sig_parse(k->in, sizes, real, spec);

    if (count_ < 0) {
        complain(e, k, "cannot be read");
        return false;
    }
    *n = (size_t)count_;
    for (size_t i = 0; i < *n; i++) {
        in[i] = spec[i].null ? NULL : sig_tensor(dev, &spec[i], random);
    }
    return true;
}

static void release_all(ls_tensor **t, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ls_tensor_release(t[i]);
    }
}

static ls_runtime *runtime_of(const char *isa, int threads)
{
    ls_runtime_options o = LS_RUNTIME_OPTIONS_INIT;
    ls_runtime *rt = NULL;
    ls_error err = LS_ERROR_INIT;

    o.threads = threads;
    o.isa = isa;
    o.seeded = true;
    o.seed = 7;
    LST_OK(ls_runtime_create(&o, &rt, &err));
    return rt;
}

static ls_runtime *reference_runtime(void)
{
    ls_runtime *rt = runtime_of("baseline", 1);

    ls_runtime_device(rt, 0)->isa = LSI_ISA_REF;
    ls_runtime_device(rt, 0)->dnnl = false;
    return rt;
}

/*
 * Runs all cases of `kind` on one device and checks each with its context, the line of
 * the call and the outputs.
 */
static void run_cases(op_kind kind,
                      void (*check)(const op_entry *e, const op_case *k, ls_context *c,
                                    int line, ls_tensor *const *out))
{
    ls_runtime *rt = runtime_of(NULL, 1);
    ls_device *dev = ls_runtime_device(rt, 0);
    ls_context *c = NULL;
    ls_error err = LS_ERROR_INIT;
    uint64_t random = 1;

    LST_OK(ls_context_open(dev, NULL, &c, &err));
    for (int op = 1; op < LSI_OP_COUNT; op++) {
        const op_entry *e = op_find((lsi_op_id)op);

        for (const op_case *k = e == NULL ? NULL : e->cases;
             k != NULL && k->kind != OP_NO_MORE; k++) {
            ls_tensor *in[SIG_MOST] = {NULL}, *out[LSI_MAX_OUTPUTS] = {NULL};
            size_t n = 0;

            if (k->kind != kind ||
                !make_inputs(e, k, NULL, LS_F32, dev, &random, in, &n)) {
                continue;
            }
            const int line = __LINE__ + 1;
            e->apply(LS_HERE(c), e, k, in, n, out);
            check(e, k, c, line, out);
            (void)!ls_context_finish(c, NULL);
            release_all(in, n);
        }
    }
    ls_context_close(c);
    ls_runtime_release(rt);
}

static void check_shape(const op_entry *e, const op_case *k, ls_context *c, int line,
                        ls_tensor *const *out)
{
    sig_input want[SIG_MOST];
    const int n = sig_parse(k->out, NULL, LS_F32, want);
    ls_error err = LS_ERROR_INIT;

    (void)line;
    if (ls_context_status(c, &err) != LS_OK) {
        complain(e, k, "fails: %s", err.message);
        return;
    }
    if (n != (int)outputs_of(e)) {
        complain(e, k, "the case names %d outputs of %zu", n, outputs_of(e));
        return;
    }
    for (int i = 0; i < n; i++) {
        const ls_shape s = ls_tensor_shape(out[i]);

        if ((ls_dtype)out[i]->dtype != want[i].dtype ||
            !ls_shape_equal(&s, &want[i].shape)) {
            complain(e, k, "output %d is %s", i, lsi_text_of(out[i]).s);
        }
    }
}

LST_TEST(shape_rules_give_the_dtypes_and_shapes_of_tensorflow)
{
    run_cases(OP_SHAPE, check_shape);
}

/* ---- reference and fast kernels ---- */

static double largest(const ls_tensor *t)
{
    double most = 0;

    for (int64_t i = 0; i < t->count; i++) {
        const double v = fabs(lsi_element(t, i));

        most = isfinite(v) && v > most ? v : most;
    }
    return most;
}

/*
 * Bits may differ only where a tolerance is given. Numbers below the smallest normal one
 * may be flushed to zero, as float32 arithmetic of other libraries does.
 */
static void check_equal(const op_entry *e, const op_case *k, const char *where,
                        const ls_tensor *ref, const ls_tensor *fast)
{
    const double eps = op_epsilon((ls_dtype)ref->dtype);
    const double rtol = e->tolerance == ELEMENT ? 16 * eps : 0;
    double atol = rtol;

    if (e->tolerance == SUM) {
        atol = 64 * eps * LSI_MAX(largest(ref), 1e-3);
    } else if (e->tolerance == CANCEL) {
        atol = 64 * eps * LSI_MAX(largest(ref), 1.0);
    }
    for (int64_t i = 0; i < ref->count; i++) {
        const double a = lsi_element(ref, i), b = lsi_element(fast, i);

        if (!lst_near(b, a, rtol, atol)) {
            complain(e, k, "%s: element %lld of %s is %.9g, the reference has %.9g",
                     where, (long long)i, lsi_text_of(ref).s, b, a);
            return;
        }
    }
}

struct pair {
    ls_runtime *ref, *fast;
    ls_context *ref_context, *fast_context;
    char where[60];
};

/*
 * oneDNN takes precedence where it is used, so our own kernels are compared without it.
 */
static void open_pair(struct pair *p, const char *isa, int threads, bool dnnl)
{
    ls_error err = LS_ERROR_INIT;

    p->ref = reference_runtime();
    p->fast = runtime_of(isa, threads);
    ls_runtime_device(p->fast, 0)->dnnl = dnnl;
    LST_OK(ls_context_open(ls_runtime_device(p->ref, 0), NULL, &p->ref_context, &err));
    LST_OK(ls_context_open(ls_runtime_device(p->fast, 0), NULL, &p->fast_context, &err));
    (void)snprintf(p->where, sizeof p->where, "%s%s, %d threads", isa,
                   dnnl ? " and oneDNN" : "", threads);
}

static void close_pair(struct pair *p)
{
    ls_context_close(p->ref_context);
    ls_context_close(p->fast_context);
    ls_runtime_release(p->ref);
    ls_runtime_release(p->fast);
}

static void compare_once(struct pair *p, const op_entry *e, const op_case *k, int draw,
                         uint64_t *random)
{
    ls_tensor *in[SIG_MOST] = {NULL}, *copy[SIG_MOST] = {NULL};
    ls_tensor *a[LSI_MAX_OUTPUTS] = {NULL}, *b[LSI_MAX_OUTPUTS] = {NULL};
    ls_error ea = LS_ERROR_INIT, eb = LS_ERROR_INIT;
    sig_sizes sizes;
    size_t n = 0;

    sig_draw(k->in, draw, random, &sizes);
    if (!make_inputs(e, k, &sizes, LS_F32, ls_runtime_device(p->ref, 0), random, in,
                     &n)) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        copy[i] = sig_copy(ls_runtime_device(p->fast, 0), in[i]);
    }
    e->apply(LS_HERE(p->ref_context), e, k, in, n, a);
    e->apply(LS_HERE(p->fast_context), e, k, copy, n, b);
    if (ls_context_status(p->ref_context, &ea) != LS_OK ||
        ls_context_status(p->fast_context, &eb) != LS_OK) {
        complain(e, k, "%s: fails: %s%s", p->where, ea.message, eb.message);
    } else {
        for (size_t o = 0; o < outputs_of(e); o++) {
            check_equal(e, k, p->where, a[o], b[o]);
        }
    }
    (void)!ls_context_finish(p->ref_context, NULL);
    (void)!ls_context_finish(p->fast_context, NULL);
    release_all(in, n);
    release_all(copy, n);
}

static void compare_all(struct pair *p)
{
    for (int op = 1; op < LSI_OP_COUNT; op++) {
        const op_entry *e = op_find((lsi_op_id)op);
        uint64_t random = 42 + (uint64_t)op;

        for (const op_case *k = e == NULL ? NULL : e->cases;
             k != NULL && k->kind != OP_NO_MORE; k++) {
            const int draws = sig_varies(k->in) ? DRAWS : 1;

            for (int d = 0; k->kind == OP_COMPARE && d < draws; d++) {
                compare_once(p, e, k, draws == 1 ? 3 : d, &random);
            }
        }
    }
}

LST_TEST(fast_kernels_agree_with_the_reference_at_every_instruction_set)
{
    for (int isa = LSI_ISA_BASELINE; isa <= (int)lsi_isa_best(); isa++) {
        for (int threads = 1; threads <= 2; threads++) {
            struct pair p;

            open_pair(&p, lsi_isa_name((lsi_isa)isa), threads, false);
            LST_CHECK(ls_runtime_device(p.fast, 0)->isa == (lsi_isa)isa);
            compare_all(&p);
            close_pair(&p);
        }
    }
}

/* Compares oneDNN's kernels too; without its module this compares ours once more. */
LST_TEST(onednn_agrees_with_the_reference_where_it_is_used)
{
    for (int threads = 1; threads <= 2; threads++) {
        struct pair p;

        open_pair(&p, lsi_isa_name(lsi_isa_best()), threads, true);
        compare_all(&p);
        close_pair(&p);
    }
}

/* ---- gradients ---- */

struct step {
    const op_entry *e;
    const op_case *k;
};

static void apply_step(ls_context *c, ls_tensor *const *in, size_t nin, ls_tensor **out,
                       size_t nout, void *user)
{
    const struct step *s = user;
    ls_tensor *all[LSI_MAX_OUTPUTS] = {NULL};

    s->e->apply(LS_HERE(c), s->e, s->k, in, nin, all);
    for (size_t i = 0; i < nout; i++) {
        out[i] = all[i];
    }
}

static void check_gradient(ls_device *dev, const op_entry *e, const op_case *k,
                           uint64_t *random)
{
    const size_t nout = e->differentiated == 0 ? 1 : (size_t)e->differentiated;
    ls_tensor *in[SIG_MOST] = {NULL};
    struct step s = {e, k};
    lsi_check found;
    ls_error err = LS_ERROR_INIT;
    size_t n = 0;

    if (!make_inputs(e, k, NULL, LS_F64, dev, random, in, &n)) {
        return;
    }
    if (lsi_check_gradient(dev, apply_step, &s, in, n, nout, 1e-5, &found, &err) !=
        LS_OK) {
        complain(e, k, "fails: %s", err.message);
    } else if (found.compared == 0 || found.worst > 1e-6) {
        // The reference computes in float64: differences are good to 1e-9 (gradient_check.h); a
        // wrong formula is off by far more than 1e-6.
        complain(e, k, "gradient of input %zu, element %lld: %.9g, differences say %.9g",
                 found.input, (long long)found.element, found.tape, found.numeric);
    }
    release_all(in, n);
}

LST_TEST(gradients_agree_with_central_differences)
{
    ls_runtime *rt = reference_runtime();

    for (int op = 1; op < LSI_OP_COUNT; op++) {
        const op_entry *e = op_find((lsi_op_id)op);
        uint64_t random = 1000 + (uint64_t)op;

        for (const op_case *k = e == NULL ? NULL : e->cases;
             k != NULL && k->kind != OP_NO_MORE; k++) {
            if (k->kind == OP_GRADIENT) {
                check_gradient(ls_runtime_device(rt, 0), e, k, &random);
            }
        }
    }
    ls_runtime_release(rt);
}

/* ---- attributes ---- */

enum { SEEN_MOST = 256, SEEN_BYTES = 512 };

/* The operations that ran in a context, with their attributes. */
struct seen {
    struct {
        const ls_op *op;
        size_t size;
        unsigned char attrs[SEEN_BYTES];
    } call[SEEN_MOST];
    size_t count;
    ls_status st; /* of the step */
    void (*record)(ls_context *c, const ls_op_call *k, size_t attrs_size);
};

static struct seen *seeing; /* by the context that runs now */

static void see(ls_context *c, const ls_op_call *k, size_t attrs_size)
{
    LSI_ASSERT(seeing->count < SEEN_MOST && attrs_size <= SEEN_BYTES);
    seeing->call[seeing->count].op = k->op;
    seeing->call[seeing->count].size = attrs_size;
    if (attrs_size > 0) {
        memcpy(seeing->call[seeing->count].attrs, k->attrs, attrs_size);
    }
    seeing->count++;
    seeing->record(c, k, attrs_size);
}

/* Runs a case and its gradient, both recorded by a tape that also shows them to see(). */
static void run_seen(ls_context *c, const op_entry *e, const op_case *k,
                     ls_tensor *const *in, size_t n, struct seen *seen)
{
    ls_tape_options o = LS_TAPE_OPTIONS_INIT;
    ls_tensor *out[LSI_MAX_OUTPUTS] = {NULL}, *from[SIG_MOST], *grads[SIG_MOST];
    ls_tape *tape;
    size_t watched = 0;

    o.persistent = true; // the gradient is recorded, too
    tape = ls_tape_open(c, &o);
    memset(seen, 0, sizeof *seen);
    seen->record = c->recorder.record;
    c->recorder.record = see;
    seeing = seen;
    for (size_t i = 0; i < n; i++) {
        if (in[i] != NULL && lsi_dtype_is_float((ls_dtype)in[i]->dtype)) {
            from[watched++] = in[i];
            ls_tape_watch(c, tape, in[i]);
        }
    }
    e->apply(c, e, k, in, n, out);
    ls_gradients(c, tape, out, NULL,
                 e->differentiated == 0 ? 1 : (size_t)e->differentiated, from, watched,
                 grads);
    c->recorder.record = seen->record;
    seen->st = ls_context_finish(c, NULL);
}

/* The same on a stack that begins elsewhere. */
static __attribute__((noinline)) void run_deeper(ls_context *c, const op_entry *e,
                                                 const op_case *k, ls_tensor *const *in,
                                                 size_t n, struct seen *seen)
{
    volatile char away[4096];

    away[0] = 0;
    run_seen(c, e, k, in, n, seen);
    away[sizeof away - 1] = away[0];
}

static void compare_seen(const op_entry *e, const op_case *k, const struct seen *a,
                         const struct seen *b)
{
    if (a->count != b->count || a->count == 0 || a->st != LS_OK || b->st != LS_OK) {
        complain(e, k, "%zu operations and %s here, %zu and %s there", a->count,
                 ls_status_name(a->st), b->count, ls_status_name(b->st));
        return;
    }
    for (size_t i = 0; i < a->count; i++) {
        if (a->call[i].op != b->call[i].op || a->call[i].size != b->call[i].size ||
            memcmp(a->call[i].attrs, b->call[i].attrs, a->call[i].size) != 0) {
            complain(e, k,
                     "the attributes of %s are other bytes in another context: they hold "
                     "a pointer, bytes that were not set, or what should be an input",
                     a->call[i].op->name);
            return;
        }
    }
}

/*
 * Two runs of every case, and of its gradient, have nothing in common but the values of
 * the inputs: runtime, device, memory, stack, random state.
 */
LST_TEST(attributes_are_the_same_bytes_wherever_and_whenever_an_operation_runs)
{
    static struct seen here, there;
    const ls_random_state later = {99, 3, 1000};
    ls_error err = LS_ERROR_INIT;
    struct pair p;

    open_pair(&p, "baseline", 1, false);
    for (int op = 1; op < LSI_OP_COUNT; op++) {
        const op_entry *e = op_find((lsi_op_id)op);
        uint64_t random = 77 + (uint64_t)op;

        for (const op_case *k = e == NULL ? NULL : e->cases;
             k != NULL && k->kind != OP_NO_MORE; k++) {
            ls_tensor *in[SIG_MOST] = {NULL}, *copy[SIG_MOST] = {NULL};
            ls_device *dev = ls_runtime_device(p.ref, 0);
            sig_sizes sizes;
            size_t n = 0;

            sig_draw(k->in, 3, &random, &sizes);
            if (k->kind == OP_BAD ||
                !make_inputs(e, k, &sizes, LS_F32, dev, &random, in, &n)) {
                continue;
            }
            for (size_t i = 0; i < n; i++) {
                copy[i] = sig_copy(ls_runtime_device(p.fast, 0), in[i]);
            }
            LST_OK(ls_context_set_random_state(p.fast_context, &later, &err));
            run_seen(p.ref_context, e, k, in, n, &here);
            run_deeper(p.fast_context, e, k, copy, n, &there);
            compare_seen(e, k, &here, &there);
            release_all(in, n);
            release_all(copy, n);
        }
    }
    close_pair(&p);
}

/* ---- bad arguments ---- */

static void check_failure(const op_entry *e, const op_case *k, ls_context *c, int line,
                          ls_tensor *const *out)
{
    const ls_status want = k->code == LS_OK ? LS_INVALID_ARGUMENT : k->code;
    const char *name = name_of(e->op);
    ls_error err = LS_ERROR_INIT;
    const ls_status st = ls_context_status(c, &err);

    if (st != want || strstr(err.message, k->out) == NULL) {
        complain(e, k, "gives %s \"%s\" instead of %s with \"%s\"", ls_status_name(st),
                 err.message, ls_status_name(want), k->out);
        return;
    }
    if (strncmp(err.message, name, strlen(name)) != 0 ||
        err.message[strlen(name)] != ':') {
        complain(e, k, "the message \"%s\" does not begin with the name", err.message);
    }
    if (!lst_same_file(err.file, __FILE__) || err.line != line) {
        complain(e, k, "the site is %s:%d", err.file, err.line);
    }
    if (out[0] != NULL) {
        complain(e, k, "an output is there after the failure");
    }
}

LST_TEST(bad_arguments_are_named_with_their_operation_and_place)
{
    run_cases(OP_BAD, check_failure);
}

LST_MAIN(LST_CASE(every_row_has_a_test_of_each_kind),
         LST_CASE(shape_rules_give_the_dtypes_and_shapes_of_tensorflow),
         LST_CASE(fast_kernels_agree_with_the_reference_at_every_instruction_set),
         LST_CASE(onednn_agrees_with_the_reference_where_it_is_used),
         LST_CASE(gradients_agree_with_central_differences),
         LST_CASE(attributes_are_the_same_bytes_wherever_and_whenever_an_operation_runs),
         LST_CASE(bad_arguments_are_named_with_their_operation_and_place))
