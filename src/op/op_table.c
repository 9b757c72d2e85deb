/* The rows of all operations, by number. */
#include "op/op.h"

const ls_op *const lsi_op_table[LSI_OP_COUNT] = {
    NULL,
#define X(name) &lsi_op_##name,
#include "kernel/ops.def"
#undef X
};
