/* Settings of a runtime: options first, then the environment, then defaults. */
#include "device/settings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

enum { MOST_DEVICES = 4096, MOST_THREADS = 4096 };

struct reader {
    lsi_settings *to;
    bool lenient;
    ls_error *err;
};

static const char *const variables[] = {
#define ROW(name, help) "LS_" #name,
    LSI_SETTING_MAP(ROW)
#undef ROW
};

static const char *const helps[] = {
#define ROW(name, help) help,
    LSI_SETTING_MAP(ROW)
#undef ROW
};

static void show_setting(const struct reader *r, lsi_setting s, const char *origin,
                         const char *fmt, ...) LS_PRINTF(4, 5);

static void show_setting(const struct reader *r, lsi_setting s, const char *origin,
                         const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(r->to->text[s], sizeof r->to->text[s], fmt, args);
    va_end(args);
    r->to->shown[s].name = variables[s];
    r->to->shown[s].value = r->to->text[s];
    r->to->shown[s].origin = origin;
    r->to->shown[s].help = helps[s];
}

/* A setting that another file reads, and warns about if it is not `understood`. */
static void show_other(const struct reader *r, lsi_setting s,
                       bool (*understood)(const char *text), const char *dflt)
{
    const char *const text = lsi_env(variables[s]);
    const bool taken = text != NULL && understood(text);

    show_setting(r, s, taken ? "environment" : "default", "%.20s", taken ? text : dflt);
}

/* Rejects a setting; LS_OK if `lenient`: the caller goes on without it. */
static ls_status refuse_setting(const struct reader *r, lsi_setting s, const char *text,
                                const char *choices)
{
    if (r->lenient) {
        lsi_log(LS_LOG_WARNING, "%s=%.80s is ignored: it must be %s; %s is used",
                variables[s], text, choices, r->to->text[s]);
        return LS_OK;
    }
    return lsi_fail(r->err, LS_INVALID_ARGUMENT, -1, "%s=%.80s: it must be %s",
                    variables[s], text, choices);
}

/* A whole number in [lo, hi] that fills the text; false: it is not. */
static bool to_number(const char *text, uint64_t lo, uint64_t hi, uint64_t *out)
{
    char *end = NULL;
    unsigned long long n;

    errno = 0;
    n = strtoull(text, &end, 10);
    // strtoull() takes signs and blanks; a number of ours begins with a digit.
    if (errno != 0 || text[0] < '0' || text[0] > '9' || *end != '\0' || n < lo ||
        n > hi) {
        return false;
    }
    *out = n;
    return true;
}

/* `option` if it is not 0, else the environment, else `dflt`. */
static ls_status read_count(const struct reader *r, lsi_setting s, int option, int lo,
                            int hi, int dflt, int *out)
{
    const char *const text = lsi_env(variables[s]);
    uint64_t n = 0;
    char choices[80];

    (void)snprintf(choices, sizeof choices, "a whole number from %d to %d", lo, hi);
    if (option != 0) {
        if (option < lo || option > hi) {
            return lsi_fail(r->err, LS_INVALID_ARGUMENT, -1,
                            "runtime: option for %s is %d: it must be %s", variables[s],
                            option, choices);
        }
        *out = option;
        show_setting(r, s, "option", "%d", option);
        return LS_OK;
    }
    *out = dflt;
    show_setting(r, s, "default", "%d", dflt);
    if (text != NULL) {
        if (!to_number(text, (uint64_t)lo, (uint64_t)hi, &n)) {
            return refuse_setting(r, s, text, choices);
        }
        *out = (int)n;
        show_setting(r, s, "environment", "%d", *out);
    }
    return LS_OK;
}

static ls_status read_switch(const struct reader *r, lsi_setting s, bool option,
                             bool dflt, bool *out)
{
    static const char *const words[] = {"0",     "1",    "no",  "yes",
                                        "false", "true", "off", "on"};
    const char *const text = lsi_env(variables[s]);

    *out = option || dflt;
    show_setting(r, s, option ? "option" : "default", "%d", *out);
    if (option || text == NULL) {
        return LS_OK;
    }
    for (size_t i = 0; i < LSI_COUNT_OF(words); i++) {
        if (strcasecmp(text, words[i]) == 0) {
            *out = i % 2 == 1;
            show_setting(r, s, "environment", "%d", *out);
            return LS_OK;
        }
    }
    return refuse_setting(r, s, text, "0 or 1");
}

