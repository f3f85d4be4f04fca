//! Documents: trees of values that know their positions, a cursor that reads typed values from them, and findings.
//!
//! Separate because it knows no field: what is declared with it (`record`) and what reads it are elsewhere. It is the lowest
//! room of the crate beside `time`.

#[macro_use]
pub(crate) mod record;

pub(crate) mod findings;
pub(crate) mod hint;
pub(crate) mod kind;
pub(crate) mod node;
pub mod number;
pub(crate) mod reader;
