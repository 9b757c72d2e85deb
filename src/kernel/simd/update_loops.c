/* The updates of optimizers with vectors; formulas in kernel/update_loops.h. */
#include "kernel/update_loops.h"
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

/* Loops with a `bool` are compiled once per case: no test inside the loop. */
struct adam {
    float alpha, c1, c2, eps;
};

LSI_INLINE vf adam_lanes(const struct adam *o, vf w, vf *m, vf *v, vf *hat, vf g,
                         bool amsgrad)
{
    vf root;

    *m += (g - *m) * o->c1;
    *v += (g * g - *v) * o->c2;
    root = *v;
    if (amsgrad) {
        root = *hat = vmax_nan(*hat, *v);
    }
    return w - (*m * o->alpha) / (vsqrt(root) + o->eps);
}

LSI_INLINE void adam_loop(const struct adam *o, float *w_out, const float *w, float *m,
                          float *v, float *hat, const float *g, size_t n, bool amsgrad)
{
    const vf zero = {0};
    size_t i = 0;

    for (; i + VW <= n; i += VW) {
        vf vm = vload(m + i), vv = vload(v + i), vh = amsgrad ? vload(hat + i) : zero;

        vstore(w_out + i,
               adam_lanes(o, vload(w + i), &vm, &vv, &vh, vload(g + i), amsgrad));
        vstore(m + i, vm);
        vstore(v + i, vv);
        if (amsgrad) {
            vstore(hat + i, vh);
        }
    }
    if (i < n) {
        const int64_t rest = (int64_t)(n - i);
        vf vm = vtail(m + i, rest), vv = vtail(v + i, rest);
        vf vh = amsgrad ? vtail(hat + i, rest) : zero;

        vtail_store(
            w_out + i,
            adam_lanes(o, vtail(w + i, rest), &vm, &vv, &vh, vtail(g + i, rest), amsgrad),
            rest);
        vtail_store(m + i, vm, rest);
        vtail_store(v + i, vv, rest);
        if (amsgrad) {
            vtail_store(hat + i, vh, rest);
        }
    }
}

static void adam(float *w_out, const float *w, float *m, float *v, float *hat,
                 const float *g, size_t n, float alpha, double beta1, double beta2,
                 float eps)
{
    const struct adam o = {alpha, (float)(1.0 - beta1), (float)(1.0 - beta2), eps};

    if (hat != NULL) {
        adam_loop(&o, w_out, w, m, v, hat, g, n, true);
    } else {
        adam_loop(&o, w_out, w, m, v, NULL, g, n, false);
    }
}

struct rmsprop {
    float lr, keep, take, mu, eps;
};

LSI_INLINE vf rmsprop_lanes(const struct rmsprop *o, vf w, vf *v, vf *m, vf *a, vf g,
                            bool momentum, bool centered)
{
    vf d;

    *v = o->keep * *v + o->take * (g * g);
    d = *v;
    if (centered) {
        *a = o->keep * *a + o->take * g;
        d = vmax_nan(*v - *a * *a, vsplat(0.0F));
    }
    d = (o->lr * g) / vsqrt(d + o->eps);
    if (momentum) {
        d = *m = o->mu * *m + d;
    }
    return w - d;
}

LSI_INLINE void rmsprop_loop(const struct rmsprop *o, float *w_out, const float *w,
                             float *v, float *m, float *a, const float *g, size_t n,
                             bool momentum, bool centered)
{
    const vf zero = {0};
    size_t i = 0;

    for (; i + VW <= n; i += VW) {
        vf vv = vload(v + i), vm = momentum ? vload(m + i) : zero;
        vf va = centered ? vload(a + i) : zero;

        vstore(w_out + i, rmsprop_lanes(o, vload(w + i), &vv, &vm, &va, vload(g + i),
                                        momentum, centered));
        vstore(v + i, vv);
        if (momentum) {
            vstore(m + i, vm);
        }
        if (centered) {
            vstore(a + i, va);
        }
    }
    if (i < n) {
        const int64_t rest = (int64_t)(n - i);
        vf vv = vtail(v + i, rest), vm = momentum ? vtail(m + i, rest) : zero;
        vf va = centered ? vtail(a + i, rest) : zero;

        vtail_store(w_out + i,
                    rmsprop_lanes(o, vtail(w + i, rest), &vv, &vm, &va,
                                  vtail(g + i, rest), momentum, centered),
                    rest);
        vtail_store(v + i, vv, rest);
        if (momentum) {
            vtail_store(m + i, vm, rest);
        }
        if (centered) {
            vtail_store(a + i, va, rest);
        }
    }
}

static void rmsprop(float *w_out, const float *w, float *v, float *m, float *a,
                    const float *g, size_t n, float lr, double rho, float mu, float eps)
{
    const struct rmsprop o = {lr, (float)rho, (float)(1.0 - rho), mu, eps};

    if (m != NULL && a != NULL) {
        rmsprop_loop(&o, w_out, w, v, m, a, g, n, true, true);
    } else if (m != NULL) {
        rmsprop_loop(&o, w_out, w, v, m, NULL, g, n, true, false);
    } else if (a != NULL) {
        rmsprop_loop(&o, w_out, w, v, NULL, a, g, n, false, true);
    } else {
        rmsprop_loop(&o, w_out, w, v, NULL, NULL, g, n, false, false);
    }
}

LSI_INLINE vf adagrad_lanes(vf w, vf *a, vf g, float lr, float eps)
{
    *a += g * g;
    return w - (lr * g) / vsqrt(*a + eps);
}

static void adagrad(float *w_out, const float *w, float *a, const float *g, size_t n,
                    float lr, float eps)
{
    size_t i = 0;

    for (; i + VW <= n; i += VW) {
        vf va = vload(a + i);

        vstore(w_out + i, adagrad_lanes(vload(w + i), &va, vload(g + i), lr, eps));
        vstore(a + i, va);
    }
    if (i < n) {
        const int64_t rest = (int64_t)(n - i);
        vf va = vtail(a + i, rest);
        const vf vw = adagrad_lanes(vtail(w + i, rest), &va, vtail(g + i, rest), lr, eps);

        vtail_store(w_out + i, vw, rest);
        vtail_store(a + i, va, rest);
    }
}

static void decay(float *w_out, const float *w, size_t n, float rate, float lr)
{
    size_t i = 0;

    for (; i + VW <= n; i += VW) {
        const vf vw = vload(w + i);

        vstore(w_out + i, vw - vw * rate * lr);
    }
    if (i < n) {
        const int64_t rest = (int64_t)(n - i);
        const vf vw = vtail(w + i, rest);

        vtail_store(w_out + i, vw - vw * rate * lr, rest);
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

const lsi_update_table LSI_SIMD(update) = {sgd,     momentum, adam, rmsprop,
                                           adagrad, decay,    axpy};
