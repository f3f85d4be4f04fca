//! Expressions and statements of templates, checked.
//!
//! Separate because this is the whole language: an operator, filter, test or statement without a variant here does not
//! exist. The values own their texts, so a compiled template can be shared between threads.

use super::value::Number;

/// A name that templates may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Variable {
    /// The event; not in batches.
    Event,
    /// All events of the request.
    Events,
    /// The namespace, topic and name of the subscription.
    Subscription,
    /// The number, delivery id and time of the attempt.
    Attempt,
}

impl Variable {
    /// All, with their names.
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
    /// The number of the turn, from 1.
    Index,
    /// The number of the turn, from 0.
    Index0,
    /// True in the first turn.
    First,
    /// True in the last turn.
    Last,
    /// The number of turns.
    Length,
}

impl LoopMember {
    /// All, with their names.
    pub(super) const NAMED: [(&'static str, Self); 5] = [
        ("index", Self::Index),
        ("index0", Self::Index0),
        ("first", Self::First),
        ("last", Self::Last),
        ("length", Self::Length),
    ];
}

/// An operator on numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    /// `/`: the result has a fraction.
    Divide,
    /// `//`: rounds down.
    DivideWhole,
    /// `%`: the remainder has the sign of the divisor.
    Remainder,
}

/// An operator that compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// `in`: an item of a list, a member of an object, or a part of a text.
    In,
    NotIn,
}

/// The test after `is`.
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
    /// All, with their names.
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

/// The filter after `|`.
#[derive(Debug)]
pub(super) enum Filter {
    /// `default(value)`, for a value that does not exist, or with `default(value, true)` also for one that is false or empty.
    Default(Box<Expression>, bool),
    /// `tojson`: the JSON as a text.
    ToJson,
    /// `date("%Y-%m-%d")`, in UTC.
    Date(Box<str>),
    /// `base64`: with the standard alphabet and padding.
    Base64,
    Upper,
    Lower,
    /// `replace(old, new)`
    Replace(Box<Expression>, Box<Expression>),
    /// `join(separator)`
    Join(Option<Box<Expression>>),
    /// `urlencode`: as a value of a form; a space is `+`.
    UrlEncode,
    /// `hmac("NAME")`: HMAC-SHA256 with a secret, in hexadecimal digits.
    Hmac(Box<str>),
    /// `length`: characters of a text, items of a list, members of an object.
    Length,
    First,
    Last,
}

impl Filter {
    /// The arguments that are computed before it is applied.
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

/// A value that is computed for each request.
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
    /// A name.
    Variable(Variable),
    /// The item of the loop at this position from the outside.
    Item(usize, Box<str>),
    /// A member of `loop`, for the loop at this position from the outside.
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
    /// An operator on numbers.
    Arithmetic(Arithmetic, Box<Self>, Box<Self>),
    /// `left ~ right`
    Concatenation(Box<Self>, Box<Self>),
    /// `a < b <= c`
    Comparison(Box<Self>, Vec<(Comparison, Self)>),
    /// `then if condition else otherwise`
    Conditional {
        condition: Box<Self>,
        /// The value if it is true.
        then: Box<Self>,
        /// The value if it is false; without one the value does not exist.
        otherwise: Option<Box<Self>>,
    },
    /// `value | filter`
    Filter(Box<Self>, Filter),
    /// `value is test`
    Test(Box<Self>, Test),
}

impl Expression {
    /// The path of the template that leads to a value, for messages: `event.data.items[0]`.
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

/// An expression and the tag that contains it, for errors.
#[derive(Debug)]
pub(super) struct Tagged {
    pub(super) expression: Expression,
    /// The first characters of its tag.
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
        /// Written if the condition is true.
        then: Vec<Self>,
        /// Written if the condition is false.
        otherwise: Vec<Self>,
    },
    For {
        /// A list, or an object whose names are the items.
        items: Tagged,
        /// Selects the items that the loop visits.
        filter: Option<Expression>,
        /// Written for each item.
        body: Vec<Self>,
        /// Written if there is no item.
        otherwise: Vec<Self>,
    },
}
