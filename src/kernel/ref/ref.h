/*
 * The reference kernels: plain C, one for every operation that is not a view. They define
 * the results; faster ones are compared with them.
 */
#ifndef LSI_REF_H
#define LSI_REF_H
#include "kernel/kernel.h"

/* Elementwise, one operand. */
ls_status lsi_ref_neg(ls_op_call *k);
ls_status lsi_ref_abs(ls_op_call *k);
ls_status lsi_ref_sign(ls_op_call *k);
ls_status lsi_ref_exp(ls_op_call *k);
ls_status lsi_ref_log(ls_op_call *k);
ls_status lsi_ref_log1p(ls_op_call *k);
ls_status lsi_ref_sqrt(ls_op_call *k);
ls_status lsi_ref_rsqrt(ls_op_call *k);
ls_status lsi_ref_square(ls_op_call *k);
ls_status lsi_ref_reciprocal(ls_op_call *k);
ls_status lsi_ref_erf(ls_op_call *k);
ls_status lsi_ref_relu(ls_op_call *k);
ls_status lsi_ref_leaky_relu(ls_op_call *k);
ls_status lsi_ref_elu(ls_op_call *k);
ls_status lsi_ref_sigmoid(ls_op_call *k);
ls_status lsi_ref_tanh(ls_op_call *k);
ls_status lsi_ref_softplus(ls_op_call *k);
ls_status lsi_ref_gelu(ls_op_call *k);
ls_status lsi_ref_silu(ls_op_call *k);
ls_status lsi_ref_clip(ls_op_call *k);
ls_status lsi_ref_cast(ls_op_call *k);
ls_status lsi_ref_logical_not(ls_op_call *k);

/* Their gradients in one pass: (g, y) or (g, x). */
ls_status lsi_ref_relu_grad(ls_op_call *k);
ls_status lsi_ref_leaky_relu_grad(ls_op_call *k);
ls_status lsi_ref_elu_grad(ls_op_call *k);
ls_status lsi_ref_sigmoid_grad(ls_op_call *k);
ls_status lsi_ref_tanh_grad(ls_op_call *k);
ls_status lsi_ref_gelu_grad(ls_op_call *k);
ls_status lsi_ref_silu_grad(ls_op_call *k);

/* Elementwise with broadcasting. */
ls_status lsi_ref_add(ls_op_call *k);
ls_status lsi_ref_sub(ls_op_call *k);
ls_status lsi_ref_mul(ls_op_call *k);
ls_status lsi_ref_div(ls_op_call *k);
ls_status lsi_ref_floordiv(ls_op_call *k);
ls_status lsi_ref_mod(ls_op_call *k);
ls_status lsi_ref_pow(ls_op_call *k);
ls_status lsi_ref_maximum(ls_op_call *k);
ls_status lsi_ref_minimum(ls_op_call *k);
ls_status lsi_ref_equal(ls_op_call *k);
ls_status lsi_ref_not_equal(ls_op_call *k);
ls_status lsi_ref_less(ls_op_call *k);
ls_status lsi_ref_less_equal(ls_op_call *k);
ls_status lsi_ref_greater(ls_op_call *k);
ls_status lsi_ref_greater_equal(ls_op_call *k);
ls_status lsi_ref_logical_and(ls_op_call *k);
ls_status lsi_ref_logical_or(ls_op_call *k);
ls_status lsi_ref_where(ls_op_call *k);

/* Reductions. */
ls_status lsi_ref_sum(ls_op_call *k);
ls_status lsi_ref_mean(ls_op_call *k);
ls_status lsi_ref_prod(ls_op_call *k);
ls_status lsi_ref_max(ls_op_call *k);
ls_status lsi_ref_min(ls_op_call *k);
ls_status lsi_ref_any(ls_op_call *k);
ls_status lsi_ref_all(ls_op_call *k);
ls_status lsi_ref_logsumexp(ls_op_call *k);
ls_status lsi_ref_argmax(ls_op_call *k);
ls_status lsi_ref_argmin(ls_op_call *k);

/* Elements that move; views have no kernel. */
ls_status lsi_ref_transpose(ls_op_call *k);
ls_status lsi_ref_broadcast_to(ls_op_call *k);
ls_status lsi_ref_tile(ls_op_call *k);
ls_status lsi_ref_pad(ls_op_call *k);
ls_status lsi_ref_slice(ls_op_call *k);
ls_status lsi_ref_concat(ls_op_call *k);
ls_status lsi_ref_stack(ls_op_call *k);

