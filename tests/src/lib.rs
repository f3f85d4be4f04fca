//! Helpers shared by the tests of the whole system. The tests themselves are in `tests/tests`;
//! nothing here is part of the product.

pub mod built;
pub mod certificates;
pub mod conformance;
pub mod document;
pub mod emulated;
pub mod fake_ports;
pub mod hostile;
pub mod libraries;
pub mod logs;
pub mod manual_clock;
pub mod memory_table;
pub mod own_ports;
pub mod scripted;
pub mod snippets;
pub mod spellings;
pub mod topics;
pub mod virtual_clock;
pub mod writers;
