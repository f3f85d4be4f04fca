//! The command of Azure that prints an event subscription as it is deployed.
//!
//! Separate because its options depend on the source: system, partner and namespace topics have commands of their own.
//! A word in capitals stands for what the file does not state.
//! <https://learn.microsoft.com/cli/azure/eventgrid>

use super::identity;
use super::source::{self, Located, id_of_source};
use super::template::Resource;
use super::topics::one_kind;

/// The sources that have commands of their own.
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
/// Prints the URL of a webhook with its query.
const FULL_URL: &str = " --include-full-endpoint-url true";

/// The placeholders of names that the file does not state.
const NAME: &str = "NAME";
const GROUP: &str = "GROUP";

/// The commands for the subscriptions of one kind of source.
struct Group {
    /// The type of the source, in lower case.
    kind: &'static str,
    /// The words before `event-subscription`.
    words: &'static str,
    /// The options that name the source.
    names: &'static [&'static str],
    /// The option of `show` for the whole URL, if it has one.
    full_url: &'static str,
}

/// The command: `show` if the file states the name of the subscription, otherwise `list`.
pub(super) fn command(resource: &Resource<'_>) -> String {
    let source = source::of_resource(resource);
    let kind = source::kind_of(resource, source.as_ref());
    let commands = GROUPS.iter().find(|of| of.kind == kind);
    let words = commands.map_or("", |of| of.words);
    let options = match commands {
        Some(commands) => names(commands, source.as_ref()),
        None => format!("--source-resource-id {}", id(&kind, source.as_ref())),
    };
    let name = identity::last(resource.cursor.text_at("name"));
    let verb = match is_plain(name) {
        true => format!("show --name {name}"),
        false => "list".to_owned(),
    };
    let full_url = commands.map_or(FULL_URL, |of| of.full_url);
    let full_url = if is_plain(name) { full_url } else { "" };
    format!("az eventgrid {words}event-subscription {verb} {options}{full_url} -o json")
}

/// The options that name a source of this kind.
fn names(commands: &Group, source: Option<&Located<'_>>) -> String {
    let group = word(source.and_then(|(of, _)| of.place[1]), GROUP);
    let names = source.map(|(of, _)| of.names()).unwrap_or_default();
    let names = named(commands.names, &names, |option, name| format!(" {option} {name}"));
    format!("--resource-group {group}{names}")
}

/// The id of a source: as the file has it, or with the names that are known.
fn id(kind: &str, source: Option<&Located<'_>>) -> String {
    let stated = source.and_then(|(_, at)| at.peek_text()).map(id_of_source);
    let is_whole =
        |id: &String| id.starts_with("/subscriptions/") && id.split('/').skip(1).all(is_plain);
    if let Some(id) = stated.filter(is_whole) {
        return id;
    }
    let kind = one_kind(kind);
    let Some((provider, types)) = kind.split_once('/') else { return "SOURCE_ID".to_owned() };
    let [subscription, group] = source.map_or([None; 2], |(of, _)| of.place);
    let (subscription, group) = (word(subscription, "SUBSCRIPTION"), word(group, GROUP));
    let types: Vec<&str> = types.split('/').collect();
    let names = source.map(|(of, _)| of.names()).unwrap_or_default();
    let names = named(&types, &names, |kind, name| format!("/{kind}/{name}"));
    format!("/subscriptions/{subscription}/resourceGroups/{group}/providers/{provider}{names}")
}

/// Each word with its name. Of fewer names the first ones are missing.
fn named(words: &[&str], names: &[&str], join: impl Fn(&str, &str) -> String) -> String {
    let missing = words.len().saturating_sub(names.len());
    let name = |at: usize| names.get(at.checked_sub(missing)?).copied();
    words.iter().enumerate().map(|(at, of)| join(of, word(name(at), NAME))).collect()
}

/// The text if it can stand in a command, otherwise the placeholder.
fn word<'t>(text: Option<&'t str>, placeholder: &'t str) -> &'t str {
    text.filter(|text| is_plain(text)).unwrap_or(placeholder)
}

fn is_plain(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain)
}
