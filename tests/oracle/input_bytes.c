/* Bytes in JSON: as text if they are UTF-8, else in base64. */
#include "input_machine.h"

#include <stdlib.h>
#include <string.h>

static const char DIGITS[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static char *copy_bytes(const char *bytes, size_t n)
{
    char *out = malloc(n + 1);

    if (out != NULL) {
        memcpy(out, bytes, n);
        out[n] = '\0';
    }
    return out;
}

static char *decode_base64(const char *text, size_t *n)
{
    const size_t length = strlen(text);
    unsigned char *out = malloc(length / 4 * 3 + 4);
    uint32_t bits = 0;
    int held = 0;

    *n = 0;
    for (size_t i = 0; out != NULL && i < length && text[i] != '='; i++) {
        const char *digit = strchr(DIGITS, text[i]);

        if (digit == NULL) {
            free(out);
            return NULL;
        }
        bits = bits << 6 | (uint32_t)(digit - DIGITS);
        held += 6;
        if (held >= 8) {
            held -= 8;
            out[(*n)++] = (unsigned char)(bits >> held);
        }
    }
    if (out != NULL) {
        out[*n] = '\0';
    }
    return (char *)out;
}

char *input_bytes(const json_t *x, size_t *n)
{
    const char *encoded = json_string_value(json_object_get(x, "b64"));

    if (encoded != NULL) {
        return decode_base64(encoded, n);
    }
    if (!json_is_string(x)) {
        return NULL;
    }
    *n = json_string_length(x);
    return copy_bytes(json_string_value(x), *n);
}

static json_t *encode_base64(const unsigned char *p, size_t n)
{
    char *text = malloc(n / 3 * 4 + 5);
    json_t *out;
    size_t at = 0;

    if (text == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < n; i += 3) {
        const size_t left = n - i;
        const uint32_t bits = (uint32_t)p[i] << 16 |
                              (left > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
                              (left > 2 ? (uint32_t)p[i + 2] : 0);

        text[at++] = DIGITS[bits >> 18 & 63];
        text[at++] = DIGITS[bits >> 12 & 63];
        text[at++] = '=';
        text[at++] = '=';
        if (left > 1) {
            text[at - 2] = DIGITS[bits >> 6 & 63];
        }
        if (left > 2) {
            text[at - 1] = DIGITS[bits & 63];
        }
    }
    out = json_pack("{s:s#}", "b64", text, (int)at);
    free(text);
    return out;
}

json_t *input_encode_bytes(const char *bytes, size_t n)
{
    json_t *text = NULL;

    for (size_t i = 0; i < n; i++) {
        const unsigned char x = (unsigned char)bytes[i];

        if (x < ' ' && x != '\t' && x != '\n' && x != '\r') {
            return encode_base64((const unsigned char *)bytes, n);
        }
    }
    text = json_stringn(bytes == NULL ? "" : bytes, n); // NULL: it is no UTF-8
    return text == NULL ? encode_base64((const unsigned char *)bytes, n) : text;
}
