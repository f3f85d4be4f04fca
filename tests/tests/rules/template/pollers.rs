//! Event pollers of the events queue (Lambda's provisioned mode), in place of a maximum of concurrent invocations.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::functions::MAPPING;
use super::{TEMPLATE, matching, properties, resources};

/// The condition of a stack that has them.
pub(super) const POLLERS: &str = "HasEventsPollers";

/// A property in a stack with event pollers, or in one without.
pub(super) fn in_case(provisioned: bool, property: &Value) -> &Value {
    match property.as_array().map(Vec::as_slice) {
        Some([condition, then, _]) if condition == POLLERS && provisioned => then,
        Some([condition, _, otherwise]) if condition == POLLERS => otherwise,
        _ => property,
    }
}

#[test]
fn a_mapping_has_either_a_maximum_of_invocations_or_event_pollers() {
    let events = properties("DispatchEventsMapping");
    assert_eq!(events["ScalingConfig"][1], "AWS::NoValue");
    assert_eq!(events["ProvisionedPollerConfig"][2], "AWS::NoValue");
    for provisioned in [false, true] {
        for (name, mapping) in resources(MAPPING) {
            let of = |property| in_case(provisioned, &mapping[property]).as_object();
            let [scaling, pollers] = ["ScalingConfig", "ProvisionedPollerConfig"].map(of);
            let most = match name {
                "DispatchEventsMapping" if provisioned => None,
                "DispatchEventsMapping" => Some(json!("EventsConcurrency")),
                "DispatchFanOutMapping" => Some(json!("FanOutConcurrency")),
                "DispatchRetryMapping" => Some(json!("RetryConcurrency")),
                "DispatchSlowMapping" => Some(json!("SlowConcurrency")),
                "DispatchIsolationMapping" => Some(json!("IsolationConcurrency")),
                "DeadLetterMapping" | "UnprocessedMapping" => Some(json!("DeadLetterConcurrency")),
                other => panic!("which limit does {other} have?"),
            };
            let range = json!({"MinimumPollers": "EventsPollersMinimum", "MaximumPollers": "EventsPollersMaximum"});
            let range = most.is_none().then_some(&range).and_then(Value::as_object);
            assert_eq!(pollers, range, "{name}");
            let most = most.map(|most| json!({ "MaximumConcurrency": most }));
            assert_eq!(scaling, most.as_ref().and_then(Value::as_object), "{name}");
        }
    }
}

#[test]
fn event_pollers_have_both_limits_or_none() {
    let is_set = |name| json!([[name, "0"]]);
    let [least, most] = ["EventsPollersMinimum", "EventsPollersMaximum"].map(is_set);
    assert_eq!(TEMPLATE["Conditions"][POLLERS], json!([least, most]));
    let rule = &TEMPLATE["Rules"]["PollersHaveBothLimits"];
    assert_eq!(rule["RuleCondition"], json!([least, most]));
    let assertions = rule["Assertions"].as_array().expect("a list").iter();
    assert_eq!(assertions.map(|of| &of["Assert"]).collect::<Vec<_>>(), [&least, &most]);
    // Read without tags, an `!And` looks like an `!Or`, and a `!Not` like a list.
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../template.yaml");
    let text = fs::read_to_string(path).expect("there is a template");
    let is_set = |name| format!("!Not [!Equals [!Ref {name}, \"0\"]]");
    let [least, most] = ["EventsPollersMinimum", "EventsPollersMaximum"].map(is_set);
    for line in [
        format!("  {POLLERS}: !And [{least}, {most}]\n"),
        format!("    RuleCondition: !Or [{least}, {most}]\n"),
        format!("      - Assert: {least}\n"),
        format!("      - Assert: {most}\n"),
    ] {
        assert_eq!(text.matches(&line).count(), 1, "{line}");
    }
}

#[test]
fn the_limits_of_event_pollers_are_those_of_lambda() {
    let all = (0..=20_010).map(|number| format!("{number}\n")).collect::<String>();
    // The zero that is appended to the maximum makes ten times it, if it is written like that.
    let strange = "\n02\n2.0\n2e2\n-2\n+2\n 2\n";
    for (name, most) in [("EventsPollersMinimum", 200), ("EventsPollersMaximum", 2_000)] {
        let parameter = &TEMPLATE["Parameters"][name];
        assert_eq!(parameter["Default"], "0", "{name}");
        let pattern = parameter["AllowedPattern"].as_str().expect("a pattern");
        let allowed = [0].into_iter().chain(2..=most).map(|number| format!("{number}\n"));
        assert_eq!(matching(pattern, &all), allowed.collect::<String>(), "{name}");
        assert_eq!(matching(pattern, strange), "", "{name}");
    }
}
