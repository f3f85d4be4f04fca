//! The environments of `samconfig.toml`: what they set is a parameter with an allowed value, and what they allow is what
//! the template needs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::functions::MAPPING;
use super::pollers::in_case;
use super::{TEMPLATE, resources};

/// The text of each environment, from its heading to the next.
fn environments() -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../samconfig.toml");
    let text = fs::read_to_string(path).expect("the file is there");
    let of = |section: &str| {
        let (name, text) = section.split_once(".deploy.parameters]").expect("a heading");
        (name.to_owned(), text.to_owned())
    };
    text.split("\n[").skip(1).map(of).collect()
}

/// What a text overrides: names and values.
fn overrides(text: &str) -> Vec<(String, String)> {
    let quoted = text.lines().map(str::trim).filter(|line| line.starts_with('"'));
    let both = quoted.filter_map(|line| line.trim_matches(['"', ',']).split_once('='));
    both.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[test]
fn there_are_two_environments_with_values_that_the_template_allows() {
    let environments = environments();
    assert_eq!(
        environments.iter().map(|(name, _)| &**name).collect::<Vec<_>>(),
        ["default", "prod"]
    );
    for (environment, text) in &environments {
        let all = overrides(text);
        assert!(!all.is_empty(), "{environment}");
        for (name, value) in all {
            let parameter = &TEMPLATE["Parameters"][&name];
            let [least, most] = ["MinValue", "MaxValue"].map(|of| parameter[of].as_i64());
            let number = value.parse::<i64>().ok();
            let is_within = least.is_none_or(|least| number >= Some(least))
                && most.is_none_or(|most| number.is_some_and(|number| number <= most));
            let allowed = parameter["AllowedValues"].as_array();
            let is_allowed = allowed.is_none_or(|of| of.contains(&Value::from(&*value)));
            assert!(
                parameter.is_object() && is_within && is_allowed,
                "{environment}: {name}={value}"
            );
        }
        assert!(text.contains("\"CAPABILITY_IAM\""), "{environment}: the template has roles");
        // https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_CreateStack.html
        assert!(text.contains("\"CAPABILITY_AUTO_EXPAND\""), "{environment}: it is transformed");
        assert!(text.contains("resolve_s3 = true"), "{environment}: the functions are uploaded");
    }
    let named = environments.iter().map(|(_, text)| text.lines().nth(1));
    assert_eq!(named.collect::<BTreeSet<_>>().len(), 2, "two stacks");
}

/// The value of a parameter in a stack with these overrides.
fn value(overridden: &BTreeMap<String, String>, name: &str) -> String {
    let default =
        || TEMPLATE["Parameters"][name]["Default"].to_string().trim_matches('"').to_owned();
    overridden.get(name).cloned().unwrap_or_else(default)
}

/// The parameters with the most concurrent invocations of each mapping.
fn maximums() -> Vec<&'static str> {
    let mappings = resources(MAPPING).into_iter();
    let scaling = mappings.map(|(_, mapping)| in_case(false, &mapping["ScalingConfig"]));
    scaling.map(|of| of["MaximumConcurrency"].as_str().expect("a parameter")).collect()
}

#[test]
fn the_default_environment_needs_fourteen_concurrent_executions_and_reserves_none() {
    let environments = environments();
    let (_, text) = environments.iter().find(|(name, _)| name == "default").expect("it is there");
    let default: BTreeMap<String, String> = overrides(text).into_iter().collect();
    let wanted = |overridden: &BTreeMap<String, String>| -> u32 {
        let values = maximums().into_iter().map(|name| value(overridden, name));
        values.map(|value| value.parse::<u32>().expect("a number")).sum()
    };
    assert_eq!((wanted(&default), wanted(&BTreeMap::new())), (14, 110), "docs/deploy.md has both");
    for (parameter, wanted) in
        [("EventsPollersMaximum", "0"), ("ReservedConcurrency", ""), ("Ingress", "none")]
    {
        assert_eq!(value(&default, parameter), wanted, "{parameter}");
    }
}

#[test]
fn a_stack_for_a_small_account_may_not_reserve_concurrency() {
    let rule = &TEMPLATE["Rules"]["SmallAccountsReserveNothing"];
    let two = json!("2");
    let conditions = rule["RuleCondition"].as_array().expect("a list").iter();
    let of_rule = conditions.map(|of| (of[0].as_str().expect("a name"), &of[1]));
    assert_eq!(
        of_rule.collect::<BTreeMap<_, _>>(),
        maximums().into_iter().map(|name| (name, &two)).collect()
    );
    let asserted = rule["Assertions"].as_array().expect("a list").iter().map(|of| &of["Assert"]);
    let no_ingress = json!([["Ingress", "none"], ["IngressConcurrency", "0"]]);
    let no_reserve = json!(["ReservedConcurrency", ""]);
    assert_eq!(asserted.collect::<Vec<_>>(), [&no_ingress, &no_reserve]);
    // Read without tags, an `!And` looks like an `!Or`.
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../template.yaml");
    let text = fs::read_to_string(path).expect("there is a template");
    let (_, rule) = text.split_once("  SmallAccountsReserveNothing:\n").expect("the rule");
    assert!(rule.starts_with("    RuleCondition: !And\n"), "all of them");
    assert!(rule.contains("- Assert: !Or [!Equals [!Ref Ingress, none]"), "one of the two");
}
