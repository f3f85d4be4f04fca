//! Reads the body that a target receives: the event, a part of it, a constant, or a template with
//! variables.
//!
//! Separate because a template of EventBridge is a text in which `<name>` is a variable. Outside
//! quotes, a variable becomes a JSON value. Between quotes, it becomes a part of the text. All
//! other text is copied.
//! <https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-transform-target-input.html>

use std::collections::BTreeMap;

use delivery::document::findings::{Message, quoted};
use delivery::document::reader::{Cursor, Fields};
use serde_json::json;

use super::literal::literal;
use super::template_text::{constant, expression};

/// Prefix of the variables that EventBridge predefines.
const RESERVED: &str = "aws.events.";
/// Members of every event except its `detail`.
const ENVELOPE: [&str; 8] =
    ["version", "id", "detail-type", "source", "account", "time", "region", "resources"];

/// Template that produces the unchanged event.
pub(super) const WHOLE_EVENT: &str = "{{ event.data | tojson }}";

/// A member to add to a body: its name, and its value as part of a JSON template.
pub(super) type Member = (String, String);

/// Reads the input of a target, and returns the template of the body. Returns `None` after an
/// error, or if the event is sent unchanged.
pub(super) fn body(
    target: &Fields<'_>,
    (rule, arn): (&str, &str),
    members: &[Member],
) -> Option<String> {
    let whole = match (
        target.given("Input"),
        target.given("InputPath"),
        target.given("InputTransformer"),
    ) {
        (Some(input), _, _) => constant(literal(&input)?, false),
        (None, Some(path), _) if literal(&path)? != "$" => json_of(&expression_at(&path)?),
        (None, None, Some(transformer)) => {
            transformer.mapping(|fields| transformed(fields, (rule, arn)))??
        }
        (None, _, _) if members.is_empty() => return None,
        (None, _, _) => WHOLE_EVENT.to_owned(),
    };
    if members.is_empty() {
        return Some(whole);
    }
    let stated = member_names(&whole);
    let is_stated = |(name, _): &&Member| stated.contains(&constant(name, false));
    if let Some((name, _)) = members.iter().find(is_stated) {
        let message = format!("the input and the connection both set {}", quoted(name));
        return target.parent().refuse(Message::new(message).help("remove one of them"));
    }
    let Some(body) = with_members(&whole, members) else {
        let message = "the connection adds body parameters to this input, which is not an object";
        return target.parent().refuse(Message::new(message).help("use an object as the input"));
    };
    Some(body)
}

/// Returns the template tag that writes the value of an expression as JSON.
fn json_of(expression: &str) -> String {
    format!("{{{{ {expression} | tojson }}}}")
}

fn expression_at(path: &Cursor<'_>) -> Option<String> {
    let text = literal(path)?;
    expression(text).or_else(|| {
        let message = format!("{} may select several values", quoted(text));
        path.refuse(Message::new(message).help("use a path such as $.detail.items[0].id"))
    })
}

/// Appends members to the template of an object. If the template copies an object from the event,
/// members of that object with these names are skipped.
fn with_members(whole: &str, members: &[Member]) -> Option<String> {
    let named = |name: &str| constant(&json!(name).to_string(), false);
    let written = members.iter().map(|(name, value)| format!("{}:{value}", named(name)));
    let written = written.collect::<Vec<_>>().join(",");
    let object = whole.strip_prefix("{{ ").and_then(|rest| rest.strip_suffix(" | tojson }}"));
    if let Some(object) = object.filter(|object| !object.contains("}}")) {
        let names: Vec<String> = members.iter().map(|(name, _)| json!(name).to_string()).collect();
        let names = names.join(", ");
        return Some(format!(
            "{{{{ '{{' }}}}{{% for name in {object} if name not in [{names}] %}}{{{{ name | tojson }}}}:\
             {{{{ ({object})[name] | tojson }}}},{{% endfor %}}{written}}}"
        ));
    }
    let is_object = |open: &&str| open.starts_with('{') && !open.starts_with("{{");
    let open = whole.trim_end().strip_suffix('}').filter(is_object)?;
    let comma = if open.trim() == "{" { "" } else { "," };
    Some(format!("{open}{comma}{written}}}"))
}

/// Returns the names of the members in a template of an object. Outside of quoted texts, tags have
/// as many opening as closing braces, so they do not change the depth.
fn member_names(object: &str) -> Vec<String> {
    let (mut names, mut depth, mut rest) = (Vec::new(), 0, object);
    while let Some(character) = rest.chars().next() {
        if character == '"' {
            let mut texts = serde_json::Deserializer::from_str(rest).into_iter::<String>();
            let Some(Ok(text)) = texts.next() else { return names };
            rest = rest.get(texts.byte_offset()..).unwrap_or_default();
            if depth == 1 && rest.trim_start().starts_with(':') {
                names.push(text);
            }
            continue;
        }
        depth += match character {
            '{' | '[' => 1,
            '}' | ']' => -1,
            _ => 0,
        };
        rest = rest.get(character.len_utf8()..).unwrap_or_default();
    }
    names
}

