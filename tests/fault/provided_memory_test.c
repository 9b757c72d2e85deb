/*
 * Steps on devices whose memory is a segment that neighbours map: all of it comes from
 * there and goes back, every element can be found by a neighbour, and a refusal is the
 * failure of the step.
 */
#include "ls_test.h"
#include "op/op.h"
#include "segment.h"
#include "small_model.h"

#if LST_HAS_SEGMENTS
enum { REPLICAS = 2, MOST_FAILURES = 400 };

/* True if a neighbour reads the elements of `t` in the segment. */
static bool is_seen(const lst_segment *s, const ls_tensor *t)
{
    lsi_memory_location at;

    if (t->values != NULL) {
        return is_seen(s, t->values) && is_seen(s, t->indices);
    }
    return t->count == 0 ||
           (lsi_tensor_locate(t, &at) && at.segment == LST_SEGMENT_ID &&
            memcmp(lst_segment_seen(s, at.offset), t->data, ls_tensor_bytes(t)) == 0);
}

static void take_steps(small_model *m, int n)
{
    ls_error err = LS_ERROR_INIT;
    double loss = 0;

    for (int i = 0; i < n; i++) {
        LST_OK(small_model_step(m, &loss, &err));
    }
}

static void check_steady(bool small_tensors)
{
    lst_segment *s = lst_segment_create(small_tensors);
    ls_error err = LS_ERROR_INIT;
    small_model m;

    LST_OK(small_model_create_in(&m, lst_segment_runtime(s, 1), &err));
    take_steps(&m, 5);
    const int64_t before = lst_segment_given(s);
    LST_CHECK(before > 0);
    (void)lsi_alloc_fail_at(INT64_MAX); // counts allocations, fails none
    take_steps(&m, 100);
    LST_CHECK(lsi_alloc_fail_at(0) == 0 && lst_segment_given(s) == before);
    small_model_release(&m);
    LST_CHECK(lst_segment_in_use(s) == 0 && lst_segment_devices(s) == 0);
    lst_segment_release(s);
}

LST_TEST(a_steady_step_asks_the_provider_for_nothing)
{
    check_steady(false);
    check_steady(true);
}

LST_TEST(steps_compute_the_same_bits_wherever_their_memory_is)
{
    double loss[3] = {0, 0, 0};

    for (int k = 0; k < 3; k++) {
        lst_segment *s = lst_segment_create(k == 2);
        ls_error err = LS_ERROR_INIT;
        small_model m;

        if (k == 0) {
            LST_OK(small_model_create(&m, 1, &err));
        } else {
            LST_OK(small_model_create_in(&m, lst_segment_runtime(s, 1), &err));
        }
        take_steps(&m, 9);
        LST_OK(small_model_step(&m, &loss[k], &err));
        small_model_release(&m);
        lst_segment_release(s);
    }
    LST_CHECK(loss[0] > 0 && loss[1] == loss[0] && loss[2] == loss[0]);
}

LST_TEST(a_refusal_of_any_block_is_the_failure_of_what_asked_for_it)
{
    int64_t n = 1;
    bool refused = true;

    for (; n < MOST_FAILURES && refused; n++) {
        lst_segment *s = lst_segment_create(true);
        ls_runtime *rt = lst_segment_runtime(s, 1);
        ls_error err = LS_ERROR_INIT;
        double loss = 0;
        small_model m;
        ls_status st;

        lst_segment_fail_at(s, n);
        st = small_model_create_in(&m, rt, &err);
        for (int i = 0; i < 2 && st == LS_OK; i++) {
            st = small_model_step(&m, &loss, &err);
        }
        refused = st != LS_OK;
        LST_CHECK(st == LS_OK || st == LS_RESOURCE_EXHAUSTED);
        LST_CHECK(st == LS_OK || err.message[0] != '\0');
        small_model_release(&m);
        LST_CHECK(lst_segment_in_use(s) == 0);
        lst_segment_release(s);
    }
    LST_CHECK(n > 20 && n < MOST_FAILURES);
}

struct training {
    lst_segment *segment;
    ls_variable *w, *b;
    ls_optimizer *o;
    atomic_int unseen;
};

