//! `schemas/native.schema.json`: the definitions of declared fields. All others are written by
//! hand.

use delivery::event::Members;
use dialects::definitions;
use serde_json::Value;

/// The schema with every generated definition written anew.
pub(crate) fn page(current: &str) -> String {
    let generated = definitions();
    let schema = Members::parse(current).expect("a schema is an object");
    let defined =
        Members::parse(schema.get("$defs").expect("it has definitions")).expect("an object");
    let by_hand = defined.iter().filter(|(name, _)| !generated.contains_key(*name));
    let mut entries: Vec<String> =
        by_hand.map(|(name, text)| format!("    \"{name}\": {}", text.trim())).collect();
    entries.extend(
        generated
            .iter()
            .map(|(name, definition)| format!("    \"{name}\": {}", print(definition, 2))),
    );
    let members = schema.iter().map(|(name, text)| match name {
        "$defs" => format!("  \"$defs\": {{\n{}\n  }}", entries.join(",\n")),
        name => format!("  \"{name}\": {}", text.trim()),
    });
    format!("{{\n{}\n}}\n", members.collect::<Vec<_>>().join(",\n"))
}

/// A schema as text. Its `properties` are a list of pairs, which keeps their order.
fn print(schema: &Value, depth: usize) -> String {
    let indented = |lines: Vec<String>, open: char, close: char| {
        let (inner, outer) = ("  ".repeat(depth + 1), "  ".repeat(depth));
        let lines: Vec<String> = lines.into_iter().map(|line| format!("{inner}{line}")).collect();
        format!("{open}\n{}\n{outer}{close}", lines.join(",\n"))
    };
    match schema {
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| match (name.as_str(), value) {
                ("properties", Value::Array(pairs)) => {
                    format!("\"properties\": {}", properties(pairs, depth + 1))
                }
                (name, value) => format!("\"{name}\": {}", print(value, depth + 1)),
            };
            indented(members.iter().map(member).collect(), '{', '}')
        }
        Value::Array(elements)
            if elements.iter().any(|element| element.is_object() || element.is_array()) =>
        {
            indented(elements.iter().map(|element| print(element, depth + 1)).collect(), '[', ']')
        }
        Value::Array(elements) => {
            let elements: Vec<String> = elements.iter().map(ToString::to_string).collect();
            format!("[{}]", elements.join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => schema.to_string(),
    }
}

fn properties(pairs: &[Value], depth: usize) -> String {
    let (inner, outer) = ("  ".repeat(depth + 1), "  ".repeat(depth));
    let pair =
        |property: &Value| format!("{inner}{}: {}", property[0], print(&property[1], depth + 1));
    format!("{{\n{}\n{outer}}}", pairs.iter().map(pair).collect::<Vec<_>>().join(",\n"))
}
