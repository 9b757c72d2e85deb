/* TPUStrategy: its constructor fails, as there is no such device. */
#include "replica/strategy.h"

ls_status ls_tpu_create(const char *address, const ls_strategy_options *opts,
                        ls_strategy **out, ls_error *err)
{
    const ls_status st = lsi_strategy_check("tpu", opts, out, err);

    if (st != LS_OK) {
        return st;
    }
    return lsi_fail(err, LS_UNAVAILABLE, -1,
                    "tpu: no TPU at \"%s\": this build has CPU devices only; "
                    "MirroredStrategy runs the same program on them",
                    address == NULL ? "" : address);
}
