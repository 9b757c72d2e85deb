/* When the gradient of a variable is final: told while the walk goes on. */
#include "grad/journal.h"
#include "ls_row_check.h"

#include "lockstep/variable.h"

enum { MOST = 12, SIDE = 3 };

/* What happened during the walk, in order: reports, and gradients of the row `trace`. */
struct event {
    int key;   /* reported; -1: none */
    int trace; /* its number; -1: none */
};

static struct {
    struct event event[4 * MOST];
    int count;
    ls_context *c;
    ls_tensor **grads;
    unsigned char seen[MOST][SIDE * SIDE * sizeof(double)]; /* at the report */
    int fail_at; /* the report that fails the step; negative: none */
    int reports;
} happened;

static ls_status trace_shape(ls_op_call *k)
{
    const ls_shape s = ls_tensor_shape(ls_op_input(k, 0));

    return ls_op_set_output(k, 0, ls_tensor_dtype(ls_op_input(k, 0)), &s);
}

static ls_status trace_kernel(ls_op_call *k)
{
    memcpy(ls_op_output(k, 0), ls_op_input(k, 0)->data, ls_tensor_bytes(k->in[0]));
    return LS_OK;
}

static void trace_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                           ls_tensor **gin)
{
    const int number = *(const int *)ls_op_node_attrs(n);

    happened.event[happened.count++] = (struct event){-1, number};
    if (number >= 100) {
        (void)ls_context_fail(c, LS_DATA_LOSS, "number %d fails", number);
        return;
    }
    gin[0] = gout[0];
}

/* The identity; its gradient notes that the walk has come to it. From 100 on it fails. */
static ls_tensor *trace(ls_context *c, ls_tensor *x, int number)
{
    static const ls_op row = {sizeof row,   "trace",       1, 1, 1, 0, trace_shape,
                              trace_kernel, trace_gradient};

    return ls_op_apply1(c, &row, &x, 1, &number, sizeof number);
}

static void note(void *user, size_t i)
{
    ls_tensor *g =
        happened.grads[i] != NULL ? lsi_dense(happened.c, happened.grads[i]) : NULL;

    LST_CHECK(user == &happened);
    happened.event[happened.count++] = (struct event){(int)i, -1};
    if (g != NULL) {
        memcpy(happened.seen[i], g->data, ls_tensor_bytes(g));
    }
    if (happened.reports++ == happened.fail_at) {
        (void)ls_context_fail(happened.c, LS_CANCELLED, "enough");
    }
}

static bool is_event(int at, int key, int number)
{
    const struct event e = at < happened.count ? happened.event[at] : (struct event){0};

    if (at >= happened.count || e.key != key || e.trace != number) {
        (void)fprintf(stderr, "  event %d of %d is key %d, trace %d\n", at,
                      happened.count, e.key, e.trace);
        return false;
    }
    return true;
}
#define REPORTED(at, key) LST_CHECK(is_event(at, key, -1))
#define PASSED(at, number) LST_CHECK(is_event(at, -1, number))

static void ask(ls_context *c, ls_tape *tape, ls_tensor *y, ls_variable **v, size_t n,
                ls_tensor **grads)
{
    memset(&happened, 0, sizeof happened);
    happened.c = c;
    happened.grads = grads;
    happened.fail_at = -1;
    lsi_tape_key_gradients(c, tape, y, (const void *const *)v, n, grads, note, &happened);
}

/* What was seen in the report of key `i` is the final gradient, bit by bit. */
static bool was_final(size_t i)
{
    ls_tensor *g = lsi_dense(happened.c, happened.grads[i]);

    return g != NULL && memcmp(happened.seen[i], g->data, ls_tensor_bytes(g)) == 0;
}

struct step {
    ls_runtime *rt;
    ls_context *c;
    ls_variable *v[MOST];
    ls_tensor *grads[MOST];
    ls_tensor *x;
};

static void open_step(struct step *s)
{
    uint64_t seed = 5;

    *s = (struct step){0};
    s->c = lst_open(&s->rt);
    for (int i = 0; i < MOST; i++) {
        ls_tensor *t = lst_random_f64(s->c, LS_SHAPE(SIDE, SIDE), -1, 1, &seed);

        LST_OK(ls_variable_create(t, NULL, &s->v[i], NULL));
    }
    s->x = lst_random_f64(s->c, LS_SHAPE(SIDE, SIDE), -1, 1, &seed);
}

static void close_step(struct step *s)
{
    lst_close(s->c, s->rt);
    for (int i = 0; i < MOST; i++) {
        ls_variable_release(s->v[i]);
    }
}

