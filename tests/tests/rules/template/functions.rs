//! The functions, their triggers, and their settings.

use std::collections::BTreeMap;

use adapters::settings::splits;
use delivery::time::duration::MINUTE_MS;
use delivery::waits::UNREAD_MS;

use serde_json::{Value, json};

use super::pollers::POLLERS;
use super::{TEMPLATE, matching, properties, read, resources, surrounding};

pub(super) const MAPPING: &str = "AWS::Lambda::EventSourceMapping";
/// The longest delay of a message.
const DELAY_MAX_SECONDS: u64 = 900;
/// The functions that read queues.
const FUNCTIONS: [&str; 2] = ["DeadLetterFunction", "DispatchFunction"];
/// The function that publishes over HTTP.
const INGRESS: &str = "IngressFunction";

/// The target of a mapping. For dispatch, this is the alias if the deployment is gradual.
fn invoked(function: &str) -> Value {
    match function {
        "DispatchFunction" => {
            json!(["IsGradual", ["DispatchFunction", "Alias.AliasArn"], "DispatchFunction"])
        }
        other => json!(other),
    }
}

/// The mappings of a function, by the queue that they read.
fn mappings(function: &str) -> BTreeMap<&'static str, &'static Value> {
    let of_function = resources(MAPPING).into_iter();
    let of_function =
        of_function.filter(|(_, mapping)| mapping["FunctionName"] == invoked(function));
    let source = |(_, mapping): (_, &'static Value)| {
        let arn = mapping["EventSourceArn"].as_str().expect("a mapping has a source");
        (arn.trim_end_matches(".Arn"), mapping)
    };
    of_function.map(source).collect()
}

fn variables(function: &str) -> &'static Value {
    &properties(function)["Environment"]["Variables"]
}

#[test]
fn every_queue_but_the_last_resort_is_read_by_one_function() {
    let read = |function| mappings(function).into_keys().collect::<Vec<_>>();
    let dispatched = ["EventsQueue", "IsolationQueue", "RetryQueue", "SlowQueue"];
    assert_eq!(read("DispatchFunction"), dispatched);
    assert_eq!(read("DeadLetterFunction"), ["DeadLetterQueue"]);
    assert_eq!(resources(MAPPING).len(), 5);
}

#[test]
fn a_mapping_acknowledges_what_the_function_does_not_name() {
    for (name, mapping) in resources(MAPPING) {
        assert_eq!(mapping["FunctionResponseTypes"], json!(["ReportBatchItemFailures"]), "{name}");
    }
}

#[test]
fn a_record_that_may_crash_a_function_is_handled_alone() {
    assert_eq!(mappings("DispatchFunction")["IsolationQueue"]["BatchSize"], 1);
    assert_eq!(mappings("DispatchFunction")["SlowQueue"]["BatchSize"], 500);
}

#[test]
fn lambda_does_not_stop_a_function_that_sends_to_its_own_queues() {
    assert_eq!(TEMPLATE["Globals"]["Function"]["RecursiveLoop"], "Allow");
    for (name, properties) in resources("AWS::Serverless::Function") {
        assert!(properties.get("RecursiveLoop").is_none(), "{name} overrides it");
    }
}

#[test]
fn every_function_has_the_timeout_that_its_queues_are_made_for() {
    assert_eq!(TEMPLATE["Globals"]["Function"]["Timeout"], "DispatchTimeout");
    for name in FUNCTIONS {
        assert!(properties(name).get("Timeout").is_none(), "{name} overrides it");
    }
    for queue in ["EventsQueue", "RetryQueue", "SlowQueue", "DeadLetterQueue"] {
        let belongs = json!(["Timeouts", "DispatchTimeout", "Visibility"]);
        assert_eq!(properties(queue)["VisibilityTimeout"], belongs, "{queue}");
    }
}

#[test]
fn every_function_knows_its_own_timeout() {
    for name in FUNCTIONS {
        assert_eq!(variables(name)["FUNCTION_TIMEOUT_SECONDS"], "DispatchTimeout", "{name}");
    }
    let timeout = properties(INGRESS)["Timeout"].to_string();
    assert_eq!(variables(INGRESS)["FUNCTION_TIMEOUT_SECONDS"], timeout.as_str());
}

