/*
 * lockstep/scope.h - the state of the calling thread: the current strategy, name scopes,
 * device scopes and creators of variables.
 *
 * Every thread starts in default mode: the current strategy is the default one, and the
 * thread is in its only replica. Entering a strategy's scope, running its functions and
 * merging change that until they end. Scopes are exited in the reverse order.
 *
 * Threads: every function here acts on the calling thread.
 */
#ifndef LS_SCOPE_H
#define LS_SCOPE_H

#include "lockstep/variable.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The current strategy, or the default one. Borrowed; never NULL. */
LS_API ls_strategy *ls_current_strategy(void);

/* True if ls_current_strategy() is not the default one. */
LS_API bool ls_has_strategy(void);

/* True inside a scope, a merge function and an update function. */
LS_API bool ls_in_cross_replica_context(void);

/*
 * The context of the replica that runs on this thread, borrowed; NULL in cross-replica
 * context. In default mode the thread's own context, which lives as long as the thread.
 */
LS_API ls_context *ls_replica_context(void);

/* The strategy if this is a cross-replica context, else NULL. Borrowed. */
LS_API ls_strategy *ls_cross_replica_context(void);

/*
 * Variables created from here to ls_scope_exit() are the strategy's. The same strategy
 * may be entered again inside. LS_FAILED_PRECONDITION: another strategy is current, or
 * this is a replica function (use ls_merge_call).
 */
LS_API LS_MUST_USE ls_status ls_scope_enter(ls_strategy *s, ls_error *err);

/* Exits the scope entered last. A wrong nesting is logged and changes nothing. */
LS_API void ls_scope_exit(ls_strategy *s);

/*
 * The same, but a wrong nesting is returned as LS_FAILED_PRECONDITION; the message names
 * the device, creator or name scope that is still open inside.
 */
LS_API LS_MUST_USE ls_status ls_scope_try_exit(ls_strategy *s, ls_error *err);

/*
 * Makes `s` (NULL: none) the strategy of this thread until the next such call.
 * LS_FAILED_PRECONDITION: a scope is open.
 */
LS_API LS_MUST_USE ls_status ls_set_strategy(ls_strategy *s, ls_error *err);

/* Variables created inside are named "name/...". */
LS_API LS_MUST_USE ls_status ls_name_scope_enter(const char *name, ls_error *err);
LS_API LS_MUST_USE ls_status ls_name_scope_exit(ls_error *err);

/*
 * Inside, `device` is used where a call names none: for new variables, for functions of
 * the default strategy and for reading one copy of a mirrored variable.
 */
LS_API LS_MUST_USE ls_status ls_device_scope_enter(ls_device *device, ls_error *err);
LS_API LS_MUST_USE ls_status ls_device_scope_exit(ls_error *err);

/*
 * For each variable created inside, `fn` is called, the innermost first; it creates the
 * variable by ls_creator_call(), possibly with other arguments. A creator scope inside a
 * strategy's scope is called once per variable. One that was open before the strategy
 * became current is called once per copy ("w", "w/replica_1", ...), with the copy's
 * device in the options: it must create a plain variable, of the first copy's dtype and
 * shape. `fn` runs on the thread that creates the variable.
 */
typedef struct ls_creator_next ls_creator_next;
typedef ls_status (*ls_creator_fn)(const ls_creator_next *next, const ls_tensor *value,
                                   const ls_variable_options *opts, void *user,
                                   ls_variable **out, ls_error *err);
LS_API LS_MUST_USE ls_status ls_creator_call(const ls_creator_next *next,
                                             const ls_tensor *value,
                                             const ls_variable_options *opts,
                                             ls_variable **out, ls_error *err);
LS_API LS_MUST_USE ls_status ls_creator_scope_enter(ls_creator_fn fn, void *user,
                                                    ls_error *err);
LS_API LS_MUST_USE ls_status ls_creator_scope_exit(ls_error *err);

/* Variables created inside are placed on the devices of `v`, a variable of `s`. */
LS_API LS_MUST_USE ls_status ls_colocate_enter(ls_strategy *s, ls_variable *v,
                                               ls_error *err);
LS_API LS_MUST_USE ls_status ls_colocate_exit(ls_strategy *s, ls_error *err);

/*
 * Inside, ls_variable_as_tensor() of an ON_READ variable in a replica aggregates over the
 * replicas, and ls_read() of one is LS_UNIMPLEMENTED. Does not nest.
 */
LS_API LS_MUST_USE ls_status ls_sync_on_read_enter(ls_error *err);
LS_API LS_MUST_USE ls_status ls_sync_on_read_exit(ls_error *err);

#ifdef __cplusplus
}
#endif
#endif /* LS_SCOPE_H */
