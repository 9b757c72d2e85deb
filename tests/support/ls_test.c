/* The test harness: runs cases, counts failures, prints TAP, makes allocations fail. */
#include "ls_test.h"

atomic_int lst_failures;

void lst_check(bool ok, lst_place at, const char *text)
{
    if (!ok) {
        atomic_fetch_add(&lst_failures, 1);
        (void)fprintf(stderr, "%s:%d: %s: not so: %s\n", at.file, at.line, at.func, text);
    }
}

void lst_ok(ls_status st, lst_place at, const char *text)
{
    if (st != LS_OK) {
        atomic_fetch_add(&lst_failures, 1);
        (void)fprintf(stderr, "%s:%d: %s: %s: %s\n", at.file, at.line, at.func, text,
                      ls_status_name(st));
    }
}

void lst_fails(ls_status st, ls_status want, const ls_error *e, const char *word,
               lst_place at, const char *text)
{
    if (st != want || strstr(e->message, word) == NULL) {
        atomic_fetch_add(&lst_failures, 1);
        (void)fprintf(stderr, "%s:%d: %s: %s gave %s \"%s\"\n", at.file, at.line, at.func,
                      text, ls_status_name(st), e->message);
    }
}

int lst_main(int argc, char **argv, const lst_case *cases, size_t n)
{
    size_t ran = 0;

    for (size_t i = 0; i < n; i++) {
        if (argc > 1 && strcmp(argv[1], cases[i].name) != 0) {
            continue;
        }
        const int before = atomic_load(&lst_failures);
        cases[i].run();
        printf("%s %zu - %s\n", atomic_load(&lst_failures) == before ? "ok" : "not ok",
               i + 1, cases[i].name);
        (void)fflush(stdout);
        ran++;
    }
    if (ran == 0) {
        (void)fprintf(stderr, "no case is called %s\n", argc > 1 ? argv[1] : "anything");
        return EXIT_FAILURE;
    }
    return atomic_load(&lst_failures) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

bool lst_same_file(const char *got, const char *file)
{
    const size_t len = strlen(got), want = strlen(file);

    if (strcmp(got, file) == 0) {
        return true;
    }
    return len > 3 && len < want && strncmp(got, "...", 3) == 0 &&
           strcmp(got + 3, file + want - (len - 3)) == 0;
}

bool lst_near(double a, double b, double rtol, double atol)
{
    if (isnan(a) || isnan(b)) {
        return isnan(a) && isnan(b);
    }
    if (isinf(a) || isinf(b)) {
        return a == b;
    }
    return fabs(a - b) <= atol + rtol * fabs(b);
}

void lst_every_allocation(ls_status (*fn)(ls_error *err))
{
    int64_t n = 1;

    for (; n < 10000; n++) {
        ls_error err = LS_ERROR_INIT;

        (void)lsi_alloc_fail_at(n);
        const ls_status st = fn(&err);
        const int64_t counted = lsi_alloc_fail_at(0);
        if (st == LS_OK) {
            if (counted >= n) {
                continue; // this one was optional: the call did without it
            }
            LST_CHECK(n > 1); // it allocates at all
            return;
        }
        LST_CHECK(st == LS_RESOURCE_EXHAUSTED);
        LST_CHECK(err.message[0] != '\0');
    }
    LST_CHECK(n < 10000); // it ends
}

uint64_t lst_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

float lst_random_f32(uint64_t *state, float lo, float hi)
{
    return lo + (hi - lo) * (float)(lst_random(state) >> 40) / 16777216.0f;
}
