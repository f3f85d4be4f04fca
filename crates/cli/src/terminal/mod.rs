//! Text on the terminal, and questions to a person. Knows nothing of events.

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
