/* Tests of ls_communication_options: checks and merging. */
#include "lockstep/replica.h"
#include "ls_test.h"

LST_TEST(s100_implementations_have_names_in_any_case)
{
    static const struct {
        const char *name;
        ls_communication is;
    } cases[] = {{"ring", LS_COMMUNICATION_RING},
                 {"RING", LS_COMMUNICATION_RING},
                 {"Nccl", LS_COMMUNICATION_NCCL},
                 {"auto", LS_COMMUNICATION_AUTO},
                 {"AUTO", LS_COMMUNICATION_AUTO}};
    ls_error err = LS_ERROR_INIT;
    ls_communication c = LS_COMMUNICATION_AUTO;

    for (size_t i = 0; i < LSI_COUNT_OF(cases); i++) {
        c = (ls_communication)77;
        LST_OK(ls_communication_from_name(cases[i].name, &c, &err));
        LST_CHECK(c == cases[i].is);
    }
    LST_FAILS(ls_communication_from_name("foo", &c, &err), LS_INVALID_ARGUMENT, err,
              "\"foo\"");
    LST_CHECK(err.kind == LS_KIND_VALUE);
    LST_FAILS(ls_communication_from_name("", &c, &err), LS_INVALID_ARGUMENT, err, "AUTO");
    LST_FAILS(ls_communication_from_name(NULL, &c, &err), LS_INVALID_ARGUMENT, err,
              "AUTO");
    LST_CHECK(strcmp(ls_communication_name(LS_COMMUNICATION_NCCL), "NCCL") == 0);
    LST_CHECK(strcmp(ls_communication_name((ls_communication)3), "?") == 0);
    LST_CHECK(strcmp(ls_communication_name((ls_communication)-1), "?") == 0);
}

LST_TEST(s100_a_negative_pack_and_an_unknown_implementation_are_refused)
{
    ls_communication_options o = LS_COMMUNICATION_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_communication_check(NULL, &err));
    LST_OK(ls_communication_check(&o, &err));
    o.bytes_per_pack = -1;
    LST_FAILS(ls_communication_check(&o, &err), LS_INVALID_ARGUMENT, err,
              "bytes_per_pack is -1");
    LST_CHECK(err.kind == LS_KIND_VALUE);
    o.bytes_per_pack = 0;
    o.implementation = (ls_communication)9;
    LST_FAILS(ls_communication_check(&o, &err), LS_INVALID_ARGUMENT, err,
              "9 is no implementation");
    o.struct_size = 0;
    LST_FAILS(ls_communication_check(&o, &err), LS_INVALID_ARGUMENT, err,
              "LS_COMMUNICATION_OPTIONS_INIT");
}

LST_TEST(s100_what_is_not_the_default_wins)
{
    const ls_communication_options set = {sizeof set, 10, 5.0, LS_COMMUNICATION_RING,
                                          "tree"};
    const ls_communication_options defaults = LS_COMMUNICATION_OPTIONS_INIT;
    const ls_communication_options other = {sizeof other, 20, 0.0, LS_COMMUNICATION_NCCL,
                                            "ring"};
    ls_communication_options o = set;

    ls_communication_merge(&o, &defaults);
    ls_communication_merge(&o, NULL);
    LST_CHECK(o.bytes_per_pack == 10 && o.implementation == LS_COMMUNICATION_RING);
    LST_CHECK(o.timeout_seconds == 5.0 && strcmp(o.algorithm, "tree") == 0);
    ls_communication_merge(&o, &other);
    LST_CHECK(o.bytes_per_pack == 20 && o.implementation == LS_COMMUNICATION_NCCL);
    LST_CHECK(o.timeout_seconds == 0.0); // 0 counts as set
    LST_CHECK(strcmp(o.algorithm, "ring") == 0);
    ls_communication_merge(NULL, &other);
}

LST_TEST(an_older_struct_is_merged_as_far_as_it_goes)
{
    ls_communication_options old = LS_COMMUNICATION_OPTIONS_INIT;
    const ls_communication_options other = {sizeof other, 20, 3.0, LS_COMMUNICATION_NCCL,
                                            "ring"};

    old.struct_size = offsetof(ls_communication_options, implementation);
    ls_communication_merge(&old, &other);
    LST_CHECK(old.bytes_per_pack == 20 && old.timeout_seconds == 3.0);
    LST_CHECK(old.implementation == LS_COMMUNICATION_AUTO && old.algorithm == NULL);
    old.implementation = LS_COMMUNICATION_RING; // beyond the size of the struct
    ls_communication_options into = LS_COMMUNICATION_OPTIONS_INIT;
    ls_communication_merge(&into, &old);
    LST_CHECK(into.bytes_per_pack == 20 && into.implementation == LS_COMMUNICATION_AUTO);
}

LST_MAIN(LST_CASE(s100_implementations_have_names_in_any_case),
         LST_CASE(s100_a_negative_pack_and_an_unknown_implementation_are_refused),
         LST_CASE(s100_what_is_not_the_default_wins),
         LST_CASE(an_older_struct_is_merged_as_far_as_it_goes))
