//! Recognises files of other tools that describe deliveries, and names the next step for each.
//!
//! Separate because HCL, Bicep and the tags of CloudFormation are neither JSON nor YAML, so such a
//! file would only cause syntax errors. A format is recognised by the extension of its file, or by
//! a key or line of its text. A line counts only if it begins in the first column, because an
//! indented line may be part of a text in a YAML document.

use super::text::begins_like_json;
use delivery::document::findings::Message;

/// A file format that is not supported.
struct Form {
    /// Name of the format, for messages.
    name: &'static str,
    /// File name extensions of the format, in lower case.
    endings: &'static [&'static str],
    /// Returns true if the text is in this format.
    is_form: fn(&str) -> bool,
    /// Returns the help text for a text in this format.
    next_step: fn(&str) -> &'static str,
}

/// All unsupported formats. The first match counts.
const FORMS: [Form; 4] = [
    Form {
        name: "Bicep",
        endings: &[".bicep", ".bicepparam"],
        is_form: |text| text.lines().any(is_bicep),
        next_step: |_| AZURE,
    },
    Form {
        name: "a Terraform state or plan",
        endings: &[".tfstate", ".tfstate.backup"],
        is_form: |text| has_key(text, "terraform_version") && !has_key(text, "apiVersion"),
        next_step: of_terraform,
    },
    Form {
        name: "a Terraform configuration",
        endings: &[".tf", ".tf.json", ".tfvars"],
        is_form: |text| text.lines().any(is_terraform),
        next_step: of_terraform,
    },
    Form {
        name: "a CloudFormation template",
        endings: &[],
        is_form: |text| {
            let is_template = has_key(text, "AWSTemplateFormatVersion")
                || has_key(text, "Resources") && has_type_of_aws(text);
            is_template && !READ.iter().any(|kind| text.contains(kind))
        },
        next_step: |_| AWS,
    },
];

/// Prefixes of the CloudFormation resource types that are read.
const READ: [&str; 2] = ["AWS::Events::", "AWS::Pipes::"];

/// Help text for deliveries in Azure.
pub(super) const AZURE: &str = "check the output of: az eventgrid event-subscription list \
                                --source-resource-id SOURCE_ID -o json";
const AWS: &str = "only EventBridge rules in the output of the AWS CLI or CloudFormation are \
                   supported, not SNS subscriptions; see docs/coming-from/eventbridge.md";
const OTHER: &str = "docs/guides/subscribe.md shows how to write a subscription";

/// True if a file with this name has an unsupported format, such as `main.bicep`.
#[must_use]
pub fn is_foreign(name: &str) -> bool {
    FORMS.iter().any(|form| form.is_named(name))
}

/// Returns the message for a file in an unsupported format, with the next step; `None` for any
/// other file.
pub(super) fn recognised(name: &str, text: &str) -> Option<Message> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let form = FORMS.iter().find(|form| form.is_named(name));
    let form = form.or_else(|| FORMS.iter().find(|form| (form.is_form)(text)))?;
    let message = Message::new(format!("the file is {}, which is not supported", form.name));
    Some(message.help((form.next_step)(text)))
}

impl Form {
    fn is_named(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        self.endings.iter().any(|ending| name.ends_with(ending))
    }
}

/// Returns the help text for Terraform, by the provider of its resources.
fn of_terraform(text: &str) -> &'static str {
    let of_provider = [("azurerm_", AZURE), ("azapi_", AZURE), ("aws_", AWS)];
    let found = of_provider.into_iter().find(|(prefix, _)| text.contains(prefix));
    found.map_or(OTHER, |(_, step)| step)
}

/// True for a line of Bicep such as `resource topic 'Microsoft.EventGrid/topics@2022-06-15' = {`.
fn is_bicep(line: &str) -> bool {
    line.starts_with("resource ") && line.contains(" 'Microsoft.") && line.contains('@')
}

/// True for a line of Terraform such as `resource "azurerm_eventgrid_topic" "orders" {`.
fn is_terraform(line: &str) -> bool {
    let begins = ["resource \"", "data \"", "module \"", "provider \""];
    begins.iter().any(|begin| line.starts_with(begin)) && line.trim_end().ends_with('{')
}

/// True if a JSON text has this key anywhere, or a YAML text has it in the first column.
fn has_key(text: &str, key: &str) -> bool {
    let is_json = begins_like_json(text);
    let quoted = format!("\"{key}\"");
    let is_key = |rest: &str| rest.trim_start().starts_with(':');
    if is_json {
        let mut found = text.match_indices(&quoted);
        return found.any(|(at, matched)| text.get(at + matched.len()..).is_some_and(is_key));
    }
    text.lines().any(|line| {
        let rest = line.strip_prefix(key).or_else(|| line.strip_prefix(&quoted));
        rest.is_some_and(is_key)
    })
}

