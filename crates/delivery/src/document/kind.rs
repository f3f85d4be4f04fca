//! Re-exports the field types that declarations of records use.

pub use super::alternatives::{Alternatives, OneOf};
pub use super::record::{Merged, Whole};
pub use super::schema::{DEFINITION, of_mapping};
pub use super::value::{
    Checked, Distinct, Duration, Each, Flag, Integer, Kind, Parsed, Word, for_people,
};