/* One step of a line through points; every tensor of the step is looked up. */
static ls_value *train_line(ls_context *c, ls_value *args, void *user)
{
    struct training *t = user;
    const float points[4] = {1, 2, 3, (float)ls_replica_id(c)};
    ls_tensor *x = ls_constant(c, LS_F32, LS_SHAPE(4), points);
    ls_tape *tape = ls_tape_open(c, NULL);
    ls_tensor *y = ls_add(c, ls_mul(c, x, ls_read(c, t->w)), ls_read(c, t->b));
    ls_tensor *wrong = ls_sub(c, y, ls_constant_f32(c, 5));
    ls_tensor *loss = ls_mean(c, ls_mul(c, wrong, wrong), NULL, 0, false);
    ls_variable *all[] = {t->w, t->b};

    (void)args;
    ls_optimizer_minimize(c, t->o, tape, loss, all, 2);
    for (const ls_tensor *i = c->tensors; i != NULL; i = i->next) {
        atomic_fetch_add(&t->unseen, i->data != NULL && !is_seen(t->segment, i));
    }
    return ls_value_of(c, ls_all_reduce(c, LS_SUM, loss));
}

static void create_scalar(ls_variable **out)
{
    const float zero = 0;
    ls_error err = LS_ERROR_INIT;
    ls_tensor *t = NULL;

    LST_OK(ls_tensor_create(NULL, LS_F32, LS_SCALAR, &zero, &t, &err));
    LST_OK(ls_variable_create(t, NULL, out, &err));
    ls_tensor_release(t);
}

LST_TEST(a_neighbour_finds_every_tensor_of_a_step_also_scalars)
{
    ls_strategy_options opts = LS_STRATEGY_OPTIONS_INIT;
    struct training t = {.segment = lst_segment_create(true)};
    ls_runtime *rt = lst_segment_runtime(t.segment, REPLICAS);
    ls_error err = LS_ERROR_INIT;
    ls_strategy *s = NULL;
    int64_t before = 0;

    opts.runtime = rt;
    LST_OK(ls_mirrored_create(NULL, &opts, &s, &err));
    LST_OK(ls_scope_enter(s, &err));
    create_scalar(&t.w);
    create_scalar(&t.b);
    ls_scope_exit(s);
    LST_OK(ls_adam_create(NULL, &t.o, &err));
    for (int i = 0; i < 25; i++) {
        ls_value *losses = NULL;

        LST_OK(ls_strategy_run(s, train_line, NULL, &t, &losses, &err));
        for (size_t r = 0; r < REPLICAS; r++) {
            const ls_tensor *loss = ls_value_as_tensor(ls_value_child(losses, r));

            LST_CHECK(loss != NULL && is_seen(t.segment, loss));
        }
        ls_value_release(losses);
        before = i == 20 ? lst_segment_given(t.segment) : before;
    }
    LST_CHECK(atomic_load(&t.unseen) == 0);
    LST_CHECK(lst_segment_given(t.segment) == before);
    for (size_t r = 0; r < REPLICAS; r++) {
        ls_tensor *now = NULL;

        LST_OK(ls_variable_value(ls_variable_component(t.w, r), &now, &err));
        LST_CHECK(now != NULL && is_seen(t.segment, now));
        ls_tensor_release(now);
    }
    ls_optimizer_release(t.o);
    ls_variable_release(t.w);
    ls_variable_release(t.b);
    ls_strategy_release(s);
    ls_runtime_release(rt);
    LST_CHECK(lst_segment_in_use(t.segment) == 0);
    lst_segment_release(t.segment);
}

LST_MAIN(LST_CASE(a_steady_step_asks_the_provider_for_nothing),
         LST_CASE(steps_compute_the_same_bits_wherever_their_memory_is),
         LST_CASE(a_refusal_of_any_block_is_the_failure_of_what_asked_for_it),
         LST_CASE(a_neighbour_finds_every_tensor_of_a_step_also_scalars))
#else
int main(void)
{
    return EXIT_SUCCESS;
}
#endif