/// True if the text contains `Type: AWS::…`, with or without quotes.
fn has_type_of_aws(text: &str) -> bool {
    let quotes = ['"', '\'', ' '];
    text.match_indices("AWS::").any(|(at, _)| {
        let before = text.get(..at).unwrap_or_default().trim_end_matches(quotes);
        let before = before.strip_suffix(':').map(|before| before.trim_end_matches(quotes));
        before.is_some_and(|before| before.ends_with("Type"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Source, read};

    /// CloudFormation in YAML, with a tag that YAML readers refuse.
    const TAGGED: &str = "Resources:\n  Topic:\n    Type: AWS::SNS::Topic\n    Properties:\n      TopicName: !Ref Name\n";
    const STATE: &str = r#"{"version": 4, "terraform_version": "1.9.5", "resources": [{"mode": "managed",
        "type": "azurerm_eventgrid_event_subscription", "name": "billing", "instances": []}]}"#;

    #[test]
    fn a_file_of_another_tool_has_one_error_with_the_next_step() {
        let bicep = "param endpoint string\n\nresource s 'Microsoft.EventGrid/eventSubscriptions@2022-06-15' = {\n}\n";
        let azure = "resource \"azurerm_eventgrid_event_subscription\" \"billing\" {\n  name = \"billing\"\n}\n";
        let aws = "resource \"aws_cloudwatch_event_rule\" \"orders\" {\n  name = \"orders\"\n}\n";
        let dated = format!("AWSTemplateFormatVersion: '2010-09-09'\n{TAGGED}");
        let json = r#"{"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}"#;
        let plan = r#"{"format_version": "1.2", "terraform_version": "1.9.5", "planned_values":
            {"root_module": {"resources": [{"type": "aws_sns_topic_subscription"}]}}}"#;
        let rows = [
            ("main.bicep", bicep, "Bicep", AZURE),
            ("main", bicep, "Bicep", AZURE),
            ("infra/MAIN.TF", azure, "a Terraform configuration", AZURE),
            ("main.yaml", azure, "a Terraform configuration", AZURE),
            ("main.tf", aws, "a Terraform configuration", AWS),
            ("variables.tf", "variable \"x\" {}\n", "a Terraform configuration", OTHER),
            (
                "main.tf.json",
                r#"{"resource": {"aws_sns_topic": {}}}"#,
                "a Terraform configuration",
                AWS,
            ),
            ("terraform.tfstate", STATE, "a Terraform state or plan", AZURE),
            ("state.json", STATE, "a Terraform state or plan", AZURE),
            ("plan.json", plan, "a Terraform state or plan", AWS),
            ("template.yaml", TAGGED, "a CloudFormation template", AWS),
            ("template.yaml", dated.as_str(), "a CloudFormation template", AWS),
            ("stack.json", json, "a CloudFormation template", AWS),
            (
                "stack.json",
                "\u{feff}{\"AWSTemplateFormatVersion\": \"2010-09-09\"}",
                "a CloudFormation template",
                AWS,
            ),
        ];
        for (name, text, form, step) in rows {
            let reading = read(&[Source { name, text }]);
            let found: Vec<String> = reading.findings.iter().map(ToString::to_string).collect();
            let expected =
                format!("{name}:1:1: error: the file is {form}, which is not supported; {step}");
            assert_eq!(found, [expected], "{text}");
        }
    }

    #[test]
    fn our_template_of_cloud_formation_is_recognised() {
        let text = include_str!("../../../template.yaml");
        assert!(recognised("template.yaml", text).is_some());
    }

    #[test]
    fn documents_that_are_read_are_of_no_foreign_form() {
        let in_text = |text: &str| {
            let text = text.replace('\n', "\n    ");
            format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata:\n  a: |\n    {text}\n"
            )
        };
        let in_json = |text: &str| {
            let data =
                serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": text}});
            data.to_string()
        };
        let object = r#"{"apiVersion": "example.com/v1", "kind": "Workspace", "spec": {"terraform_version": "1.9.5"}}"#;
        let description =
            "apiVersion: lastmile.dev/v1\nkind: Topic # Resources: Type: AWS::SNS::Topic\n";
        for text in [
            in_text(TAGGED),
            in_text(STATE),
            in_json(TAGGED),
            in_json(STATE),
            object.to_owned(),
            description.to_owned(),
        ] {
            assert!(recognised("f.yaml", &text).is_none(), "{text}");
        }
    }
}
