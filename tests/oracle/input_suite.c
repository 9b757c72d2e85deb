/* The suite `input`: datasets, files, and their distribution over workers. */
#include "input_machine.h"
#include "watchdog.h"

#include <stdio.h>
#include <string.h>

enum { SECONDS_A_LINE = 60 };

oracle_verdict oracle_input(const oracle_case *k, char *note, size_t size)
{
    json_t *kase = json_object_get(k->line, "case");
    char folder[4096];
    const input_run r = {k, kase, folder};
    oracle_verdict v = ORACLE_FAILED;
    json_t *answer;

    watchdog_start(SECONDS_A_LINE, "%s", k->id);
    if (!input_files_open(json_object_get(kase, "files"), folder, sizeof folder, note,
                          size)) {
        return v;
    }
    answer = input_act(&r);
    if (answer != NULL) {
        v = input_agrees(k->line, answer, note, size) ? ORACLE_PASSED : ORACLE_FAILED;
    } else {
        (void)snprintf(note, size, "there is no answer: out of memory");
    }
    json_decref(answer);
    input_files_close(json_object_get(kase, "files"), folder);
    watchdog_stop();
    return v;
}
