//! What doctor says of one thing: fine, or what is wrong and what to do about it.

use serde::Serialize;

use crate::terminal::advice::chain;
use crate::terminal::text;

/// How a thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// Nothing has to be done.
    Ok,
    /// It works, or could not be looked at.
    Warning,
    /// Something has to be done.
    Error,
}

/// One line of the report.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Item {
    pub(super) item: String,
    pub(super) state: State,
    pub(super) message: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) help: Option<String>,
}

impl Item {
    pub(super) fn ok(item: impl Into<String>, message: impl Into<String>) -> Self {
        Self { item: item.into(), state: State::Ok, message: message.into(), help: None }
    }

    pub(super) fn warning(
        item: impl Into<String>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self { state: State::Warning, help: Some(help.into()), ..Self::ok(item, message) }
    }

    pub(super) fn error(
        item: impl Into<String>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self { state: State::Error, help: Some(help.into()), ..Self::ok(item, message) }
    }

    /// That something could not be looked at, by these credentials or at all.
    pub(super) fn not_checked(item: impl Into<String>, why: &anyhow::Error) -> Self {
        let help = "these credentials may lack a permission: docs/doctor.md has those of doctor";
        Self::warning(item, format!("not checked: {}", chain(why)), help)
    }

    /// Its line.
    pub(super) fn line(&self) -> String {
        let state = match self.state {
            State::Ok => "ok",
            State::Warning => "warning",
            State::Error => "error",
        };
        let help = self.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
        text::line(&format!("{state:<8} {}: {}{help}", self.item, self.message)) + "\n"
    }
}
