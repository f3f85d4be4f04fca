//! Translates the parser's syntax tree to [`Node`] and [`Expression`].
//!
//! This module is separate because it lists what is allowed: a form without a translation is an
//! error that names the form. Names are resolved here, so an unknown name is found before an event
//! arrives.

use std::collections::BTreeSet;

use minijinja::Value as Constant;
use minijinja::machinery::ast::{self, BinOpKind, CallArg, CompareOpKind, Expr, Stmt, UnaryOpKind};
use minijinja::value::ValueKind;

use super::date;
use super::error::{Fault, quoted};
use super::expression::{
    Arithmetic, Comparison, Expression, FILTERS, Filter, LoopMember, Node, Tagged, Test, Variable,
};
use super::limits::EXPRESSION_DEPTH_MAX;
use super::syntax::Tags;
use super::value::Number;

/// An error, with the text of the tag that caused it.
type Failure<'t> = (&'t str, Fault);

/// Error message for unsupported uses of a secret. A part of a secret, or a different encoding of
/// it, could not be found and hidden in responses.
const SECRET_AS_IT_IS: &str = "a secret must be sent unchanged; only one of `base64`, `tojson` and \
                               `urlencode` may be applied to it, once";

/// The state of the translation of one template.
pub(super) struct Lowering<'t> {
    tags: &'t Tags<'t>,
    /// The names of loop items, beginning with the outermost loop.
    items: Vec<Box<str>>,
    /// True while the filter of a loop is translated, where `loop` does not exist.
    is_loop_filter: bool,
    depth: usize,
    /// The number of calls of `secret` so far. The field `secret_filters` counts the filters that
    /// were applied to secrets.
    secret_calls: usize,
    secret_filters: usize,
    /// The names of the secrets in calls of `secret` and `hmac`.
    pub(super) secrets: BTreeSet<Box<str>>,
    /// The variables that the template uses.
    pub(super) variables: BTreeSet<Variable>,
}

impl<'t> Lowering<'t> {
    /// Begins the translation of a template with these tags.
    pub(super) fn new(tags: &'t Tags<'t>) -> Self {
        Self {
            tags,
            items: Vec::new(),
            is_loop_filter: false,
            depth: 0,
            secret_calls: 0,
            secret_filters: 0,
            secrets: BTreeSet::new(),
            variables: BTreeSet::new(),
        }
    }

