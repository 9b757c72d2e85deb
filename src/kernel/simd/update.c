/* The updates of optimizers: kernel/update.h says what each does. */
#include "kernel/update.h"
#include "kernel/simd/math.h"

static void sgd(float *w_out, const float *w, const float *g, size_t n, float lr)
{
    size_t i = 0;

    for (; i + VW <= n; i += VW) {
        vstore(w_out + i, vload(w + i) - lr * vload(g + i));
    }
    if (i < n) {
        const int64_t rest = (int64_t)(n - i);

        vtail_store(w_out + i, vtail(w + i, rest) - lr * vtail(g + i, rest), rest);
    }
}

/* The new m, and in *w the new weights. */
LSI_INLINE vf momentum_lanes(vf *w, vf m, vf g, float lr, float mu, bool nesterov)
{
    const vf step = lr * g;
    const vf next = mu * m - step;

    *w += nesterov ? mu * next - step : next;
    return next;
}

static void momentum(float *w_out, const float *w, float *m, const float *g, size_t n,
                     float lr, float mu, bool nesterov)
{
    size_t i = 0;

    for (; i + VW <= n; i += VW) {
        vf vw = vload(w + i);

        vstore(m + i, momentum_lanes(&vw, vload(m + i), vload(g + i), lr, mu, nesterov));
        vstore(w_out + i, vw);
    }
    if (i < n) {
        const int64_t rest = (int64_t)(n - i);
        vf vw = vtail(w + i, rest);
        const vf vm =
            momentum_lanes(&vw, vtail(m + i, rest), vtail(g + i, rest), lr, mu, nesterov);

        vtail_store(m + i, vm, rest);
        vtail_store(w_out + i, vw, rest);
    }
}

struct adam {
    float alpha, c1, c2, eps;
};

LSI_INLINE vf adam_lanes(const struct adam *o, vf w, vf *m, vf *v, vf g)
{
    *m += (g - *m) * o->c1;
    *v += (g * g - *v) * o->c2;
    return w - (*m * o->alpha) / (vsqrt(*v) + o->eps);
}

static void adam(float *w_out, const float *w, float *m, float *v, const float *g,
                 size_t n, float alpha, double beta1, double beta2, float eps)
{
    const struct adam o = {alpha, (float)(1.0 - beta1), (float)(1.0 - beta2), eps};
    size_t i = 0;

    for (; i + VW <= n; i += VW) {
        vf vm = vload(m + i), vv = vload(v + i);

        vstore(w_out + i, adam_lanes(&o, vload(w + i), &vm, &vv, vload(g + i)));
        vstore(m + i, vm);
        vstore(v + i, vv);
    }
    if (i < n) {
        const int64_t rest = (int64_t)(n - i);
        vf vm = vtail(m + i, rest), vv = vtail(v + i, rest);
        const vf vw = adam_lanes(&o, vtail(w + i, rest), &vm, &vv, vtail(g + i, rest));

        vtail_store(w_out + i, vw, rest);
        vtail_store(m + i, vm, rest);
        vtail_store(v + i, vv, rest);
    }
}

static void axpy(float *y, const float *x, size_t n, float a)
{
    size_t i = 0;

    for (; i + VW <= n; i += VW) {
        vstore(y + i, vload(y + i) + a * vload(x + i));
    }
    if (i < n) {
        const int64_t rest = (int64_t)(n - i);

        vtail_store(y + i, vtail(y + i, rest) + a * vtail(x + i, rest), rest);
    }
}

const lsi_update_table LSI_SIMD(update) = {sgd, momentum, adam, axpy};
