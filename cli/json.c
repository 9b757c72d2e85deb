/* Printing JSON; bytes that are no UTF-8, which JSON cannot hold, are escaped. */
#include "cli/cli.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The length of the UTF-8 character at `p`; 0: these bytes are none. A NUL follows the
 * text. */
static size_t character_length(const unsigned char *p)
{
    static const struct {
        unsigned char mask, lead;
        unsigned long least; /* a shorter form must be used below it */
    } forms[] = {
        {0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};

    for (size_t more = 0; more < sizeof forms / sizeof *forms; more++) {
        unsigned long code = p[0] & (unsigned char)~forms[more].mask;

        if ((p[0] & forms[more].mask) != forms[more].lead) {
            continue;
        }
        for (size_t i = 1; i <= more; i++) {
            if ((p[i] & 0xc0) != 0x80) {
                return 0;
            }
            code = code << 6 | (p[i] & 0x3fU);
        }
        return code >= forms[more].least && code <= 0x10ffff &&
                       (code < 0xd800 || code > 0xdfff)
                   ? more + 1
                   : 0;
    }
    return 0;
}

json_t *cli_json_text(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    char *out = malloc(4 * strlen(text) + 1);
    json_t *json = NULL;
    size_t n = 0;

    if (out == NULL) {
        return NULL;
    }
    while (*p != '\0') {
        const size_t len = character_length(p);

        if (len == 0) {
            n += (size_t)snprintf(out + n, 5, "\\x%02x", *p++);
        } else {
            memcpy(out + n, p, len);
            n += len;
            p += len;
        }
    }
    json = json_stringn(out, n);
    free(out);
    return json;
}

int cli_print_json(const char *command, json_t *o, size_t flags)
{
    const bool bad = o == NULL || json_dumpf(o, stdout, flags) != 0;

    if (bad && ferror(stdout) == 0) { // end_output() of main.c reports failed writes
        fprintf(stderr, "%s: out of memory\n", command);
    } else if (!bad) {
        printf("\n");
    }
    json_decref(o);
    return bad ? CLI_FAILED : CLI_OK;
}
