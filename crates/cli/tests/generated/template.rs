//! Parameters and outputs of the CloudFormation templates, read line by line.
//!
//! Not as YAML, because the tables have the order of the lines. The templates have one form,
//! indented by two spaces with a property per line, and anything else is an error.

use std::collections::BTreeMap;

/// A parameter or an output.
pub(crate) struct Entry {
    name: String,
    properties: BTreeMap<String, String>,
}

impl Entry {
    /// A property, without quotes.
    fn get(&self, property: &str) -> Option<&str> {
        self.properties.get(property).map(|text| text.trim_matches('"'))
    }

    /// The allowed values of a parameter.
    fn values(&self) -> String {
        if let Some(values) = self.get("AllowedValues") {
            let values = values
                .trim_matches(['[', ']'])
                .split(',')
                .map(|value| value.trim().trim_matches('"'));
            return values.map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
        }
        match (self.get("MinValue"), self.get("MaxValue"), self.get("Type")) {
            (Some(least), Some(most), _) => format!("{least} to {most}"),
            (_, _, Some("CommaDelimitedList")) => "list, comma-separated".to_owned(),
            (_, _, Some("Number")) => "number".to_owned(),
            (..) => self.get("ConstraintDescription").unwrap_or("text").to_owned(),
        }
    }

    /// Its table row as a parameter.
    pub(crate) fn parameter_row(&self) -> String {
        let default = match self.get("Default") {
            None => "required".to_owned(),
            Some("") => "empty".to_owned(),
            Some(text) => format!("`{text}`"),
        };
        let meaning =
            self.get("Description").unwrap_or_else(|| panic!("{} has no Description", self.name));
        format!("| `{}` | {} | {default} | {meaning} |", self.name, self.values())
    }

    /// Its table row as an output.
    pub(crate) fn output_row(&self) -> String {
        format!("| `{}` | {} |", self.name, self.get("Description").unwrap_or("–"))
    }
}

/// The entries of a top-level section of a template, in order.
pub(crate) fn section(template: &str, section: &str) -> Vec<Entry> {
    let mut lines = template.lines().skip_while(|line| *line != format!("{section}:")).skip(1);
    let inside = lines.by_ref().take_while(|line| line.is_empty() || line.starts_with([' ', '#']));
    let mut entries: Vec<Entry> = Vec::new();
    let mut last = String::new();
    for line in inside.filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
    {
        let indent = line.len() - line.trim_start().len();
        match (indent, line.trim().split_once(':'), entries.last_mut()) {
            (2, Some((name, "")), _) => {
                entries.push(Entry { name: name.to_owned(), properties: BTreeMap::new() });
            }
            (4, Some((property, text)), Some(entry)) => {
                let text = text.trim();
                assert!(
                    !text.starts_with(['>', '|']),
                    "{section}/{}: {property} is not on its line",
                    entry.name
                );
                entry.properties.insert(property.to_owned(), text.to_owned());
                property.clone_into(&mut last);
            }
            // An item of a list of values, or a part of an output's export.
            (6.., _, Some(entry)) => {
                let list = entry.properties.entry(last.clone()).or_default();
                let comma = if list.is_empty() { "" } else { ", " };
                list.push_str(&format!("{comma}{}", line.trim().trim_start_matches("- ")));
            }
            _ => panic!("{section}: not in the form that is read: {line}"),
        }
    }
    entries
}
