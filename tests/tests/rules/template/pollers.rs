//! Event pollers of the events queue (Lambda's provisioned mode), in place of a maximum of concurrent invocations.

use serde_json::{Value, json};

use super::functions::MAPPING;
use super::{TEMPLATE, matching, resources};

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
    for provisioned in [false, true] {
        for (name, mapping) in resources(MAPPING) {
            let setting = |property| in_case(provisioned, &mapping[property]).as_object();
            let [scaling, pollers] = ["ScalingConfig", "ProvisionedPollerConfig"].map(setting);
            let share = match name {
                "DispatchEventsMapping" if provisioned => None,
                "DispatchEventsMapping" => Some("Events"),
                "DispatchRetryMapping" => Some("Retry"),
                "DispatchSlowMapping" => Some("Slow"),
                "DispatchIsolationMapping" => Some("Isolation"),
                "DeadLetterMapping" => Some("DeadLetter"),
                other => panic!("which limit does {other} have?"),
            };
            let range = json!({"MinimumPollers": [0, ["-", "EventsPollers"]],
                "MaximumPollers": [1, ["-", "${EventsPollers}-"]]});
            let range = share.is_none().then_some(&range).and_then(Value::as_object);
            assert_eq!(pollers, range, "{name}");
            let most =
                share.map(|share| json!({"MaximumConcurrency": ["Shares", "Concurrency", share]}));
            assert_eq!(scaling, most.as_ref().and_then(Value::as_object), "{name}");
        }
    }
    assert_eq!(TEMPLATE["Conditions"][POLLERS], json!([["EventsPollers", ""]]));
}

#[test]
fn the_limits_of_event_pollers_are_those_of_lambda() {
    let parameter = &TEMPLATE["Parameters"]["EventsPollers"];
    assert_eq!(parameter["Default"], "");
    let pattern = parameter["AllowedPattern"].as_str().expect("a pattern");
    let allowed = |least: u64, most: u64| {
        let (of_least, of_most) = (2..=200, 2..=2_000);
        of_least.contains(&least) && of_most.contains(&most)
    };
    let numbers = (0..=12).chain(95..=105).chain(195..=205).chain(995..=1_005).chain(1_995..=2_005);
    let pairs: Vec<(u64, u64)> =
        numbers.clone().flat_map(|least| numbers.clone().map(move |most| (least, most))).collect();
    let line = |(least, most): &(u64, u64)| format!("{least}-{most}\n");
    let expected = pairs.iter().filter(|(least, most)| allowed(*least, *most)).map(line);
    let matched = matching(pattern, &pairs.iter().map(line).collect::<String>());
    assert_eq!(matched, expected.collect::<String>());
    // The zero that is appended to the maximum makes ten times it, if it is written like that.
    assert_eq!(matching(pattern, "2-02\n2-2.0\n2-2e2\n2--2\n2-+2\n2- 2\n2\n2-\n-2\n2-3-4\n"), "");
}
