/* ls_strategy_numpy_dataset(): a dataset whose elements are the rows of arrays. */
#include "input/input.h"

ls_dataset *ls_strategy_numpy_dataset(ls_strategy *s, ls_value *arrays)
{
    if (s == NULL || arrays == NULL) {
        return lsi_dataset_failed(LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                  "numpy dataset: %s is NULL",
                                  s == NULL ? "the strategy" : "the value of arrays");
    }
    return ls_dataset_slices(arrays); // tensors are immutable: no copy is needed
}
