//! Creates the Azure command that prints a deployed event subscription.
//!
//! Separate because its options depend on the source: system, partner and namespace topics have
//! their own commands. A word in capitals is a placeholder for a value that the file does not
//! state. <https://learn.microsoft.com/cli/azure/eventgrid>

use super::identity;
use super::source::{self, Located, id_of_source};
use super::template::Resource;
use super::topics::one_kind;

/// Types of sources that have their own commands.
const GROUPS: [Group; 3] = [
    Group {
        kind: "microsoft.eventgrid/namespaces/topics",
        words: "namespace topic ",
        names: &["--namespace-name", "--topic-name"],
        full_url: "",
    },
    Group {
        kind: "microsoft.eventgrid/partnertopics",
        words: "partner topic ",
        names: &["--partner-topic-name"],
        full_url: FULL_URL,
    },
    Group {
        kind: "microsoft.eventgrid/systemtopics",
        words: "system-topic ",
        names: &["--system-topic-name"],
        full_url: FULL_URL,
    },
];
/// Option that prints the URL of a webhook with its query.
const FULL_URL: &str = " --include-full-endpoint-url true";

/// Placeholder for a name of the source, such as its topic. Replaces a name that the file does not
/// state, or that is not safe in a command.
const NAME: &str = "NAME";
/// Placeholder for the name of a resource group, used in the same cases.
const GROUP: &str = "GROUP";

/// The commands for the subscriptions of one type of source.
struct Group {
    /// Type of the source, in lower case.
    kind: &'static str,
    /// Words of the command before `event-subscription`.
    words: &'static str,
    /// Options that take the names of the source.
    names: &'static [&'static str],
    /// Option of `show` that prints the whole URL; empty if the command has none.
    full_url: &'static str,
}

/// Returns the command: `show` if the file states the name of the subscription, otherwise `list`.
pub(super) fn command(resource: &Resource<'_>) -> String {
    let source = source::of_resource(resource);
    let kind = source::kind_of(resource, source.as_ref());
    let commands = GROUPS.iter().find(|group| group.kind == kind);
    let words = commands.map_or("", |group| group.words);
    let options = match commands {
        Some(commands) => names(commands, source.as_ref()),
        None => format!("--source-resource-id {}", id(&kind, source.as_ref())),
    };
    let name = identity::last(resource.cursor.text_at("name"));
    let verb = match is_plain(name) {
        true => format!("show --name {name}"),
        false => "list".to_owned(),
    };
    let full_url = commands.map_or(FULL_URL, |group| group.full_url);
    let full_url = if is_plain(name) { full_url } else { "" };
    format!("az eventgrid {words}event-subscription {verb} {options}{full_url} -o json")
}

/// Returns the options with the names of a source of this type.
fn names(commands: &Group, source: Option<&Located<'_>>) -> String {
    let group = word(source.and_then(|(source, _)| source.place[1]), GROUP);
    let names = source.map(|(source, _)| source.names()).unwrap_or_default();
    let names = named(commands.names, &names, |option, name| format!(" {option} {name}"));
    format!("--resource-group {group}{names}")
}

/// Returns the id of a source. If the file has no full id that is safe in a command, returns an id
/// composed of the stated names and placeholders.
fn id(kind: &str, source: Option<&Located<'_>>) -> String {
    let stated = source.and_then(|(_, at)| at.peek_text()).map(id_of_source);
    let is_whole =
        |id: &String| id.starts_with("/subscriptions/") && id.split('/').skip(1).all(is_plain);
    if let Some(id) = stated.filter(is_whole) {
        return id;
    }
    let kind = one_kind(kind);
    let Some((provider, types)) = kind.split_once('/') else { return "SOURCE_ID".to_owned() };
    let [subscription, group] = source.map_or([None; 2], |(source, _)| source.place);
    let (subscription, group) = (word(subscription, "SUBSCRIPTION"), word(group, GROUP));
    let types: Vec<&str> = types.split('/').collect();
    let names = source.map(|(source, _)| source.names()).unwrap_or_default();
    let names = named(&types, &names, |kind, name| format!("/{kind}/{name}"));
    format!("/subscriptions/{subscription}/resourceGroups/{group}/providers/{provider}{names}")
}

/// Joins each word with its name. If there are fewer names than words, the first words get
/// placeholders.
fn named(words: &[&str], names: &[&str], join: impl Fn(&str, &str) -> String) -> String {
    let missing = words.len().saturating_sub(names.len());
    let name = |at: usize| names.get(at.checked_sub(missing)?).copied();
    words.iter().enumerate().map(|(at, term)| join(term, word(name(at), NAME))).collect()
}

/// Returns the text if it is safe in a command, otherwise the placeholder.
fn word<'t>(text: Option<&'t str>, placeholder: &'t str) -> &'t str {
    text.filter(|text| is_plain(text)).unwrap_or(placeholder)
}

fn is_plain(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain)
}
