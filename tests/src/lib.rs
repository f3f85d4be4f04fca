//! What the tests of the whole share. The tests themselves stand in `tests`; nothing here is part
//! of the product.

pub mod certificates;
pub mod document;
pub mod hostile;
pub mod libraries;
pub mod scripted;
pub mod snippets;
