/*
 * What optimizers do to the elements of a variable. `w_out` may be `w` itself: an update
 * in place; otherwise no two arrays overlap. Each element is computed alone, so a caller
 * may cut the arrays anywhere and share the pieces among threads.
 *
 *     sgd       w -= lr g
 *     momentum  m = mu m - lr g;  w += m, or with nesterov  w += mu m - lr g
 *     adam      m += (g - m) (1 - beta1);  v += (g g - v) (1 - beta2);
 *               w -= m alpha / (sqrt v + eps), where alpha holds the correction of step
 * t: lr sqrt(1 - beta2^t) / (1 - beta1^t) axpy      y += a x
 *
 * The betas are doubles because 1 - beta is taken before rounding: 1 - 0.999f is wrong by
 * 5e-5 of itself.
 */
#ifndef LSI_UPDATE_H
#define LSI_UPDATE_H
#include "device/device.h"

typedef struct lsi_update_table {
    void (*sgd)(float *w_out, const float *w, const float *g, size_t n, float lr);
    void (*momentum)(float *w_out, const float *w, float *m, const float *g, size_t n,
                     float lr, float mu, bool nesterov);
    void (*adam)(float *w_out, const float *w, float *m, float *v, const float *g,
                 size_t n, float alpha, double beta1, double beta2, float eps);
    void (*axpy)(float *y, const float *x, size_t n, float a);
} lsi_update_table;

extern const lsi_update_table lsi_update_ref;
extern const lsi_update_table lsi_update_baseline;
extern const lsi_update_table lsi_update_avx2;
extern const lsi_update_table lsi_update_avx512;

/* The table for the instruction set of `dev`. */
const lsi_update_table *lsi_update_for(const ls_device *dev);
#endif
