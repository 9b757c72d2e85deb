/* What the features of many Examples have in common. */
#include "cli/data/data_command.h"

const char *data_kind_name(ls_list_kind kind)
{
    static const char *const names[] = {"nothing", "bytes", "float", "int64"};

    return names[kind];
}

static data_column *find_column(data_columns *c, ls_string name)
{
    data_column *column = NULL;

    for (size_t i = 0; i < c->n; i++) {
        if (strlen(c->list[i].name) == name.len &&
            memcmp(c->list[i].name, name.ptr, name.len) == 0) {
            return &c->list[i];
        }
    }
    if (c->n == c->room) {
        const size_t room = c->room > 0 ? 2 * c->room : 16;
        data_column *list = realloc(c->list, room * sizeof *list);

        if (list == NULL) {
            return NULL;
        }
        c->list = list;
        c->room = room;
    }
    column = &c->list[c->n];
    *column = (data_column){.name = malloc(name.len + 1),
                            .last = -1,
                            .least = SIZE_MAX,
                            .shortest = SIZE_MAX};
    if (column->name == NULL) {
        return NULL;
    }
    memcpy(column->name, name.ptr, name.len);
    column->name[name.len] = '\0';
    c->n++;
    return column;
}

static ls_status note_strings(data_columns *c, data_column *column,
                              const ls_example_entry *e, ls_error *err)
{
    size_t n;

    if (e->count > c->string_room) {
        ls_string *strings = realloc(c->strings, e->count * sizeof *strings);

        if (strings == NULL) {
            return data_no_memory(err);
        }
        c->strings = strings;
        c->string_room = e->count;
    }
    n = ls_example_entry_bytes(e, c->strings, c->string_room);
    for (size_t i = 0; i < n; i++) {
        const ls_string s = c->strings[i];

        column->shortest = LSI_MIN(s.len, column->shortest);
        column->longest = LSI_MAX(s.len, column->longest);
        column->binary = column->binary || memchr(s.ptr, 0, s.len) != NULL;
    }
    return LS_OK;
}

static ls_status note_feature(data_columns *c, const ls_example_entry *e, ls_error *err)
{
    data_column *column = find_column(c, e->name);

    if (column == NULL) {
        return data_no_memory(err);
    }
    column->mixed = column->mixed || (column->records > 0 && column->kind != e->kind);
    column->kind = e->kind;
    column->records += column->last != c->records;
    column->last = c->records;
    column->least = LSI_MIN(e->count, column->least);
    column->most = LSI_MAX(e->count, column->most);
    return e->kind == LS_LIST_BYTES ? note_strings(c, column, e, err) : LS_OK;
}

ls_status data_columns_add(data_columns *c, ls_string record, ls_error *err)
{
    ls_example_walk walk = LS_EXAMPLE_WALK_INIT(record);
    ls_example_entry e;
    ls_status st = LS_OK;

    while (st == LS_OK) {
        st = ls_example_walk_next(&walk, &e, NULL);
        if (st == LS_OK && memchr(e.name.ptr, 0, e.name.len) != NULL) {
            st = LS_INVALID_ARGUMENT; // such a name is no column's
        }
        if (st == LS_OK && e.kind != LS_LIST_NONE) { // which is the same as absent
            st = note_feature(c, &e, err);
        }
    }
    c->examples += st == LS_OUT_OF_RANGE && record.len > 0;
    c->records++;
    return st == LS_RESOURCE_EXHAUSTED ? st : LS_OK;
}

static int by_column_name(const void *a, const void *b)
{
    return strcmp(((const data_column *)a)->name, ((const data_column *)b)->name);
}

void data_columns_sort(data_columns *c)
{
    if (c->n > 1) {
        qsort(c->list, c->n, sizeof *c->list, by_column_name);
    }
}

void data_columns_free(data_columns *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->list[i].name);
    }
    free(c->list);
    free(c->strings);
    *c = (data_columns){0};
}
