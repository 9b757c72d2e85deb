/*
 * Linear regression on one device: the smallest whole program.
 *
 * A thousand points lie on y = 3 x0 - 2 x1 + 0.5; gradient descent finds the three
 * numbers. Every call that can fail is checked: operations by the end of their step.
 */
#include <lockstep/lockstep.h>
#include <lockstep/try.h>

#include <stdio.h>

enum { POINTS = 1000, STEPS = 200 };

/* The variables that are learned, and the data. */
struct problem {
    ls_tensor *x, *y;
    ls_variable *w, *b;
    ls_optimizer *sgd;
};

static ls_status make_points(struct problem *p, ls_error *err)
{
    float x[POINTS][2], y[POINTS][1];
    ls_status st;

    for (int i = 0; i < POINTS; i++) { // a grid of 40 x 25 over (-1, 1)
        const int row = i / 40, column = i % 40;

        x[i][0] = (float)column / 20.0F - 1.0F;
        x[i][1] = (float)row / 12.5F - 1.0F;
        y[i][0] = 3.0F * x[i][0] - 2.0F * x[i][1] + 0.5F;
    }
    st = ls_tensor_create(NULL, LS_F32, LS_SHAPE(POINTS, 2), x, &p->x, err);
    if (st != LS_OK) {
        return st;
    }
    return ls_tensor_create(NULL, LS_F32, LS_SHAPE(POINTS, 1), y, &p->y, err);
}

/* A variable of zeros. */
static ls_status make_variable(const char *name, ls_shape shape, ls_variable **out,
                               ls_error *err)
{
    ls_variable_options options = LS_VARIABLE_OPTIONS_INIT;
    ls_tensor *zeros = NULL;
    ls_status st = ls_tensor_create(NULL, LS_F32, shape, NULL, &zeros, err);

    if (st != LS_OK) {
        return st;
    }
    options.name = name;
    st = ls_variable_create(zeros, &options, out, err);
    ls_tensor_release(zeros);
    return st;
}

/* One step of gradient descent. ls_context_finish() returns its first failure, if any. */
static ls_status train_step(ls_context *c, struct problem *p, double *loss, ls_error *err)
{
    ls_variable *variables[] = {p->w, p->b};
    ls_tape *tape = ls_tape_open(c, NULL);
    ls_tensor *output = ls_dense(c, p->x, ls_read(c, p->w), ls_read(c, p->b), LS_LINEAR);
    ls_tensor *mean = ls_mean(c, ls_mean_squared_error(c, output, p->y), NULL, 0, false);

    ls_optimizer_minimize(c, p->sgd, tape, mean, variables, 2);
    *loss = ls_item(c, mean);
    return ls_context_finish(c, err);
}

static ls_status print_result(const struct problem *p, ls_error *err)
{
    ls_tensor *w = NULL, *b = NULL;
    float weights[2], bias;
    ls_status st;

    LS_TRY(ls_variable_value(p->w, &w, err));
    LS_TRY(ls_variable_value(p->b, &b, err));
    LS_TRY(ls_tensor_read(w, weights, sizeof weights, err));
    LS_TRY(ls_tensor_read(b, &bias, sizeof bias, err));
    printf("y = %.2f x0 %+.2f x1 %+.2f\n", (double)weights[0], (double)weights[1],
           (double)bias);
out:
    ls_tensor_release(w);
    ls_tensor_release(b);
    return st;
}

static ls_status make_problem(struct problem *p, ls_error *err)
{
    ls_sgd_options sgd = LS_SGD_OPTIONS_INIT;
    ls_status st;

    sgd.learning_rate = 0.1;
    LS_TRY(make_points(p, err));
    LS_TRY(make_variable("weights", LS_SHAPE(2, 1), &p->w, err));
    LS_TRY(make_variable("bias", LS_SHAPE(1), &p->b, err));
    LS_TRY(ls_sgd_create(&sgd, &p->sgd, err));
out:
    return st;
}

static void release_problem(struct problem *p)
{
    ls_optimizer_release(p->sgd);
    ls_variable_release(p->w);
    ls_variable_release(p->b);
    ls_tensor_release(p->x);
    ls_tensor_release(p->y);
}

static ls_status train(struct problem *p, ls_error *err)
{
    ls_context *c = NULL;
    double loss = 0;
    ls_status st;

    LS_TRY(ls_context_open(NULL, NULL, &c, err)); // CPU:0, all cores
    for (int i = 1; i <= STEPS; i++) {
        LS_TRY(train_step(c, p, &loss, err));
        if (i == 1 || i % 50 == 0) {
            printf("step %3d  loss %.3f\n", i, loss);
        }
    }
out:
    ls_context_close(c);
    return st;
}

int main(void)
{
    struct problem p = {NULL, NULL, NULL, NULL, NULL};
    ls_error err = LS_ERROR_INIT;
    ls_status st;

    LS_TRY(make_problem(&p, &err));
    LS_TRY(train(&p, &err));
    LS_TRY(print_result(&p, &err));
out:
    if (st != LS_OK) {
        fprintf(stderr, "%s: %s (%s:%d)\n", ls_status_name(st), err.message,
                err.file[0] != '\0' ? err.file : "?", err.line);
    }
    release_problem(&p);
    return st == LS_OK ? 0 : 1;
}
