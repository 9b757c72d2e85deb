/*
 * AdamW: Adam, and before each update the weights decay: w -= w decay lr. Every variable
 * with a gradient decays, biases too, as in Keras.
 */
#include "optim/optim.h"

ls_status ls_adamw_create(const ls_adamw_options *opts, ls_optimizer **out, ls_error *err)
{
    static const ls_adamw_options defaults = LS_ADAMW_OPTIONS_INIT;
    ls_adam_options adam = LS_ADAM_OPTIONS_INIT;

    if (opts == NULL) {
        opts = &defaults;
    }
    if (opts->struct_size < sizeof *opts) {
        // makes lsi_adam_new() reject the options: an older struct is too short
        adam.struct_size = 0;
    } else {
        adam.learning_rate = opts->learning_rate;
        adam.beta1 = opts->beta1;
        adam.beta2 = opts->beta2;
        adam.epsilon = opts->epsilon;
        adam.amsgrad = opts->amsgrad;
        adam.shared = opts->shared;
    }
    return lsi_adam_new("AdamW", "LS_ADAMW_OPTIONS_INIT", &adam, out, err);
}