#[test]
fn to_each_timeout_belongs_a_visibility_timeout_that_outlasts_it_with_the_longest_window() {
    let parameters = &TEMPLATE["Parameters"];
    let number = |value: &Value| value.as_u64().expect("a number");
    let longest = number(&parameters["DispatchBatchWindow"]["MaxValue"]);
    let allowed = parameters["DispatchTimeout"]["AllowedValues"].as_array().expect("a list");
    let timeouts = TEMPLATE["Mappings"]["Timeouts"].as_object().expect("a mapping");
    assert_eq!(timeouts.len(), allowed.len());
    for timeout in allowed.iter().map(number) {
        let visibility = number(&timeouts[&timeout.to_string()]["Visibility"]);
        assert_eq!(visibility, (6 * timeout).max(360), "{timeout}");
        assert!(visibility >= timeout + longest, "{timeout}");
        // Messages of a crashed function are late by the visibility timeout, and waiting messages
        // by one delay more. Neither raises an alarm yet.
        let [events, waits] = ["EventsAlarm", "RetryAlarm"]
            .map(|column| number(&timeouts[&timeout.to_string()][column]));
        assert!(visibility < events && events + DELAY_MAX_SECONDS == waits, "{timeout}");
    }
    let stack = properties("ObservabilityStack");
    for (parameter, column) in
        [("EventsAgeAlarmSeconds", "EventsAlarm"), ("RetryAgeAlarmSeconds", "RetryAlarm")]
    {
        let found = json!(["Timeouts", "DispatchTimeout", column]);
        assert_eq!(stack["Parameters"][parameter], found);
    }
}

#[test]
fn an_allowed_rate_is_divided_by_all_invocations_that_may_run_at_once() {
    let concurrency = variables("DispatchFunction")["MAX_CONCURRENCY"].as_array().expect("!Sub");
    let [text, variables] = concurrency.as_slice() else { panic!("{concurrency:?}") };
    assert_eq!(*text, "${Events}+${Retry}+${Slow}+${Isolation}");
    let variables = variables.as_object().expect("variables");
    assert_eq!(variables.len(), mappings("DispatchFunction").len());
    for (name, value) in variables {
        let share = json!(["Shares", "Concurrency", name]);
        // Each event poller makes up to ten invocations at once.
        let most = json!(["", [[1, ["-", "${EventsPollers}-"]], "0"]]);
        let expected = if name == "Events" { json!([POLLERS, most, share]) } else { share };
        assert_eq!(*value, expected, "{name}");
    }
}

#[test]
fn each_variable_of_a_queue_or_a_bucket_names_that_one() {
    let dispatch = [
        ("EVENTS_QUEUE_URL", "EventsQueue"),
        ("RETRY_QUEUE_URL", "RetryQueue"),
        ("SLOW_QUEUE_URL", "SlowQueue"),
        ("ISOLATION_QUEUE_URL", "IsolationQueue"),
        ("DEAD_LETTER_QUEUE_URL", "DeadLetterQueue"),
        ("DEAD_LETTER_CONTAINER", "DeadLetterBucket"),
        ("SUBSCRIPTIONS_URI", "s3://${ConfigBucket}/subscriptions/"),
    ];
    let deadletter = [
        ("DEAD_LETTER_QUEUE_URL", "DeadLetterQueue"),
        ("EVENTS_QUEUE_URL", "EventsQueue"),
        ("LAST_RESORT_QUEUE_URL", "LastResortQueue"),
        ("DEAD_LETTER_CONTAINER", "DeadLetterBucket"),
    ];
    let ingress = [("EVENTS_QUEUE_URL", "EventsQueue"), ("DEFAULT_TOPIC", "DefaultTopic")];
    for (function, named) in [
        ("DispatchFunction", &dispatch[..]),
        ("DeadLetterFunction", &deadletter),
        (INGRESS, &ingress),
    ] {
        for (variable, value) in named {
            assert_eq!(variables(function)[*variable], *value, "{function} {variable}");
        }
    }
}

#[test]
fn a_log_is_encrypted_with_the_key_of_the_stack() {
    let key = json!(["HasKmsKey", "KmsKeyArn", "AWS::NoValue"]);
    let logs = resources("AWS::Logs::LogGroup");
    assert_eq!(logs.len(), FUNCTIONS.len() + 1);
    for (name, properties) in logs {
        assert_eq!(properties["KmsKeyId"], key, "{name}");
    }
    let mut found = 0;
    for template in surrounding() {
        let document = read(&template);
        let resources = document["Resources"].as_object().expect("it has resources");
        let is_log = |(_, resource): &(&String, &Value)| resource["Type"] == "AWS::Logs::LogGroup";
        for (name, resource) in resources.iter().filter(is_log) {
            assert_eq!(resource["Properties"]["KmsKeyId"], key, "{template}: {name}");
            found += 1;
        }
    }
    assert!(found > 0, "no template of infra has a log");
}

