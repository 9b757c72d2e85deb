/* What the kinds of strategies with a copy of each variable on every device share. */
#ifndef LSI_MIRRORED_H
#define LSI_MIRRORED_H
#include "replica/strategy.h"

/* Creates a variable with a copy on each local device: lsi_strategy_ops. */
ls_status lsi_mirrored_create_variable(ls_strategy *s, const ls_tensor *value,
                                       const ls_variable_options *opts, ls_variable **out,
                                       ls_error *err);
#endif
