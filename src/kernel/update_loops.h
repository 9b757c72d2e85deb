/*
 * The update formulas of optimizers, as loops over elements. `w_out` may be `w` itself:
 * an update in place; otherwise no two arrays overlap. Each element is computed alone, so
 * a caller may cut the arrays anywhere and share the pieces among threads.
 *
 *     sgd       w -= lr g
 *     momentum  m = mu m - lr g;  w += m, or with nesterov  w += mu m - lr g
 *     adam      m += (g - m) (1 - beta1);  v += (g g - v) (1 - beta2);
 *               w -= m alpha / (sqrt v + eps), where alpha holds the correction of step
 *               t: lr sqrt(1 - beta2^t) / (1 - beta1^t). With `hat` (NULL: without)
 *               hat = max(hat, v) stands in the place of v: amsgrad
 *     rmsprop   v = rho v + (1 - rho) g g;  d = lr g / sqrt(v + eps);  w -= d.
 *               With `a` (NULL: without)  a = rho a + (1 - rho) g  and the root is that
 *               of  max(v - a a, 0) + eps: what is below 0 there is rounding.
 *               With `m` (NULL: without)  m = mu m + d;  w -= m
 *     adagrad   a += g g;  w -= lr g / sqrt(a + eps)
 *     decay     w -= w rate lr
 *     axpy      y += a x
 *
 * The betas and rho are doubles because 1 - beta is taken before rounding: 1 - 0.999f is
 * wrong by 5e-5 of itself.
 */
#ifndef LSI_UPDATE_LOOPS_H
#define LSI_UPDATE_LOOPS_H
#include "device/device.h"

typedef struct lsi_update_table {
    void (*sgd)(float *w_out, const float *w, const float *g, size_t n, float lr);
    void (*momentum)(float *w_out, const float *w, float *m, const float *g, size_t n,
                     float lr, float mu, bool nesterov);
    void (*adam)(float *w_out, const float *w, float *m, float *v, float *hat,
                 const float *g, size_t n, float alpha, double beta1, double beta2,
                 float eps);
    void (*rmsprop)(float *w_out, const float *w, float *v, float *m, float *a,
                    const float *g, size_t n, float lr, double rho, float mu, float eps);
    void (*adagrad)(float *w_out, const float *w, float *a, const float *g, size_t n,
                    float lr, float eps);
    void (*decay)(float *w_out, const float *w, size_t n, float rate, float lr);
    void (*axpy)(float *y, const float *x, size_t n, float a);
} lsi_update_table;

extern const lsi_update_table lsi_update_ref;
extern const lsi_update_table lsi_update_baseline;
extern const lsi_update_table lsi_update_avx2;
extern const lsi_update_table lsi_update_avx512;

/* The table for the instruction set of `dev`. */
const lsi_update_table *lsi_update_for(const ls_device *dev);
#endif