#[test]
fn lambdas_own_lines_have_the_level_that_is_asked_for_and_nothing_filters_those_of_a_function() {
    for function in ["DispatchFunction", "DeadLetterFunction", INGRESS] {
        let logging = &properties(function)["LoggingConfig"];
        let level = json!(["LogLevels", "LogLevel", "Lambda"]);
        assert_eq!(logging["SystemLogLevel"], level, "{function}");
        assert_eq!(logging["ApplicationLogLevel"], "TRACE", "{function}");
    }
    assert_eq!(properties("DispatchFunction")["MemorySize"], "DispatchMemory");
}

#[test]
fn failures_is_the_level_info_without_the_lines_of_what_succeeds_at_once() {
    let rows = TEMPLATE["Mappings"]["LogLevels"].as_object().expect("a mapping");
    let levels = TEMPLATE["Parameters"]["LogLevel"]["AllowedValues"].as_array().expect("a list");
    assert_eq!(levels.len(), rows.len());
    for level in levels.iter().map(|level| level.as_str().expect("a text")) {
        let (lines, deliveries) =
            if level == "failures" { ("info", "failures") } else { (level, "all") };
        assert_eq!(rows[level]["Lines"], lines, "{level}");
        assert_eq!(rows[level]["Deliveries"], deliveries, "{level}");
    }
    let logged = &variables("DispatchFunction")["LOG_DELIVERIES"];
    assert_eq!(*logged, json!(["LogLevels", "LogLevel", "Deliveries"]));
    for function in ["DispatchFunction", "DeadLetterFunction", INGRESS] {
        let own = &variables(function)["RUST_LOG"][1]["Lines"];
        assert_eq!(*own, json!(["LogLevels", "LogLevel", "Lines"]), "{function}");
    }
}

#[test]
fn secrets_are_cached_once() {
    for function in ["DispatchFunction", INGRESS] {
        for variable in ["SECRETS_MANAGER_TTL", "SSM_PARAMETER_STORE_TTL"] {
            assert_eq!(variables(function)[variable], "0", "{function} {variable}");
        }
    }
}

#[test]
fn the_reader_of_dead_letters_is_updated_before_their_writer_and_at_once() {
    assert_eq!(TEMPLATE["Resources"]["DispatchFunction"]["DependsOn"], "DeadLetterFunction");
    assert!(TEMPLATE["Resources"]["DeadLetterFunction"].get("DependsOn").is_none());
    let reader = properties("DeadLetterFunction");
    assert!(
        reader.get("AutoPublishAlias").is_none() && reader.get("DeploymentPreference").is_none()
    );
}

#[test]
fn a_deployment_is_gradual_only_if_it_has_a_name() {
    let parameter = &TEMPLATE["Parameters"]["GradualDeployment"];
    assert_eq!(parameter["Default"], "");
    assert_eq!(TEMPLATE["Conditions"]["IsGradual"], json!([["GradualDeployment", ""]]));
    let dispatch = properties("DispatchFunction");
    assert_eq!(dispatch["DeploymentPreference"]["Enabled"], "GradualDeployment");
    // Both texts change with the name, because Lambda publishes a new version only after a change.
    assert_eq!(dispatch["VersionDescription"], "GradualDeployment");
    let description = dispatch["Description"][1].as_str().expect("a text with the name");
    assert!(description.contains("${GradualDeployment}"), "{description}");
}

#[test]
fn a_gradual_deployment_ends_before_what_cannot_be_read_becomes_a_dead_letter() {
    let preference = &properties("DispatchFunction")["DeploymentPreference"];
    let kind = preference["Type"].as_str().expect("a type");
    let minutes =
        kind.strip_prefix("Canary10Percent").and_then(|rest| rest.strip_suffix("Minutes"));
    let minutes: u64 =
        minutes.and_then(|number| number.parse().ok()).expect("a canary of some minutes");
    assert!(2 * minutes * MINUTE_MS <= UNREAD_MS, "{kind}");
}

