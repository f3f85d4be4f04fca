//! The fields of `schemas/native.schema.json` as rows of a table: path, allowed values, default.
//!
//! This module is separate because a schema is a tree of references, and a reader needs a list.
//! Fields keep the order of the file. A repeated object is listed once, and later fields refer to
//! that list. A field without a description only contains other fields, so it has no row.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use delivery::event::Members;
use serde_json::Value;

static SCHEMA: LazyLock<String> = LazyLock::new(|| {
    super::schema_file::page(include_str!("../../../../schemas/native.schema.json"))
});

/// Definitions that the documentation explains once, above the tables.
const WORDS: [&str; 6] = ["name", "path", "secret", "duration", "durations", "statuses"];

/// A row of the table.
pub(crate) struct Field {
    /// The path, such as `spec.retry.maxAttempts`; `[]` follows a list.
    path: String,
    values: String,
    /// The default as JSON, if the schema has one.
    default: Option<Value>,
    required: bool,
    meaning: String,
}

impl Field {
    /// Returns the table row.
    pub(crate) fn row(&self) -> String {
        let default = match &self.default {
            Some(value) => code(value),
            None if self.required => "required".to_owned(),
            None => "–".to_owned(),
        };
        let cells =
            [format!("`{}`", self.path), self.values.clone(), default, self.meaning.clone()];
        format!("| {} |", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
    }
}

/// Returns the fields of all documents, by their `kind`.
pub(crate) fn documents() -> Vec<(String, Vec<Field>)> {
    let mut seen = BTreeSet::new();
    let kinds = elements(member(&SCHEMA, "oneOf").expect("there are several documents"));
    let document = |kind: &str| {
        let node = Node::new(kind);
        let name = value(
            node.get("properties")
                .and_then(|properties| member(properties, "kind"))
                .expect("a kind"),
        );
        let mut fields = Vec::new();
        let parts = Members::parse(node.get("properties").expect("properties")).expect("an object");
        let required = names(node.get("required"));
        for (part, text) in parts.iter().filter(|(part, _)| !["apiVersion", "kind"].contains(part))
        {
            list(
                part.to_owned(),
                &Node::new(text),
                required.contains(&part.to_owned()),
                &mut seen,
                &mut fields,
            );
        }
        (name["const"].as_str().expect("a kind is one word").to_owned(), fields)
    };
    kinds.into_iter().map(document).collect()
}

/// A part of the schema, with the definition that it refers to. Its own members take precedence.
struct Node<'a> {
    own: &'a str,
    defined: Option<(&'a str, &'static str)>,
}

impl<'a> Node<'a> {
    fn new(own: &'a str) -> Self {
        let name = member(own, "$ref")
            .map(|text| text.trim_matches('"').rsplit('/').next().expect("a name"));
        let defined = name.map(|name| {
            let all = member(&SCHEMA, "$defs").expect("there are definitions");
            (name, member(all, name).unwrap_or_else(|| panic!("{name} is not defined")))
        });
        Self { own, defined }
    }

    fn get(&self, name: &str) -> Option<&str> {
        member(self.own, name).or_else(|| self.defined.and_then(|(_, text)| member(text, name)))
    }

    fn name(&self) -> Option<&str> {
        self.defined.map(|(name, _)| name)
    }

