//! Renders compiled templates with the values of a request.
//!
//! Every expression costs fuel, and so does every iteration of a loop. Using a missing value in an
//! output, an operator, a condition or a filter is an error. Only `default`, `is defined` and `is
//! undefined` accept a missing value. A member of a missing value is a missing value too: if
//! `event.a` is missing, so is `event.a.b`.

use super::budget::{Bounded, ITEM, LOOKUP, READ, STEP};
use super::error::{Fault, TemplateError, quoted};
use super::expression::{Expression, Filter, LoopMember, Node, Tagged, Test};
use super::filters;
use super::operators::{calculate, compare, negative};
use super::output::Encoding;
use super::program::Program;
use super::scope::Scope;
use super::value::{Number, Value};
use super::values::Values;

/// An error, with the text of the tag that caused it.
type Failure = (Box<str>, Fault);

/// The current iteration of a loop.
struct Turn<'v> {
    item: Value<'v>,
    index: usize,
    length: usize,
}

/// Renders one template with the values of a request.
pub(super) struct Evaluator<'v> {
    scope: Scope<'v>,
    turns: Vec<Turn<'v>>,
}

/// Appends the rendered template to `out`.
///
/// # Errors
/// The error of the first part that cannot be rendered.
pub(super) fn render(
    program: &Program,
    values: &Values,
    encoding: Encoding,
    out: &mut Bounded<'_>,
) -> Result<(), TemplateError> {
    let scope = Scope { values, budget: out.budget() };
    let mut evaluator = Evaluator { scope, turns: Vec::new() };
    evaluator
        .nodes(&program.nodes, encoding, out)
        .map_err(|(tag, fault)| TemplateError::new(&program.place, &tag, fault.0))
}

/// Appends the JSON form of an expression's value, for a template that consists of this expression
/// only.
///
/// # Errors
///
/// Fails if the value does not exist or cannot be computed.
pub(super) fn render_json(
    program: &Program,
    tagged: &Tagged,
    values: &Values,
    out: &mut Bounded<'_>,
) -> Result<(), TemplateError> {
    let scope = Scope { values, budget: out.budget() };
    let mut evaluator = Evaluator { scope, turns: Vec::new() };
    let value = evaluator.defined(&tagged.expression);
    value
        .and_then(|value| value.write_json(out, 0))
        .map_err(|fault| TemplateError::new(&program.place, &tagged.tag, fault.0))
}

impl<'v> Evaluator<'v> {
    fn nodes(
        &mut self,
        nodes: &'v [Node],
        encoding: Encoding,
        out: &mut Bounded<'_>,
    ) -> Result<(), Failure> {
        nodes.iter().try_for_each(|node| self.node(node, encoding, out))
    }

    fn node(
        &mut self,
        node: &'v Node,
        encoding: Encoding,
        out: &mut Bounded<'_>,
    ) -> Result<(), Failure> {
        match node {
            Node::Text(text) => {
                encoding.push_text(text, out).map_err(|fault| (quoted(text).into(), fault))
            }
            Node::Output(tagged) => {
                let value = self.defined(&tagged.expression);
                let written = value.and_then(|value| encoding.push_value(&value, out));
                written.map_err(|fault| (tagged.tag.clone(), fault))
            }
            Node::If { condition, then, otherwise } => {
                let holds = self.defined(&condition.expression);
                let holds = holds.map_err(|fault| (condition.tag.clone(), fault))?.is_true();
                self.nodes(if holds { then } else { otherwise }, encoding, out)
            }
            Node::For { items, filter, body, otherwise } => {
                let in_tag = |fault| (items.tag.clone(), fault);
                let items = self.items(&items.expression, filter.as_ref()).map_err(in_tag)?;
                let length = items.len();
                for (index, item) in items.into_iter().enumerate() {
                    self.turns.push(Turn { item, index, length });
                    self.nodes(body, encoding, out)?;
                    self.turns.pop();
                }
                if length > 0 { Ok(()) } else { self.nodes(otherwise, encoding, out) }
            }
        }
    }