    /// Translates the whole template.
    ///
    /// # Errors
    /// The error of the first part that is not supported.
    pub(super) fn template(&mut self, template: &Stmt<'_>) -> Result<Vec<Node>, Failure<'t>> {
        if let Stmt::Template(template) = template {
            return self.nodes(&template.children);
        }
        self.node(template).map(|node| vec![node])
    }

    fn nodes(&mut self, statements: &[Stmt<'_>]) -> Result<Vec<Node>, Failure<'t>> {
        statements.iter().map(|statement| self.node(statement)).collect()
    }

    fn node(&mut self, statement: &Stmt<'_>) -> Result<Node, Failure<'t>> {
        let (tag, name) = match statement {
            Stmt::EmitRaw(raw) => return Ok(Node::Text(raw.raw.into())),
            Stmt::EmitExpr(output) => {
                let tag = self.tags.at(output.span());
                return Ok(Node::Output(self.tagged(&output.expr, tag)?));
            }
            Stmt::IfCond(condition) => {
                let tag = self.tags.at(condition.span());
                return Ok(Node::If {
                    condition: self.tagged(&condition.expr, tag)?,
                    then: self.nodes(&condition.true_body)?,
                    otherwise: self.nodes(&condition.false_body)?,
                });
            }
            Stmt::ForLoop(each) => return self.each(each, self.tags.at(each.span())),
            Stmt::Template(part) => (self.tags.at(part.span()), "template"),
            Stmt::WithBlock(with) => (self.tags.at(with.span()), "with"),
            Stmt::Set(set) => (self.tags.at(set.span()), "set"),
            Stmt::SetBlock(set) => (self.tags.at(set.span()), "set"),
            Stmt::AutoEscape(escape) => (self.tags.at(escape.span()), "autoescape"),
            Stmt::FilterBlock(filter) => (self.tags.at(filter.span()), "filter"),
            Stmt::Do(call) => (self.tags.at(call.span()), "do"),
        };
        Err((tag, not_supported(name)))
    }

    fn each(&mut self, each: &ast::ForLoop<'_>, tag: &'t str) -> Result<Node, Failure<'t>> {
        if each.recursive {
            return Err((tag, not_supported("recursive")));
        }
        let Expr::Var(target) = &each.target else {
            return Err((tag, Fault::new("a loop must have exactly one name before `in`")));
        };
        let is_taken =
            Variable::NAMED.iter().any(|(name, _)| *name == target.id) || target.id == "loop";
        if is_taken || target.id == "secret" {
            return Err((
                tag,
                Fault::new(format!("the name `{}` is reserved; choose another name", target.id)),
            ));
        }
        let secrets = self.secret_calls;
        let items = self.tagged(&each.iter, tag)?;
        self.check_as_it_is(secrets).map_err(|fault| (tag, fault))?;
        self.items.push(target.id.into());
        let is_inner = std::mem::replace(&mut self.is_loop_filter, true);
        let filter = each.filter_expr.as_ref().map(|filter| self.expression(filter));
        self.is_loop_filter = is_inner;
        let filter = filter.transpose().map_err(|fault| (tag, fault))?;
        let body = self.nodes(&each.body)?;
        self.items.pop();
        Ok(Node::For { items, filter, body, otherwise: self.nodes(&each.else_body)? })
    }

    fn tagged(&mut self, expression: &Expr<'_>, tag: &'t str) -> Result<Tagged, Failure<'t>> {
        let expression = self.expression(expression).map_err(|fault| (tag, fault))?;
        Ok(Tagged { expression, tag: quoted(tag).into() })
    }

    fn boxed(&mut self, expression: &Expr<'_>) -> Result<Box<Expression>, Fault> {
        self.expression(expression).map(Box::new)
    }

    fn optional(
        &mut self,
        expression: Option<&Expr<'_>>,
    ) -> Result<Option<Box<Expression>>, Fault> {
        expression.map(|expression| self.boxed(expression)).transpose()
    }

    fn expression(&mut self, expression: &Expr<'_>) -> Result<Expression, Fault> {
        self.depth += 1;
        if self.depth > EXPRESSION_DEPTH_MAX {
            let reason = format!(
                "operators, filters and members are nested more than {EXPRESSION_DEPTH_MAX} levels \
                 deep"
            );
            return Err(Fault::new(reason));
        }
        let lowered = self.unchecked(expression);
        self.depth -= 1;
        lowered
    }

    fn unchecked(&mut self, expression: &Expr<'_>) -> Result<Expression, Fault> {
        match expression {
            Expr::Var(variable) => self.name(variable.id),
            Expr::Const(constant) => literal(&constant.value),
            Expr::Slice(slice) => {
                if slice.step.is_some() {
                    return Err(Fault::new("a slice cannot have a step; write [start:stop]"));
                }
                let secrets = self.secret_calls;
                let value = self.boxed(&slice.expr)?;
                self.check_as_it_is(secrets)?;
                let start = self.optional(slice.start.as_ref())?;
                Ok(Expression::Slice(value, start, self.optional(slice.stop.as_ref())?))
            }
            Expr::UnaryOp(operation) => {
                let value = self.boxed(&operation.expr)?;
                Ok(match operation.op {
                    UnaryOpKind::Not => Expression::Not(value),
                    UnaryOpKind::Neg => Expression::Negative(value),
                })
            }
            Expr::BinOp(operation) => self.operation(operation),
            Expr::Compare(comparison) => {
                let first = self.boxed(&comparison.expr)?;
                let rest = comparison.ops.iter().map(|operation| {
                    Ok((comparison_of(operation.op), self.expression(&operation.expr)?))
                });
                Ok(Expression::Comparison(first, rest.collect::<Result<_, Fault>>()?))
            }
            Expr::IfExpr(conditional) => Ok(Expression::Conditional {
                condition: self.boxed(&conditional.test_expr)?,
                then: self.boxed(&conditional.true_expr)?,
                otherwise: self.optional(conditional.false_expr.as_ref())?,
            }),
            Expr::Filter(filter) => self.filter(filter),
            Expr::Test(test) => {
                let known = Test::NAMED.iter().find(|(name, _)| *name == test.name);
                match (known, &test.args[..]) {
                    (Some((_, known)), []) => Ok(Expression::Test(self.boxed(&test.expr)?, *known)),
                    (Some(_), _) => {
                        Err(Fault::new(format!("the test `{}` accepts no arguments", test.name)))
                    }
                    (None, _) => {
                        let names = Test::NAMED.map(|(name, _)| name).join(", ");
                        Err(Fault::new(format!(
                            "there is no test `{}`; the tests are {names}",
                            test.name
                        )))
                    }
                }
            }
            Expr::GetAttr(member) => self.member(member),
            Expr::GetItem(item) => {
                let value = self.boxed(&item.expr)?;
                Ok(Expression::Subscript(value, self.boxed(&item.subscript_expr)?))
            }
            Expr::Call(call) => self.call(call),
            Expr::List(list) => self.list(&list.items),
            Expr::Tuple(tuple) => self.list(&tuple.items),
            Expr::Map(map) => self.object(map),
        }
    }

    fn list(&mut self, items: &[Expr<'_>]) -> Result<Expression, Fault> {
        let items = items.iter().map(|item| self.expression(item));
        Ok(Expression::List(items.collect::<Result<_, Fault>>()?))
    }

    fn object(&mut self, map: &ast::Map<'_>) -> Result<Expression, Fault> {
        let mut members: Vec<(Box<str>, Expression)> = Vec::with_capacity(map.keys.len());
        for (key, value) in map.keys.iter().zip(&map.values) {
            let name = text_of(key)
                .ok_or_else(|| Fault::new("the names in an object must be strings in quotes"))?;
            if members.iter().any(|(known, _)| **known == *name) {
                return Err(Fault::new(format!("the name `{name}` occurs twice in one object")));
            }
            members.push((name, self.expression(value)?));
        }
        Ok(Expression::Object(members))
    }

    fn name(&mut self, name: &str) -> Result<Expression, Fault> {
        if let Some(position) = self.items.iter().rposition(|item| **item == *name) {
            return Ok(Expression::Item(position, name.into()));
        }
        if let Some((_, variable)) = Variable::NAMED.iter().find(|(known, _)| *known == name) {
            self.variables.insert(*variable);
            return Ok(Expression::Variable(*variable));
        }
        let names = Variable::NAMED.map(|(name, _)| name).join(", ");
        Err(Fault::new(format!(
            "there is no `{name}`; a path begins with {names} or the name of a loop's item"
        )))
    }

    fn member(&mut self, member: &ast::GetAttr<'_>) -> Result<Expression, Fault> {
        let is_loop = matches!(&member.expr, Expr::Var(variable) if variable.id == "loop");
        if !is_loop {
            return Ok(Expression::Member(self.boxed(&member.expr)?, member.name.into()));
        }
        if self.is_loop_filter {
            return Err(Fault::new("`loop` cannot be used in the filter of a loop"));
        }
        let known = LoopMember::NAMED.iter().find(|(name, _)| *name == member.name);
        match (known, self.items.len().checked_sub(1)) {
            (Some((_, known)), Some(position)) => Ok(Expression::Loop(position, *known)),
            (_, None) => Err(Fault::new("`loop` can be used only inside `for`")),
            (None, _) => {
                let names = LoopMember::NAMED.map(|(name, _)| name).join(", ");
                Err(Fault::new(format!(
                    "`loop` has no member `{}`; its members are {names}",
                    member.name
                )))
            }
        }
    }

    fn call(&mut self, call: &ast::Call<'_>) -> Result<Expression, Fault> {
        let Expr::Var(function) = &call.expr else {
            return Err(Fault::new("values have no functions; the only function is `secret`"));
        };
        if function.id == "secret" {
            self.secret_calls += 1;
            return self.secret(&call.args, "secret('NAME')").map(Expression::Secret);
        }
        let name = quoted(function.id);
        Err(Fault::new(format!("there is no function `{name}`; the only function is `secret`")))
    }

    /// Checks that the expression that was just translated contains no secret. `secrets` is the
    /// number of calls of `secret` before that expression.
    fn check_as_it_is(&self, secrets: usize) -> Result<(), Fault> {
        if self.secret_calls > secrets { Err(Fault::new(SECRET_AS_IT_IS)) } else { Ok(()) }
    }

    /// Reads the name of a secret. The name must be literal, so that all secrets can be listed
    /// before an event arrives.
    fn secret(&mut self, arguments: &[CallArg<'_>], form: &str) -> Result<Box<str>, Fault> {
        let name = match arguments {
            [CallArg::Pos(name)] => text_of(name).filter(|name| !name.is_empty()),
            _ => None,
        };
        let name = name.ok_or_else(|| {
            Fault::new(format!("write {form} with the name of a secret in quotes"))
        })?;
        self.secrets.insert(name.clone());
        Ok(name)
    }

    fn filter(&mut self, filter: &ast::Filter<'_>) -> Result<Expression, Fault> {
        let Some(value) = &filter.expr else { return Err(not_supported("filter")) };
        let (secrets, filters) = (self.secret_calls, self.secret_filters);
        let value = self.boxed(value)?;
        if self.secret_calls > secrets {
            // Responses are searched for a secret in each of these encodings, applied once.
            let is_searched = matches!(filter.name, "base64" | "tojson" | "urlencode");
            if !is_searched || self.secret_filters > filters {
                return Err(Fault::new(SECRET_AS_IT_IS));
            }
            self.secret_filters += 1;
        }
        let secrets = self.secret_calls;
        if filter.name == "hmac" {
            let name = self.secret(&filter.args, "hmac('NAME')")?;
            return Ok(Expression::Filter(value, Filter::Hmac(name)));
        }
        let mut arguments = Vec::with_capacity(filter.args.len());
        for argument in &filter.args {
            let CallArg::Pos(argument) = argument else {
                return Err(Fault::new("named arguments and arguments with `*` are not supported"));
            };
            arguments.push(self.expression(argument)?);
        }
        self.check_as_it_is(secrets)?;
        let mut arguments = arguments.into_iter();
        let next = [arguments.next(), arguments.next(), arguments.next()];
        let lowered = match (filter.name, next) {
            ("default", [Some(other), None, None]) => Filter::Default(other.into(), false),
            ("default", [Some(other), Some(Expression::Boolean(also)), None]) => {
                Filter::Default(other.into(), also)
            }
            ("tojson", [None, ..]) => Filter::ToJson,
            ("date", [Some(Expression::Text(format)), None, None]) => {
                date::check(&format)?;
                Filter::Date(format)
            }
            ("base64", [None, ..]) => Filter::Base64,
            ("upper", [None, ..]) => Filter::Upper,
            ("urlencode", [None, ..]) => Filter::UrlEncode,
            ("lower", [None, ..]) => Filter::Lower,
            ("replace", [Some(old), Some(new), None]) => Filter::Replace(old.into(), new.into()),
            ("join", [separator, None, None]) => Filter::Join(separator.map(Box::new)),
            ("length", [None, ..]) => Filter::Length,
            ("first", [None, ..]) => Filter::First,
            ("last", [None, ..]) => Filter::Last,
            (name, _) => return Err(wrong_filter(name)),
        };
        Ok(Expression::Filter(value, lowered))
    }

    fn operation(&mut self, operation: &ast::BinOp<'_>) -> Result<Expression, Fault> {
        let (left, right) = (self.boxed(&operation.left)?, self.boxed(&operation.right)?);
        let compared = |comparison, left, right: Box<Expression>| {
            Ok(Expression::Comparison(left, vec![(comparison, *right)]))
        };
        let arithmetic = |operator, left: Box<Expression>, right: Box<Expression>| {
            let is_other = |side: &Expression| {
                matches!(side, Expression::Text(_) | Expression::List(_) | Expression::Object(_))
            };
            if is_other(&left) || is_other(&right) {
                return Err(Fault::new("arithmetic requires numbers; join strings with `~`"));
            }
            Ok(Expression::Arithmetic(operator, left, right))
        };
        match operation.op {
            BinOpKind::Eq => compared(Comparison::Equal, left, right),
            BinOpKind::Ne => compared(Comparison::NotEqual, left, right),
            BinOpKind::Lt => compared(Comparison::Less, left, right),
            BinOpKind::Lte => compared(Comparison::LessOrEqual, left, right),
            BinOpKind::Gt => compared(Comparison::Greater, left, right),
            BinOpKind::Gte => compared(Comparison::GreaterOrEqual, left, right),
            BinOpKind::In => compared(Comparison::In, left, right),
            BinOpKind::ScAnd => Ok(Expression::And(left, right)),
            BinOpKind::ScOr => Ok(Expression::Or(left, right)),
            BinOpKind::Concat => Ok(Expression::Concatenation(left, right)),
            BinOpKind::Add => arithmetic(Arithmetic::Add, left, right),
            BinOpKind::Sub => arithmetic(Arithmetic::Subtract, left, right),
            BinOpKind::Mul => arithmetic(Arithmetic::Multiply, left, right),
            BinOpKind::Div => arithmetic(Arithmetic::Divide, left, right),
            BinOpKind::FloorDiv => arithmetic(Arithmetic::DivideWhole, left, right),
            BinOpKind::Rem => arithmetic(Arithmetic::Remainder, left, right),
            BinOpKind::Pow => Err(not_supported("**")),
        }
    }
}

fn comparison_of(operator: CompareOpKind) -> Comparison {
    match operator {
        CompareOpKind::Eq => Comparison::Equal,
        CompareOpKind::Ne => Comparison::NotEqual,
        CompareOpKind::Lt => Comparison::Less,
        CompareOpKind::Lte => Comparison::LessOrEqual,
        CompareOpKind::Gt => Comparison::Greater,
        CompareOpKind::Gte => Comparison::GreaterOrEqual,
        CompareOpKind::In => Comparison::In,
        CompareOpKind::NotIn => Comparison::NotIn,
    }
}

fn wrong_filter(name: &str) -> Fault {
    let form = match name {
        "default" => "default(value) or default(value, true)",
        "date" => "date('%Y-%m-%d') with a format in quotes",
        "replace" => "replace(old, new)",
        "join" => "join(separator)",
        "tojson" | "base64" | "upper" | "lower" | "urlencode" | "length" | "first" | "last" => {
            return Fault::new(format!("the filter `{name}` accepts no arguments"));
        }
        _ => return Fault::new(format!("there is no filter `{name}`; the filters are {FILTERS}")),
    };
    Fault::new(format!("write {form}"))
}

fn not_supported(name: &str) -> Fault {
    Fault::new(format!("`{name}` is not supported"))
}

fn text_of(expression: &Expr<'_>) -> Option<Box<str>> {
    let Expr::Const(constant) = expression else { return None };
    constant.value.as_str().map(Into::into)
}

fn literal(constant: &Constant) -> Result<Expression, Fault> {
    if let Some(text) = constant.as_str() {
        return Ok(Expression::Text(text.into()));
    }
    if constant.is_none() {
        return Ok(Expression::Null);
    }
    if constant.kind() == ValueKind::Bool {
        return Ok(Expression::Boolean(constant.is_true()));
    }
    let number = if constant.is_integer() {
        i128::try_from(constant.clone()).ok().and_then(Number::integer)
    } else {
        f64::try_from(constant.clone()).ok().and_then(Number::float)
    };
    number.map(Expression::Number).ok_or_else(|| Fault::new("a number is too large"))
}
