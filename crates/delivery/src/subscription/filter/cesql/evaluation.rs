//! Evaluates an expression for an event.
//!
//! This module is separate from the tree because evaluation can fail with the errors of CESQL. The
//! first error ends it ("fail fast mode"). Evaluation never panics. Its time and memory are bounded
//! by [`STEPS_MAX`] for any event.

use super::attribute::raw_attribute;
use super::error::Error;
use super::expression::{Binary, Expression, Logic};
use super::failure::Failure;
use super::value::Value;
use crate::event::Members;
use crate::event::path::scalar;

/// Maximum number of steps of one evaluation. A step is a part of the expression, a byte of text
/// that is read or created, or a comparison of characters by `LIKE`. If CloudEvents attributes are
/// within their size limits, an evaluation needs a few hundred steps.
const STEPS_MAX: usize = 250_000;

type Evaluated<'a, T = Value<'a>> = Result<T, Failure<'a>>;

/// Evaluates an expression. Returns the value, and the error if there was one. After an error, the
/// value is the one that the failed function defines. If it defines none, the value is the default
/// of the expression's type.
pub(super) fn evaluate<'a>(
    expression: &'a Expression,
    members: &Members<'a>,
) -> (Value<'a>, Option<Error>) {
    match (Evaluation { members, steps: 0 }).value(expression) {
        Ok(value) => (value, None),
        Err(Failure { error, value }) => {
            (value.unwrap_or_else(|| expression.result().zero()), Some(error))
        }
    }
}

struct Evaluation<'e, 'a> {
    members: &'e Members<'a>,
    steps: usize,
}

impl<'a> Evaluation<'_, 'a> {
    fn spend(&mut self, steps: usize) -> Result<(), Error> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > STEPS_MAX { Err(Error::TooManySteps) } else { Ok(()) }
    }

    fn value(&mut self, expression: &'a Expression) -> Evaluated<'a> {
        self.spend(1)?;
        Ok(match expression {
            Expression::Attribute(name) => self.attribute(name)?.ok_or(Error::MissingAttribute)?,
            Expression::Literal(value) => value.borrowed(),
            Expression::Exists(name) => Value::Boolean(self.attribute(name)?.is_some()),
            Expression::Not(operand) => match self.operand(operand)? {
                // Other operators convert an integer to a boolean, but the conformance kit requires
                // this error here.
                Value::Integer(_) => {
                    return Err(Failure::with(Error::Cast, Value::Boolean(true)));
                }
                value @ (Value::Text(_) | Value::Boolean(_)) => Value::Boolean(!value.boolean()?),
            },
            Expression::Negate(operand) => {
                Value::Integer(self.integer(operand)?.checked_neg().ok_or(Error::Math)?)
            }
            Expression::Like { text, pattern, negated } => {
                let text = self.operand(text)?.into_text();
                let matches = pattern.matches(&text, || self.spend(1))?;
                Value::Boolean(matches != *negated)
            }
            Expression::In { value, set, negated } => {
                Value::Boolean(self.is_in(value, set)? != *negated)
            }
            Expression::Binary { left, operator, right } => self.binary(left, *operator, right)?,
            Expression::Logic { operator, operands } => {
                Value::Boolean(self.logic(*operator, operands)?)
            }
            Expression::Call { function, arguments } => {
                let arguments = arguments.iter().map(|argument| self.operand(argument));
                let value = function.call(arguments.collect::<Evaluated<'a, Vec<_>>>()?)?;
                if let Value::Text(text) = &value {
                    self.spend(text.len())?;
                }
                value
            }
        })
    }

    /// Returns the value of an attribute. A JSON number is a text unless it is a 32-bit integer in
    /// canonical form.
    fn attribute(&mut self, name: &str) -> Result<Option<Value<'a>>, Error> {
        let Some(raw) = raw_attribute(self.members, name) else { return Ok(None) };
        self.spend(raw.len())?;
        let is_text = raw.starts_with('"');
        Ok(scalar(raw).map(|text| match &*text {
            _ if is_text => Value::Text(text),
            "true" => Value::Boolean(true),
            "false" => Value::Boolean(false),
            number => match number.parse::<i32>() {
                Ok(parsed) if parsed.to_string() == number => Value::Integer(parsed),
                Ok(_) | Err(_) => Value::Text(text),
            },
        }))
    }

    /// Evaluates a part of the expression. If it fails, the value of the failed function is
    /// dropped, because that value is used only for a whole expression.
    fn operand(&mut self, expression: &'a Expression) -> Evaluated<'a> {
        self.value(expression).map_err(|failure| failure.error.into())
    }

    fn boolean(&mut self, expression: &'a Expression) -> Evaluated<'a, bool> {
        Ok(self.operand(expression)?.boolean()?)
    }

    fn integer(&mut self, expression: &'a Expression) -> Evaluated<'a, i32> {
        Ok(self.operand(expression)?.integer()?)
    }

    /// Evaluates operands from left to right until the result is certain (short-circuit
    /// evaluation).
    fn logic(&mut self, operator: Logic, operands: &'a [Expression]) -> Evaluated<'a, bool> {
        let mut result = operator == Logic::And;
        for operand in operands {
            let is_true = self.boolean(operand)?;
            match operator {
                Logic::And if !is_true => return Ok(false),
                Logic::Or if is_true => return Ok(true),
                Logic::And | Logic::Or => {}
                Logic::Xor => result ^= is_true,
            }
        }
        Ok(result)
    }

    /// Evaluates `IN`. Each element is converted to the type of the value before it is compared.
    fn is_in(&mut self, value: &'a Expression, set: &'a [Expression]) -> Evaluated<'a, bool> {
        let value = self.operand(value)?;
        for element in set {
            if self.operand(element)?.cast(value.kind())? == value {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn binary(
        &mut self,
        left: &'a Expression,
        operator: Binary,
        right: &'a Expression,
    ) -> Evaluated<'a> {
        let (left, right) = (self.operand(left)?, self.operand(right)?);
        if let Binary::Equal | Binary::NotEqual = operator {
            // Equality is defined for each type, so the left value is converted to the type of the
            // right one.
            let is_equal = left.cast(right.kind())? == right;
            return Ok(Value::Boolean(is_equal == (operator == Binary::Equal)));
        }
        let (left, right) = (left.integer()?, right.integer()?);
        let result = match operator {
            Binary::Equal => return Ok(Value::Boolean(left == right)),
            Binary::NotEqual => return Ok(Value::Boolean(left != right)),
            Binary::Less => return Ok(Value::Boolean(left < right)),
            Binary::LessOrEqual => return Ok(Value::Boolean(left <= right)),
            Binary::Greater => return Ok(Value::Boolean(left > right)),
            Binary::GreaterOrEqual => return Ok(Value::Boolean(left >= right)),
            Binary::Add => left.checked_add(right),
            Binary::Subtract => left.checked_sub(right),
            Binary::Multiply => left.checked_mul(right),
            Binary::Divide => left.checked_div(right),
            // The remainder of the smallest integer by -1 is 0, not an overflow.
            Binary::Remainder => (right != 0).then(|| left.wrapping_rem(right)),
        };
        Ok(Value::Integer(result.ok_or(Error::Math)?))
    }
}
