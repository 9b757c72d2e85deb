/* A program outside the tree: it uses only what was installed. */
#include <lockstep/lockstep.h>

#include <stdio.h>
#include <string.h>

/* Computes relu(x w) and compares; the status of the step decides. */
static ls_status product_is_right(ls_context *c, ls_error *err)
{
    const float x[] = {1, 2, 3, 4}, w[] = {1, -1, 1, -1}, want[] = {3, 0, 7, 0};
    ls_tensor *y = ls_relu(c, ls_matmul(c, ls_constant(c, LS_F32, LS_SHAPE(2, 2), x),
                                        ls_constant(c, LS_F32, LS_SHAPE(2, 2), w)));

    if (y != NULL && memcmp(ls_tensor_data(y), want, sizeof want) != 0) {
        (void)ls_context_fail(c, LS_INTERNAL, "relu(x w) is wrong");
    }
    return ls_context_finish(c, err);
}

/* A failure must name this file. */
static ls_status mistake_is_placed(ls_context *c, ls_error *err)
{
    ls_error found = LS_ERROR_INIT;

    (void)ls_matmul(c, ls_constant(c, LS_F32, LS_SHAPE(2, 3), NULL),
                    ls_constant(c, LS_F32, LS_SHAPE(4, 5), NULL));
    if (ls_context_finish(c, &found) == LS_INVALID_ARGUMENT && found.line > 0 &&
        strstr(found.file, "app.c") != NULL) {
        return LS_OK;
    }
    (void)ls_context_fail(c, LS_INTERNAL, "the mistake was not found: %s", found.message);
    return ls_context_finish(c, err);
}

int main(void)
{
    ls_context *c = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_status st = ls_context_open(NULL, NULL, &c, &err);

    if (st == LS_OK) {
        st = product_is_right(c, &err);
    }
    if (st == LS_OK) {
        st = mistake_is_placed(c, &err);
    }
    ls_context_close(c);
    if (st != LS_OK) {
        fprintf(stderr, "%s: %s\n", ls_status_name(st), err.message);
        return 1;
    }
    printf("lockstep %s\n", ls_version());
    return 0;
}
