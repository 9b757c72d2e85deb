/*
 * Calls every getter of the public headers with NULL, which is what a failed operation or
 * create returns: none may crash, and each returns 0, false, NULL or what its header
 * says.
 */
#include "lockstep/lockstep.h"
#include "ls_test.h"

LST_TEST(getters_of_no_tensor_answer_nothing)
{
    const ls_tensor *values = NULL, *indices = NULL;
    const ls_shape scalar = LS_SCALAR;
    char text[32] = "";

    LST_CHECK(ls_tensor_dtype(NULL) == (ls_dtype)0);
    LST_CHECK(ls_tensor_ndim(NULL) == 0);
    LST_CHECK(ls_tensor_dim(NULL, 0) == -1); // as of any axis that is not there
    LST_CHECK(ls_tensor_shape(NULL).ndim == 0);
    LST_CHECK(ls_tensor_count(NULL) == 0);
    LST_CHECK(ls_tensor_bytes(NULL) == 0);
    LST_CHECK(ls_tensor_device(NULL) == NULL);
    LST_CHECK(ls_tensor_data(NULL) == NULL);
    LST_CHECK(!ls_tensor_slices(NULL, &values, &indices));
    LST_CHECK(ls_tensor_text(NULL, text, sizeof text) == 4 && strcmp(text, "None") == 0);
    LST_CHECK(ls_tensor_repr(NULL, text, sizeof text) == 4 && strcmp(text, "None") == 0);
    LST_CHECK(ls_tensor_retain(NULL) == NULL);
    LST_CHECK(ls_shape_equal(NULL, NULL));
    LST_CHECK(!ls_shape_equal(&scalar, NULL));
    LST_CHECK(ls_shape_count(NULL) == -1);
    LST_CHECK(strcmp(ls_shape_text(NULL, text, sizeof text), "None") == 0);
    LST_CHECK(!ls_dtype_from_name(NULL, NULL));
}

LST_TEST(getters_of_no_value_answer_nothing)
{
    char text[32] = "";
    int64_t i = 7;
    double x = 7;
    bool b = true;
    ls_string s = {NULL, 0};

    LST_CHECK(ls_value_kind_of(NULL) == LS_VALUE_NONE);
    LST_CHECK(ls_value_size(NULL) == 0);
    LST_CHECK(ls_value_child(NULL, 0) == NULL);
    LST_CHECK(ls_value_key(NULL, 0) == NULL);
    LST_CHECK(ls_value_find(NULL, "a") == NULL);
    LST_CHECK(ls_value_type_name(NULL) == NULL);
    LST_CHECK(ls_value_as_tensor(NULL) == NULL);
    LST_CHECK(ls_value_as_variable(NULL) == NULL);
    LST_CHECK(ls_value_as_dataset(NULL) == NULL);
    LST_CHECK(!ls_value_as_int(NULL, &i) && i == 7);
    LST_CHECK(!ls_value_as_float(NULL, &x) && x > 6);
    LST_CHECK(!ls_value_as_bool(NULL, &b) && b);
    LST_CHECK(!ls_value_as_string(NULL, &s));
    LST_CHECK(ls_value_item(NULL, &x, NULL) == LS_INVALID_ARGUMENT && x > 6);
    LST_CHECK(ls_value_same(NULL, NULL));
    LST_CHECK(ls_value_text(NULL, text, sizeof text) == 4 && strcmp(text, "None") == 0);
    LST_CHECK(ls_value_repr(NULL, text, sizeof text) == 4 && strcmp(text, "None") == 0);
    LST_CHECK(ls_value_retain(NULL) == NULL);
    (void)ls_value_is_leaf(NULL);
}

LST_TEST(getters_of_no_variable_answer_nothing)
{
    char text[32] = "";

    LST_CHECK(ls_variable_name(NULL) == NULL);
    LST_CHECK(ls_variable_dtype(NULL) == (ls_dtype)0);
    LST_CHECK(ls_variable_shape(NULL).ndim == 0);
    LST_CHECK(!ls_variable_trainable(NULL));
    LST_CHECK(ls_variable_synchronization(NULL) == LS_SYNC_AUTO);
    LST_CHECK(ls_variable_aggregation(NULL) == LS_AGGREGATE_NONE);
    LST_CHECK(ls_variable_device(NULL) == NULL);
    LST_CHECK(ls_variable_components(NULL) == 0);
    LST_CHECK(ls_variable_component(NULL, 0) == NULL);
    LST_CHECK(ls_variable_container(NULL) == NULL);
    LST_CHECK(ls_variable_strategy(NULL) == NULL);
    LST_CHECK(ls_variable_text(NULL, text, sizeof text) == 4 &&
              strcmp(text, "None") == 0);
    LST_CHECK(ls_variable_retain(NULL) == NULL);
}

