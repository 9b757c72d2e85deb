/* What optimizers know of variables: how to write one without a needless copy. */
#ifndef LSI_VARIABLE_H
#define LSI_VARIABLE_H
#include "grad/grad.h"

#include "lockstep/variable.h"

struct ls_variable {
    atomic_int refs;
    char *name;
    ls_dtype dtype;
    ls_shape shape;
    int64_t count;
    bool trainable;
    ls_device *device;
    ls_runtime *runtime; /* retained: the memory belongs to its device */
    lsi_buffer *buffer;  /* shared with the tensors that were read from it */
};

/*
 * Opens the variable for writing: `from` holds the present elements, `to` receives the
 * new ones, all of them. They are the same memory if nobody else refers to it. LS_OK
 * must be followed by lsi_variable_commit().
 */
typedef struct lsi_write {
    const void *from;
    void *to;
    lsi_buffer *fresh; /* NULL: in place */
} lsi_write;
ls_status lsi_variable_write(ls_variable *v, lsi_write *w, ls_error *err);
void lsi_variable_commit(ls_variable *v, const lsi_write *w);
#endif