/* A layer with the weight v[i], and the number i + 1 before it. */
static ls_tensor *layer(struct step *s, ls_tensor *h, int i)
{
    h = trace(s->c, h, i + 1);
    return ls_tanh(s->c, ls_matmul(s->c, h, ls_read(s->c, s->v[i])));
}

LST_TEST(the_last_layer_is_final_first_wherever_the_weights_were_read)
{
    struct step s;
    ls_tape *tape;
    ls_tensor *w[3], *h;

    open_step(&s);
    tape = ls_tape_open(s.c, NULL);
    ls_tape_watch(s.c, tape, s.x);
    for (int i = 0; i < 3; i++) { // all read before the first is used
        w[i] = ls_read(s.c, s.v[i]);
    }
    h = s.x;
    for (int i = 0; i < 3; i++) {
        h = ls_tanh(s.c, ls_matmul(s.c, trace(s.c, h, i + 1), w[i]));
    }
    ask(s.c, tape, h, s.v, 3, s.grads);
    for (int i = 0; i < 3; i++) { // each before the walk comes to what precedes its use
        REPORTED(2 * i, 2 - i);
        PASSED(2 * i + 1, 3 - i);
        LST_CHECK(was_final((size_t)i));
    }
    LST_CHECK(happened.count == 6);
    close_step(&s);
}

LST_TEST(variables_of_one_operation_are_reported_in_the_order_they_were_asked_for)
{
    struct step s;
    ls_tape *tape;
    ls_tensor *h;

    open_step(&s);
    tape = ls_tape_open(s.c, NULL);
    h = ls_add(s.c, ls_read(s.c, s.v[2]), ls_read(s.c, s.v[0]));
    h = ls_mul(s.c, h, ls_read(s.c, s.v[1]));
    ask(s.c, tape, h, s.v, 3, s.grads);
    REPORTED(0, 1);
    REPORTED(1, 0);
    REPORTED(2, 2);
    LST_CHECK(happened.count == 3);
    close_step(&s);
}

LST_TEST(a_shared_weight_is_final_after_its_first_use)
{
    struct step s;
    ls_tape *tape;
    ls_tensor *h;

    open_step(&s);
    tape = ls_tape_open(s.c, NULL);
    ls_tape_watch(s.c, tape, s.x);
    h = layer(&s, s.x, 2); // the third's only use
    h = layer(&s, h, 0);   // the first's first
    h = layer(&s, h, 1);
    h = layer(&s, h, 0);
    // A view of the second's read is a use of it as well.
    h = ls_mul(s.c, h, ls_reshape(s.c, ls_read(s.c, s.v[1]), LS_SHAPE(SIDE, SIDE)));
    ask(s.c, tape, h, s.v, 3, s.grads);
    PASSED(0, 1);
    REPORTED(1, 1);
    PASSED(2, 2);
    REPORTED(3, 0);
    PASSED(4, 1);
    REPORTED(5, 2);
    PASSED(6, 3);
    LST_CHECK(happened.count == 7);
    LST_CHECK(was_final(0) && was_final(1) && was_final(2));
    close_step(&s);
}

LST_TEST(what_the_target_does_not_depend_on_is_reported_before_the_walk)
{
    struct step s;
    ls_tape *tape;
    ls_tensor *h;

    open_step(&s);
    tape = ls_tape_open(s.c, NULL);
    ls_tape_watch(s.c, tape, s.x);
    (void)ls_square(s.c, ls_read(s.c, s.v[2])); // used, for something else
    h = layer(&s, s.x, 3);
    (void)ls_sum(s.c, ls_read(s.c, s.v[3]), NULL, 0, false); // of no effect either
    (void)ls_read(s.c, s.v[1]);
    (void)ls_mul(s.c, h, ls_read(s.c, s.v[4])); // after the target
    ask(s.c, tape, h, s.v, 5, s.grads);
    REPORTED(0, 0);
    REPORTED(1, 1);
    REPORTED(2, 2);
    REPORTED(3, 4);
    REPORTED(4, 3);
    PASSED(5, 4);
    LST_CHECK(happened.count == 6);
    for (int i = 0; i < 5; i++) {
        LST_CHECK((s.grads[i] != NULL) == (i == 3));
    }
    close_step(&s);
}

LST_TEST(a_use_for_something_else_does_not_delay_a_variable)
{
    struct step s;
    ls_tape *tape;
    ls_tensor *h, *norm;

    open_step(&s);
    tape = ls_tape_open(s.c, NULL);
    ls_tape_watch(s.c, tape, s.x);
    norm = ls_sum(s.c, ls_square(s.c, ls_read(s.c, s.v[1])), NULL, 0, false);
    h = layer(&s, layer(&s, s.x, 0), 1);
    ask(s.c, tape, h, s.v, 2, s.grads);
    REPORTED(0, 1);
    PASSED(1, 2);
    REPORTED(2, 0);
    LST_CHECK(norm != NULL && was_final(1));
    close_step(&s);
}