#[test]
fn the_alarm_of_the_last_resort_queue_exists_in_every_stack() {
    let alarm = &TEMPLATE["Resources"]["LastResortAlarm"];
    assert!(alarm.get("Condition").is_none());
    let properties = &alarm["Properties"];
    let queue = json!([{"Name": "QueueName", "Value": "LastResortQueue.QueueName"}]);
    assert_eq!(properties["Dimensions"], queue);
    assert_eq!(properties["MetricName"], "ApproximateNumberOfMessagesVisible");
    assert_eq!(properties["ComparisonOperator"], "GreaterThanThreshold");
    assert_eq!(properties["Threshold"], 0);
    let notified = json!([["HasAlarmTopic", "AlarmTopicArn", "AWS::NoValue"]]);
    assert_eq!(properties["AlarmActions"], notified);
    assert_eq!(TEMPLATE["Conditions"]["HasAlarmTopic"], json!([["AlarmTopicArn", ""]]));
}

#[test]
fn a_gradual_deployment_is_taken_back_by_alarms_that_exist() {
    let preference = &properties("DispatchFunction")["DeploymentPreference"];
    let alarms = json!([
        "ObservabilityStack.Outputs.DispatchErrorsAlarmName",
        "ObservabilityStack.Outputs.ErrorLinesAlarmName"
    ]);
    assert_eq!(preference["Alarms"], json!(["IsObserved", alarms, ["AWS::NoValue"]]));
    assert_eq!(TEMPLATE["Resources"]["ObservabilityStack"]["Condition"], "IsObserved");
    let observability = read("infra/observability.yaml");
    for alarm in ["DispatchErrorsAlarm", "ErrorLinesAlarm"] {
        let name = &observability["Outputs"][format!("{alarm}Name")]["Value"];
        assert_eq!(name, alarm);
        assert_eq!(observability["Resources"][alarm]["Type"], "AWS::CloudWatch::Alarm");
    }
}

#[test]
fn nothing_of_the_ingress_is_there_unless_it_is_asked_for() {
    assert_eq!(TEMPLATE["Parameters"]["Ingress"]["Default"], "none");
    let condition = |resource: &'static Value| resource["Condition"].as_str().expect("a condition");
    let resources = TEMPLATE["Resources"].as_object().expect("the template has resources").iter();
    let found: BTreeMap<&str, &str> = resources
        .filter(|(name, _)| name.starts_with("Ingress"))
        .map(|(name, resource)| (name.as_str(), condition(resource)))
        .collect();
    let expected = [
        ("IngressErrorLinesFilter", "IsIngressObserved"),
        ("IngressFunction", "HasIngress"),
        ("IngressInvokePermission", "IsIngressByKeys"),
        ("IngressLogGroup", "HasIngress"),
        ("IngressRole", "HasIngress"),
        ("IngressUrl", "HasIngress"),
        ("IngressUrlPermission", "IsIngressByKeys"),
    ];
    assert_eq!(found, BTreeMap::from(expected));
    let conditions = &TEMPLATE["Conditions"];
    assert_eq!(conditions["HasIngress"], json!(["IsIngressByKeys", ["Ingress", "iam"]]));
    let by_keys = json!([["Ingress", "keys"], "HasPublisherKeyArns"]);
    assert_eq!(conditions["IsIngressByKeys"], by_keys);
}

#[test]
fn errors_of_the_ingress_are_counted_by_the_alarm_of_the_others() {
    let [transformed] = properties("IngressErrorLinesFilter")["MetricTransformations"]
        .as_array()
        .expect("a list")
        .as_slice()
    else {
        panic!("one metric")
    };
    let others =
        &read("infra/observability.yaml")["Resources"]["DispatchErrorLinesFilter"]["Properties"];
    let other = &others["MetricTransformations"][0];
    for name in ["MetricName", "MetricValue", "Unit"] {
        assert_eq!(transformed[name], other[name], "{name}");
    }
    let nested = &properties("ObservabilityStack")["Parameters"]["MetricsNamespace"];
    assert_eq!(&transformed["MetricNamespace"], nested);
    assert_eq!(properties("IngressErrorLinesFilter")["FilterPattern"], others["FilterPattern"]);
}

