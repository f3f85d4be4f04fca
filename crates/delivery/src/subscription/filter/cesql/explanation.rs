//! Explains why an expression matches an event or does not, and which part of it failed.
//!
//! This module is separate from evaluation, which does not record positions. Columns refer to the
//! canonical text.

use super::attribute::raw_attribute;
use super::error::Error;
use super::evaluation::evaluate;
use super::expression::{Expression, Logic};
use super::value::Value;
use crate::event::Members;
use crate::subscription::filter::explanation::{Explanation, Found, Problem};

/// Replaces a part of the expression to find the position of that part in the text. It is a Unicode
/// noncharacter, which no literal contains by chance.
const MARK: char = '\u{10fffe}';

/// Explains why an expression matches an event with these members or does not match it.
pub(super) fn explain(expression: &Expression, members: &Members<'_>) -> Explanation {
    let (value, error) = evaluate(expression, members);
    let is_true = value == Value::Boolean(true) && error.is_none();
    let problem = match error {
        Some(error) => Some(problem_of(expression, error, members)),
        None if matches!(value, Value::Boolean(_)) => None,
        None => Some(Problem {
            message: format!("the value of the expression is {value}, not true"),
            column: None,
        }),
    };
    let parts = match expression {
        Expression::Logic { operator, operands } if problem.is_none() => {
            deciding(*operator, operands, members)
        }
        Expression::Logic { .. }
        | Expression::Attribute(_)
        | Expression::Literal(_)
        | Expression::Exists(_)
        | Expression::Not(_)
        | Expression::Negate(_)
        | Expression::Like { .. }
        | Expression::In { .. }
        | Expression::Binary { .. }
        | Expression::Call { .. } => Vec::new(),
    };
    let condition = expression.to_string();
    Explanation { condition, matches: is_true, found: found(expression, members), problem, parts }
}

/// Explains the operands of a logical operator, up to the one that determines the result. Each
/// operand is converted to a boolean.
fn deciding(operator: Logic, operands: &[Expression], members: &Members<'_>) -> Vec<Explanation> {
    let mut parts = Vec::new();
    for operand in operands {
        let is_true = evaluate(operand, members).0.boolean() == Ok(true);
        parts.push(Explanation { matches: is_true, ..explain(operand, members) });
        match operator {
            Logic::And if !is_true => break,
            Logic::Or if is_true => break,
            Logic::And | Logic::Or | Logic::Xor => {}
        }
    }
    parts
}

/// Returns the attributes that an expression names and their values, without duplicates.
fn found(expression: &Expression, members: &Members<'_>) -> Vec<Found> {
    let mut names = Vec::new();
    expression.visit(&mut |part| {
        if let Expression::Attribute(name) | Expression::Exists(name) = part
            && !names.contains(&name.as_str())
        {
            names.push(name);
        }
    });
    names.into_iter().map(|name| Found::new(name, raw_attribute(members, name))).collect()
}

fn problem_of(expression: &Expression, error: Error, members: &Members<'_>) -> Problem {
    let failing = failing(expression, members);
    let marked = expression.replaced(failing, &Expression::Attribute(MARK.to_string())).to_string();
    let message = if let Expression::Attribute(name) = failing
        && error == Error::MissingAttribute
    {
        format!("the event does not have the attribute {name}")
    } else {
        format!("{error}: {failing}")
    };
    let column = marked.chars().position(|character| character == MARK).map(|at| at + 1);
    Problem { message, column }
}

/// Returns the innermost part of an expression whose evaluation fails.
fn failing<'e>(expression: &'e Expression, members: &Members<'_>) -> &'e Expression {
    let fails = |part: &&'e Expression| evaluate(part, members).1.is_some();
    let inner = match expression {
        Expression::Logic { operands, .. } => operands.iter().find(|operand| {
            let (value, error) = evaluate(operand, members);
            error.is_some() || value.boolean().is_err()
        }),
        Expression::Attribute(_)
        | Expression::Literal(_)
        | Expression::Exists(_)
        | Expression::Not(_)
        | Expression::Negate(_)
        | Expression::Like { .. }
        | Expression::In { .. }
        | Expression::Binary { .. }
        | Expression::Call { .. } => expression.parts().into_iter().find(fails),
    };
    inner.map_or(expression, |inner| failing(inner, members))
}