LST_TEST(rows_of_a_table_are_joined_when_they_are_final)
{
    struct step s;
    ls_tape *tape;
    ls_tensor *at, *h;
    const int32_t first[2] = {2, 0}, second[1] = {2};
    const ls_tensor *indices = NULL;

    open_step(&s);
    tape = ls_tape_open(s.c, NULL);
    at = ls_constant(s.c, LS_I32, LS_SHAPE(2), first);
    h = ls_sum(s.c, ls_variable_gather(s.c, s.v[0], at), NULL, 0, false);
    h = ls_mul(s.c, ls_read(s.c, s.v[1]), h);
    at = ls_constant(s.c, LS_I32, LS_SHAPE(1), second);
    h = ls_mul(s.c, h, ls_variable_gather(s.c, s.v[0], at));
    ask(s.c, tape, h, s.v, 2, s.grads);
    REPORTED(0, 1);
    REPORTED(1, 0);
    LST_CHECK(was_final(0) && was_final(1));
    LST_CHECK(s.grads[0] != NULL && ls_tensor_slices(s.grads[0], NULL, &indices));
    LST_CHECK(ls_tensor_count(indices) == 3);
    close_step(&s);
}

LST_TEST(a_table_that_is_also_a_weight_is_final_after_both)
{
    struct step s;
    ls_tape *tape;
    ls_tensor *at, *h;
    const int32_t rows[3] = {2, 0, 2};

    open_step(&s);
    tape = ls_tape_open(s.c, NULL);
    at = ls_constant(s.c, LS_I32, LS_SHAPE(3), rows);
    h = trace(s.c, ls_variable_gather(s.c, s.v[0], at), 1);
    h = ls_matmul(s.c, layer(&s, h, 1), ls_read(s.c, s.v[0]));
    ask(s.c, tape, h, s.v, 2, s.grads);
    REPORTED(0, 1);
    PASSED(1, 2);
    PASSED(2, 1);
    REPORTED(3, 0);
    LST_CHECK(was_final(0) && !ls_tensor_slices(s.grads[0], NULL, NULL));
    close_step(&s);
}

LST_TEST(a_read_that_is_the_target_and_one_asked_for_twice_are_reported_once_each)
{
    struct step s;
    ls_tape *tape;
    ls_tape_options o = LS_TAPE_OPTIONS_INIT;
    ls_variable *v[3];
    ls_tensor *y;

    o.persistent = true;
    open_step(&s);
    tape = ls_tape_open(s.c, &o);
    v[0] = s.v[1];
    v[1] = s.v[0];
    v[2] = s.v[1];
    y = ls_read(s.c, s.v[1]);
    ask(s.c, tape, y, v, 3, s.grads);
    REPORTED(0, 0);
    REPORTED(1, 1);
    REPORTED(2, 2);
    LST_CHECK(lst_at(s.grads[0], 0) == 1 && lst_at(s.grads[2], 0) == 1);
    y = ls_square(s.c, ls_read(s.c, s.v[1])); // the tape is persistent: again
    ask(s.c, tape, y, v, 3, s.grads);
    REPORTED(0, 1);
    REPORTED(1, 0);
    REPORTED(2, 2);
    LST_CHECK(happened.count == 3 && was_final(0) && was_final(2));
    close_step(&s);
}

static void gradients(struct step *s, ls_tape *tape, ls_tensor *y, bool told)
{
    if (told) {
        ask(s->c, tape, y, s->v, 2, s->grads);
        LST_CHECK(happened.count == 2 && was_final(0) && was_final(1));
    } else {
        lsi_tape_key_gradients(s->c, tape, y, (const void *const *)s->v, 2, s->grads,
                               NULL, NULL);
    }
}

/* First and second derivatives of v[0]^4 v[1], where both tapes watch one read. */
static void derivatives(bool told, double *first, double *second)
{
    struct step s;
    ls_tape *outer, *inner;
    ls_tensor *w, *h;

    open_step(&s);
    outer = ls_tape_open(s.c, NULL);
    w = ls_read(s.c, s.v[0]);
    inner = ls_tape_open(s.c, NULL);
    lsi_tape_note_read(s.c, s.v[0], true, w); // the outer tape has it already
    h = ls_mul(s.c, ls_square(s.c, w), ls_read(s.c, s.v[1]));
    h = ls_mul(s.c, h, ls_mul(s.c, w, ls_read(s.c, s.v[0])));
    gradients(&s, inner, h, told);
    for (int i = 0; i < 2; i++) {
        memcpy(first + SIDE * SIDE * i, s.grads[i]->data, SIDE * SIDE * sizeof *first);
    }
    gradients(&s, outer, ls_add(s.c, s.grads[0], s.grads[1]), told);
    for (int i = 0; i < 2; i++) {
        memcpy(second + SIDE * SIDE * i, s.grads[i]->data, SIDE * SIDE * sizeof *second);
    }
    close_step(&s);
}