LST_TEST(getters_of_no_device_runtime_or_context_answer_nothing)
{
    const ls_setting *settings = NULL;

    LST_CHECK(ls_runtime_device_count(NULL) > 0); // NULL is the default runtime
    LST_CHECK(ls_runtime_device(NULL, 0) != NULL);
    LST_CHECK(ls_runtime_device(NULL, -1) == NULL);
    LST_CHECK(ls_settings(NULL, &settings) > 0);
    LST_CHECK(ls_runtime_retain(NULL) == NULL);
    (void)ls_device_name(NULL);
    (void)ls_device_threads(NULL);
    (void)ls_info_device_isa(NULL);
    (void)ls_info_modules(NULL, NULL, 0);
    LST_CHECK(ls_context_device(NULL) == NULL);
    LST_CHECK(ls_context_at(NULL, __FILE__, __LINE__) == NULL);
    LST_CHECK(ls_context_status(NULL, NULL) != LS_OK);
    LST_CHECK(ls_context_finish(NULL, NULL) != LS_OK);
    (void)ls_item(NULL, NULL);
    (void)ls_replica_id(NULL);
    (void)ls_replica_count(NULL);
    (void)ls_replica_strategy(NULL);
    LST_CHECK(ls_assign(NULL, NULL, NULL) == NULL);
    LST_CHECK(ls_assign_add(NULL, NULL, NULL) == NULL);
    LST_CHECK(ls_variable_scatter(NULL, NULL, LS_SCATTER_ADD, NULL, NULL) == NULL);
}

LST_TEST(getters_of_no_strategy_answer_nothing)
{
    ls_strategy_traits traits = LS_STRATEGY_TRAITS_INIT;

    LST_CHECK(ls_strategy_name(NULL) == NULL);
    LST_CHECK(ls_strategy_replicas(NULL) == 0);
    LST_CHECK(ls_strategy_worker_devices(NULL) == 0);
    LST_CHECK(ls_strategy_worker_device(NULL, 0) == NULL);
    LST_CHECK(ls_strategy_parameter_devices(NULL) == 0);
    LST_CHECK(ls_strategy_parameter_device(NULL, 0) == NULL);
    traits.should_checkpoint = true;
    ls_strategy_traits_of(NULL, &traits);
    LST_CHECK(!traits.should_checkpoint && traits.struct_size == sizeof traits);
    ls_strategy_traits_of(NULL, NULL);
    (void)ls_strategy_created(NULL, NULL);
    LST_CHECK(ls_strategy_retain(NULL) == NULL);
    LST_CHECK(ls_cross_device_retain(NULL) == NULL);
    (void)ls_cross_device_name(NULL);
    (void)ls_cross_device_text(NULL);
    (void)ls_comm_rank(NULL);
    (void)ls_comm_size(NULL);
    (void)ls_comm_backend(NULL);
    (void)ls_comm_test(NULL);
}

LST_TEST(getters_of_no_optimizer_or_metric_answer_nothing)
{
    LST_CHECK(ls_optimizer_learning_rate(NULL) == 0);
    LST_CHECK(ls_optimizer_iterations(NULL) == 0);
    LST_CHECK(ls_optimizer_name(NULL) == NULL);
    LST_CHECK(ls_optimizer_slot(NULL, NULL, "m") == NULL);
    LST_CHECK(ls_optimizer_retain(NULL) == NULL);
    ls_optimizer_set_learning_rate(NULL, 0.1);
    LST_CHECK(ls_metric_name(NULL) == NULL);
    LST_CHECK(ls_metric_variable(NULL, 0) == NULL);
    LST_CHECK(ls_metric_retain(NULL) == NULL);
}

LST_TEST(getters_of_no_dataset_answer_nothing)
{
    char text[32] = "";
    bool wrapped = true;

    (void)ls_dataset_cardinality(NULL);
    (void)ls_dataset_spec(NULL);
    (void)ls_dataset_kind(NULL);
    (void)ls_spec_kind_of(NULL);
    (void)ls_spec_dtype(NULL);
    (void)ls_spec_ndim(NULL);
    (void)ls_spec_dim(NULL, 0);
    LST_CHECK(ls_spec_size(NULL) == 0);
    LST_CHECK(ls_spec_child(NULL, 0) == NULL);
    LST_CHECK(ls_spec_key(NULL, 0) == NULL);
    (void)ls_spec_equal(NULL, NULL);
    (void)ls_spec_text(NULL, text, sizeof text);
    LST_CHECK(ls_spec_retain(NULL) == NULL);
    (void)ls_dist_cardinality(NULL);
    (void)ls_dist_spec(NULL, &wrapped);
    LST_CHECK(ls_dist_dataset_retain(NULL) == NULL);
    LST_CHECK(!ls_optional_has_value(NULL));
}

LST_MAIN(LST_CASE(getters_of_no_tensor_answer_nothing),
         LST_CASE(getters_of_no_value_answer_nothing),
         LST_CASE(getters_of_no_variable_answer_nothing),
         LST_CASE(getters_of_no_device_runtime_or_context_answer_nothing),
         LST_CASE(getters_of_no_strategy_answer_nothing),
         LST_CASE(getters_of_no_optimizer_or_metric_answer_nothing),
         LST_CASE(getters_of_no_dataset_answer_nothing))
