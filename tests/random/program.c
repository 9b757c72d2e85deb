/* Programs as text: printing and reading them. */
#include "program.h"

#include "ls_test.h"

#include <inttypes.h>

static const struct family {
    const verb *verbs;
    const size_t *count;
} FAMILIES[] = {
    {verbs_op, &count_op},
    {verbs_tape, &count_tape},
    {verbs_variable, &count_variable},
    {verbs_optimizer, &count_optimizer},
    {verbs_replica, &count_replica},
    {verbs_host, &count_host},
    {verbs_data, &count_data},
    {verbs_iterate, &count_iterate},
};

void each_verb(void (*visit)(const verb *v, void *user), void *user)
{
    for (size_t f = 0; f < LSI_COUNT_OF(FAMILIES); f++) {
        for (size_t i = 0; i < *FAMILIES[f].count; i++) {
            visit(&FAMILIES[f].verbs[i], user);
        }
    }
}

const verb *verb_find(const char *name, size_t length)
{
    for (size_t f = 0; f < LSI_COUNT_OF(FAMILIES); f++) {
        for (size_t i = 0; i < *FAMILIES[f].count; i++) {
            const verb *v = &FAMILIES[f].verbs[i];

            if (strlen(v->name) == length && memcmp(v->name, name, length) == 0) {
                return v;
            }
        }
    }
    return NULL;
}