    /// Returns the items of a loop. The fuel for the items is charged before the list is built.
    fn items(
        &mut self,
        expression: &'v Expression,
        filter: Option<&'v Expression>,
    ) -> Result<Vec<Value<'v>>, Fault> {
        let value = self.defined(expression)?;
        let items: Vec<Value<'v>> = if let Some(length) = value.list_length() {
            self.scope.budget.spend(length, ITEM)?;
            (0..length).map(|index| value.item(index)).collect()
        } else if let Some(count) = value.member_count() {
            self.scope.budget.spend(count, ITEM)?;
            let members = value.members().unwrap_or_default();
            members.into_iter().map(|(name, _)| Value::Text(name)).collect()
        } else {
            return Err(Fault::new(format!(
                "a loop needs a list or an object, but the value is {}",
                value.kind()
            )));
        };
        let Some(filter) = filter else { return Ok(items) };
        let mut kept = Vec::new();
        for item in items {
            self.turns.push(Turn { item, index: 0, length: 0 });
            let holds = self.defined(filter)?.is_true();
            kept.extend(self.turns.pop().filter(|_| holds).map(|turn| turn.item));
        }
        Ok(kept)
    }

    /// Evaluates an expression. Fails if its value does not exist.
    pub(super) fn defined(&mut self, expression: &'v Expression) -> Result<Value<'v>, Fault> {
        let value = self.value(expression)?;
        if matches!(value, Value::Undefined) {
            let path = expression
                .path()
                .map_or("the value".to_owned(), |path| format!("`{}`", quoted(&path)));
            let reason = format!("{path} does not exist; add `| default(…)` if it may be missing");
            return Err(Fault::new(reason));
        }
        Ok(value)
    }

    /// Evaluates an expression. The value is `Undefined` if it does not exist.
    pub(super) fn value(&mut self, expression: &'v Expression) -> Result<Value<'v>, Fault> {
        self.scope.budget.spend(1, STEP)?;
        match expression {
            Expression::Null => Ok(Value::Null),
            Expression::Boolean(value) => Ok(Value::Boolean(*value)),
            Expression::Number(number) => Ok(Value::Number(*number)),
            Expression::Text(text) => Ok(Value::Text(text)),
            Expression::List(items) => {
                let items = items.iter().map(|item| self.defined(item));
                Ok(Value::List(items.collect::<Result<_, Fault>>()?))
            }
            Expression::Object(members) => {
                let members =
                    members.iter().map(|(name, value)| Ok((&**name, self.defined(value)?)));
                Ok(Value::Object(members.collect::<Result<_, Fault>>()?))
            }
            Expression::Variable(variable) => Ok(self.scope.values.variable(*variable)),
            Expression::Item(position, _) => {
                Ok(self.turns.get(*position).map_or(Value::Undefined, |turn| turn.item.clone()))
            }
            Expression::Loop(position, member) => Ok(self.turn(*position, *member)),
            Expression::Secret(name) => self.scope.secret(name).map(Value::Text),
            Expression::Member(value, name) => {
                self.scope.budget.spend(name.len(), LOOKUP)?;
                Ok(self.value(value)?.member(name))
            }
            Expression::Subscript(value, key) => {
                let value = self.value(value)?;
                let key = self.defined(key)?;
                self.subscript(&value, &key)
            }
            Expression::Slice(value, start, stop) => {
                self.slice(value, start.as_deref(), stop.as_deref())
            }
            Expression::Not(value) => Ok(Value::Boolean(!self.defined(value)?.is_true())),
            Expression::Negative(value) => negative(&self.defined(value)?).map(Value::Number),
            Expression::And(left, right) => {
                let left = self.defined(left)?;
                if left.is_true() { self.defined(right) } else { Ok(left) }
            }
            Expression::Or(left, right) => {
                let left = self.defined(left)?;
                if left.is_true() { Ok(left) } else { self.defined(right) }
            }
            Expression::Arithmetic(operator, left, right) => {
                let (left, right) = (self.defined(left)?, self.defined(right)?);
                calculate(*operator, &left, &right).map(Value::Number)
            }
            Expression::Concatenation(left, right) => {
                let (left, right) = (self.defined(left)?, self.defined(right)?);
                let mut built = self.scope.builder();
                self.scope.push(&left, &mut built)?;
                self.scope.push(&right, &mut built)?;
                Ok(Value::built(built))
            }
            Expression::Comparison(first, rest) => self.comparison(first, rest).map(Value::Boolean),
            Expression::Conditional { condition, then, otherwise } => {
                if self.defined(condition)?.is_true() {
                    return self.value(then);
                }
                otherwise.as_ref().map_or(Ok(Value::Undefined), |otherwise| self.value(otherwise))
            }
            Expression::Filter(value, filter) => self.filter(value, filter),
            Expression::Test(value, test) => Ok(Value::Boolean(passes(*test, &self.value(value)?))),
        }
    }

    fn comparison(
        &mut self,
        first: &'v Expression,
        rest: &'v [(super::expression::Comparison, Expression)],
    ) -> Result<bool, Fault> {
        let mut left = self.defined(first)?;
        for (comparison, right) in rest {
            let right = self.defined(right)?;
            if !compare(*comparison, &left, &right, self.scope.budget)? {
                return Ok(false);
            }
            left = right;
        }
        Ok(true)
    }

    fn filter(&mut self, value: &'v Expression, filter: &'v Filter) -> Result<Value<'v>, Fault> {
        if let Filter::Default(other, also_false) = filter {
            let value = self.value(value)?;
            let is_kept = !matches!(value, Value::Undefined) && (value.is_true() || !also_false);
            return if is_kept { Ok(value) } else { self.value(other) };
        }
        let value = self.defined(value)?;
        let [first, second] = filter.arguments();
        let first = first.map(|argument| self.defined(argument)).transpose()?;
        let second = second.map(|argument| self.defined(argument)).transpose()?;
        filters::apply(self.scope, &value, filter, [first, second])
    }

    fn turn(&self, position: usize, member: LoopMember) -> Value<'v> {
        let Some(turn) = self.turns.get(position) else { return Value::Undefined };
        match member {
            LoopMember::Index => Value::count(turn.index + 1),
            LoopMember::Index0 => Value::count(turn.index),
            LoopMember::First => Value::Boolean(turn.index == 0),
            LoopMember::Last => Value::Boolean(turn.index + 1 == turn.length),
            LoopMember::Length => Value::count(turn.length),
        }
    }

    fn subscript(&self, value: &Value<'v>, key: &Value<'v>) -> Result<Value<'v>, Fault> {
        if let Some(name) = key.as_text() {
            self.scope.budget.spend(name.len(), LOOKUP)?;
            return Ok(value.member(name));
        }
        let Some(Number::Integer(_)) = key.as_number() else {
            let reason =
                format!("the key in brackets is {}; use a string or a whole number", key.kind());
            return Err(Fault::new(reason));
        };
        let Some(length) = value.list_length() else { return Ok(Value::Undefined) };
        let at = index(key, length)?;
        let at = usize::try_from(at).ok();
        Ok(at.map_or(Value::Undefined, |at| value.item(at)))
    }

    fn slice(
        &mut self,
        value: &'v Expression,
        start: Option<&'v Expression>,
        stop: Option<&'v Expression>,
    ) -> Result<Value<'v>, Fault> {
        let value = self.defined(value)?;
        let start = start.map(|start| self.defined(start)).transpose()?;
        let stop = stop.map(|stop| self.defined(stop)).transpose()?;
        let range = |length: usize| -> Result<(usize, usize), Fault> {
            let bound = |bound: Option<Value<'v>>, absent: usize| match bound {
                None => Ok(absent),
                Some(bound) => {
                    let at = index(&bound, length)?.max(0);
                    Ok(usize::try_from(at).unwrap_or(length).min(length))
                }
            };
            let (start, stop) = (bound(start, 0)?, bound(stop, length)?);
            Ok((start, stop.max(start)))
        };
        if let Some(text) = value.as_text() {
            self.scope.budget.spend(text.len(), 2 * READ)?;
            let (start, stop) = range(text.chars().count())?;
            let offset =
                |at: usize| text.char_indices().nth(at).map_or(text.len(), |(offset, _)| offset);
            let mut built = self.scope.builder();
            built.push(text.get(offset(start)..offset(stop)).unwrap_or_default())?;
            return Ok(Value::built(built));
        }
        let Some(length) = value.list_length() else {
            return Err(Fault::new(format!(
                "only strings and lists have slices, but the value is {}",
                value.kind()
            )));
        };
        let (start, stop) = range(length)?;
        if let Value::Elements(elements) = value {
            return Ok(Value::Elements(elements.get(start..stop).unwrap_or_default()));
        }
        self.scope.budget.spend(stop - start, ITEM)?;
        Ok(Value::List((start..stop).map(|at| value.item(at)).collect()))
    }
}

/// Converts a number to a position in a list of this length. Negative numbers count from the end.
fn index(value: &Value<'_>, length: usize) -> Result<i128, Fault> {
    let Some(Number::Integer(at)) = value.as_number() else {
        return Err(Fault::new(format!(
            "a position must be a whole number, but the value is {}",
            value.kind()
        )));
    };
    Ok(if at < 0 { at + i128::try_from(length).unwrap_or(i128::MAX) } else { at })
}

fn passes(test: Test, value: &Value<'_>) -> bool {
    match test {
        Test::Defined => !matches!(value, Value::Undefined),
        Test::Undefined => matches!(value, Value::Undefined),
        Test::None => matches!(value, Value::Null),
        Test::String => value.as_text().is_some(),
        Test::Number => value.as_number().is_some(),
        Test::Boolean => matches!(value, Value::Boolean(_)),
        Test::Mapping => value.member_count().is_some(),
        Test::Sequence => value.list_length().is_some(),
    }
}
