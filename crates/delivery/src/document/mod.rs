//! Documents: trees of values with positions, a cursor that reads typed values from them, and
//! findings.
//!
//! This module is separate because it contains no concrete field. Other modules declare fields with
//! `record`. It imports no other module of this crate except `time`.

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
