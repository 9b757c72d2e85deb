/* `lockstep info`: what the library is and what it found on this machine. */
#include "cli/cli.h"

#include <jansson.h>
#include <lockstep/lockstep.h>
#include <stdio.h>
#include <string.h>

static const ls_setting *setting(const char *name)
{
    const ls_setting *all = NULL;
    const size_t n = ls_settings(NULL, &all);

    for (size_t i = 0; i < n; i++) {
        if (strcmp(all[i].name, name) == 0) {
            return &all[i];
        }
    }
    return NULL;
}

/* Why the instruction set is what it is: "the best of this CPU". */
static void isa_reason(const char *isa, char *buf, size_t size)
{
    const char *best = ls_info_cpu_isa();
    const ls_setting *asked = setting("LS_ISA");

    if (strcmp(isa, best) == 0) {
        snprintf(buf, size, "the best of this CPU");
    } else if (asked != NULL) {
        snprintf(buf, size, "this CPU has %s; LS_ISA=%s (%s) says so", best, asked->value,
                 asked->origin);
    } else {
        snprintf(buf, size, "this CPU has %s", best);
    }
}

static bool is_gradient(const char *operation)
{
    const size_t n = strlen(operation);

    return n > 5 && strcmp(operation + n - 5, "_grad") == 0;
}

/* Operations that programs call; gradients that have a row of their own count apart. */
static void count_operations(int *operations, int *gradients)
{
    const char *name = NULL;

    *operations = *gradients = 0;
    for (size_t i = 0; (name = ls_info_operation(i)) != NULL; i++) {
        *(is_gradient(name) ? gradients : operations) += 1;
    }
}

static const char *bytes_text(size_t bytes, char *buf, size_t size)
{
    if (bytes == 0) {
        snprintf(buf, size, "unknown");
    } else if (bytes % ((size_t)1 << 20) == 0) {
        snprintf(buf, size, "%zu MiB", bytes >> 20);
    } else {
        snprintf(buf, size, "%zu KiB", bytes >> 10);
    }
    return buf;
}

static void print_machine(const ls_machine *m)
{
    char l1[32], l2[32], l3[32];

    printf("cpu           %s\n", m->model[0] != '\0' ? m->model : "unknown");
    printf("cores         %d, %d thread%s a core, %d NUMA node%s\n", m->cores,
           m->threads_per_core, m->threads_per_core == 1 ? "" : "s", m->numa_nodes,
           m->numa_nodes == 1 ? "" : "s");
    printf("caches        L1 %s, L2 %s, L3 %s\n", bytes_text(m->l1_bytes, l1, sizeof l1),
           bytes_text(m->l2_bytes, l2, sizeof l2),
           bytes_text(m->l3_bytes, l3, sizeof l3));
}

static void print_devices(void)
{
    const int n = ls_runtime_device_count(NULL);

    printf("\ndevices\n");
    for (int i = 0; i < n; i++) {
        const ls_device *d = ls_runtime_device(NULL, i);
        char why[128];

        isa_reason(ls_info_device_isa(d), why, sizeof why);
        printf("  CPU:%-9d %d thread%s, %s (%s)\n                %s\n", i,
               ls_device_threads(d), ls_device_threads(d) == 1 ? "" : "s",
               ls_info_device_isa(d), why, ls_device_name(d));
    }
}

static void print_modules(void)
{
    ls_module modules[8];
    const size_t n = ls_info_modules(NULL, modules, 8);

    printf("\nmodules\n");
    for (size_t i = 0; i < n && i < 8; i++) {
        const ls_module *m = &modules[i];

        if (m->found) {
            printf("  %-13s %s: %s\n", m->name, m->used ? "found" : "found, not used",
                   m->purpose);
        } else {
            printf("  %-13s missing: %s\n                to have it, %s\n", m->name,
                   m->purpose, m->remedy);
        }
    }
}

/* Sums over as many threads as there are cores (two at least), small to large. */
static const size_t sums[] = {4, 64 << 10, 64 << 20};
enum { SUMS = sizeof sums / sizeof *sums };

static void print_collectives(const ls_machine *m)
{
    const int ranks = m->cores > 2 ? m->cores : 2;

    printf("\ncollectives\n");
    for (size_t i = 0; i < SUMS; i++) {
        char why[256];

        (void)ls_comm_choice(ranks, sums[i], why, sizeof why);
        printf("  %s\n", why);
    }
}

static json_t *collectives_json(const ls_machine *m)
{
    const int ranks = m->cores > 2 ? m->cores : 2;
    json_t *list = json_array();

    for (size_t i = 0; i < SUMS; i++) {
        char why[256];
        const char *name = ls_comm_choice(ranks, sums[i], why, sizeof why);

        json_array_append_new(list, json_pack("{si, sI, ss, ss}", "ranks", ranks, "bytes",
                                              (json_int_t)sums[i], "algorithm", name,
                                              "why", why));
    }
    return list;
}

