//! Templates of requests: bodies, header values, query values and paths that are rendered from an
//! event.
//!
//! This module is separate because a template is a program: its author writes the subscription, and
//! its input comes from publishers. Neither may harm the function that runs the template. The
//! syntax is that of Jinja. `minijinja` parses templates (`syntax`), and no other part of that
//! crate runs. `lower` translates the syntax tree to an `expression` and refuses everything without
//! a translation. `evaluate` computes the result.
//!
//! - Time and memory are limited in advance: see [`limits`] and `budget`.
//! - A value of an event is data and is never evaluated. No value can break the JSON, header, query
//!   or path that contains it.
//! - Errors contain the place, text of the template and a reason, but never a value of the event or
//!   a secret.
//! - Integers from -2^63 to 2^64-1 are written digit by digit as published.
//! - `serde_json` parses all other numbers as `f64`. So `12345678901234567890123` keeps its first
//!   17 digits, `1e2` becomes `100.0`, and `1.10` becomes `1.1`.
//! - `serde_json` sorts the members of objects by name.

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
