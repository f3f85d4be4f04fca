//! What an expression implies: a filter of exact texts and beginnings that matches every event that the expression matches.
//!
//! Separate because it is for the index of a topic, which can look these up. It is exact about conversions: an attribute
//! may be a number or a boolean, which equal several texts.

use super::cesql::Cesql;
use super::expression::{Binary, Expression, Logic};
use super::value::Value;
use crate::subscription::filter::Filter;

impl Cesql {
    /// A filter of exact texts and beginnings that matches every event that this matches.
    #[must_use]
    pub fn implied(&self) -> Filter {
        implied(&self.0)
    }
}

/// The implied filter; everything, where nothing is certain.
fn implied(expression: &Expression) -> Filter {
    match expression {
        Expression::Logic { operator: Logic::And, operands } => {
            Filter::All(operands.iter().map(implied).collect())
        }
        Expression::Logic { operator: Logic::Or, operands } => {
            Filter::Any(operands.iter().map(implied).collect())
        }
        // The attribute becomes a text, because the literal is one.
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

fn attribute(of: &Expression) -> Option<&str> {
    if let Expression::Attribute(name) = of { Some(name) } else { None }
}

fn literal(of: &Expression) -> Option<&str> {
    if let Expression::Literal(Value::Text(text)) = of { Some(text) } else { None }
}

/// How an attribute may be written that equals an element of `IN`: the element becomes a number or a boolean, if the
/// attribute is one.
fn equal_texts(element: &str) -> impl Iterator<Item = String> {
    let value = Value::Text(element.into());
    let number = value.integer().map(|number| number.to_string());
    let boolean = value.boolean().map(|is_true| is_true.to_string());
    [Some(element.to_owned()), number.ok(), boolean.ok()].into_iter().flatten()
}