size_t verb_numbers(const verb *v)
{
    size_t n = 0;

    for (const char *at = v->numbers; *at != '\0'; n++) {
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    return n;
}

size_t verb_number(const verb *v, size_t i, const char **name, int64_t *below)
{
    const char *at = v->numbers;

    for (; i > 0; i--) {
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    const size_t length = strcspn(at, " :");
    *name = at;
    *below = at[length] == ':' ? strtoll(at + length + 1, NULL, 10) : 0;
    return length;
}

static bool number_index(const verb *v, const char *name, size_t length, size_t *out)
{
    const size_t n = verb_numbers(v);

    for (size_t i = 0; i < n; i++) {
        const char *is;
        int64_t below;

        if (verb_number(v, i, &is, &below) == length && memcmp(is, name, length) == 0) {
            *out = i;
            return true;
        }
    }
    return false;
}

int64_t number(const statement *s, const char *name)
{
    size_t i;

    return number_index(s->verb, name, strlen(name), &i) ? s->n[i] : 0;
}

bool set_number(statement *s, const char *name, int64_t x)
{
    size_t i;

    if (!number_index(s->verb, name, strlen(name), &i)) {
        return false;
    }
    s->n[i] = x;
    return true;
}

static bool is_op(const statement *s)
{
    return strcmp(s->verb->name, "op") == 0;
}

/* The part of an operation's statement that the catalogue gave. */
static int op_text(const statement *s, char *buf, size_t size)
{
    const op_case *k = &s->how;
    int n = snprintf(buf, size, "%s \"%s\"", k->kind == OP_BAD ? " bad=1" : "", s->in);
    int used = (int)LSI_COUNT_OF(k->p);

    while (used > 0 && k->p[used - 1] == 0) {
        used--;
    }
    for (int i = 0; i < used; i++) {
        n += snprintf(buf + n, size - (size_t)n, "%s%" PRId64, i == 0 ? " p=" : ",",
                      k->p[i]);
    }
    if (k->f[0] != 0 || k->f[1] != 0) {
        n += snprintf(buf + n, size - (size_t)n, " f=%.17g,%.17g", k->f[0], k->f[1]);
    }
    return n;
}

size_t statement_text(const statement *s, char *buf, size_t size)
{
    const size_t numbers = verb_numbers(s->verb);
    int n = snprintf(buf, size, "%s", s->verb->name);

    if (is_op(s)) {
        n += snprintf(buf + n, size - (size_t)n, " %s", lsi_op_table[s->op]->name);
    }
    for (size_t i = 0; i < numbers; i++) {
        const char *name;
        int64_t below;
        const size_t length = verb_number(s->verb, i, &name, &below);

        if (s->n[i] != 0) {
            n += snprintf(buf + n, size - (size_t)n, " %.*s=%" PRId64, (int)length, name,
                          s->n[i]);
        }
    }
    if (is_op(s)) {
        n += op_text(s, buf + n, size - (size_t)n);
    }
    return (size_t)n;
}

void program_print(const program *p, FILE *to)
{
    for (size_t i = 0; i < p->count; i++) {
        char line[600];

        (void)statement_text(&p->statements[i], line, sizeof line);
        (void)fprintf(to, "%s\n", line);
    }
}

static bool find_op(const char *name, size_t length, lsi_op_id *out)
{
    for (int op = 1; op < LSI_OP_COUNT; op++) {
        if (strlen(lsi_op_table[op]->name) == length &&
            memcmp(lsi_op_table[op]->name, name, length) == 0) {
            *out = (lsi_op_id)op;
            return true;
        }
    }
    return false;
}

/* "1,2,3" into numbers. */
static const char *read_list(const char *at, int64_t *p, double *f, size_t most)
{
    for (size_t i = 0; i < most; i++) {
        char *end = NULL;

        if (p != NULL) {
            p[i] = strtoll(at, &end, 10);
        } else {
            f[i] = strtod(at, &end);
        }
        at = end;
        if (*at != ',') {
            break;
        }
        at++;
    }
    return at;
}

/* One "name=value" or the quoted signature; NULL: it cannot be read. */
static const char *read_word(const char *at, statement *s)
{
    if (*at == '"') {
        const size_t n = strcspn(at + 1, "\"");

        if (n >= sizeof s->in || at[n + 1] != '"') {
            return NULL;
        }
        memcpy(s->in, at + 1, n);
        s->in[n] = '\0';
        return at + n + 2;
    }
    const size_t length = strcspn(at, "= ");
    char *end = NULL;
    size_t i;

    if (at[length] != '=') {
        return NULL;
    }
    const char *value = at + length + 1;
    if (length == 1 && *at == 'p') {
        return read_list(value, s->how.p, NULL, LSI_COUNT_OF(s->how.p));
    }
    if (length == 1 && *at == 'f') {
        return read_list(value, NULL, s->how.f, LSI_COUNT_OF(s->how.f));
    }
    const int64_t x = strtoll(value, &end, 10);
    if (length == 3 && memcmp(at, "bad", 3) == 0) {
        s->how.kind = x != 0 ? OP_BAD : OP_GRADIENT;
        return end;
    }
    if (!number_index(s->verb, at, length, &i)) {
        return NULL;
    }
    s->n[i] = x;
    return end;
}

static bool read_statement(const char *line, statement *s)
{
    size_t length = strcspn(line, " ");

    memset(s, 0, sizeof *s);
    s->how.kind = OP_GRADIENT;
    s->verb = verb_find(line, length);
    if (s->verb == NULL) {
        return false;
    }
    line += length;
    line += strspn(line, " ");
    if (is_op(s)) {
        length = strcspn(line, " ");
        if (!find_op(line, length, &s->op)) {
            return false;
        }
        line += length;
    }
    for (;;) {
        line += strspn(line, " ");
        if (*line == '\0') {
            return true;
        }
        line = read_word(line, s);
        if (line == NULL) {
            return false;
        }
    }
}

bool program_read(FILE *from, const char *name, program *out)
{
    char line[600];

    memset(out, 0, sizeof *out);
    for (int at = 1; fgets(line, sizeof line, from) != NULL; at++) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#' || line[0] == '\0') {
            continue;
        }
        if (out->count == MOST_STATEMENTS ||
            !read_statement(line, &out->statements[out->count])) {
            (void)fprintf(stderr, "%s:%d: cannot be read: %s\n", name, at, line);
            return false;
        }
        out->count++;
    }
    return true;
}
