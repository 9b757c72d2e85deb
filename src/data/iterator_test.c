/* One iterator used by several threads. */
#include "data/data_test.h"

enum { THREADS = 4, ELEMENTS = 4000 };

struct taker {
    ls_iterator *it;
    atomic_int *taken; // how often each element was returned
};

static void take_all(void *arg)
{
    struct taker *t = arg;
    ls_value *v = NULL;

    while (ls_iterator_next(t->it, &v, NULL) == LS_OK) {
        const int64_t *x = ls_tensor_data(ls_value_as_tensor(v));

        (void)atomic_fetch_add(&t->taken[*x], 1);
        ls_value_release(v);
    }
}

LST_TEST(an_iterator_used_by_several_threads_gives_each_element_once)
{
    static atomic_int taken[ELEMENTS];
    ls_dataset *d = ls_dataset_shuffle(lst_range(ELEMENTS), 100, 1);
    lsi_thread threads[THREADS];
    struct taker t = {NULL, taken};

    LST_OK(ls_dataset_iterate(d, &t.it, NULL));
    for (int i = 0; i < THREADS; i++) {
        LST_OK(lsi_thread_start(&threads[i], take_all, &t, NULL, "taker-%d", i));
    }
    for (int i = 0; i < THREADS; i++) {
        lsi_thread_join(&threads[i]);
    }
    for (int i = 0; i < ELEMENTS; i++) {
        LST_CHECK(atomic_load(&taken[i]) == 1);
    }
    ls_iterator_release(t.it);
    ls_dataset_release(d);
}

LST_MAIN(LST_CASE(an_iterator_used_by_several_threads_gives_each_element_once))