#[test]
fn the_ingress_is_public_only_with_keys() {
    assert_eq!(properties("IngressUrl")["AuthType"], json!(["IsIngressByKeys", "NONE", "AWS_IAM"]));
    let by_url = properties("IngressUrlPermission");
    assert_eq!(by_url["Action"], "lambda:InvokeFunctionUrl");
    assert_eq!(by_url["FunctionUrlAuthType"], "NONE");
    let invoked = properties("IngressInvokePermission");
    assert_eq!(invoked["Action"], "lambda:InvokeFunction");
    // Without this condition, anyone could also invoke the function through the Lambda API.
    assert_eq!(invoked["InvokedViaFunctionUrl"], true);
    assert_eq!(resources("AWS::Lambda::Permission").len(), 2);
    // The function does not start if `keys` is set and no key is named.
    assert_eq!(variables(INGRESS)["INGRESS_AUTHORIZATION"], "Ingress");
    assert_eq!(variables(INGRESS)["PUBLISHER_KEYS"], json!([",", "PublisherKeyArns"]));
}

#[test]
fn a_public_address_cannot_use_up_the_account_unless_that_is_small() {
    let reserved = &properties(INGRESS)["ReservedConcurrentExecutions"];
    let share = json!(["Shares", "Concurrency", "Ingress"]);
    assert_eq!(*reserved, json!(["ReservesForIngress", share, "AWS::NoValue"]));
    assert_eq!(TEMPLATE["Conditions"]["ReservesForIngress"], json!([[share, 0]]));
    for (all, row) in TEMPLATE["Mappings"]["Shares"].as_object().expect("a mapping") {
        let all: u64 = all.parse().expect("a number");
        // An account must keep 100 unreserved concurrent executions.
        assert_eq!(row["Ingress"], if all < 100 { 0 } else { all / 5 }, "{all}");
    }
    for function in FUNCTIONS {
        assert!(properties(function).get("ReservedConcurrentExecutions").is_none(), "{function}");
    }
}

#[test]
fn a_vpc_is_entered_only_by_dispatch_and_if_that_is_asked_for() {
    let network = json!({"SubnetIds": "SubnetIds", "SecurityGroupIds": "SecurityGroupIds"});
    let dispatch = properties("DispatchFunction");
    assert_eq!(dispatch["VpcConfig"], json!(["HasSubnets", network, "AWS::NoValue"]));
    for parameter in ["SubnetIds", "SecurityGroupIds"] {
        assert_eq!(TEMPLATE["Parameters"][parameter]["Default"], "", "{parameter}");
    }
    for function in ["DeadLetterFunction", INGRESS] {
        assert!(properties(function).get("VpcConfig").is_none(), "{function}");
    }
}

#[test]
fn the_first_deployment_fits_a_new_account() {
    // https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
    assert_eq!(TEMPLATE["Parameters"]["Concurrency"]["Default"], "10");
    assert_eq!(TEMPLATE["Parameters"]["Ingress"]["Default"], "none");
}

#[test]
fn a_boundary_and_traces_are_for_every_function_where_they_are_asked_for() {
    let boundary = json!(["HasPermissionsBoundary", "PermissionsBoundaryArn", "AWS::NoValue"]);
    let roles = resources("AWS::IAM::Role");
    assert_eq!(roles.len(), 3);
    for (name, role) in roles {
        assert_eq!(role["PermissionsBoundary"], boundary, "{name}");
        let policy = &role["Policies"][0]["PolicyDocument"];
        let traces = super::statement(policy, "WriteTraces").expect("a statement");
        assert_eq!(traces.0, Some("IsTraced"), "{name}");
    }
    let traced = json!(["IsTraced", "Active", "PassThrough"]);
    assert_eq!(TEMPLATE["Globals"]["Function"]["Tracing"], traced);
}

#[test]
fn what_a_list_of_metrics_or_keys_may_have_the_functions_read() {
    let pattern =
        |name: &str| TEMPLATE["Parameters"][name]["AllowedPattern"].as_str().expect("one");
    // CloudFormation matches the pattern with each member of a list.
    for (member, is_allowed) in [
        ("topic", true),
        ("outcome", true),
        ("subscription", true),
        ("topics", false),
        ("all", false),
    ] {
        let matched = !matching(pattern("MetricsPer"), &format!("{member}\n")).is_empty();
        assert_eq!((matched, splits(member).is_ok()), (is_allowed, is_allowed), "{member}");
    }
    for (arn, is_allowed) in [
        ("arn:aws:secretsmanager:eu-west-1:123456789012:secret:keys-a1b2c3", true),
        ("arn:aws:ssm:eu-west-1:123456789012:parameter/keys", true),
        ("arn:aws:s3:::keys", false),
        ("secretsmanager:keys", false),
    ] {
        let matched = !matching(pattern("PublisherKeyArns"), &format!("{arn}\n")).is_empty();
        assert_eq!(matched, is_allowed, "{arn}");
    }
}