fn transformed(fields: &Fields<'_>, (rule, arn): (&str, &str)) -> Option<String> {
    let mut variables = BTreeMap::new();
    if let Some(paths) = fields.given("InputPathsMap") {
        for path in paths.entries()? {
            variables.insert(path.name, Variable::Path(expression_at(&path.value)?));
        }
    }
    let at = fields.required("InputTemplate")?;
    let template = literal(&at)?;
    let envelope = ENVELOPE.map(|name| format!("'{name}': event.data['{name}']")).join(", ");
    variables.insert("aws.events.rule-name", Variable::Text(rule.to_owned()));
    variables.insert("aws.events.rule-arn", Variable::Text(arn.to_owned()));
    variables.insert("aws.events.event", Variable::Path(format!("{{{envelope}}}")));
    variables.insert("aws.events.event.json", Variable::Path("event.data".to_owned()));
    variables
        .insert("aws.events.event.ingestion-time", Variable::Path("event.data.time".to_owned()));
    let unstated =
        [("<aws.events.rule-name>", "name", rule), ("<aws.events.rule-arn>", "ARN", arn)];
    let unstated = unstated.iter().find(|(tag, _, text)| text.is_empty() && template.contains(tag));
    if let Some((_, missing, _)) = unstated {
        let help = "write the value, or convert the output of aws events describe-rule";
        let message =
            format!("the CloudFormation template does not contain the {missing} of this rule");
        return at.refuse(Message::new(message).help(help));
    }
    if template.contains("<aws.events.event.ingestion-time>") {
        let message =
            "events in a queue do not contain the time at which EventBridge received them";
        at.warn(Message::new(message).help("the event's `time` is used instead"));
    }
    let unknown =
        tags(template).find(|name| name.starts_with(RESERVED) && !variables.contains_key(name));
    if let Some(name) = unknown {
        return at.refuse(format!("{} is not a supported variable", quoted(name)));
    }
    Some(rendered(template, &variables))
}

enum Variable {
    /// The expression for a path into the event.
    Path(String),
    /// A text that is the same for every event.
    Text(String),
}

/// Returns the names between `<` and `>` in a template.
fn tags(template: &str) -> impl Iterator<Item = &str> {
    template.split('<').skip(1).filter_map(|part| part.split_once('>')).map(|(name, _)| name)
}

/// The position of a variable in a template.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In place of a whole JSON value.
    Value,
    /// Within a JSON text, between quotes.
    Text,
    /// In a template that is not JSON.
    Plain,
}

/// Converts a template of EventBridge into a native template.
fn rendered(template: &str, variables: &BTreeMap<&str, Variable>) -> String {
    let is_variable =
        || template.starts_with('<') && template.find('>') == Some(template.len() - 1);
    let is_json = template.trim_start().starts_with(['{', '[', '"']) || is_variable();
    let mut place = if is_json { Place::Value } else { Place::Plain };
    let (mut written, mut text, mut rest) = (String::new(), String::new(), template);
    while let Some(character) = rest.chars().next() {
        let tag = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'));
        let variable = tag.and_then(|(name, after)| Some((variables.get(name)?, after)));
        if let Some((variable, after)) = variable {
            written.push_str(&constant(&text, matches!(variable, Variable::Path(_))));
            text.clear();
            written.push_str(&variable.written(place));
            rest = after;
            continue;
        }
        let is_escape = place == Place::Text && character == '\\';
        let length = rest.chars().take(1 + usize::from(is_escape)).map(char::len_utf8).sum();
        let (part, after) = rest.split_at(length);
        text.push_str(part);
        place = match (place, character) {
            (Place::Value, '"') => Place::Text,
            (Place::Text, '"') => Place::Value,
            (place, _) => place,
        };
        rest = after;
    }
    written + &constant(&text, false)
}

impl Variable {
    /// Returns the template text for this variable. A value that the event lacks becomes null, or
    /// nothing within a text.
    fn written(&self, place: Place) -> String {
        match (self, place) {
            (Self::Path(path), Place::Value) => json_of(&format!("{path} | default(none)")),
            (Self::Path(path), Place::Text) => {
                format!("{{{{ (({path} | default('') ~ '') | tojson)[1:-1] }}}}")
            }
            (Self::Path(path), Place::Plain) => format!("{{{{ {path} | default('') }}}}"),
            (Self::Text(text), Place::Plain) => constant(text, false),
            (Self::Text(text), Place::Value) => constant(&json!(text).to_string(), false),
            (Self::Text(text), Place::Text) => {
                let json = json!(text).to_string();
                constant(json.get(1..json.len() - 1).unwrap_or_default(), false)
            }
        }
    }
}