static ls_status read_isa(const struct reader *r, const char *option)
{
    const char *const text = option != NULL ? option : lsi_env("LS_ISA");
    const char *const origin = option != NULL ? "option" : "environment";
    const lsi_isa best = lsi_isa_best();
    char choices[120];
    size_t used;
    lsi_isa isa;

    r->to->isa = best;
    show_setting(r, LSI_SETTING_ISA, "default", "%s", lsi_isa_name(best));
    if (text == NULL) {
        return LS_OK;
    }
    if (lsi_isa_from_name(text, &isa) && isa <= best) {
        r->to->isa = isa;
        show_setting(r, LSI_SETTING_ISA, origin, "%s", lsi_isa_name(isa));
        return LS_OK;
    }
    (void)snprintf(choices, sizeof choices, "one that this CPU has: ref");
    for (int i = LSI_ISA_BASELINE; i <= (int)best; i++) {
        used = strlen(choices);
        (void)snprintf(choices + used, sizeof choices - used, ", %s",
                       lsi_isa_name((lsi_isa)i));
    }
    if (option != NULL) {
        return lsi_fail(r->err, LS_INVALID_ARGUMENT, -1,
                        "runtime: instruction set \"%.80s\": it must be %s", option,
                        choices);
    }
    return refuse_setting(r, LSI_SETTING_ISA, text, choices);
}

static ls_status read_seed(const struct reader *r, const ls_runtime_options *opts)
{
    const char *const text = lsi_env("LS_SEED");

    r->to->seed = opts->seeded ? opts->seed : 0;
    show_setting(r, LSI_SETTING_SEED, opts->seeded ? "option" : "default", "%" PRIu64,
                 r->to->seed);
    if (!opts->seeded && text != NULL) {
        if (!to_number(text, 0, UINT64_MAX, &r->to->seed)) {
            return refuse_setting(r, LSI_SETTING_SEED, text, "a whole number below 2^64");
        }
        show_setting(r, LSI_SETTING_SEED, "environment", "%" PRIu64, r->to->seed);
    }
    return LS_OK;
}

/* Valid as os/team.c and collective/algorithm.c see it, which read these settings. */
static bool is_spin(const char *text)
{
    char *end = NULL;
    const long us = strtol(text, &end, 10);

    return *end == '\0' && us == lsi_team_spin_us();
}

static bool is_algorithm(const char *text)
{
    static const char *const words[] = {"auto", "direct", "tree", "hierarchical", "ring"};
    bool known = false;

    for (size_t i = 0; i < LSI_COUNT_OF(words); i++) {
        known = known || strcasecmp(text, words[i]) == 0;
    }
    return known;
}

static bool is_timeout(const char *text)
{
    char *end = NULL;
    long long ms;

    errno = 0;
    ms = strtoll(text, &end, 10);
    return errno == 0 && *end == '\0' && ms != 0;
}

/* The caller's options, which may be an older, shorter struct. */
static ls_status copy_options(const ls_runtime_options *from, ls_runtime_options *to,
                              ls_error *err)
{
    static const ls_runtime_options init = LS_RUNTIME_OPTIONS_INIT;

    *to = init;
    if (from == NULL) {
        return LS_OK;
    }
    if (from->struct_size < sizeof from->struct_size) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "runtime: the options have size %zu: start them from "
                        "LS_RUNTIME_OPTIONS_INIT",
                        from->struct_size);
    }
    memcpy(to, from, LSI_MIN(from->struct_size, sizeof *to));
    to->struct_size = sizeof *to;
    return LS_OK;
}

ls_status lsi_settings_resolve(const ls_runtime_options *opts, bool lenient,
                               lsi_settings *out, ls_error *err)
{
    const struct reader r = {out, lenient, err};
    char spin[16];
    ls_runtime_options o;
    ls_status st = copy_options(opts, &o, err);

    memset(out, 0, sizeof *out);
    if (st == LS_OK) {
        st = read_count(&r, LSI_SETTING_DEVICES, o.logical_cpus, 1, MOST_DEVICES, 1,
                        &out->devices);
    }
    if (st == LS_OK) {
        st = read_count(&r, LSI_SETTING_THREADS, o.threads, 0, MOST_THREADS, 0,
                        &out->threads);
    }
    if (st == LS_OK) {
        st = read_isa(&r, o.isa);
    }
    if (st == LS_OK) {
        st = read_seed(&r, &o);
    }
    if (st == LS_OK) {
        st = read_switch(&r, LSI_SETTING_PIN, o.pin, false, &out->pin);
    }
    if (st == LS_OK) {
        // oneDNN is ahead with AVX-512 and behind without: docs/decisions/0002.
        st = read_switch(&r, LSI_SETTING_DNNL, false, out->isa == LSI_ISA_AVX512,
                         &out->dnnl);
    }
    (void)snprintf(spin, sizeof spin, "%d", lsi_team_spin_us());
    show_other(&r, LSI_SETTING_SPIN_US, is_spin, spin);
    // Both are read where they are used: a communicator needs no runtime.
    show_other(&r, LSI_SETTING_COMM_ALGORITHM, is_algorithm, "auto");
    show_other(&r, LSI_SETTING_COMM_TIMEOUT_MS, is_timeout, "600000");
    return st;
}
