//! The checked expressions and statements of templates.
//!
//! This module is separate because it defines the whole language: an operator, filter, test or
//! statement without a variant here does not exist. The types own their texts, so threads can share
//! a compiled template.

use super::value::Number;

/// A variable that templates can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Variable {
    /// `event`: the event of the request; undefined if the subscription batches.
    Event,
    /// `events`: a list of all events of the request.
    Events,
    /// `subscription`: the namespace, topic and name of the subscription.
    Subscription,
    /// `attempt`: the number, delivery id and time of the attempt.
    Attempt,
}

impl Variable {
    /// All variables, with their names.
    pub(super) const NAMED: [(&'static str, Self); 4] = [
        ("event", Self::Event),
        ("events", Self::Events),
        ("subscription", Self::Subscription),
        ("attempt", Self::Attempt),
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Events => "events",
            Self::Subscription => "subscription",
            Self::Attempt => "attempt",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoopMember {
    /// `loop.index`: the number of the iteration, counted from 1.
    Index,
    /// `loop.index0`: the number of the iteration, counted from 0.
    Index0,
    /// `loop.first`: true in the first iteration.
    First,
    /// `loop.last`: true in the last iteration.
    Last,
    /// `loop.length`: the number of iterations.
    Length,
}

impl LoopMember {
    /// All members of `loop`, with their names.
    pub(super) const NAMED: [(&'static str, Self); 5] = [
        ("index", Self::Index),
        ("index0", Self::Index0),
        ("first", Self::First),
        ("last", Self::Last),
        ("length", Self::Length),
    ];
}

/// An operator that computes with numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    /// `/`: division, whose result may have a fraction.
    Divide,
    /// `//`: division that rounds down.
    DivideWhole,
    /// `%`: the remainder, with the sign of the divisor.
    Remainder,
}

/// An operator that compares two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// `in`: true if the left value is an item of a list, the name of a member of an object, or a
    /// part of a text.
    In,
    NotIn,
}

/// A test of a value, which follows `is`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Test {
    /// `defined`: the value exists.
    Defined,
    /// `undefined`: the value does not exist.
    Undefined,
    /// `none`: the value is `null`.
    None,
    /// `string`: the value is a text.
    String,
    Number,
    /// `boolean`: the value is `true` or `false`.
    Boolean,
    /// `mapping`: the value is an object.
    Mapping,
    /// `sequence`: the value is a list.
    Sequence,
}

impl Test {
    /// All tests, with their names.
    pub(super) const NAMED: [(&'static str, Self); 8] = [
        ("defined", Self::Defined),
        ("undefined", Self::Undefined),
        ("none", Self::None),
        ("string", Self::String),
        ("number", Self::Number),
        ("boolean", Self::Boolean),
        ("mapping", Self::Mapping),
        ("sequence", Self::Sequence),
    ];
}

/// A filter that changes a value, written after a vertical bar.
#[derive(Debug)]
pub(super) enum Filter {
    /// `default(value)`: replaces a missing value. `default(value, true)` also replaces a false or
    /// empty value.
    Default(Box<Expression>, bool),
    /// `tojson`: writes the value as JSON text.
    ToJson,
    /// `date("%Y-%m-%d")`: formats a time in UTC.
    Date(Box<str>),
    /// `base64`: encodes a text with the standard alphabet and padding.
    Base64,
    Upper,
    Lower,
    /// `replace(old, new)`: replaces every occurrence of a text.
    Replace(Box<Expression>, Box<Expression>),
    /// `join(separator)`: joins the items of a list into one text.
    Join(Option<Box<Expression>>),
    /// `urlencode`: encodes a text like a form value; a space becomes `+`.
    UrlEncode,
    /// `hmac("NAME")`: returns the HMAC-SHA256 of a text in hexadecimal digits. The key is a
    /// secret.
    Hmac(Box<str>),
    /// `length`: returns the number of characters in a text, items in a list, or members in an
    /// object.
    Length,
    First,
    Last,
}

impl Filter {
    /// Returns the arguments that must be evaluated before the filter is applied.
    pub(super) fn arguments(&self) -> [Option<&Expression>; 2] {
        match self {
            Self::Replace(old, new) => [Some(old), Some(new)],
            Self::Join(separator) => [separator.as_deref(), None],
            Self::Default(..)
            | Self::ToJson
            | Self::Date(_)
            | Self::Base64
            | Self::Upper
            | Self::Lower
            | Self::UrlEncode
            | Self::Hmac(_)
            | Self::Length
            | Self::First
            | Self::Last => [None, None],
        }
    }
}

/// The names of all filters, for error messages.
pub(super) const FILTERS: &str = "default, tojson, date, base64, upper, lower, replace, join, urlencode, hmac, length, first and last";

/// An expression that is evaluated for each request.
#[derive(Debug)]
pub(super) enum Expression {
    Null,
    /// The boolean `true` or `false`.
    Boolean(bool),
    Number(Number),
    Text(Box<str>),
    /// A list literal, such as `[1, event.id]`.
    List(Vec<Self>),
    Object(Vec<(Box<str>, Self)>),
    /// A variable, such as `event`.
    Variable(Variable),
    /// The item of a loop. The first field is the position of the loop, counted from the outermost;
    /// the second is the name of the item.
    Item(usize, Box<str>),
    /// A member of `loop`. The first field is the position of the loop, counted from the outermost.
    Loop(usize, LoopMember),
    /// `secret("NAME")`: the value of a secret.
    Secret(Box<str>),
    /// `value.name`: a member of an object.
    Member(Box<Self>, Box<str>),
    /// `value[key]`: a member of an object, or an item of a list.
    Subscript(Box<Self>, Box<Self>),
    /// `value[start:stop]`: a part of a list or a text.
    Slice(Box<Self>, Option<Box<Self>>, Option<Box<Self>>),
    /// `not value`: true if the value counts as false.
    Not(Box<Self>),
    /// `-value`: the negated number.
    Negative(Box<Self>),
    /// `left and right`: the right value is evaluated only if the left one counts as true.
    And(Box<Self>, Box<Self>),
    /// `left or right`: the right value is evaluated only if the left one counts as false.
    Or(Box<Self>, Box<Self>),
    /// An arithmetic operation with two numbers.
    Arithmetic(Arithmetic, Box<Self>, Box<Self>),
    /// `left ~ right`: joins two values as texts.
    Concatenation(Box<Self>, Box<Self>),
    /// `a < b <= c`: true if all of these comparisons are true.
    Comparison(Box<Self>, Vec<(Comparison, Self)>),
    /// `then if condition else otherwise`: one of two values.
    Conditional {
        condition: Box<Self>,
        /// The value of the whole expression if the condition is true.
        then: Box<Self>,
        /// The value if the condition is false. Without `else`, the value is undefined.
        otherwise: Option<Box<Self>>,
    },
    /// `value | filter`: the result of a filter.
    Filter(Box<Self>, Filter),
    /// `value is test`: the result of a test.
    Test(Box<Self>, Test),
}

impl Expression {
    /// Returns the expression as a path, such as `event.data.items[0]`, for error messages. Returns
    /// `None` if the expression is not a path.
    pub(super) fn path(&self) -> Option<String> {
        if let Self::Variable(variable) = self {
            return Some(variable.name().to_owned());
        }
        if let Self::Item(_, name) = self {
            return Some(name.to_string());
        }
        if let Self::Member(value, name) = self {
            return Some(format!("{}.{name}", value.path()?));
        }
        let Self::Subscript(value, key) = self else { return None };
        let value = value.path()?;
        Some(if let Self::Text(name) = &**key {
            format!("{value}[\"{name}\"]")
        } else if let Self::Number(number) = &**key {
            format!("{value}[{}]", number.written())
        } else {
            format!("{value}[…]")
        })
    }
}

/// An expression, and the text of its tag for error messages.
#[derive(Debug)]
pub(super) struct Tagged {
    pub(super) expression: Expression,
    /// The text of the tag, shortened.
    pub(super) tag: Box<str>,
}

/// A part of a template: text, an output or a statement.
#[derive(Debug)]
pub(super) enum Node {
    /// Text outside of tags, which is written unchanged.
    Text(Box<str>),
    /// `{{ expression }}`: the value of an expression.
    Output(Tagged),
    If {
        condition: Tagged,
        /// The nodes that are rendered if the condition is true.
        then: Vec<Self>,
        /// The nodes that are rendered if the condition is false.
        otherwise: Vec<Self>,
    },
    For {
        /// The expression of the loop: a list, or an object whose member names are the items.
        items: Tagged,
        /// The condition that selects items; `None` selects all.
        filter: Option<Expression>,
        /// The nodes that are rendered for each item.
        body: Vec<Self>,
        /// The nodes that are rendered if no item is selected.
        otherwise: Vec<Self>,
    },
}