/* Elements selected by index. */
ls_status lsi_ref_gather(ls_op_call *k);
ls_status lsi_ref_scatter(ls_op_call *k);
ls_status lsi_ref_one_hot(ls_op_call *k);

/* Changing rows of a value; elements that must satisfy a condition. */
ls_status lsi_ref_change_rows(ls_op_call *k); /* value indices updates -> value */
ls_status lsi_ref_row_indices(ls_op_call *k); /* indices updates -> indices as int64 */
ls_status lsi_ref_require(ls_op_call *k);     /* x -> x */

/* Random numbers. */
ls_status lsi_ref_random_uniform(ls_op_call *k);
ls_status lsi_ref_random_normal(ls_op_call *k);
ls_status lsi_ref_random_truncated_normal(ls_op_call *k);
ls_status lsi_ref_dropout(ls_op_call *k);

/*
 * Products, windows, normalisation, losses. Inputs and outputs in this order, for the
 * fast kernels too; g is the gradient of the first output.
 */
ls_status lsi_ref_matmul(ls_op_call *k);             /* a b -> y */
ls_status lsi_ref_dense(ls_op_call *k);              /* x w [bias] -> y */
ls_status lsi_ref_conv2d(ls_op_call *k);             /* x w [bias] -> y */
ls_status lsi_ref_conv2d_input_grad(ls_op_call *k);  /* g w -> dx */
ls_status lsi_ref_conv2d_filter_grad(ls_op_call *k); /* x g -> dw */
ls_status lsi_ref_depthwise_conv2d(ls_op_call *k);
ls_status lsi_ref_depthwise_conv2d_input_grad(ls_op_call *k);
ls_status lsi_ref_depthwise_conv2d_filter_grad(ls_op_call *k);
ls_status lsi_ref_max_pool2d(ls_op_call *k);           /* x -> y index */
ls_status lsi_ref_max_pool2d_grad(ls_op_call *k);      /* g index -> dx */
ls_status lsi_ref_max_pool2d_grad_grad(ls_op_call *k); /* of dx, index -> of g */
ls_status lsi_ref_avg_pool2d(ls_op_call *k);           /* x -> y */
ls_status lsi_ref_avg_pool2d_grad(ls_op_call *k);      /* g -> dx */
/* And self_attention, where one qkv stands for q k v: kernel/attention.h. */
ls_status lsi_ref_attention(ls_op_call *k);      /* q k v -> out lse */
ls_status lsi_ref_attention_grad(ls_op_call *k); /* q k v out lse g -> dq dk dv */
ls_status lsi_ref_softmax(ls_op_call *k);
ls_status lsi_ref_log_softmax(ls_op_call *k);
ls_status lsi_ref_softmax_grad(ls_op_call *k);     /* g y -> dx */
ls_status lsi_ref_log_softmax_grad(ls_op_call *k); /* g y -> dx */
ls_status lsi_ref_layer_norm(ls_op_call *k);       /* x gamma beta -> y mean rstd */
ls_status
lsi_ref_layer_norm_grad(ls_op_call *k);      /* g x gamma mean rstd -> dx dgamma dbeta */
ls_status lsi_ref_batch_norm(ls_op_call *k); /* x gamma beta -> y mean variance rstd */
ls_status
lsi_ref_batch_norm_grad(ls_op_call *k); /* g x gamma mean rstd -> dx dgamma dbeta */
ls_status lsi_ref_batch_norm_inference(ls_op_call *k); /* x gamma beta mean variance */
ls_status
lsi_ref_sparse_softmax_cross_entropy(ls_op_call *k); /* logits labels -> loss p */
ls_status
lsi_ref_softmax_cross_entropy(ls_op_call *k); /* logits labels -> loss backprop */
ls_status lsi_ref_softmax_cross_entropy_grad(ls_op_call *k); /* g p labels -> dlogits */
ls_status lsi_ref_sigmoid_cross_entropy(ls_op_call *k);      /* logits labels -> loss */
ls_status lsi_ref_mean_squared_error(ls_op_call *k);         /* output target -> loss */
#endif