    /// Returns the alternatives, or this part if it has none.
    fn variants(&self) -> Vec<Node<'_>> {
        let several =
            self.get("oneOf").or_else(|| self.get("anyOf")).map(elements).unwrap_or_default();
        // A `oneOf` whose elements have only `required` states which members exclude each other.
        let several: Vec<_> = several
            .into_iter()
            .filter(|text| member(text, "required").is_none_or(|_| member(text, "type").is_some()))
            .collect();
        if several.is_empty() {
            vec![Node { own: self.own, defined: self.defined }]
        } else {
            several.into_iter().map(Node::new).collect()
        }
    }

    /// Returns the allowed members, each with its definitions in all alternatives.
    fn fields(&self) -> Vec<(String, Vec<String>, bool)> {
        let mut found: Vec<(String, Vec<String>, bool)> = Vec::new();
        for variant in self.variants() {
            let required = names(variant.get("required"));
            let Some(properties) = variant.get("properties") else { continue };
            for (name, text) in Members::parse(properties).expect("an object").iter() {
                match found.iter_mut().find(|(field, ..)| field == name) {
                    Some((_, texts, _)) => texts.push(text.to_owned()),
                    None => found.push((
                        name.to_owned(),
                        vec![text.to_owned()],
                        required.iter().any(|field| field == name),
                    )),
                }
            }
        }
        found
    }

    /// Returns the allowed values as text.
    fn values(&self) -> String {
        if let Some(name) = self.name().filter(|name| WORDS.contains(name)) {
            return name.to_owned();
        }
        let mut words: Vec<String> = Vec::new();
        for variant in self.variants() {
            let word = variant.word();
            if !word.is_empty() && !words.contains(&word) {
                words.push(word);
            }
        }
        words.join(" or ")
    }

    fn word(&self) -> String {
        if let Some(name) = self.name().filter(|name| WORDS.contains(name)) {
            return name.to_owned();
        }
        if let Some(word) = self.get("const") {
            return code(&value(word));
        }
        if let Some(words) = self.get("enum") {
            return elements(words)
                .into_iter()
                .map(|word| code(&value(word)))
                .collect::<Vec<_>>()
                .join(", ");
        }
        let types = self
            .get("type")
            .map(|text| names(Some(&format!("[{}]", text.trim_matches(['[', ']'])))));
        let types = types.unwrap_or_default().into_iter().filter(|name| name != "null");
        types.map(|name| self.of_type(&name)).collect::<Vec<_>>().join(" or ")
    }

    fn of_type(&self, name: &str) -> String {
        let range = |least: &str, most: &str| match (self.get(least), self.get(most)) {
            (Some(least), Some(most)) if least == most => least.to_owned(),
            (Some(least), Some(most)) => format!("{least} to {most}"),
            (Some(least), None) => format!("{least} or more"),
            (None, Some(most)) => format!("up to {most}"),
            (None, None) => String::new(),
        };
        match name {
            "boolean" => "`true`, `false`".to_owned(),
            "integer" => format!("number {}", range("minimum", "maximum")).trim().to_owned(),
            "string" => match self.get("maxLength") {
                Some(most) => format!("text up to {most} characters"),
                None => "text".to_owned(),
            },
            "array" => {
                let items =
                    self.get("items").map(|text| Node::new(text).values()).unwrap_or_default();
                match range("minItems", "maxItems") {
                    most if most.is_empty() => format!("list: {items}"),
                    most => format!("list ({most}): {items}"),
                }
            }
            "object" => match self.get("additionalProperties").filter(|text| text.starts_with('{'))
            {
                Some(text) => format!("mapping: {}", Node::new(text).values()),
                None => "mapping".to_owned(),
            },
            other => other.to_owned(),
        }
    }
}

/// Adds the field at this path and all fields within it.
fn list(
    path: String,
    node: &Node<'_>,
    required: bool,
    seen: &mut BTreeSet<String>,
    fields: &mut Vec<Field>,
) {
    let described = |node: &Node<'_>| {
        node.get("description").map(|text| value(text).as_str().unwrap_or_default().to_owned())
    };
    let inner = node.get("items").map(Node::new);
    let (holder, prefix) = match &inner {
        Some(items) => (items, format!("{path}[]")),
        None => (node, path.clone()),
    };
    let repeated = !holder.fields().is_empty()
        && holder.name().is_some_and(|name| !seen.insert(name.to_owned()));
    let mut meaning = described(node).unwrap_or_default();
    if repeated {
        meaning.push_str(" The fields are listed above.");
    }
    // `metadata` and `spec` have no description beyond their fields.
    if !meaning.is_empty() {
        let default = node.get("default").map(value);
        fields.push(Field {
            path,
            values: node.values(),
            default,
            required,
            meaning: meaning.trim().to_owned(),
        });
    }
    if repeated {
        return;
    }
    // A mapping with free keys lists the fields of its values.
    if let Some(values) = holder.get("additionalProperties").map(Node::new) {
        for (name, texts, required) in values.fields() {
            list(format!("{prefix}.KEY.{name}"), &Node::new(&texts[0]), required, seen, fields);
        }
    }
    for (name, texts, required) in holder.fields() {
        let path = format!("{prefix}.{name}");
        if let [text] = &texts[..] {
            list(path, &Node::new(text), required, seen, fields);
            continue;
        }
        // A member of several alternatives gets the descriptions of all of them.
        let nodes: Vec<Node<'_>> = texts.iter().map(|text| Node::new(text)).collect();
        let values = nodes.iter().map(Node::values).collect::<Vec<_>>().join(" or ");
        let descriptions = nodes
            .iter()
            .map(|node| format!("{}: {}", node.values(), described(node).unwrap_or_default()));
        fields.push(Field {
            path,
            values,
            default: None,
            required,
            meaning: descriptions.collect::<Vec<_>>().join(" "),
        });
    }
}

fn member<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    Members::parse(text).ok()?.get(name)
}

fn elements(text: &str) -> Vec<&str> {
    let raw: Vec<&serde_json::value::RawValue> = serde_json::from_str(text).expect("a list");
    raw.into_iter().map(serde_json::value::RawValue::get).collect()
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).expect("a schema is JSON")
}

fn names(list: Option<&str>) -> Vec<String> {
    let names = list.map(value).and_then(|value| value.as_array().cloned()).unwrap_or_default();
    names.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

/// Formats a value as it would appear in a file.
fn code(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{text}`"),
        Value::Array(elements) => {
            let texts = elements.iter().map(|element| code(element).trim_matches('`').to_owned());
            format!("`[{}]`", texts.collect::<Vec<_>>().join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => format!("`{value}`"),
    }
}
