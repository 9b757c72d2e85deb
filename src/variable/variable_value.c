/* Variables as leaves of values, and how they print. */
#include "variable/variable.h"

#include <stdio.h>

static void *retain_variable(void *v)
{
    return ls_variable_retain(v);
}

static void release_variable(void *v)
{
    ls_variable_release(v);
}

static void *variable_container(void *v)
{
    return ls_variable_container(v);
}

static size_t variable_text(void *v, char *buf, size_t size)
{
    return ls_variable_text(v, buf, size);
}

static ls_tensor *variable_tensor(void *v, ls_context *c)
{
    return (ls_variable_as_tensor)(c, v);
}

const lsi_object_ops lsi_variable_object = {retain_variable, release_variable,
                                            variable_container, variable_text,
                                            variable_tensor};

ls_status ls_value_variable(ls_variable *v, ls_value **out, ls_error *err)
{
    if (v == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "variable: NULL is no variable");
    }
    return lsi_value_object(LS_VALUE_VARIABLE, v, &lsi_variable_object, out, err);
}

ls_variable *ls_value_as_variable(const ls_value *v)
{
    return v != NULL && v->kind == LS_VALUE_VARIABLE ? v->leaf.object.self : NULL;
}

ls_variable *(ls_value_variable_at)(ls_context *c, ls_value *v, size_t i)
{
    ls_value *found = lsi_value_item(c, v, i);
    ls_variable *variable = ls_value_as_variable(found);

    if (found != NULL && variable == NULL) {
        (void)ls_context_fail(c, LS_INVALID_ARGUMENT, "item %zu is a %s, not a variable",
                              i, ls_value_kind_name(ls_value_kind_of(found)));
    }
    return variable;
}

/* ---- printing ---- */

static size_t plain_text(ls_variable *v, char *buf, size_t size)
{
    char shape[128];
    ls_tensor *t = lsi_tensor_over(v->buffer, v->dtype, &v->shape);
    size_t length;
    int n;

    if (t == NULL) {
        if (size > 0) {
            buf[0] = '\0';
        }
        return 0;
    }
    n = snprintf(buf, size, "<tf.Variable '%s:0' shape=%s dtype=%s, numpy=", v->name,
                 ls_shape_text(&v->shape, shape, sizeof shape), ls_dtype_name(v->dtype));
    length = n > 0 ? (size_t)n : 0;
    length += lsi_tensor_array_text(t, length < size ? buf + length : NULL,
                                    length < size ? size - length : 0);
    if (length + 1 < size) {
        buf[length] = '>';
        buf[length + 1] = '\0';
    }
    ls_tensor_release(t);
    return length + 1;
}

size_t ls_variable_text(ls_variable *v, char *buf, size_t size)
{
    size_t length = 0;
    int n;

    if (v == NULL) {
        n = snprintf(buf, size, "None");
        return n > 0 ? (size_t)n : 0;
    }
    if (v->ops->name == NULL) {
        return plain_text(ls_variable_component(v, 0), buf, size);
    }
    n = snprintf(buf, size, "%s:{\n", v->ops->name);
    length = n > 0 ? (size_t)n : 0;
    for (int i = 0; i < v->components; i++) {
        const bool room = length < size;

        n = snprintf(room ? buf + length : NULL, room ? size - length : 0,
                     "%s  %d: ", i > 0 ? ",\n" : "", i);
        length += n > 0 ? (size_t)n : 0;
        length += plain_text(v->component[i], length < size ? buf + length : NULL,
                             length < size ? size - length : 0);
    }
    n = snprintf(length < size ? buf + length : NULL, length < size ? size - length : 0,
                 "\n}");
    return length + (n > 0 ? (size_t)n : 0);
}
