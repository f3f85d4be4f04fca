//! [`Expression`]: the syntax tree of an expression, and its canonical text.
//!
//! This module is separate from the grammar, which parses a text into a tree. The canonical text of
//! a parsed tree parses to an equal tree. It has parentheses wherever readers often mistake the
//! precedence of operators.

use std::fmt;

use super::functions::Function;
use super::pattern::Pattern;
use super::value::{Type, Value};

/// The syntax tree of an expression or subexpression.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Expression {
    /// The value of the attribute with this name.
    Attribute(String),
    Literal(Value<'static>),
    /// `EXISTS`: true if the event has the attribute with this name.
    Exists(String),
    Not(Box<Expression>),
    Negate(Box<Expression>),
    Like {
        text: Box<Expression>,
        pattern: Pattern,
        negated: bool,
    },
    In {
        value: Box<Expression>,
        set: Vec<Expression>,
        negated: bool,
    },
    Binary {
        left: Box<Expression>,
        operator: Binary,
        right: Box<Expression>,
    },
    /// At least two operands that are joined with the same logical operator.
    Logic {
        operator: Logic,
        operands: Vec<Expression>,
    },
    Call {
        function: Function,
        arguments: Vec<Expression>,
    },
}

/// A comparison operator or an arithmetic operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Binary {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Binary {
    /// All operators with their symbols. An operator with two symbols is printed with the first of
    /// them.
    pub(super) const SYMBOLS: [(&str, Self); 12] = [
        ("=", Self::Equal),
        ("!=", Self::NotEqual),
        ("<>", Self::NotEqual),
        ("<", Self::Less),
        ("<=", Self::LessOrEqual),
        (">", Self::Greater),
        (">=", Self::GreaterOrEqual),
        ("+", Self::Add),
        ("-", Self::Subtract),
        ("*", Self::Multiply),
        ("/", Self::Divide),
        ("%", Self::Remainder),
    ];

    /// Returns the precedence of the operator; a higher number binds tighter.
    pub(super) fn rank(self) -> u8 {
        match self {
            Self::Equal
            | Self::NotEqual
            | Self::Less
            | Self::LessOrEqual
            | Self::Greater
            | Self::GreaterOrEqual => 1,
            Self::Add | Self::Subtract => 2,
            Self::Multiply | Self::Divide | Self::Remainder => 3,
        }
    }

    fn is_comparison(self) -> bool {
        self.rank() == 1
    }

    fn symbol(self) -> &'static str {
        let symbol = Self::SYMBOLS.iter().find(|(_, operator)| *operator == self);
        symbol.map_or("", |(symbol, _)| symbol)
    }
}

/// A logical operator. All logical operators have the same precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Logic {
    And,
    Or,
    Xor,
}

impl Logic {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::And => "AND",
            Self::Or => "OR",
            Self::Xor => "XOR",
        }
    }
}

impl Expression {
    /// Returns the type of the expression's value. An attribute counts as boolean, because its type
    /// depends on the event.
    pub(super) fn result(&self) -> Type {
        match self {
            Self::Literal(value) => value.kind(),
            Self::Negate(_) => Type::Integer,
            Self::Binary { operator, .. } if !operator.is_comparison() => Type::Integer,
            Self::Call { function, .. } => function.result(),
            Self::Attribute(_)
            | Self::Exists(_)
            | Self::Not(_)
            | Self::Like { .. }
            | Self::In { .. }
            | Self::Binary { .. }
            | Self::Logic { .. } => Type::Boolean,
        }
    }

    /// Returns the direct parts of the expression, in the order of evaluation.
    pub(super) fn parts(&self) -> Vec<&Self> {
        match self {
            Self::Attribute(_) | Self::Literal(_) | Self::Exists(_) => Vec::new(),
            Self::Not(part) | Self::Negate(part) | Self::Like { text: part, .. } => vec![part],
            Self::In { value, set, .. } => std::iter::once(&**value).chain(set).collect(),
            Self::Binary { left, right, .. } => vec![left, right],
            Self::Logic { operands: parts, .. } | Self::Call { arguments: parts, .. } => {
                parts.iter().collect()
            }
        }
    }

    /// Returns the nesting depth of the expression. An attribute or literal has depth 1.
    pub(super) fn depth(&self) -> usize {
        1 + self.parts().into_iter().map(Self::depth).max().unwrap_or(0)
    }

