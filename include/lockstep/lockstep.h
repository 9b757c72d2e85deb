/*
 * lockstep/lockstep.h - includes every public header but ext/ and try.h.
 *
 * The rules that hold everywhere, unless a header says otherwise:
 *
 * Failing.    A fallible function returns ls_status (LS_OK is 0) and takes an ls_error
 *             last, which may be NULL. On failure no output is touched. Operations report
 *             to their context instead, which keeps the first failure until the step
 *             ends.
 * Owning.     What arrives through `ls_thing **out` is yours to release. What a getter
 *             returns is borrowed and lives as long as its parent. An argument is
 *             borrowed for the call; a callee that keeps it retains it. Tensors that
 *             operations return belong to the context and live until
 *             ls_context_finish().
 * Getters.    They accept NULL, which is what a failed operation returns, and return 0,
 *             false or NULL; texts are "None". So a step is checked once, at its end.
 * Releasing.  Release functions accept NULL. Children keep their parents alive: objects
 *             may be released in any order.
 * Threads.    An object is used by one thread at a time; retain and release are for any
 *             thread. Separate objects are independent.
 * Options.    A struct of options starts from its ..._INIT; NULL means the defaults and a
 *             zero field "choose for me". The first field is the struct's size, by which
 *             the library tells old callers from new ones.
 * Processes.  The library is not fork-safe: a child made by fork() may only exec().
 *             The library never prints and never exits.
 */
#ifndef LS_LOCKSTEP_H
#define LS_LOCKSTEP_H

#include "lockstep/cluster.h"
#include "lockstep/comm.h"
#include "lockstep/context.h"
#include "lockstep/cross_device.h"
#include "lockstep/dataset.h"
#include "lockstep/distribute.h"
#include "lockstep/example.h"
#include "lockstep/info.h"
#include "lockstep/input.h"
#include "lockstep/log.h"
#include "lockstep/metric.h"
#include "lockstep/op.h"
#include "lockstep/optimizer.h"
#include "lockstep/record.h"
#include "lockstep/replica.h"
#include "lockstep/runtime.h"
#include "lockstep/scope.h"
#include "lockstep/status.h"
#include "lockstep/strategy.h"
#include "lockstep/tape.h"
#include "lockstep/tensor.h"
#include "lockstep/value.h"
#include "lockstep/variable.h"

#endif /* LS_LOCKSTEP_H */
