/* The updates of optimizers in plain C; formulas in kernel/update_loops.h. */
#include "kernel/update_loops.h"

#include <math.h>

static void sgd(float *w_out, const float *w, const float *g, size_t n, float lr)
{
    for (size_t i = 0; i < n; i++) {
        w_out[i] = w[i] - lr * g[i];
    }
}

static void momentum(float *w_out, const float *w, float *m, const float *g, size_t n,
                     float lr, float mu, bool nesterov)
{
    for (size_t i = 0; i < n; i++) {
        const float step = lr * g[i];

        m[i] = mu * m[i] - step;
        w_out[i] = w[i] + (nesterov ? mu * m[i] - step : m[i]);
    }
}

/* The larger one; a NaN wins. */
static float larger(float a, float b)
{
    return a > b || isnan(a) ? a : b;
}

static void adam(float *w_out, const float *w, float *m, float *v, float *hat,
                 const float *g, size_t n, float alpha, double beta1, double beta2,
                 float eps)
{
    const float c1 = (float)(1.0 - beta1), c2 = (float)(1.0 - beta2);

    for (size_t i = 0; i < n; i++) {
        float root;

        m[i] += (g[i] - m[i]) * c1;
        v[i] += (g[i] * g[i] - v[i]) * c2;
        root = v[i];
        if (hat != NULL) {
            root = hat[i] = larger(hat[i], v[i]);
        }
        w_out[i] = w[i] - m[i] * alpha / (sqrtf(root) + eps);
    }
}

static void rmsprop(float *w_out, const float *w, float *v, float *m, float *a,
                    const float *g, size_t n, float lr, double rho, float mu, float eps)
{
    const float keep = (float)rho, take = (float)(1.0 - rho);

    for (size_t i = 0; i < n; i++) {
        float d;

        v[i] = keep * v[i] + take * (g[i] * g[i]);
        d = v[i];
        if (a != NULL) {
            a[i] = keep * a[i] + take * g[i];
            d = larger(v[i] - a[i] * a[i], 0.0f);
        }
        d = lr * g[i] / sqrtf(d + eps);
        if (m != NULL) {
            d = m[i] = mu * m[i] + d;
        }
        w_out[i] = w[i] - d;
    }
}

static void adagrad(float *w_out, const float *w, float *a, const float *g, size_t n,
                    float lr, float eps)
{
    for (size_t i = 0; i < n; i++) {
        a[i] += g[i] * g[i];
        w_out[i] = w[i] - lr * g[i] / sqrtf(a[i] + eps);
    }
}

static void decay(float *w_out, const float *w, size_t n, float rate, float lr)
{
    for (size_t i = 0; i < n; i++) {
        w_out[i] = w[i] - w[i] * rate * lr;
    }
}

static void axpy(float *y, const float *x, size_t n, float a)
{
    for (size_t i = 0; i < n; i++) {
        y[i] += a * x[i];
    }
}

const lsi_update_table lsi_update_ref = {sgd,     momentum, adam, rmsprop,
                                         adagrad, decay,    axpy};
