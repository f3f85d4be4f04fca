//! How text comes onto the terminal and questions back: the lowest room. It knows nothing of events.

pub(crate) mod advice;
pub(crate) mod confirm;
pub(crate) mod interrupt;
pub(crate) mod numbers;
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod redaction;
pub(crate) mod styled;
pub(crate) mod text;
pub(crate) mod usage;
