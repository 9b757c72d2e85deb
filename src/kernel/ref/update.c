/* The updates of optimizers, element by element: the meaning of kernel/update.h. */
#include "kernel/update.h"

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

static void adam(float *w_out, const float *w, float *m, float *v, const float *g,
                 size_t n, float alpha, double beta1, double beta2, float eps)
{
    const float c1 = (float)(1.0 - beta1), c2 = (float)(1.0 - beta2);

    for (size_t i = 0; i < n; i++) {
        m[i] += (g[i] - m[i]) * c1;
        v[i] += (g[i] * g[i] - v[i]) * c2;
        w_out[i] = w[i] - m[i] * alpha / (sqrtf(v[i]) + eps);
    }
}

static void axpy(float *y, const float *x, size_t n, float a)
{
    for (size_t i = 0; i < n; i++) {
        y[i] += a * x[i];
    }
}

const lsi_update_table lsi_update_ref = {sgd, momentum, adam, axpy};
