/* Runs one program on several workers, which are threads of this process. */
#include "random_machine.h"

#include "ls_workers.h"

/* A worker that waits for one that does not come; the watchdog waits longer. */
enum { MS_A_CALL = 10000 };

static ls_status run_worker(const lst_worker *w, void *arg, ls_error *err)
{
    machine *m = ((machine **)arg)[w->index];

    (void)err;
    for (int i = 0; i < w->replicas; i++) {
        ls_runtime_device(w->runtime, i)->dnnl = false; // as in one process
    }
    m->rt = w->runtime;
    m->s = w->strategy;
    m->first = w->index * w->replicas;
    m->local = w->replicas;
    machine_run_on(m);
    return LS_OK;
}

void machine_run_workers(const program *p, config k, int workers, machine **out)
{
    const setup u = machine_setup_for_workers(p, workers);
    ls_runtime_options runtime = LS_RUNTIME_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;

    runtime.threads = k == THREADS ? 3 : 1;
    runtime.seeded = true;
    runtime.seed = 7;
    for (int w = 0; w < workers; w++) {
        out[w] = calloc(1, sizeof *out[w]);
        if (out[w] == NULL) {
            abort();
        }
        out[w]->k = k;
        out[w]->p = p;
        out[w]->workers = workers;
        out[w]->worker = w;
        out[w]->replicas = u.replicas;
    }

    const lst_workers how = {.workers = workers,
                             .replicas = u.replicas / workers,
                             .runtime = &runtime,
                             .timeout_ms = MS_A_CALL,
                             .sequential = u.sequential};

    if (lst_workers_try(&how, run_worker, out, NULL, &err) != LS_OK) {
        complain(out[0], "the workers cannot be made: %s", err.message);
    }
}
