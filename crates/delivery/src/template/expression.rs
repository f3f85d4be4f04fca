//! The checked expressions and statements of templates.
//!
//! This module is separate because it defines the whole language: an operator, filter, test or
//! statement without a variant here does not exist. The values own their texts, so threads can
//! share a compiled template.

use super::value::Number;

/// A variable of templates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Variable {
    /// The event; undefined in batches.
    Event,
    /// All events of the request.
    Events,
    /// The namespace, topic and name of the subscription.
    Subscription,
    /// The number, delivery id and time of the attempt.
    Attempt,
}

impl Variable {
    /// All variables with their names.
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
    /// The number of the iteration, from 1.
    Index,
    /// The number of the iteration, from 0.
    Index0,
    /// True in the first iteration.
    First,
    /// True in the last iteration.
    Last,
    /// The number of iterations.
    Length,
}

impl LoopMember {
    /// All members with their names.
    pub(super) const NAMED: [(&'static str, Self); 5] = [
        ("index", Self::Index),
        ("index0", Self::Index0),
        ("first", Self::First),
        ("last", Self::Last),
        ("length", Self::Length),
    ];
}

/// An arithmetic operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    /// `/`: division with a fraction.
    Divide,
    /// `//`: division that rounds down.
    DivideWhole,
    /// `%`: the remainder, with the sign of the divisor.
    Remainder,
}

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// `in`: finds an item of a list, a member of an object, or a part of a text.
    In,
    NotIn,
}

/// A test after `is`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Test {
    /// The value exists.
    Defined,
    /// The value does not exist.
    Undefined,
    /// `null`
    None,
    /// A text.
    String,
    Number,
    /// `true` or `false`.
    Boolean,
    /// An object.
    Mapping,
    /// A list.
    Sequence,
}

impl Test {
    /// All tests with their names.
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

/// A filter after `|`.
#[derive(Debug)]
pub(super) enum Filter {
    /// `default(value)` replaces a missing value; `default(value, true)` also replaces a false or
    /// empty one.
    Default(Box<Expression>, bool),
    /// `tojson`: the value as JSON text.
    ToJson,
    /// `date("%Y-%m-%d")`: a time in UTC.
    Date(Box<str>),
    /// `base64`: standard alphabet with padding.
    Base64,
    Upper,
    Lower,
    /// `replace(old, new)`
    Replace(Box<Expression>, Box<Expression>),
    /// `join(separator)`
    Join(Option<Box<Expression>>),
    /// `urlencode`: encoded like a form value; a space is `+`.
    UrlEncode,
    /// `hmac("NAME")`: HMAC-SHA256 with a secret, in hexadecimal digits.
    Hmac(Box<str>),
    /// `length`: characters of a text, items of a list, members of an object.
    Length,
    First,
    Last,
}

impl Filter {
    /// Returns the arguments that are evaluated before the filter is applied.
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

/// The names of all filters, for messages.
pub(super) const FILTERS: &str = "default, tojson, date, base64, upper, lower, replace, join, urlencode, hmac, length, first and last";

/// An expression that is evaluated for each request.
#[derive(Debug)]
pub(super) enum Expression {
    Null,
    /// `true` or `false`.
    Boolean(bool),
    Number(Number),
    Text(Box<str>),
    /// A list of values.
    List(Vec<Self>),
    Object(Vec<(Box<str>, Self)>),
    /// The first part of a path, such as `event`.
    Variable(Variable),
    /// The item of a loop. The first field is the position of the loop, counted from the outermost;
    /// the second is the name.
    Item(usize, Box<str>),
    /// A member of `loop`, with the position of the loop, counted from the outermost.
    Loop(usize, LoopMember),
    /// `secret("NAME")`
    Secret(Box<str>),
    /// `value.name`
    Member(Box<Self>, Box<str>),
    /// `value[key]`
    Subscript(Box<Self>, Box<Self>),
    /// `value[start:stop]`
    Slice(Box<Self>, Option<Box<Self>>, Option<Box<Self>>),
    /// `not value`
    Not(Box<Self>),
    /// `-value`
    Negative(Box<Self>),
    /// `left and right`
    And(Box<Self>, Box<Self>),
    /// `left or right`
    Or(Box<Self>, Box<Self>),
    /// An arithmetic operation.
    Arithmetic(Arithmetic, Box<Self>, Box<Self>),
    /// `left ~ right`
    Concatenation(Box<Self>, Box<Self>),
    /// `a < b <= c`
    Comparison(Box<Self>, Vec<(Comparison, Self)>),
    /// `then if condition else otherwise`
    Conditional {
        condition: Box<Self>,
        /// The value if the condition is true.
        then: Box<Self>,
        /// The value if the condition is false; undefined if there is none.
        otherwise: Option<Box<Self>>,
    },
    /// `value | filter`
    Filter(Box<Self>, Filter),
    /// `value is test`
    Test(Box<Self>, Test),
}

impl Expression {
    /// Returns the path in the template that leads to a value, for messages: `event.data.items[0]`.
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

/// An expression with its tag, for errors.
#[derive(Debug)]
pub(super) struct Tagged {
    pub(super) expression: Expression,
    /// The first characters of the tag.
    pub(super) tag: Box<str>,
}

/// A part of a template.
#[derive(Debug)]
pub(super) enum Node {
    /// Text outside of tags.
    Text(Box<str>),
    /// `{{ expression }}`
    Output(Tagged),
    If {
        condition: Tagged,
        /// Rendered if the condition is true.
        then: Vec<Self>,
        /// Rendered if the condition is false.
        otherwise: Vec<Self>,
    },
    For {
        /// A list, or an object whose names are the items.
        items: Tagged,
        /// Selects the items of the loop.
        filter: Option<Expression>,
        /// Rendered for each item.
        body: Vec<Self>,
        /// Rendered if there is no item.
        otherwise: Vec<Self>,
    },
}
