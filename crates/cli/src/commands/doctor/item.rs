//! Defines an item of doctor's report: the result of one check, with advice if there is a problem.

use serde::Serialize;

use crate::terminal::advice::chain;
use crate::terminal::text;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// The checked part of the stack works, and no action is needed.
    Ok,
    /// The checked part of the stack works with a restriction, or could not be checked.
    Warning,
    /// Action is needed.
    Error,
}

/// An item of the report, which is printed on one line.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Item {
    pub(super) item: String,
    pub(super) state: State,
    pub(super) message: String,
    /// The advice if action may be needed.
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

    /// Creates the item for a part of the stack that could not be checked, for example because the
    /// user's credentials lack a permission.
    pub(super) fn not_checked(item: impl Into<String>, why: &anyhow::Error) -> Self {
        let help = "your credentials may lack a permission; see docs/operate/doctor.md";
        Self::warning(item, format!("not checked: {}", chain(why)), help)
    }

    /// Formats the item and its advice on one line.
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
