//! What the function remembers over its invocations. Nothing here sends or waits for anything outside.

pub(crate) mod adaptive;
pub(crate) mod consent_gates;
pub(crate) mod dead_letters;
pub(crate) mod finished;
pub(crate) mod health;
pub(crate) mod permits;
pub(crate) mod rates;