LST_TEST(a_tape_upon_a_tape_gives_the_same_bits_with_reports)
{
    double plain[2][2 * SIDE * SIDE], told[2][2 * SIDE * SIDE];

    derivatives(false, plain[0], plain[1]);
    derivatives(true, told[0], told[1]);
    LST_CHECK(memcmp(plain, told, sizeof plain) == 0);
}

LST_TEST(a_failure_in_the_middle_reports_no_more)
{
    struct step s;
    ls_tape *tape;
    ls_tensor *h;

    open_step(&s);
    tape = ls_tape_open(s.c, NULL);
    h = layer(&s, trace(s.c, layer(&s, ls_read(s.c, s.v[2]), 0), 100), 1);
    ask(s.c, tape, h, s.v, 4, s.grads);
    REPORTED(0, 3); // not read
    REPORTED(1, 1);
    PASSED(2, 2);
    PASSED(3, 100);
    LST_CHECK(happened.count == 4);
    LST_CHECK(s.grads[0] == NULL && s.grads[2] == NULL);
    LST_STEP_FAILS(s.c, LS_DATA_LOSS, "number 100");
    close_step(&s);
}

LST_TEST(a_report_that_fails_the_step_is_the_last)
{
    for (int at = 0; at < 4; at++) {
        struct step s;
        ls_tape *tape;
        ls_tensor *h;

        open_step(&s);
        tape = ls_tape_open(s.c, NULL);
        ls_tape_watch(s.c, tape, s.x);
        h = layer(&s, layer(&s, s.x, 0), 1);
        memset(&happened, 0, sizeof happened);
        happened.c = s.c;
        happened.grads = s.grads;
        happened.fail_at = at; // two that were not read, then the layers
        lsi_tape_key_gradients(s.c, tape, h, (const void *const *)s.v, 4, s.grads, note,
                               &happened);
        LST_CHECK(happened.reports == at + 1);
        LST_CHECK(s.grads[0] == NULL || at == 3);
        LST_STEP_FAILS(s.c, LS_CANCELLED, "enough");
        close_step(&s);
    }
}

LST_TEST(reports_without_memory_fail_the_step)
{
    ls_status st = LS_RESOURCE_EXHAUSTED;

    for (int64_t n = 1; n < 1000 && st == LS_RESOURCE_EXHAUSTED; n++) {
        struct step s;
        ls_tape *tape;
        ls_error err = LS_ERROR_INIT;
        ls_tensor *h;

        open_step(&s);
        tape = ls_tape_open(s.c, NULL);
        ls_tape_watch(s.c, tape, s.x);
        h = s.x;
        for (int i = 0; i < 10; i++) {
            h = layer(&s, h, i);
        }
        memset(&happened, 0, sizeof happened);
        happened.c = s.c;
        happened.grads = s.grads;
        happened.fail_at = -1;
        (void)lsi_alloc_fail_at(n);
        lsi_tape_key_gradients(s.c, tape, h, (const void *const *)s.v, MOST, s.grads,
                               note, &happened);
        (void)lsi_alloc_fail_at(0);
        st = ls_context_finish(s.c, &err);
        LST_CHECK(st == LS_OK || st == LS_RESOURCE_EXHAUSTED);
        LST_CHECK(st != LS_OK || happened.reports == MOST);
        close_step(&s);
    }
    LST_CHECK(st == LS_OK);
}

LST_MAIN(
    LST_CASE(the_last_layer_is_final_first_wherever_the_weights_were_read),
    LST_CASE(variables_of_one_operation_are_reported_in_the_order_they_were_asked_for),
    LST_CASE(a_shared_weight_is_final_after_its_first_use),
    LST_CASE(what_the_target_does_not_depend_on_is_reported_before_the_walk),
    LST_CASE(a_use_for_something_else_does_not_delay_a_variable),
    LST_CASE(rows_of_a_table_are_joined_when_they_are_final),
    LST_CASE(a_table_that_is_also_a_weight_is_final_after_both),
    LST_CASE(a_read_that_is_the_target_and_one_asked_for_twice_are_reported_once_each),
    LST_CASE(a_tape_upon_a_tape_gives_the_same_bits_with_reports),
    LST_CASE(a_failure_in_the_middle_reports_no_more),
    LST_CASE(a_report_that_fails_the_step_is_the_last),
    LST_CASE(reports_without_memory_fail_the_step))
