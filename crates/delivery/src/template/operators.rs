//! Implements operators: arithmetic with numbers, and comparison of values.
//!
//! This module is separate because all operators charge fuel for what they read, and none builds a
//! text or a list.

use super::budget::{Budget, LOOKUP, READ, STEP};
use super::error::Fault;
use super::expression::{Arithmetic, Comparison};
use super::value::{Number, Value, check_depth};

/// Computes with two numbers. Integers are exact. If one operand is a float, both are converted to
/// floats.
///
/// # Errors
///
/// Fails if an operand is not a number, the divisor is 0, or the result does not fit into 64 bits.
pub(super) fn calculate(
    operator: Arithmetic,
    left: &Value<'_>,
    right: &Value<'_>,
) -> Result<Number, Fault> {
    let numbers = left.as_number().zip(right.as_number());
    let Some((left, right)) = numbers else {
        return Err(Fault::new(format!(
            "arithmetic requires numbers, but an operand is {}; join strings with `~`",
            if left.as_number().is_none() { left.kind() } else { right.kind() }
        )));
    };
    let divides =
        matches!(operator, Arithmetic::Divide | Arithmetic::DivideWhole | Arithmetic::Remainder);
    if divides && right.as_float() == 0.0 {
        return Err(Fault::new("the divisor is 0"));
    }
    let calculated = match (left, right) {
        (Number::Integer(left), Number::Integer(right)) => integers(operator, left, right),
        _ => Number::float(floats(operator, left.as_float(), right.as_float())),
    };
    calculated.ok_or_else(|| Fault::new("the result is too large"))
}

/// Negates a number.
///
/// # Errors
///
/// Fails if the value is not a number, or the result does not fit into 64 bits.
pub(super) fn negative(value: &Value<'_>) -> Result<Number, Fault> {
    calculate(Arithmetic::Subtract, &Value::Number(Number::Integer(0)), value)
}

/// Computes with two integers of at most 64 bits. Returns `None` if the result does not fit into 64
/// bits. Only a product can overflow 128 bits. The caller has checked that the divisor is not 0.
fn integers(operator: Arithmetic, left: i128, right: i128) -> Option<Number> {
    // With a positive divisor, Euclidean division rounds down.
    let (dividend, divisor) = if right < 0 { (-left, -right) } else { (left, right) };
    let calculated = match operator {
        Arithmetic::Add => left + right,
        Arithmetic::Subtract => left - right,
        Arithmetic::Multiply => left.checked_mul(right)?,
        Arithmetic::Divide => {
            return Number::float(
                Number::Integer(left).as_float() / Number::Integer(right).as_float(),
            );
        }
        Arithmetic::DivideWhole => dividend.div_euclid(divisor),
        Arithmetic::Remainder => dividend.rem_euclid(divisor) * right.signum(),
    };
    Number::integer(calculated)
}

fn floats(operator: Arithmetic, left: f64, right: f64) -> f64 {
    match operator {
        Arithmetic::Add => left + right,
        Arithmetic::Subtract => left - right,
        Arithmetic::Multiply => left * right,
        Arithmetic::Divide => left / right,
        Arithmetic::DivideWhole => (left / right).floor(),
        Arithmetic::Remainder => left - right * (left / right).floor(),
    }
}

/// Compares two values.
///
/// # Errors
///
/// Fails if the values have no order, if the right one cannot contain values, or if the fuel is
/// used up.
pub(super) fn compare(
    comparison: Comparison,
    left: &Value<'_>,
    right: &Value<'_>,
    budget: &Budget,
) -> Result<bool, Fault> {
    match comparison {
        Comparison::Equal => is_equal(left, right, budget, 0),
        Comparison::NotEqual => is_equal(left, right, budget, 0).map(|equal| !equal),
        Comparison::Less => order(left, right, budget).map(std::cmp::Ordering::is_lt),
        Comparison::LessOrEqual => order(left, right, budget).map(std::cmp::Ordering::is_le),
        Comparison::Greater => order(left, right, budget).map(std::cmp::Ordering::is_gt),
        Comparison::GreaterOrEqual => order(left, right, budget).map(std::cmp::Ordering::is_ge),
        Comparison::In => contains(right, left, budget),
        Comparison::NotIn => contains(right, left, budget).map(|contains| !contains),
    }
}

fn order(
    left: &Value<'_>,
    right: &Value<'_>,
    budget: &Budget,
) -> Result<std::cmp::Ordering, Fault> {
    if let (Some(left), Some(right)) = (left.as_text(), right.as_text()) {
        budget.spend(left.len().min(right.len()), READ)?;
        return Ok(left.cmp(right));
    }
    let ordered = match (left.as_number(), right.as_number()) {
        (Some(Number::Integer(left)), Some(Number::Integer(right))) => Some(left.cmp(&right)),
        (Some(left), Some(right)) => left.as_float().partial_cmp(&right.as_float()),
        (None, _) | (_, None) => None,
    };
    ordered.ok_or_else(|| {
        let (left, right) = (left.kind(), right.kind());
        Fault::new(format!(
            "{left} and {right} cannot be compared; compare two numbers or two strings"
        ))
    })
}

fn is_equal(
    left: &Value<'_>,
    right: &Value<'_>,
    budget: &Budget,
    depth: usize,
) -> Result<bool, Fault> {
    check_depth(depth)?;
    budget.spend(1, STEP / 4)?;
    if let (Some(left), Some(right)) = (left.as_text(), right.as_text()) {
        if left.len() != right.len() {
            return Ok(false);
        }
        budget.spend(left.len(), READ)?;
        return Ok(left == right);
    }
    if let (Some(left_length), Some(right_length)) = (left.list_length(), right.list_length()) {
        if left_length != right_length {
            return Ok(false);
        }
        for index in 0..left_length {
            if !is_equal(&left.item(index), &right.item(index), budget, depth + 1)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    if let (Some(count), Some(right_count)) = (left.member_count(), right.member_count()) {
        if count != right_count {
            return Ok(false);
        }
        budget.spend(count, STEP)?;
        for (name, value) in left.members().unwrap_or_default() {
            budget.spend(name.len(), LOOKUP)?;
            if !is_equal(&value, &right.member(name), budget, depth + 1)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    Ok(match (left, right) {
        (Value::Null, Value::Null) => true,
        (Value::Boolean(left), Value::Boolean(right)) => left == right,
        (Value::Number(Number::Integer(left)), Value::Number(Number::Integer(right))) => {
            left == right
        }
        (Value::Number(left), Value::Number(right)) => left.as_float() == right.as_float(),
        _ => false,
    })
}

fn contains(container: &Value<'_>, value: &Value<'_>, budget: &Budget) -> Result<bool, Fault> {
    if let (Some(text), Some(part)) = (container.as_text(), value.as_text()) {
        budget.spend(text.len().saturating_add(part.len()), READ)?;
        return Ok(text.contains(part));
    }
    if let (Some(_), Some(name)) = (container.member_count(), value.as_text()) {
        budget.spend(name.len(), LOOKUP)?;
        return Ok(!matches!(container.member(name), Value::Undefined));
    }
    let Some(length) = container.list_length() else {
        let (value, container) = (value.kind(), container.kind());
        return Err(Fault::new(format!("{value} cannot be in {container}")));
    };
    for index in 0..length {
        if is_equal(&container.item(index), value, budget, 0)? {
            return Ok(true);
        }
    }
    Ok(false)
}
