//! Sorts documents into the parts of EventBridge that they describe.
//!
//! Separate because only this module recognises the output of each command.

use delivery::document::findings::{Message, quoted};
use delivery::document::reader::Cursor;

use super::resources::{Resource, Resources, Rule};
use super::template;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rule,
    Targets,
    Destination,
    Connection,
    Template,
}

/// True if the document is a template, or AWS CLI output that describes a part of EventBridge.
pub(crate) fn is_event_bridge(document: &Cursor<'_>) -> bool {
    document.peek("apiVersion").is_none() && kind(document).is_some()
}

/// Reports AWS CLI output that is a list, because its entries lack fields that the `describe`
/// commands print. Returns false for any other document.
pub(crate) fn report_list(document: &Cursor<'_>) -> bool {
    let lists = [
        ("Rules", "describe-rule"),
        ("ApiDestinations", "describe-api-destination"),
        ("Connections", "describe-connection"),
    ];
    let found = lists.into_iter().find_map(|(field, command)| {
        document.peek(field).filter(Cursor::is_list).map(|list| (list, command))
    });
    let Some((list, command)) = found else { return false };
    let help = format!("add the output of: aws events {command} --name NAME, for each entry");
    list.error(
        Message::new("the output of an EventBridge list command is not supported").help(help),
    );
    true
}

fn kind(document: &Cursor<'_>) -> Option<Kind> {
    let has = |field: &str| document.peek(field).is_some();
    if has("InvocationEndpoint") && has("ApiDestinationArn") {
        Some(Kind::Destination)
    } else if has("AuthorizationType") && has("ConnectionArn") {
        Some(Kind::Connection)
    } else if document.text_at("Arn").contains(":rule/") {
        Some(Kind::Rule)
    } else if document.peek("Targets").is_some_and(|targets| targets.is_list()) {
        Some(Kind::Targets)
    } else {
        template::is_template(document).then_some(Kind::Template)
    }
}

pub(super) fn gathered<'a>(documents: &[Cursor<'a>]) -> Resources<'a> {
    let mut found = Resources::default();
    for document in documents {
        let (name, at) = (document.text_at("Name"), document.clone());
        let resource = |id| Resource { name, id: document.text_at(id), at: document.clone() };
        match kind(document) {
            Some(Kind::Rule) => found.rules.push(Rule { name, at, targets: None }),
            Some(Kind::Destination) => found.destinations.push(resource("ApiDestinationArn")),
            Some(Kind::Connection) => found.connections.push(resource("ConnectionArn")),
            Some(Kind::Targets | Kind::Template) | None => {}
        }
    }
    let of_kind =
        |wanted: Kind| documents.iter().filter(move |document| kind(document) == Some(wanted));
    of_kind(Kind::Targets).for_each(|targets| add_targets(targets, &mut found.rules));
    of_kind(Kind::Template).for_each(|document| template::add(document, &mut found));
    found
}

/// Adds the targets of a rule. The AWS CLI output with targets does not name the rule, so the file
/// name has to name it if there are several rules.
fn add_targets<'a>(document: &Cursor<'a>, rules: &mut [Rule<'a>]) {
    let is_only = rules.len() == 1;
    let named = |rule: &&mut Rule<'_>| is_only || document.file_stem().contains(rule.name);
    let mut named: Vec<_> = rules.iter_mut().filter(named).collect();
    let longest = named.iter().map(|rule| rule.name.len()).max().unwrap_or_default();
    named.retain(|rule| rule.name.len() == longest);
    let [rule] = &mut named[..] else {
        let message = "the rule of these targets is missing, or several rules match";
        let help = "add the output of: aws events describe-rule --name RULE; with several rules, \
                    the name of this file must contain the name of its rule, such as \
                    RULE-targets.json";
        return document.error(Message::new(message).help(help));
    };
    if let Some(token) = document.peek("NextToken") {
        let help =
            "add the output of aws events list-targets-by-rule without --limit and --max-items";
        token.error(Message::new("the rule has targets that are not in this file").help(help));
    }
    if rule.targets.is_some() {
        let message =
            format!("another file already contains the targets of the rule {}", quoted(rule.name));
        let help = "keep one of the files, or add the rule of the other: aws events describe-rule \
                    --name RULE";
        return document.error(Message::new(message).help(help));
    }
    rule.targets = document.peek("Targets").map(|targets| targets.peek_list());
}
