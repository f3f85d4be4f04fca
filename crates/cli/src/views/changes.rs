//! Prints the changes of `apply`, `rollback` and `subscriptions delete`.

use delivery::explain::diff::{Change, FieldChange, Subject, diff};
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::TopicName;

use crate::operations::topics::Changed;
use crate::terminal::output::out;
use crate::terminal::text;

/// Prints whether a topic was written, and the size of its object.
pub(crate) fn print_changed(topic: &TopicName, changed: Changed) -> anyhow::Result<()> {
    let name = text::line(&topic.to_string());
    match changed {
        Changed::Nothing => out(&format!("{name}: nothing to do\n")),
        Changed::Written(bytes) => out(&format!("{name}: {bytes} bytes\n")),
    }
}

/// Prints the differences by subscription and field; returns true if anything is removed.
pub(crate) fn print_changes(old: &Catalogue, new: &Catalogue) -> anyhow::Result<bool> {
    let changes = diff(old, new);
    let restricts = |catalogue: &Catalogue| catalogue.settings().secrets.rules().is_some();
    match (restricts(old), restricts(new)) {
        (false, true) => out("+ SecretPolicy\n    secrets may be sent only to the listed hosts\n")?,
        (true, false) => out("- SecretPolicy\n    all secrets may be sent to any host\n")?,
        (true, true) | (false, false) if changes.is_empty() => out("no subscription changes\n")?,
        (true, true) | (false, false) => {}
    }
    for (subject, change) in &changes {
        out(&describe(subject, change))?;
    }
    Ok(changes.iter().any(|(_, change)| *change == Change::Removed))
}

/// Formats a change: a line for the subject, and a line for each field. Line ends inside values are
/// replaced by spaces, because they would look like further changes.
fn describe(subject: &Subject, change: &Change) -> String {
    let name = text::line(&subject.to_string());
    let field = |field: &str, value: String| format!("    {field}: {}\n", text::line(&value));
    let (mark, fields): (_, String) = match change {
        Change::Added(shown) => {
            ("+", shown.iter().map(|(name, value)| field(name, value.clone())).collect())
        }
        Change::Changed(changes) => {
            let changed = |field_change: &FieldChange| {
                field(&field_change.field, format!("{} -> {}", field_change.old, field_change.new))
            };
            ("~", changes.iter().map(changed).collect())
        }
        Change::Removed => ("-", field("warning", consequence(subject).to_owned())),
    };
    format!("{mark} {name}\n{fields}")
}

/// Describes the consequence of removing the subject of a change, such as a subscription.
fn consequence(subject: &Subject) -> &'static str {
    match subject {
        Subject::Secrets(_) => {
            "the secret may no longer be sent to its hosts; without any entry of a SecretPolicy, \
             all secrets may be sent to any host"
        }
        Subject::Notifications => {
            "notices about destinations and dead letters are no longer published"
        }
        Subject::Topic(_) => "events published to the topic become dead letters (TopicNotFound)",
        Subject::Subscription(_) => {
            "removed; deliveries that wait for a retry become dead letters (SubscriptionNotFound)"
        }
    }
}