static void print_settings(void)
{
    const ls_setting *all = NULL;
    const size_t n = ls_settings(NULL, &all);

    printf("\nsettings\n");
    for (size_t i = 0; i < n; i++) {
        char left[64];

        snprintf(left, sizeof left, "%s=%s", all[i].name, all[i].value);
        printf("  %-25s %-12s %s\n", left, all[i].origin, all[i].help);
    }
}

static void print_text(const ls_machine *m)
{
    int operations = 0, gradients = 0;

    count_operations(&operations, &gradients);
    printf("lockstep %s\n\n", ls_version());
    printf("build         %s, %s\n", ls_info_build(), ls_info_compiler());
    print_machine(m);
    printf("operations    %d, and %d gradients with a kernel of their own\n", operations,
           gradients);
    print_devices();
    print_modules();
    print_collectives(m);
    print_settings();
}

static json_t *devices_json(void)
{
    const int n = ls_runtime_device_count(NULL);
    json_t *list = json_array();

    for (int i = 0; i < n; i++) {
        const ls_device *d = ls_runtime_device(NULL, i);
        char why[128];

        isa_reason(ls_info_device_isa(d), why, sizeof why);
        json_array_append_new(list,
                              json_pack("{ss, si, ss, ss}", "name", ls_device_name(d),
                                        "threads", ls_device_threads(d), "isa",
                                        ls_info_device_isa(d), "why", why));
    }
    return list;
}

static json_t *modules_json(void)
{
    ls_module modules[8];
    const size_t n = ls_info_modules(NULL, modules, 8);
    json_t *list = json_array();

    for (size_t i = 0; i < n && i < 8; i++) {
        const ls_module *m = &modules[i];

        json_array_append_new(list,
                              json_pack("{ss, sb, sb, ss, ss}", "name", m->name, "found",
                                        (int)m->found, "used", (int)m->used, "purpose",
                                        m->purpose, "remedy", m->remedy));
    }
    return list;
}

static json_t *settings_json(void)
{
    const ls_setting *all = NULL;
    const size_t n = ls_settings(NULL, &all);
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++) {
        json_array_append_new(list,
                              json_pack("{ss, so, ss, ss}", "name", all[i].name, "value",
                                        cli_json_text(all[i].value), "origin",
                                        all[i].origin, "help", all[i].help));
    }
    return list;
}

static json_t *operations_json(void)
{
    const char *name = NULL;
    json_t *list = json_array();

    for (size_t i = 0; (name = ls_info_operation(i)) != NULL; i++) {
        json_array_append_new(list, json_string(name));
    }
    return list;
}

static int print_json(const ls_machine *m)
{
    json_t *all = json_pack(
        "{ss, ss, ss, s{ss, si, si, si, sI, sI, sI, ss}, so, so, so, so, so}", "version",
        ls_version(), "build", ls_info_build(), "compiler", ls_info_compiler(), "machine",
        "model", m->model, "cores", m->cores, "threads_per_core", m->threads_per_core,
        "numa_nodes", m->numa_nodes, "l1_bytes", (json_int_t)m->l1_bytes, "l2_bytes",
        (json_int_t)m->l2_bytes, "l3_bytes", (json_int_t)m->l3_bytes, "isa",
        ls_info_cpu_isa(), "devices", devices_json(), "modules", modules_json(),
        "settings", settings_json(), "collectives", collectives_json(m), "operations",
        operations_json());

    return cli_print_json("lockstep info", all, JSON_INDENT(2));
}

/* Prints a warning about a setting that was left out, once. */
static void print_warning(ls_log_level level, const char *line, void *user)
{
    static char said[8][160];
    static size_t n;

    (void)level;
    (void)user;
    for (size_t i = 0; i < n; i++) {
        if (strncmp(said[i], line, sizeof said[i] - 1) == 0) {
            return;
        }
    }
    if (n < sizeof said / sizeof *said) {
        snprintf(said[n++], sizeof *said, "%s", line);
    }
    fprintf(stderr, "lockstep info: %s\n", line);
}

int cli_info(int argc, char **argv)
{
    bool json = false;
    const cli_option options[] = {
        {"--json", NULL, CLI_FLAG, &json, "print one JSON object"},
    };
    const cli_usage usage = {
        "lockstep info",
        "Shows what the library is and what it found: version and build, the machine,\n"
        "logical devices and their instruction set, optional modules (with what to\n"
        "install for those that are missing), and every setting with where it came "
        "from.\n",
        options,
        sizeof options / sizeof *options,
        NULL,
    };
    ls_machine machine = LS_MACHINE_INIT;
    ls_error err = LS_ERROR_INIT;
    int status = CLI_OK;

    if (!cli_parse(&usage, argc, argv, &status)) {
        return status;
    }
    ls_log_set(LS_LOG_WARNING, print_warning, NULL);
    if (ls_info_machine(&machine, &err) != LS_OK) {
        fprintf(stderr, "lockstep info: %s\n", err.message);
        return CLI_FAILED;
    }
    if (json) {
        return print_json(&machine);
    }
    print_text(&machine);
    return CLI_OK;
}