    /// Calls `see` for the expression and for each of its parts.
    pub(super) fn visit<'e>(&'e self, see: &mut impl FnMut(&'e Self)) {
        see(self);
        self.parts().into_iter().for_each(|part| part.visit(see));
    }

    /// Returns a copy of the expression in which `by` replaces `part`. `part` is found by its
    /// address.
    pub(super) fn replaced(&self, part: &Self, by: &Self) -> Self {
        if std::ptr::eq(self, part) {
            return by.clone();
        }
        let boxed = |inner: &Self| Box::new(inner.replaced(part, by));
        let each = |list: &[Self]| list.iter().map(|inner| inner.replaced(part, by)).collect();
        match self {
            Self::Attribute(_) | Self::Literal(_) | Self::Exists(_) => self.clone(),
            Self::Not(operand) => Self::Not(boxed(operand)),
            Self::Negate(operand) => Self::Negate(boxed(operand)),
            Self::Like { text, pattern, negated } => {
                Self::Like { text: boxed(text), pattern: pattern.clone(), negated: *negated }
            }
            Self::In { value, set, negated } => {
                Self::In { value: boxed(value), set: each(set), negated: *negated }
            }
            Self::Binary { left, operator, right } => {
                Self::Binary { left: boxed(left), operator: *operator, right: boxed(right) }
            }
            Self::Logic { operator, operands } => {
                Self::Logic { operator: *operator, operands: each(operands) }
            }
            Self::Call { function, arguments } => {
                Self::Call { function: *function, arguments: each(arguments) }
            }
        }
    }

    /// Returns the precedence of the printed form; 0 for expressions that need parentheses if they
    /// are operands.
    fn rank(&self) -> u8 {
        match self {
            Self::Attribute(_) | Self::Literal(_) | Self::Call { .. } => 5,
            Self::Like { .. } | Self::In { .. } => 4,
            Self::Binary { operator, .. } => operator.rank(),
            Self::Not(_) | Self::Negate(_) | Self::Exists(_) | Self::Logic { .. } => 0,
        }
    }

    /// Returns the text of an operand. Unless `plain` is true, it is in parentheses.
    fn operand(&self, plain: bool) -> String {
        if plain { self.to_string() } else { format!("({self})") }
    }

    /// Returns the text of an operand after `NOT` or `-`.
    fn after_prefix(&self) -> String {
        let prefix = matches!(self, Self::Not(_) | Self::Negate(_) | Self::Exists(_));
        self.operand(prefix || self.rank() == 5)
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list =
            |elements: &[Self]| elements.iter().map(Self::to_string).collect::<Vec<_>>().join(", ");
        let not = |negated: &bool| if *negated { "NOT " } else { "" };
        match self {
            Self::Attribute(name) => f.write_str(name),
            Self::Literal(value) => write!(f, "{value}"),
            Self::Exists(name) => write!(f, "EXISTS {name}"),
            Self::Not(operand) => write!(f, "NOT {}", operand.after_prefix()),
            // The parentheses keep the minus from becoming part of the number.
            Self::Negate(operand) if matches!(**operand, Self::Literal(Value::Integer(0..))) => {
                write!(f, "-({operand})")
            }
            Self::Negate(operand) => write!(f, "-{}", operand.after_prefix()),
            Self::Like { text, pattern, negated } => {
                write!(f, "{} {}LIKE {pattern}", text.operand(text.rank() == 5), not(negated))
            }
            Self::In { value, set, negated } => {
                let value = value.operand(value.rank() == 5);
                write!(f, "{value} {}IN ({})", not(negated), list(set))
            }
            Self::Binary { left, operator, right } => {
                let is_chain = left.rank() == operator.rank() && !operator.is_comparison();
                let left = left.operand(is_chain || left.rank() > operator.rank());
                let right = right.operand(right.rank() > operator.rank());
                write!(f, "{left} {} {right}", operator.symbol())
            }
            Self::Logic { operator, operands } => {
                let operand = |inner: &Self| inner.operand(!matches!(inner, Self::Logic { .. }));
                let operands: Vec<String> = operands.iter().map(operand).collect();
                f.write_str(&operands.join(&format!(" {} ", operator.as_str())))
            }
            Self::Call { function, arguments } => {
                write!(f, "{}({})", function.as_str(), list(arguments))
            }
        }
    }
}
