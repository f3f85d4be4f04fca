//! Derives a simpler filter from an expression, for lookup in an index.
//!
//! The filter contains only exact texts and prefixes. It matches at least the events that the
//! expression matches. This module is separate because only the index of a topic needs such
//! filters. The derived filter allows for type conversions: an attribute that is a number or a
//! boolean can equal several texts.

use super::cesql::Cesql;
use super::expression::{Binary, Expression, Logic};
use super::value::Value;
use crate::subscription::filter::Filter;

impl Cesql {
    /// Returns a filter of exact texts and prefixes that matches at least the events that this
    /// expression matches.
    #[must_use]
    pub fn implied(&self) -> Filter {
        implied(&self.0)
    }
}

/// Returns the implied filter of an expression; `EVERYTHING` if nothing can be derived.
fn implied(expression: &Expression) -> Filter {
    match expression {
        Expression::Logic { operator: Logic::And, operands } => {
            Filter::All(operands.iter().map(implied).collect())
        }
        Expression::Logic { operator: Logic::Or, operands } => {
            Filter::Any(operands.iter().map(implied).collect())
        }
        // The attribute is converted to a text, because the literal is a text.
        Expression::Binary { left, operator: Binary::Equal, right } => {
            let text = attribute(left).zip(literal(right));
            text.map_or(Filter::EVERYTHING, |(name, value)| exact(name, value.to_owned()))
        }
        Expression::Like { text, pattern, negated: false } => {
            let Some(name) = attribute(text) else { return Filter::EVERYTHING };
            let (value, is_all) = pattern.beginning();
            if is_all {
                exact(name, value)
            } else {
                Filter::Prefix { name: name.to_owned(), value }
            }
        }
        Expression::In { value, set, negated: false } => {
            let texts: Option<Vec<&str>> = set.iter().map(literal).collect();
            let Some((name, texts)) = attribute(value).zip(texts) else {
                return Filter::EVERYTHING;
            };
            let texts = texts.into_iter().flat_map(equal_texts);
            Filter::Any(texts.map(|text| exact(name, text)).collect())
        }
        Expression::Attribute(_)
        | Expression::Literal(_)
        | Expression::Exists(_)
        | Expression::Not(_)
        | Expression::Negate(_)
        | Expression::Like { .. }
        | Expression::In { .. }
        | Expression::Binary { .. }
        | Expression::Logic { operator: Logic::Xor, .. }
        | Expression::Call { .. } => Filter::EVERYTHING,
    }
}

fn exact(name: &str, value: String) -> Filter {
    Filter::Exact { name: name.to_owned(), value }
}

fn attribute(expression: &Expression) -> Option<&str> {
    if let Expression::Attribute(name) = expression { Some(name) } else { None }
}

fn literal(expression: &Expression) -> Option<&str> {
    if let Expression::Literal(Value::Text(text)) = expression { Some(text) } else { None }
}

/// Lists the texts that an attribute may have if it equals an element of `IN`. The element is
/// converted to a number or boolean if the attribute has that type.
fn equal_texts(element: &str) -> impl Iterator<Item = String> {
    let value = Value::Text(element.into());
    let number = value.integer().map(|number| number.to_string());
    let boolean = value.boolean().map(|is_true| is_true.to_string());
    [Some(element.to_owned()), number.ok(), boolean.ok()].into_iter().flatten()
}
