/* Compares two JSON answers by the rules of a suite. */
#include "answers_agree.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

bool agree_errors(const agree_rule *r, const json_t *want, const json_t *got)
{
    const char *message = json_string_value(json_object_get(got, "message"));
    const json_t *mentions = json_object_get(want, "mentions");

    if (message == NULL ||
        !json_equal(json_object_get(want, "code"), json_object_get(got, "code")) ||
        (r->python &&
         !json_equal(json_object_get(want, "python"), json_object_get(got, "python")))) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(mentions); i++) {
        const char *word = json_string_value(json_array_get(mentions, i));

        if (word == NULL || strstr(message, word) == NULL) {
            return false;
        }
    }
    return true;
}

static bool arrays_agree(const agree_rule *r, const json_t *want, const json_t *got)
{
    const size_t n = json_array_size(want);

    for (size_t i = 0; i < n; i++) {
        if (!agree(r, json_array_get(want, i), json_array_get(got, i))) {
            return false;
        }
    }
    return json_array_size(got) == n;
}

static bool objects_agree(const agree_rule *r, const json_t *want, const json_t *got)
{
    const json_t *error = json_object_get(want, "error");
    const char *key;
    json_t *value;

    if (error != NULL && json_object_get(got, "error") != NULL) {
        return agree_errors(r, error, json_object_get(got, "error"));
    }
    // Reading a key does not change the object, whatever the iterator's type says.
    json_object_foreach((json_t *)(uintptr_t)want, key, value)
    {
        const json_t *other = json_object_get(got, key);

        if (other == NULL || !agree(r, value, other)) {
            return false;
        }
    }
    return json_object_size(want) == json_object_size(got);
}

static bool are_reals(const agree_rule *r, const json_t *want, const json_t *got)
{
    if (r->kinds) {
        return json_is_real(want) && json_is_real(got);
    }
    return json_is_number(want) && json_is_number(got) &&
           (json_is_real(want) || json_is_real(got));
}

bool agree(const agree_rule *r, const json_t *want, const json_t *got)
{
    if (want == NULL || got == NULL) {
        return false;
    }
    if (are_reals(r, want, got)) {
        const double w = json_number_value(want);

        return fabs(w - json_number_value(got)) <= r->rtol + r->rtol * fabs(w);
    }
    if (json_typeof(want) != json_typeof(got)) {
        return false;
    }
    if (json_is_array(want)) {
        return arrays_agree(r, want, got);
    }
    return json_is_object(want) ? objects_agree(r, want, got) : json_equal(want, got);
}
