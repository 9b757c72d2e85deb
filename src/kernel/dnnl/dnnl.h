/*
 * The oneDNN module as kernel.c sees it: loaded when a device that may use it first asks
 * for a product or a convolution, absent without harm. load.c finds and opens the module;
 * a build that has it defines LSI_HAVE_DNNL_LOADER, and any other build does not include
 * this header.
 */
#ifndef LSI_DNNL_H
#define LSI_DNNL_H
#include "kernel/kernel.h"

/*
 * oneDNN's kernel for operation `id` on `device`; NULL: it has none, or the module is not
 * installed. The answer does not change while the process lives, and asking is cheap
 * after the first time. Like every fast kernel it may refuse with LS_UNIMPLEMENTED. Any
 * thread.
 */
lsi_kernel lsi_dnnl_kernel(const ls_device *device, lsi_op_id id);
#endif
