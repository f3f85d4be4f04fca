//! The environments of `samconfig.toml` set existing parameters to allowed values.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::TEMPLATE;

/// The text of each environment, from its heading to the next.
fn environments() -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../samconfig.toml");
    let text = fs::read_to_string(path).expect("the file is there");
    let environment = |section: &str| {
        let (name, text) = section.split_once(".deploy.parameters]").expect("a heading");
        (name.to_owned(), text.to_owned())
    };
    text.split("\n[").skip(1).map(environment).collect()
}

/// The parameters that a text overrides: names and values.
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
        for (name, value) in all {
            let parameter = &TEMPLATE["Parameters"][&name];
            let [least, most] = ["MinValue", "MaxValue"].map(|bound| parameter[bound].as_i64());
            let number = value.parse::<i64>().ok();
            let is_within = least.is_none_or(|least| number >= Some(least))
                && most.is_none_or(|most| number.is_some_and(|number| number <= most));
            let allowed = parameter["AllowedValues"].as_array();
            let is_allowed = allowed.is_none_or(|values| values.contains(&Value::from(&*value)));
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
