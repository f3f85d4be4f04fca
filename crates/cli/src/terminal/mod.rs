//! Formats and writes output: texts, tables, times, colours, and advice for errors. Also asks
//! questions on a terminal. Imports no other layer.

pub(crate) mod advice;
pub(crate) mod confirm;
pub(crate) mod help;
pub(crate) mod interrupt;
pub(crate) mod numbers;
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod redaction;
pub(crate) mod styled;
pub(crate) mod text;
pub(crate) mod usage;
