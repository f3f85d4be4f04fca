//! Templates of requests: bodies, header values, query values and paths made from an event.
//!
//! Separate because a template is a program that a subscription's author writes and an event's author feeds, and neither
//! may harm the function that runs it. The syntax is that of Jinja: `minijinja` reads it (`syntax`), and nothing else of
//! that crate runs. `lower` translates its tree into an `expression` of our own and refuses everything that is not
//! listed there, and `evaluate` computes it.
//!
//! Promises:
//! - Time and memory are bounded before they are used: see [`limits`] and `budget`.
//! - A value of an event is data: it is never evaluated, and no value can break the JSON, the header, the query or the
//!   path that contains it.
//! - Errors contain the place, the template and a reason, but never a value of the event or a secret.
//!
//! Numbers: integers from -2^63 to 2^64-1 are written digit by digit as published. `serde_json` has already read all other
//! numbers as `f64` before they arrive here: of `12345678901234567890123` the first 17 digits remain, `1e2` is written as
//! `100.0`, and `1.10` as `1.1`. The members of an object are sorted by name, because `serde_json` sorts them.

mod body;
mod budget;
mod date;
mod error;
mod escape;
mod evaluate;
mod expression;
mod filters;
pub mod limits;
mod lower;
mod operators;
mod output;
mod path;
mod program;
mod scope;
mod syntax;
mod text;
mod value;
mod values;

pub use body::BodyTemplate;
pub(crate) use body::member;
pub use error::TemplateError;
pub use path::PathTemplate;
pub use syntax::has_tags;
pub use text::TextTemplate;
pub use values::{Attempt, Origin, Values};

#[cfg(test)]
mod tests;
