//! Documents: trees of values that know their positions, a cursor that reads typed values from them, and findings.
//!
//! Separate because it knows no field: what is declared with it (`record`) and what reads it are elsewhere. It is the lowest
//! room of the crate beside `time`.

#[macro_use]
pub mod record;
#[macro_use]
pub mod alternatives;

pub mod declaration;
pub mod findings;
pub mod hint;
pub mod kind;
pub mod node;
pub mod number;
pub mod presence;
pub mod reader;
pub mod schema;
pub mod value;
