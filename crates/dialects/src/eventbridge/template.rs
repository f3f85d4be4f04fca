//! Reads CloudFormation templates, as `aws cloudformation get-template` prints them.
//!
//! Separate because a template has all parts in one document. Intrinsic functions are not
//! evaluated. A value that only the deployed stack has is reported if a delivery needs it.

use delivery::document::findings::{Message, quoted};
use delivery::document::node::Node;
use delivery::document::reader::{Cursor, Entry};

use super::resources::{Resource, Resources, Rule};

/// True if the document is a CloudFormation template.
pub(super) fn is_template(document: &Cursor<'_>) -> bool {
    resources(document).iter().any(|entry| entry.value.text_at("Type").starts_with("AWS::"))
}

/// Returns the resources of a template, named by logical id. Returns an empty list for any other
/// document.
fn resources<'a>(document: &Cursor<'a>) -> Vec<Entry<'a>> {
    let template = document.peek("TemplateBody").unwrap_or_else(|| document.clone());
    template.peek("Resources").map(|resources| resources.peek_entries()).unwrap_or_default()
}

/// Adds the rules, API destinations, connections and event buses in a template. One note counts all
/// other resources.
pub(super) fn add<'a>(document: &Cursor<'a>, found: &mut Resources<'a>) {
    let mut others = 0;
    for entry in resources(document) {
        let properties = entry.value.peek("Properties").unwrap_or_else(|| entry.value.clone());
        let stated = properties.text_at("Name");
        let name = if stated.is_empty() { entry.name } else { stated };
        let resource = || Resource { name, id: entry.name, at: properties.clone() };
        match entry.value.text_at("Type") {
            "AWS::Events::Rule" => {
                report_condition(&entry.value);
                let stated = properties.peek("Targets");
                let listed = stated.map(|targets| match targets.is_list() {
                    true => targets.peek_list(),
                    false => vec![targets],
                });
                let targets = Some(listed.unwrap_or_default());
                found.rules.push(Rule { name, at: properties.clone(), targets });
            }
            "AWS::Events::ApiDestination" => found.destinations.push(resource()),
            "AWS::Events::Connection" => found.connections.push(resource()),
            "AWS::Events::EventBus" => found.buses.push(resource()),
            "AWS::Pipes::Pipe" => report_pipe(&entry.value, &properties),
            _ => others += 1,
        }
    }
    if others > 0 {
        let them = if others == 1 { "resource" } else { "resources" };
        document.note(format!(
            "ignored {others} other {them}: only rules, API destinations and connections of EventBridge are converted"
        ));
    }
}

fn report_condition(rule: &Cursor<'_>) {
    let Some(condition) = rule.peek("Condition") else { return };
    let message = format!(
        "the template creates this rule only under the condition {}",
        quoted(condition.peek_text().unwrap_or_default())
    );
    condition.warn(
        Message::new(message).help("remove the Subscription if the stack does not have this rule"),
    );
}

fn report_pipe(pipe: &Cursor<'_>, properties: &Cursor<'_>) {
    let problem = match properties.peek("Enrichment") {
        Some(_) => "a pipe and its enrichment are not converted",
        None => "a pipe is not converted",
    };
    let help = "configure the source of the pipe, or its enrichment, to send events to the events \
                queue, and write a Subscription";
    pipe.warn(Message::new(problem).help(help));
}

/// Returns the YAML template that `aws cloudformation get-template` prints as a text within JSON.
pub(crate) fn body(document: &Node) -> Option<&str> {
    document.get("TemplateBody").and_then(Node::text)
}
